//! `cargo soak`: what takes too long for `cargo verify`.

use clap::Args;

use crate::places::target;

/// Arguments of `cargo soak`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// How many clusters come at once; several numbers are measured one after the other
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1000, 10_000],
          value_parser = clap::value_parser!(u32).range(100..))]
    pub clusters: Vec<u32>,
    /// Decides which clusters are hostile and in which way, and the order
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

/// Runs it with the webhook as it is shipped. It prints a table and writes nothing.
///
/// # Errors
/// When it cannot be built or run, a cluster is not what it should be in the end, or a target is missed.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let Arguments { clusters, seed } = arguments;
    let binaries = cli_tests::build_some(&["ocm-policy-webhook".to_owned()], &target()?, true, false)?;
    let clusters: Vec<String> = clusters.iter().map(u32::to_string).collect();
    let mut command = cli_tests::cargo();
    command.args(["bench", "--quiet", "--package", "bench", "--bench", "soak"]).current_dir(cli_tests::root());
    // What is measured is the binary above: what measures it need not be linked for minutes.
    command.envs([("CARGO_PROFILE_BENCH_LTO", "off"), ("CARGO_PROFILE_BENCH_CODEGEN_UNITS", "16")]);
    command.env(cli_tests::BINARIES, binaries);
    command.env("SOAK_CLUSTERS", clusters.join(",")).env("SOAK_SEED", seed.to_string());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("something is not as it should be: see above".to_owned()),
        Err(error) => Err(format!("cannot start Cargo: {error}")),
    }
}
