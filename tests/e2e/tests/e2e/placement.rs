//! `kubectl ocm placement` on a real hub: placements are created, waited for, changed, taken over and deleted.
//!
//! `cargo test -p e2e-tests --test e2e placement::`; it needs root.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use control_plane::Cluster;
use e2e_tests::join_support::{alone, hub};
use e2e_tests::manifests::apply_all_client_side;
use e2e_tests::roles::user_with;
use e2e_tests::{Said, kubectl_ocm, object, run, until_within};
use serde_json::{Value, json};

/// How long the hub's controllers may take.
const SLOW: Duration = Duration::from_secs(60);

/// A cluster that has registered and of which nothing was heard: the hub gives it a taint.
fn cluster(name: &str, story: &str, env: &str) -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": {"story": story, "env": env}}, "spec": {"hubAcceptsClient": false}})
}

/// The clusters of a story are in a set of its name, and the hub has given them its taint.
fn registered(hub: &Cluster, story: &str, clusters: &[Value]) {
    apply_all_client_side(hub, "placements", clusters);
    for cluster in clusters {
        let name = cluster["metadata"]["name"].as_str().expect("a name");
        until_within(
            SLOW,
            "the hub gives a cluster of which nothing was heard a taint",
            || object(hub, &["managedcluster", name]).to_string(),
            || object(hub, &["managedcluster", name])["spec"]["taints"].to_string().contains("unreachable"),
        );
    }
    ends(&admin("clusterset", &["create", story]), 0, &[]);
    let names = clusters.iter().filter_map(|cluster| cluster["metadata"]["name"].as_str());
    ends(&admin("clusterset", &["set", story, "--yes"].into_iter().chain(names).collect::<Vec<_>>()), 0, &[]);
    hub.kubectl(&["create", "namespace", &format!("team-{story}")]).expect("it is made");
}

fn admin(verb: &str, words: &[&str]) -> Said {
    run(kubectl_ocm(verb, hub().kubeconfig()).args(words))
}

/// Somebody with exactly the documented rights.
fn somebody() -> &'static Path {
    static USER: OnceLock<PathBuf> = OnceLock::new();
    USER.get_or_init(|| user_with(hub(), "placer-of-clusters", &["placement.yaml"]))
}

fn placement(words: &[&str]) -> Said {
    run(kubectl_ocm("placement", somebody()).args(words))
}

fn ends(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stdout.contains(word) || said.stderr.contains(word), "no {word:?} in {said:?}");
    }
}

fn live(namespace: &str, name: &str) -> Value {
    object(hub(), &["placement", name, "--namespace", namespace])
}

fn is_there(namespace: &str, name: &str) -> bool {
    hub().kubectl(&["get", "placement", name, "--namespace", namespace]).is_ok()
}

/// Whatever it is, it does not change this placement.
fn changes_nothing(namespace: &str, name: &str, words: &[&str]) -> Said {
    // The hub writes its status meanwhile.
    let all_but_status = || {
        let mut live = object(hub(), &["placement", name, "--namespace", namespace, "--show-managed-fields"]);
        live["status"].take();
        live["metadata"]["resourceVersion"].take();
        if let Some(fields) = live["metadata"]["managedFields"].as_array_mut() {
            fields.retain(|entry| entry["subresource"] != "status");
        }
        live
    };
    let before = all_but_status();
    let said = placement(words);
    assert_eq!(all_but_status(), before, "{said:?}");
    said
}

