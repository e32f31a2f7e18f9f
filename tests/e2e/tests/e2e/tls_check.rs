//! `kubectl ocm tls-check` of a real hub and a real managed cluster: nothing is found while all is well, what is broken is
//! found as what it is, and is no longer found once it is undone.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cli_tests::proxy::{CREDENTIALS, Kind, Manner, Proxy};
use control_plane::{Cluster, Spec, shared};
use e2e_tests::join_support::{alone, hub, hub_access, join};
use e2e_tests::manifests::apply;
use e2e_tests::roles::user_with;
use e2e_tests::shared_hub::node;
use e2e_tests::{Said, canaries, kubectl_ocm, object, resource_versions, run, until, until_within};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};
use serde_json::{Value, json};

const HUB: &str = "open-cluster-management-hub";
const AGENTS: &str = "open-cluster-management-agent";
const OPERATOR: &str = "open-cluster-management";
const ADD_ONS: &str = "open-cluster-management-agent-addon";
/// How long pods may take to end.
const GONE: Duration = Duration::from_secs(120);

fn check(kubeconfig: &Path, flags: &[&str]) -> (Said, Value) {
    let said = run(kubectl_ocm("tls-check", kubeconfig).arg("--output=json").args(flags));
    let document = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    (said, document)
}

/// What was found, each once.
fn ids(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array();
    let mut ids: Vec<&str> = findings.into_iter().flatten().filter_map(|finding| finding["id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What certificates are there for.
fn purposes(document: &Value) -> Vec<&str> {
    let relations = document["inventory"]["relations"].as_array();
    relations.into_iter().flatten().filter_map(|relation| relation["purpose"].as_str()).collect()
}

/// A managed cluster of this name, joined and accepted.
fn joined(cluster: &Cluster, name: &str) {
    let said = join(cluster, name, &["--wait", "--accept", &hub_access(hub())]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// The managed cluster that tests share: nobody breaks it.
fn managed() -> &'static Cluster {
    let managed = shared(&Spec::node("managed"));
    joined(managed, "c1");
    managed
}

fn kubectl(cluster: &Cluster, words: &[&str]) {
    cluster.kubectl(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
}

/// Replaces values of a Secret or a ConfigMap while `with` runs.
fn replaced(cluster: &Cluster, kind: &str, namespace: &str, name: &str, values: &[(&str, &str)], with: impl FnOnce()) {
    let what = [kind, name, "--namespace", namespace];
    let before = object(cluster, &what)["data"].clone();
    let encoded = |value: &str| if kind == "secret" { STANDARD.encode(value) } else { value.to_owned() };
    let patch = |data: Value| {
        let patch = format!("--patch={}", json!({ "data": data }));
        kubectl(cluster, &[&["patch", "--type=merge", &patch], what.as_slice()].concat());
    };
    patch(values.iter().map(|(key, value)| ((*key).to_owned(), Value::from(encoded(value)))).collect());
    with();
    patch(values.iter().map(|(key, _)| ((*key).to_owned(), before[key].clone())).collect());
}

fn scaled(cluster: &Cluster, namespace: &str, name: &str, replicas: u32) {
    let replicas = format!("--replicas={replicas}");
    kubectl(cluster, &["scale", "deployment", name, "--namespace", namespace, &replicas]);
}

/// Somebody who signs, and what was signed.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate and its key.
    fn sign(&self, params: &CertificateParams) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }
}

/// The same for a year that is over.
fn over(mut params: CertificateParams) -> CertificateParams {
    (params.not_before, params.not_after) = (date_time_ymd(2023, 1, 1), date_time_ymd(2024, 1, 1));
    params
}

/// A TLS server on this machine, which presents this. It serves until the process ends.
fn server((certificate, key): (rcgen::Certificate, KeyPair)) -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a pair");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("https://{}", listener.local_addr().expect("it has one"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut connection = rustls::ServerConnection::new(config.clone()).expect("a connection");
            while connection.is_handshaking() && connection.complete_io(&mut stream).is_ok() {}
        }
    });
    address
}

fn kubeconfig(server: &str, authority: &str) -> String {
    kubeconfig_through(None, server, authority)
}

