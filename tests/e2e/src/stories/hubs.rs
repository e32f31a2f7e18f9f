//! A cluster goes from one hub to another: it leaves the one, and nothing of it stays there, before it joins the other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::{Cluster, Spec};

use crate::join_support::{alone, hub, hub_access, join};
use crate::residue::{nothing_stays, sweep};
use crate::upgrade_support::AGENT;
use crate::{bundle, kubectl_ocm, object, run, settled, unchanged};

/// Its name on either hub.
const NAME: &str = "moving";

/// The address of the hub in a kubeconfig of the agent.
fn address(cluster: &Cluster, secret: &str) -> String {
    let secret = object(cluster, &["secret", secret, "--namespace", AGENT]);
    let text = STANDARD.decode(secret["data"]["kubeconfig"].as_str().expect("a kubeconfig")).expect("base64");
    let kubeconfig = ocm_flows::hub::parse(&String::from_utf8(text).expect("text"));
    kubeconfig.expect("a kubeconfig").hub.server
}

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
        for words in ["has joined another hub", hub.server(), "nothing was changed", "kubectl ocm unjoin moving"] {
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
