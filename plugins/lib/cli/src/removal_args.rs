//! Flags of commands that delete objects.

use clap::Args;

use crate::{DryRunArg, OutputArgs};

/// `--yes`, `--dry-run` and `--output`, as every command has them that deletes objects.
#[derive(Args, Clone, Debug)]
pub struct RemovalArgs {
    /// Skip confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Show what would be deleted and delete nothing: client decides here and only reads, server lets the API server
    /// check it too; without a value it is client, and a value is written as in --dry-run=server
    #[arg(long, value_enum, value_name = "WHO", default_value_t, num_args = 0..=1, default_missing_value = "client")]
    #[arg(require_equals = true)]
    pub dry_run: DryRunArg,
    /// Format of stdout.
    #[command(flatten)]
    pub output: OutputArgs,
}