fn kubeconfig_through(proxy: Option<String>, server: &str, authorities: &str) -> String {
    let authorities = STANDARD.encode(authorities);
    let cluster = json!({"server": server, "certificate-authority-data": authorities, "proxy-url": proxy});
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string()
}

/// The same with a token of a service account that is valid between these seconds since 1970.
fn with_token(kubeconfig: &str, issued: u64, expires: u64) -> String {
    let mut config: Value = serde_json::from_str(kubeconfig).expect("it is JSON");
    let claims = json!({"iat": issued, "exp": expires, "sub": "system:serviceaccount:k:agent"});
    let token = format!("e30.{}.{SIGNATURE}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    config["users"] = json!([{"name": "u", "user": {"token": token}}]);
    config.to_string()
}

/// What nobody is told of a token.
const SIGNATURE: &str = "c2VjcmV0LXNpZ25hdHVyZQ";

/// What an operator reaches another cluster with.
fn external(cluster: &Cluster, name: &str, namespace: &str, kubeconfig: &str) {
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "data": {"kubeconfig": STANDARD.encode(kubeconfig)},
    });
    apply(cluster, &object);
}

#[test]
fn a_healthy_pair_has_no_findings_tells_no_secret_and_nothing_is_written() {
    let _alone = alone();
    let (hub, managed) = (hub(), managed());
    let before = (resource_versions(hub), resource_versions(managed));
    let (said, document) = check(hub.kubeconfig(), &["--fail-on=warning"]);
    assert_eq!((said.code, ids(&document)), (Some(0), vec![]), "{said:?}");
    for wanted in ["hubApi", "signer", "webhook"] {
        assert!(purposes(&document).contains(&wanted), "{wanted}: {said:?}");
    }
    let (said, document) = check(managed.kubeconfig(), &[&hub_access(hub), "--fail-on=warning"]);
    assert_eq!((said.code, ids(&document)), (Some(0), vec![]), "{said:?}");
    assert!(purposes(&document).contains(&"agent"), "{said:?}");
    // Leases and what counts up are no change of ours; objects that hold certificates have not changed.
    let of = |versions: std::collections::BTreeMap<String, String>| {
        versions.into_iter().filter(|(name, _)| name.contains("secret")).collect::<Vec<_>>()
    };
    assert_eq!((of(before.0), of(before.1)), (of(resource_versions(hub)), of(resource_versions(managed))));
    // What ends within ten years is most of it.
    let (said, document) = check(hub.kubeconfig(), &["--expires-in=3650d"]);
    assert_eq!((said.code, ids(&document)), (Some(3), vec!["OCM4009"]), "{said:?}");

    let canaries: Vec<String> = canaries(managed).into_iter().chain(canaries(hub)).collect();
    assert!(canaries.len() > 5, "the clusters hold secrets");
    let identity = "secret/open-cluster-management-agent/hub-kubeconfig-secret";
    let bootstrap = "secret/open-cluster-management-agent/bootstrap-hub-kubeconfig";
    for output in ["table", "wide", "json", "yaml", "name", "prometheus", "junit", "sarif", "markdown"] {
        let output = format!("--output={output}");
        for flags in [vec![hub_access(hub)], vec![identity.to_owned()], vec![bootstrap.to_owned()]] {
            let said = run(kubectl_ocm("tls-check", managed.kubeconfig()).arg(&output).args(&flags));
            assert_eq!(said.code, Some(0), "{output} {flags:?}: {said:?}");
            for canary in &canaries {
                let encoded = STANDARD.encode(canary);
                let is_told = |text: &str| text.contains(canary) || text.contains(encoded.trim_end_matches('='));
                assert!(!is_told(&said.stdout) && !is_told(&said.stderr), "a secret is told in {output} {flags:?}");
            }
        }
    }
}

