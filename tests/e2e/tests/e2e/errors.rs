//! What goes wrong with a real API server that is reached.

use std::fs;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cli_tests::{Cli, binary, check};
use control_plane::{Cluster, Spec, shared};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

/// The commands that read from one cluster, with the fewest words.
const READS: &[&[&str]] = &[&["accept", "c1", "--dry-run=client"], &["get", "clusters"], &["get", "csr"]];

/// A cluster that is no hub.
fn cluster() -> &'static Cluster {
    shared(&Spec::api("errors"))
}

/// A kubeconfig for the cluster with other credentials, or another authority.
fn kubeconfig(user: &Value, ca: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "hub",
        "clusters": [{ "name": "hub", "cluster": {
            "server": cluster().server(), "certificate-authority-data": STANDARD.encode(ca),
        } }],
        "users": [{ "name": "somebody", "user": user }],
        "contexts": [{ "name": "hub", "context": { "cluster": "hub", "user": "somebody" } }],
    })
    .to_string()
}

/// Runs every reading command, one snapshot for all.
fn each(name: &str, cli: &Cli) {
    let all: String =
        READS.iter().map(|words| format!("$ kubectl ocm {}\n{}", words.join(" "), cli.run(*words))).collect();
    check!(name, cli, all);
}

#[test]
fn a_cluster_that_is_no_hub() {
    let text = fs::read_to_string(cluster().kubeconfig()).expect("a cluster has a kubeconfig");
    each("errors-no-hub", &Cli::with_kubeconfig(&text));
}

#[test]
fn a_user_without_rights() {
    let file = cluster().user_kubeconfig("eve", &["nobodies"]).expect("a user is made");
    let text = fs::read_to_string(file).expect("a user has a kubeconfig");
    each("errors-forbidden", &Cli::with_kubeconfig(&text));
}

#[test]
fn a_token_that_nobody_made() {
    let user = json!({ "token": "no-such-token" });
    each("errors-unauthorized", &Cli::with_kubeconfig(&kubeconfig(&user, cluster().ca_pem())));
}

#[test]
fn nobody_at_all() {
    each("errors-anonymous", &Cli::with_kubeconfig(&kubeconfig(&json!({}), cluster().ca_pem())));
}

#[test]
fn a_token_that_has_expired() {
    // An account of our own, in a namespace of our own: those of the cluster come a moment after it is ready.
    for what in [&["create", "namespace", "late"][..], &["create", "serviceaccount", "late", "-n", "late"]] {
        cluster().kubectl(what).expect("it is created");
    }
    let token = cluster().kubectl(&["create", "token", "late", "-n", "late"]).expect("a token is made");
    let user = json!({ "token": expired(token.trim()) });
    each("errors-expired-token", &Cli::with_kubeconfig(&kubeconfig(&user, cluster().ca_pem())));
}

/// The same token, of long ago: signed with the cluster's own key, so that its age is all that is wrong with it.
fn expired(token: &str) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, _] = parts.as_slice() else { panic!("a token has three parts") };
    let claims = URL_SAFE_NO_PAD.decode(claims).expect("claims are base64");
    let mut claims: Value = serde_json::from_slice(&claims).expect("claims are JSON");
    for (claim, ago) in [("exp", 86_400), ("iat", 90_000), ("nbf", 90_000)] {
        claims[claim] = (claims[claim].as_i64().expect("a time") - ago).into();
    }
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let pem = fs::read_to_string(cluster().dir().expect("it is ours").join("pki/sa.key")).expect("there is a key");
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let key = STANDARD.decode(body).expect("a key is base64");
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random).expect("it is a P-256 key");
    let signature = key.sign(&random, signed.as_bytes()).expect("it signs");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn another_authority_than_the_servers() {
    let key = rcgen::KeyPair::generate().expect("a key is made");
    let params = rcgen::CertificateParams::new(vec![]).expect("parameters are made");
    let other = params.self_signed(&key).expect("a certificate is made").pem();
    each("errors-wrong-ca", &Cli::with_kubeconfig(&kubeconfig(&json!({ "token": "secret" }), &other)));
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_work() {
    let cluster = shared(&Spec::api("closed"));
    let text = fs::read_to_string(cluster.kubeconfig()).expect("a cluster has a kubeconfig");
    let cli = Cli::with_kubeconfig(&text);
    let (reader, writer) = std::io::pipe().expect("a pipe can be had");
    drop(reader);
    let mut command = cli.command(&binary("kubectl-ocm"));
    let run = command.args(["install", "hub"]).stdin(Stdio::null()).stdout(writer).output().expect("it runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    // The last object of the plan.
    cluster.kubectl(&["get", "clustermanager", "cluster-manager"]).expect("the whole plan was applied");
}
