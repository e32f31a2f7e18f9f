//! A cluster goes from one hub to another: it leaves the one, and nothing of it stays there, before it joins the other; or it is taken
//! there by one command, and what works have applied stays.

use std::time::Duration;

use control_plane::{Cluster, Spec};
use serde_json::json;

use super::killed;
use crate::grpc_hub::{GRPC, driver, serve};
use crate::hub_change_support::{self as support, Hubs, address, brought, grace, install};
use crate::join_support::{alone, bring, hub, hub_access, join};
use crate::residue::{nothing_stays, sweep};
use crate::{Said, bundle, kubectl_ocm, run, settled, unchanged, until_within};

/// Its name on either hub.
const NAME: &str = "moving";

/// It joins this hub, and then no other one.
fn joins(cluster: &Cluster, hub: &Cluster, other: &Cluster) {
    let said = join(cluster, NAME, &[hub_access(hub).as_str(), "--accept", "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.ends_with("/moving available\n"), "{said:?}");
    for secret in ["bootstrap-hub-kubeconfig", "hub-kubeconfig-secret"] {
        assert_eq!(address(cluster, secret), hub.server(), "{secret}");
    }
    let before = (settled(cluster), settled(other));
    for flags in [&["--accept", "--wait"][..], &["--dry-run"], &["--diff"]] {
        let access = hub_access(other);
        let said = join(cluster, NAME, &[&[access.as_str()], flags].concat());
        assert_eq!(said.code, Some(3), "{said:?}");
        for words in [
            "has joined another hub",
            hub.server(),
            "nothing was changed",
            "--former-hub-context",
            "kubectl ocm unjoin moving",
        ] {
            assert!(said.stderr.contains(words), "no {words:?} in {}", said.stderr);
        }
    }
    unchanged(cluster, &before.0, "the cluster");
    unchanged(other, &before.1, "the other hub");
}

fn leaves(cluster: &Cluster, hub: &Cluster) {
    let said = run(kubectl_ocm("unjoin", cluster.kubeconfig()).args([NAME, "--yes", &hub_access(hub)]));
    assert_eq!(said.code, Some(0), "{said:?}");
}

pub(super) fn a_cluster_goes_from_one_hub_to_another_and_back() {
    let _alone = alone();
    let hub = hub();
    let clusters = Cluster::start_all(&["other-hub", "moving"].map(Spec::node)).expect("the clusters start");
    let [other, cluster] = clusters.as_slice() else { panic!("two were asked for") };
    let said = run(kubectl_ocm("install", other.kubeconfig()).args(["hub", "--wait", "--bundle-version", bundle()]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let before = [hub, other, cluster].map(sweep);
    for (to, not) in [(hub, other), (other, hub), (hub, other)] {
        joins(cluster, to, not);
        leaves(cluster, to);
        for (cluster, before) in [hub, other, cluster].into_iter().zip(&before) {
            nothing_stays(cluster, before);
        }
    }
}

/// The fewest steps of a command that checks three clusters, changes two, and waits: one that is killed less often says nothing.
const FEW: usize = 8;

/// How long what works of a former hub have applied may take to go: its time, and that of an agent that looks again.
const EVICTION: Duration = Duration::from_secs(600);

fn is_available(said: &Said) {
    assert!(said.code == Some(0) && said.stdout.ends_with("/going available\n"), "{said:?}");
}

#[expect(clippy::print_stdout, reason = "who waits for a story sees how far it is")]
pub(super) fn a_cluster_is_taken_from_one_hub_to_another_and_back_by_commands_that_are_killed_at_every_step() {
    let (_values, grace) = grace("5m");
    let hubs = Hubs::start(install, &[&grace], (&[], &[]));
    let before = hubs.all().map(sweep);
    is_available(&run(&mut hubs.to(0, &["--accept", "--wait"])));
    bring(&hubs.hubs[0], support::NAME, "of-both");
    let at_first = brought(&hubs.cluster, "of-both");
    assert!(at_first.is_some());

    // Nobody lets it in: a join to its hub leads back, with the certificate that it has, and without an acceptance.
    let said = run(&mut hubs.to(1, &[&hubs.former(0)]));
    assert!(said.code == Some(0) && said.stderr.contains("when it is available at the new one"), "{said:?}");
    is_available(&run(&mut hubs.to(0, &["--wait=available"])));
    hubs.is_at(0);
    if hubs.is_known(1) {
        let words = [support::NAME, "--force", "--yes", "--timeout=10s"];
        let said = run(kubectl_ocm("detach", hubs.hubs[1].kubeconfig()).args(words));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    nothing_stays(&hubs.hubs[1], &before[1]);
    assert_eq!(brought(&hubs.cluster, "of-both"), at_first, "it ran all along");
    for (from, to) in [(0, 1), (1, 0)] {
        let (own, former) = (format!("of-{from}"), hubs.former(from));
        bring(&hubs.hubs[from], support::NAME, &own);
        let flags = [former.as_str(), "--accept", "--wait"];
        let tried = [former.as_str(), "--accept", "--dry-run=server"];
        // Without a wait nothing would go yet.
        let said = hubs.changes_nothing(hubs.to(to, &tried), 0, &["when it is available at the new one"]);
        assert!(!said.stdout.contains("deleted"), "{said:?}");
        let tried = [former.as_str(), "--accept", "--wait", "--dry-run=server"];
        let said = hubs.changes_nothing(hubs.to(to, &tried), 0, &["would go from the hub at", "stays for 5m"]);
        for row in [
            "secret/bootstrap-hub-kubeconfig configured (server dry run)\n",
            "managedcluster.cluster.open-cluster-management.io/going deleted (server dry run) (former hub, ",
            "namespace/going deleted (server dry run) (former hub, ",
        ] {
            assert!(said.stdout.contains(row), "no {row:?} in {said:?}");
        }

        let said = run(&mut hubs.to(to, &[former.as_str(), "--singleton"]));
        assert!(said.code == Some(3) && said.stderr.contains("another mode was typed, too"), "{said:?}");

        let (kills, said) = killed::at_every_step(|| hubs.to(to, &flags));
        println!("  to hub {to}: killed {kills} times");
        assert!(said.code == Some(0) && kills >= FEW, "killed {kills} times: {said:?}");
        hubs.is_at(to);
        assert_eq!(brought(&hubs.cluster, "of-both"), at_first, "it ran all along");
        bring(&hubs.hubs[to], support::NAME, "of-both");
        nothing_stays(&hubs.hubs[from], &before[from]);

        // What both bring is the same, and what the former hub has brought alone goes when its time is over.
        hubs.changes_nothing(hubs.to(to, &flags), 0, &["already; nothing is changed"]);
        hubs.forgets_all_but(to, EVICTION);
        until_within(EVICTION, "what the former hub has brought goes", String::new, || {
            brought(&hubs.cluster, &own).is_none()
        });
        assert_eq!(brought(&hubs.cluster, "of-both"), at_first);
    }
    hubs.leaves(0);
    for (cluster, before) in hubs.all().into_iter().zip(&before) {
        nothing_stays(cluster, before);
    }
}

pub(super) fn a_cluster_over_grpc_is_taken_to_another_hub_and_comes_back_by_the_api_server() {
    let (_values, grace) = grace("30s");
    let hubs = Hubs::start(serve, &["--singleton", &grace], (&["join-hub-grpc.yaml"], &["join-grpc.yaml"]));
    let before = hubs.all().map(sweep);
    is_available(&run(&mut hubs.to(0, &[GRPC, "--accept", "--wait"])));
    bring(&hubs.hubs[0], support::NAME, "over-grpc");

    // It stays with its driver where none is typed, at the server of the other hub.
    is_available(&run(&mut hubs.to(1, &[&hubs.former(0), "--accept", "--wait"])));
    hubs.is_at(1);
    assert_eq!(driver(&hubs.cluster), json!({"authType": "grpc"}));
    nothing_stays(&hubs.hubs[0], &before[0]);
    bring(&hubs.hubs[1], support::NAME, "over-grpc-again");

    is_available(&run(&mut hubs.to(0, &[&hubs.former(1), "--registration-auth=csr", "--accept", "--wait"])));
    hubs.is_at(0);
    assert_eq!(driver(&hubs.cluster), json!({"authType": "csr"}));
    nothing_stays(&hubs.hubs[1], &before[1]);
    bring(&hubs.hubs[0], support::NAME, "by-the-api-server");
    hubs.forgets_all_but(0, EVICTION);
    hubs.leaves(0);
    for (cluster, before) in hubs.all().into_iter().zip(&before) {
        nothing_stays(cluster, before);
    }
}

pub(super) fn a_hosted_cluster_is_taken_from_one_hub_to_another() {
    let names = ["hosted-hub", "hosted-other", "hosted-host", "hosted-guest"];
    let clusters = Cluster::start_all(&names.map(Spec::node)).expect("the clusters start");
    let [one, other, host, guest] = clusters.as_slice() else { panic!("four were asked for") };
    std::thread::scope(|scope| {
        for hub in [one, other] {
            scope.spawn(move || install(hub));
        }
    });
    let before = [one, other, host, guest].map(sweep);
    let (_values, grace) = grace("30s");
    let managed = format!("--managed-kubeconfig={}", guest.kubeconfig().display());
    let to = |hub: &Cluster, flags: &[&str]| {
        let access = hub_access(hub);
        let own = ["--mode=hosted", &managed, &access, &grace, "--timeout=8m", "--accept", "--wait"];
        join(host, support::NAME, &[&own[..], flags].concat())
    };
    is_available(&to(one, &[]));
    bring(one, support::NAME, "brought");
    assert!(brought(guest, "brought").is_some());
    let former = format!("--former-hub-kubeconfig={}", one.kubeconfig().display());
    is_available(&to(other, &[&former]));
    nothing_stays(one, &before[0]);
    bring(other, support::NAME, "brought-by-the-other");
    until_within(EVICTION, "what the former hub has brought goes", String::new, || brought(guest, "brought").is_none());
    assert!(brought(guest, "brought-by-the-other").is_some());
    let said = run(kubectl_ocm("unjoin", host.kubeconfig()).args([support::NAME, "--yes", &hub_access(other)]));
    assert_eq!(said.code, Some(0), "{said:?}");
    for (cluster, before) in [one, other, host, guest].into_iter().zip(&before) {
        nothing_stays(cluster, before);
    }
}
