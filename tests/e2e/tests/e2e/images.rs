//! Images that are pinned by their digests, and files of values, on real clusters.
//!
//! `cargo test -p e2e-tests --test e2e images::`; it needs root.

use std::path::Path;

use control_plane::{Cluster, Spec};
use e2e_tests::join_support::hub_access;
use e2e_tests::roles::user_with;
use e2e_tests::{Said, bundle, earlier_bundle, kubectl_ocm, object, resource_versions, run, settled, unchanged};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

const OPERATORS: &str = "open-cluster-management";
const HUB: &str = "open-cluster-management-hub";
const AGENT: &str = "open-cluster-management-agent";
const COMPONENTS: [&str; 5] = ["registration", "work", "placement", "addon-manager", "registration-operator"];

/// Everything that promises to change nothing, and how it ends where something would change.
const PROMISES: [(&str, i32); 4] = [("--dry-run=client", 0), ("--dry-run=server", 0), ("--diff", 3), ("--render", 0)];

fn ocm(verb: &str, kubeconfig: &Path, words: &[&str]) -> Said {
    run(kubectl_ocm(verb, kubeconfig).args(words))
}

fn release(version: &str) -> String {
    format!("--bundle-version={version}")
}

/// A file with this content.
fn file(content: &Value) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), content.to_string()).expect("written");
    file
}

fn flag(name: &str, file: &NamedTempFile) -> String {
    format!("--{name}={}", file.path().display())
}

/// It ends with this code and these words.
fn ends(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {}", said.stderr);
    }
}

/// Nothing of it changes anything.
fn nothing_changes(cluster: &Cluster, commands: impl FnOnce()) {
    let before = settled(cluster);
    commands();
    unchanged(cluster, &before, "nothing is changed");
}

/// The objects of a kind in a namespace that are not on their way out.
fn all(cluster: &Cluster, kind: &str, namespace: &str) -> Vec<Value> {
    let list = object(cluster, &[kind, "--namespace", namespace]);
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.into_iter().filter(|item| item["metadata"]["deletionTimestamp"].is_null()).collect()
}

/// The images of the Deployments and the pods of a namespace end with this.
fn images_end(cluster: &Cluster, namespace: &str, end: &str) {
    let of = |kind: &str, path: &str| -> Vec<String> {
        let image = |item: &Value| item.pointer(path)?.as_str().map(str::to_owned);
        all(cluster, kind, namespace).iter().filter_map(image).collect()
    };
    let deployments = of("deployments", "/spec/template/spec/containers/0/image");
    let found = [deployments, of("pods", "/spec/containers/0/image")].concat();
    assert!(!found.is_empty() && found.iter().all(|image| image.ends_with(end)), "{namespace} {end}: {found:?}");
}

/// The digest of the images, which are one and the same, as the node tells it of a pod.
fn digest(cluster: &Cluster) -> String {
    let pods = all(cluster, "pods", OPERATORS);
    let image = pods.iter().find_map(|pod| pod.pointer("/status/containerStatuses/0/imageID")?.as_str());
    let (_, digest) = image.and_then(|image| image.split_once('@')).unwrap_or_else(|| panic!("no digest: {pods:?}"));
    digest.to_owned()
}

