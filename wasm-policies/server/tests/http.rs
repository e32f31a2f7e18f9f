//! The server with clients that do not behave as an API server does.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

#[path = "../../engine/tests/support/guest.rs"]
mod guest;
mod support;
#[path = "support/tls.rs"]
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use guest::{ANSWER, Guest};
use ocm_api::policy::HubPolicySpec;
use ocm_policy_abi::Stage;
use ocm_policy_engine::{Deadline, PolicyError};
use ocm_policy_rules::Scope;
use ocm_policy_server::{Bounds, Judge, Metrics, Policies, Review, Reviewed, Server, Source, Wanted};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{Parts, names, review};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where an API server and another client connect from. Of the machine's own addresses it has many.
const API_SERVER: [u8; 4] = [127, 0, 0, 1];
const ANOTHER: [u8; 4] = [127, 0, 0, 2];

/// A server that runs, and how it is reached.
struct Running {
    address: String,
    tls: TlsConnector,
    end: Option<oneshot::Sender<()>>,
    serving: tokio::task::JoinHandle<()>,
    policies: Arc<Policies>,
    metrics: Arc<Metrics>,
}

async fn start(bounds: Bounds) -> Running {
    let parts = support::parts();
    serve(parts.gate.clone(), parts, bounds).await
}

async fn serve(judge: Arc<dyn Judge>, parts: Parts, bounds: Bounds) -> Running {
    let Parts { policies, metrics, .. } = parts;
    let (config, tls) = tls::certificates();
    let server = Server::new(judge, metrics.clone(), bounds).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (end, ended) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(listener, config, async move { drop(ended.await) }));
    Running { address, tls, end: Some(end), serving, policies, metrics }
}

