//! How long our policies take about one request with the evidence that they need, on a hub with ten clusters and on one
//! with ten thousand: `cargo bench -p policy-tests --bench requests`
//!
//! A cluster joins. The evidence of the hub is read once, as a hub does when something changes; of a request's time the
//! tables that it gets are a part. Every decision is made by a fresh instance with limits on.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use csr_fixtures::Fixture;
use ocm_policy_abi::{EvidenceSource, Manifest, Map, Operation, Request};
use ocm_policy_engine::{Ceiling, Engine, EngineSettings, Policy, Question};
use ocm_policy_rules::evidence::{self, Budget, Evidence};
use ocm_policy_rules::review::{self, Asking};
use ocm_rules::identity::{BOOTSTRAP_USER, CREDENTIAL_ID};
use serde_json::{Value, json};

#[path = "../tests/support/mod.rs"]
mod support;

/// Decisions of one measurement.
const MANY: usize = 2_000;

/// What a decision may take, in microseconds.
const TARGET: f64 = 10.0;
/// What one with all that a hub holds about a name may take.
const NAME_CLAIM: f64 = 20.0;

const LABEL: &str = "open-cluster-management.io/cluster-name";
const CREATED: &str = "2026-01-01T00:00:00Z";

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

/// Returns whether every decision met its target.
fn measure() -> Result<bool, String> {
    let engine = Engine::new(&EngineSettings::default()).map_err(|error| error.to_string())?;
    let names = support::names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut policies = Vec::new();
    for ours in support::ours(&names) {
        let made = support::compiled(&ours.module, &ours.settings()).map_err(|error| error.to_string())?;
        let loaded = Policy::load(&engine, &made, &Ceiling::default(), &made.header().manifest.edits);
        policies.push(loaded.map_err(|error| error.to_string())?);
    }
    let mut all_met = true;
    for clusters in [10, 10_000] {
        println!("\na hub with {clusters} clusters");
        let hub = Hub::with(clusters);
        for policy in policies.iter().filter(|policy| policy.judges(Operation::Join)) {
            all_met &= hub.measure(policy)?;
        }
    }
    Ok(all_met)
}

/// What a hub holds: as many clusters with all that belongs to them, the last of which is about to join.
struct Hub {
    clusters: Vec<Value>,
    csrs: Vec<Value>,
    namespaces: Vec<Value>,
    roles: Vec<Value>,
    registrations: Vec<Value>,
    csr: Value,
}

