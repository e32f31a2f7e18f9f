//! `kubectl ocm addon proxy-config` and `proxy health` on a real hub with a cluster that has joined.
//!
//! `cargo test -p e2e-tests --test e2e addon_proxy::`; it needs root.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use control_plane::{Cluster, Spec, shared};
use e2e_tests::join_support::{alone, hub, hub_access, join};
use e2e_tests::manifests::apply_client_side;
use e2e_tests::roles::{user_with, users_without_one_right};
use e2e_tests::{Said, kubectl_ocm, object, run, until_within};
use serde_json::{Value, json};

/// How long agents may take: they may have just been started, on a busy machine.
const SLOW: Duration = Duration::from_secs(120);

const AGENTS: &str = "open-cluster-management-agent-addon";

/// The cluster that the stories share; it stays joined.
fn cluster() -> &'static Cluster {
    static JOINED: OnceLock<()> = OnceLock::new();
    let cluster = shared(&Spec::node("day"));
    JOINED.get_or_init(|| {
        let said = join(cluster, "day", &[hub_access(hub()).as_str(), "--accept", "--wait", "--timeout=3m"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    });
    cluster
}

/// Somebody on the hub with exactly the documented rights.
fn somebody() -> &'static Path {
    static USER: OnceLock<PathBuf> = OnceLock::new();
    USER.get_or_init(|| user_with(hub(), "addon-proxy", &["addon.yaml", "addon-proxy-config.yaml"]))
}

/// Somebody on the managed cluster with exactly the documented rights.
fn reader() -> &'static Path {
    static USER: OnceLock<PathBuf> = OnceLock::new();
    USER.get_or_init(|| user_with(cluster(), "addon-proxy", &["addon-proxy-config-managed.yaml"]))
}

fn proxy_config(words: &[&str]) -> Said {
    run(kubectl_ocm("addon", somebody()).arg("proxy-config").args(words))
}

fn ends(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stdout.contains(word) || said.stderr.contains(word), "no {word:?} in {said:?}");
    }
}

fn file(name: &str, text: &str) -> String {
    let file = hub().dir().expect("a folder").join(name);
    std::fs::write(&file, text).expect("written");
    file.to_str().expect("text").to_owned()
}

/// An add-on whose template is a Deployment that no pod is made of.
fn create(name: &str, more: &[&str]) {
    let agent = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": AGENTS},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "agent", "image": "example.invalid/agent"}]}}}});
    let objects = file(&format!("{name}.json"), &agent.to_string());
    let words = [&["create", name, "-f", objects.as_str()], more].concat();
    ends(&run(kubectl_ocm("addon", hub().kubeconfig()).args(words)), 0, &[]);
}

fn config(namespace: &str) -> Value {
    object(hub(), &["addondeploymentconfig", "addon-proxy-settings", &format!("--namespace={namespace}")])
}

