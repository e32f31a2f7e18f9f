//! How quickly the commands start, how much memory that takes, and how large they are, against a program that does
//! nothing. `cargo bench -p bench --bench start`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use cli_tests::{Cli, binaries, file_name};

/// Runs of each; the machine is not ours alone, so the least of many is the figure.
const RUNS: u32 = 100;
const MAX_WALL: Duration = Duration::from_millis(2);
const MAX_MEMORY: u64 = 8 << 20;
const MAX_SIZE: u64 = 6_000_000;
/// The one that compiles and runs policies holds a compiler, those that come along, and a client.
const WITH_ENGINE: (&str, u64) = ("kubectl-ocm-policy", 24_000_000);

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it starts.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match measure() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            println!("\nSome targets are missed.");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<bool, String> {
    println!("Building the commands for release; the first time takes minutes.");
    let folder = cli_tests::build(&xtask::places::target()?, true, false)?;
    let cli = Cli::new();
    let mut good = true;
    println!(
        "\nSize of the stripped binaries, target ≤ {} MB, with the policy engine ≤ {} MB",
        MAX_SIZE / 1_000_000,
        WITH_ENGINE.1 / 1_000_000
    );
    for name in binaries() {
        let file = folder.join(file_name(&name));
        let size = fs::metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?.len();
        let most = if name == WITH_ENGINE.0 { WITH_ENGINE.1 } else { MAX_SIZE };
        good &= size <= most;
        println!("  {name:24} {:6.2} MB  {}", size as f64 / 1e6, verdict(size <= most));
    }
    let bound = time(&cli, Path::new("/bin/true"), &[])?;
    println!(
        "\nStart, {RUNS} runs, target ≤ {} ms and ≤ {} MiB; the lower bound is /bin/true",
        MAX_WALL.as_millis(),
        MAX_MEMORY >> 20
    );
    println!("  {:34} {:>8} {:>8} {:>8} {:>9}", "", "least", "median", "ratio", "memory");
    row("/bin/true", &bound, &bound, None);
    let mut commands = vec![("kubectl-ocm".to_owned(), vec!["version"]), ("kubectl-ocm".to_owned(), vec!["--help"])];
    for name in binaries().into_iter().filter(|name| name != "kubectl-ocm") {
        commands.push((name.clone(), vec!["--help"]));
        commands.push((name, vec!["--version"]));
    }
    for (name, words) in &commands {
        let figure = time(&cli, &folder.join(file_name(name)), words)?;
        let held = figure.least <= MAX_WALL && figure.memory.is_none_or(|memory| memory <= MAX_MEMORY);
        good &= held;
        row(&format!("{name} {}", words.join(" ")), &figure, &bound, Some(held));
    }
    Ok(good)
}

/// What one command needs.
struct Figure {
    least: Duration,
    median: Duration,
    /// Bytes at the peak; none where there is no GNU time.
    memory: Option<u64>,
}

fn row(name: &str, figure: &Figure, bound: &Figure, held: Option<bool>) {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "  {name:34} {:5.2} ms {:5.2} ms {:7.2}× {:>9}  {}",
        milliseconds(figure.least),
        milliseconds(figure.median),
        figure.least.as_secs_f64() / bound.least.as_secs_f64(),
        figure.memory.map_or("-".to_owned(), |memory| format!("{:.1} MiB", memory as f64 / f64::from(1 << 20))),
        held.map_or("", verdict),
    );
}

fn verdict(held: bool) -> &'static str {
    if held { "ok" } else { "MISSED" }
}

fn time(cli: &Cli, file: &Path, words: &[&str]) -> Result<Figure, String> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut command = cli.command(file);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        let status = command.status().map_err(|error| format!("{}: {error}", file.display()))?;
        times.push(begun.elapsed());
        if !status.success() {
            return Err(format!("{} {} failed", file.display(), words.join(" ")));
        }
    }
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    Ok(Figure { least: at(0), median: at(times.len() / 2), memory: memory(cli, file, words) })
}

/// The largest resident set of a run, by GNU time where there is one: it has no other children.
fn memory(cli: &Cli, file: &Path, words: &[&str]) -> Option<u64> {
    let mut command = Command::new("/usr/bin/time");
    command.args(["-f", "%M"]).arg(file).args(words).env_clear().env("HOME", cli.home()).env("PATH", "/usr/bin:/bin");
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    text.lines().last()?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}