impl Hub {
    fn with(count: usize) -> Self {
        let named = |n: usize| format!("prod-{n}");
        let last = named(count - 1);
        let csr = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "r", "labels": {LABEL: last}, "creationTimestamp": CREATED},
            "spec": {
                "request": STANDARD.encode(Fixture::agent(&last, "a1").pem()),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["digital signature", "key encipherment", "client auth"],
                "username": BOOTSTRAP_USER, "uid": "f82ca45b-5d81-4b4b-be44-bc1d99af9983",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:open-cluster-management", "system:authenticated"],
                "extra": {CREDENTIAL_ID: ["JTI=add664cc-4dee-49bf-8a4a-5f733f9783fe"]},
            },
            "status": {},
        });
        let own = evidence::certificate_request(&csr).expect("it is a certificate request");
        // The others' keys are not read: the rows of one stand for those of all.
        let of = |n: usize| {
            let mut row = own.clone();
            row["metadata"]["name"] = json!(format!("r{n}"));
            row["labels"] = json!({LABEL: named(n)});
            row["commonNames"] = json!([format!("system:open-cluster-management:{}:a1", named(n))]);
            (row["cluster"], row["clusters"]) = (json!(named(n)), json!([named(n)]));
            row
        };
        let cluster = |n: usize| {
            let message = "what the agent has to say about itself, at some length";
            json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": named(n), "uid": n.to_string(), "creationTimestamp": CREATED},
                "spec": {"hubAcceptsClient": n + 1 < count, "leaseDurationSeconds": 60},
                "status": {"conditions": [
                    {"type": "Other", "status": "True", "reason": "R", "message": message, "lastTransitionTime": CREATED}]},
            })
        };
        let labelled = |name: String, n: usize| json!({"metadata": {"name": name, "labels": {LABEL: named(n)}, "creationTimestamp": "2026-01-01T00:00:01Z"}});
        let role = |n: usize| labelled(format!("open-cluster-management:managedcluster:{}", named(n)), n);
        // All but the last one were let in.
        let noted = |n: usize| {
            let keys = json!([{"spkiSha256": "", "until": "2027-01-01T00:00:00Z"}]);
            let status = json!({"clusterUid": n.to_string(), "keys": keys});
            evidence::registration(&json!({"metadata": {"name": named(n)}, "status": status}))
        };
        Self {
            clusters: (0..count).map(cluster).collect(),
            csrs: (0..count).map(of).collect(),
            namespaces: (0..count).map(|n| labelled(named(n), n)).collect(),
            roles: (0..count).map(role).collect(),
            registrations: (0..count - 1).map(noted).collect(),
            csr,
        }
    }

    fn objects(&self, source: &EvidenceSource) -> Vec<&Value> {
        match source {
            EvidenceSource::Clusters => self.clusters.iter().collect(),
            EvidenceSource::Csrs => self.csrs.iter().collect(),
            EvidenceSource::Namespaces => self.namespaces.iter().collect(),
            EvidenceSource::Objects { resource, .. } if resource == "clusterroles" => self.roles.iter().collect(),
            EvidenceSource::Registrations => self.registrations.iter().collect(),
            _ => Vec::new(),
        }
    }

    fn request(&self) -> Request<'static> {
        let asking = Asking { id: "bench".to_owned(), now: 1_790_000_000_000, ..Asking::default() };
        let cluster = self.clusters.last().expect("there are clusters");
        review::join(&self.csr, cluster, &asking).expect("it can be asked").into_owned()
    }

    fn evidence(&self, manifest: &Manifest) -> BTreeMap<String, Evidence> {
        let read = |query: &ocm_policy_abi::Query| {
            let evidence = Evidence::new(query, self.objects(&query.source), "1", Budget::default());
            (query.name.clone(), evidence.expect("the query can be answered"))
        };
        manifest.evidence.iter().map(read).collect()
    }

    /// Prints how long a policy takes; returns whether that is within its target.
    fn measure(&self, policy: &Arc<Policy>) -> Result<bool, String> {
        let manifest = policy.manifest();
        let evidence = self.evidence(manifest);
        let request = self.request();
        let tables = || -> Map<'static, _> {
            evidence.iter().map(|(name, evidence)| (name.clone(), evidence.table(&request))).collect()
        };
        let question = Question::new(Request { evidence: tables(), ..request.clone() });
        let first = policy.decide(&question).outcome.clone();
        let decision = first.result.map_err(|error| format!("{}: {error}", manifest.name))?;
        let gathered = times(|| drop(tables()));
        let decided = times(|| drop(policy.decide(&question)));
        let target = match manifest.name.as_str() {
            "name-claim" => Some(NAME_CLAIM),
            // It makes the functions of its language for every decision.
            "cel" => None,
            _ => Some(TARGET),
        };
        let median = decided[MANY / 2];
        let is_met = target.is_none_or(|target| median <= target);
        println!(
            "{:20} {:10} decide p50 {median:>7.2} µs   p99 {:>7.2} µs   {:17}   tables p50 {:>9.2} µs   fuel {}{}",
            manifest.name,
            decision.verdict.word(),
            decided[MANY * 99 / 100],
            target.map_or_else(|| "no target".to_owned(), |target| format!("{:.2} of {target} µs", median / target)),
            gathered[MANY / 2],
            first.fuel,
            if is_met { "" } else { "   missed" }
        );
        Ok(is_met)
    }
}

/// How long it takes in microseconds, many times, sorted.
fn times(mut work: impl FnMut()) -> Vec<f64> {
    let mut times: Vec<f64> = (0..MANY)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}