#[test]
fn servers_inside_of_a_cluster_present_what_their_secrets_hold() {
    let _alone = alone();
    let hub = hub();
    let bundle = object(hub, &["configmap", "ca-bundle-configmap", "--namespace", HUB]);
    let file = hub.dir().expect("a folder").join("bundle.pem");
    std::fs::write(&file, bundle["data"]["ca-bundle.crt"].as_str().unwrap_or_default()).expect("a file");
    let ca = format!("--ca-file={}", file.display());
    let service = format!("service/{HUB}/cluster-manager-registration-webhook:9443");
    let (said, document) = check(hub.kubeconfig(), &[&service, &ca, "--fail-on=warning"]);
    assert_eq!((said.code, ids(&document)), (Some(0), vec![]), "{said:?}");
    let relation = &document["inventory"]["relations"][0];
    assert!(relation["handshake"]["suites"].as_array().is_some_and(|suites| !suites.is_empty()), "{said:?}");
    let presented = relation["chain"][0].clone();
    let secret = format!("secret/{HUB}/registration-webhook-serving-cert");
    let (said, document) = check(hub.kubeconfig(), &[&secret]);
    assert_eq!(document["inventory"]["relations"][0]["chain"][0], presented, "{said:?}");
    // Whom it is to be trusted by is not known without a file, and nothing is said about it.
    let (said, document) = check(hub.kubeconfig(), &[&service]);
    assert_eq!((said.code, ids(&document)), (Some(0), vec![]), "{said:?}");
    let (said, document) = check(hub.kubeconfig(), &[&service, &ca, "--profile=modern", "--fail-on=warning"]);
    assert_eq!((said.code, ids(&document)), (Some(3), vec!["OCM4030"]), "{said:?}");
    // The port of a pod, which no Service stands for.
    let label = "--selector=app=cluster-manager-registration-webhook";
    let pod = hub.kubectl(&["get", "pods", label, "--namespace", HUB, "--output=jsonpath={.items[0].metadata.name}"]);
    let pod = format!("pod/{HUB}/{}:9443", pod.expect("there is a pod"));
    let (said, document) = check(hub.kubeconfig(), &[&pod, &ca, "--fail-on=warning"]);
    assert_eq!((said.code, ids(&document)), (Some(0), vec![]), "{said:?}");
    let wrong = run(kubectl_ocm("tls-check", hub.kubeconfig()).arg(format!("service/{HUB}/nobody:9443")));
    assert!(wrong.code == Some(1) && wrong.stderr.contains("there is no Service"), "{wrong:?}");
}

#[test]
fn many_clusters_are_looked_at_for_one_report_and_one_that_is_gone_hides_no_other() {
    let _alone = alone();
    let (hub, managed) = (hub(), managed());
    // Users of kubeconfigs that are used together have names of their own.
    let admin = |cluster: &Cluster, user: &str| cluster.user_kubeconfig(user, &["system:masters"]).expect("a user");
    let gone = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "gone", "user": {"token": "gone"}}],
        "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "gone"}}],
    });
    let file = managed.dir().expect("a folder").join("gone.kubeconfig");
    std::fs::write(&file, gone.to_string()).expect("a file");
    let files =
        [admin(hub, "tls-of-hub"), admin(managed, "tls-of-managed"), file].map(|file| file.display().to_string());
    let look = |contexts: &[&str], flags: &[&str]| {
        let mut command = kubectl_ocm("tls-check", hub.kubeconfig());
        command.env("KUBECONFIG", files.join(":")).arg(format!("--contexts={}", contexts.join(",")));
        let said = run(command.args(["--output=json", "--fail-on=warning"]).args(flags));
        let document: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        (said, document)
    };
    let of = |document: &Value, key: &str| -> Vec<String> {
        let all = document[key].as_array().into_iter().flatten();
        let mut names: Vec<String> = all.filter_map(|one| one["context"].as_str().map(str::to_owned)).collect();
        names.dedup();
        names
    };
    // Beside their hub, which comes first.
    let (said, document) = look(&[managed.name()], &[&hub_access(hub)]);
    assert_eq!((said.code, ids(&document)), (Some(0), vec![]), "{said:?}");
    assert_eq!(of(&document, "inventories"), [hub.name(), managed.name()], "{said:?}");
    // A hub is a cluster as any other.
    let (said, document) = look(&[managed.name(), hub.name(), "gone"], &[]);
    assert_eq!((said.code, ids(&document)), (Some(4), vec![]), "{said:?}");
    assert_eq!(of(&document, "inventories"), [managed.name(), hub.name(), "gone"], "{said:?}");
    assert_eq!(of(&document, "unseen"), ["gone"], "{said:?}");
    // One time line, in which what ends first stands first.
    let ends: Vec<&str> =
        document["expiries"].as_array().into_iter().flatten().filter_map(|row| row["notAfter"].as_str()).collect();
    assert!(ends.is_sorted() && of(&document, "expiries").len() > 1, "{said:?}");
    let (said, document) = look(&[managed.name(), hub.name(), "gone"], &["--expires-in=3650d"]);
    assert_eq!((said.code, ids(&document)), (Some(3), vec!["OCM4009"]), "{said:?}");
    let soon = of(&document, "findings");
    assert!([managed.name(), hub.name()].iter().all(|name| soon.iter().any(|soon| soon == name)), "{said:?}");
}