#[test]
fn a_hub_and_its_agent_run_images_that_are_pinned_by_their_digests() {
    let hub = Cluster::start(&Spec::node("pinned")).expect("a cluster");
    let said = ocm("install", hub.kubeconfig(), &["hub", "--wait", &release(earlier_bundle())]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let digest = digest(&hub);
    let (tag, pinned) = (format!(":v{}", bundle()), format!(":v{}@{digest}", bundle()));
    let whole = file(&COMPONENTS.iter().map(|name| (*name, digest.as_str())).collect());
    let (digests, new, old) = (flag("image-digests", &whole), release(bundle()), release(earlier_bundle()));

    let upgrader = user_with(&hub, "upgrader", &["upgrade-hub.yaml"]);
    let installer = user_with(&hub, "installer", &["install.yaml"]);
    let part = file(&json!({"work": digest}));
    let other = file(&json!({"wark": digest}));
    nothing_changes(&hub, || {
        let missing = ocm("upgrade", &upgrader, &["hub", &new, &flag("image-digests", &part)]);
        ends(&missing, 2, &["it has no digest of registration, placement, addon-manager, registration-operator"]);
        let unknown = ocm("upgrade", &upgrader, &["hub", &new, &flag("image-digests", &other)]);
        ends(&unknown, 2, &["it has the key \"wark\"", "did you mean work?"]);
        for (promise, code) in PROMISES {
            let said = ocm("upgrade", &upgrader, &["hub", &new, &digests, promise]);
            ends(&said, code, &[]);
            let shows = promise == "--diff" || promise == "--render";
            assert!(!shows || said.stdout.contains(&pinned), "{promise}: {said:?}");
        }
        let moved = ocm("upgrade", &upgrader, &["hub", &new, "--image-registry=mirror.example/ocm", "--diff"]);
        ends(&moved, 3, &[]);
        assert!(moved.stdout.contains(&format!("mirror.example/ocm/work{tag}")), "{moved:?}");
    });
    let said = ocm("upgrade", &upgrader, &["hub", &new, &digests, "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    images_end(&hub, HUB, &pinned);
    images_end(&hub, OPERATORS, &pinned);
    // What is pinned stays so, as long as the release does.
    nothing_changes(&hub, || {
        ends(&ocm("upgrade", &upgrader, &["hub", &new, "--wait"]), 0, &["is up to date"]);
        ends(&ocm("upgrade", &upgrader, &["hub", &new, &digests]), 0, &["is up to date"]);
        for flags in [&["hub"][..], &["hub", &new, &digests], &["hub", "--wait"]] {
            let said = ocm("install", &installer, flags);
            assert!(said.code == Some(0) && !said.stdout.contains("configured"), "{said:?}");
        }
        let back = ocm("upgrade", &upgrader, &["hub", "--allow-downgrade", &old, "--dry-run"]);
        ends(&back, 0, &["pinned by a digest until now", "work"]);
    });

    an_agent_is_pinned(&hub, &digests, &pinned);
}

/// The hub manages itself with images of these digests, and goes to the images of another tag.
fn an_agent_is_pinned(hub: &Cluster, digests: &str, pinned: &str) {
    let joiner = user_with(hub, "joiner", &["join.yaml"]);
    let access = hub_access(hub);
    let join =
        |words: &[&str]| ocm("join", &joiner, &[&["pinned", "--self", access.as_str(), digests], words].concat());
    let said = json!({"priorityClassName": "system-cluster-critical",
        "registrationConfiguration": {"kubeAPIQPS": 60, "clientCertExpirationSeconds": 7200}});
    let (right, wrong) = (file(&said), file(&json!({"registrationConfiguration": {"kubeApiQPS": 60}})));
    let (values, wrong) = (flag("values", &right), flag("values", &wrong));
    let (new, old) = (release(bundle()), release(earlier_bundle()));
    let by_token = "--addon-kubeclient-registration-auth=token";
    nothing_changes(hub, || {
        let unknown = "registrationConfiguration.kubeApiQPS: there is no such field";
        ends(&join(&[&new, &wrong]), 2, &[unknown, "did you mean kubeAPIQPS?"]);
        let told = format!("v{} does not know how add-ons are to register", earlier_bundle());
        ends(&join(&[&old, by_token]), 3, &[&told, "nothing was changed"]);
        ends(
            &join(&[&new, "--addon-token-expiration-seconds=3600"]),
            2,
            &["goes with", by_token.split_once('=').map_or(by_token, |(flag, _)| flag)],
        );
        ends(&join(&[&new, "--force-internal-endpoint-lookup-managed"]), 2, &["goes with --mode hosted"]);
        ends(&join(&[&new, "--host-alias=hub.example"]), 2, &["is not IP=NAME"]);
    });
    let flags = [
        new.as_str(),
        &values,
        by_token,
        "--addon-token-expiration-seconds=3600",
        "--client-cert-expiration-seconds=3600",
        "--host-alias=192.0.2.10=hub.example",
        "--accept",
        "--wait",
        "--timeout=3m",
    ];
    let said = join(&flags);
    let warned = [
        "registrationConfiguration.clientCertExpirationSeconds of the values has no effect",
        "the agent does not look for hub.example",
    ];
    ends(&said, 0, &warned);
    images_end(hub, AGENT, pinned);
    let spec = object(hub, &["klusterlet", "klusterlet"])["spec"].clone();
    let registration = &spec["registrationConfiguration"];
    assert_eq!(
        (&registration["kubeAPIQPS"], &registration["clientCertExpirationSeconds"]),
        (&json!(60), &json!(3600)),
        "{spec}"
    );
    assert_eq!(spec["priorityClassName"], "system-cluster-critical");
    assert_eq!(
        registration["addOnKubeClientRegistrationDriver"],
        json!({"authType": "token", "token": {"expirationSeconds": 3600}})
    );
    let agent = object(hub, &["deployment", "klusterlet-registration-agent", "--namespace", AGENT]);
    // The operator asks the hub, too.
    let operator = object(hub, &["deployment", "klusterlet", "--namespace", OPERATORS]);
    for deployment in [&agent, &operator] {
        let hosts = deployment.pointer("/spec/template/spec/hostAliases").cloned().unwrap_or_default();
        assert_eq!(hosts, json!([{"ip": "192.0.2.10", "hostnames": ["hub.example"]}]), "{deployment}");
    }
    assert!(agent.to_string().contains(by_token), "{agent}");
    nothing_changes(hub, || {
        ends(&join(&[&new, &values, "--client-cert-expiration-seconds=3600"]), 0, &["nothing is changed"]);
        let other = join(&[&old, &values, "--client-cert-expiration-seconds=3600"]);
        ends(
            &other,
            0,
            &["nothing is changed", "the images of a cluster that has joined stay", "upgrade klusterlet pinned"],
        );
    });
    joined_again_with_other_settings(hub, &|words| join(&[&[new.as_str()], words].concat()));

    let content = file(&json!({"ocm": format!("v{}", earlier_bundle()), "policy_addon": "v0.18.0"}));
    let overrides = flag("bundle-version-overrides", &content);
    let keeper = user_with(hub, "keeper", &["upgrade-klusterlet.yaml"]);
    nothing_changes(hub, || {
        ends(&ocm("upgrade", &keeper, &["klusterlet", &new]), 0, &["is up to date"]);
        ends(&ocm("upgrade", &keeper, &["klusterlet", &overrides]), 3, &["is older"]);
    });
    let said = ocm("upgrade", &keeper, &["klusterlet", &overrides, "--allow-downgrade", "--wait"]);
    ends(&said, 0, &["pinned by a digest until now"]);
    images_end(hub, AGENT, &format!(":v{}", earlier_bundle()));
    let said = ocm("upgrade", &keeper, &["klusterlet", &new, digests, "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    images_end(hub, AGENT, pinned);
}

/// A cluster that has joined gets what is typed anew, keeps its certificate and the rest, and is waited for.
fn joined_again_with_other_settings(hub: &Cluster, join: &dyn Fn(&[&str]) -> Said) {
    let klusterlet = || object(hub, &["klusterlet", "klusterlet"]);
    let agent = || object(hub, &["deployment", "klusterlet-registration-agent", "--namespace", AGENT]);
    let operator = || object(hub, &["deployment", "klusterlet", "--namespace", OPERATORS]);
    let (before, key) = (klusterlet()["spec"].clone(), agent_key(hub));
    let values = file(&json!({"registrationConfiguration": {"kubeAPIQPS": 70}}));
    let typed = [&flag("values", &values), "--host-alias=192.0.2.20=hub.example", "--enable-sync-labels", "--wait"];
    let told = [
        "gets what was given for",
        "registrationConfiguration.kubeAPIQPS",
        "hubApiServerHostAlias",
        "the pods of the operator",
    ];
    nothing_changes(hub, || {
        for (promise, code) in PROMISES {
            let said = join(&[&typed[..3], &[promise]].concat());
            ends(&said, code, &[]);
            assert!(promise != "--diff" || said.stdout.contains("kubeAPIQPS: 70"), "{said:?}");
        }
    });
    ends(&join(&typed), 0, &told);
    // Whoever waits waits for the pods.
    for deployment in [agent(), operator()] {
        let hosts = deployment.pointer("/spec/template/spec/hostAliases").cloned().unwrap_or_default();
        assert_eq!(hosts, json!([{"ip": "192.0.2.20", "hostnames": ["hub.example"]}]));
        let (status, wanted) = (&deployment["status"], &deployment["spec"]["replicas"]);
        assert_eq!((&status["updatedReplicas"], &status["replicas"]), (wanted, wanted), "{deployment}");
    }
    assert!(operator().to_string().contains("--enable-sync-labels"), "{}", operator());
    assert_eq!(agent_key(hub), key, "it keeps its certificate");
    let mut expected = before;
    expected["registrationConfiguration"]["kubeAPIQPS"] = json!(70);
    expected["hubApiServerHostAlias"]["ip"] = json!("192.0.2.20");
    assert_eq!(klusterlet()["spec"], expected, "and all else");
    nothing_changes(hub, || ends(&join(&typed), 0, &["nothing is changed"]));
    // Where the Klusterlet has the address no more, neither has the operator.
    let patch = ["patch", "klusterlet", "klusterlet", "--type=json"];
    let gone = "--patch=[{\"op\": \"remove\", \"path\": \"/spec/hubApiServerHostAlias\"}]";
    hub.kubectl(&[&patch[..], &[gone]].concat()).expect("it is taken out");
    ends(&join(&["--wait"]), 0, &["the pods of the operator"]);
    let hosts = || operator().pointer("/spec/template/spec/hostAliases").cloned().unwrap_or_default();
    assert!(hosts().as_array().is_none_or(Vec::is_empty), "{}", hosts());
    // What does not come up ends the wait.
    let no_such = join(&["--priority-class=nobody", "--wait"]);
    ends(&no_such, 1, &["has no PriorityClass \"nobody\"", "nothing was changed"]);
}

/// The certificate that the agent holds.
fn agent_key(hub: &Cluster) -> Value {
    object(hub, &["secret", "hub-kubeconfig-secret", "--namespace", AGENT])["data"]["tls.crt"].clone()
}

#[test]
fn a_file_of_values_lies_below_what_is_typed() {
    // No operator runs there: the hub stays as the command leaves it.
    let hub = Cluster::start(&Spec::api("valued")).expect("a cluster");
    let installer = user_with(&hub, "installer", &["install.yaml"]);
    let install = |words: &[&str]| ocm("install", &installer, &[&["hub"], words].concat());
    let before = resource_versions(&hub);
    for (wrong, words) in [
        (
            json!({"nodePlacement": {"tolerations": [{"kind": "x"}]}}),
            "nodePlacement.tolerations[0].kind: there is no such field",
        ),
        (json!({"apiVersion": "v1", "spec": {}}), "give what stands below spec"),
        (json!({"resourceRequirement": {"type": "Small"}}), "resourceRequirement.type: must be Default or BestEffort"),
        (
            json!({"workConfiguration": {"featureGates": [{"feature": "ManifestWorkReplicaSets", "mode": "Enable"}]}}),
            "did you mean ManifestWorkReplicaSet?",
        ),
    ] {
        let wrong = file(&wrong);
        ends(&install(&[&flag("values", &wrong)]), 2, &[words, "--values"]);
        unchanged(&hub, &before, words);
    }

    let content = file(&json!({
        "nodePlacement": {"tolerations": [{"key": "infra", "operator": "Exists"}]},
        "registrationConfiguration": {"autoApproveUsers": ["someone"]},
        "workConfiguration": {"featureGates": [
            {"feature": "ManifestWorkReplicaSet", "mode": "Enable"}, {"feature": "NilExecutorValidating", "mode": "Enable"}]},
    }));
    let values = flag("values", &content);
    let typed = [values.as_str(), "--feature-gates=ManifestWorkReplicaSet=false"];
    for (promise, code) in PROMISES {
        ends(&install(&[&typed[..], &[promise]].concat()), code, &[]);
        unchanged(&hub, &before, promise);
    }
    let told = "workConfiguration.featureGates[ManifestWorkReplicaSet].mode of the values has no effect";
    ends(&install(&typed), 0, &[told]);
    let spec = || object(&hub, &["clustermanager", "cluster-manager"])["spec"].clone();
    let installed = spec();
    assert_eq!(installed["nodePlacement"]["tolerations"][0]["key"], "infra");
    assert_eq!(installed["registrationConfiguration"]["autoApproveUsers"], json!(["someone"]));
    let mode = |name: &str| {
        let gates = installed["workConfiguration"]["featureGates"].as_array().cloned().unwrap_or_default();
        gates.iter().find(|gate| gate["feature"] == name).map(|gate| gate["mode"].clone())
    };
    assert_eq!(mode("ManifestWorkReplicaSet"), Some(json!("Disable")));
    assert_eq!(mode("NilExecutorValidating"), Some(json!("Enable")));
    // Neither the same again nor a run without the file changes anything.
    for flags in [&typed[..], &[]] {
        let before = resource_versions(&hub);
        ends(&install(flags), 0, &[]);
        unchanged(&hub, &before, flags);
        assert_eq!(spec(), installed, "{flags:?}");
    }
}
