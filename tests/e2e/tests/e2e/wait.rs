//! `kubectl ocm accept --wait` on a real API server: what comes later, what is wrong, and a hub that goes away.

use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use control_plane::Spec;
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, Hub, accept_binary};
use e2e_tests::roles::user_with;
use e2e_tests::series;
use e2e_tests::shared_hub::hub;

/// A command that waits, and the lines that it says.
struct Waiting {
    child: Child,
    /// Read as it comes: a pipe holds only so much.
    stdout: JoinHandle<String>,
    said: Lines<BufReader<ChildStderr>>,
    all: Vec<String>,
}

impl Waiting {
    fn start(kubeconfig: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(accept_binary());
        command.args(words).arg("--kubeconfig").arg(kubeconfig).env("KUBECTL_OCM_PROGRESS", "never");
        let mut child =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut stdout = child.stdout.take().expect("a pipe");
        let stdout = spawn(move || {
            let mut all = String::new();
            stdout.read_to_string(&mut all).expect("text");
            all
        });
        Self { child, stdout, said, all: Vec::new() }
    }

    /// Reads until a line has these words.
    #[track_caller]
    fn says(&mut self, words: &str) {
        for line in self.said.by_ref() {
            self.all.push(line.expect("text"));
            if self.all.last().is_some_and(|line| line.contains(words)) {
                return;
            }
        }
        panic!("it ended without {words:?}: {:#?}", self.all);
    }

    /// Waits for its end: the exit code, stdout, and every line of stderr.
    fn end(mut self) -> (Option<i32>, String, Vec<String>) {
        self.all.extend(self.said.map_while(Result::ok));
        let code = self.child.wait().expect("it ends").code();
        (code, self.stdout.join().expect("it is read"), self.all)
    }
}

#[test]
fn a_request_that_appears_later_is_waited_for() {
    let hub = hub();
    hub.register("w1");
    let mut waiting = hub
        .accept_command(&["w1", "w2", "--wait", "--timeout", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = BufReader::new(waiting.stderr.take().expect("a pipe")).lines();
    let line = said.next().expect("a line").expect("text");
    assert!(line.contains("waiting") && line.contains("w1") && line.contains("w2"), "{line}");
    hub.ask(&Ask::agent("w1"));
    hub.join("w2");
    let done = waiting.wait().expect("it ends");
    assert_eq!(done.code(), Some(0));
    assert!(hub.accepts("w1") && hub.accepts("w2"));
    // Neither registers, or only one of the two things happens: the time runs out.
    hub.register("w3");
    for name in ["w3", "w4"] {
        let begun = Instant::now();
        let run = hub.accept(&[name, "--wait", "--timeout", "2s"]);
        assert_eq!(run.code, 124, "{run:?}");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn a_wrong_request_is_shown_and_the_right_one_waited_for() {
    let hub = hub();
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    hub.register("w1");
    let before = hub.ask(&Ask::with("w1", &Fixture::agent("w1", "x").organization("platform-admins")));
    let mut waiting = Waiting::start(&user, &["w1", "--wait", "--timeout", "60s"]);
    waiting.says("w1: ForeignOrganization, ");
    // The newest is told of, and times of the API are whole seconds.
    sleep(Duration::from_millis(1100));
    let later = hub.ask(&Ask { signer: "example.com/foo".to_owned(), ..Ask::agent("w1") });
    waiting.says(&later);
    let right = hub.ask(&Ask::agent("w1"));
    let (code, stdout, said) = waiting.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "managedcluster/w1 accepted\n"), "{said:?}");
    assert_eq!(hub.approved(), [right].into());

    // The right one does not come: the time runs out, and the row says what is there.
    hub.register("w2");
    let wrong = hub.ask(&Ask::with("w2", &Fixture::agent("w2", "x").organization("platform-admins")));
    let (code, stdout, said) = Waiting::start(&user, &["w2", "--wait", "--timeout", "3s"]).end();
    assert_eq!(code, Some(124), "{said:?}");
    assert!(stdout.starts_with("managedcluster/w2 refused, ForeignOrganization: "), "{stdout}");
    assert!(!hub.is("Approved", &wrong) && !hub.is("Approved", &before) && !hub.accepts("w2"));

    // What only a person can decide ends the wait.
    hub.register("w3");
    let mut waiting = Waiting::start(&user, &["w3", "--wait", "--timeout", "60s"]);
    waiting.says("waiting for the certificate requests of w3");
    for _ in 0..2 {
        hub.ask(&Ask::agent("w3"));
    }
    let (code, stdout, said) = waiting.end();
    // The first of the two may be let in before the second one asks.
    assert!(code == Some(0) || (code == Some(3) && stdout.contains("TwoKeys")), "{stdout} {said:?}");
}

/// What a process has needed at most, in MiB.
fn peak_memory(child: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1024
}

#[test]
fn hundreds_of_large_requests_take_little_memory_and_few_lines() {
    // Of a hundred there are two pages at least.
    let count = if series::is_whole() { 400 } else { 200 };
    let hub = Hub::start("flood");
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    hub.register("w1");
    // The API server reads the first block, and takes what follows it for nothing.
    let padding = "x".repeat(400_000);
    let large = |text: &str| Ask::raw("w1", format!("{}{text}{padding}", Fixture::agent("w1", "x").pem()).into_bytes());
    hub.ask_all(&vec![large(""); count / 2]);
    let mut waiting = Waiting::start(&user, &["w1", "--wait", "--timeout", "120s"]);
    waiting.says("w1: Unreadable, ");
    hub.ask_all(&vec![large("\n"); count / 2]);
    // The right one is found among them, though it is as large as it may be.
    let mut ask = Ask::agent("w1");
    ask.pem.extend(vec![b'\n'; 8000]);
    let right = hub.ask(&ask);
    waiting.says(&format!("w1: {count} requests break a rule and were left alone: Unreadable {count}"));
    let peak = peak_memory(&waiting.child);
    let (code, stdout, said) = waiting.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "managedcluster/w1 accepted\n"), "{said:?}");
    assert_eq!(hub.approved(), [right].into());
    assert_eq!(said.iter().filter(|line| line.contains("Unreadable")).count(), 2, "{said:#?}");
    // A page of a hundred is there as it came, as text and as bytes: up to 200. All of them would be twice that, or four times.
    assert!(peak < 300, "{peak} MiB");
}