#[test]
fn faults_of_a_managed_cluster_are_found_and_gone_when_they_are_undone() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let name = "tls1";
    joined(&cluster, name);
    // With nobody to react to what is broken. An operator that still ends would scale its agents up again, and a pod that
    // still ends would put things right.
    let agents = ["klusterlet-registration-agent", "klusterlet-work-agent"];
    for (namespace, deployments) in [(OPERATOR, &["klusterlet"][..]), (AGENTS, &agents)] {
        deployments.iter().for_each(|deployment| scaled(&cluster, namespace, deployment, 0));
        let pods = || cluster.kubectl(&["get", "pods", "--namespace", namespace, "--output=name"]).unwrap_or_default();
        until_within(GONE, "the pods are gone", pods, || {
            cluster
                .kubectl(&["get", "pods", "--namespace", namespace, "--output=name"])
                .is_ok_and(|pods| pods.is_empty())
        });
    }
    let access = hub_access(hub);
    let is = |what: &str, wanted: &[&str]| {
        let (said, document) = check(cluster.kubeconfig(), &[&access, "--fail-on=warning"]);
        let code = if wanted.is_empty() { 0 } else { 3 };
        assert_eq!((said.code, ids(&document)), (Some(code), wanted.to_vec()), "{what}: {said:?}");
        for finding in document["findings"].as_array().into_iter().flatten() {
            assert!(finding["next"].as_array().is_some_and(|next| !next.is_empty()), "{what}: {finding:#}");
        }
    };
    is("before", &[]);

    // Servers as the agents dial them.
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let local = || CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let (expired, wrong, right) =
        (over(local()), CertificateParams::new(vec!["elsewhere.example".to_owned()]).expect("a name"), local());
    let (mut early, mut of_client) = (local(), local());
    (early.not_before, early.not_after) = (date_time_ymd(2040, 1, 1), date_time_ymd(2041, 1, 1));
    of_client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    for (what, server, found) in [
        ("right", server(ca.sign(&right)), vec![]),
        ("expired", server(ca.sign(&expired)), vec!["OCM4002"]),
        ("not valid yet", server(ca.sign(&early)), vec!["OCM4003"]),
        ("a client's", server(ca.sign(&of_client)), vec!["OCM4005"]),
        ("wrong name", server(ca.sign(&wrong)), vec!["OCM4004"]),
        ("foreign authority", server(other.sign(&right)), vec!["OCM4001"]),
    ] {
        let kubeconfig = kubeconfig(&server, &ca.pem);
        let values = [("kubeconfig", kubeconfig.as_str())];
        replaced(&cluster, "secret", AGENTS, "hub-kubeconfig-secret", &values, || {
            replaced(&cluster, "secret", AGENTS, "bootstrap-hub-kubeconfig", &values, || is(what, &found));
        });
    }
    is("the servers are right again", &[]);
    // Two ways to one hub.
    let [one, two] = [(); 2].map(|()| kubeconfig(&server(ca.sign(&right)), &ca.pem));
    replaced(&cluster, "secret", AGENTS, "hub-kubeconfig-secret", &[("kubeconfig", &one)], || {
        replaced(&cluster, "secret", AGENTS, "bootstrap-hub-kubeconfig", &[("kubeconfig", &two)], || {
            is("another address", &["OCM4024"]);
        });
    });
    is("one address again", &[]);
    // A proxy that speaks TLS is trusted like the server behind it.
    let proxy = Proxy::start(Kind::Https, Manner::Connects);
    let behind = server(ca.sign(&right));
    for (what, authorities, found) in [
        ("a trusted proxy", format!("{}{}", ca.pem, proxy.authority()), vec![]),
        ("a foreign proxy", ca.pem.clone(), vec!["OCM4001"]),
    ] {
        let kubeconfig = kubeconfig_through(Some(proxy.url(CREDENTIALS)), &behind, &authorities);
        let values = [("kubeconfig", kubeconfig.as_str())];
        replaced(&cluster, "secret", AGENTS, "hub-kubeconfig-secret", &values, || {
            replaced(&cluster, "secret", AGENTS, "bootstrap-hub-kubeconfig", &values, || is(what, &found));
        });
    }
    // The API server of a cluster whose agent is hosted here.
    apply(&cluster, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hosted"}}));
    let klusterlet = json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": {"name": "hosted"},
        "spec": {"clusterName": "h1", "deployOption": {"mode": "Hosted"}},
    });
    apply(&cluster, &klusterlet);
    for (what, authority, found) in
        [("a hosted agent's", &ca.pem, vec![]), ("another than a hosted agent's", &other.pem, vec!["OCM4001"])]
    {
        external(&cluster, "external-managed-kubeconfig", "hosted", &kubeconfig(&behind, authority));
        is(what, &found);
        assert!(purposes(&check(cluster.kubeconfig(), &[]).1).contains(&"managedApi"));
    }
    // What comes to that cluster: tokens, as far as they tell of themselves, and the authorities that the operator carries over.
    let (own, foreign) = (kubeconfig(&behind, &ca.pem), kubeconfig(&behind, &other.pem));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_secs();
    let (day, work) = (86_400, "external-managed-kubeconfig-work");
    for (what, name, kubeconfig, found) in [
        ("a token", "external-managed-kubeconfig", with_token(&own, now - day, now + day), vec![]),
        (
            "an expired token",
            "external-managed-kubeconfig",
            with_token(&own, now - 2 * day, now - day),
            vec!["OCM4013"],
        ),
        ("the operator's again", "external-managed-kubeconfig", own.clone(), vec![]),
        ("a token in time", work, with_token(&own, now - day, now + day), vec![]),
        ("a token that is not renewed", work, with_token(&own, now - 9 * day, now + day), vec!["OCM4008"]),
        ("other authorities", work, foreign, vec!["OCM4001", "OCM4027"]),
        ("the authorities of the operator", work, own.clone(), vec![]),
    ] {
        external(&cluster, name, "hosted", &kubeconfig);
        is(what, &found);
    }
    external(&cluster, work, "hosted", &with_token(&own, now - day, now + day));
    let (said, document) = check(cluster.kubeconfig(), &[]);
    let token = &document["inventory"]["tokens"][0];
    assert_eq!((&token["purpose"], &token["cluster"]), (&json!("hosted"), &json!("h1")), "{said:?}");
    let rows = document["expiries"].as_array().into_iter().flatten();
    let subjects: Vec<&Value> = rows.filter(|row| row["part"] == "token").map(|row| &row["subject"]).collect();
    assert_eq!(subjects, ["system:serviceaccount:k:agent"], "{said:?}");
    for output in ["table", "wide", "json", "yaml", "prometheus", "markdown", "sarif"] {
        let said = run(kubectl_ocm("tls-check", cluster.kubeconfig()).arg(format!("--output={output}")));
        assert!(!said.stdout.is_empty(), "{output}: {said:?}");
        assert!(!said.stdout.contains(SIGNATURE) && !said.stderr.contains(SIGNATURE), "{output}: a token is told");
    }
    kubectl(&cluster, &["delete", "klusterlet", "hosted"]);
    // The authorities by which an add-on trusts its proxy.
    let bundle = |pem: &str| {
        let metadata = json!({"name": "p-proxy-ca", "namespace": ADD_ONS});
        let data = json!({"ca-bundle.crt": pem});
        apply(&cluster, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}));
    };
    bundle(&ca.pem);
    is("authorities of a proxy", &[]);
    let (said, document) = check(cluster.kubeconfig(), &[]);
    let mut rows = document["expiries"].as_array().into_iter().flatten();
    assert!(rows.any(|row| row["purpose"] == "proxy" && row["part"] == "trusted"), "{said:?}");
    bundle(&ca.pem.repeat(2));
    is("authorities of a proxy, one twice", &["OCM4022"]);
    kubectl(&cluster, &["delete", "configmap", "p-proxy-ca", "--namespace", ADD_ONS]);
    // What the agent registers with and what it works with differ.
    let foreign = kubeconfig(hub.server(), &other.pem);
    replaced(&cluster, "secret", AGENTS, "bootstrap-hub-kubeconfig", &[("kubeconfig", &foreign)], || {
        is("another authority", &["OCM4001", "OCM4023"]);
    });

    // Certificates of the agent.
    let agent = |cluster: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, format!("system:open-cluster-management:{cluster}:a"));
        params.distinguished_name.push(DnType::OrganizationName, format!("system:open-cluster-management:{cluster}"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params
    };
    let pems = |(certificate, key): (rcgen::Certificate, KeyPair)| (certificate.pem(), key.serialize_pem());
    let ((old, old_key), (stranger, strange_key)) =
        (pems(other.sign(&over(agent(name)))), pems(other.sign(&agent("t2"))));
    let with = |values: &[(&str, &str)], what: &str, found: &[&str]| {
        replaced(&cluster, "secret", AGENTS, "hub-kubeconfig-secret", values, || is(what, found));
    };
    let values = [("tls.crt", old.as_str()), ("tls.key", &old_key), ("agent-name", "a")];
    with(&values, "an expired agent of another authority", &["OCM4001", "OCM4002"]);
    // As one of many clusters it is judged in the light of its hub, too.
    replaced(&cluster, "secret", AGENTS, "hub-kubeconfig-secret", &values, || {
        let contexts = format!("--contexts={}", cluster.name());
        let (said, document) = check(cluster.kubeconfig(), &[&access, &contexts, "--fail-on=warning"]);
        assert_eq!((said.code, ids(&document)), (Some(3), vec!["OCM4001", "OCM4002"]), "{said:?}");
        let mut findings = document["findings"].as_array().into_iter().flatten();
        assert!(findings.all(|finding| finding["context"] == cluster.name()), "{said:?}");
    });
    with(&[("tls.crt", &stranger), ("tls.key", &strange_key)], "another cluster's", &["OCM4001", "OCM4010"]);
    with(&[("tls.key", &strange_key)], "another key", &["OCM4011"]);
    with(&[("tls.crt", "nothing")], "no certificate", &["OCM4012"]);

    // Add-ons, in a namespace that a label or the hub says is theirs.
    let add_on = |cluster: &str| {
        let mut params = agent(cluster);
        let group = format!("system:open-cluster-management:cluster:{cluster}:addon:hello");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, format!("{group}:agent:a"));
        params.distinguished_name.push(DnType::OrganizationName, group);
        pems(other.sign(&params))
    };
    let holds = |(certificate, key): (String, String)| {
        let data = json!({"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key),
            "cluster-name": STANDARD.encode(name)});
        let metadata = json!({"name": "hello-hub-kubeconfig", "namespace": "hello"});
        apply(&cluster, &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}));
    };
    apply(&cluster, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hello"}}));
    holds(add_on("t2"));
    is("a namespace of which nobody knows", &[]);
    let enabled = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "hello", "namespace": name}, "spec": {"installNamespace": "hello"},
    });
    apply(hub, &enabled);
    is("a namespace that the hub knows", &["OCM4001", "OCM4010"]);
    kubectl(hub, &["delete", "managedclusteraddon", "hello", "--namespace", name]);
    is("the hub knows nothing of it any more", &[]);
    kubectl(&cluster, &["label", "namespace", "hello", "addon.open-cluster-management.io/namespace=true"]);
    is("a namespace with a label", &["OCM4001", "OCM4010"]);
    holds(add_on(name));
    is("an add-on of this cluster, whom the hub does not let in", &["OCM4001"]);
    kubectl(&cluster, &["delete", "namespace", "hello"]);

    // What the hub has of the cluster's API server.
    let reported = |authority: Option<&str>| {
        let config = |pem: &str| json!([{"url": cluster.server(), "caBundle": STANDARD.encode(pem)}]);
        let patch = json!({"spec": {"managedClusterClientConfigs": authority.map(config)}});
        kubectl(hub, &["patch", "managedcluster", name, "--type=merge", &format!("--patch={patch}")]);
    };
    reported(Some(&other.pem));
    is("another authority of the cluster", &["OCM4026"]);
    let own = object(&cluster, &["configmap", "kube-root-ca.crt", "--namespace", AGENTS]);
    reported(own["data"]["ca.crt"].as_str());
    is("the cluster's own authority", &[]);
    reported(None);
    is("after all", &[]);
}

