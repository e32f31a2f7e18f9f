use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

/// The same types, read by serde and by [`Member`].
macro_rules! twice {
    ($($item:item)*) => {
        mod theirs {
            use super::*;
            $(#[derive(Debug, Default, PartialEq, Serialize, Deserialize)] $item)*
        }
        mod ours {
            use super::*;
            $(#[derive(Debug, Default, PartialEq, Serialize, Member)] $item)*
        }
    };
}

twice! {
    #[serde(rename_all = "camelCase")]
    pub struct All {
        pub a_text: String,
        pub a_flag: bool,
        pub small: u8,
        pub signed: i32,
        pub large: i64,
        pub size: usize,
        pub maybe: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub maybe_inner: Option<Inner>,
        #[serde(default)]
        pub inners: Vec<Inner>,
        pub labels: BTreeMap<String, String>,
        #[serde(default)]
        pub of_words: BTreeMap<Word, Vec<u64>>,
        #[serde(rename = "type")]
        pub type_: Word,
        #[serde(default = "seven")]
        pub seven: i64,
        #[serde(default, deserialize_with = "length")]
        pub length: usize,
        pub raw: Value,
        #[serde(default)]
        pub settings: Option<Map<String, Value>>,
        pub boxed: Box<Inner>,
        #[serde(default)]
        pub held: Vec<Held<Inner>>,
        #[serde(skip)]
        pub unsaid: u8,
        pub r#as: Option<Closed>,
        #[serde(default)]
        pub filled: Filled,
        pub meta: ObjectMeta,
        pub either: Option<Result<Inner, String>>,
        #[serde(default)]
        pub known: Option<Known>,
        pub pair: (u16, String),
        #[serde(with = "AsWritten")]
        pub remote: Remote,
    }

    #[serde(rename_all = "camelCase")]
    pub enum Known {
        #[default]
        ThisOne,
        #[serde(other)]
        Other,
    }

    #[serde(rename_all = "kebab-case")]
    pub struct Inner {
        pub first_name: String,
        pub time: Option<Time>,
    }

    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub struct Closed {
        pub one_thing: Option<i32>,
        #[serde(default)]
        pub other: String,
    }

    #[serde(default)]
    pub struct Filled {
        pub a: String,
        pub b: Option<u16>,
    }

    #[derive(PartialOrd, Eq, Ord)]
    #[serde(rename_all = "kebab-case")]
    pub enum Word {
        #[default]
        OfTwo,
        #[serde(rename = "TLS1.2")]
        Tls,
        Three,
    }

    #[serde(rename_all = "camelCase")]
    pub enum Held<T> {
        AValue(T),
        #[serde(rename_all = "camelCase")]
        Members {
            its_name: String,
            #[serde(default)]
            more: Option<T>,
        },
        #[default]
        NotAsked,
    }
}

/// It is read and written as another type.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Remote {
    #[default]
    Valid,
    Invalid,
}

#[derive(Serialize, Deserialize, Member)]
#[serde(remote = "Remote")]
enum AsWritten {
    Valid,
    Invalid,
}

impl From<AsWritten> for Remote {
    fn from(written: AsWritten) -> Self {
        match written {
            AsWritten::Valid => Self::Valid,
            AsWritten::Invalid => Self::Invalid,
        }
    }
}

fn seven() -> i64 {
    7
}

fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    <String as Deserialize>::deserialize(deserializer).map(|text| text.len())
}

fn full() -> Value {
    let inner = json!({"first-name": "n", "time": "2026-01-31T12:00:00Z"});
    json!({
        "aText": "t", "aFlag": true, "small": 255, "signed": -3, "large": 1_u64 << 40, "size": 3, "maybe": "m",
        "maybeInner": inner, "inners": [inner, inner], "labels": {"a": "b", "c/d": "e"}, "ofWords": {"three": [1, 2], "TLS1.2": []},
        "type": "of-two", "seven": 8, "length": "four", "raw": [null, 1.5], "settings": {"a": {}}, "boxed": inner,
        "held": [{"aValue": inner}, {"members": {"itsName": "n", "more": inner}}, "notAsked"],
        "as": {"oneThing": 1, "other": "o"}, "filled": {"a": "a", "b": 2}, "meta": {"name": "n", "labels": {"a": "b"}},
        "either": {"Ok": inner}, "known": "thisOne", "remote": "Invalid", "pair": [1, "a"],
    })
}

