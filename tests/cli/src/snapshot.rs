//! Texts beside their snapshots.

/// Compares a text with its snapshot, with what differs between machines replaced. Who uses it depends on `insta`.
#[macro_export]
macro_rules! check {
    ($name:expr, $cli:expr, $text:expr) => {{
        let filters = $cli.filters();
        let filters: Vec<(&str, &str)> = filters.iter().map(|(from, to)| (from.as_str(), *to)).collect();
        insta::with_settings!({ filters => filters, omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name.to_string(), $text.to_string());
        });
    }};
}

/// A text that a regular expression takes by the letter.
pub fn escape(text: &str) -> String {
    text.chars().flat_map(|c| (!c.is_alphanumeric() && c.is_ascii()).then_some('\\').into_iter().chain([c])).collect()
}
