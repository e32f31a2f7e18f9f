//! What is done to a cluster so that it has a fault, and how that is undone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::Cluster;
use ocm_api::names::secrets;
use serde_json::{Map, Value, json};

use super::keeper::Keeper;
use super::pair::{On, Pair};
use super::ways::Way;
use crate::object;
use crate::trouble_support::{AGENTS, apply, kubectl};

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
            Self::Stop(on, daemon) => {
                let cluster = on.of(pair);
                cluster.stop(daemon).unwrap();
                Box::new(move || cluster.start_again(daemon).unwrap())
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
