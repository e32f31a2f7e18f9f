//! The flags that leave out known findings.

use std::path::{Path, PathBuf};

use clap::Args;
use ocm_checks::suppress::Suppression;
use ocm_core::Failure;

/// Which known findings are left out.
#[derive(Args, Clone, Debug, Default)]
pub struct SuppressArgs {
    // A comment of this text would link to something that is called `:CLUSTER`.
    #[arg(
        long,
        value_name = "SUPPRESSION",
        help = "Leave out a known finding: ID[:CLUSTER]=UNTIL,REASON (repeatable)"
    )]
    suppress: Vec<String>,
    /// File of such lines; # begins a comment
    #[arg(long, value_name = "FILE")]
    suppress_file: Option<PathBuf>,
}

impl SuppressArgs {
    /// The suppressions of flags and file.
    ///
    /// # Errors
    /// A usage failure for what is none, and for a file that cannot be read.
    pub fn read(&self) -> Result<Vec<Suppression>, Failure> {
        let Self { suppress, suppress_file } = self;
        let one = |text: &str, origin: &str| {
            text.parse::<Suppression>().map_err(|error| Failure::usage(format!("{origin} {text:?}")).because(error))
        };
        let mut all = suppress.iter().map(|text| one(text, "--suppress")).collect::<Result<Vec<_>, _>>()?;
        if let Some(file) = suppress_file {
            for line in content(file)?.lines().map(str::trim) {
                if !line.is_empty() && !line.starts_with('#') {
                    all.push(one(line, "--suppress-file")?);
                }
            }
        }
        Ok(all)
    }
}

fn content(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("cannot read {}, the file of --suppress-file", file.display())).because(error)
    })
}
