//! What is killed at every step is gone on with: it comes to the right end, twice is as good as once, and nothing is left.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use control_plane::{Cluster, Spec};
use serde_json::{Value, json};

use super::killed;
use crate::grpc_hub::{GRPC, driver, exposed, has_file_for_grpc, runs, serve};
use crate::join_support::{alone, hub};
use crate::residue::{nothing_stays, sweep};
use crate::roles::user_with;
use crate::upgrade_support::{AGENT, all_are, joined, named_are, settings};
use crate::{Said, bundle, earlier_bundle, kubectl_ocm, object, run, settled, unchanged};

/// The fewest steps that a command has which reads, changes and waits: one that is killed less often says nothing.
const FEW: usize = 6;

/// What joining and leaving needs on the hub.
const ON_HUB: [&str; 4] = ["join-hub.yaml", "accept.yaml", "detach.yaml", "leave-namespaces.yaml"];
/// What a hub needs from its installation to its end.
const KEEPING: [&str; 5] =
    ["install.yaml", "install-expose-grpc.yaml", "upgrade-hub.yaml", "uninstall-hub.yaml", "leave-namespaces.yaml"];
/// What joining and leaving needs on a managed cluster.
const HERE: [&str; 3] = ["join.yaml", "unjoin.yaml", "leave-namespaces.yaml"];

fn access(kubeconfig: &Path) -> String {
    format!("--hub-kubeconfig={}", kubeconfig.display())
}

/// A command with its words.
fn command(verb: &str, kubeconfig: &Path, words: &[&str]) -> Command {
    let mut command = kubectl_ocm(verb, kubeconfig);
    command.args(words);
    command
}

/// Kills it at every step, and has it come to its end.
#[expect(clippy::print_stdout, reason = "who waits for a story sees how far it is")]
fn killed_at_every_step(verb: &str, kubeconfig: &Path, words: &[&str]) -> Said {
    let (kills, said) = killed::at_every_step(|| command(verb, kubeconfig, words));
    println!("  {verb}: killed {kills} times");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(kills >= FEW, "it was killed {kills} times: {said:?}");
    said
}

/// Once more, it has nothing to do and says so.
fn is_done(cluster: &Cluster, verb: &str, kubeconfig: &Path, words: &[&str], told: &str) {
    let before = settled(cluster);
    let said = run(&mut command(verb, kubeconfig, words));
    assert!(said.code == Some(0) && said.stderr.contains(told), "{told}: {said:?}");
    unchanged(cluster, &before, &said);
}

fn names(cluster: &Cluster, kind: &str) -> Vec<String> {
    let list = object(cluster, &[kind]);
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// The cluster is available on the hub, under this name alone, and has this one Klusterlet.
fn is_joined_once(hub: &Cluster, before: &[String], cluster: &Cluster, name: &str, klusterlet: &str) {
    let managed = format!("managedcluster/{name}");
    let wait = ["wait", &managed, "--for=condition=ManagedClusterConditionAvailable", "--timeout=1s"];
    hub.kubectl(&wait).expect("the hub says that it is available");
    assert_eq!(names(cluster, "klusterlets"), [klusterlet]);
    let mut after = names(hub, "managedclusters");
    after.retain(|other| !before.contains(other));
    assert_eq!(after, [name]);
}

/// It leaves, killed at every step, and nothing stays on either side.
fn leaves(hub: &Cluster, cluster: &Cluster, here: &Path, words: &[&str], before: &[BTreeSet<String>; 2]) {
    killed_at_every_step("unjoin", here, words);
    nothing_stays(cluster, &before[0]);
    nothing_stays(hub, &before[1]);
    let said = run(&mut command("unjoin", here, words));
    assert!(said.code == Some(0) && said.stderr.contains("there is no agent"), "{said:?}");
}

pub(super) fn a_join_and_an_unjoin_that_are_killed_at_every_step_are_gone_on_with() {
    let _alone = alone();
    let hub = hub();
    let cluster = Cluster::start(&Spec::node("killed")).expect("a cluster");
    let (here, on_hub) = (user_with(&cluster, "killed", &HERE), user_with(hub, "killed", &ON_HUB));
    let (access, before) = (access(&on_hub), [sweep(&cluster), sweep(hub)]);
    let others = names(hub, "managedclusters");
    let words = ["killed", &access, "--accept", "--wait", "--bundle-version", bundle()];
    killed_at_every_step("join", &here, &words);
    is_joined_once(hub, &others, &cluster, "killed", "klusterlet");
    is_done(&cluster, "join", &here, &words, "already; nothing is changed");

    // Its works go first.
    let manifest =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "brought", "namespace": "default"}});
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "brought", "namespace": "killed"}, "spec": {"workload": {"manifests": [manifest]}}});
    let file = hub.dir().expect("a folder").join("killed-work.json");
    std::fs::write(&file, work.to_string()).expect("written");
    hub.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("it is stored");
    let applied = ["wait", "manifestwork/brought", "--namespace=killed", "--for=condition=Applied", "--timeout=120s"];
    hub.kubectl(&applied).expect("the agent applies it");
    leaves(hub, &cluster, &here, &["killed", "--yes", &access], &before);
}

