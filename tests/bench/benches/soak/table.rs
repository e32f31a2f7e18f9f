//! What was found, and whether it is what is wanted.

/// Rows, each with its target where it has one.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

struct Row {
    what: String,
    figure: String,
    target: String,
    is_met: Option<bool>,
}

impl Table {
    /// A figure without a target.
    pub(crate) fn add(&mut self, what: &str, figure: impl ToString) {
        self.push(Row { what: what.to_owned(), figure: figure.to_string(), target: String::new(), is_met: None });
    }

    /// A figure with a target.
    pub(crate) fn judge(&mut self, what: &str, figure: impl ToString, target: impl ToString, is_met: bool) {
        let (figure, target) = (figure.to_string(), target.to_string());
        self.push(Row { what: what.to_owned(), figure, target, is_met: Some(is_met) });
    }

    fn push(&mut self, row: Row) {
        // Whoever waits for the end sees what is known so far.
        println!("{}", row.text());
        self.0.push(row);
    }

    /// Whether every target is met.
    pub(crate) fn is_met(&self) -> bool {
        self.0.iter().all(|row| row.is_met != Some(false))
    }

    /// All of it.
    pub(crate) fn print(&self) {
        println!();
        self.0.iter().for_each(|row| println!("{}", row.text()));
    }
}

impl Row {
    fn text(&self) -> String {
        let Self { what, figure, target, is_met } = self;
        let met = is_met.map_or("", |is_met| if is_met { "met" } else { "MISSED" });
        format!("{what:<52} {figure:<52} {target:<28} {met}").trim_end().to_owned()
    }
}