impl Running {
    /// A connection from an address, without TLS.
    async fn open(&self, from: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(IpAddr::from(from), 0)).unwrap();
        socket.connect(self.address.parse().unwrap()).await.unwrap()
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        self.connect_from(API_SERVER).await
    }

    async fn connect_from(&self, from: [u8; 4]) -> TlsStream<TcpStream> {
        let stream = self.open(from).await;
        self.tls.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
    }

    /// Sends a request on a connection of its own, and reads to the end.
    async fn send(&self, method: &str, path: &str, body: impl AsRef<[u8]>) -> String {
        self.send_from(API_SERVER, method, path, body).await
    }

    /// Announces a body of 100,000 bytes, and sends some of them.
    async fn begin(&self, from: [u8; 4], sent: usize) -> TlsStream<TcpStream> {
        let mut stream = self.connect_from(from).await;
        let head = "POST /v1/validate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all("x".repeat(sent).as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        stream
    }

    async fn send_from(&self, from: [u8; 4], method: &str, path: &str, body: impl AsRef<[u8]>) -> String {
        let body = body.as_ref();
        let mut stream = self.connect_from(from).await;
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        let length = format!("content-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &length).as_bytes()).await.unwrap();
        // A server that answers early closes while the rest is on its way.
        let _ = stream.write_all(body).await;
        // What the TLS connection still holds is not sent by whoever only reads.
        let _ = stream.flush().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

fn answer(said: &str) -> Value {
    let body = said.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{said}")).1;
    serde_json::from_str::<Value>(body).unwrap_or_else(|error| panic!("{error}: {said}"))["response"].clone()
}

#[tokio::test]
async fn nothing_passes_before_the_policies_were_read() {
    let server = start(Bounds::default()).await;
    let said = server.send("POST", "/v1/validate?timeout=5s", &review("prod-1")).await;
    assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("retry-after: 1"), "{said}");
    server.policies.apply(&[names("names", "prod-*")]).await;
    let right = answer(&server.send("POST", "/v1/validate?timeout=5s", &review("prod-1")).await);
    assert_eq!((&right["allowed"], &right["uid"]), (&json!(true), &json!("7")));
    let wrong = answer(&server.send("POST", "/v1/validate?timeout=5s", &review("dev-1")).await);
    assert_eq!((&wrong["allowed"], &wrong["status"]["code"]), (&json!(false), &json!(403)));
    // At the mutating stage nothing is refused: what the object will be is not certain yet.
    assert_eq!(answer(&server.send("POST", "/v1/mutate", &review("dev-1")).await)["allowed"], true);
    // A policy that is wanted no more is asked no more.
    server.policies.apply(&[]).await;
    assert_eq!(answer(&server.send("POST", "/v1/validate", &review("dev-1")).await)["allowed"], true);
}

#[tokio::test]
async fn what_is_no_review_is_no_answer() {
    let server = start(Bounds::default()).await;
    server.policies.apply(&[]).await;
    for (method, path, body, status) in [
        ("POST", "/v1/validate", "{", 400),
        ("POST", "/v1/validate", "[]", 400),
        ("POST", "/v1/validate", r#"{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview","request":{}}"#, 400),
        ("POST", "/v1/validate", "\u{0}\u{fffd}", 400),
        ("GET", "/v1/validate", "", 405),
        ("POST", "/", "{}", 404),
        ("POST", "/metrics", "", 404),
    ] {
        let said = server.send(method, path, body).await;
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path} {body:?}: {said}");
    }
    // A review whose request cannot be read is refused by its name.
    let mut lacking: Value = serde_json::from_str(&review("c1")).unwrap();
    lacking["request"]["userInfo"] = json!(null);
    let refused = answer(&server.send("POST", "/v1/validate", &lacking.to_string()).await);
    assert_eq!((&refused["allowed"], &refused["uid"]), (&json!(false), &json!("7")));
    assert!(refused["status"]["message"].as_str().unwrap().contains("request.userInfo"), "{refused}");
}

#[tokio::test]
async fn what_is_as_large_as_it_may_be_is_answered_and_what_is_no_text_is_not() {
    let server = start(Bounds::default()).await;
    server.policies.apply(&[names("names", "prod-*")]).await;
    let with = |name: &str, pointer: &str, value: Value| {
        let mut review: Value = serde_json::from_str(&review(name)).unwrap();
        review["request"]["object"][pointer] = value;
        review.to_string()
    };
    let metadata =
        |name: &str, member: &str, value: Value| with(name, "metadata", json!({"name": name, member: value}));
    let labels: serde_json::Map<_, _> = (0..10_000).map(|index| (format!("label-{index}"), json!("x"))).collect();
    let condition =
        |index| json!({"type": format!("C{index}"), "status": "True", "reason": "R", "message": "m".repeat(30_000)});
    let conditions: Vec<Value> = (0..64).map(condition).collect();
    let begun = Instant::now();
    for name in ["prod-1", "dev-1"] {
        for large in [
            metadata(name, "annotations", json!({"x": "y".repeat(6_900_000)})),
            metadata(name, "labels", json!(labels)),
            with(name, "status", json!({"conditions": conditions})),
        ] {
            let said = answer(&server.send("POST", "/v1/validate?timeout=5s", &large).await);
            assert_eq!(said["allowed"], name == "prod-1", "{name}, {} bytes: {said}", large.len());
        }
    }
    // What is no text is no review, wherever the bytes stand.
    let mut bytes = metadata("prod-1", "annotations", json!({"x": "QQQQ"})).into_bytes();
    let at = bytes.windows(4).position(|four| four == b"QQQQ").unwrap();
    bytes[at] = 0xff;
    let said = server.send("POST", "/v1/validate?timeout=5s", &bytes).await;
    assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
    assert!(server.send("POST", "/v1/validate", "x".repeat((7 << 20) + 1)).await.starts_with("HTTP/1.1 413 "));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn bounds_are_kept_and_whoever_is_within_is_answered() {
    let bounds = Bounds { body: 100_000, bodies: 150_000, ..Bounds::default() };
    let server = start(bounds).await;
    server.policies.apply(&[]).await;
    let large = "x".repeat(100_001);
    let said = server.send("POST", "/v1/validate", &large).await;
    assert!(said.starts_with("HTTP/1.1 413 "), "{said}");

    // Whoever only announces much takes no room; whoever sends it does, until it is gone.
    let mut announcing = Vec::new();
    for _ in 0..20 {
        announcing.push(server.begin(API_SERVER, 1).await);
    }
    assert!(server.send("POST", "/v1/validate", &review("c1")).await.starts_with("HTTP/1.1 200 "));
    let (begun, mut sending) = (Instant::now(), Vec::new());
    let said = loop {
        // Again each time: what is asked with may have taken the room that it wanted.
        sending.push(server.begin(API_SERVER, 99_000).await);
        let said = server.send("POST", "/v1/validate", &"x".repeat(90_000)).await;
        if !said.starts_with("HTTP/1.1 400 ") {
            break said;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{said}");
    };
    assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("retry-after: 1"), "{said}");
    drop((sending, announcing));
    let begun = Instant::now();
    while !server.send("POST", "/v1/validate", &"x".repeat(90_000)).await.starts_with("HTTP/1.1 400 ") {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    // Whoever connects and says nothing, or no TLS, keeps nobody else from being answered.
    let mut silent = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        silent.push((stream, TcpStream::connect(&server.address).await.unwrap()));
    }
    assert!(server.send("POST", "/v1/validate", &review("c1")).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn what_is_made_of_a_body_takes_room_and_what_would_be_too_large_is_refused() {
    let maps = |number: usize| {
        let mut review: Value = serde_json::from_str(&review("c1")).unwrap();
        review["request"]["object"]["x"] = "MAPS".into();
        review.to_string().replace("\"MAPS\"", &format!("[{}0]", r#"{"":0},"#.repeat(number)))
    };
    let server = start(Bounds { parsed: 8 << 20, ..Bounds::default() }).await;
    server.policies.apply(&[]).await;
    assert!(server.send("POST", "/v1/validate", maps(5_000)).await.starts_with("HTTP/1.1 200 "));
    let said = server.send("POST", "/v1/validate", maps(20_000)).await;
    assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("retry-after: 1"), "{said}");
    // A million of them would take most of the memory of a pod.
    let server = start(Bounds::default()).await;
    server.policies.apply(&[]).await;
    let said = server.send("POST", "/v1/validate", maps(800_000)).await;
    let refused = said.contains(r#""allowed":false"#) && said.contains(r#""uid":"7""#);
    assert!(refused && said.contains("the review cannot be read: it is of too many parts"), "{said}");
    // What an agent inflates keeps nobody from taking its rights away: as texts it takes little, and as values it is let pass.
    let inflated = |change: &dyn Fn(&mut Value), status: &str| {
        let mut review: Value = serde_json::from_str(&review("c1")).unwrap();
        let request = &mut review["request"];
        request["object"]["status"] = "STATUS".into();
        request["object"]["spec"]["hubAcceptsClient"] = true.into();
        request["oldObject"] = request["object"].clone();
        request["operation"] = "UPDATE".into();
        change(request);
        review.to_string().replace("\"STATUS\"", status)
    };
    let status = |claim: &str, number: usize| format!(r#"{{"clusterClaims":[{}]}}"#, vec![claim; number].join(","));
    let claims = status(r#"{"name":"a","value":"b"}"#, 60_000);
    let texts = status(&json!({"name": "a", "value": "{".repeat(1024)}).to_string(), 1_000);
    let deny = |request: &mut Value| request["object"]["spec"]["hubAcceptsClient"] = false.into();
    let delete = |request: &mut Value| {
        request["operation"] = "DELETE".into();
        request["object"] = Value::Null;
    };
    let label = |request: &mut Value| request["object"]["metadata"]["labels"] = json!({"a": "b"});
    for (change, takes_away) in [(&deny as &dyn Fn(&mut Value), true), (&delete, true), (&label, false)] {
        let said = server.send("POST", "/v1/validate", inflated(change, &texts)).await;
        assert!(said.contains(r#""allowed":true"#) && !said.contains("too many parts"), "{said}");
        let said = server.send("POST", "/v1/validate", inflated(change, &claims)).await;
        assert_eq!(said.contains(r#""allowed":true"#), takes_away, "{said}");
        // So does what nobody can read.
        let no_list = inflated(change, r#"{"conditions":1}"#);
        let said = server.send("POST", "/v1/validate", no_list).await;
        assert_eq!(said.contains(r#""allowed":true"#), takes_away, "{said}");
        let deep = format!("{}{}", r#"{"f:a":"#.repeat(200) + "0", "}".repeat(200));
        let fields = |request: &mut Value| {
            change(request);
            for name in ["object", "oldObject"] {
                if !request[name].is_null() {
                    request[name]["metadata"]["managedFields"] = json!([{"fieldsV1": "STATUS"}]);
                }
            }
        };
        let said = server.send("POST", "/v1/validate", inflated(&fields, &deep)).await;
        let expected = if takes_away { r#""allowed":true"# } else { "HTTP/1.1 400 " };
        assert!(said.contains(expected), "{said}");
    }
}

/// Waits until the metrics of a server hold this.
async fn until(server: &Running, metric: &str) {
    let begun = Instant::now();
    while !server.metrics.text().contains(metric) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", server.metrics.text());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Answers when it is told to.
struct Slow(Mutex<Receiver<()>>);

impl Judge for Slow {
    fn is_open(&self) -> bool {
        true
    }

    fn review(self: Arc<Self>, _: &[u8], _: Stage, _: &Deadline) -> Review {
        Review::Waits(Box::new(move || {
            let _ = self.0.lock().unwrap().recv();
            Reviewed { status: 200, body: b"{}".to_vec(), decided: None }
        }))
    }
}

#[tokio::test]
async fn one_review_too_many_is_told_to_come_again() {
    let (go_on, waits) = std::sync::mpsc::channel();
    let server =
        serve(Arc::new(Slow(Mutex::new(waits))), support::parts(), Bounds { in_flight: 2, ..Bounds::default() });
    let server = Arc::new(server.await);
    let two: Vec<_> = (0..2)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move { server.send("POST", "/v1/validate", "{}").await })
        })
        .collect();
    until(&server, "ocm_policy_admission_requests_in_flight 2").await;
    let said = server.send("POST", "/v1/validate", "{}").await;
    assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("retry-after: 1"), "{said}");
    // Which of them is let go first nobody knows.
    (0..2).for_each(|_| go_on.send(()).unwrap());
    for one in two {
        assert!(one.await.unwrap().starts_with("HTTP/1.1 200 "));
    }
    go_on.send(()).unwrap();
    assert!(server.send("POST", "/v1/validate", "{}").await.starts_with("HTTP/1.1 200 "));
}

/// Reads to the end of a connection that the other side closes.
async fn rest(mut stream: impl tokio::io::AsyncRead + Unpin) -> String {
    let mut said = Vec::new();
    // Whoever closes without having read everything resets the connection.
    let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut said)).await.unwrap();
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn connections_of_one_address_keep_no_other_address_out() {
    let server = start(Bounds { connections: 8, ..Bounds::default() }).await;
    server.policies.apply(&[]).await;
    let begun = Instant::now();
    // One that stands, at rest, while another address takes everything else and wants more.
    let mut standing = server.connect().await;
    let mut silent = Vec::new();
    for _ in 0..7 {
        silent.push(server.open(ANOTHER).await);
    }
    assert_eq!(rest(server.open(ANOTHER).await).await, "", "there is no place for more of its own");
    assert!(server.send("POST", "/v1/validate", &review("c1")).await.starts_with("HTTP/1.1 200 "));
    // It gave way, by the one that had been silent for longest, and before any limit of time has ended one.
    assert_eq!(rest(silent.remove(0)).await, "");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    until(&server, "ocm_policy_connections_given_up_total 1").await;
    let body = review("c1");
    let head = "POST /v1/validate HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    standing.write_all(request.as_bytes()).await.unwrap();
    standing.flush().await.unwrap();
    assert!(rest(standing).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn bytes_of_one_address_keep_no_other_address_out() {
    let server = start(Bounds { body: 100_000, bodies: 150_000, ..Bounds::default() }).await;
    server.policies.apply(&[]).await;
    let first = server.begin(ANOTHER, 99_000).await;
    let (begun, mut more) = (Instant::now(), Vec::new());
    let said = loop {
        // Again each time: what is asked with may have taken the room that it wanted.
        more.push(server.begin(ANOTHER, 50_000).await);
        let said = server.send_from(ANOTHER, "POST", "/v1/validate", &"x".repeat(10_000)).await;
        if !said.starts_with("HTTP/1.1 400 ") {
            break said;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{said}");
    };
    assert!(said.starts_with("HTTP/1.1 429 "), "there is no room for more of its own: {said}");
    // It was read to its end, since it is within a half, and is no review.
    let said = server.send("POST", "/v1/validate", &"x".repeat(70_000)).await;
    assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
    let said = rest(first).await;
    assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("retry-after: 1"), "{said}");
}

#[tokio::test]
async fn reviews_of_one_address_keep_no_other_address_out() {
    let (go_on, waits) = std::sync::mpsc::channel();
    let bounds = Bounds { in_flight: 2, ..Bounds::default() };
    let server = Arc::new(serve(Arc::new(Slow(Mutex::new(waits))), support::parts(), bounds).await);
    let ask = |from: [u8; 4]| {
        let server = server.clone();
        tokio::spawn(async move { server.send_from(from, "POST", "/v1/validate", "{}").await })
    };
    let first = ask(ANOTHER);
    until(&server, "ocm_policy_admission_requests_in_flight 1").await;
    let second = ask(ANOTHER);
    until(&server, "ocm_policy_admission_requests_in_flight 2").await;
    let theirs = ask(API_SERVER);
    // The newest one of those is given up: the other one is nearer to its answer.
    let said = timeout(Duration::from_secs(10), second).await.unwrap().unwrap();
    assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("retry-after: 1"), "{said}");
    // The work on what was given up goes on here, since nothing ends it.
    (0..3).for_each(|_| go_on.send(()).unwrap());
    assert!(theirs.await.unwrap().starts_with("HTTP/1.1 200 "));
    assert!(first.await.unwrap().starts_with("HTTP/1.1 200 "));
}

/// Works until nobody waits for the answer any more.
struct Endless(UnboundedSender<Result<(), PolicyError>>);

impl Judge for Endless {
    fn is_open(&self) -> bool {
        true
    }

    fn review(self: Arc<Self>, _: &[u8], _: Stage, deadline: &Deadline) -> Review {
        let deadline = deadline.clone();
        Review::Waits(Box::new(move || {
            let _ = self.0.send(deadline.check());
            while deadline.check().is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = self.0.send(deadline.check());
            Reviewed { status: 200, body: b"{}".to_vec(), decided: None }
        }))
    }
}

#[tokio::test]
async fn work_for_a_client_that_has_gone_comes_to_an_end() {
    let (tell, mut told) = unbounded_channel();
    let server = serve(Arc::new(Endless(tell)), support::parts(), Bounds::default()).await;
    let mut client = server.connect().await;
    let body = review("c1");
    let head = format!("POST /v1/validate HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    client.write_all((head + &body).as_bytes()).await.unwrap();
    client.flush().await.unwrap();
    let mut next = async || timeout(Duration::from_secs(10), told.recv()).await.unwrap().unwrap();
    assert_eq!(next().await, Ok(()));
    drop(client);
    assert_eq!(next().await, Err(PolicyError::DeadlineExceeded));
}

#[tokio::test]
async fn the_end_is_announced_and_what_has_begun_is_answered() {
    let bounds = Bounds { drain: Duration::from_millis(500), grace: Duration::from_secs(5), ..Bounds::default() };
    let mut server = start(bounds).await;
    server.policies.apply(&[]).await;
    // A connection that stands, and a review of which half has come.
    let mut begun = server.connect().await;
    let body = review("c1");
    let head = format!("POST /v1/validate HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    begun.write_all((head + &body[..10]).as_bytes()).await.unwrap();
    begun.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(server.end.take());
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Still taken, and closed after its answer.
    let mut late = server.connect().await;
    let request =
        format!("POST /v1/validate HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    late.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    late.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("connection: close"), "{said}");
    // After the drain nobody is taken any more, and what has begun is answered.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(TcpStream::connect(&server.address).await.is_err());
    begun.write_all(&body.as_bytes()[10..]).await.unwrap();
    let mut said = String::new();
    begun.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    timeout(Duration::from_secs(5), server.serving).await.unwrap().unwrap();
}

/// What a policy is asked about that judges this alone.
fn only(operation: &str) -> Scope {
    let spec: HubPolicySpec =
        serde_json::from_value(json!({"module": {"path": "x"}, "operations": [operation]})).unwrap();
    Scope::from(&spec)
}

/// A policy of a module that does this, for clusters that are changed.
fn doing(folder: &Path, name: &str, decide: &str) -> Wanted {
    let (module, file) = (Guest::deciding(decide).module(), format!("{name}.wasm"));
    std::fs::write(folder.join(&file), &module).unwrap();
    let sha256 = Sha256::digest(&module).iter().map(|byte| format!("{byte:02x}")).collect();
    Wanted {
        source: Source::Path(file),
        sha256: Some(sha256),
        settings: "{}".to_owned(),
        scope: only("update"),
        ..names(name, "*")
    }
}

/// A review of a cluster that is changed.
fn changed(name: &str) -> String {
    let mut review: Value = serde_json::from_str(&review(name)).unwrap();
    let request = &mut review["request"];
    request["operation"] = "UPDATE".into();
    request["oldObject"] = request["object"].clone();
    request["object"]["metadata"]["labels"] = json!({"a": "b"});
    review.to_string()
}

/// How many ask a hostile policy at once.
const AT_ONCE: usize = 8;

#[tokio::test]
async fn hostile_policies_let_nothing_pass_and_keep_nobody_from_being_judged_by_a_good_one() {
    let folder = tempfile::tempdir().unwrap();
    let babbles = format!("(i32.store (i32.const {ANSWER}) (i32.const 255))");
    for (name, decide) in [
        ("loops", "(loop $l (br $l))"),
        ("grows", "(loop $l (drop (memory.grow (i32.const 16))) (br $l))"),
        ("traps", "unreachable"),
        ("babbles", &*babbles),
    ] {
        let parts = support::parts_in(folder.path().to_owned());
        let server = Arc::new(serve(parts.gate.clone(), parts, Bounds::default()).await);
        let good = Wanted { scope: only("create"), ..names("names", "prod-*") };
        server.policies.apply(&[doing(folder.path(), name, decide), good]).await;
        assert_eq!(server.policies.failed(), [], "{name}");
        let stop = Arc::new(AtomicBool::new(false));
        let asking: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let (server, stop) = (server.clone(), stop.clone());
                tokio::spawn(async move {
                    let mut refused = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let said = server.send("POST", "/v1/validate?timeout=1s", &changed("prod-1")).await;
                        assert!(!said.contains(r#""allowed":true"#), "{said}");
                        refused += usize::from(said.contains(r#""allowed":false"#));
                    }
                    refused
                })
            })
            .collect();
        let mut slowest = Duration::ZERO;
        for _ in 0..50 {
            let begun = Instant::now();
            let right = answer(&server.send("POST", "/v1/validate?timeout=5s", &review("prod-1")).await);
            let wrong = answer(&server.send("POST", "/v1/validate?timeout=5s", &review("dev-1")).await);
            let both = (&right["allowed"], &wrong["allowed"]);
            assert_eq!(both, (&json!(true), &json!(false)), "{name}: {right} {wrong}");
            slowest = slowest.max(begun.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
        for one in asking {
            assert!(one.await.unwrap() > 0, "{name} was asked");
        }
        // How quick it is without the tests beside it, `cargo bench -p ocm-policy-server` measures.
        assert!(slowest < Duration::from_secs(5), "{name}: {slowest:?}");
    }
}
