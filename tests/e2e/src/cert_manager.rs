//! What cert-manager does with one Certificate: it issues it by an authority of its own, keeps the Secret as long as the
//! Certificate is there, and has the configurations that name it trust the authority and no other. What is tested is what the
//! API server makes of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use control_plane::Cluster;
use ocm_api::cert_manager::INJECT_CA_FROM;
use ocm_core::certificate::to_base64;
use ocm_core::policy_engine::{Pair, webhooks};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::manifests::apply;

/// Where objects of a kind are.
const CERTIFICATE: [&str; 3] = ["certificate.cert-manager.io", "ocm-policy-webhook", "--namespace=ocm-policy-engine"];
/// The annotation of a Secret that tells who has issued what it holds.
const ISSUED: &str = "cert-manager.io/issuer-name";
/// The configurations that name it.
const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"];

/// Makes the kinds known, and a ClusterIssuer `internal`.
///
/// # Panics
///
/// When the cluster refuses that.
pub fn define(cluster: &Cluster) {
    for (plural, kind, scope) in
        [("certificates", "Certificate", "Namespaced"), ("clusterissuers", "ClusterIssuer", "Cluster")]
    {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any},
            "subresources": {"status": {}}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.cert-manager.io")},
            "spec": {"group": "cert-manager.io", "scope": scope, "versions": [version],
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")}},
        });
        apply(cluster, &definition);
    }
    cluster
        .kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=90s"])
        .expect("they are served");
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer", "metadata": {"name": "internal"},
        "spec": {"ca": {"secretName": "ca"}},
    });
    apply(cluster, &issuer);
}

/// Does something while it works.
///
/// # Panics
///
/// When it cannot work, or what is done panics.
pub fn beside<T>(cluster: &Cluster, does: impl FnOnce() -> T) -> T {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let authority = Authority::new();
            while !ends.load(Ordering::Relaxed) {
                authority.look(cluster);
                thread::sleep(Duration::from_millis(300));
            }
        });
        // Also where it panics, or nobody would hear of it.
        let _end = End(&ends);
        does()
    })
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "internal");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("an authority").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// One look at the Certificate, the Secret and the configurations. What is not there yet comes later.
    fn look(&self, cluster: &Cluster) {
        let get = |words: &[&str]| -> Option<Value> {
            let text = cluster.kubectl(&[&["get", "--output=json"], words].concat()).ok()?;
            serde_json::from_str(&text).ok()
        };
        let Some(certificate) = get(&CERTIFICATE) else { return };
        let spec = &certificate["spec"];
        let name = spec["secretName"].as_str().expect("it names a Secret");
        let secret = get(&["secret", name, CERTIFICATE[2]]);
        let is_issued = secret.as_ref().is_some_and(|secret| secret["metadata"]["annotations"][ISSUED] == "internal");
        if !is_issued {
            self.issue(cluster, name, spec);
        }
        let generation = &certificate["metadata"]["generation"];
        if certificate.pointer("/status/conditions/0/observedGeneration") != Some(generation) {
            let ready = json!({"type": "Ready", "status": "True", "observedGeneration": generation});
            let patch = format!("--patch={}", json!({"status": {"conditions": [ready]}}));
            let how = ["--subresource=status", "--type=merge", &patch];
            let _ = cluster.kubectl(&[&["patch"], &CERTIFICATE[..], &how].concat());
        }
        for kind in CONFIGURATIONS {
            let Some(live) = get(&[kind, CERTIFICATE[1]]) else { continue };
            if live["metadata"]["annotations"][INJECT_CA_FROM] != "ocm-policy-engine/ocm-policy-webhook" {
                continue;
            }
            if let Some(patch) = webhooks::trust(&live, &self.pem) {
                // It may have been changed or deleted since.
                let patch = format!("--patch={patch}");
                let _ = cluster.kubectl(&["patch", kind, CERTIFICATE[1], "--type=json", &patch]);
            }
        }
    }

    fn issue(&self, cluster: &Cluster, name: &str, spec: &Value) {
        let names: Vec<String> = serde_json::from_value(spec["dnsNames"].clone()).expect("DNS names");
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(names).expect("names");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        let pair = Pair { certificate, key: key.serialize_pem() };
        let namespace = CERTIFICATE[2].trim_start_matches("--namespace=");
        let mut data = pair.to_data();
        data["ca.crt"] = to_base64(self.pem.as_bytes()).into();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data,
            "metadata": {"name": name, "namespace": namespace, "labels": spec["secretTemplate"]["labels"],
                "annotations": {ISSUED: "internal"}},
        });
        let file = cluster.dir().expect("a folder").join("issued.json");
        std::fs::write(&file, secret.to_string()).expect("it is written");
        let file = file.to_str().expect("text");
        // As cert-manager does: its fields are its own, whoever had them before.
        let words = ["apply", "--server-side", "--force-conflicts", "--field-manager=cert-manager", "--filename", file];
        let _ = cluster.kubectl(&words);
    }
}