#[test]
fn placements_are_created_waited_for_changed_and_deleted() {
    let _alone = alone();
    let hub = hub();
    registered(hub, "place", &[cluster("pl1", "place", "prod"), cluster("pl2", "place", "dev")]);
    fn create<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["create", "web", "--namespace=team-place"], more].concat()
    }

    // A set has to be bound first.
    let said = placement(&create(&["--cluster-sets=place,default"]));
    ends(
        &said,
        3,
        &[
            "set default, place are not bound to namespace team-place: nothing was changed",
            &format!("kubectl ocm clusterset bind place --namespace team-place --context {}", hub.name()),
        ],
    );
    ends(
        &placement(&create(&["--dry-run"])),
        0,
        &["no set is bound to namespace team-place", "web -n team-place created ("],
    );
    ends(&admin("clusterset", &["bind", "place", "--namespace=team-place"]), 0, &[]);

    // What cannot be meant is told before anything is asked of the hub.
    ends(&placement(&create(&["-l", "env in prod"])), 2, &["--label-selector \"env in prod\" is no selector"]);
    ends(&placement(&create(&["--prioritizer=BuiltIn:Stedy:1"])), 2, &["did you mean Steady?"]);
    ends(&placement(&create(&["--tolerate=a:NoSchedule"])), 2, &["KEY[=VALUE][:EFFECT]"]);
    ends(&placement(&create(&["--count=0"])), 2, &["--count"]);

    // Nothing is done until it is meant.
    let all = ["--cluster-sets=place", "--tolerate-unreachable", "--prioritizer=BuiltIn:Steady:3"];
    for how in ["--dry-run", "--dry-run=server", "--render"] {
        ends(&placement(&create(&[&all[..], &[how]].concat())), 0, &["web"]);
        assert!(!is_there("team-place", "web"), "{how}");
    }
    ends(&placement(&create(&[&all[..], &["--diff"]].concat())), 3, &["kind: Placement"]);
    assert!(!is_there("team-place", "web"));

    // It is there, the hub has decided, and once more it is as it was.
    let said = placement(&create(&[&all[..], &["--wait"]].concat()));
    ends(&said, 0, &["web -n team-place created", "pl1, pl2"]);
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"], &["--wait"]] {
        let words = create(&[&all[..], how].concat());
        ends(&changes_nothing("team-place", "web", &words), 0, &["web -n team-place unchanged"]);
    }
    let words = create(&[&all[..], &["--diff"]].concat());
    ends(&changes_nothing("team-place", "web", &words), 0, &[]);

    // Other flags are another placement: what is not given goes.
    let said = placement(&create(&["-l", "env=prod", "--tolerate-unreachable", "--wait", "--output=json"]));
    ends(&said, 0, &[]);
    let told: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&told["clusters"], told.get("why")), (&json!(["pl1"]), None), "{told}");
    let spec = live("team-place", "web")["spec"].clone();
    assert!(spec.get("clusterSets").is_none() && spec.get("prioritizerPolicy").is_none(), "{spec}");
    let said =
        placement(&create(&["-l", "env=prod", "-l", "env=dev", "--count=1", "--tolerate-unreachable", "--wait"]));
    ends(&said, 0, &["web -n team-place configured", "1/1"]);

    // Why not more.
    let said = placement(&create(&["-l", "env=nowhere", "--tolerate-unreachable", "--wait"]));
    ends(&said, 3, &["2 match no predicate (pl1: label env is \"prod\", not \"nowhere\")"]);
    let said = placement(&create(&["--claim-selector=region in (eu)", "--tolerate-unreachable", "--wait"]));
    ends(&said, 3, &["it has no claim region"]);
    let said = placement(&create(&["--wait"]));
    ends(&said, 3, &["2 have taints that it does not tolerate"]);
    let said = placement(&create(&["--tolerate=cluster.open-cluster-management.io/unreachable:NoSelect", "--wait"]));
    ends(&said, 0, &["pl1, pl2"]);

    // What uses it is told before it goes.
    let addon = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "placed"},
        "spec": {"installStrategy": {"type": "Placements", "placements": [{"namespace": "team-place", "name": "web"}]}}});
    apply_all_client_side(hub, "placements", &[addon]);
    let delete = ["delete", "web", "other", "--namespace=team-place"];
    let used = "placement team-place/web is used by add-on \"placed\", on pl1, pl2";
    for how in ["--dry-run", "--dry-run=server"] {
        let words = [&delete[..], &[how]].concat();
        ends(&changes_nothing("team-place", "web", &words), 0, &[used, "web -n team-place deleted ("]);
    }
    ends(&changes_nothing("team-place", "web", &delete), 2, &[used, "cannot prompt", "--yes"]);
    let said = placement(&[&delete[..], &["--yes"]].concat());
    ends(&said, 0, &["web -n team-place deleted", "no placement team-place/other"]);
    assert!(!is_there("team-place", "web"));
    ends(&placement(&[&delete[..], &["--yes"]].concat()), 0, &["no placement team-place/web"]);
    hub.kubectl(&["delete", "clustermanagementaddon", "placed"]).expect("it goes");
}

