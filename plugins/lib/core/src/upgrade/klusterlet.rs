//! The plan of a managed cluster: its operator, and the images of one Klusterlet.

use ocm_api::operator::KlusterletMode;
use ocm_api::{Klusterlet, Manifest, crds};
use serde_json::{Value, json};

use super::{Part, Parts, Upgrade};
use crate::images::{self, Source};
use crate::join::plan::{Live, Settings, operator_deployment};
use crate::leave::meta;
use crate::release::{Bundle, Component, Image, REGISTRY};
use crate::{Failure, Plan, Remedy, Stage, join, operator};

/// The members of the spec that hold images, and the component of each.
const MEMBERS: [(&str, Component); 3] = [
    ("registrationImagePullSpec", Component::Registration),
    ("workImagePullSpec", Component::Work),
    ("imagePullSpec", Component::Operator),
];

/// Whether the operator reads this member in this mode. Upstream: `manifests/klusterlet/management`.
fn is_used(member: &str, mode: &KlusterletMode) -> bool {
    let is_single = matches!(mode, KlusterletMode::Singleton | KlusterletMode::SingletonHosted);
    (member == "imagePullSpec") == is_single
}

fn mode(klusterlet: &Value) -> KlusterletMode {
    let word = klusterlet.pointer("/spec/deployOption/mode").cloned().unwrap_or_default();
    serde_json::from_value(word).unwrap_or_default()
}

fn image_of<'a>(klusterlet: &'a Value, member: &str) -> Option<&'a str> {
    klusterlet["spec"][member].as_str().filter(|image| !image.is_empty())
}

fn operator_image(operator: Option<&Value>) -> Option<&str> {
    operator::container(operator?)?["image"].as_str()
}

/// What runs for one Klusterlet: the operator, and what its mode uses.
pub fn parts(klusterlet: &Value, operator: Option<&Value>) -> Parts {
    let operator = operator_image(operator);
    let mut parts: Vec<Part> =
        operator.map(|image| Part { name: Component::Operator.image(), image: image.to_owned() }).into_iter().collect();
    let mode = mode(klusterlet);
    for (member, component) in MEMBERS.into_iter().filter(|(member, _)| is_used(member, &mode)) {
        let name = if component == Component::Operator { "the agent" } else { component.image() };
        parts.extend(image_of(klusterlet, member).map(|image| Part { name, image: image.to_owned() }));
    }
    Parts(parts)
}

