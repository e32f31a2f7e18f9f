//! Findings of checks, as every command that has some shows them and leaves them out.

pub mod ci;
pub mod markdown;

use std::path::{Path, PathBuf};

use clap::Args;
use ocm_checks::finding::{Finding, Next};
use ocm_checks::registry::check;
use ocm_checks::snapshot::Side;
use ocm_checks::suppress::Suppression;
use ocm_core::Failure;
use serde_json::Value;

use crate::remedy::within;

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

/// The contexts of both clusters, for commands to paste.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    /// Of the hub.
    pub hub: Option<String>,
    /// Of the managed cluster.
    pub managed: Option<String>,
}

impl Contexts {
    /// What to do next, as it is typed: with the context of its cluster.
    pub fn line(&self, next: &Next) -> String {
        let (side, line) = match next {
            Next::Text(text) => return text.clone(),
            Next::Command { side, line } => (side, line),
        };
        within(line, self.of(*side))
    }

    /// The context of a side.
    pub fn of(&self, side: Side) -> Option<&str> {
        match side {
            Side::Hub => self.hub.as_deref(),
            Side::Managed => self.managed.as_deref(),
        }
    }

    /// A finding as machines read it: with its title, and its commands ready to be pasted.
    pub fn document(&self, finding: &Finding) -> Value {
        let mut value = serde_json::to_value(finding).unwrap_or_default();
        value["next"] = finding.next.iter().map(|next| self.line(next)).collect();
        value["title"] = check(finding.id).map_or("", |check| check.title).into();
        value
    }
}