#[test]
fn a_hub_that_goes_away_is_waited_for_with_one_sentence() {
    let hub = Hub::start("away");
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    hub.register("w1");
    let mut waiting = Waiting::start(&user, &["w1", "w2", "--wait", "--timeout", "120s"]);
    waiting.says("waiting for the certificate requests of w1, w2");
    sleep(Duration::from_secs(1));
    hub.cluster.stop_api_server().expect("it stops");
    waiting.says("trying again");
    sleep(Duration::from_secs(3));
    hub.cluster.start_api_server().expect("it starts");
    hub.join("w2");
    hub.ask(&Ask::agent("w1"));
    let (code, _, said) = waiting.end();
    assert_eq!(code, Some(0), "{said:#?}");
    assert!(hub.accepts("w1") && hub.accepts("w2"));
    // One for each of the two watches.
    let lost = said.iter().filter(|line| line.contains("trying again")).count();
    assert!((1..=2).contains(&lost), "{said:#?}");

    // Nobody answers: the wait ends in time all the same.
    hub.cluster.pause().expect("it pauses");
    let begun = Instant::now();
    let (code, _, said) = Waiting::start(&user, &["w3", "--wait", "--timeout", "3s"]).end();
    hub.cluster.resume().expect("it goes on");
    assert_eq!(code, Some(124), "{said:#?}");
    // A request alone may take a minute.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn a_thousand_names_are_waited_for_with_few_requests() {
    let hub = Hub::start_as(&Spec::api("thousand").audited(true));
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    let names: Vec<String> = (0..1000).map(|index| format!("n{index}")).collect();
    names[..500].iter().for_each(|name| drop(hub.register(name)));
    let mut words: Vec<&str> = names.iter().map(String::as_str).collect();
    words.extend(["--wait", "--timeout", "20s"]);
    let requests = || hub.cluster.requests_of("accepter").expect("an audit log");
    let mut waiting = Waiting::start(&user, &words);
    waiting.says("and 992 more");
    // Until both watches stand.
    let begun = Instant::now();
    while requests().iter().filter(|request| request.starts_with("watch")).count() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", requests());
        sleep(Duration::from_millis(100));
    }
    let first = requests();
    assert!(first.len() <= 30, "{first:#?}");
    // Nothing happens: nothing is asked.
    sleep(Duration::from_secs(3));
    assert_eq!(requests(), first);
    // Twenty come: ten of those that had registered, ten others.
    let coming: Vec<String> = (490..510).map(|index| format!("n{index}")).collect();
    coming[..10].iter().for_each(|name| drop(hub.ask(&Ask::agent(name))));
    hub.join_all(&coming[10..]);
    let (code, stdout, said) = waiting.end();
    assert_eq!(code, Some(124), "{said:#?}");
    assert_eq!(stdout.lines().filter(|line| line.ends_with(" accepted")).count(), 20, "{stdout}");
    assert!(hub.accepted().iter().eq(coming.iter().collect::<std::collections::BTreeSet<_>>()));
    let all = requests();
    let writes = all.iter().filter(|request| request.starts_with("patch") || request.starts_with("update")).count();
    assert_eq!(writes, 40, "{all:#?}");
    // The diagnosis at the end asks for the hub's ClusterManager; waiting never does.
    let (waited, diagnosis) = all.split_at(
        all.iter().position(|request| request.starts_with("list clustermanagers")).expect("a diagnosis at the end"),
    );
    // Of reads, what each batch of changes took; a look each second would have taken a hundred.
    assert!(waited.len() - writes - first.len() <= 60, "{:#?}", &waited[first.len()..]);
    // It does not grow with the names that are waited for.
    assert!(diagnosis.len() <= 40, "{diagnosis:#?}");
}