/// Plans the upgrade of one Klusterlet and of the operator that serves it to a release, with images from `source`. Of the
/// Klusterlet it says nothing but images.
///
/// # Errors
/// When no operator is there that could carry it out. `label` is how messages name the cluster.
pub fn plan(
    klusterlet: &Value,
    operator: Option<&Value>,
    bundle: &Bundle,
    source: &Source,
    label: &str,
) -> Result<Upgrade, Failure> {
    let name = klusterlet.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let Some(running) = operator_image(operator) else {
        return Err(Failure::refused(format!(
            "the operator of Klusterlet {name:?}, Deployment open-cluster-management/klusterlet, is not there: nothing was \
             changed ({label})"
        ))
        .hint(Remedy::RestoreKlusterletOperator));
    };
    let image = source.image(Component::Operator, Image::parse(running).of_release(bundle));
    let live = Live { operator: operator.cloned(), ..Live::default() };
    let mut deployment = operator_deployment(&Settings::default(), &live);
    let containers = deployment.body_mut().pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        container["image"] = Value::from(image.as_str());
    }
    let mode = mode(klusterlet);
    let (mut spec, mut wanted) = (json!({}), Vec::new());
    let mut moved = vec![(Component::Operator.image(), running, image)];
    for (member, component) in MEMBERS {
        let before = image_of(klusterlet, member);
        let next = match before {
            Some(image) => Image::parse(image).of_release(bundle),
            None if is_used(member, &mode) => {
                let beside = Image::parse(running);
                let registry = Some(beside.registry()).filter(|registry| !registry.is_empty()).unwrap_or(REGISTRY);
                Image::parse(&format!("{registry}/{}:{bundle}", component.image()))
            }
            None => continue,
        };
        let next = source.image(component, next);
        if is_used(member, &mode) {
            wanted.push(next.clone());
            moved.extend(before.map(|before| (component.image(), before, next.clone())));
        }
        spec[member] = Value::from(next);
    }
    Ok(Upgrade {
        name: name.to_owned(),
        before: parts(klusterlet, operator),
        operator: Plan::new([
            Stage::new("the definition of Klusterlet", vec![crds::klusterlet_manifest()]),
            Stage::new("roles", join::operator_rights().into()),
            Stage::new("the operator", vec![deployment]),
        ]),
        resource: Plan::new([Stage::new(
            "the Klusterlet",
            vec![Manifest::with::<Klusterlet>(&meta(None, name), json!({ "spec": spec }))],
        )]),
        images: wanted,
        unpinned: images::unpinned(moved.iter().map(|(name, before, after)| (*name, *before, after.as_str()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::Digests;

    fn live(mode: &str, spec: &Value) -> Value {
        let mut live =
            json!({"metadata": {"name": "k"}, "spec": {"clusterName": "c1", "deployOption": {"mode": mode}}});
        for (member, value) in spec.as_object().unwrap() {
            live["spec"][member] = value.clone();
        }
        live
    }

    fn operator() -> Value {
        json!({"spec": {"replicas": 1, "template": {"spec": {"containers": [
            {"name": "klusterlet", "image": "mirror.example/ocm/my-operator:v1.1.0", "args": ["/registration-operator", "klusterlet", "-v=2"]}]}}}})
    }

    fn from(klusterlet: &Value, source: &Source) -> Upgrade {
        plan(klusterlet, Some(&operator()), &Bundle::parse("1.2.0").unwrap(), source, "context \"c1\"").unwrap()
    }

    fn planned(klusterlet: &Value) -> Upgrade {
        from(klusterlet, &Source::default())
    }

    fn spec(upgrade: &Upgrade) -> Value {
        upgrade.resource.objects().next().unwrap().body()["spec"].clone()
    }

    #[test]
    fn nothing_but_images_is_said_and_repositories_stay() {
        let klusterlet = live(
            "Default",
            &json!({
                "registrationImagePullSpec": "mirror.example/ocm/registration@sha256:ab", "workImagePullSpec": "r/work:v1.1.0",
                "imagePullSpec": "r/old:v0.9.0", "priorityClassName": "p",
            }),
        );
        let upgrade = planned(&klusterlet);
        assert_eq!(
            spec(&upgrade),
            json!({
                "registrationImagePullSpec": "mirror.example/ocm/registration:v1.2.0", "workImagePullSpec": "r/work:v1.2.0",
                "imagePullSpec": "r/old:v1.2.0",
            })
        );
        assert_eq!(upgrade.images, ["mirror.example/ocm/registration:v1.2.0", "r/work:v1.2.0"]);
        let deployment = upgrade.operator.objects().find(|object| object.kind() == "Deployment").unwrap().body();
        let container = operator::container(deployment).unwrap();
        assert_eq!(container["image"], "mirror.example/ocm/my-operator:v1.2.0");
        assert_eq!(container["args"], json!(["/registration-operator", "klusterlet", "-v=2"]));
        let whole = upgrade.plan();
        let kinds: Vec<&str> = whole.objects().map(Manifest::kind).collect();
        assert_eq!(
            kinds,
            ["CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Deployment", "Klusterlet"]
        );
        // What the mode does not use tells nothing of what runs.
        assert_eq!(upgrade.before.0.len(), 3);
        assert!(upgrade.unpinned.unwrap().ends_with("from now on: registration"));
    }

    #[test]
    fn images_come_from_another_registry_and_by_their_digests() {
        let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
        let names = ["registration", "work", "registration-operator"];
        let digests = Digests::read(&names.map(|name| (name, digest("c"))).into_iter().collect()).unwrap();
        let source = Source { registry: Some("other.example/ocm".to_owned()), digests };
        let klusterlet = live("Default", &json!({"workImagePullSpec": "r/my-work:v1.1.0"}));
        let upgrade = from(&klusterlet, &source);
        let image = |name: &str| format!("other.example/ocm/{name}:v1.2.0@{}", digest("c"));
        assert_eq!(
            spec(&upgrade),
            json!({"registrationImagePullSpec": image("registration"), "workImagePullSpec": image("work")})
        );
        let deployment = upgrade.operator.objects().find(|object| object.kind() == "Deployment").unwrap().body();
        assert_eq!(operator::container(deployment).unwrap()["image"], image("registration-operator"));
        assert_eq!(upgrade.unpinned, None);
    }

    #[test]
    fn each_mode_uses_its_images_and_gets_what_it_lacks() {
        for (mode, members) in [
            ("Default", &["registrationImagePullSpec", "workImagePullSpec"][..]),
            ("Hosted", &["registrationImagePullSpec", "workImagePullSpec"]),
            ("Singleton", &["imagePullSpec"]),
            ("SingletonHosted", &["imagePullSpec"]),
        ] {
            let upgrade = planned(&live(mode, &json!({})));
            let spec = spec(&upgrade);
            let said: Vec<&String> = spec.as_object().unwrap().keys().collect();
            let mut members = members.to_vec();
            members.sort_unstable();
            let mut sorted = said.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, members, "{mode}");
        }
        let single = planned(&live("Singleton", &json!({})));
        assert_eq!(single.images, ["mirror.example/ocm/registration-operator:v1.2.0"]);
    }

    #[test]
    fn without_an_operator_nobody_could_carry_it_out() {
        let (klusterlet, source) = (live("Default", &json!({})), Source::default());
        let refused = plan(&klusterlet, None, &Bundle::default(), &source, "x").unwrap_err();
        assert_eq!(refused.reason, crate::Reason::Refused);
    }
}
