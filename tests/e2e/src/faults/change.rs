//! What is done to a cluster so that it has a fault, and how that is undone.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::Cluster;
use ocm_api::names::{labels, secrets};
use serde_json::{Map, Value, json};

use super::keeper::Keeper;
use super::life::Life;
use super::pair::{On, Pair};
use super::refusal::Refusal;
use super::ways::Way;
use crate::trouble_support::{AGENTS, apply, kubectl};
use crate::{object, until};

/// The daemon that removes what is in namespaces that go.
const CONTROLLERS: &str = "kube-controller-manager";

/// What is done to a cluster, and can be undone.
pub(super) enum Change {
    /// A merge patch of an object, which is named as kubectl names it. What it changes gets its former value back.
    Patch(On, Vec<&'static str>, Value),
    /// An object, which is deleted again.
    Object(On, Value),
    /// An object that is deleted while a finalizer holds it.
    Held(On, Value),
    /// Another token in the kubeconfig that the agent registers with.
    Token(&'static str),
    /// Another kubeconfig that the agent registers with.
    Registers(Way),
    /// Another certificate of the agent, from the hub's authority.
    Certificate(Life),
    /// Nothing: the agent asks the hub for another certificate, which is waited for.
    Asks,
    /// Nothing: in the end the agent has the certificate that it asked for.
    Answered,
    /// The hub's address in place of the managed cluster's own.
    HubsAddress,
    /// Something that an API server refuses to somebody.
    Refuses(On, Refusal),
    /// A namespace that is removed, and of which nobody removes what is in it, for no controller manager runs.
    Doomed(On, &'static str),
    /// A daemon of the cluster that ends, and is started again.
    Stop(On, &'static str),
    /// etcd has no space left.
    Full(On),
    /// An object that is deleted, and is made again as it was.
    Gone(On, Vec<&'static str>),
    /// What kubectl does, and what undoes it; empty: it ends with the rest.
    Kubectl(On, Vec<&'static str>, Vec<&'static str>),
    /// What kubectl does again and again, for somebody else undoes it, and what it does at the end.
    Kept(On, Vec<String>, Vec<&'static str>),
    /// Nothing: an object that is put back as it was.
    Restored(On, Vec<&'static str>),
}

impl Change {
    pub(super) fn make<'a>(&'a self, pair: &Pair<'a>) -> Box<dyn FnOnce() + 'a> {
        match self {
            Self::Patch(on, what, fault) => {
                let cluster = on.of(pair);
                let cure = cure(&object(cluster, what), fault);
                patch(cluster, what, fault);
                Box::new(move || patch(cluster, what, &cure))
            }
            Self::Object(on, object) => {
                let cluster = on.of(pair);
                apply(cluster, object);
                Box::new(move || {
                    kubectl(cluster, &[&["delete", "--wait=true", "--ignore-not-found"], &*named(object)].concat())
                })
            }
            Self::Held(on, object) => {
                let cluster = on.of(pair);
                apply(cluster, object);
                kubectl(cluster, &[&["delete", "--wait=false"], &*named(object)].concat());
                Box::new(move || patch(cluster, &named(object), &json!({"metadata": {"finalizers": null}})))
            }
            Self::Token(token) => registers_with(pair.cluster, |own| with_token(own, token)),
            Self::Registers(way) => registers_with(pair.cluster, |own| way.instead(pair, own)),
            Self::Certificate(life) => {
                let cluster = pair.cluster;
                let what = ["secret", secrets::HUB_KUBECONFIG, "--namespace", AGENTS];
                let before = object(cluster, &what)["data"].clone();
                let agent = STANDARD.decode(before[secrets::AGENT_NAME_KEY].as_str().unwrap()).unwrap();
                let fault = life.certificate(pair, std::str::from_utf8(&agent).unwrap());
                let cure = cure(&before, &fault);
                let put = move |data: &Value| patch(cluster, &what, &json!({ "data": data }));
                put(&fault);
                let is_renewed = life.is_renewed();
                Box::new(move || {
                    if !is_renewed {
                        put(&cure);
                    }
                })
            }
            Self::Asks => {
                until("the agent asks for a certificate", || newest_request(pair.hub, pair.name).is_some());
                Box::new(|| ())
            }
            Self::Answered => {
                let (hub, cluster, name) = (pair.hub, pair.cluster, pair.name);
                let what = ["secret", secrets::HUB_KUBECONFIG, "--namespace", AGENTS];
                Box::new(move || {
                    until("the agent has what it asked for", || {
                        let own = object(cluster, &what)["data"][secrets::TLS_CERT_KEY].clone();
                        newest_request(hub, name).is_some_and(|request| request["status"]["certificate"] == own)
                    });
                })
            }
            Self::HubsAddress => {
                let (hub, what) = (pair.hub, ["managedcluster", pair.name]);
                let fault = json!({"spec": {"managedClusterClientConfigs": [{"url": hub.server()}]}});
                let cure = cure(&object(hub, &what), &fault);
                patch(hub, &what, &fault);
                Box::new(move || patch(hub, &what, &cure))
            }
            Self::Refuses(on, refusal) => {
                let cluster = on.of(pair);
                refusal.begin(cluster);
                Box::new(move || refusal.end(cluster))
            }
            Self::Doomed(on, name) => {
                let (cluster, name) = (on.of(pair), *name);
                let what = ["namespace", name];
                let before = as_it_is(cluster, &what);
                cluster.stop(CONTROLLERS).unwrap();
                kubectl(cluster, &["delete", "namespace", name, "--wait=false"]);
                Box::new(move || {
                    // Without the finalizer of its own it is gone at once, and what is in it stays.
                    let mut released = object(cluster, &what);
                    released["spec"]["finalizers"] = json!([]);
                    let file = cluster.dir().unwrap().join(format!("{name}.json"));
                    fs::write(&file, released.to_string()).unwrap();
                    let (path, file) = (format!("/api/v1/namespaces/{name}/finalize"), file.display().to_string());
                    kubectl(cluster, &["replace", "--raw", &path, "--filename", &file]);
                    apply(cluster, &before);
                    cluster.start_again(CONTROLLERS).unwrap();
                })
            }
            Self::Stop(on, daemon) => {
                let cluster = on.of(pair);
                cluster.stop(daemon).unwrap();
                Box::new(move || {
                    cluster.start_again(daemon).unwrap();
                    until("its API server answers", || cluster.kubectl(&["get", "--raw", "/readyz"]).is_ok());
                })
            }
            Self::Full(on) => {
                let cluster = on.of(pair);
                cluster.set_storage_full(true).unwrap();
                Box::new(move || cluster.set_storage_full(false).unwrap())
            }
            Self::Gone(on, what) => {
                let cluster = on.of(pair);
                let before = as_it_is(cluster, what);
                kubectl(cluster, &[&["delete", "--wait=true"], &**what].concat());
                Box::new(move || apply(cluster, &before))
            }
            Self::Restored(on, what) => {
                let cluster = on.of(pair);
                let before = as_it_is(cluster, what);
                Box::new(move || apply(cluster, &before))
            }
            Self::Kept(on, words, cure) => {
                let cluster = on.of(pair);
                kubectl(cluster, &words.iter().map(String::as_str).collect::<Vec<_>>());
                let keeper = Keeper::start(&cluster.kubectl_command(), words.clone());
                Box::new(move || {
                    drop(keeper);
                    if !cure.is_empty() {
                        kubectl(cluster, cure);
                    }
                })
            }
            Self::Kubectl(on, words, cure) => {
                let cluster = on.of(pair);
                kubectl(cluster, words);
                Box::new(move || {
                    if !cure.is_empty() {
                        kubectl(cluster, cure);
                    }
                })
            }
        }
    }
}

/// The newest request of a cluster on its hub.
fn newest_request(hub: &Cluster, name: &str) -> Option<Value> {
    let label = format!("--selector={}={name}", labels::CLUSTER_NAME);
    let requests = object(hub, &["csr", &label])["items"].as_array().cloned().unwrap_or_default();
    requests.into_iter().max_by_key(|request| request["metadata"]["creationTimestamp"].to_string())
}

/// An object as it can be applied again.
fn as_it_is(cluster: &Cluster, what: &[&str]) -> Value {
    let mut object = object(cluster, what);
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
    object
}

/// Replaces the kubeconfig that the agent registers with.
fn registers_with(cluster: &Cluster, with: impl FnOnce(&str) -> String) -> Box<dyn FnOnce() + '_> {
    let what = ["secret", secrets::BOOTSTRAP_HUB_KUBECONFIG, "--namespace", AGENTS];
    let before = object(cluster, &what)["data"]["kubeconfig"].as_str().unwrap().to_owned();
    let own = String::from_utf8(STANDARD.decode(&before).unwrap()).unwrap();
    let put = |kubeconfig: String| json!({"data": {"kubeconfig": kubeconfig}});
    patch(cluster, &what, &put(STANDARD.encode(with(&own))));
    Box::new(move || patch(cluster, &what, &put(before)))
}

/// A kubeconfig, of YAML or JSON, with another token.
fn with_token(kubeconfig: &str, token: &str) -> String {
    let (before, rest) = kubeconfig.split_once("token").unwrap();
    let is_of_token = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let start = rest.find(is_of_token).unwrap();
    let end = rest[start..].find(|letter| !is_of_token(letter)).map_or(rest.len(), |end| start + end);
    format!("{before}token{}{token}{}", &rest[..start], &rest[end..])
}

/// How kubectl names an object of a manifest.
fn named(object: &Value) -> Vec<&str> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let mut words = vec![text("/kind").unwrap(), text("/metadata/name").unwrap()];
    words.extend(text("/metadata/namespace").into_iter().flat_map(|namespace| ["--namespace", namespace]));
    words
}

fn patch(cluster: &Cluster, what: &[&str], patch: &Value) {
    let patch = format!("--patch={patch}");
    kubectl(cluster, &[&["patch", "--type=merge", &patch], what].concat());
}

/// The merge patch that undoes another one.
fn cure(before: &Value, fault: &Value) -> Value {
    match (before, fault) {
        (Value::Object(before), Value::Object(fault)) => {
            let undone = |(key, value): (&String, &Value)| {
                let before = before.get(key).unwrap_or(&Value::Null);
                (key.clone(), cure(before, value))
            };
            Value::Object(fault.iter().map(undone).collect::<Map<_, _>>())
        }
        _ => before.clone(),
    }
}
