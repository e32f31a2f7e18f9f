//! The policy engine in pods: the image of the webhook as it is in the sources now, and a hub that registers clusters with it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use kube::Api;
use kube::api::PostParams;
use ocm_api::ManagedCluster;
use serde_json::{Value, json};
use xtask::image::linked;

use crate::accept_support::{Hub, Who, managed_cluster};
use crate::webhook_support::{add_ons, policy};
use crate::{object, until_within};

/// The image that [`load_image`] puts on a node.
pub const IMAGE: &str = "registry.example.com/ocm-policy-webhook:test";
/// How long pods may take to come and go.
pub const PODS: Duration = Duration::from_secs(120);
/// What the API server says where the entry that judges registrations was not answered.
const UNANSWERED: &str = "failed calling webhook \"register.policy.kubectl-ocm.dev\"";

/// Puts the webhook on a node, with the libraries of this machine that it needs: linked with everything it takes minutes
/// to build.
///
/// # Panics
///
/// When it cannot be built or loaded.
pub fn load_image(cluster: &Cluster) {
    load_image_as(cluster, IMAGE);
}

/// The same by another name.
///
/// # Panics
///
/// When it cannot be built or loaded.
pub fn load_image_as(cluster: &Cluster, reference: &str) {
    let binary = cli_tests::binary("ocm-policy-webhook");
    let archive = linked("ocm-policy-webhook", reference, &binary).expect("an archive");
    let file = cluster.dir().expect("a folder").join("image.tar");
    fs::write(&file, archive).expect("it is written");
    cluster.import_image(&file).expect("the node takes it");
    let _ = fs::remove_file(file);
}

/// A hub on a node that has the image.
///
/// # Panics
///
/// When it does not start.
pub fn hub(name: &str) -> Hub {
    let hub = Hub::start_as(&Spec::node(name).ocm_images(false));
    add_ons(&hub.cluster);
    load_image(&hub.cluster);
    hub
}

/// The pods of the policy engine.
///
/// # Panics
///
/// When they cannot be listed.
pub fn pods(hub: &Hub) -> Vec<Value> {
    let list = object(&hub.cluster, &["pods", "--namespace=ocm-policy-engine"]);
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Their names.
///
/// # Panics
///
/// When they cannot be listed.
pub fn pod_names(hub: &Hub) -> Vec<String> {
    let name = |pod: &Value| pod.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
    pods(hub).iter().filter_map(name).collect()
}

/// Why nobody may register a cluster of this name with the bootstrap account; none: it would be stored.
///
/// # Panics
///
/// When the hub does not answer.
pub fn refused(hub: &Hub, name: &str) -> Option<String> {
    let api: Api<ManagedCluster> = Api::all(hub.client(Who::Bootstrap));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    match hub.wait(api.create(&dry, &managed_cluster(name))) {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message.clone()),
        Err(error) => panic!("no answer: {error}"),
    }
}

/// Whether registrations wait for an answer of the webhook.
///
/// # Panics
///
/// When the hub does not answer.
pub fn they_wait(hub: &Hub) -> bool {
    refused(hub, "new").is_some_and(|why| why.contains(UNANSWERED))
}

/// Has a policy approve clusters whose names begin with `auto-`, and waits until it is in force.
///
/// # Panics
///
/// When it is not.
pub fn approve_auto(hub: &Hub) {
    let account = "open-cluster-management/agent-registration-bootstrap";
    let rules = json!([{"operations": ["join"], "serviceAccounts": [account], "names": ["auto-*"]}]);
    let approves =
        json!({"module": {"builtin": "allowed-identities"}, "autoApprove": true, "settings": {"rules": rules}});
    policy(&hub.cluster, "approves", approves);
    // Until they have loaded it, the webhook's pods let nothing pass that it judges; an agent asks again, too.
    until_within(PODS, "the policy is in force", String::new, || match refused(hub, "new") {
        None => true,
        Some(why) => {
            assert!(why.contains("the policy is being loaded"), "{why}");
            false
        }
    });
}

/// Kills whatever runs in pods of these names, without a word to anybody.
///
/// # Panics
///
/// When nothing runs in one of them.
pub fn kill_processes_of(pods: &[String]) {
    let of_pod = |pod: &String| {
        let processes = processes_of(pod);
        assert!(!processes.is_empty(), "nothing runs in {pod}");
        processes
    };
    let all: Vec<PathBuf> = pods.iter().flat_map(of_pod).collect();
    // With the first one of a pod all others end.
    let _ = Command::new("kill").arg("-9").args(all.iter().filter_map(|process| process.file_name())).status();
}

/// The processes of a pod, by the host name that they were told. It is that of no other pod on this machine.
fn processes_of(pod: &str) -> Vec<PathBuf> {
    let told = format!("HOSTNAME={pod}");
    let is_told = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == told.as_bytes())
    };
    let all = fs::read_dir("/proc").expect("/proc can be read").flatten().map(|entry| entry.path());
    all.filter(is_told).collect()
}

/// Waits until all pods have started again so often and registrations are judged, after a time in which they waited. Whoever waits
/// is told so within this time; on a machine that others use, most of them are.
///
/// # Panics
///
/// When they do not come back, nobody had to wait, or most were told too late.
pub fn comes_back(hub: &Hub, starts: u64, told: Duration) {
    let has_started = |pod: &Value| {
        let container = &pod["status"]["containerStatuses"][0];
        container["ready"] == true && container["restartCount"].as_u64().is_some_and(|count| count >= starts)
    };
    let mut waited = Vec::new();
    until_within(PODS, "registrations are judged again", String::new, || {
        let asked = Instant::now();
        let why = refused(hub, "new");
        if why.as_ref().is_some_and(|why| why.contains(UNANSWERED)) {
            waited.push(asked.elapsed());
        }
        why.is_none() && pods(hub).iter().all(has_started)
    });
    waited.sort_unstable();
    assert!(waited.get(waited.len() / 2).is_some_and(|took| *took < told), "{waited:?}");
}
