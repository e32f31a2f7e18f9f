//! Faults of a hub as a whole, and of all its clusters together.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::ocm_version;
use ocm_api::names::{secrets, webhooks};
use ocm_core::release::Bundle;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};

use super::change::Change;
use super::fault::{Fault, Of, fault};
use super::pair::On;
use super::recurring::{HUB, counted};
use super::refusal::Refusal;
use super::requests::{held, managed};

/// The label of clusters that fall silent together.
const TOGETHER: &str = "example.com/together";
/// The same as kubectl selects by it.
const SELECTOR: &str = "--selector=example.com/together";
/// Their names: with the one that is well, nine of ten are silent.
const SILENT: [&str; 9] =
    ["silent-1", "silent-2", "silent-3", "silent-4", "silent-5", "silent-6", "silent-7", "silent-8", "silent-9"];
/// What agents say of themselves once they have joined.
const JOINED: &str = concat!(
    r#"--patch=[{"op":"add","path":"/status/conditions/-","value":{"type":"ManagedClusterJoined","status":"True","#,
    r#""reason":"ManagedClusterJoined","message":"joined","lastTransitionTime":"2026-01-01T00:00:00Z"}}]"#
);

fn on_hub(object: Value) -> Change {
    Change::Object(On::Hub, object)
}

/// What a webhook serves with, long after it has ended.
fn expired() -> Value {
    let service = format!("{}.{HUB}.svc", webhooks::REGISTRATION_SERVICE);
    let mut params = CertificateParams::new(vec![service]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2023, 1, 1), date_time_ymd(2023, 1, 31));
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    json!({"data": {"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key.serialize_pem())}})
}

/// Clusters that have joined, as the hub has it, and of whose agents nobody hears any more.
fn silent_together() -> Vec<Change> {
    let register = |name| {
        let mut cluster = managed(name, true);
        cluster["metadata"]["labels"] = json!({ (TOGETHER): "" });
        on_hub(cluster)
    };
    // The hub makes their first leases itself.
    let accepted = "--for=condition=HubAcceptedManagedCluster";
    let are_accepted = vec!["wait", "managedclusters", SELECTOR, accepted, "--timeout=120s"];
    let join = |name| {
        let words = vec!["patch", "managedcluster", name, "--subresource=status", "--type=json", JOINED];
        Change::Kubectl(On::Hub, words, vec![])
    };
    let mut changes: Vec<Change> = SILENT.map(register).into();
    changes.push(Change::Kubectl(On::Hub, are_accepted, vec![]));
    changes.extend(SILENT.map(join));
    changes
}

/// What is wrong with a hub as a whole, and with its clusters together.
pub(super) fn of_whole_hubs() -> Vec<Fault> {
    let no_maps = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-maps", "namespace": HUB},
        "spec": {"hard": {"count/configmaps": "0"}},
    });
    let bundle = ["configmap", secrets::CA_BUNDLE_CONFIGMAP, "--namespace", HUB];
    let other = json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager", "metadata": {"name": "other"},
        "spec": {"deployOption": {"mode": "Hosted"}},
    });
    let serving = ["secret", secrets::REGISTRATION_WEBHOOK_CERT, "--namespace", HUB];
    let writes_no_secret = Refusal {
        name: "no-secrets.example.com",
        resources: ("", vec!["secrets"]),
        users: "system:serviceaccount:open-cluster-management:cluster-manager",
        such: json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": secrets::REGISTRATION_WEBHOOK_CERT, "namespace": HUB, "labels": {"example.com/a": "b"}},
        }),
    };
    let forgotten = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "forgotten"}});
    let left = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "left", "namespace": "forgotten"},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-left", "namespace": "default"}},
        ]}},
    });
    let mut faults = vec![
        Fault { of: Of::WrongHub, ..fault("a cluster that is no hub", "OCM1101", vec![]) },
        fault(
            "a hub without its bundle of authorities, which may not be made again",
            "OCM1110",
            vec![
                Change::Restored(On::Hub, bundle.to_vec()),
                on_hub(no_maps),
                counted(On::Hub, HUB, "resourcequota/no-maps"),
                Change::Kubectl(On::Hub, [&["delete"], &bundle[..]].concat(), vec![]),
            ],
        ),
        fault("a hosted hub that is removed", "OCM1111", vec![Change::Held(On::Hub, held(other))]),
        fault("a namespace of the hub that is removed", "OCM1115", vec![Change::Doomed(On::Hub, HUB)]),
        fault(
            "a certificate of a webhook that has ended, and may not be renewed",
            "OCM1118",
            vec![Change::Refuses(On::Hub, writes_no_secret), Change::Patch(On::Hub, serving.to_vec(), expired())],
        ),
        Fault { of: Of::Fleet, ..fault("clusters that fall silent together", "OCM3108", silent_together()) },
        // Ten minutes, most of which have gone by when it is looked at.
        Fault {
            of: Of::Fleet,
            patience: Duration::from_secs(720),
            ..fault(
                "a work that nobody removes, of a cluster that is gone",
                "OCM6105",
                vec![on_hub(forgotten), Change::Held(On::Hub, held(left))],
            )
        },
    ];
    // That is so of every look at a hub of this release, and is suppressed in all others.
    let image = ocm_version().map(|tag| format!("quay.io/open-cluster-management/registration:{tag}"));
    let release = image.ok().and_then(|image| Bundle::of_image(&image));
    faults.extend(release.filter(Bundle::is_vulnerable).map(|_| Fault {
        of: Of::Release,
        ..fault("a release that renews certificates for others", "OCM7102", vec![])
    }));
    faults
}
