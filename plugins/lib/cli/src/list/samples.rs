//! Rows for tests.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::View;

/// Objects with a number `n`.
pub(super) struct Rows;

impl View for Rows {
    type Row = Value;

    const HEADINGS: &'static [&'static str] = &["N"];
    const NARROW: usize = 1;
    const NOTHING: &'static str = "there is nothing";
    const NO_MATCH: &'static str = "nothing matches";
    const COLUMNS: &'static [&'static str] = &["n"];

    fn cells(row: &Value, _: Timestamp) -> Vec<String> {
        vec![row["n"].to_string()]
    }

    fn reference(row: &Value) -> String {
        row.to_string()
    }

    fn document(row: &Value) -> Value {
        let mut document = row.clone();
        document["standing"] = json!({"sum": row["n"].as_i64().map(|n| -n)});
        document
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