/// What the environment of the agent on the cluster says.
fn variable(addon: &str, name: &str) -> String {
    let namespace = format!("--namespace={AGENTS}");
    let Ok(text) = cluster().kubectl(&["get", "deployment", addon, &namespace, "--output=json"]) else {
        return String::new();
    };
    let live: Value = serde_json::from_str(&text).expect("JSON");
    let env = live["spec"]["template"]["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    let found = env.into_iter().find(|one| one["name"] == name);
    found.and_then(|one| one["value"].as_str().map(str::to_owned)).unwrap_or_default()
}

fn is_there(kind: &str, name: &str, namespace: &str) -> bool {
    hub().kubectl(&["get", kind, name, &format!("--namespace={namespace}")]).is_ok()
}

#[test]
fn the_agents_of_an_add_on_go_through_a_proxy_on_a_cluster() {
    let _alone = alone();
    cluster();
    create("proxied", &[]);
    let ca = file("proxy.crt", cli_tests::authority());
    let managed = format!("--managed-kubeconfig={}", reader().display());
    let ca = format!("--proxy-ca-file={ca}");
    let all = ["proxied", "--clusters=day", "--https-proxy=https://proxy.example:3129", &ca, &managed];
    let set = |more: &[&str]| proxy_config(&[&all[..], more].concat());

    // Nothing is done where it cannot be, and nothing until it is meant.
    ends(
        &set(&[]),
        3,
        &["cluster \"day\" has no add-on \"proxied\"", "kubectl ocm addon enable proxied --clusters day"],
    );
    let enabled = run(kubectl_ocm("addon", somebody()).args(["enable", "proxied", "--clusters=day"]));
    ends(&enabled, 0, &["proxied -n day created"]);
    let before =
        object(hub(), &["managedclusteraddon", "proxied", "--namespace=day"])["metadata"]["generation"].clone();
    // A variable that is not set takes nothing away where nothing is.
    for empty in [&["--https-proxy="][..], &["--http-proxy=", "--https-proxy=", "--no-proxy="]] {
        let said = proxy_config(&[&["proxied", "--clusters=day"][..], empty].concat());
        ends(&said, 2, &["the proxy is empty", "no AddOnDeploymentConfig day/addon-proxy-settings"]);
    }
    for how in ["--dry-run", "--dry-run=server", "--render"] {
        ends(&set(&[how]), 0, &["addon-proxy-settings", "proxied"]);
    }
    ends(&set(&["--diff"]), 3, &["kind: AddOnDeploymentConfig", "name: addon-proxy-settings"]);
    assert!(!is_there("addondeploymentconfig", "addon-proxy-settings", "day"));
    let after = object(hub(), &["managedclusteraddon", "proxied", "--namespace=day"])["metadata"]["generation"].clone();
    assert_eq!(before, after);

    // It is in effect, with the addresses that the cluster itself has told, and once more it is as it was.
    ends(&set(&["--wait"]), 0, &["addon-proxy-settings -n day created", "proxied -n day configured"]);
    let service = object(cluster(), &["service", "kubernetes", "--namespace=default"]);
    let address = service["spec"]["clusterIP"].as_str().expect("an address").to_owned();
    let proxy = config("day")["spec"]["proxyConfig"].clone();
    assert_eq!(proxy["httpsProxy"], "https://proxy.example:3129", "{proxy}");
    let no_proxy: Vec<&str> = proxy["noProxy"].as_str().expect("a list").split(',').collect();
    assert!(no_proxy.starts_with(&[".cluster.local", ".svc"]) && no_proxy.contains(&address.as_str()), "{proxy}");
    assert!(proxy["caBundle"].as_str().is_some_and(|bundle| bundle.len() > 100), "{proxy}");
    until_within(SLOW, "the agent has its proxy", String::new, || {
        variable("proxied", "HTTPS_PROXY") == "https://proxy.example:3129"
            && variable("proxied", "NO_PROXY").contains(&address)
    });
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"], &["--wait"]] {
        ends(&set(how), 0, &["addon-proxy-settings -n day unchanged", "proxied -n day unchanged"]);
    }
    ends(&set(&["--diff"]), 0, &[]);
    let status = run(kubectl_ocm("addon", somebody()).args(["status", "proxied", "-c", "day", "--output=name"]));
    ends(&status, 0, &["addondeploymentconfigs.addon.open-cluster-management.io/day/addon-proxy-settings"]);

    // What somebody else has set there stays, and a proxy that is taken away goes with its CA.
    let patch = json!({"spec": {"customizedVariables": [{"name": "A", "value": "1"}]}}).to_string();
    hub()
        .kubectl(&["patch", "addondeploymentconfig", "addon-proxy-settings", "-n", "day", "--type=merge", "-p", &patch])
        .expect("it is patched");
    let without = ["proxied", "--clusters=day", "--https-proxy=", "--http-proxy=http://proxy.example:3128", "--wait"];
    ends(&proxy_config(&without), 0, &["addon-proxy-settings -n day configured"]);
    let live = config("day");
    let proxy = &live["spec"]["proxyConfig"];
    assert_eq!((&proxy["httpsProxy"], &proxy["caBundle"]), (&json!(""), &Value::Null), "{live}");
    assert!(proxy["noProxy"].as_str().is_some_and(|list| list.contains(&address)), "{live}");
    assert_eq!(live["spec"]["customizedVariables"][0]["name"], "A", "{live}");
    ends(&proxy_config(&without), 0, &["addon-proxy-settings -n day unchanged"]);
    until_within(SLOW, "the agent has the other proxy", String::new, || {
        variable("proxied", "HTTPS_PROXY").is_empty()
            && variable("proxied", "HTTP_PROXY") == "http://proxy.example:3128"
    });

    // One of a kind: another one is not replaced.
    let other = ["proxied", "--clusters=day", "--config=default/other", "--http-proxy=http://other.example:3128"];
    ends(
        &proxy_config(&other),
        3,
        &["refers to AddOnDeploymentConfig day/addon-proxy-settings", "--config day/addon-proxy-settings"],
    );
    assert!(!is_there("addondeploymentconfig", "other", "default"));

    let gone = run(kubectl_ocm("addon", somebody()).args(["disable", "proxied", "--clusters=day", "--yes"]));
    ends(&gone, 0, &[]);
    hub().kubectl(&["delete", "clustermanagementaddon", "proxied"]).expect("it goes");
    hub().kubectl(&["delete", "addontemplate", "proxied-0.0.1"]).expect("it goes");
    hub().kubectl(&["delete", "addondeploymentconfig", "addon-proxy-settings", "--namespace=day"]).expect("it goes");
}

