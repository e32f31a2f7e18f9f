//! Flags of commands that write to a hub and may wait for what becomes of it.

use std::time::Duration;

use clap::Args;
use ocm_core::Failure;

use crate::{OutputArgs, PlanArgs, RemovalArgs, options};

/// `--wait` and `--timeout`. Each command says in the help of `--wait` what it waits for, and may have another default of
/// `--timeout`.
#[derive(Args, Clone, Debug)]
pub struct WaitArgs {
    /// Wait until it is so
    #[arg(long)]
    pub wait: bool,
    /// How long --wait waits, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub timeout: String,
}

impl WaitArgs {
    /// How long is waited; none if it is not.
    ///
    /// # Errors
    /// A usage failure for what is no duration, also where nothing is waited for.
    pub fn limit(&self) -> Result<Option<Duration>, Failure> {
        let limit = options::timeout(&self.timeout)?;
        Ok(self.wait.then_some(limit))
    }
}

/// `--concurrency`. Commands that mostly read, or wait for each cluster, have a higher default.
#[derive(Args, Clone, Copy, Debug)]
pub struct ConcurrencyArgs {
    /// How many clusters are worked on at once
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    #[arg(hide_short_help = true)]
    pub concurrency: u16,
}

impl ConcurrencyArgs {
    /// How many clusters are worked on at once.
    pub fn at_once(self) -> usize {
        usize::from(self.concurrency)
    }
}

/// What commands take that apply a plan to a hub.
#[derive(Args, Clone, Debug)]
pub struct ApplyArgs {
    /// Whether it is waited for.
    #[command(flatten)]
    pub wait: WaitArgs,
    /// What is done with the plan.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Format of stdout.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The same of those that have an object for each of several clusters.
#[derive(Args, Clone, Debug)]
pub struct SendArgs {
    /// Whether it is waited for.
    #[command(flatten)]
    pub wait: WaitArgs,
    /// How many clusters are worked on at once.
    #[command(flatten)]
    pub concurrency: ConcurrencyArgs,
    /// What is done with the plan.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Format of stdout.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What commands take that delete objects of several clusters, which agents clean up.
#[derive(Args, Clone, Debug)]
pub struct WithdrawArgs {
    /// Take away finalizers for which an agent is needed that is not there
    ///
    /// Each is named first. What was applied stays on the cluster. An agent that is there gets the time of --timeout to clean
    /// up. Finalizers that somebody else has set stay.
    #[arg(long)]
    pub force: bool,
    /// How long each cluster is waited for, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub timeout: String,
    /// How many clusters are worked on at once.
    #[command(flatten)]
    pub concurrency: ConcurrencyArgs,
    /// Whether it is asked and only tried.
    #[command(flatten)]
    pub removal: RemovalArgs,
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn what_is_no_duration_is_told_also_where_nothing_is_waited_for() {
        let args = |wait, timeout: &str| WaitArgs { wait, timeout: timeout.to_owned() };
        assert_eq!(args(true, "90s").limit(), Ok(Some(Duration::from_secs(90))));
        assert_eq!(args(false, "90s").limit(), Ok(None));
        assert!(args(false, "soon").limit().unwrap_err().message.starts_with("--timeout: "));
    }

    #[test]
    fn a_command_says_what_it_waits_for_and_how_long() {
        let command = ApplyArgs::augment_args(Command::new("x"));
        let command =
            command.mut_arg("wait", |arg| arg.help("Wait for it")).mut_arg("timeout", |arg| arg.default_value("1m"));
        let matches = command.clone().get_matches_from(["x", "--wait"]);
        assert_eq!(matches.get_one::<String>("timeout").map(String::as_str), Some("1m"));
        // It can be neither waited for what is only printed, nor for a diff.
        for other in ["--render", "--diff"] {
            assert!(command.clone().try_get_matches_from(["x", "--wait", other]).is_err(), "{other}");
        }
    }
}
