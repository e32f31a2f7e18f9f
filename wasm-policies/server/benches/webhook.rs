//! How many reviews the webhook answers over HTTPS, beside a handler in the same server that reads the body and allows
//! everything: `cargo bench -p ocm-policy-server`
//!
//! The clients run in the same process, on the same processors. What is sent is a review as an API server sends it.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints its figures, or ends")]

#[path = "../tests/support/mod.rs"]
mod support;
#[path = "../tests/support/tls.rs"]
mod tls;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ocm_policy_abi::Stage;
use ocm_policy_server::{Bounds, Judge, Review, Reviewed, Server, Wanted};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use support::{Parts, names, review};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

/// Reviews that an API server sends at once.
const AT_ONCE: usize = 16;
/// How long one measurement takes.
const WHILE: Duration = Duration::from_secs(2);
/// Each is measured so often, in turns.
const ROUNDS: usize = 5;
/// With so many policies, so much of the lower bound.
const TARGETS: [(usize, f64); 2] = [(1, 0.6), (10, 0.4)];

/// Reads a review and allows it.
struct AllowAll;

impl Judge for AllowAll {
    fn is_open(&self) -> bool {
        true
    }

    fn review(self: Arc<Self>, body: &[u8], _: Stage, _: Option<&str>) -> Review {
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
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Running {
    address: String,
    tls: TlsConnector,
}

/// A server with so many policies; none: one that allows everything.
async fn start(policies: Option<usize>) -> Running {
    let parts = support::parts();
    let Parts { gate, metrics, policies: registered } = parts;
    let judge: Arc<dyn Judge> = match policies {
        None => Arc::new(AllowAll),
        Some(count) => {
            let wanted: Vec<Wanted> = (0..count).map(|number| names(&format!("names-{number}"), "prod-*")).collect();
            registered.apply(&wanted).await;
            assert_eq!(registered.failed(), []);
            gate
        }
    };
    let (config, tls) = tls::certificates();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = Server::new(judge, metrics, Bounds::default());
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
    let body = review("prod-1");
    let head = format!(
        "POST /v1/validate?timeout=10s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let request: Arc<[u8]> = (head + &body).into_bytes().into();
    let mut clients = Vec::new();
    for _ in 0..AT_ONCE {
        let stream = TcpStream::connect(&running.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut stream = running.tls.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
        let (stop, answered, request) = (stop.clone(), answered.clone(), request.clone());
        clients.push(tokio::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(&request).await.unwrap();
                let mut read = 0;
                while !is_whole(&buffer[..read]) {
                    let more = stream.read(&mut buffer[read..]).await.unwrap();
                    assert!(more > 0, "the server closed the connection");
                    read += more;
                }
                assert!(buffer[..read].windows(14).any(|part| part == b"\"allowed\":true"), "it was refused");
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }));
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
