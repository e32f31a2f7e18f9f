//! `cargo verify`: everything that must hold, in the order in which it is cheapest to find out that it does not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use crate::prepare::Beside;
use crate::processors::Spare;
use crate::{deny, krew};

/// Arguments of `cargo verify`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Arguments {
    /// Leave out what needs clusters
    #[arg(long)]
    pub fast: bool,
}

/// Runs every step, and says at the end what did not hold.
///
/// # Errors
/// The names of the steps that failed.
pub fn run(arguments: Arguments) -> Result<(), String> {
    let begun = Instant::now();
    let mut report = Report::default();
    // The longest of all on a new machine, so it begins first and goes on in the background.
    let preparation = if arguments.fast { None } else { Some(Beside::start()?) };
    report.step("format", &["fmt", "--all", "--", "--check"]);
    if !report.step("lints", &["clippy", "--workspace", "--all-targets", "--keep-going", "--", "-D", "warnings"]) {
        println!("(tests run all the same: a lint does not break them)");
    }
    // Everything is built with one selection of packages, so that no crate is compiled twice with other features.
    let programs = report.build();
    let (with_clusters, without): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| WITH_CLUSTERS.contains(&program.package.as_str()));
    let (contracts, others): (Vec<_>, Vec<_>) = without.into_iter().partition(|program| program.package == CONTRACTS);
    if programs.is_empty() {
        println!("\nThe build is broken, so nothing else can be told.");
    } else {
        report.tests("layers, contracts, documents", Lanes::one(contracts));
        report.tests("tests without clusters", Lanes::two(others));
        report.step("examples in the documentation", &["test", "--workspace", "--doc", "--quiet"]);
        report.documentation();
    }
    if let Some(preparation) = preparation {
        match preparation.wait() {
            Ok(took) if took > 60.0 => println!("\n(what the clusters run was ready after {took:.0} s)"),
            Ok(_) => {}
            Err(why) => report.failed.push(why),
        }
        report.deny();
        if !programs.is_empty() {
            let count = thread::available_parallelism().map_or(1, |all| (all.get() / PROCESSORS).max(1));
            let package = Mutex::new(None);
            report.on_clusters(&with_clusters, count, || {
                println!("\n... package: what cargo xtask package packs, installed by krew");
                let begun = Instant::now();
                let done = krew_smoke(&programs);
                *lock(&package) = Some((done, begun.elapsed()));
            });
            let done = package.into_inner().unwrap_or_else(PoisonError::into_inner);
            let (done, took) = done.unwrap_or_else(|| (Err("it was not packed".to_owned()), Duration::ZERO));
            report.ended("package", done, took);
        }
    } else if deny::is_there() {
        report.deny();
    } else {
        // Compiling it takes minutes.
        println!("\n(dependencies are not judged: the first whole cargo verify compiles cargo-deny)");
    }
    report.close(begun)
}

/// Installs the binaries that were built together with the tests.
fn krew_smoke(programs: &[Program]) -> Result<bool, String> {
    let folder = programs.first().and_then(|program| program.file.parent()?.parent());
    let kubectl = control_plane::binaries().map_err(|error| error.to_string())?.kubectl();
    krew::smoke(folder.ok_or("the tests are in no folder")?, kubectl).map(|()| true)
}