#[test]
fn a_proxy_is_set_for_all_clusters_and_for_those_of_a_placement() {
    let _alone = alone();
    cluster();
    hub().kubectl(&["label", "managedcluster", "day", "proxies=placed", "--overwrite"]).expect("it is labelled");
    apply_client_side(
        hub(),
        "binding",
        &json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "default", "namespace": "default"}, "spec": {"clusterSet": "default"}}),
    );
    apply_client_side(
        hub(),
        "placed",
        &json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "placed", "namespace": "default"}, "spec": {"predicates": [
                {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"proxies": "placed"}}}}]}}),
    );
    create("placed", &["--placement=default/placed"]);
    let status = |is: &dyn Fn(&Said) -> bool| {
        let said = || run(kubectl_ocm("addon", somebody()).args(["status", "placed", "--output=name"]));
        until_within(SLOW, "the configuration takes effect", || format!("{:?}", said()), || is(&said()));
    };
    status(&|said| said.code == Some(0) && said.stdout.contains("/placed-0.0.1"));

    let list = "--no-proxy=10.96.0.0/16";
    let by_default = ["placed", "--default", "--config=default/all", "--http-proxy=http://all.example:3128", list];
    ends(&proxy_config(&by_default), 0, &["/all -n default created", "/placed configured"]);
    ends(&proxy_config(&by_default), 0, &["/all -n default unchanged", "/placed unchanged"]);
    status(&|said| said.code == Some(0) && said.stdout.contains("/default/all"));

    // That of the placement replaces it, and what is written for the one leaves the other alone.
    let placed = ["placed", "--placement=default/placed", "--http-proxy=http://placed.example:3128", list, "--wait"];
    ends(&proxy_config(&placed), 0, &["/addon-proxy-settings -n default created", "/placed configured"]);
    ends(&proxy_config(&placed), 0, &["/addon-proxy-settings -n default unchanged", "/placed unchanged"]);
    status(&|said| said.code == Some(0) && said.stdout.contains("/default/addon-proxy-settings"));
    until_within(SLOW, "the agent has the proxy", String::new, || {
        variable("placed", "HTTP_PROXY") == "http://placed.example:3128"
    });
    let live = || {
        object(hub(), &["clustermanagementaddons.v1alpha1.addon.open-cluster-management.io", "placed"])["spec"].clone()
    };
    let all = live();
    let template =
        all["supportedConfigs"].as_array().expect("kinds").iter().find(|one| one["resource"] == "addontemplates");
    assert_eq!(template.expect("the template")["defaultConfig"]["name"], "placed-0.0.1", "{all}");
    assert_eq!(all["installStrategy"]["type"], "Placements", "{all}");

    // What is created anew keeps both; the order of the kinds says nothing.
    let sorted = |mut spec: Value| {
        spec["supportedConfigs"].as_array_mut().expect("kinds").sort_by_key(|one| one["resource"].to_string());
        spec
    };
    create("placed", &["--placement=default/placed"]);
    let again = live();
    assert_eq!(sorted(again.clone()), sorted(all));
    create("placed", &["--placement=default/placed"]);
    assert_eq!(live(), again);

    let unknown = ["placed", "--placement=default/other", "--http-proxy=http://p.example:3128"];
    ends(
        &proxy_config(&unknown),
        3,
        &["does not install add-on \"placed\" by placement default/other", "default/placed"],
    );
    // Without an address in the list it is told what it means.
    let unsure = ["placed", "--default", "--config=default/all", "--no-proxy=.example", "--dry-run"];
    ends(&proxy_config(&unsure), 0, &["noProxy names no address"]);

    hub().kubectl(&["delete", "clustermanagementaddon", "placed"]).expect("it goes");
    until_within(SLOW, "it goes from the cluster", String::new, || !is_there("managedclusteraddon", "placed", "day"));
    hub().kubectl(&["delete", "addontemplate", "placed-0.0.1"]).expect("it goes");
    for name in ["all", "addon-proxy-settings"] {
        hub().kubectl(&["delete", "addondeploymentconfig", name, "--namespace=default"]).expect("it goes");
    }
}

