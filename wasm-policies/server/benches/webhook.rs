//! How many reviews the webhook answers over HTTPS, beside a handler in the same server that reads the body and allows
//! everything: `cargo bench -p ocm-policy-server`
//!
//! The clients run in the same process, on the same processors. What is sent is a review as an API server sends it.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints its figures, or ends")]
#![expect(clippy::cast_precision_loss, reason = "so few clients are exact in a double")]

#[path = "../../engine/tests/support/guest.rs"]
mod guest;
#[path = "../tests/support/mod.rs"]
mod support;
#[path = "../tests/support/tls.rs"]
mod tls;

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use guest::Guest;
use ocm_policy_abi::Stage;
use ocm_policy_engine::Deadline;
use ocm_policy_rules::Scope;
use ocm_policy_server::{Bounds, Judge, Metrics, Review, Reviewed, Server, Source, Wanted};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{Parts, names, review};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Reviews that an API server sends at once.
const AT_ONCE: usize = 16;
/// Whoever sends at a fixed rate: so many that the next review of each is due when it has the answer to the last.
const SENDERS: usize = 64;
/// How long one measurement takes.
const WHILE: Duration = Duration::from_secs(2);
/// Each is measured so often, in turns.
const ROUNDS: usize = 5;
/// With so many policies, so much of the lower bound.
const TARGETS: [(usize, f64); 2] = [(1, 0.6), (10, 0.4)];
/// At half of the rate that one policy allows, 99 of 100 reviews are answered within this.
const QUICK: Duration = Duration::from_micros(1_500);
/// The same beside a policy that never comes to an end.
const BESIDE: Duration = Duration::from_millis(5);
/// So many reviews at once are judged by that one.
const HOSTILE: usize = 8;

/// Reads a review and allows it.
struct AllowAll;

impl Judge for AllowAll {
    fn is_open(&self) -> bool {
        true
    }

    fn review(self: Arc<Self>, body: &[u8], _: Stage, _: &Deadline) -> Review {
        let review: Value = serde_json::from_slice(body).unwrap();
        let response = json!({"uid": review["request"]["uid"], "allowed": true});
        let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        Review::Answered(Reviewed { status: 200, body: answer.to_string().into_bytes(), decided: None })
    }
}

/// As the webhook has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it starts.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let allow_all = runtime.block_on(start(None));
    let ours: Vec<Running> = TARGETS.iter().map(|(policies, _)| runtime.block_on(start(Some(*policies)))).collect();
    let mut bounds = Vec::new();
    let mut rates = vec![Vec::new(); ours.len()];
    for _ in 0..ROUNDS {
        bounds.push(runtime.block_on(load(&allow_all)));
        for (running, rates) in ours.iter().zip(&mut rates) {
            rates.push(runtime.block_on(load(running)));
        }
    }
    let bound = median(&mut bounds);
    println!("allow everything: {bound:8.0} reviews/s");
    let mut met = true;
    for ((policies, target), rates) in TARGETS.iter().zip(&mut rates) {
        let rate = median(rates);
        println!("{policies:2} policies:      {rate:8.0} reviews/s, {:.2} of it (target {target})", rate / bound);
        met &= rate / bound >= *target;
    }
    let rate = median(&mut rates[0]) / 2.0;
    let quick = runtime.block_on(at_rate(&ours[0], rate));
    println!("at {rate:.0} reviews/s:  p99 {quick:.2?} (target {QUICK:?})");
    met &= quick <= QUICK;
    let folder = tempfile::tempdir().unwrap();
    let both = runtime.block_on(start_beside(folder.path()));
    let stop = Arc::new(AtomicBool::new(false));
    // Nobody counts as quick before the first answer; with this one does.
    let few = 500.0;
    let alone = runtime.block_on(at_rate(&both, few));
    let memory = resident();
    let loud = runtime.block_on(async {
        for _ in 0..HOSTILE {
            // They are refused when their time has come.
            tokio::spawn(client(both.connect().await, request("UPDATE", "1s"), stop.clone(), |answer| {
                assert!(!is_allowed(answer), "it came to an end");
            }));
        }
        let loud = at_rate(&both, few).await;
        stop.store(true, Ordering::Relaxed);
        loud
    });
    let grown = resident().saturating_sub(memory) >> 20;
    println!(
        "at {few:.0} reviews/s beside {HOSTILE} endless ones: p99 {loud:.2?}, alone {alone:.2?} (target {BESIDE:?}), {grown} MiB more"
    );
    met &= loud <= BESIDE;
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Running {
    address: String,
    tls: TlsConnector,
}

impl Running {
    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        self.tls.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
    }
}

/// A server with so many policies; none: one that allows everything.
async fn start(policies: Option<usize>) -> Running {
    let parts = support::parts();
    let Parts { gate, metrics, policies: registered, .. } = parts;
    let judge: Arc<dyn Judge> = match policies {
        None => Arc::new(AllowAll),
        Some(count) => {
            let wanted: Vec<Wanted> = (0..count).map(|number| names(&format!("names-{number}"), "prod-*")).collect();
            registered.apply(&wanted).await;
            assert_eq!(registered.failed(), []);
            gate
        }
    };
    serve(judge, metrics).await
}

