//! A hub whose policy engine runs in pods is switched off and on, and its program is replaced by another one and taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use serde_json::Value;

use crate::accept_support::Hub;
use crate::controller_support::{registration, registrations};
use crate::engine_support::{
    IMAGE, PODS, approve_auto, comes_back, hub, kill_processes_of, load_image_as, pod_names, pods, refused, they_wait,
};
use crate::roles::user_with;
use crate::{Ends, kubectl_ocm, object, run, until_within};

/// The daemons of a node that run no pods.
const DAEMONS: [&str; 5] = ["kube-proxy", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"];
/// How soon a registration that waits is told so where the network may have lost the addresses of pods: an entry that changes
/// clusters waits for 2 seconds, and one that judges them for 5.
const GIVES_UP: Duration = Duration::from_secs(9);
/// The same program by another name.
const NEXT: &str = "registry.example.com/ocm-policy-webhook:next";

/// Whoever installs, with the documented rights.
fn keeper(hub: &Hub) -> PathBuf {
    user_with(&hub.cluster, "keeper", &["install-policy-engine.yaml", "install-baseline.yaml"])
}

fn install(keeper: &Path, flags: &[&str]) {
    let always = ["policy-engine", "--wait", "--timeout=300s"];
    let said = run(kubectl_ocm("install", keeper).args(always).args(flags));
    assert_eq!(said.code, Some(0), "{flags:?}: {said:?}");
}

/// Has a cluster join that a policy approves.
fn joins(hub: &Hub, name: &str) -> String {
    let request = hub.join(name);
    until_within(PODS, &format!("{name} joins"), String::new, || hub.accepts(name));
    assert!(hub.is("Approved", &request), "{name}");
    request
}

/// The modules of the policies of which a decision is recorded, as `policy replay` is told them.
fn modules(registrations: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let of = |status: &Value| {
        let record: Value = serde_json::from_str(status["decision"]["record"].as_str()?).ok()?;
        let policy = record["policy"]["name"].as_str()?;
        let module = if policy == "approves" { "allowed-identities" } else { policy };
        Some(format!("--policy={policy}={module}"))
    };
    registrations.values().filter_map(of).collect()
}

/// The hub starts without the webhook, starts its pods, and whoever waits for them goes on without a person.
pub(super) fn a_hub_that_was_switched_off_starts_its_policy_engine_and_joins_go_on() {
    let hub = hub("engine-off");
    install(&keeper(&hub), &["--image", IMAGE]);
    approve_auto(&hub);
    joins(&hub, "auto-1");

    // Nobody starts again what runs in pods.
    let stop = |daemon: &str| hub.cluster.stop(daemon).expect("it is stopped");
    stop("kubelet");
    kill_processes_of(&pod_names(&hub));
    DAEMONS.into_iter().for_each(stop);
    sleep(Duration::from_secs(2));
    let start = |daemon: &str| hub.cluster.start_again(daemon).expect("it starts");
    start("etcd");
    hub.cluster.start_api_server().expect("it is ready");
    DAEMONS.into_iter().rev().filter(|daemon| !["etcd", "kube-apiserver"].contains(daemon)).for_each(start);
    assert!(they_wait(&hub));
    start("kubelet");
    comes_back(&hub, 1, GIVES_UP);
    joins(&hub, "auto-2");
}

/// As an upgrade does it, and while clusters register: what was decided is decided so by each program, and meanwhile whoever is
/// right passes, and whoever is wrong does not.
pub(super) fn the_engines_program_is_replaced_and_taken_back_while_clusters_register() {
    let hub = hub("engine-next");
    load_image_as(&hub.cluster, NEXT);
    let keeper = keeper(&hub);
    install(&keeper, &["--image", IMAGE, "--replicas=1"]);
    // One that a policy approves, and one that nobody does.
    approve_auto(&hub);
    let request = joins(&hub, "auto-0");
    hub.join("c0");
    until_within(PODS, "both are decided", String::new, || {
        registration(&hub, "auto-0")["keys"].is_array() && registration(&hub, "c0")["waitingFor"].is_string()
    });
    let is_issued = || hub.request(&request).status.is_some_and(|status| status.certificate.is_some());
    until_within(PODS, "auto-0 has its certificate", String::new, is_issued);
    let mut before = registrations(&hub);
    until_within(PODS, "all of it is noted", String::new, || {
        sleep(Duration::from_secs(5));
        let earlier = std::mem::replace(&mut before, registrations(&hub));
        earlier == before
    });
    let viewer = user_with(&hub.cluster, "viewer", &["policy-list.yaml"]);
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let lease = ["lease", "ocm-policy-controller", "--namespace=ocm-policy-engine"];
    let holder = || text(&object(&hub.cluster, &lease), "/spec/holderIdentity");
    hub.cluster.kubectl(&["create", "namespace", "foreign"]).expect("it is made");
    for (image, last) in [(NEXT, "auto-next"), (IMAGE, "auto-back")] {
        let (ended, mut tries, mut wrong) = (AtomicBool::new(false), 0, Vec::new());
        scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    tries += 1;
                    wrong.extend(refused(&hub, "new"));
                    // Of namespaces the webhook alone knows.
                    let foreign = refused(&hub, "foreign").unwrap_or_else(|| "it passed".to_owned());
                    wrong.extend(Some(foreign).filter(|why| !why.contains("(NamespaceTaken)")));
                    sleep(Duration::from_millis(50));
                }
            });
            let _ends = Ends(&ended);
            install(&keeper, &["--image", image]);
            // Those of before have ended.
            let is_new = |pod: &Value| text(pod, "/spec/containers/0/image") == image;
            until_within(PODS, "its pods run", String::new, || pods(&hub).len() == 2 && pods(&hub).iter().all(is_new));
        });
        assert!(tries > 10 && wrong.is_empty(), "{image}, {tries}: {wrong:?}");
        // Whoever acts now has looked at all of them.
        let is_its = || pod_names(&hub).iter().any(|name| holder().starts_with(name));
        until_within(PODS, "its controller acts", holder, is_its);
        joins(&hub, last);
        let now = registrations(&hub);
        for (name, status) in &before {
            assert_eq!(now.get(name), Some(status), "{image}, {name}");
        }
        // By the modules of this program, which decide as the recorded ones did.
        let modules = modules(&now);
        assert!(!modules.is_empty(), "nothing is recorded");
        let said = run(kubectl_ocm("policy", &viewer).args(["replay", "--since=1h"]).args(&modules));
        assert!(said.code == Some(0) && said.stderr.contains("would be the same"), "{image}: {said:?}");
    }
}
