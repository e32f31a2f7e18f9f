//! From three empty clusters to two available managed clusters, ours against the incumbent tool.
//! `cargo bench -p bench --bench join`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use std::env;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use control_plane::{Cluster, Spec, binaries, ocm_version};
use xtask::places::{state, target};
use xtask::prepare::both;
use xtask::story::{Managed, Scene, kubeconfig, timed};

/// What the incumbent needed on two cores of the same kind, by hand: install, both joins, accept until available.
const INCUMBENT: [f32; 3] = [11.0, 9.0, 2.0];
const ROUNDS: usize = 3;

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it starts.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), String> {
    println!("Building the commands for release; the first time takes minutes.");
    let target = target()?;
    let (found, commands) = both(binaries, || cli_tests::build(&target, true, false));
    let (found, commands) = (found.map_err(|error| error.to_string())?, commands?);
    let mut best: Option<[f32; 3]> = None;
    println!("\n{:8} {:>10} {:>10} {:>10} {:>10} {:>8}", "", "install", "join two", "accept", "all", "ratio");
    row("incumbent", INCUMBENT);
    for round in 1..=ROUNDS {
        let clusters = Cluster::start_all(&["hub", "c1", "c2"].map(Spec::node)).map_err(|error| error.to_string())?;
        let file = state()?.join(format!("bench-{}.kubeconfig", std::process::id()));
        kubeconfig(&clusters, &file)?;
        let scene = Scene {
            kubeconfig: Some(file.clone()),
            commands: commands.clone(),
            kubectl: found.kubectl().to_owned(),
            hub: "hub".to_owned(),
            bundle: Some(ocm_version().map_err(|error| error.to_string())?),
            loud: false,
        };
        let figures = tell(&scene);
        let _ = std::fs::remove_file(&file);
        let figures = figures?;
        row(&format!("round {round}"), figures);
        if best.is_none_or(|best| figures.iter().sum::<f32>() < best.iter().sum()) {
            best = Some(figures);
        }
    }
    if let Some(best) = best {
        row("best", best);
    }
    Ok(())
}

/// The same three spans that were measured of the incumbent.
fn tell(scene: &Scene) -> Result<[f32; 3], String> {
    let managed = ["c1", "c2"].map(|name| Managed { name: name.to_owned(), context: name.to_owned() });
    let ((), install) = timed(|| scene.install())?;
    let (_, join) = timed(|| {
        let ticket = scene.ticket()?;
        thread::scope(|scope| {
            let joining: Vec<_> = managed.iter().map(|one| scope.spawn(|| scene.join(one, &ticket))).collect();
            joining
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })?;
    let ((), accept) = timed(|| {
        scene.run(&["kubectl", "ocm", "accept", "c1", "c2", "--yes", "--wait", "--context", &scene.hub])?;
        scene.available(&managed)
    })?;
    Ok([install, join, accept].map(|span: Duration| span.as_secs_f32()))
}

fn row(name: &str, figures: [f32; 3]) {
    let all: f32 = figures.iter().sum();
    let [install, join, accept] = figures;
    let ratio = all / INCUMBENT.iter().sum::<f32>();
    println!("{name:9} {install:8.1} s {join:8.1} s {accept:8.1} s {all:8.1} s {ratio:7.2}×");
}