/// A server with a quick policy for clusters that are created, and one for those that are changed that never ends.
async fn start_beside(folder: &Path) -> Running {
    let guest = Guest::deciding("(loop $l (br $l))");
    std::fs::write(folder.join("endless.wasm"), guest.module()).unwrap();
    let Parts { gate, metrics, policies, .. } = support::parts_in(folder.to_owned());
    let module = std::fs::read(folder.join("endless.wasm")).unwrap();
    let sha256 = Sha256::digest(&module).iter().map(|byte| format!("{byte:02x}")).collect();
    let of = |operation: &str| {
        Scope::from(&serde_json::from_value(json!({"module": {"path": "x"}, "operations": [operation]})).unwrap())
    };
    let endless = Wanted {
        source: Source::Path("endless.wasm".to_owned()),
        sha256: Some(sha256),
        settings: "{}".to_owned(),
        scope: of("update"),
        ..names("endless", "*")
    };
    policies.apply(&[endless, Wanted { scope: of("create"), ..names("quick", "prod-*") }]).await;
    assert_eq!(policies.failed(), []);
    serve(gate, metrics).await
}

async fn serve(judge: Arc<dyn Judge>, metrics: Arc<Metrics>) -> Running {
    let (config, tls) = tls::certificates();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = Server::new(judge, metrics, Bounds::default()).unwrap();
    // On a thread of its own, as in the program: whoever loads the server does not take connections for it.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = listener.into_std().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            server.serve(listener, config, std::future::pending()).await;
        });
    });
    Running { address, tls }
}

/// Reviews per second that clients get answered who send the next one when they have the answer.
async fn load(running: &Running) -> f64 {
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let request = request("CREATE", "10s");
    let mut clients = Vec::new();
    for _ in 0..AT_ONCE {
        let (stream, answered) = (running.connect().await, answered.clone());
        clients.push(tokio::spawn(client(stream, request.clone(), stop.clone(), move |answer| {
            assert!(is_allowed(answer), "it was refused");
            answered.fetch_add(1, Ordering::Relaxed);
        })));
    }
    tokio::time::sleep(WHILE / 4).await;
    let (before, begun) = (answered.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(WHILE).await;
    let (after, took) = (answered.load(Ordering::Relaxed), begun.elapsed());
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    #[expect(clippy::cast_precision_loss, reason = "so many reviews are exact in a double")]
    let count = (after - before) as f64;
    count / took.as_secs_f64()
}

/// A review as it goes over the wire.
fn request(operation: &str, timeout: &str) -> Arc<[u8]> {
    let body = review("prod-1").replace("CREATE", operation);
    let mut body: Value = serde_json::from_str(&body).unwrap();
    if operation == "UPDATE" {
        let object = body["request"]["object"].clone();
        body["request"]["object"]["metadata"]["labels"] = json!({"a": "b"});
        body["request"]["oldObject"] = object;
    }
    let body = body.to_string();
    let head = format!(
        "POST /v1/validate?timeout={timeout} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes().into()
}

/// Sends the next one when it has the answer.
async fn client(
    mut stream: TlsStream<TcpStream>,
    request: Arc<[u8]>,
    stop: Arc<AtomicBool>,
    mut each: impl FnMut(&[u8]),
) {
    let mut buffer = vec![0; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        let read = ask(&mut stream, &request, &mut buffer).await;
        each(&buffer[..read]);
    }
}

/// Sends one, and reads the answer. How long it is.
async fn ask(stream: &mut TlsStream<TcpStream>, request: &[u8], buffer: &mut [u8]) -> usize {
    stream.write_all(request).await.unwrap();
    stream.flush().await.unwrap();
    let mut read = 0;
    while !is_whole(&buffer[..read]) {
        let more = stream.read(&mut buffer[read..]).await.unwrap();
        assert!(more > 0, "the server closed the connection");
        read += more;
    }
    read
}

fn is_allowed(answer: &[u8]) -> bool {
    answer.windows(14).any(|part| part == b"\"allowed\":true")
}

/// The 99th percentile of the time from when a review was to be sent, at a fixed rate, to its answer: whoever is late has the
/// next ones wait, and their waiting counts.
async fn at_rate(running: &Running, rate: f64) -> Duration {
    let request = request("CREATE", "10s");
    let every = Duration::from_secs_f64(SENDERS as f64 / rate);
    let begun = tokio::time::Instant::now() + Duration::from_millis(50);
    let mut clients = Vec::new();
    for number in 0..SENDERS {
        let (mut stream, request) = (running.connect().await, request.clone());
        clients.push(tokio::spawn(async move {
            let (mut took, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
            let mut due = begun + every.mul_f64(number as f64 / SENDERS as f64);
            while due < begun + 2 * WHILE {
                // Whoever still waits for an answer is late by that; that the timer is as exact as a millisecond is not the
                // server's fault.
                let is_late = tokio::time::Instant::now() >= due;
                tokio::time::sleep_until(due).await;
                let sent = if is_late { due } else { tokio::time::Instant::now() };
                let read = ask(&mut stream, &request, &mut buffer).await;
                assert!(is_allowed(&buffer[..read]), "it was refused");
                took.push(sent.elapsed());
                due += every;
            }
            took
        }));
    }
    let mut took = Vec::new();
    for client in clients {
        took.extend(client.await.unwrap());
    }
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

/// The memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() << 10
}

/// Whether this is a whole answer, by its length.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|part| part == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]);
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + 4 + length)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