/// Every value of a value, with what leads to it as a JSON pointer.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                places(value, &format!("{at}/{}", name.replace('/', "~1")), all);
            }
        }
        Value::Array(entries) => {
            for (index, value) in entries.iter().enumerate() {
                places(value, &format!("{at}/{index}"), all);
            }
        }
        _ => {}
    }
}

fn assert_alike(value: &Value) {
    let theirs: Result<theirs::All, _> = serde_json::from_value(value.clone());
    let ours: Result<ours::All, _> = from_value(value.clone());
    let by_serde: Result<ours::All, _> = serde_json::from_str(&value.to_string());
    match (theirs, ours, by_serde) {
        (Ok(theirs), Ok(ours), Ok(of_text)) => {
            assert_eq!(format!("{theirs:?}"), format!("{ours:?}"));
            assert_eq!(ours, of_text);
            assert_eq!(serde_json::to_value(theirs).unwrap(), serde_json::to_value(ours).unwrap());
        }
        (Err(theirs), Err(ours), Err(of_text)) => {
            let (theirs, ours) = (theirs.to_string(), ours.to_string());
            assert_eq!(ours, of_text.to_string());
            let what = ours.split_once(": ").map_or(ours.as_str(), |(_, what)| what);
            let is_same = what == theirs || ours == theirs;
            // Of these two serde has words of its own, and it looks at keys before values.
            let is_other =
                theirs.contains("unit variant") || theirs.contains("invalid length") || ours.starts_with("ofWords.");
            assert!(is_same || is_other, "{ours}\n{theirs}\n{value}");
        }
        (theirs, ours, of_text) => panic!("{value}\n{theirs:?}\n{ours:?}\n{of_text:?}"),
    }
}

#[test]
fn what_serde_reads_is_read_and_what_it_refuses_is_refused() {
    let full = full();
    assert_alike(&full);
    let mut all = Vec::new();
    places(&full, "", &mut all);
    let odd = [
        json!(null),
        json!(true),
        json!("x"),
        json!(""),
        json!(-1),
        json!(0),
        json!(256),
        json!(1.5),
        json!(u64::MAX),
        json!({}),
        json!({"x": 1}),
        json!("three"),
        json!({"three": null}),
        json!({"three": 1}),
        json!({"aValue": null}),
        json!("aValue"),
        json!("members"),
        json!({"notAsked": null}),
        json!({"notAsked": 1}),
        json!({"a": 1, "b": 2}),
    ];
    for odd in [json!([]), json!([1]), json!([1, "x", null]), json!(["x", 1])] {
        // Arrays in place of objects are what serde takes, and we do not.
        for place in
            ["/aText", "/aFlag", "/small", "/inners", "/labels", "/type", "/raw", "/settings", "/held", "/pair"]
        {
            let mut value = full.clone();
            *value.pointer_mut(place).unwrap() = odd.clone();
            assert_alike(&value);
        }
    }
    for place in &all {
        for odd in &odd {
            let mut value = full.clone();
            *value.pointer_mut(place).unwrap() = odd.clone();
            assert_alike(&value);
        }
        let Some((object, name)) = place.rsplit_once('/') else { continue };
        let mut value = full.clone();
        if let Some(Value::Object(members)) = value.pointer_mut(object) {
            members.remove(&name.replace("~1", "/")).unwrap();
            assert_alike(&value);
        }
        let mut value = full.clone();
        if let Some(Value::Object(members)) = value.pointer_mut(place) {
            members.insert("unheardOf".to_owned(), json!([]));
            assert_alike(&value);
        }
    }
}

