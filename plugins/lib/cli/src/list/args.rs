//! What every list takes from the command line.

use clap::Args;

use super::ListFormat;
use super::format::ListFormatParser;

/// What every list takes.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Names; none means all
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Only those whose labels match, e.g. env=prod,region in (eu,us)
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Order: a column (name, phase, age, …) or a path such as .metadata.creationTimestamp
    #[arg(long, value_name = "FIELD", conflicts_with = "watch")]
    pub sort_by: Option<String>,
    /// Go on and show what changes
    #[arg(short, long)]
    pub watch: bool,
    /// Show labels as the last column of tables
    #[arg(long)]
    pub show_labels: bool,
    /// Leave the headings out
    #[arg(long)]
    pub no_headers: bool,
    /// Keep metadata.managedFields in JSON and YAML
    #[arg(long, hide_short_help = true)]
    pub show_managed_fields: bool,
    /// Format of stdout.
    #[command(flatten)]
    pub output: ListOutputArgs,
    /// Whether something besides names and the selector narrows the list: [`Self::narrowed_if`].
    #[arg(skip)]
    pub narrowed: bool,
}

impl ListArgs {
    /// Of a command that lets nobody choose, order or label rows: all of them.
    pub fn of_all(watch: bool, no_headers: bool, output: ListOutputArgs) -> Self {
        Self {
            names: Vec::new(),
            selector: None,
            sort_by: None,
            watch,
            show_labels: false,
            no_headers,
            show_managed_fields: false,
            output,
            narrowed: false,
        }
    }

    /// The same where several objects may have a name: what has it is a list, also if it is a single one, so that what is printed
    /// has one form whatever there is.
    #[must_use]
    pub fn of_several(self) -> Self {
        Self { narrowed: self.is_narrowed(), names: Vec::new(), ..self }
    }

    /// The same, narrowed by what else the command line asks for, if it does.
    #[must_use]
    pub fn narrowed_if(self, narrows: bool) -> Self {
        Self { narrowed: self.narrowed || narrows, ..self }
    }

    /// Whether objects that there are may be missing from the list: that it is empty says nothing of the hub then.
    pub fn is_narrowed(&self) -> bool {
        self.narrowed || !self.names.is_empty() || self.selector.is_some()
    }
}

/// How a list is printed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct ListOutputArgs {
    /// Format of stdout
    #[arg(short, long, default_value = "table", value_parser = ListFormatParser::PLAIN, value_name = "FORMAT")]
    pub output: ListFormat,
}
