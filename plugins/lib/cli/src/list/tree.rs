//! Trees: what a list holds, with what belongs to it below.

use super::NONE;

/// A line, and what is below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The line.
    pub line: String,
    /// What is below it, in this order.
    pub below: Vec<Self>,
}

impl Tree {
    /// A line with what is below it.
    pub fn new(line: impl Into<String>, below: Vec<Self>) -> Self {
        Self { line: line.into(), below }
    }

    /// A line with nothing below it.
    pub fn leaf(line: impl Into<String>) -> Self {
        Self::new(line, Vec::new())
    }

    /// A line for each cell of a table's row that says something.
    pub fn cells(headings: &[&str], cells: &[String]) -> Vec<Self> {
        let said = headings.iter().zip(cells).filter(|(_, cell)| !cell.is_empty() && *cell != NONE);
        said.map(|(heading, cell)| Self::leaf(format!("{heading}: {cell}"))).collect()
    }

    /// Names, each on its line, below a heading that says how many they are.
    pub fn names<'a>(heading: &str, names: impl IntoIterator<Item = &'a String>) -> Self {
        let below: Vec<Self> = names.into_iter().map(Self::leaf).collect();
        Self::new(format!("{heading} ({})", below.len()), below)
    }

    /// The lines of the whole.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.draw("", "", &mut lines);
        lines
    }

    fn draw(&self, own: &str, rest: &str, lines: &mut Vec<String>) {
        lines.push(format!("{own}{}", self.line));
        for (index, tree) in self.below.iter().enumerate() {
            let (branch, trunk) = match index + 1 == self.below.len() {
                true => ("└── ", "    "),
                false => ("├── ", "│   "),
            };
            tree.draw(&format!("{rest}{branch}"), &format!("{rest}{trunk}"), lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean;

    #[test]
    fn what_is_below_a_line_hangs_on_it() {
        let names = ["c1".to_owned(), "c2".to_owned()];
        let cells = [String::new(), NONE.to_owned(), "False".to_owned()];
        let mut below = Tree::cells(&["A", "B", "EMPTY"], &cells);
        below.push(Tree::names("CLUSTERS", &names));
        below.push(Tree::names("NAMESPACES", []));
        let lines = Tree::new("prod", below).lines();
        assert_eq!(
            lines,
            ["prod", "├── EMPTY: False", "├── CLUSTERS (2)", "│   ├── c1", "│   └── c2", "└── NAMESPACES (0)"]
        );
        assert!(lines.iter().all(|line| clean(line) == *line), "terminals show the lines as they are");
        assert_eq!(Tree::new("a", vec![Tree::new("b", vec![Tree::leaf("c")])]).lines()[2], "    └── c");
    }
}