#[test]
fn an_error_says_where_and_what_was_expected() {
    let said = |place: &str, odd: Value| {
        let mut value = full();
        *value.pointer_mut(place).unwrap() = odd;
        from_value::<ours::All>(value).unwrap_err().to_string()
    };
    assert_eq!(said("/aText", json!(1)), "aText: invalid type: integer `1`, expected a string");
    assert_eq!(said("/signed", json!("x")), "signed: invalid type: string \"x\", expected i32");
    assert_eq!(said("/small", json!(256)), "small: invalid value: integer `256`, expected u8");
    assert_eq!(said("", json!([])), "invalid type: sequence, expected struct All");
    assert_eq!(
        said("/inners/1/first-name", json!(null)),
        "inners[1].first-name: invalid type: null, expected a string"
    );
    assert_eq!(said("/inners/1", json!({})), "inners[1]: missing field `first-name`");
    assert_eq!(said("/labels/c~1d", json!(false)), "labels.c/d: invalid type: boolean `false`, expected a string");
    assert_eq!(said("/type", json!("x")), "type: unknown variant `x`, expected one of `of-two`, `TLS1.2`, `three`");
    assert_eq!(said("/as", json!({"x": 1})), "as: unknown field `x`, expected `oneThing` or `other`");
    assert_eq!(said("/as", json!([1])), "as: invalid type: sequence, expected struct Closed");
    assert_eq!(
        said("/held/0/aValue/first-name", json!(1.5)),
        "held[0].aValue.first-name: invalid type: floating point `1.5`, expected a string"
    );
    assert_eq!(
        said("/ofWords", json!({"x": []})),
        "ofWords: unknown variant `x`, expected one of `of-two`, `TLS1.2`, `three`"
    );
    assert_eq!(from_value::<ours::All>(json!({})).unwrap_err().to_string(), "missing field `aText`");
}

#[test]
fn of_two_members_of_one_name_the_last_one_counts() {
    let read: ours::Filled = serde_json::from_str(r#"{"a": "x", "a": "y"}"#).unwrap();
    assert_eq!(read.a, "y");
}

/// What is read of this and written again is this.
fn assert_kept<T: Member + Serialize + DeserializeOwned + PartialEq + fmt::Debug>(object: Value) {
    let read: T = from_value(object.clone()).unwrap();
    assert_eq!(read, serde_json::from_str(&object.to_string()).unwrap());
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
}

fn metadata() -> Value {
    json!({
        "name": "n", "uid": "u", "generation": 3, "labels": {"a": "b"}, "creationTimestamp": "2026-01-31T12:00:00Z",
        "managedFields": [{"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
    })
}

fn condition() -> Value {
    json!({
        "type": "T", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-31T12:00:00Z",
        "observedGeneration": 3,
    })
}

#[test]
fn clusters_and_works_are_kept() {
    assert_kept::<crate::ManagedCluster>(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": metadata(),
        "spec": {
            "hubAcceptsClient": true, "leaseDurationSeconds": 60,
            "managedClusterClientConfigs": [{"url": "https://a", "caBundle": "AAE="}, {"url": "https://b"}],
            "taints": [{"key": "k", "value": "v", "effect": "NoSelect", "timeAdded": "2026-01-31T12:00:00Z"}],
        },
        "status": {
            "conditions": [condition()], "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"},
            "version": {"kubernetes": "v1.35.0"}, "clusterClaims": [{"name": "id.k8s.io", "value": "x"}],
            "managedNamespaces": [{"name": "n", "clusterSet": "s", "conditions": [condition()]}],
        },
    }));
    assert_kept::<crate::ManifestWork>(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": metadata(),
        "spec": {
            "workload": {"manifests": [{"kind": "ConfigMap", "data": {"a": "b"}}]},
            "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan", "ttlSecondsAfterFinished": 7,
                "selectivelyOrphans": {"orphaningRules": [{"group": "", "resource": "r", "name": "n", "namespace": "m"}]},
            },
            "manifestConfigs": [{"x": 1}],
            "executor": {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "a"}}},
        },
        "status": {
            "conditions": [condition()],
            "resourceStatus": {"manifests": [{
                "resourceMeta": {"ordinal": 1, "group": "g", "version": "v1", "kind": "K", "resource": "r", "name": "n", "namespace": "m"},
                "statusFeedback": {"values": []}, "conditions": [condition()],
            }]},
        },
    }));
}

