//! Of many that come at once no more pass than there is room for.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

#[path = "../../engine/tests/support/guest.rs"]
mod guest;
mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use ocm_policy_abi::{LimitsAsked, Stage};
use ocm_policy_engine::{Cancellation, Deadline};
use ocm_policy_rules::{Enforcement, Mode, Scope};
use ocm_policy_server::{Judge as _, Review, Reviewed, Source, Wanted};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{Parts, names, parts_of, parts_of_in, review};

/// What a hub answers, perhaps bit by bit.
type Told = UnsyncBoxBody<Bytes, std::io::Error>;

/// A hub that tells of what it holds, and of nothing else that was let pass.
#[derive(Default)]
struct Hub {
    clusters: Mutex<BTreeMap<String, Value>>,
    watches: Mutex<Vec<UnboundedSender<Bytes>>>,
}

impl Hub {
    fn holding(clusters: impl IntoIterator<Item = Value>) -> Arc<Self> {
        let hub = Self::default();
        for cluster in clusters {
            let name = cluster["metadata"]["name"].as_str().unwrap().to_owned();
            hub.clusters.lock().unwrap().insert(name, cluster);
        }
        Arc::new(hub)
    }

    fn answer(&self, path: &str, is_watch: bool) -> Told {
        let is_clusters = path.ends_with("/managedclusters");
        if is_watch {
            let (tell, told) = unbounded();
            if is_clusters {
                self.watches.lock().unwrap().push(tell.clone());
            }
            // Whoever is told nothing waits all the same.
            let told = told.map(move |line| {
                let _ = &tell;
                Ok::<_, std::io::Error>(Frame::data(line))
            });
            return StreamBody::new(told).boxed_unsync();
        }
        let items: Vec<Value> =
            if is_clusters { self.clusters.lock().unwrap().values().cloned().collect() } else { Vec::new() };
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "100"}, "items": items});
        Full::from(list.to_string().into_bytes()).map_err(std::io::Error::other).boxed_unsync()
    }

    fn client(self: &Arc<Self>) -> Client {
        let hub = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let body = hub.answer(request.uri().path(), is_watch);
            async move { Ok::<_, tower::BoxError>(Response::new(body)) }
        });
        Client::new(service, "default")
    }

    fn parts(self: &Arc<Self>) -> Parts {
        parts_of(self.client())
    }

    fn tell(&self, what: &str, cluster: &Value) {
        let line = json!({"type": what, "object": cluster}).to_string() + "\n";
        self.watches.lock().unwrap().retain(|watch| watch.unbounded_send(line.clone().into()).is_ok());
    }
}

fn cluster(name: &str, accepted: bool, version: u64) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"hubAcceptsClient": accepted},
    })
}

/// A policy of this many clusters, and so on.
fn quota(settings: &Value) -> Wanted {
    Wanted {
        source: Source::Builtin("join-quota".to_owned()),
        settings: settings.to_string(),
        ..names("quota", "unused")
    }
}

/// A review of a cluster that is created.
fn creates(name: &str, accepted: bool) -> Value {
    let mut review: Value = serde_json::from_str(&review(name)).unwrap();
    let object = &mut review["request"]["object"];
    object["spec"]["hubAcceptsClient"] = accepted.into();
    object["metadata"]["uid"] = format!("uid-of-{name}").into();
    review
}

/// A review of a cluster that is accepted.
fn accepts(name: &str) -> Value {
    let mut review = creates(name, true);
    let request = &mut review["request"];
    request["operation"] = "UPDATE".into();
    request["object"] = cluster(name, true, 7);
    request["oldObject"] = cluster(name, false, 7);
    review
}

fn reviewed(parts: &Parts, review: &Value, stage: Stage, deadline: &Deadline) -> Reviewed {
    match parts.gate.clone().review(review.to_string().as_bytes(), stage, deadline) {
        Review::Answered(reviewed) => reviewed,
        Review::Waits(rest) => rest(),
    }
}

fn response_of(parts: &Parts, review: &Value) -> Value {
    let answer = reviewed(parts, review, Stage::Validating, &Deadline::NONE);
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    answer["response"].clone()
}

/// Whether it passes.
fn passes(parts: &Parts, review: &Value) -> bool {
    response_of(parts, review)["allowed"] == true
}

