//! Tables as kubectl prints them: capital headings, columns by spaces, no lines.

use comfy_table::{ContentArrangement, presets};
use ocm_core::is_visible;

/// Rows under headings.
pub struct Table {
    inner: comfy_table::Table,
}

impl Table {
    /// A table with its headings.
    pub fn new(headings: &[&str]) -> Self {
        let mut inner = comfy_table::Table::new();
        inner.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        inner.set_header(headings.to_vec());
        Self { inner }
    }

    /// Adds a row. Control characters of cells are made visible: their content may come from a stranger.
    pub fn row<I, S>(&mut self, cells: I)
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        self.inner.add_row(cells.into_iter().map(|cell| clean(cell.as_ref())));
    }

    /// The table as text, one line per row, without blanks at the ends.
    pub fn render(mut self) -> String {
        for column in self.inner.column_iter_mut() {
            column.set_padding((0, 3));
        }
        self.inner.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

/// Makes characters visible that steer a terminal or hide: control characters, those that change the direction of text
/// or have no width, and blanks other than the usual one. The text may come from a stranger.
pub fn clean(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(' '),
            '\'' | '"' | '\\' => shown.push(c),
            c if is_visible(c) => shown.push(c),
            c => shown.extend(c.escape_default()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_under_their_headings() {
        let mut table = Table::new(&["NAME", "PHASE"]);
        table.row(["a-long-name", "Pending"]);
        table.row(["b", ""]);
        assert_eq!(table.render(), "NAME          PHASE\na-long-name   Pending\nb\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\rc\nd"), "a\\u{1b}[31mb\\rc d");
        // The control characters of Latin-1, which some terminals obey like their escape sequences.
        assert_eq!(clean("a\u{9b}31m"), "a\\u{9b}31m");
    }

    #[test]
    fn text_keeps_its_direction_and_hides_nothing() {
        for hidden in "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{61c}\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{2028}\u{2029}\u{e0041}\u{a0}\u{3000}".chars() {
            let expected = format!("system:{}admin", hidden.escape_unicode());
            assert_eq!(clean(&format!("system:{hidden}admin")), expected);
        }
    }

    #[test]
    fn what_can_be_read_stays() {
        for text in ["a \"b\" 'c' \\d", "Zürich, cafe\u{301}", "東京", "हिन्दी"] {
            assert_eq!(clean(text), text);
        }
    }
}