#[test]
fn what_is_installed_is_kept() {
    let resources = json!({"type": "ResourceRequirement", "resourceRequirements": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}});
    let placement = json!({"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3}]});
    let status = json!({
        "observedGeneration": 3, "conditions": [condition()],
        "generations": [{"group": "apps", "version": "v1", "resource": "deployments", "namespace": "n", "name": "m", "lastGeneration": 4}],
        "relatedResources": [{"group": "", "version": "v1", "resource": "namespaces", "name": "m"}],
    });
    assert_kept::<crate::Klusterlet>(json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": metadata(),
        "spec": {
            "namespace": "n", "registrationImagePullSpec": "r", "workImagePullSpec": "w", "imagePullSpec": "i", "clusterName": "c",
            "externalServerURLs": [{"url": "https://a", "caBundle": "AAE="}], "nodePlacement": placement,
            "deployOption": {"mode": "SingletonHosted"},
            "registrationConfiguration": {
                "clientCertExpirationSeconds": 3600, "featureGates": [{"feature": "F", "mode": "Enable"}],
                "clusterAnnotations": {"a": "b"}, "clusterLabels": {"c": "d"}, "kubeAPIQPS": 1, "kubeAPIBurst": 2,
                "bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig": {
                    "kubeConfigSecrets": [{"name": "s"}], "hubConnectionTimeoutSeconds": 600}},
                "registrationDriver": {"authType": "awsirsa", "awsIrsa": {"hubClusterArn": "h", "managedClusterArn": "m"}},
                "addOnKubeClientRegistrationDriver": {"authType": "token", "token": {"expirationSeconds": 7}},
                "clusterClaimConfiguration": {"maxCustomClusterClaims": 21, "reservedClusterClaimSuffixes": ["s"]},
            },
            "workConfiguration": {
                "featureGates": [{"feature": "F"}], "kubeAPIQPS": 1, "kubeAPIBurst": 2, "hubKubeAPIQPS": 3, "hubKubeAPIBurst": 4,
                "appliedManifestWorkEvictionGracePeriod": "60m", "statusSyncInterval": "10s",
            },
            "hubApiServerHostAlias": {"ip": "192.0.2.1", "hostname": "h"}, "resourceRequirement": resources, "priorityClassName": "p",
        },
        "status": status,
    }));
    let claims: crate::operator::ClusterClaimConfiguration = from_value(json!({})).unwrap();
    assert_eq!(claims.max_custom_cluster_claims, 20);
    let bind = json!({"port": 9443, "healthProbePort": 8000, "metricsPort": 8080, "hostNetwork": true});
    assert_kept::<crate::ClusterManager>(json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager", "metadata": metadata(),
        "spec": {
            "registrationImagePullSpec": "r", "workImagePullSpec": "w", "placementImagePullSpec": "p", "addOnManagerImagePullSpec": "a",
            "nodePlacement": placement, "resourceRequirement": resources,
            "deployOption": {
                "mode": "Hosted", "default": {"registrationWebhookConfiguration": {"bindConfiguration": bind}},
                "hosted": {"workWebhookConfiguration": {"address": "a", "port": 443, "bindConfiguration": bind}},
            },
            "registrationConfiguration": {
                "featureGates": [{"feature": "F", "mode": "Disable"}], "autoApproveUsers": ["u"],
                "registrationDrivers": [
                    {"authType": "csr", "csr": {"autoApprovedIdentities": ["i"]}},
                    {"authType": "awsirsa", "awsirsa": {"hubClusterArn": "h", "autoApprovedIdentities": ["p"], "tags": ["t"]}},
                    {"authType": "grpc", "grpc": {"autoApprovedIdentities": ["g"]}},
                ],
                "importerConfiguration": {"renderers": ["r"]},
            },
            "workConfiguration": {"featureGates": [{"feature": "F"}], "workDriver": "grpc"},
            "addOnManagerConfiguration": {"featureGates": [{"feature": "F"}]},
            "placementConfiguration": {"featureGates": [{"feature": "F"}]},
            "serverConfiguration": {"imagePullSpec": "s", "featureGates": [{"feature": "F"}], "endpointsExposure": [
                {"usage": "hub", "protocol": "grpc", "grpc": {"type": "hostname", "hostname": {"host": "h", "caBundle": "AAE="}}},
                {"protocol": "https", "https": {"type": "loadBalancer", "loadBalancer": {"host": "l", "caBundle": "AAE="}}},
                {"protocol": "grpc", "grpc": {"type": "route", "route": {"host": "r", "caBundle": "AAE="}}},
            ]},
        },
        "status": status,
    }));
}