#[test]
fn faults_of_a_hub_are_found_and_gone_when_they_are_undone() {
    let _alone = alone();
    let hub = hub();
    let is = |what: &str, wanted: &[&str]| {
        let (said, document) = check(hub.kubeconfig(), &["--fail-on=warning"]);
        assert_eq!(ids(&document), wanted, "{what}: {said:?}");
    };
    // With nobody to restore what is broken.
    scaled(hub, OPERATOR, "cluster-manager", 0);
    is("before", &[]);
    let foreign = Authority::new("foreign");
    let configuration = "managedclustervalidators.admission.cluster.open-cluster-management.io";
    let what = ["validatingwebhookconfiguration", configuration];
    let before = object(hub, &what)["webhooks"][0]["clientConfig"]["caBundle"].clone();
    let bundle = |value: &Value| {
        let patch = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value}]);
        let patch = format!("--patch={patch}");
        kubectl(hub, &[&["patch", "--type=json", &patch], what.as_slice()].concat());
    };
    bundle(&STANDARD.encode(&foreign.pem).into());
    is("another caBundle", &["OCM4021"]);
    bundle(&before);
    is("the caBundle is right again", &[]);

    // The bundle of another authority: it vouches for nothing that the hub has signed.
    let values = [("ca-bundle.crt", foreign.pem.as_str())];
    replaced(hub, "configmap", HUB, "ca-bundle-configmap", &values, || {
        is("another bundle", &["OCM4001", "OCM4020", "OCM4021"]);
    });
    let service = "cluster-manager-registration-webhook.open-cluster-management-hub.svc";
    let params = CertificateParams::new(vec![service.to_owned()]).expect("a name");
    let (certificate, key) = foreign.sign(&params);
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    let values = [("tls.crt", certificate.as_str()), ("tls.key", key.as_str())];
    replaced(hub, "secret", HUB, "registration-webhook-serving-cert", &values, || {
        is("a foreign webhook", &["OCM4001"])
    });

    // A proxy of add-ons.
    let proxy = Proxy::start(Kind::Https, Manner::Connects);
    for (what, bundle, found) in [
        ("a proxy of add-ons", proxy.authority().to_owned(), vec![]),
        ("a foreign proxy of add-ons", foreign.pem.clone(), vec!["OCM4001"]),
        ("a bundle with one twice", proxy.authority().repeat(2), vec!["OCM4022"]),
    ] {
        let settings = json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
            "metadata": {"name": "proxied", "namespace": "default"},
            "spec": {"proxyConfig": {"httpsProxy": proxy.url(CREDENTIALS), "caBundle": STANDARD.encode(bundle)}},
        });
        apply(hub, &settings);
        is(what, &found);
    }
    kubectl(hub, &["delete", "addondeploymentconfig", "proxied", "--namespace=default"]);

    // A hub whose pods are on this cluster, and which is another one.
    let mode = |mode: &str| {
        let patch = format!("--patch={}", json!({"spec": {"deployOption": {"mode": mode}}}));
        kubectl(hub, &["patch", "clustermanager", "cluster-manager", "--type=merge", &patch]);
    };
    apply(hub, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cluster-manager"}}));
    mode("Hosted");
    let local = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let (ca, elsewhere) = (Authority::new("ca"), Authority::new("elsewhere"));
    let server = server(ca.sign(&local));
    for (what, authority, found) in
        [("a hosted hub's", &ca.pem, vec![]), ("another than a hosted hub's", &elsewhere.pem, vec!["OCM4001"])]
    {
        external(hub, "external-hub-kubeconfig", "cluster-manager", &kubeconfig(&server, authority));
        is(what, &found);
    }
    // What its pods have is what the operator has.
    let pods = "registration-controller-sa-kubeconfig";
    for (what, authority, found) in [
        ("the pods of a hosted hub", &ca.pem, vec![]),
        ("pods with other authorities", &elsewhere.pem, vec!["OCM4001", "OCM4027"]),
    ] {
        external(hub, "external-hub-kubeconfig", "cluster-manager", &kubeconfig(&server, &ca.pem));
        external(hub, pods, "cluster-manager", &kubeconfig(&server, authority));
        is(what, &found);
    }
    mode("Default");
    kubectl(hub, &["delete", "namespace", "cluster-manager"]);

    // A profile that nobody reads, and cannot follow.
    let profile = ["configmap", "ocm-tls-profile", "--namespace", HUB];
    kubectl(hub, &[&["create"], profile.as_slice(), &["--from-literal=minTLSVersion=1.3"]].concat());
    is("a profile in the wrong place", &["OCM4031", "OCM4032"]);
    kubectl(hub, &[&["delete"], profile.as_slice()].concat());
    is("after all", &[]);
    // One that is read is for the servers of Open Cluster Management, and for all where somebody asks for it.
    let profile = ["configmap", "ocm-tls-profile", "--namespace", OPERATOR];
    kubectl(hub, &[&["create"], profile.as_slice(), &["--from-literal=minTLSVersion=VersionTLS13"]].concat());
    is("a profile", &[]);
    let (said, document) = check(hub.kubeconfig(), &["--profile=ocm", "--fail-on=warning"]);
    assert_eq!((said.code, ids(&document)), (Some(3), vec!["OCM4030"]), "{said:?}");
    kubectl(hub, &[&["delete"], profile.as_slice()].concat());
    // Cipher suites that no server starts with, or that are for certificates of another kind, and those that the API server has besides.
    let (rsa, ecdsa) = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
    for (suites, profile_is, found) in [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "kubernetes", vec!["OCM4031"]),
        (ecdsa, "kubernetes", vec!["OCM4031"]),
        (rsa, "kubernetes", vec![]),
        (rsa, "ocm", vec!["OCM4033"]),
    ] {
        let literal = format!("--from-literal=cipherSuites={suites}");
        kubectl(hub, &[&["create"], profile.as_slice(), &[literal.as_str()]].concat());
        let profile_is = format!("--profile={profile_is}");
        let (said, document) = check(hub.kubeconfig(), &[&profile_is, "--fail-on=warning"]);
        assert_eq!(ids(&document), found, "{suites} {profile_is}: {said:?}");
        kubectl(hub, &[&["delete"], profile.as_slice()].concat());
    }
    // What a server written in Go has by default is more than Mozilla's intermediate profile, and what that names is all there.
    let (said, document) = check(hub.kubeconfig(), &["--profile=intermediate", "--fail-on=warning"]);
    assert_eq!((said.code, ids(&document)), (Some(3), vec!["OCM4033"]), "{said:?}");
    let relations = document["inventory"]["relations"].as_array().into_iter().flatten();
    let mut suites = relations.filter_map(|relation| relation["handshake"]["suites"].as_array());
    let has = |suites: &Vec<Value>, end: &str| {
        suites.iter().any(|suite| suite.as_str().is_some_and(|suite| suite.ends_with(end)))
    };
    assert!(suites.any(|suites| has(suites, "_AES_128_GCM_SHA256") && has(suites, "_AES_128_CBC_SHA")), "{said:?}");
    scaled(hub, OPERATOR, "cluster-manager", 1);
}

#[test]
fn its_roles_are_enough_and_without_them_it_says_what_it_could_not_look_at() {
    let _alone = alone();
    let (hub, managed) = (hub(), managed());
    let sees_all = |cluster: &Cluster, role: &str| {
        let reader = user_with(cluster, "tls-reader", &[role]);
        until(&format!("{role} suffices"), || {
            let (said, document) = check(&reader, &[]);
            (said.code, document["unseen"].as_array().map(Vec::len)) == (Some(0), Some(0))
        });
    };
    sees_all(hub, "tls-check-hub.yaml");
    sees_all(managed, "tls-check.yaml");
    let nobody = user_with(hub, "tls-nobody", &[]);
    let (said, document) = check(&nobody, &[]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert_eq!(document["unseen"][0]["trouble"]["reason"], "Forbidden", "{said:?}");
}
