//! What every list takes from the command line.

use clap::Args;

use crate::OutputArgs;

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
    /// Leave the headings out
    #[arg(long)]
    pub no_headers: bool,
    /// Keep metadata.managedFields in JSON and YAML
    #[arg(long, hide_short_help = true)]
    pub show_managed_fields: bool,
    /// Format of stdout.
    #[command(flatten)]
    pub output: OutputArgs,
}