/// The packages whose tests start clusters.
const WITH_CLUSTERS: [&str; 2] = ["control-plane", "e2e-tests"];
/// How many processors the clusters of one program keep busy.
const PROCESSORS: usize = 2;
/// The program of stories on real clusters; each of its modules runs in a process of its own, but for [`TOGETHER`].
const STORIES: &str = "test e2e";
/// Modules whose tests share a hub.
const TOGETHER: [&[&str]; 5] = [
    &["accept", "again", "apply", "baseline", "bound", "hub_policy", "uninstall"],
    &["addon", "addon_proxy", "clusterset", "day_two", "hub_addon", "placement", "replica_set", "token"],
    &["agent_proxy", "join", "tls_check"],
    &["break_glass", "candidate", "explain", "policy_verbs"],
    &["faults", "troubleshoot", "upgrade"],
];
/// Stories that wait most of their time, for certificates that end, agents that look again, leases that somebody else holds,
/// controllers that look every few seconds, or operators that roll out; the longest first.
const WAITING: [&str; 10] = [
    "troubleshoot",
    "policy_oci",
    "controller",
    "expiry",
    "images",
    "grpc",
    "policy_status",
    "fallback",
    "hub_change",
    "certificates",
];
/// The longest of the others, the one with most pods first, and each that takes more than a minute and a half: what begins last
/// ends soon.
const LONGEST: [&str; 17] = [
    "policy_engine",
    "leave",
    "agent_proxy",
    "addon",
    "hosted_hub",
    "accept",
    "break_glass",
    "auto_join",
    "approvals",
    "gate",
    "webhook",
    "self_managed",
    "install",
    "story",
    "wait",
    "fleet",
    "storm",
];
/// The package that keeps layers, schemas and documents.
const CONTRACTS: &str = "contract-tests";
/// The package whose tests compile policies and projects, mostly with one thread. In none of them does it matter how long
/// something takes.
const POLICIES: &str = "policy-tests";
/// How far these step back for what runs beside them (nice(1)); what clusters run is built further behind.
const BACK: &str = "5";

/// One program of tests.
struct Program {
    package: String,
    target: String,
    folder: PathBuf,
    file: PathBuf,
}

impl Program {
    /// It, as Cargo starts it.
    fn command(&self) -> Command {
        let mut command = match self.package == POLICIES {
            true => {
                let mut command = Command::new("nice");
                command.args(["-n", BACK]).arg(&self.file);
                command
            }
            false => Command::new(&self.file),
        };
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        // The commands were built together with the tests; tests that built them again would compile most crates a
        // second time, with other features.
        if let Some(binaries) = self.file.parent().and_then(Path::parent) {
            command.env(cli_tests::BINARIES, binaries);
        }
        command
    }

    /// The names of its tests.
    fn tests(&self) -> Result<Vec<String>, String> {
        let mut tests = Vec::new();
        let listed = watch(self.command().args(["--list", "--format=terse"]), |line| {
            tests.extend(line.strip_suffix(": test").map(str::to_owned));
        });
        match listed? {
            true if !tests.is_empty() => Ok(tests),
            _ => Err("its tests cannot be listed".to_owned()),
        }
    }
}

/// Tests of a program that run in one process.
struct Run<'a> {
    program: &'a Program,
    /// The modules that are meant; none: all of them.
    modules: Vec<&'a str>,
    /// The names of their tests; none: all of them.
    tests: Vec<&'a str>,
}

impl<'a> Run<'a> {
    fn all(program: &'a Program) -> Self {
        Self { program, modules: Vec::new(), tests: Vec::new() }
    }

    /// The runs of a program with these tests, by their modules.
    fn by_module(program: &'a Program, tests: &'a [String]) -> Vec<Self> {
        let mut runs: BTreeMap<&str, Self> = BTreeMap::new();
        for test in tests {
            let module = test.split_once("::").map_or("", |(module, _)| module);
            let group = TOGETHER.into_iter().find(|group| group.contains(&module));
            let run = runs.entry(group.map_or(module, |group| group[0])).or_insert_with(|| Self::all(program));
            if !run.modules.contains(&module) {
                run.modules.push(module);
            }
            run.tests.push(test);
        }
        runs.into_values().collect()
    }

    fn name(&self) -> String {
        let words = [self.program.package.as_str(), ": ", &self.program.target, " ", &self.modules.join(" ")];
        words.concat().trim_end().to_owned()
    }

    fn command(&self) -> Command {
        let mut command = self.program.command();
        if !self.tests.is_empty() {
            command.arg("--exact").args(&self.tests);
        }
        command
    }
}

/// What the first lane does that has nothing left to run.
type Last<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs, and the lanes that take them: each the next one as soon as its own has ended.
struct Lanes<'a> {
    queues: [VecDeque<Run<'a>>; 2],
    /// For each lane the queues of which it takes, each once those before it are empty.
    lanes: Vec<&'static [usize]>,
    /// How many lanes go on whether or not the processors have time left.
    always: usize,
    /// Whether a run does its tests one after the other.
    in_turn: bool,
    last: Option<Last<'a>>,
}

