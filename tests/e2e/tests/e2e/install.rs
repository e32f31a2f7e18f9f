//! `kubectl ocm install hub` on real clusters.

use std::io::Write as _;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::{Cluster, Spec};
use e2e_tests::manifests::pipe;
use e2e_tests::{Said, bundle, ends_as, kubectl_ocm, object, resource_versions, run, unchanged, until};
use serde_json::{Value, json};

const NAMESPACE: &str = "--namespace=open-cluster-management";

fn install(cluster: &Cluster, flags: &[&str]) -> Said {
    run(kubectl_ocm("install", cluster.kubeconfig()).arg("hub").args(flags))
}

/// What of the operator's pods is at this path; nothing where it is not there yet.
fn pods(cluster: &Cluster, path: &str) -> String {
    let path = format!("--output=jsonpath={path}");
    cluster.kubectl(&["get", "pods", NAMESPACE, &path]).unwrap_or_default().trim().to_owned()
}

/// Everything that promises to change nothing.
const PROMISES: [&[&str]; 4] = [&["--dry-run=client"], &["--dry-run=server"], &["--diff"], &["--render"]];

#[test]
fn a_hub_from_nothing_survives_kills_and_is_installed_once() {
    let hub = Cluster::start(&Spec::node("hub")).expect("a cluster");
    let bundle = format!("--bundle-version={}", bundle());

    let before = resource_versions(&hub);
    for promise in PROMISES {
        let said = install(&hub, &[&[bundle.as_str()], promise].concat());
        let expected = if promise == ["--diff"] { 3 } else { 0 };
        assert_eq!(said.code, Some(expected), "{promise:?}: {said:?}");
        assert!(said.stdout.contains("agent-registration-bootstrap"), "{promise:?}: {}", said.stdout);
        unchanged(&hub, &before, promise);
    }

    let said = install(&hub, &[&bundle, "--dry-run=client", "--output=json"]);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&document["dryRun"], &document["changed"]), (&"client".into(), &true.into()), "{said:?}");
    let manager = document["objects"].as_array().and_then(|all| all.last()).expect("objects");
    assert_eq!(
        manager,
        &json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
            "name": "cluster-manager", "outcome": "created"})
    );

    for milliseconds in [60, 150, 400] {
        let mut child = kubectl_ocm("install", hub.kubeconfig())
            .args(["hub", "--wait", &bundle])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        sleep(Duration::from_millis(milliseconds));
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
    }
    let said = install(&hub, &["--wait", &bundle]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm token create --context hub"), "{}", said.stderr);
    assert!(said.stderr.contains("CVE-2026-4740"), "{}", said.stderr);

    // Usable means: the very first objects are defaulted and judged.
    let first = r#"{"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": "first"}}"#;
    assert!(pipe(&hub, &[], first));
    let first = object(&hub, &["managedcluster", "first"]);
    assert_eq!(first["metadata"]["labels"]["cluster.open-cluster-management.io/clusterset"], "default");
    hub.kubectl(&["delete", "managedcluster", "first"]).expect("it goes");
    // With the last cluster the hub deletes the roles of agents, one after the other.
    until("the roles of agents are gone", || {
        let roles = hub.kubectl(&["get", "clusterroles", "-o", "name"]).unwrap_or_default();
        !roles.is_empty() && !roles.contains(":managedcluster:")
    });

    // The operators write now and then; a run of ours that changes nothing lies between two equal pictures.
    for flags in [&["--wait"][..], &[], &["--wait", &bundle]].into_iter().chain(PROMISES) {
        let before = resource_versions(&hub);
        let said = install(&hub, flags);
        assert_eq!(said.code, Some(0), "{flags:?}: {said:?}");
        assert!(!said.stdout.contains("configured"), "{flags:?}: {}", said.stdout);
        unchanged(&hub, &before, flags);
    }

    // A crash loop is named, with the container's own words, and what the operator was given is kept.
    let patch = r#"[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--no-such-flag"}]"#;
    hub.kubectl(&["patch", "deployment", "cluster-manager", NAMESPACE, "--type=json", "--patch", patch])
        .expect("patched");
    until("the pod has crashed", || {
        pods(&hub, "{.items[*].status.containerStatuses[*].restartCount}").contains(['1', '2', '3'])
    });
    let said = install(&hub, &["--wait", "--timeout=10s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("crashes") && said.stderr.contains("unknown flag: --no-such-flag"), "{}", said.stderr);
}

#[test]
fn what_holds_up_an_installation_is_named() {
    let idle = Cluster::start(&Spec::node("stuck").ocm_images(false).schedulable(false)).expect("a cluster");
    let said = install(&idle, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    until("its pod is there", || !pods(&idle, "{.items[*].metadata.name}").is_empty());
    let said = install(&idle, &["--wait", "--timeout=4s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("scheduler"), "{}", said.stderr);

    idle.kubectl(&["taint", "node", "--all", "test=busy:NoSchedule"]).expect("tainted");
    idle.start_again("kube-scheduler").expect("a scheduler starts");
    let found = "0/1 nodes are available";
    until("the scheduler has looked at it", || pods(&idle, "{.items[*].status.conditions[*].message}").contains(found));
    let said = install(&idle, &["--wait", "--timeout=5s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("cannot be scheduled: 0/1 nodes are available"), "{}", said.stderr);
    ends_as!("errors-unschedulable", said);

    idle.kubectl(&["taint", "node", "--all", "test-"]).expect("free");
    // Nobody listens there, which a node finds out without a name server.
    let said = install(&idle, &["--wait", "--timeout=20s", "--registry=127.0.0.1:9/ocm"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    let named = "image 127.0.0.1:9/ocm/registration-operator:v1.3.1 cannot be pulled";
    assert!(said.stderr.contains(named), "{}", said.stderr);
    ends_as!("errors-image-missing", said);
}

/// The hub of another tool: its own names, numbers, lists and labels.
fn foreign_hub(cluster: &Cluster) {
    let rendered = install(cluster, &["--render", &format!("--bundle-version={}", bundle())]);
    assert_eq!(rendered.code, Some(0), "{rendered:?}");
    // The kind that the last object needs comes with the others.
    pipe(cluster, &[], &rendered.stdout);
    cluster
        .kubectl(&["wait", "--for=condition=Established", "crd", "clustermanagers.operator.open-cluster-management.io"])
        .expect("the kind is served");
    assert!(pipe(cluster, &[], &rendered.stdout));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "open-cluster-management-image-pull-credentials", "namespace": "open-cluster-management"},
            "stringData": {".dockerconfigjson": r#"{"auths":{"registry.example":{"auth":"cmVhbDpzZWNyZXQ="}}}"#}});
    assert!(pipe(cluster, &[], &secret.to_string()));
    let manager = json!({
        "metadata": {"labels": {"team": "platform"}, "annotations": {"note": "mine"}},
        "spec": {
            "nodePlacement": {"nodeSelector": {"pool": "infra"}, "tolerations": [{"key": "infra", "operator": "Exists"}]},
            "registrationImagePullSpec": "mirror.example/ocm/registration:v1.2.0",
            "registrationConfiguration": {
                "autoApproveUsers": ["someone"],
                "featureGates": [{"feature": "ManagedClusterAutoApproval", "mode": "Enable"},
                    {"feature": "ResourceCleanup", "mode": "Disable"}, {"feature": "OfTomorrow", "mode": "Enable"}],
                "registrationDrivers": [{"authType": "csr", "csr": {"autoApprovedIdentities": ["x", "y"]}}, {"authType": "grpc"}],
            },
            "serverConfiguration": {"endpointsExposure": [{"protocol": "grpc", "grpc": {"type": "hostname", "hostname": {"host": "h.example"}}}]},
            "workConfiguration": {"featureGates": [{"feature": "ManifestWorkReplicaSet", "mode": "Enable"}]},
            "placementConfiguration": {"featureGates": [{"feature": "PlacementDebugServer", "mode": "Enable"}]},
            "resourceRequirement": {"type": "BestEffort"},
        },
    });
    let patch = |kind: &str, name: &str, patch: &Value| {
        let text = patch.to_string();
        cluster.kubectl(&["patch", kind, name, NAMESPACE, "--type=merge", "--patch", &text]).expect("patched");
    };
    patch("clustermanager", "cluster-manager", &manager);
    let deployment = json!({
        "metadata": {"labels": {"team": "platform"}},
        "spec": {"replicas": 2, "template": {"metadata": {"annotations": {"scrape": "no"}}, "spec": {
            "nodeSelector": {"pool": "infra"}, "priorityClassName": "system-cluster-critical"}}},
    });
    patch("deployment", "cluster-manager", &deployment);
    let arguments = r#"[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--deployment-replicas=2"},
        {"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "HTTPS_PROXY", "value": "http://p"}},
        {"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/memory", "value": "99Mi"}]"#;
    cluster
        .kubectl(&["patch", "deployment", "cluster-manager", NAMESPACE, "--type=json", "--patch", arguments])
        .expect("patched");
    // A rule for each verb, which together grant what ours does.
    let mut rules: Vec<Value> = Vec::new();
    let live = object(cluster, &["clusterrole", "open-cluster-management:bootstrap"])["rules"].clone();
    for rule in live.as_array().expect("rules") {
        for verb in rule["verbs"].as_array().expect("verbs") {
            let mut single = rule.clone();
            single["verbs"] = json!([verb]);
            rules.push(single);
        }
    }
    assert!(live.as_array().is_some_and(|live| live.len() < rules.len()), "{live}");
    patch("clusterrole", "open-cluster-management:bootstrap", &json!({"rules": rules}));
    let rule = r#"[{"op": "add", "path": "/rules/-", "value": {"apiGroups": ["x.example"], "resources": ["things"], "verbs": ["get"]}}]"#;
    for role in ["cluster-manager", "open-cluster-management:bootstrap"] {
        cluster.kubectl(&["patch", "clusterrole", role, "--type=json", "--patch", rule]).expect("patched");
    }
    let subject = r#"[{"op": "add", "path": "/subjects/-", "value": {"kind": "User", "name": "old", "apiGroup": "rbac.authorization.k8s.io"}}]"#;
    let binding = "open-cluster-management:bootstrap:agent-registration";
    cluster.kubectl(&["patch", "clusterrolebinding", binding, "--type=json", "--patch", subject]).expect("patched");
    // A definition of tomorrow knows a field more.
    let field = r#"[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tomorrow", "value": {"type": "string"}}]"#;
    let definition = "clustermanagers.operator.open-cluster-management.io";
    cluster.kubectl(&["patch", "crd", definition, "--type=json", "--patch", field]).expect("patched");
}

const FOREIGN: [&[&str]; 9] = [
    &["namespace", "open-cluster-management"],
    &["crd", "clustermanagers.operator.open-cluster-management.io"],
    &["clusterrole", "cluster-manager"],
    &["clusterrole", "open-cluster-management:bootstrap"],
    &["clusterrolebinding", "open-cluster-management:bootstrap:agent-registration"],
    &["serviceaccount", "cluster-manager", NAMESPACE],
    &["secret", "open-cluster-management-image-pull-credentials", NAMESPACE],
    &["deployment", "cluster-manager", NAMESPACE],
    &["clustermanager", "cluster-manager"],
];

/// Paths of `before` whose value `after` does not have.
fn lost(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let book_keeping =
                    matches!(key.as_str(), "managedFields" | "resourceVersion" | "generation" | "status");
                if !book_keeping {
                    lost(value, after.get(key).unwrap_or(&Value::Null), &format!("{path}.{key}"), found);
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (index, value) in before.iter().enumerate() {
                let kept = after.iter().any(|candidate| {
                    let mut gone = Vec::new();
                    lost(value, candidate, "", &mut gone);
                    gone.is_empty()
                });
                if !kept {
                    found.push(format!("{path}[{index}] {value}"));
                }
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push(format!("{path}: {before} became {after}")),
    }
}

#[test]
fn a_hub_of_another_tool_is_taken_over_without_a_loss() {
    let hub = Cluster::start(&Spec::api("theirs")).expect("a cluster");
    foreign_hub(&hub);
    let before: Vec<Value> = FOREIGN.iter().map(|words| object(&hub, words)).collect();
    let versions = resource_versions(&hub);
    for promise in PROMISES {
        install(&hub, promise);
        unchanged(&hub, &versions, promise);
    }

    let said = install(&hub, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut found = Vec::new();
    for (words, before) in FOREIGN.iter().zip(&before) {
        lost(before, &object(&hub, words), &words.join(" "), &mut found);
    }
    assert!(found.is_empty(), "lost: {found:#?}");
    // Rules that grant what ours grant are enough: none is appended.
    for (words, before) in FOREIGN.iter().zip(&before).filter(|(words, _)| words[0] == "clusterrole") {
        assert_eq!(object(&hub, words)["rules"], before["rules"], "{words:?}");
    }
    assert!(said.stderr.contains("the hub runs v1.2.0 and keeps it"), "{}", said.stderr);
    assert!(said.stderr.contains("v1.spec.tomorrow"), "{}", said.stderr);
    assert!(said.stderr.contains("holds credentials"), "{}", said.stderr);

    let versions = resource_versions(&hub);
    let said = install(&hub, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    unchanged(&hub, &versions, &said.stdout);

    // What is typed wins, and only that.
    let said = install(&hub, &["--feature-gates=OfTomorrow=true"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let said = install(&hub, &["--feature-gates=ResourceCleanup=true", "--bundle-version=1.3.1", "--replicas=3"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let manager = object(&hub, &["clustermanager", "cluster-manager"]);
    assert_eq!(manager["spec"]["registrationImagePullSpec"], "mirror.example/ocm/registration:v1.3.1");
    let gates = manager["spec"]["registrationConfiguration"]["featureGates"].as_array().expect("gates");
    assert!(gates.contains(&json!({"feature": "ResourceCleanup", "mode": "Enable"})), "{gates:?}");
    assert!(gates.contains(&json!({"feature": "OfTomorrow", "mode": "Enable"})), "{gates:?}");
    assert_eq!(object(&hub, &["deployment", "cluster-manager", NAMESPACE])["spec"]["replicas"], 3);

    // Settings that were typed once stay when they are not typed again; a typed list replaces ours.
    let said = install(&hub, &["--resource-qos-class=ResourceRequirement", "--resource-requests=cpu=10m"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(install(&hub, &[]).code, Some(0));
    let requirement = &object(&hub, &["clustermanager", "cluster-manager"])["spec"]["resourceRequirement"];
    assert_eq!(requirement["resourceRequirements"]["requests"]["cpu"], "10m");
}

#[test]
fn settings_that_are_typed_later_change_what_they_name_and_nothing_else() {
    let hub = Cluster::start(&Spec::api("later")).expect("a cluster");
    let spec = || object(&hub, &["clustermanager", "cluster-manager"])["spec"].clone();
    let typed = |flags: &[&str]| {
        let said = install(&hub, flags);
        assert_eq!(said.code, Some(0), "{flags:?}: {said:?}");
        spec()
    };
    let exposed = |spec: &Value| spec["serverConfiguration"]["endpointsExposure"][0]["grpc"].clone();
    let gates = |spec: &Value| spec["workConfiguration"]["featureGates"].clone();
    let balanced = |host: &str| json!({"type": "loadBalancer", "loadBalancer": {"host": host}});
    let gate = |mode: &str| json!([{"feature": "ManifestWorkReplicaSet", "mode": mode}]);

    let grpc = ["--registration-drivers=csr,grpc", "--grpc-endpoint-type=loadBalancer", "--grpc-server=one.example"];
    let first = typed(&[&grpc[..], &["--feature-gates=ManifestWorkReplicaSet=true"]].concat());
    assert_eq!((exposed(&first), gates(&first)), (balanced("one.example"), gate("Enable")));

    // A gate of the work controller goes off as it went on.
    let off = typed(&["--feature-gates=ManifestWorkReplicaSet=false"]);
    assert_eq!((exposed(&off), gates(&off)), (balanced("one.example"), gate("Disable")));
    // Behind a load balancer it stays where only another name is typed.
    let renamed = typed(&["--grpc-server=two.example"]);
    assert_eq!((exposed(&renamed), gates(&renamed)), (balanced("two.example"), gate("Disable")));

    // Resources are one value: what an earlier run asked for is not mixed with what this one limits.
    let class = "--resource-qos-class=ResourceRequirement";
    let resources = |flag: &str| typed(&[class, flag])["resourceRequirement"]["resourceRequirements"].clone();
    assert_eq!(resources("--resource-requests=cpu=2"), json!({"requests": {"cpu": "2"}}));
    assert_eq!(resources("--resource-limits=cpu=1"), json!({"limits": {"cpu": "1"}}));

    // An older release is a matter of its own.
    let (before, versions) = (spec(), resource_versions(&hub));
    let said = install(&hub, &["--bundle-version=1.2.0"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("is older: nothing was changed"), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm upgrade hub --bundle-version v1.2.0 --allow-downgrade"), "{said:?}");
    unchanged(&hub, &versions, &said);
    assert_eq!(spec(), before);
}

#[test]
fn a_hub_lets_clusters_register_as_it_was_typed_last_and_keeps_credentials_and_tokens() {
    let hub = Cluster::start(&Spec::api("typed")).expect("a cluster");
    // A token that was handed out before: an installation makes none, and leaves each as it is.
    let literals = "--from-literal=token-id=handed --from-literal=token-secret=0123456789abcdef \
                    --from-literal=usage-bootstrap-authentication=true \
                    --from-literal=auth-extra-groups=system:bootstrappers:managedcluster";
    let mut create = vec!["create", "secret", "generic", "bootstrap-token-handed", "--namespace=kube-system"];
    create.extend(["--type=bootstrap.kubernetes.io/token"].into_iter().chain(literals.split_whitespace()));
    hub.kubectl(&create).expect("it is made");
    let tokens = || {
        let list = object(&hub, &["secrets", "--namespace=kube-system"]);
        let of_type = |secret: &&Value| secret["type"] == "bootstrap.kubernetes.io/token";
        list["items"].as_array().into_iter().flatten().filter(of_type).cloned().collect::<Vec<_>>()
    };
    let handed = tokens();
    assert_eq!(handed.len(), 1, "{handed:#?}");
    let typed = |flags: &[&str]| {
        let said = install(&hub, flags);
        assert_eq!(said.code, Some(0), "{flags:?}: {said:?}");
        assert_eq!(tokens(), handed, "{flags:?}");
        object(&hub, &["clustermanager", "cluster-manager"])["spec"]["registrationConfiguration"].clone()
    };
    let credentials = || {
        let secret = object(&hub, &["secret", "open-cluster-management-image-pull-credentials", NAMESPACE]);
        secret["data"][".dockerconfigjson"].clone()
    };
    let names = |registration: &Value, list: &str, member: &str| {
        let all = registration[list].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| one[member].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };

    // What a hub gets where nothing is typed.
    let first = typed(&["--use-bootstrap-token"]);
    assert_eq!(names(&first, "featureGates", "feature"), ["DefaultClusterSet", "ResourceCleanup"]);
    assert_eq!(first["registrationDrivers"], json!([{"authType": "csr"}]));
    assert_eq!(credentials(), "e30=");

    // The drivers are those that were typed last, with what was said of each before.
    let arn = "arn:aws:eks:us-west-2:123456789012:cluster/hub";
    let of_aws = format!("--hub-cluster-arn={arn}");
    let alone = typed(&["--registration-drivers=awsirsa", &of_aws]);
    assert_eq!(alone["registrationDrivers"], json!([{"authType": "awsirsa", "awsirsa": {"hubClusterArn": arn}}]));
    let both = ["--registration-drivers=awsirsa,csr", "--aws-resource-tags=product=ocm,stage=test"];
    let both = typed(&both);
    assert_eq!(names(&both, "registrationDrivers", "authType"), ["awsirsa", "csr"]);
    let tagged = json!({"hubClusterArn": arn, "tags": ["product=ocm", "stage=test"]});
    assert_eq!(both["registrationDrivers"][0]["awsirsa"], tagged);

    // Identities belong to their drivers, and need the gate.
    let identities = [
        "--auto-approved-csr-identities=user1",
        "--auto-approved-csr-identities=user2",
        "--auto-approved-arn-patterns=arn:aws:eks:us-west-2:123456789012:cluster/a.*",
        "--auto-approved-arn-patterns=arn:aws:eks:us-west-2:123456789012:cluster/b.*",
    ];
    let said = install(&hub, &identities);
    assert!(said.code == Some(2) && said.stderr.contains("ManagedClusterAutoApproval"), "{said:?}");
    let gated = typed(&[&["--feature-gates=ManagedClusterAutoApproval=true"], &identities[..]].concat());
    let all = ["DefaultClusterSet", "ResourceCleanup", "ManagedClusterAutoApproval"];
    assert_eq!(names(&gated, "featureGates", "feature"), all);
    let drivers = &gated["registrationDrivers"];
    let count = |index: usize, driver: &str| drivers[index][driver]["autoApprovedIdentities"].as_array().map(Vec::len);
    assert_eq!((count(0, "awsirsa"), count(1, "csr")), (Some(2), Some(2)), "{drivers:#}");
    assert_eq!(drivers[0]["awsirsa"]["tags"], tagged["tags"], "{drivers:#}");

    // Credentials are those of the file, and stay when nothing is said of them.
    let config = br#"{"auths":{"registry.example":{"auth":"bWU6c2VjcmV0"}}}"#;
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(config).expect("written");
    let given = format!("--image-pull-credential-file={}", file.path().display());
    for flags in [&[given.as_str()][..], &[]] {
        assert_eq!(typed(flags), gated, "{flags:?}");
        let held = STANDARD.decode(credentials().as_str().expect("text")).expect("base64");
        assert_eq!(held, config, "{flags:?}");
    }
}

#[test]
fn pull_secrets_that_others_gave_the_operators_account_stay() {
    let hub = Cluster::start(&Spec::api("pulls")).expect("a cluster");
    assert_eq!(install(&hub, &[]).code, Some(0));
    let account = ["serviceaccount", "cluster-manager", NAMESPACE];
    let secrets = || object(&hub, &account)["imagePullSecrets"].clone();
    let named = |names: &[&str]| Value::from_iter(names.iter().map(|name| json!({"name": name})));
    let ours = "open-cluster-management-image-pull-credentials";
    assert_eq!(secrets(), named(&[ours]));

    // Beside ours; instead of ours; and by a tool that owns the whole list, as server-side apply treats it.
    let patch = |kind: &str, patch: Value| {
        let (kind, patch) = (format!("--type={kind}"), patch.to_string());
        hub.kubectl(&[&["patch"], &account[..], &[&kind, "--patch", &patch]].concat()).expect("patched");
    };
    let beside = || patch("json", json!([{"op": "add", "path": "/imagePullSecrets/-", "value": {"name": "theirs"}}]));
    let instead = || patch("merge", json!({"imagePullSecrets": named(&["theirs", "more"])}));
    let owned = || {
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": named(&["theirs"]),
            "metadata": {"name": "cluster-manager", "namespace": "open-cluster-management"}});
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(object.to_string().as_bytes()).expect("written");
        let file = file.path().to_str().expect("text").to_owned();
        let apply = ["apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "--filename", &file];
        hub.kubectl(&apply).expect("applied");
    };
    let cases: [(&dyn Fn(), &[&str]); 3] =
        [(&beside, &[ours, "theirs"]), (&instead, &["theirs", "more", ours]), (&owned, &["theirs", ours])];
    for (change, expected) in cases {
        change();
        let said = install(&hub, &[]);
        assert_eq!((said.code, secrets()), (Some(0), named(expected)), "{said:?}");
        let before = resource_versions(&hub);
        let said = install(&hub, &[]);
        assert_eq!(said.code, Some(0), "{said:?}");
        unchanged(&hub, &before, &said);
        assert!(!said.stdout.contains("configured"), "{said:?}");
    }
}

#[test]
fn without_the_rights_nothing_is_changed() {
    let hub = Cluster::start(&Spec::api("guarded")).expect("a cluster");
    let user = hub.user_kubeconfig("visitor", &["visitors"]).expect("a user");
    let view = ["create", "clusterrolebinding", "visitor", "--clusterrole=view", "--user=visitor"];
    hub.kubectl(&view).expect("bound");
    hub.kubectl(&["create", "clusterrole", "editor", "--verb=get,list,create,patch", "--resource=*.*"]).expect("made");
    let before = resource_versions(&hub);
    let said = run(kubectl_ocm("install", &user).arg("hub"));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr.contains("lacks rights to install a hub") && said.stderr.contains("may not create"),
        "{said:?}"
    );

    // All rights on the objects, but not what the operator is to hold.
    hub.kubectl(&["create", "clusterrolebinding", "editor", "--clusterrole=editor", "--user=visitor"]).expect("bound");
    let said = run(kubectl_ocm("install", &user).arg("hub"));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("cannot grant what the operator needs"), "{}", said.stderr);
    unchanged(&hub, &before, "nothing is changed");
    // The same as an administrator, who may.
    let said = install(&hub, &["--as=visitor", "--dry-run=client"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}
