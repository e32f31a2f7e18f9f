//! `--sort-by`: by a column's name or by a path into the object.

use std::cmp::Ordering;

use ocm_core::Failure;
use serde_json::Value;

use super::View;
use crate::jsonpath::Path;

/// Sorts rows by a column or a path. Rows without a value come first.
///
/// # Errors
/// A usage failure for a word that is neither.
pub(super) fn sort_by<T: View>(rows: &mut [T::Row], field: &str) -> Result<(), Failure> {
    if field.starts_with(['.', '{', '$']) {
        let path = field.parse::<Path>();
        let path = path.map_err(|error| Failure::usage(format!("--sort-by {field:?}: {error}")))?;
        let key = |row: &T::Row| path.find(&T::object(row)).first().map_or(Value::Null, |value| (*value).clone());
        rows.sort_by_cached_key(|row| Key(key(row)));
        return Ok(());
    }
    let name = field.to_ascii_lowercase();
    if !T::COLUMNS.contains(&name.as_str()) {
        let hint = format!("columns are {}; a path begins with a dot", T::COLUMNS.join(", "));
        return Err(Failure::usage(format!("--sort-by: there is no column {field:?}")).hint(hint));
    }
    rows.sort_by_cached_key(|row| Key(T::column(row, &name).unwrap_or(Value::Null)));
    Ok(())
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
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    struct Rows;

    impl View for Rows {
        type Row = Value;

        const HEADINGS: &'static [&'static str] = &["N"];
        const NARROW: usize = 1;
        const NOTHING: &'static str = "nothing";
        const COLUMNS: &'static [&'static str] = &["n"];

        fn cells(row: &Value, _: Timestamp) -> Vec<String> {
            vec![row["n"].to_string()]
        }

        fn reference(row: &Value) -> String {
            row.to_string()
        }

        fn document(row: &Value) -> Value {
            row.clone()
        }

        fn object(row: &Value) -> Value {
            row.clone()
        }

        fn created(_: &Value) -> Option<Timestamp> {
            None
        }

        fn column(row: &Value, name: &str) -> Option<Value> {
            row.get(name).cloned()
        }
    }

    #[test]
    fn numbers_sort_as_numbers_and_what_lacks_a_value_comes_first() {
        let mut rows = [json!({"n": 10}), json!({"n": 9}), json!({})];
        sort_by::<Rows>(&mut rows, "N").unwrap();
        assert_eq!(rows.iter().map(|row| row["n"].as_i64()).collect::<Vec<_>>(), [None, Some(9), Some(10)]);
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