/// How many of these pass that come at once. All others are refused by the quota.
fn pass_at_once(parts: &Arc<Parts>, reviews: Vec<Value>) -> usize {
    let barrier = Arc::new(Barrier::new(reviews.len()));
    let ask = |review: Value| {
        let (parts, barrier) = (parts.clone(), barrier.clone());
        std::thread::spawn(move || {
            barrier.wait();
            response_of(&parts, &review)
        })
    };
    let threads: Vec<_> = reviews.into_iter().map(ask).collect();
    let answers: Vec<Value> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let (passed, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer["allowed"] == true);
    for answer in refused {
        let why = answer["status"]["message"].as_str().unwrap();
        assert!(why.contains("(QuotaTotal)"), "{why}");
    }
    passed.len()
}

fn named(count: usize, review: impl Fn(&str) -> Value) -> Vec<Value> {
    (0..count).map(|number| review(&format!("c{number}"))).collect()
}

#[tokio::test]
async fn of_twenty_that_are_created_at_once_five_take_five_places() {
    for accepted in [false, true] {
        let hub = Hub::holding([cluster("other", true, 1)]);
        let parts = Arc::new(hub.parts());
        parts.policies.apply(&[quota(&json!({"total": 6}))]).await;
        assert_eq!(parts.policies.failed(), []);
        assert_eq!(pass_at_once(&parts, named(20, |name| creates(name, accepted))), 5, "{accepted}");
        // Nor does one more come later.
        assert!(!passes(&parts, &creates("later", accepted)));
        // What goes makes room, once that has arrived.
        hub.tell("DELETED", &cluster("other", true, 2));
        let begun = Instant::now();
        while !passes(&parts, &creates("later", accepted)) {
            assert!(begun.elapsed() < Duration::from_secs(30));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!passes(&parts, &creates("last", accepted)));
        // It may come again: it is the same one.
        assert!(passes(&parts, &creates("later", accepted)));
        assert!(!passes(&parts, &creates("last", accepted)));
    }
}

#[tokio::test]
async fn of_ten_that_are_accepted_at_once_three_take_three_places() {
    let hub = Hub::holding((0..10).map(|number| cluster(&format!("c{number}"), false, 7)));
    let parts = Arc::new(hub.parts());
    parts.policies.apply(&[quota(&json!({"total": 3}))]).await;
    assert_eq!(pass_at_once(&parts, named(10, accepts)), 3);
}

#[tokio::test]
async fn what_has_arrived_counts_once() {
    let hub = Hub::holding([]);
    let parts = Arc::new(hub.parts());
    parts.policies.apply(&[quota(&json!({"total": 40}))]).await;
    for number in 0..40 {
        let name = format!("c{number}");
        assert!(passes(&parts, &creates(&name, false)), "{number}");
        let mut stored = cluster(&name, false, 200 + number);
        stored["metadata"]["uid"] = format!("uid-of-{name}").into();
        hub.tell("ADDED", &stored);
        // Some have arrived when the next one comes, and some have not.
        if number % 3 == 0 {
            tokio::time::sleep(Duration::from_millis(number)).await;
        }
    }
    assert!(!passes(&parts, &creates("more", false)));
}

#[tokio::test]
async fn what_is_tried_changed_or_refused_takes_no_place_and_sees_those_that_are_taken() {
    let hub = Hub::holding([]);
    let parts = Arc::new(hub.parts());
    parts.policies.apply(&[quota(&json!({"total": 1})), names("names", "c*")]).await;
    let mut tried = creates("c1", false);
    tried["request"]["dryRun"] = true.into();
    assert!(passes(&parts, &tried));
    assert_eq!(reviewed(&parts, &creates("c2", false), Stage::Mutating, &Deadline::NONE).status, 200);
    assert!(!passes(&parts, &creates("x", false)), "another policy refuses it");
    assert!(passes(&parts, &creates("c3", false)), "nobody has taken the place");
    assert!(!passes(&parts, &tried) && !passes(&parts, &creates("c4", false)));
}

#[tokio::test]
async fn where_the_word_of_a_policy_does_not_count_nobody_waits_for_it() {
    let hub = Hub::holding([]);
    let parts = Arc::new(hub.parts());
    let enforcement = Enforcement { mode: Mode::Audit, ..Enforcement::default() };
    parts.policies.apply(&[Wanted { enforcement, ..quota(&json!({"total": 1})) }]).await;
    assert!(passes(&parts, &creates("c0", false)), "it is not known to be quick yet");
    let answer =
        parts.gate.clone().review(creates("c1", false).to_string().as_bytes(), Stage::Validating, &Deadline::NONE);
    assert!(matches!(answer, Review::Answered(_)));
}

