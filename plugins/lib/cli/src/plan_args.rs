//! What is done with a plan, as every command that has one takes it.

use clap::Args;
use ocm_core::plan::Mode;
use ocm_core::{DryRun, Failure};

use crate::{DryRunArg, Format};

/// `--dry-run`, `--diff` and `--render`. The command has a flag `--wait` of its own.
#[derive(Args, Clone, Debug, Default)]
pub struct PlanArgs {
    /// Show what would be done and change nothing: client decides here and only reads, server has the server validate and
    /// default every object; without a value it is client, and a value is written as in --dry-run=server
    #[arg(long, value_enum, value_name = "WHO", default_value_t, num_args = 0..=1, default_missing_value = "client")]
    #[arg(require_equals = true)]
    pub dry_run: DryRunArg,
    /// Show what would change in each object as a diff, change nothing, and exit with 3 if anything would
    #[arg(long, conflicts_with_all = ["dry_run", "render", "wait"])]
    pub diff: bool,
    /// Print the manifests instead of applying them
    #[arg(long, conflicts_with_all = ["dry_run", "wait"])]
    pub render: bool,
    /// With --render: print the contents of Secrets instead of their length
    #[arg(long, requires = "render")]
    pub show_secrets: bool,
}

impl PlanArgs {
    /// What is done with the plan.
    ///
    /// # Errors
    /// A usage failure for a diff in a format that it does not have.
    pub fn mode(&self, format: Format) -> Result<Mode, Failure> {
        match DryRun::from(self.dry_run) {
            _ if self.render => Ok(Mode::Render),
            _ if self.diff && !format.is_human() => {
                Err(Failure::usage("--diff has a format of its own: leave out --output"))
            }
            _ if self.diff => Ok(Mode::Diff),
            dry_run => Ok(Mode::Apply(dry_run)),
        }
    }
}
