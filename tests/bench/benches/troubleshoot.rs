//! How long `kubectl ocm troubleshoot --all-clusters` takes on hubs of several sizes, how much memory, and how many requests.
//! The lower bound, in the same run, reads the same lists over connections that are open already, and looks at nothing.
//!
//! `cargo bench -p bench --bench troubleshoot`; `TROUBLESHOOT_BENCH_CLUSTERS=1000,10000` are the sizes, in growing order. A
//! quarter of the clusters have a work, a quarter an add-on, and every twentieth has a request of the last hour. The hub is an API
//! server without Open Cluster Management, as if its parts were on another cluster.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its result, or ends")]
#![expect(clippy::cast_precision_loss, reason = "clusters and bytes are few enough")]

#[path = "soak/table.rs"]
mod table;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use control_plane::Spec;
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, Hub, managed_cluster, upstream};
use e2e_tests::roles::user_with;
use e2e_tests::webhook_support::add_ons;
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use table::Table;

/// Rounds of each, in turns.
const ROUNDS: usize = 7;
/// How long a look at a thousand clusters may take.
const THOUSAND: Duration = Duration::from_secs(2);
/// How long a look at one of them may take.
const ONE: Duration = Duration::from_millis(300);
/// How much memory a look at a thousand clusters may take, in bytes.
const MEMORY: u64 = 64 << 20;
/// Requests that do not depend on the size of the hub.
const REQUESTS: usize = 40;
/// How many times as much the next size may take for each cluster: more is not linear.
const GROWTH: f64 = 1.25;
/// The user who looks, with the documented rights.
const USER: &str = "looker";
/// Objects of one page of a list.
const PAGE: usize = 500;
/// What there is of each cluster on a hub.
const LISTS: [&str; 5] = [
    "/apis/cluster.open-cluster-management.io/v1/managedclusters",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/work.open-cluster-management.io/v1/manifestworks",
    "/apis/addon.open-cluster-management.io/v1alpha1/managedclusteraddons",
];
/// The definition of works in upstream's API module.
const WORKS: &str = "work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml";

fn main() {
    let sizes = std::env::var("TROUBLESHOOT_BENCH_CLUSTERS").unwrap_or_else(|_| "1000,10000".to_owned());
    let sizes: Vec<usize> = sizes.split(',').map(|size| size.parse().unwrap()).collect();
    let hub = Hub::start_as(&Spec::api("looked-at").audited(true));
    add_ons(&hub.cluster);
    hub.cluster.kubectl(&["apply", "--filename", upstream(WORKS).to_str().unwrap()]).unwrap();
    hub.cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]).unwrap();
    let user = user_with(&hub.cluster, USER, &["troubleshoot-hub.yaml"]);
    let binary = cli_tests::binary("kubectl-ocm-troubleshoot");
    let look = |words: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(words).arg("--kubeconfig").arg(&user).arg("--output=json");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut table = Table::default();
    let (mut there, mut before): (usize, Option<(usize, Duration)>) = (0, None);
    for size in sizes {
        populate(&hub, there..size);
        there = size;
        let (mut ours, mut bounds) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bounds.push(hub.wait(lower_bound(&hub.admin, size)));
            ours.push(time(&mut look(&["--all-clusters"])));
        }
        let (ours, bound) = (median(ours), median(bounds));
        let what = format!("{size} clusters");
        table.add(&format!("{what}, lower bound"), format!("{bound:.2?}"));
        let figure = format!("{ours:.2?}, {:.2} times the lower bound", ours.as_secs_f64() / bound.as_secs_f64());
        match before {
            None => {
                table.judge(&format!("{what}, all"), figure, format!("≤ {THOUSAND:?} for 1000"), ours <= limit(size))
            }
            Some((few, took)) => {
                let growth = (ours.as_secs_f64() / size as f64) / (took.as_secs_f64() / few as f64);
                let figure = format!("{figure}, {growth:.2} times as much for each");
                table.judge(&format!("{what}, all"), figure, format!("≤ {GROWTH} times for each"), growth <= GROWTH);
            }
        }
        before = Some((size, ours));
        let one = median((0..ROUNDS).map(|_| time(&mut look(&["b0"]))).collect());
        table.judge(&format!("{what}, one of them"), format!("{one:.0?}"), format!("≤ {ONE:?}"), one <= ONE);
        let memory = memory(&binary, &user);
        // For each thousand as much.
        let most = MEMORY * (size as u64).div_ceil(1000);
        let figure = format!("{:.1} MiB", memory as f64 / f64::from(1 << 20));
        table.judge(&format!("{what}, most memory"), figure, format!("≤ {} MiB", most >> 20), memory <= most);
        let requests = requests(&hub, || time(&mut look(&["--all-clusters"])));
        let most = REQUESTS + LISTS.len() * size.div_ceil(PAGE);
        table.judge(&format!("{what}, requests"), requests, format!("≤ {most}"), requests <= most);
    }
    table.print();
    if !table.is_met() {
        std::process::exit(1);
    }
}