#[test]
fn policies_and_registrations_are_kept() {
    assert_kept::<crate::HubPolicy>(json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": metadata(),
        "spec": {
            "module": {"secret": {"namespace": "n", "name": "o", "key": "k"}}, "sha256": "0", "settings": {"most": 3, "of": [null]},
            "operations": ["create", "join"],
            "match": {
                "signers": ["s"], "requesterGroups": ["g"], "conditions": [{"name": "n", "expression": "true"}],
                "clusterSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
            },
            "tests": "t", "mode": "Audit", "onError": "Hold", "autoApprove": true, "breakGlass": "Allowed",
            "grants": {"edits": [{"edit": "label", "key": "k"}]}, "limits": {"fuel": 500_000_000, "memoryBytes": 65536},
            "candidate": {"module": {"oci": {"image": "i", "pullSecret": {"namespace": "n", "name": "s"}, "caCertificates": "c",
                "signature": {"publicKey": "p"}}}, "sha256": "1", "settings": {}, "tests": "u", "share": 100},
        },
        "status": {"observedGeneration": 3, "conditions": [condition()], "sha256": "0", "digest": "0", "previousSha256": "1", "kind": "opa", "operations": ["join"],
            "decisions": {"allowed": 1, "held": 2, "denied": 3, "errors": 4, "noOpinion": 5, "p50Micros": 6, "p99Micros": 7, "p99Fuel": 8},
            "candidate": {"sha256": "1", "share": 9, "failed": "f", "compared": 10, "differed": 11, "lastDifference": "d"}},
    }));
    assert_kept::<crate::Registration>(json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration", "metadata": metadata(), "spec": {},
        "status": {
            "verdict": "Hold", "waitingFor": "w", "keptOutBy": {"who": "Policies", "policies": ["p"]}, "clusterUid": "u",
            "requester": {"username": "r", "uid": "v", "credentialId": "c"}, "request": {"name": "n", "uid": "u", "spkiSha256": "0"},
            "keys": [{"until": "t", "spkiSha256": "0"}],
            "intent": {"approve": "a", "accept": true, "withdraw": true, "clusterVersion": "1", "holder": "h", "at": "t"},
            "approvedBy": ["eva"],
            "obligations": [{"name": "n", "policy": "p", "moduleSha256": "0", "due": "d", "withinSeconds": 7, "reason": "r", "clusterUid": "u"}],
            "expired": {"at": "t", "policies": ["p"], "reason": "r"}, "acceptedBefore": {"clusterUid": "u", "at": "t"},
            "deniedBefore": {"clusterUid": "u", "at": "t"},
            "decision": {
                "at": "t", "policies": [{"policy": "p", "moduleSha256": "0", "generation": 3, "verdict": "Allow", "codes": ["C"]}],
                "notAsked": [{"policy": "q", "generation": 1, "unmetConditions": ["c"]}], "recordSha256": "0", "record": "r",
            },
            "removedAt": "t",
        },
    }));
}

#[test]
fn keys_that_are_no_plain_words_are_quoted() {
    let error = from_value::<BTreeMap<String, bool>>(json!({"a\n\u{1b}": 1})).unwrap_err();
    assert_eq!(error.to_string(), r#"["a\n\u{1b}"]: invalid type: integer `1`, expected a boolean"#);
}