#[test]
fn what_somebody_else_has_written_is_not_replaced_unless_it_is_said() {
    let _alone = alone();
    let hub = hub();
    registered(hub, "theirs", &[cluster("th1", "theirs", "prod"), cluster("th2", "theirs", "dev")]);
    ends(&admin("clusterset", &["bind", "theirs", "--namespace=team-theirs"]), 0, &[]);
    let theirs = |name: &str, spec: Value| {
        json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"namespace": "team-theirs", "name": name}, "spec": spec})
    };
    let tolerations = json!([{"key": "cluster.open-cluster-management.io/unreachable", "operator": "Exists"}]);
    let prod = json!([{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}]);
    apply_all_client_side(
        hub,
        "placements",
        &[
            theirs("same", json!({"numberOfClusters": 1, "tolerations": tolerations})),
            theirs("other", json!({"numberOfClusters": 1, "predicates": prod, "tolerations": tolerations})),
        ],
    );
    let create = |name: &'static str, more: &[&'static str]| {
        [&["create", name, "--namespace=team-theirs", "--tolerate-unreachable"], more].concat()
    };

    // The same, whoever wrote it.
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"]] {
        let words = create("same", &[&["--count=1"], how].concat());
        ends(&changes_nothing("team-theirs", "same", &words), 0, &["same -n team-theirs unchanged"]);
    }
    // Something else.
    let refused = ["Placement team-theirs/same was written by kubectl", "nothing was changed", "--overwrite"];
    ends(&changes_nothing("team-theirs", "same", &create("same", &["--count=2"])), 3, &refused);
    ends(&changes_nothing("team-theirs", "other", &create("other", &["--count=1"])), 3, &["was written by kubectl"]);
    for how in ["--dry-run", "--dry-run=server"] {
        let words = create("other", &["--count=2", "--overwrite", how]);
        ends(&changes_nothing("team-theirs", "other", &words), 0, &["other -n team-theirs configured ("]);
    }
    let words = create("other", &["--count=2", "--overwrite", "--diff"]);
    let said = changes_nothing("team-theirs", "other", &words);
    ends(&said, 3, &["-  predicates:"]);

    // It is what the command line says, and nothing of theirs is left.
    let said = placement(&create("other", &["--count=2", "--overwrite", "--wait"]));
    ends(&said, 0, &["other -n team-theirs configured", "th1, th2"]);
    let spec = live("team-theirs", "other")["spec"].clone();
    assert!(spec["predicates"] == json!([]) && spec["numberOfClusters"] == 2, "{spec}");
    ends(
        &changes_nothing("team-theirs", "other", &create("other", &["--count=2"])),
        0,
        &["other -n team-theirs unchanged"],
    );
    // From now on it is ours: also what they had set, goes with its flag.
    let said = placement(&["create", "other", "--namespace=team-theirs"]);
    ends(&said, 0, &["other -n team-theirs configured"]);
    let spec = live("team-theirs", "other")["spec"].clone();
    assert!(spec.get("numberOfClusters").is_none() && spec.get("tolerations").is_none(), "{spec}");
    ends(
        &placement(&["delete", "same", "other", "--namespace=team-theirs", "--yes"]),
        0,
        &["same -n team-theirs deleted"],
    );
}

#[test]
fn somebody_of_one_namespace_is_told_what_they_may_know() {
    let _alone = alone();
    let hub = hub();
    registered(hub, "local", &[cluster("lo1", "local", "prod")]);
    ends(&admin("clusterset", &["bind", "local", "--namespace=team-local"]), 0, &[]);
    let group = "cluster.open-cluster-management.io";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "local", "namespace": "team-local"}, "rules": [
            {"apiGroups": [group], "resources": ["placements"], "verbs": ["get", "list", "create", "patch", "delete"]},
            {"apiGroups": [group], "resources": ["placementdecisions"], "verbs": ["list"]}]});
    apply_all_client_side(hub, "placements", &[role]);
    hub.kubectl(&["create", "rolebinding", "local", "--namespace=team-local", "--role=local", "--user=local"])
        .expect("it is made");
    let local = hub.user_kubeconfig("local", &[]).expect("a user");
    let placement = |words: &[&str]| run(kubectl_ocm("placement", &local).args(words));
    let create = ["create", "web", "--namespace=team-local", "--tolerate-unreachable", "--wait"];
    // One right is missing, and it is named before anything is done.
    until_within(SLOW, "the role counts", String::new, || {
        !placement(&create).stderr.contains("may not create placements")
    });
    ends(&placement(&create), 1, &["may not list managedclustersetbindings"]);
    assert!(!is_there("team-local", "web"));
    let bindings = json!([{"op": "add", "path": "/rules/-", "value":
        {"apiGroups": [group], "resources": ["managedclustersetbindings"], "verbs": ["list"]}}]);
    hub.kubectl(&["patch", "role", "local", "--namespace=team-local", "--type=json", "--patch", &bindings.to_string()])
        .expect("it is patched");
    until_within(
        SLOW,
        "the right counts",
        || format!("{:?}", placement(&create)),
        || placement(&create).code == Some(0),
    );
    let said = placement(&create);
    ends(&said, 0, &["web -n team-local unchanged", "lo1", "WHY is only what the placement controller says"]);
    let said = placement(&["delete", "web", "--namespace=team-local", "--yes"]);
    ends(&said, 0, &["it cannot be told in full what uses them", "web -n team-local deleted"]);
}
