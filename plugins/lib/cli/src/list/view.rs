//! How rows look.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Tree;

/// How a kind of row looks in every format.
pub trait View {
    /// What a row is made of.
    type Row;
    /// Headings; the first [`Self::NARROW`] of them make the ordinary table.
    const HEADINGS: &'static [&'static str];
    /// How many columns the ordinary table has.
    const NARROW: usize;
    /// What is said of a list of all of them that is empty.
    const NOTHING: &'static str;
    /// What is said of [one that was narrowed](super::ListArgs::is_narrowed), of lists that can be.
    const NO_MATCH: &'static str = Self::NOTHING;
    /// Names of the columns by which rows can be sorted: headings in lower case.
    const COLUMNS: &'static [&'static str];
    /// The cells of a row, as many as there are headings.
    fn cells(row: &Self::Row, now: Timestamp) -> Vec<String>;
    /// kubectl's `kind.group/name`.
    fn reference(row: &Self::Row) -> String;
    /// The object with what we made of it.
    fn document(row: &Self::Row) -> Value;
    /// The object, for paths into it.
    fn object(row: &Self::Row) -> Value;
    /// When the object was created.
    fn created(row: &Self::Row) -> Option<Timestamp>;

    /// What `-o tree` shows, of lists that have it: for each row, or for what several rows have in common, what is below it.
    fn trees(rows: &[Self::Row], _now: Timestamp) -> Vec<Tree> {
        rows.iter().map(|row| Tree::leaf(Self::reference(row))).collect()
    }

    /// How many of something a row has in the column of a name, of columns that count; their cells are text.
    fn count(_row: &Self::Row, _name: &str) -> Option<i64> {
        None
    }

    /// What a row holds in the column of a name; numbers sort as numbers.
    fn column(row: &Self::Row, name: &str) -> Option<Value> {
        if let Some(count) = Self::count(row, name) {
            return Some(json!(count));
        }
        if name == "age" {
            // The youngest first, as an age grows.
            return Self::created(row).map(|created| json!(-created.as_second()));
        }
        let index = Self::HEADINGS.iter().position(|heading| heading.eq_ignore_ascii_case(name))?;
        Self::cells(row, Timestamp::UNIX_EPOCH).into_iter().nth(index).map(Value::String)
    }
}
