//! A cluster that has joined goes from two agents to one and back: it gets one new certificate, for the name of the one agent, and
//! of the former agents nothing is left that could hold up others.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use control_plane::{Cluster, Spec};
use ocm_api::names::signers;
use serde_json::Value;

use super::killed;
use crate::grpc_hub::{is_available, issued};
use crate::join_support::{alone, bring, hub};
use crate::residue::{nothing_stays, sweep};
use crate::roles::user_with;
use crate::upgrade_support::AGENT;
use crate::{Said, bundle, kubectl_ocm, object, run, settled, unchanged, until_within};

/// Its name on the hub.
const NAME: &str = "modes";

/// A mode as it is typed, as a Klusterlet names it, and the Deployments and leader leases of its agents.
struct Mode {
    typed: &'static str,
    word: &'static str,
    agents: &'static [&'static str],
    leases: &'static [&'static str],
}

const DEFAULT: Mode = Mode {
    typed: "--mode=default",
    word: "Default",
    agents: &["klusterlet-registration-agent", "klusterlet-work-agent"],
    leases: &["registration-agent-lock", "work-agent-lock"],
};
const SINGLETON: Mode =
    Mode { typed: "--singleton", word: "Singleton", agents: &["klusterlet-agent"], leases: &["klusterlet-agent-lock"] };

/// The names of the objects of a kind beside the agents.
fn names(cluster: &Cluster, kind: &str) -> Vec<String> {
    let list = object(cluster, &[kind, "--namespace", AGENT]);
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// Since when the hub says that the cluster is available, as which object, and how many certificates its agent has got.
fn known(hub: &Cluster) -> (Value, Value, usize) {
    let cluster = object(hub, &["managedcluster", NAME]);
    let conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
    let mut available = conditions.filter(|one| one["type"] == "ManagedClusterConditionAvailable");
    let since = available.next().expect("it has come as far as that")["lastTransitionTime"].clone();
    (since, cluster["metadata"]["uid"].clone(), issued(hub, NAME, signers::KUBE_APISERVER_CLIENT))
}

/// It has the agents of this mode and no others, and the lease of no others.
fn is_in(cluster: &Cluster, mode: &Mode) {
    assert_eq!(names(cluster, "deployments"), mode.agents);
    let leases = || names(cluster, "leases").into_iter().filter(|name| name.ends_with("-lock")).collect::<Vec<_>>();
    // A work agent may begin after the cluster is available.
    let told = || format!("there are {:?}", leases());
    until_within(Duration::from_secs(90), "its agents lead, and no others", told, || leases() == mode.leases);
    let klusterlet = object(cluster, &["klusterlet", "klusterlet"]);
    let said = klusterlet.pointer("/spec/deployOption/mode").and_then(Value::as_str);
    assert_eq!(said, Some(mode.word));
}

pub(super) fn a_cluster_goes_from_two_agents_to_one_and_back() {
    let _alone = alone();
    let hub = hub();
    let cluster = Cluster::start(&Spec::node("modes")).expect("a cluster");
    let on_hub = user_with(hub, "mover", &["join-hub.yaml", "accept.yaml", "detach.yaml", "leave-namespaces.yaml"]);
    let here = user_with(&cluster, "mover", &["join.yaml", "unjoin.yaml", "leave-namespaces.yaml"]);
    let access = format!("--hub-kubeconfig={}", on_hub.display());
    let before = (sweep(&cluster), sweep(hub));
    let command = |flags: &[&str]| -> Command {
        let mut command = kubectl_ocm("join", &here);
        command.args([NAME, &access, "--timeout=8m", "--bundle-version", bundle()]).args(flags);
        command
    };
    let join = |flags: &[&str]| -> Said { run(&mut command(flags)) };

    is_available(hub, NAME, &join(&["--accept", "--wait"]));
    is_in(&cluster, &DEFAULT);
    bring(hub, NAME, "brought");
    let mut at_first = known(hub);
    // The one agent has a name of its own, which it keeps.
    for (mode, other, anew) in
        [(&DEFAULT, &SINGLETON, true), (&SINGLETON, &DEFAULT, false), (&DEFAULT, &SINGLETON, false)]
    {
        // In its own mode, and in none, it stays as it is; a trial changes nothing either.
        let there = settled(&cluster);
        for flags in [&[mode.typed][..], &[]] {
            let said = join(flags);
            assert!(said.code == Some(0) && said.stderr.contains("already; nothing is changed"), "{said:?}");
        }
        let certificate = if anew { "would ask for a new certificate" } else { "would keep its certificate" };
        let sentence = format!("its agent would go from mode {} to {}, and {certificate}", mode.word, other.word);
        for (flag, code) in [("--dry-run", 0), ("--dry-run=server", 0), ("--diff", 3)] {
            let said = join(&[other.typed, flag]);
            assert!(said.code == Some(code) && said.stderr.contains(&sentence), "{flag}: {said:?}");
        }
        unchanged(&cluster, &there, "nothing is changed");
        refused(hub, &cluster, &on_hub);

        // There it is killed at every step, and back it comes in one go.
        if anew {
            let (kills, said) = killed::at_every_step(|| command(&[other.typed, "--accept", "--wait"]));
            assert!(said.code == Some(0) && kills > 3, "killed {kills} times: {said:?}");
            let now = known(hub);
            assert!(now.2 > at_first.2, "it has a new certificate");
            at_first.2 = now.2;
        } else {
            let said = join(&[other.typed, "--wait"]);
            is_available(hub, NAME, &said);
            let sentence = format!("its agent goes from mode {} to {}, and keeps", mode.word, other.word);
            assert!(said.stderr.contains(&sentence), "{said:?}");
        }
        is_in(&cluster, other);
        assert_eq!(
            known(hub),
            at_first,
            "it was the same cluster all along, always available, and asked for nothing else"
        );
        // What works had put there is there, and the new agent brings more.
        assert!(cluster.kubectl(&["get", "configmap", "brought", "--namespace=default"]).is_ok());
        bring(hub, NAME, &format!("brought-in-{}-{anew}", other.word.to_lowercase()));
    }

    let said = run(kubectl_ocm("unjoin", &here).args([NAME, "--yes", &access]));
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(&cluster, &before.0);
    nothing_stays(hub, &before.1);
}

/// To a hosted mode it is not moved, and nothing is changed on the cluster that would host it.
fn refused(hub: &Cluster, cluster: &Cluster, on_hub: &Path) {
    let access = format!("--hub-kubeconfig={}", on_hub.display());
    let managed = format!("--managed-kubeconfig={}", cluster.kubeconfig().display());
    let there = sweep(hub);
    let mut command = kubectl_ocm("join", hub.kubeconfig());
    let said = run(command.args([NAME, "--mode=hosted", &access, &managed, "--bundle-version", bundle()]));
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("is not moved to a hosted mode as it is: unjoin it first"), "{said:?}");
    assert_eq!(sweep(hub), there);
}