pub(super) fn a_join_over_grpc_that_is_killed_at_every_step_is_gone_on_with() {
    let clusters = Cluster::start_all(&["killed-hub", "killed-grpc"].map(Spec::node)).expect("the clusters start");
    let [hub, cluster] = clusters.as_slice() else { panic!("two were asked for") };
    serve(hub);
    let (here, on_hub) = (
        user_with(cluster, "killed", &HERE),
        user_with(hub, "killed", &[&ON_HUB[..], &["join-hub-grpc.yaml"]].concat()),
    );
    let (access, before) = (access(&on_hub), [sweep(cluster), sweep(hub)]);
    let words = ["over-grpc", &access, GRPC, "--accept", "--wait", "--timeout=8m", "--bundle-version", bundle()];
    killed_at_every_step("join", &here, &words);
    is_joined_once(hub, &[], cluster, "over-grpc", "klusterlet");
    assert_eq!((driver(cluster), has_file_for_grpc(cluster)), (json!({"authType": "grpc"}), [true, true]));
    is_done(cluster, "join", &here, &words, "already; nothing is changed");
    leaves(hub, cluster, &here, &["over-grpc", "--yes", &access], &before);
}

/// Secrets with a token of the operator's account on a cluster that is managed from another one.
fn tokens(guest: &Cluster, klusterlet: &str) -> usize {
    let list = object(guest, &["secrets", "--namespace", klusterlet]);
    let is_token =
        |secret: &&Value| secret["metadata"]["annotations"]["kubernetes.io/service-account.name"] == klusterlet;
    list["items"].as_array().map_or(0, |all| all.iter().filter(is_token).count())
}

pub(super) fn a_hosted_join_that_is_killed_at_every_step_is_gone_on_with() {
    let _alone = alone();
    let hub = hub();
    let clusters = Cluster::start_all(&["killed-host", "killed-guest"].map(Spec::node)).expect("the clusters start");
    let [host, guest] = clusters.as_slice() else { panic!("two were asked for") };
    let (here, on_hub) = (user_with(host, "hosting", &HERE), user_with(hub, "hosting", &ON_HUB));
    let managing = user_with(guest, "managing", &["join-hosted.yaml"]);
    let (access, before) = (access(&on_hub), [sweep(host), sweep(guest), sweep(hub)]);
    let others = names(hub, "managedclusters");
    let managed = format!("--managed-kubeconfig={}", managing.display());
    let words = [
        "guest",
        "--mode=hosted",
        &managed,
        &access,
        "--accept",
        "--wait",
        "--timeout=8m",
        "--bundle-version",
        bundle(),
    ];
    let klusterlet = "klusterlet-hosted-guest";
    killed_at_every_step("join", &here, &words);
    is_joined_once(hub, &others, host, "guest", klusterlet);
    // Every run makes a token of its own, and revokes those of before.
    assert_eq!(tokens(guest, klusterlet), 1);
    let said = run(&mut command("join", &here, &words));
    assert!(said.code == Some(0) && said.stderr.contains("nothing else is changed"), "{said:?}");
    assert_eq!(tokens(guest, klusterlet), 1);

    let said = run(&mut command("unjoin", &here, &["guest", "--yes", &access]));
    assert_eq!(said.code, Some(0), "{said:?}");
    for (cluster, before) in [host, guest, hub].into_iter().zip(&before) {
        nothing_stays(cluster, before);
    }
}