impl<'a> Lanes<'a> {
    /// One program after the other.
    fn one(programs: Vec<&'a Program>) -> Self {
        let runs = programs.into_iter().map(Run::all).collect();
        Self { queues: [runs, VecDeque::new()], lanes: vec![&[0]], always: 1, in_turn: false, last: None }
    }

    /// Those of policies beside the others, where there are two processors: a program that waits for a compiler or for a server
    /// keeps none of them busy.
    fn two(programs: Vec<&'a Program>) -> Self {
        const ALL: &[usize] = &[0, 1];
        const OF_POLICIES: &[usize] = &[1];
        let (of_policies, others): (Vec<_>, Vec<_>) =
            programs.into_iter().partition(|program| program.package == POLICIES);
        let queues = [others, of_policies].map(|programs| programs.into_iter().map(Run::all).collect());
        let lanes = match thread::available_parallelism() {
            Ok(processors) if processors.get() > 1 => vec![ALL, OF_POLICIES],
            _ => vec![ALL],
        };
        let always = lanes.len();
        Self { queues, lanes, always, in_turn: false, last: None }
    }

    /// Some lanes for what keeps processors busy, and four that begin with what waits and go on with the others, while the
    /// processors have time left: on a fast machine with two of these a quarter of the time was left, on a slow one five runs
    /// at once made each other so late that they failed.
    fn by_load(runs: Vec<Run<'a>>, busy: usize) -> Self {
        let place = |all: &[&str], run: &Run<'_>| all.iter().position(|module| run.modules.contains(module));
        let (mut waiting, mut others): (Vec<_>, Vec<_>) =
            runs.into_iter().partition(|run| place(&WAITING, run).is_some());
        waiting.sort_by_key(|run| place(&WAITING, run));
        others.sort_by_key(|run| place(&LONGEST, run).unwrap_or(LONGEST.len()));
        let mut lanes: Vec<&'static [usize]> = vec![&[0, 1]; busy];
        lanes.resize(busy + 4, &[1, 0]);
        Self { queues: [others.into(), waiting.into()], lanes, always: busy, in_turn: true, last: None }
    }
}

/// What held and what did not.
#[derive(Default)]
struct Report {
    passed: u32,
    wrong: u32,
    ignored: u32,
    failed: Vec<String>,
    took: Vec<(String, f32)>,
}

impl Report {
    /// Runs Cargo under a heading; a failure is remembered.
    fn step(&mut self, name: &str, arguments: &[&str]) -> bool {
        let mut command = cli_tests::cargo();
        command.args(arguments);
        self.command(name, command)
    }

    /// Builds all tests; none when they do not compile.
    fn build(&mut self) -> Vec<Program> {
        let mut command = cli_tests::cargo();
        command.args(["build", "--workspace", "--lib", "--bins", "--tests", "--examples"]);
        command.args(["--message-format", "json-render-diagnostics"]);
        let mut programs = Vec::new();
        let good = self
            .timed("build", &command_line(&command), |_| watch(&mut command, |line| programs.extend(program(line))));
        programs.sort_by(|one: &Program, other| (&one.package, &one.target).cmp(&(&other.package, &other.target)));
        if good { programs } else { Vec::new() }
    }

    /// Runs the programs whose tests start clusters, and does `last` once a lane has nothing left to run.
    fn on_clusters(&mut self, programs: &[&Program], busy: usize, last: impl FnOnce() + Send) {
        let mut tests = Vec::new();
        for program in programs {
            match if program.target == STORIES { program.tests() } else { Ok(Vec::new()) } {
                Ok(names) => tests.push(names),
                Err(why) => return self.failed.push(format!("{}: {why}", program.target)),
            }
        }
        let mut runs = Vec::new();
        for (program, tests) in programs.iter().zip(&tests) {
            match tests.as_slice() {
                [] => runs.push(Run::all(program)),
                tests => runs.extend(Run::by_module(program, tests)),
            }
        }
        let lanes = Lanes { last: Some(Box::new(last)), ..Lanes::by_load(runs, busy) };
        self.tests("tests on real clusters", lanes);
    }