/// The role of `proxy kubectl` for a namespace, and the namespaces where it is bound here.
const BOUND: [(&str, &str); 2] =
    [("kubectl-ocm-proxy-kubectl-servers", "default"), ("kubectl-ocm-proxy-kubectl-accounts", "day")];

/// Somebody who may act on the cluster: with the documented roles, each bound where its file says.
fn acting_on_day() -> PathBuf {
    let roles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rbac/proxy-kubectl.yaml");
    hub().kubectl(&["apply", "--filename", roles.to_str().expect("text")]).expect("the roles can be applied");
    let (name, user) = ("proxy-kubectl", "--user=proxy-kubectl");
    let words = ["create", "clusterrolebinding", name, "--clusterrole=kubectl-ocm-proxy-kubectl", user];
    hub().kubectl(&words).expect("it is bound");
    for (role, namespace) in BOUND {
        let (role, namespace) = (format!("--clusterrole={role}"), format!("--namespace={namespace}"));
        hub().kubectl(&["create", "rolebinding", name, &role, user, &namespace]).expect("it is bound");
    }
    until_within(SLOW, "the last role is in force", String::new, || {
        hub().kubectl(&["auth", "can-i", "get", "secrets", "--namespace=day", "--as", name]).is_ok()
    });
    let elsewhere = hub().kubectl(&["auth", "can-i", "get", "secrets", "--namespace=kube-system", "--as", name]);
    assert!(elsewhere.is_err(), "Secrets of others are not read");
    hub().user_kubeconfig(name, &[]).expect("a user can be made")
}

/// With a ManagedServiceAccount, everything is read up to the certificate of the servers' clients, which cannot be used; and
/// that is not reached without a single right.
fn kubectl_needs_what_is_documented(proxy: &dyn Fn(&[&str]) -> Said) {
    const KIND: &str = "managedserviceaccounts.authentication.open-cluster-management.io";
    const READ: &str = "Secret default/proxy-client of the proxy servers cannot be used";
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    apply_client_side(
        hub(),
        "accounts",
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": KIND},
            "spec": {"group": "authentication.open-cluster-management.io", "scope": "Namespaced",
                "names": {"plural": "managedserviceaccounts", "singular": "managedserviceaccount",
                    "kind": "ManagedServiceAccount", "listKind": "ManagedServiceAccountList"},
                "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}}),
    );
    hub().kubectl(&["wait", "--for=condition=Established", &format!("crd/{KIND}"), "--timeout=60s"]).expect("served");
    let account = json!({"apiVersion": "authentication.open-cluster-management.io/v1beta1", "kind": "ManagedServiceAccount",
        "metadata": {"name": "reader", "namespace": "day"}, "status": {"tokenSecretRef": {"name": "reader"}}});
    let taken = file("account.json", &account.to_string());
    until_within(SLOW, "the account is there", String::new, || hub().kubectl(&["apply", "--filename", &taken]).is_ok());
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["proxy-ca".to_owned()]).expect("parameters");
    let root = params.self_signed(&key).expect("a certificate").pem();
    let secret = |namespace: &str, name: &str, data: Value| {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "stringData": data});
        apply_client_side(hub(), "secret", &secret);
    };
    secret("day", "reader", json!({"token": "t0ken", "ca.crt": root}));
    secret("default", "proxy-server-ca", json!({"ca.crt": root}));
    secret("default", "proxy-client", json!({"tls.crt": "no certificate", "tls.key": "no key"}));

    let ways =
        [&["kubectl", "day", "--", "get", "nodes"][..], &["kubectl", "day", "--sa=reader", "--", "get", "nodes"]];
    for way in ways {
        ends(&proxy(way), 1, &[READ]);
    }
    // No proxy server is ready, so nobody gets as far as a port of one. And bound everywhere, as these users have them, the
    // rights to Secrets of clusters are rights to those of the proxy servers, too.
    let unseen = ["pods/portforward", "secrets \"proxy-"];
    let users = users_without_one_right(hub(), "proxy-kubectl.yaml");
    assert_eq!(users.len(), 11);
    for (user, missing) in &users {
        let said = ways.map(|way| {
            let words = [&["--as", user.as_str()], way].concat();
            run(kubectl_ocm("proxy", hub().kubeconfig()).args(words))
        });
        let is_refused = said.iter().any(|said| said.code == Some(1) && !said.stderr.contains(READ));
        let is_unseen = unseen.iter().any(|right| missing.contains(right));
        assert_ne!(is_refused, is_unseen, "who {missing:?}: {said:?}");
    }
    hub().kubectl(&["delete", "secret", "reader", "--namespace=day"]).expect("it goes");
    hub().kubectl(&["delete", "secret", "proxy-server-ca", "proxy-client", "--namespace=default"]).expect("they go");
    hub().kubectl(&["delete", "crd", KIND]).expect("it goes");
    for (_, namespace) in BOUND {
        let namespace = format!("--namespace={namespace}");
        hub().kubectl(&["delete", "rolebinding", "proxy-kubectl", &namespace]).expect("it goes");
    }
}

