//! How fast policies decide.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use ocm_cli::{Format, Table, Ui, document};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_rules::Answer;
use serde::Serialize;

use crate::args::BenchArgs;
use crate::evaluation::{self, Policies};
use crate::histogram::Histogram;
use crate::load::Loader;
use crate::requests::{self, Asked};
use crate::verbs::inspect::size;

/// What was measured.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    policies: usize,
    requests: usize,
    threads: u16,
    seconds: f64,
    /// Requests that were answered, by all policies together.
    answered: u64,
    answers_per_second: f64,
    /// From the request to the combined answer, with the fresh instances that the next request needs.
    p50_nanos: u64,
    p90_nanos: u64,
    p99_nanos: u64,
    max_nanos: u64,
    /// Of one request, all policies together.
    fuel: u64,
    /// Of this whole process, engine included.
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    /// How many of the answers were which.
    answers: std::collections::BTreeMap<&'static str, u64>,
}

pub(crate) fn run(args: BenchArgs, ui: &Ui) -> Result<Exit, Failure> {
    let BenchArgs { policies, requests: from, seconds, threads, output } = args;
    let loader = Loader::new(ui)?;
    let policies = loader.load_all(&policies)?;
    let asked = requests::read(&from, &policies.manifests())?;
    for asked in &asked {
        let answer = policies.evaluate(asked).map_err(|error| requests::wrong(&asked.source, error))?;
        if answer.asked().is_empty() {
            let why = format!("no policy has an opinion about {}", asked.request.operation.word());
            return Err(Failure::usage(format!("{}: there is nothing to measure", asked.source))
                .because(why)
                .hint("--operation says what happens to a ManagedCluster"));
        }
        if let Some(problem) = answer.answer.errors.first() {
            ui.tell(Event::warning(format!(
                "{}: {} gives no decision, and that is what is measured: {}",
                asked.source,
                problem.policies.join(", "),
                evaluation::why(&problem.error)
            )));
        }
    }
    ui.tell(Event::now(format!("measuring for {seconds} s")));
    let measured = measure(&policies, &asked, Duration::from_secs(seconds), threads).map_err(|error| {
        Failure::other(format!("this machine starts no {threads} threads to measure with"))
            .because(error)
            .hint("--threads 1 measures with one")
    })?;
    match output.output {
        format @ (Format::Json | Format::Yaml) => ui.out(&document(format, &measured)?),
        Format::Name => ui.line(&format!("{:.0}", measured.answers_per_second)),
        Format::Table | Format::Wide => ui.out(&shown(&measured)),
    }
    Ok(Exit::Ok)
}

/// Has so many threads ask for so long. An error where not all of them can be started.
fn measure(policies: &Policies, asked: &[Asked], time: Duration, threads: u16) -> io::Result<Measured> {
    // The first decisions error pages in and fill the caches of the machine; a hub is past that.
    for asked in asked.iter().cycle().take(200) {
        answer(policies, asked);
    }
    let (over, fuel) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    let work = || {
        let (mut times, mut verdicts) = (Histogram::new(), [0; Answer::ALL.len()]);
        for asked in asked.iter().cycle() {
            let begun = Instant::now();
            let (verdict, used) = answer(policies, asked);
            times.add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            verdicts[verdict as usize] += 1;
            fuel.fetch_add(used, Ordering::Relaxed);
            if over.load(Ordering::Relaxed) {
                break;
            }
        }
        (times, verdicts)
    };
    let all: Vec<(Histogram, [u64; Answer::ALL.len()])> = thread::scope(|scope| {
        let workers: io::Result<Vec<_>> = (0..threads).map(|_| Builder::new().spawn_scoped(scope, work)).collect();
        if workers.is_ok() {
            thread::sleep(time);
        }
        // Also those end that were started before one was not.
        over.store(true, Ordering::Relaxed);
        Ok::<_, io::Error>(workers?.into_iter().filter_map(|worker| worker.join().ok()).collect())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut times = Histogram::new();
    let mut answers = std::collections::BTreeMap::new();
    for (more, verdicts) in &all {
        times.merge(more);
        for verdict in Answer::ALL {
            *answers.entry(verdict.word()).or_default() += verdicts[verdict as usize];
        }
    }
    answers.retain(|_, count| *count > 0);
    Ok(Measured {
        policies: policies.count(),
        requests: asked.len(),
        threads,
        seconds,
        answered: times.count(),
        answers_per_second: times.count() as f64 / seconds,
        p50_nanos: times.at(500),
        p90_nanos: times.at(900),
        p99_nanos: times.at(990),
        max_nanos: times.max(),
        fuel: fuel.into_inner() / times.count().max(1),
        resident_bytes: resident(),
        answers,
    })
}

/// One request on its whole way: written for the policies, decided by fresh instances, combined.
fn answer(policies: &Policies, asked: &Asked) -> (Answer, u64) {
    match policies.evaluate(asked) {
        Ok(answer) => (answer.answer.verdict, answer.asked().iter().map(|one| one.outcome().fuel).sum()),
        Err(_) => (Answer::Error, 0),
    }
}

fn shown(measured: &Measured) -> String {
    let mut table = Table::new(&["POLICIES", "THREADS", "P50", "P90", "P99", "MAX", "ANSWERS/S", "FUEL", "RESIDENT"]);
    table.row([
        &measured.policies.to_string(),
        &measured.threads.to_string(),
        &nanos(measured.p50_nanos),
        &nanos(measured.p90_nanos),
        &nanos(measured.p99_nanos),
        &nanos(measured.max_nanos),
        &format!("{:.0}", measured.answers_per_second),
        &measured.fuel.to_string(),
        &measured.resident_bytes.map_or_else(|| "-".to_owned(), size),
    ]);
    table.render()
}

fn nanos(nanos: u64) -> String {
    let number = nanos as f64;
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..100_000 => format!("{:.1} µs", number / 1e3),
        100_000..1_000_000 => format!("{:.0} µs", number / 1e3),
        _ => format!("{:.1} ms", number / 1e6),
    }
}

/// Memory of this process that lies in RAM.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}