    /// Runs tests, all lanes at once, and shows what each run says when it has ended.
    fn tests(&mut self, name: &str, lanes: Lanes<'_>) {
        let packages: BTreeSet<&str> = lanes.queues.iter().flatten().map(|run| run.program.package.as_str()).collect();
        let packages: Vec<&str> = packages.into_iter().collect();
        self.timed(name, &format!("cargo test -p {}", packages.join(" -p ")), |report| {
            let Lanes { queues, lanes, always, in_turn, last } = lanes;
            let (queues, spare, last) = (&Mutex::new(queues), &Mutex::new(Spare::new()), &Mutex::new(last));
            thread::scope(|scope| {
                let (ended, results) = mpsc::channel();
                for (lane, order) in lanes.into_iter().enumerate() {
                    let ended = ended.clone();
                    scope.spawn(move || {
                        let next = || {
                            loop {
                                let mut queues = lock(queues);
                                let queue = order.iter().copied().find(|queue| !queues[*queue].is_empty())?;
                                if lane < always || lock(spare).take() {
                                    return queues[queue].pop_front();
                                }
                                drop(queues);
                                thread::sleep(Duration::from_secs(1));
                            }
                        };
                        while let Some(run) = next() {
                            // Whoever waits sees for whom.
                            println!("\n... {}", run.name());
                            let (mut lines, begun) = (Vec::new(), Instant::now());
                            let mut command = run.command();
                            if in_turn {
                                command.arg("--test-threads=1");
                            }
                            let mut since = begun;
                            let good = watch(&mut command, |line| {
                                let took = in_turn.then(|| since.elapsed());
                                lines.push(timed_line(line, took));
                                since = Instant::now();
                            });
                            // Nobody listens any more: what is left need not be run.
                            if ended.send((run.name(), lines, good, begun.elapsed())).is_err() {
                                break;
                            }
                        }
                        let last = || {
                            loop {
                                let mut last = lock(last);
                                last.as_ref()?;
                                if lane < always || lock(spare).take() {
                                    return last.take();
                                }
                                drop(last);
                                thread::sleep(Duration::from_secs(1));
                            }
                        };
                        if let Some(work) = last() {
                            work();
                        }
                    });
                }
                drop(ended);
                let mut good = true;
                for (name, lines, ended, took) in results {
                    println!("\n--- {name} ({:.0} s)", took.as_secs_f32());
                    lines.iter().for_each(|line| report.count(line));
                    good &= ended?;
                }
                Ok(good)
            })
        });
    }

    /// Has cargo-deny judge what is linked.
    fn deny(&mut self) {
        let what = format!("cargo deny --locked {}", deny::CHECKS.join(" "));
        self.timed("dependencies", &what, |report| {
            let mut command = Command::new(deny::program()?);
            command.args(["--locked", "--log-level", "error"]).args(deny::CHECKS).current_dir(cli_tests::root());
            watch(&mut command, |line| report.count(line))
        });
    }

    fn documentation(&mut self) {
        let mut command = cli_tests::cargo();
        command.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
        self.command("documentation of the code", command);
    }

    fn command(&mut self, name: &str, mut command: Command) -> bool {
        command.current_dir(cli_tests::root());
        self.timed(name, &command_line(&command), |report| watch(&mut command, |line| report.count(line)))
    }

    fn timed(&mut self, name: &str, what: &str, step: impl FnOnce(&mut Self) -> Result<bool, String>) -> bool {
        println!("\n=== {name}: {what}");
        let begun = Instant::now();
        let done = step(self);
        self.ended(name, done, begun.elapsed())
    }

    /// Says how a step has ended, and remembers it.
    fn ended(&mut self, name: &str, done: Result<bool, String>, took: Duration) -> bool {
        let good = done.unwrap_or_else(|why| {
            println!("{why}");
            false
        });
        let took = took.as_secs_f32();
        println!("=== {name}: {} in {took:.1} s", if good { "ok" } else { "FAILED" });
        self.took.push((name.to_owned(), took));
        if !good {
            self.failed.push(name.to_owned());
        }
        good
    }

    /// Adds up what test runners say at their ends, and shows it.
    fn count(&mut self, line: &str) {
        println!("{line}");
        if let Some([passed, wrong, ignored]) = counts(line) {
            self.passed += passed;
            self.wrong += wrong;
            self.ignored += ignored;
        }
    }

