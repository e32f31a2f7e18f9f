//! The objects of an add-on with their kinds and their namespaces; what has no place in it is refused.

use std::collections::BTreeSet;

use ocm_api::Manifest;

use super::content::{group, text, told};
use super::{Content, Kinds, guard};
use crate::Failure;
use crate::leave::some;

/// The objects as they would be applied, without the label of the add-on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settled {
    /// The objects, in the order of the files.
    pub manifests: Vec<Manifest>,
    /// Those of which it is not known whether they need a namespace, for people: they are left as they stand.
    pub unsure: Vec<String>,
}

/// Gives each object that needs a namespace and names none this one.
///
/// # Errors
/// A usage failure for objects that are there twice; a refusal for those that have no place in an add-on, all of them named.
pub fn settled(content: &Content, namespace: &str, kinds: &Kinds) -> Result<Settled, Failure> {
    let mut settled = Settled::default();
    let (mut known, mut refused) = (BTreeSet::new(), Vec::new());
    for written in &content.objects {
        let mut object = written.value.clone();
        let (api_version, kind) = (text(&object, "/apiVersion").to_owned(), text(&object, "/kind").to_owned());
        let found = kinds.get(&api_version, &kind);
        let is_placed = !text(&object, "/metadata/namespace").is_empty();
        match found.map(|kind| kind.namespaced) {
            Some(true) if !is_placed => object["metadata"]["namespace"] = namespace.into(),
            // As an API server takes it: what is in no namespace has none.
            Some(false) => {
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("namespace");
                }
            }
            None if !is_placed => settled.unsure.push(told(&object)),
            Some(true) | None => {}
        }
        let key = (
            group(&object).to_owned(),
            kind.clone(),
            text(&object, "/metadata/namespace").to_owned(),
            text(&object, "/metadata/name").to_owned(),
        );
        if !known.insert(key) {
            return Err(Failure::usage(format!("{} is there twice, again in {}", told(&object), written.source))
                .hint("an add-on holds each object once: leave one of them out"));
        }
        let plural = found.map_or_else(|| format!("{}s", kind.to_ascii_lowercase()), |kind| kind.plural.clone());
        let name = told(&object);
        let manifest = Manifest::written(&plural, object);
        let Some(manifest) = manifest else { continue };
        if let Some(why) = guard::refusal(&manifest) {
            refused.push(format!("{name} {why}"));
        }
        settled.manifests.push(manifest);
    }
    if refused.is_empty() {
        return Ok(settled);
    }
    let sentence = format!("an add-on may not hold these objects: {}; nothing was changed", some(&refused));
    Err(Failure::refused(sentence).hint("leave them out of the files"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::hub_addon::Kind;
    use crate::work::Document;

    fn settle(objects: &[Value]) -> Result<Settled, Failure> {
        let document = |value: &Value| Document { source: "f".to_owned(), value: value.clone() };
        let content = Content::read(objects.iter().map(document).collect()).unwrap();
        let mut kinds = Kinds::of(&content);
        kinds.learn("example.com/v1", "Hello", Kind { plural: "helloes".to_owned(), namespaced: true });
        settled(&content, "space", &kinds)
    }

    fn object(api_version: &str, kind: &str, namespace: &str) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    }

    #[test]
    fn objects_that_need_a_namespace_get_one() {
        let settled = settle(&[
            object("v1", "ConfigMap", ""),
            object("v1", "ConfigMap", "own"),
            object("rbac.authorization.k8s.io/v1", "ClusterRole", "wrong"),
            object("example.com/v1", "Hello", ""),
            object("example.com/v1", "Other", ""),
        ])
        .unwrap();
        let of = |manifest: &Manifest| (manifest.plural().to_owned(), manifest.namespace().map(str::to_owned));
        let found: Vec<(String, Option<String>)> = settled.manifests.iter().map(of).collect();
        let expected = [
            ("configmaps", Some("space")),
            ("configmaps", Some("own")),
            ("clusterroles", None),
            ("helloes", Some("space")),
            ("others", None),
        ];
        assert_eq!(found, expected.map(|(plural, namespace)| (plural.to_owned(), namespace.map(str::to_owned))));
        assert_eq!(settled.unsure, ["Other a"]);
        assert_eq!(settled.manifests[2].body()["metadata"], json!({"name": "a"}));
    }

    #[test]
    fn an_object_is_there_once() {
        let failure = settle(&[object("v1", "ConfigMap", ""), object("v1", "ConfigMap", "space")]).unwrap_err();
        assert_eq!(failure.exit(), crate::Exit::Usage);
        assert!(failure.message.contains("ConfigMap space/a is there twice"), "{failure}");
    }

    #[test]
    fn everything_that_has_no_place_is_named() {
        let failure = settle(&[
            object("operator.open-cluster-management.io/v1", "ClusterManager", ""),
            object("v1", "ConfigMap", ""),
            object("v1", "Secret", "open-cluster-management-hub"),
        ])
        .unwrap_err();
        assert_eq!(failure.exit(), crate::Exit::Findings);
        let both = failure.message.contains("ClusterManager a belongs to the hub itself")
            && failure.message.contains("Secret open-cluster-management-hub/a is in the namespace");
        assert!(both && !failure.message.contains("ConfigMap"), "{failure}");
    }
}
