//! Formats of what goes to stdout.

use clap::{Args, ValueEnum};
use ocm_core::{DryRun, Failure};
use serde::Serialize;
use serde_json::{Value, json};

/// What every command that prints objects or results accepts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Format of stdout
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// kubectl's values of `--dry-run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRunArg {
    /// For real
    #[default]
    None,
    /// Decide here, change nothing
    Client,
    /// Let the server check everything and store nothing
    Server,
}

impl From<DryRunArg> for DryRun {
    fn from(arg: DryRunArg) -> Self {
        match arg {
            DryRunArg::None => Self::No,
            DryRunArg::Client => Self::Client,
            DryRunArg::Server => Self::Server,
        }
    }
}

/// Formats of stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people
    #[default]
    Table,
    /// More columns for people
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// One kind/name per line
    Name,
}

impl Format {
    /// Whether people, not programs, are going to read it.
    pub fn is_human(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

/// Renders a value as the JSON or YAML document that `format` asks for; JSON for the formats of people.
///
/// # Errors
/// When the value cannot be written, e.g. a map whose keys are no strings.
pub fn document<T: Serialize>(format: Format, value: &T) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::other("cannot write the result").because(error);
    match format {
        Format::Yaml => serde_saphyr::to_string(value).map_err(|error| failed(&error)),
        _ => serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| failed(&error)),
    }
}

/// A Kubernetes `List` of objects, as `kubectl get -o json` prints several.
pub fn object_list(items: Vec<Value>) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items })
}