    fn close(self, begun: Instant) -> Result<(), String> {
        println!("\n=== times");
        for (name, took) in &self.took {
            println!("{took:7.1} s  {name}");
        }
        println!("{:7.1} s  all in all", begun.elapsed().as_secs_f32());
        println!();
        match self.ignored {
            0 => println!("{} passed, {} failed", self.passed, self.wrong),
            ignored => println!("{} passed, {} failed, {ignored} skipped", self.passed, self.wrong),
        }
        // What follows goes to the other stream and must not overtake this.
        let _ = std::io::stdout().flush();
        match self.failed.as_slice() {
            [] => Ok(()),
            failed => Err(format!("failed: {}", failed.join("; "))),
        }
    }
}

/// A line of a test runner, with how long the test took that it is about; where tests run beside each other, nobody knows that.
fn timed_line(line: &str, took: Option<Duration>) -> String {
    match took.filter(|_| line.starts_with("test ") && line.contains(" ... ")) {
        Some(took) => format!("{line} ({:.0} s)", took.as_secs_f32()),
        None => line.to_owned(),
    }
}

fn lock<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command and hands over each line of its stdout; tells whether it ended well.
fn watch(command: &mut Command, mut each: impl FnMut(&str)) -> Result<bool, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", command.get_program().display()))?;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            each(&String::from_utf8_lossy(&line));
        }
    }
    Ok(child.wait().map_err(|error| format!("waiting for a command: {error}"))?.success())
}

fn command_line(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once("cargo".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The program of tests that a message of Cargo tells of.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    // path+file:///…/tests/cli#cli-tests@0.1.0, or …/kubectl-ocm#0.1.0 where folder and package have the same name.
    let id = message["package_id"].as_str()?.rsplit_once('#')?.1;
    let package = match id.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => folder.file_name()?.to_string_lossy().into_owned(),
    };
    let target = format!("{} {}", message["target"]["kind"][0].as_str()?, message["target"]["name"].as_str()?);
    Some(Program { package, target, folder, file: message["executable"].as_str()?.into() })
}

/// The numbers of `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn counts(line: &str) -> Option<[u32; 3]> {
    let rest = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let number = |word: &str| {
        let part = rest.split(';').find(|part| part.trim().ends_with(word))?;
        part.split_whitespace().next()?.parse().ok()
    };
    Some([number(" passed")?, number(" failed")?, number(" ignored")?])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_are_counted() {
        let line = "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(counts(line), Some([3, 2, 1]));
        assert_eq!(counts("test a ... ok"), None);
    }

    #[test]
    fn tests_of_policies_run_beside_the_others_and_step_back_for_them() {
        let program = |package: &str, file: &str| {
            let (package, target) = (package.to_owned(), "lib tests".to_owned());
            Program { package, target, folder: PathBuf::new(), file: file.into() }
        };
        let programs = [program("ocm-core", "core"), program(POLICIES, "policies")];
        let lanes = Lanes::two(programs.iter().collect());
        let of = |runs: &VecDeque<Run<'_>>| runs.iter().map(Run::name).collect::<Vec<_>>();
        assert_eq!(of(&lanes.queues[0]), ["ocm-core: lib tests"]);
        assert_eq!(of(&lanes.queues[1]), ["policy-tests: lib tests"]);
        assert!(lanes.lanes[0].contains(&0) && lanes.lanes[0].contains(&1), "one lane is enough for all");
        assert_eq!(programs.each_ref().map(|program| program.command().get_program().to_owned()), ["core", "nice"]);
    }

    #[test]
    fn the_line_of_a_test_says_how_long_it_took() {
        let took = Some(Duration::from_secs(7));
        assert_eq!(timed_line("test a ... ok", took), "test a ... ok (7 s)");
        assert_eq!(timed_line("test a ... ok", None), "test a ... ok");
        let result = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.00s";
        assert_eq!(timed_line(result, took), result);
    }

    #[test]
    fn what_comes_last_is_done_once() {
        let done = AtomicUsize::new(0);
        let last: Last<'_> = Box::new(|| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        let lanes = Lanes { last: Some(last), ..Lanes::by_load(Vec::new(), 1) };
        let mut report = Report::default();
        report.tests("nothing", lanes);
        assert!(report.failed.is_empty());
        assert_eq!(done.load(Ordering::Relaxed), 1);
    }
}
