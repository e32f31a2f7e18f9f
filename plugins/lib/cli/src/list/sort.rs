//! `--sort-by`: by a column's name or by a path into the object.

use std::cmp::Ordering;

use ocm_core::Failure;
use ocm_core::order;
use serde_json::Value;

use super::View;
use crate::jsonpath::Path;

/// Sorts rows by a column or a path, and says whether any of them has a value there. Rows without one come first.
///
/// # Errors
/// A usage failure for a word that is neither.
pub(super) fn sort_by<T: View>(rows: &mut [T::Row], field: &str) -> Result<bool, Failure> {
    if field.starts_with(['.', '{', '$']) {
        let path = field.parse::<Path>();
        let path = path.map_err(|error| Failure::usage(format!("--sort-by {field:?}: {error}")))?;
        return Ok(sort(rows, |row| at(&path, &T::object(row)).or_else(|| at(&path, &T::document(row)))));
    }
    let name = field.to_ascii_lowercase();
    if !T::COLUMNS.contains(&name.as_str()) {
        let hint = format!("columns are {}; a path begins with a dot", T::COLUMNS.join(", "));
        return Err(Failure::usage(format!("--sort-by: there is no column {field:?}")).hint(hint));
    }
    Ok(sort(rows, |row| T::column(row, &name)))
}

/// What a path leads to first.
fn at(path: &Path, value: &Value) -> Option<Value> {
    path.find(value).first().map(|value| (*value).clone())
}

/// Sorts rows by what they have, and says whether any has something.
fn sort<R>(rows: &mut [R], value: impl Fn(&R) -> Option<Value>) -> bool {
    let mut found = false;
    order::sort_by_key(rows, |row| {
        let value = value(row);
        found |= value.is_some();
        Key(value.unwrap_or(Value::Null))
    });
    found
}

/// JSON values in the order that people expect: nothing, then numbers, then text.
#[derive(PartialEq)]
struct Key(Value);

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |value: &Value| match value {
            Value::Null => 0,
            Value::Number(_) => 1,
            _ => 2,
        };
        match (&self.0, &other.0) {
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default())
            }
            (Value::String(left), Value::String(right)) => left.cmp(right),
            (left, right) => rank(left).cmp(&rank(right)).then_with(|| left.to_string().cmp(&right.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::list::samples::Rows;

    #[test]
    fn numbers_sort_as_numbers_and_what_lacks_a_value_comes_first() {
        let mut rows = [json!({"n": 10}), json!({"n": 9}), json!({})];
        sort_by::<Rows>(&mut rows, "N").unwrap();
        assert_eq!(rows.iter().map(|row| row["n"].as_i64()).collect::<Vec<_>>(), [None, Some(9), Some(10)]);
    }

    #[test]
    fn a_path_reaches_what_was_made_of_the_object_too() {
        let mut rows = [json!({"n": 9}), json!({"n": 10})];
        assert!(sort_by::<Rows>(&mut rows, ".standing.sum").unwrap());
        assert_eq!(rows[0]["n"], 10);
    }

    #[test]
    fn a_path_that_no_row_has_is_told_and_leaves_the_order() {
        let mut rows = [json!({"n": 10}), json!({"n": 9})];
        assert!(!sort_by::<Rows>(&mut rows, ".standing.summ").unwrap());
        assert_eq!(rows[0]["n"], 10);
        assert!(sort_by::<Rows>(&mut rows, "{.n}").unwrap());
    }

    #[test]
    fn a_path_reaches_into_the_object() {
        let mut rows = [json!({"a": {"b": "y"}}), json!({"a": {"b": "x"}})];
        sort_by::<Rows>(&mut rows, "{.a.b}").unwrap();
        assert_eq!(rows[0]["a"]["b"], "x");
        let failure = sort_by::<Rows>(&mut rows, "{.a[}").unwrap_err();
        assert!(failure.message.contains("character 5"), "{}", failure.message);
        let failure = sort_by::<Rows>(&mut rows, "size").unwrap_err();
        assert!(format!("{:?}", failure.hints).contains("columns are n"));
    }
}