/// A review of a certificate request of `eva` for a cluster.
fn asks_for(name: &str) -> Value {
    let mut review = creates(name, false);
    let request = &mut review["request"];
    request["resource"] =
        json!({"group": "certificates.k8s.io", "version": "v1", "resource": "certificatesigningrequests"});
    request["kind"] = json!({"group": "certificates.k8s.io", "version": "v1", "kind": "CertificateSigningRequest"});
    let labels = json!({"open-cluster-management.io/cluster-name": name});
    request["object"] = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": format!("{name}-x"), "uid": name, "labels": labels},
        "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
                 "username": "eva", "groups": ["system:authenticated"]},
    });
    review
}

#[tokio::test]
async fn certificate_requests_count_for_whoever_asks_as_soon_as_they_pass() {
    let hub = Hub::holding([]);
    let parts = Arc::new(hub.parts());
    parts.policies.apply(&[quota(&json!({"perIdentityPerHour": 2}))]).await;
    let warned =
        |name: &str| response_of(&parts, &creates(name, false))["warnings"].to_string().contains("RateIdentity");
    for name in ["c1", "c2"] {
        assert!(!warned("c3"), "{name}");
        assert!(passes(&parts, &asks_for(name)));
        // The same again.
        assert!(passes(&parts, &asks_for(name)));
    }
    assert!(warned("c3"));
}

#[tokio::test]
async fn whoever_waits_for_longer_than_somebody_waits_for_it_is_let_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let module = guest::Guest {
        manifest: guest::Guest::manifest("guest", r#","limits":{"fuel":500000000}"#),
        ..guest::Guest::deciding("(loop $l (br $l))")
    }
    .module();
    std::fs::write(folder.path().join("endless.wasm"), &module).unwrap();
    let hub = Hub::holding([cluster("c1", false, 7)]);
    let parts = Arc::new(parts_of_in(hub.client(), folder.path().to_owned()));
    let spec = json!({"module": {"path": "x"}, "operations": ["update"]});
    let endless = Wanted {
        source: Source::Path("endless.wasm".to_owned()),
        sha256: Some(Sha256::digest(&module).iter().map(|byte| format!("{byte:02x}")).collect()),
        settings: "{}".to_owned(),
        scope: Scope::from(&serde_json::from_value(spec).unwrap()),
        limits: LimitsAsked { fuel: Some(u64::MAX), ..LimitsAsked::default() },
        ..names("endless", "*")
    };
    parts.policies.apply(&[endless, quota(&json!({"total": 1000}))]).await;
    assert_eq!(parts.policies.failed(), []);
    let mut changes = accepts("c1");
    changes["request"]["object"] = cluster("c1", false, 7);
    changes["request"]["object"]["metadata"]["labels"] = json!({"a": "b"});
    let mut refused = false;
    // Whether somebody else is judged when this one comes is up to the machine.
    for number in 0..20 {
        let (first, changes) = (parts.clone(), changes.clone());
        let judged = std::thread::spawn(move || reviewed(&first, &changes, Stage::Validating, &Deadline::NONE));
        std::thread::sleep(Duration::from_millis(10));
        let create = creates(&format!("late{number}"), false);
        let late = reviewed(&parts, &create, Stage::Validating, &Deadline::after(Duration::from_millis(20)));
        let is_judged = judged.is_finished();
        judged.join().unwrap();
        let answer: Value = serde_json::from_slice(&late.body).unwrap();
        let why = answer["response"]["status"]["message"].as_str().unwrap_or_default();
        assert_eq!(
            answer["response"]["allowed"] == false,
            why.contains("the deadline of the request has passed"),
            "{answer}"
        );
        refused |= !why.is_empty() && !is_judged;
        if refused {
            break;
        }
    }
    assert!(refused);
    // Nobody is answered whose connection is gone, and nothing of it counts.
    let parts = Arc::new(Hub::holding([]).parts());
    parts.policies.apply(&[quota(&json!({"total": 1}))]).await;
    let stop = Cancellation::default();
    stop.cancel();
    let gone = reviewed(&parts, &creates("c3", false), Stage::Validating, &Deadline::NONE.or_cancelled(&stop));
    assert_eq!((gone.status, gone.body.len()), (503, 0));
    assert!(passes(&parts, &creates("c4", false)));
}
