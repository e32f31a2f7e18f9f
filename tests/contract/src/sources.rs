//! Tests as they stand in sources.

use std::fs;
use std::path::Path;

/// Whether a file has a test of this name.
pub fn has_test(file: &Path, name: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut is_test = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        let function = line.trim_start_matches("async ").strip_prefix("fn ");
        let found =
            is_test && function.is_some_and(|rest| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')));
        is_test = line == "#[test]" || line.starts_with("#[tokio::test") || (is_test && line.starts_with("#["));
        found
    })
}
