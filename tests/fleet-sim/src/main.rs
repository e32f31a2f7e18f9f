//! The command: clusters that come to a hub of yours.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks on its standard streams")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fleet_sim::{Access, Error, Fleet, Plan};

/// Simulates managed clusters against a hub: each registers, asks for a certificate with a key of its own, waits until it
/// is accepted, and then reports with its certificate. Hostile ones come among them, each wrong in one way.
///
/// Nobody is accepted by this command: what the hub's policies or its administrator do is what is looked at. The objects of
/// the clusters stay on the hub. It prints counts and latencies.
///
/// Exit codes: 0 all right clusters joined, all hostile ones tried and none got in, 1 otherwise, or the hub cannot be used,
/// 2 wrong arguments.
#[derive(Parser)]
#[command(name = "fleet-sim")]
struct Arguments {
    /// The kubeconfig that clusters register with, such as the Secret bootstrap-hub-kubeconfig of a managed cluster has it
    #[arg(long, value_name = "FILE")]
    bootstrap_kubeconfig: PathBuf,
    /// How many right clusters come
    #[arg(long, value_name = "N", default_value_t = 100)]
    clusters: usize,
    /// How many hostile clusters come among them
    #[arg(long, value_name = "N", default_value_t = 0)]
    hostile: usize,
    /// How many requests are on their way to the hub at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    at_once: usize,
    /// Start of the names of the clusters
    #[arg(long, value_name = "TEXT", default_value = "simulated-")]
    prefix: String,
    /// How often each cluster that has joined reports
    #[arg(long, value_name = "N", default_value_t = 1)]
    reports: usize,
    /// How often each cluster that has joined asks for another certificate
    #[arg(long, value_name = "N", default_value_t = 0)]
    renewals: usize,
    /// Who approves renewals where Open Cluster Management's own controllers do not run
    #[arg(long, value_name = "FILE")]
    approver_kubeconfig: Option<PathBuf>,
    /// Seconds until clusters that have not joined give up
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Decides who is hostile and in which way, and the order
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<bool, Error> {
    let Arguments {
        bootstrap_kubeconfig,
        clusters,
        hostile,
        at_once,
        prefix,
        reports,
        renewals,
        approver_kubeconfig,
        timeout,
        seed,
    } = arguments;
    let fleet = Fleet::start(&Access {
        bootstrap: bootstrap_kubeconfig,
        others: BTreeMap::new(),
        approver: approver_kubeconfig,
        at_once,
    })?;
    let plan = Plan { prefix, clusters, hostile, reports: reports > 0, seed };
    let report = fleet.storm(&plan).end(Duration::from_secs(timeout));
    print!("{report}");
    let mut is_right = report.is_right();
    let mut agents = report.agents;
    for _ in 1..reports {
        let done = fleet.beat(&agents);
        println!("reports                 {}, {} with leases: {}", done.count, done.leases, done.took);
        is_right &= done.failures.is_empty();
        done.failures.iter().for_each(|failure| println!("  failed: {failure}"));
    }
    for _ in 0..renewals {
        let (renewed, done) = fleet.renew(agents);
        println!("renewals                {}: {}", done.count, done.took);
        is_right &= done.failures.is_empty();
        done.failures.iter().for_each(|failure| println!("  failed: {failure}"));
        agents = renewed;
    }
    Ok(is_right)
}