pub(super) fn an_upgrade_that_is_killed_at_every_step_is_gone_on_with() {
    let _alone = alone();
    let hub = hub();
    let cluster = Cluster::start(&Spec::node("upgraded")).expect("a cluster");
    let here = user_with(&cluster, "upgraded", &["upgrade-klusterlet.yaml", "unjoin.yaml", "leave-namespaces.yaml"]);
    let on_hub = user_with(hub, "upgraded", &["upgrade-klusterlet-hub.yaml", "detach.yaml", "leave-namespaces.yaml"]);
    let (access, before) = (access(&on_hub), [sweep(&cluster), sweep(hub)]);
    let others = names(hub, "managedclusters");
    joined(&cluster, "upgraded");
    let mine = json!({"spec": {"workConfiguration": {"kubeAPIQPS": 60, "kubeAPIBurst": 120}}}).to_string();
    cluster.kubectl(&["patch", "klusterlet", "klusterlet", "--type=merge", "--patch", &mine]).expect("patched");
    let kept = settings(&cluster, "klusterlet", "klusterlet");
    named_are(&cluster, "klusterlet", "klusterlet", earlier_bundle());
    let words = ["klusterlet", "--wait", &access];
    killed_at_every_step("upgrade", &here, &words);
    named_are(&cluster, "klusterlet", "klusterlet", bundle());
    all_are(&cluster, AGENT, bundle());
    all_are(&cluster, "open-cluster-management", bundle());
    assert_eq!(settings(&cluster, "klusterlet", "klusterlet"), kept);
    is_joined_once(hub, &others, &cluster, "upgraded", "klusterlet");
    is_done(&cluster, "upgrade", &here, &words, "is up to date");
    leaves(hub, &cluster, &here, &["upgraded", "--yes", &access], &before);
}

pub(super) fn a_hub_that_is_installed_upgraded_and_uninstalled_and_killed_at_every_step_ends_as_it_should() {
    let hub = Cluster::start(&Spec::node("killed-for-life")).expect("a cluster");
    let keeper = user_with(&hub, "keeper", &KEEPING);
    let before = sweep(&hub);
    let exposed = exposed(&hub);
    let flags = exposed.iter().map(String::as_str);
    let words: Vec<&str> =
        ["hub", "--wait", "--timeout=8m", "--bundle-version", earlier_bundle()].into_iter().chain(flags).collect();
    killed_at_every_step("install", &keeper, &words);
    runs(&hub);
    is_done(&hub, "install", &keeper, &words, "kubectl ocm token create");
    assert_eq!(names(&hub, "clustermanagers"), ["cluster-manager"]);
    named_are(&hub, "clustermanager", "cluster-manager", earlier_bundle());

    // Nothing that was set is lost on the way, the address of the gRPC server and people's own settings neither.
    let mine = json!({"spec": {
        "nodePlacement": {"tolerations": [{"key": "infra", "operator": "Exists"}]},
        "registrationConfiguration": {"autoApproveUsers": ["someone"]},
    }})
    .to_string();
    hub.kubectl(&["patch", "clustermanager", "cluster-manager", "--type=merge", "--patch", &mine]).expect("patched");
    let kept = settings(&hub, "clustermanager", "cluster-manager");
    assert!(kept.to_string().contains("endpointsExposure"), "{kept:#}");
    let words = ["hub", "--wait", "--timeout=8m", "--bundle-version", bundle()];
    killed_at_every_step("upgrade", &keeper, &words);
    named_are(&hub, "clustermanager", "cluster-manager", bundle());
    all_are(&hub, "open-cluster-management-hub", bundle());
    all_are(&hub, "open-cluster-management", bundle());
    assert_eq!(settings(&hub, "clustermanager", "cluster-manager"), kept);
    assert_eq!(names(&hub, "clustermanagers"), ["cluster-manager"]);
    is_done(&hub, "upgrade", &keeper, &words, "is up to date");

    // What clusters would register with goes along.
    let said = run(&mut command("token", hub.kubeconfig(), &["create", "--kind=bootstrap", "--cluster-set=default"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let words = ["hub", "--yes", "--timeout=8m"];
    killed_at_every_step("uninstall", &keeper, &words);
    nothing_stays(&hub, &before);
    let said = run(&mut command("uninstall", &keeper, &words));
    assert!(said.code == Some(0) && said.stderr.contains("there is no hub"), "{said:?}");
}
