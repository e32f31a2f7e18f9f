//! A server with nobody behind it: what tests and benchmarks share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use kube::{Client, Config};
use ocm_policy_abi::LimitsAsked;
use ocm_policy_engine::{Cache, Compiler, Engine, EngineSettings};
use ocm_policy_rules::{Enforcement, Scope};
use ocm_policy_server::{DecisionLog, Gate, Knowledge, Metrics, Policies, Source, Wanted};
use serde_json::json;

/// What a server consists of.
pub struct Parts {
    /// None yet.
    pub policies: Arc<Policies>,
    /// Answers by them.
    pub gate: Arc<Gate>,
    /// Counts.
    #[allow(dead_code, reason = "not every program of tests looks at it")]
    pub metrics: Arc<Metrics>,
    /// The last line of the decision log.
    #[allow(dead_code, reason = "not every program of tests looks at it")]
    pub line: Arc<Mutex<String>>,
}

/// Makes them. No hub is there, so policies that ask for evidence answer with an error.
#[allow(dead_code, reason = "not every program of tests has none")]
pub fn parts() -> Parts {
    parts_of(nobody())
}

/// The same with the modules of a directory.
#[allow(dead_code, reason = "not every program of tests has some")]
pub fn parts_in(folder: PathBuf) -> Parts {
    made(nobody(), Some(folder))
}

/// The same with a hub that answers like this, and the modules of a directory.
#[allow(dead_code, reason = "not every program of tests has both")]
pub fn parts_of_in(client: Client, folder: PathBuf) -> Parts {
    made(client, Some(folder))
}

/// The same with a hub that answers like this.
pub fn parts_of(client: Client) -> Parts {
    made(client, None)
}

fn nobody() -> Client {
    Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()
}

/// What this run has compiled, where all of its servers find it: most have the same few policies.
static COMPILED: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(concat!("compiled-", env!("CARGO_CRATE_NAME")));
    // What another run has left was perhaps compiled otherwise.
    let _ = fs::remove_dir_all(&folder);
    folder
});

fn made(client: Client, folder: Option<PathBuf>) -> Parts {
    let (knowledge, metrics) = (Arc::new(Knowledge::new(client.clone())), Arc::new(Metrics::default()));
    let engine = Engine::new(&EngineSettings::default()).unwrap();
    let cache = Some(Cache::open(&*COMPILED).unwrap());
    let policies = Policies::new(client, engine, Compiler::Here, cache, knowledge.clone(), metrics.clone());
    let policies = Arc::new(policies.with_modules_of(folder));
    let log = Arc::new(DecisionLog::new(4096));
    let lines = log.clone();
    let line = Arc::new(Mutex::new(String::new()));
    let last = line.clone();
    std::thread::spawn(move || {
        lines.write(|lines| {
            if let Some(newest) = lines.back() {
                last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(newest);
            }
        });
    });
    let gate = Arc::new(Gate::new(policies.clone(), knowledge, metrics.clone(), log));
    Parts { policies, gate, metrics, line }
}

/// A review of a cluster that is created.
pub fn review(name: &str) -> String {
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
        "spec": {"hubAcceptsClient": false},
    });
    let kind = json!({"group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster"});
    let resource =
        json!({"group": "cluster.open-cluster-management.io", "version": "v1", "resource": "managedclusters"});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7", "kind": kind, "resource": resource, "operation": "CREATE", "name": name,
            "userInfo": {"username": "eva", "groups": ["system:authenticated"]}, "object": object,
        },
    })
    .to_string()
}

/// A policy for names.
pub fn names(place: &str, pattern: &str) -> Wanted {
    Wanted {
        name: place.to_owned(),
        generation: 1,
        uid: Some("1".to_owned()),
        source: Source::Builtin("name-pattern".to_owned()),
        settings: json!({"patterns": [pattern]}).to_string(),
        tests: None,
        sha256: None,
        enforcement: Enforcement::default(),
        scope: Scope::default(),
        judged: Vec::new(),
        edits: Vec::new(),
        limits: LimitsAsked::default(),
        former: None,
        candidate: None,
    }
}