#[test]
fn a_hub_says_what_keeps_clusters_from_being_reached_through_cluster_proxy() {
    let _alone = alone();
    cluster();
    let user = user_with(hub(), "proxy-health", &["proxy.yaml"]);
    let acting = acting_on_day();
    let proxy = |words: &[&str]| {
        let user = if words[0] == "kubectl" { &acting } else { &user };
        run(kubectl_ocm("proxy", user).args(words))
    };
    for words in [&["health"][..], &["kubectl", "day", "--", "get", "nodes"]] {
        ends(&proxy(words), 1, &["no ClusterManagementAddOn \"cluster-proxy\"", "is not installed"]);
    }

    // As its chart leaves a hub on which no image can be pulled.
    apply_client_side(
        hub(),
        "definition",
        &json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
            "metadata": {"name": "cluster-proxy"}, "spec": {"installStrategy": {"type": "Manual"}}}),
    );
    ends(&proxy(&["health"]), 1, &["no ManagedProxyConfiguration \"cluster-proxy\""]);
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    apply_client_side(
        hub(),
        "crd",
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "managedproxyconfigurations.proxy.open-cluster-management.io"},
            "spec": {"group": "proxy.open-cluster-management.io", "scope": "Cluster",
                "names": {"plural": "managedproxyconfigurations", "singular": "managedproxyconfiguration",
                    "kind": "ManagedProxyConfiguration", "listKind": "ManagedProxyConfigurationList"},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}}),
    );
    let crd = "crd/managedproxyconfigurations.proxy.open-cluster-management.io";
    hub().kubectl(&["wait", "--for=condition=Established", crd, "--timeout=60s"]).expect("it is served");
    apply_client_side(
        hub(),
        "configuration",
        &json!({"apiVersion": "proxy.open-cluster-management.io/v1alpha1", "kind": "ManagedProxyConfiguration",
            "metadata": {"name": "cluster-proxy"}, "spec": {"proxyServer": {"namespace": "default",
                "entrypoint": {"type": "Hostname", "hostname": {"value": "hub.example"}, "port": 8091}}}}),
    );
    let said = proxy(&["health"]);
    ends(
        &said,
        3,
        &["hub.example:8091", "0/0", "it does not exist yet", "kubectl ocm addon enable cluster-proxy --clusters day"],
    );

    // With the add-on, what is missing is the proxy servers.
    let enabled = run(kubectl_ocm("addon", hub().kubeconfig()).args(["enable", "cluster-proxy", "--clusters=day"]));
    ends(&enabled, 0, &[]);
    let said = proxy(&["health", "day", "--output=json"]);
    ends(&said, 3, &[]);
    let told: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let day = &told["clusters"][0];
    assert_eq!((&day["name"], &day["installed"]), (&json!("day"), &json!(true)), "{told}");
    assert!(day["why"].as_str().is_some_and(|why| why.starts_with("proxy servers: ")), "{told}");
    assert!(day.get("reached").is_none(), "{told}");
    ends(&proxy(&["health", "nobody"]), 1, &["nobody"]);
    ends(&proxy(&["kubectl", "day", "--", "get", "nodes"]), 1, &["the add-on managed-serviceaccount is not installed"]);
    kubectl_needs_what_is_documented(&proxy);

    for words in [
        &["delete", "managedclusteraddon", "cluster-proxy", "--namespace=day"][..],
        &["delete", "clustermanagementaddon", "cluster-proxy"],
        &["delete", crd],
    ] {
        hub().kubectl(words).expect("it goes");
    }
}
