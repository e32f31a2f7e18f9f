//! The upgrade of many clusters.

use control_plane::{Cluster, Spec};
use serde_json::json;

use crate::join_support::{alone, hub, hub_access};
use crate::upgrade_support::{AGENT, all_are, fleet_file, images, joined, outcomes, upgrade_by};
use crate::{bundle, earlier_bundle, kubectl_ocm, run, until};

pub(super) fn a_fleet_stops_at_the_first_stage_that_does_not_get_there_and_goes_on_from_it() {
    let _alone = alone();
    let clusters = ["fleet-a", "fleet-b"].map(|name| Cluster::start(&Spec::node(name)).expect("a cluster"));
    let [a, b] = &clusters;
    joined(a, "fleet-a");
    joined(b, "fleet-b");
    // Users of kubeconfigs that are used together have names of their own.
    let admin = |cluster: &Cluster, user: &str| cluster.user_kubeconfig(user, &["system:masters"]).expect("a user");
    let both = format!("{}:{}", admin(a, "admin-a").display(), admin(b, "admin-b").display());
    let access = hub_access(hub());
    let folder = a.dir().expect("a folder");
    let clusters = [("fleet-b", b.kubeconfig()), ("fleet-a", a.kubeconfig())];
    let file = fleet_file(folder, hub().kubeconfig(), &clusters);
    let fleet = |flags: &[&str]| {
        let mut command = kubectl_ocm("upgrade", a.kubeconfig());
        command.env("KUBECONFIG", &both).args(["klusterlet", "--stage=1", "--output=json", &access]).args(flags);
        run(&mut command)
    };
    let order = "--contexts=fleet-b,fleet-a";
    let said = fleet(&[order, "--dry-run"]);
    assert_eq!(
        (said.code, outcomes(&said)),
        (Some(0), ["fleet-b 1 WouldUpgrade", "fleet-a 2 WouldUpgrade"].map(str::to_owned).to_vec())
    );
    let said = upgrade_by(&file, &["--stage=1", "--dry-run"]);
    assert_eq!(outcomes(&said), ["fleet-b 1 WouldUpgrade", "fleet-a 2 WouldUpgrade"], "{said:?}");
    all_are(a, AGENT, earlier_bundle());

    // One of which nobody knows anything keeps all from being touched, and so does one that is not the cluster which the file
    // says it is.
    let said = fleet(&["--contexts=fleet-a,nobody"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let wrong = [("fleet-a", a.kubeconfig()), ("other", b.kubeconfig())];
    let wrong = fleet_file(b.dir().expect("a folder"), hub().kubeconfig(), &wrong);
    let said = upgrade_by(&wrong, &[]);
    assert!(said.code == Some(3) && said.stderr.contains("none of the clusters was touched"), "{said:?}");
    all_are(a, AGENT, earlier_bundle());

    b.kubectl(&["taint", "node", "--all", "test=busy:NoSchedule"]).expect("no pod is scheduled there any more");
    for said in [upgrade_by(&file, &["--stage=1", "--timeout=15s"]), fleet(&[order, "--timeout=15s"])] {
        assert_eq!(said.code, Some(124), "{said:?}");
        assert_eq!(outcomes(&said), ["fleet-b 1 Failed", "fleet-a 2 NotTried"], "{said:?}");
        assert!(said.stderr.contains("one cluster of a later stage was not touched"), "{said:?}");
        all_are(a, AGENT, earlier_bundle());
    }

    b.kubectl(&["taint", "node", "--all", "test-"]).expect("pods are scheduled there again");
    // It goes on by the file, as well as by contexts.
    let said = upgrade_by(&file, &["--stage=1"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(outcomes(&said), ["fleet-b 1 Upgraded", "fleet-a 2 Upgraded"], "{said:?}");
    let said = fleet(&[order]);
    assert_eq!(outcomes(&said), ["fleet-b 1 UpToDate", "fleet-a 2 UpToDate"], "{said:?}");
    all_are(a, AGENT, bundle());
    until("the pods of before have ended", || images(b, AGENT).iter().all(|image| image.ends_with(bundle())));

    // By sets of the hub, of which one is left out.
    let set = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": "canary"}, "spec": {}});
    let file = a.dir().expect("a folder").join("set.json");
    std::fs::write(&file, set.to_string()).expect("written");
    hub().kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("made");
    let label = "cluster.open-cluster-management.io/clusterset=canary";
    hub().kubectl(&["label", "--overwrite", "managedcluster", "fleet-a", label]).expect("labelled");
    let said = fleet(&[order, "--cluster-sets=canary"]);
    assert_eq!((said.code, outcomes(&said)), (Some(0), vec!["fleet-a 1 UpToDate".to_owned()]), "{said:?}");
    assert!(said.stderr.contains("fleet-b is in none of the sets"), "{said:?}");

    // Other stories have the same hub.
    let said = run(kubectl_ocm("detach", hub().kubeconfig()).args(["fleet-a", "fleet-b", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    hub().kubectl(&["delete", "managedclusterset", "canary"]).expect("it goes");
}
