//! Tables as kubectl prints them: capital headings, columns by spaces, no lines.

use comfy_table::{ContentArrangement, presets};

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

/// Makes control characters visible, so that text from a cluster cannot steer a terminal.
pub fn clean(text: &str) -> String {
    if !text.chars().any(|c| c.is_control()) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' '.to_string(),
            c if c.is_control() => c.escape_default().to_string(),
            c => c.to_string(),
        })
        .collect()
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
    }
}