/// How long a look at a hub of this size may take.
fn limit(size: usize) -> Duration {
    THOUSAND * u32::try_from(size.div_ceil(1000)).unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How long a look takes, which has to find nothing.
fn time(command: &mut Command) -> Duration {
    let begun = Instant::now();
    let status = command.status().unwrap();
    let took = begun.elapsed();
    assert_eq!(status.code(), Some(0), "{command:?}");
    took
}

/// The largest resident set of a look at all clusters, in bytes, by GNU time.
fn memory(binary: &Path, user: &Path) -> u64 {
    let mut command = Command::new("/usr/bin/time");
    command.args(["-f", "%M"]).arg(binary).args(["--all-clusters", "--output=json", "--kubeconfig"]).arg(user);
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    text.lines().last().unwrap().trim().parse::<u64>().unwrap_or_else(|error| panic!("{error}: {text}")) << 10
}

/// How many requests of the user there are in the audit log more than before.
fn requests<T>(hub: &Hub, of: impl FnOnce() -> T) -> usize {
    // The log is behind for a moment.
    let settled = || {
        let mut last = hub.cluster.requests_of(USER).unwrap().len();
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = hub.cluster.requests_of(USER).unwrap().len();
            if now == last {
                return now;
            }
            last = now;
        }
    };
    let before = settled();
    of();
    settled() - before
}

/// Reads the lists, page by page, each beside the others.
async fn lower_bound(client: &Client, size: usize) -> Duration {
    let begun = Instant::now();
    let pages = futures::future::join_all(LISTS.map(|path| pages(client, path))).await;
    let took = begun.elapsed();
    assert!(pages[0] >= size.div_ceil(PAGE), "{pages:?}");
    took
}

async fn pages(client: &Client, path: &str) -> usize {
    let (mut pages, mut next) = (0, String::new());
    loop {
        let request = Request::get(format!("{path}?limit={PAGE}&continue={next}")).body(Vec::new()).unwrap();
        let text = client.request_text(request).await.unwrap();
        pages += 1;
        // Of own kinds it stands at the end of a list, of others at the beginning, and holds nothing that is escaped.
        let ends = [text.get(..1000), text.len().checked_sub(1000).and_then(|from| text.get(from..)), Some(&*text)];
        let token = ends.into_iter().flatten().take(2).find_map(|part| part.split_once(r#""continue":""#));
        match token.and_then(|(_, rest)| rest.split_once('"')).filter(|(token, _)| !token.is_empty()) {
            Some((token, _)) => token.clone_into(&mut next),
            None => return pages,
        }
    }
}

/// Adds clusters that have joined and are heard of.
fn populate(hub: &Hub, range: std::ops::Range<usize>) {
    println!("making {} clusters …", range.len());
    hub.wait(async {
        futures::stream::iter(range)
            .map(|index| cluster(&hub.admin, index))
            .buffer_unordered(64)
            .try_collect::<Vec<()>>()
            .await
            .unwrap();
    });
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

async fn cluster(client: &Client, index: usize) -> kube::Result<()> {
    let (name, params) = (format!("b{index}"), PostParams::default());
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Done", "message": "as it should be",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let conditions = [
        "HubAcceptedManagedCluster",
        "ManagedClusterJoined",
        "ManagedClusterConditionAvailable",
        "ManagedClusterConditionClockSynced",
    ];
    let status = json!({"status": {"conditions": conditions.map(condition), "version": {"kubernetes": "v1.35.4"}}});
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    let mut made = managed_cluster(&name);
    // What is made for minutes is to be heard of until the end.
    (made.spec.hub_accepts_client, made.spec.lease_duration_seconds) = (Some(true), Some(36_000));
    clusters.create(&params, &made).await?;
    clusters.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    let labels = json!({"open-cluster-management.io/cluster-name": name});
    let namespace = json!({"metadata": {"name": name, "labels": labels}});
    Api::<Namespace>::all(client.clone()).create(&params, &typed(namespace)).await?;
    let lease = json!({"metadata": {"name": "managed-cluster-lease", "labels": labels},
        "spec": {"leaseDurationSeconds": 36_000, "renewTime": now()}});
    Api::<Lease>::namespaced(client.clone(), &name).create(&params, &typed(lease)).await?;
    if index.is_multiple_of(20) {
        let ask = Ask::with(&name, &Fixture::agent(&name, "a1"));
        Api::all(client.clone()).create(&params, &ask.object()).await?;
    }
    let extra = match index % 4 {
        0 => {
            json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": "w"},
            "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"},
                "data": {"text": "x".repeat(1000)}}]}}})
        }
        1 => {
            json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn", "metadata": {"name": "a"}, "spec": {}})
        }
        _ => return Ok(()),
    };
    let extra: DynamicObject = typed(extra);
    let types = extra.types.clone().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap();
    let kind = kube::core::GroupVersionKind::gvk(group, version, &types.kind);
    let resource = kube::core::ApiResource::from_gvk(&kind);
    Api::<DynamicObject>::namespaced_with(client.clone(), &name, &resource).create(&params, &extra).await?;
    Ok(())
}

/// As leases have the time.
fn now() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}
