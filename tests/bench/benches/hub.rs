//! What the webhook does on a hub that can only be seen there: how soon it is ready with fifty policies, how soon a policy that
//! was changed is in force, and what asking it costs the API server. `cargo bench -p bench --bench hub`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its result, or ends")]

#[path = "soak/table.rs"]
mod table;

use std::time::{Duration, Instant};

use e2e_tests::accept_support::{Hub, managed_cluster};
use e2e_tests::webhook_support::{Webhook, add_ons, policy, prepare};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use ocm_api::{HubPolicy, ManagedCluster};
use serde_json::{Value, json};
use table::Table;

/// Policies that are loaded when it starts.
const POLICIES: usize = 50;
/// How often it starts.
const STARTS: usize = 7;
/// How soon it is to be ready.
const READY: Duration = Duration::from_secs(1);
/// How often a policy is changed.
const CHANGES: usize = 20;
/// How soon that is to be in force.
const IN_FORCE: Duration = Duration::from_millis(300);
/// Requests of each kind by which the API server is measured.
const REQUESTS: usize = 500;

fn main() {
    let mut table = Table::default();
    let hub = Hub::start("bench");
    add_ons(&hub.cluster);
    prepare(&hub.cluster);
    let unasked = requests(&hub);
    policy(&hub.cluster, "first", names(&["*"]));
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    let one = requests(&hub);
    changes(&hub, &mut table);
    for number in 1..POLICIES {
        policy(&hub.cluster, &format!("more-{number}"), names(&["*"]));
    }
    let webhook = starts(&hub, webhook, &mut table);
    webhook.configure_and_wait(&hub.cluster);
    let all = requests(&hub);
    for (what, [half, most]) in [("asks nobody", unasked), ("asks one policy", one), ("asks fifty policies", all)] {
        table.add(
            &format!("a dry run of a new cluster, the API server {what}"),
            format!("p50 {half:.2?}, p99 {most:.2?}"),
        );
    }
    table.print();
    if !table.is_met() {
        std::process::exit(1);
    }
}

/// A policy by which only such names may be registered.
fn names(patterns: &[&str]) -> Value {
    json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": patterns}})
}

/// Pretends to register a cluster, one after the other: the median and the 99th percentile.
fn requests(hub: &Hub) -> [Duration; 2] {
    let mut took: Vec<Duration> = (0..REQUESTS)
        .map(|_| {
            let begun = Instant::now();
            assert!(is_let_in(hub), "it is refused");
            begun.elapsed()
        })
        .collect();
    parts(&mut took)
}

/// Whether a cluster may be registered. Any other answer than yes and the policy's no ends the benchmark.
fn is_let_in(hub: &Hub) -> bool {
    let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    match hub.wait(api.create(&dry, &managed_cluster("new"))) {
        Ok(_) => true,
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("policy first"), "a request failed: {said}");
            false
        }
    }
}

/// Changes the policy back and forth, and asks until it is in force.
fn changes(hub: &Hub, table: &mut Table) {
    let api: Api<HubPolicy> = Api::all(hub.admin.clone());
    let mut asked = 0;
    let mut took: Vec<Duration> = (0..CHANGES)
        .map(|number| {
            let lets_in = number % 2 == 1;
            let patch = json!({"spec": {"settings": {"patterns": [if lets_in { "*" } else { "prod-*" }]}}});
            let begun = Instant::now();
            hub.wait(api.patch("first", &PatchParams::default(), &Patch::Merge(patch))).unwrap();
            while is_let_in(hub) != lets_in {
                asked += 1;
                assert!(begun.elapsed() < Duration::from_secs(30), "it does not come into force");
            }
            begun.elapsed()
        })
        .collect();
    let [half, most] = parts(&mut took);
    let figure = format!("p50 {half:.0?}, most {most:.0?}; {asked} requests meanwhile, none failed");
    table.judge("a change of a policy is in force after", figure, format!("<= {IN_FORCE:?}"), most <= IN_FORCE);
}

/// Kills it and starts it again, until it says that it is ready.
fn starts(hub: &Hub, webhook: Webhook, table: &mut Table) -> Webhook {
    // What it has not compiled yet is compiled once.
    let mut webhook = webhook.restart(&hub.cluster);
    let mut took = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        webhook = webhook.restart(&hub.cluster);
        took.push(begun.elapsed());
    }
    let [half, most] = parts(&mut took);
    let figure = format!("p50 {half:.0?}, most {most:.0?}");
    table.judge(
        &format!("from kill -9 to ready with {POLICIES} policies"),
        figure,
        format!("<= {READY:?}"),
        most <= READY,
    );
    webhook
}

/// The median, and the 99th percentile; of a few, the most.
fn parts(took: &mut [Duration]) -> [Duration; 2] {
    took.sort_unstable();
    [took[took.len() / 2], took[took.len() * 99 / 100]]
}
