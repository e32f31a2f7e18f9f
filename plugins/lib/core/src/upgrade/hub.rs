//! The plan of a hub: its operator, and the images of its ClusterManager.

use ocm_api::{ClusterManager, Manifest, crds};
use serde_json::{Value, json};

use super::{Parts, Upgrade};
use crate::images::{self, Source};
use crate::install::cluster_manager::image_member;
use crate::install::images::{Images, SERVER};
use crate::install::{self, Live, Options, deployment};
use crate::leave::meta;
use crate::release::{Bundle, Component};
use crate::{Failure, Plan, Remedy, Stage};

/// What runs on a hub: its operator, and what its ClusterManager names.
pub fn parts(live: &Live) -> Parts {
    Images::of(&Options::default(), live).parts()
}

/// Plans the upgrade of a hub to a release, with images from `source`. Of the ClusterManager it says nothing but images, so all
/// else stays as it is.
///
/// # Errors
/// When there is no hub, or no operator that could carry it out. `label` is how messages name the cluster.
pub fn plan(live: &Live, bundle: &Bundle, source: &Source, label: &str) -> Result<Upgrade, Failure> {
    let Some(manager) = &live.cluster_manager else {
        return Err(Failure::refused(format!("there is no ClusterManager: {label} is no hub")).hint(Remedy::NameHub));
    };
    let name = manager.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if manager.pointer("/metadata/deletionTimestamp").is_some_and(|deleted| !deleted.is_null()) {
        return Err(Failure::refused(format!(
            "ClusterManager {name:?} is being deleted: nothing was changed ({label})"
        ))
        .hint(Remedy::ReinstallHub));
    }
    if live.operator.is_none() {
        return Err(Failure::refused(format!(
            "the hub's operator, Deployment open-cluster-management/cluster-manager, is not there: nothing was changed ({label})"
        ))
        .hint(Remedy::RestoreHubOperator));
    }
    let Source { registry, digests } = source.clone();
    let options = Options { bundle: Some(bundle.clone()), registry, digests, ..Options::default() };
    let images = Images::of(&options, live);
    let mut spec = json!({});
    let (mut wanted, mut moved) = (Vec::new(), Vec::new());
    for component in Component::ALL {
        let image = images.image(component);
        moved.extend(images.running(component).map(|running| (component.image(), running, image.clone())));
        if let Some(member) = image_member(component) {
            spec[member] = Value::from(image.as_str());
            wanted.push(image);
        }
    }
    if let Some((running, image)) = images.running_server().zip(images.server()) {
        spec["serverConfiguration"] = json!({ "imagePullSpec": image });
        moved.push((SERVER, running, image.clone()));
        wanted.push(image);
    }
    let rights = install::operator_rights().into_iter().chain(install::bootstrap_rights());
    Ok(Upgrade {
        name: name.to_owned(),
        before: parts(live),
        operator: Plan::new([
            Stage::new("the definition of ClusterManager", vec![crds::cluster_manager_manifest()]),
            Stage::new("roles", rights.collect()),
            Stage::new("the operator", vec![deployment::manifest(&options, live, &images)]),
        ]),
        resource: Plan::new([Stage::new(
            "the ClusterManager",
            vec![Manifest::with::<ClusterManager>(&meta(None, name), json!({ "spec": spec }))],
        )]),
        images: wanted,
        unpinned: images::unpinned(moved.iter().map(|(name, before, after)| (*name, *before, after.as_str()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::Digests;
    use crate::operator;

    fn bundle() -> Bundle {
        Bundle::parse("1.2.0").unwrap()
    }

    fn live() -> Live {
        Live {
            cluster_manager: Some(json!({
                "metadata": {"name": "mine"},
                "spec": {
                    "registrationImagePullSpec": "mirror.example/ocm/registration:v1.1.0",
                    "workImagePullSpec": "mirror.example/ocm/my-work:v1.1.0@sha256:ab",
                    "nodePlacement": {"nodeSelector": {"pool": "infra"}},
                    "registrationConfiguration": {"registrationDrivers": [{"authType": "grpc"}]},
                    "serverConfiguration": {"imagePullSpec": "mirror.example/ocm/grpc:v1.1.0"},
                },
            })),
            operator: Some(json!({"spec": {"replicas": 2, "template": {"spec": {"containers": [
                {"name": "op", "image": "mirror.example/ocm/registration-operator:v1.1.0",
                    "args": ["/registration-operator", "hub", "-v=4"]}]}}}})),
            nodes: None,
        }
    }

    #[test]
    fn a_hub_that_is_being_deleted_is_not_upgraded() {
        let mut live = live();
        live.cluster_manager.as_mut().unwrap()["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let failure = plan(&live, &bundle(), &Source::default(), "context \"h\"").unwrap_err();
        assert!(failure.message.contains("\"mine\" is being deleted"), "{failure}");
    }

    #[test]
    fn nothing_but_images_is_said_of_the_cluster_manager() {
        let upgrade = plan(&live(), &bundle(), &Source::default(), "context \"h\"").unwrap();
        let manager = upgrade.resource.objects().next().unwrap();
        assert_eq!(manager.name(), "mine");
        assert_eq!(
            manager.body()["spec"],
            json!({
                "registrationImagePullSpec": "mirror.example/ocm/registration:v1.2.0",
                "workImagePullSpec": "mirror.example/ocm/my-work:v1.2.0",
                "placementImagePullSpec": "mirror.example/ocm/placement:v1.2.0",
                "addOnManagerImagePullSpec": "mirror.example/ocm/addon-manager:v1.2.0",
                "serverConfiguration": {"imagePullSpec": "mirror.example/ocm/grpc:v1.2.0"},
            })
        );
        assert_eq!(upgrade.images.len(), 5);
        let operator = upgrade.operator.objects().find(|object| object.kind() == "Deployment").unwrap().body();
        assert_eq!(operator["spec"]["replicas"], 2);
        let container = operator::container(operator).unwrap();
        assert_eq!(container["image"], "mirror.example/ocm/registration-operator:v1.2.0");
        assert_eq!(container["args"], json!(["/registration-operator", "hub", "-v=4"]));
        let whole = upgrade.plan();
        let kinds: Vec<&str> = whole.objects().map(Manifest::kind).collect();
        assert_eq!((kinds[0], *kinds.last().unwrap()), ("CustomResourceDefinition", "ClusterManager"));
        assert!(!kinds.contains(&"Namespace") && !kinds.contains(&"Secret") && !kinds.contains(&"ServiceAccount"));
        assert!(upgrade.unpinned.unwrap().ends_with("from now on: work"));
    }

    #[test]
    fn images_come_from_another_registry_and_by_their_digests() {
        let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
        let digests = Digests::read(&json!({"work": digest("a"), "registration-operator": digest("b")})).unwrap();
        let source = Source { registry: Some("other.example/ocm".to_owned()), digests };
        let upgrade = plan(&live(), &bundle(), &source, "x").unwrap();
        let spec = upgrade.resource.objects().next().unwrap().body()["spec"].clone();
        assert_eq!(spec["workImagePullSpec"], format!("other.example/ocm/work:v1.2.0@{}", digest("a")));
        assert_eq!(spec["placementImagePullSpec"], "other.example/ocm/placement:v1.2.0");
        assert_eq!(spec["serverConfiguration"]["imagePullSpec"], "mirror.example/ocm/grpc:v1.2.0");
        let operator = upgrade.operator.objects().find(|object| object.kind() == "Deployment").unwrap().body();
        let image = operator::container(operator).unwrap()["image"].clone();
        assert_eq!(image, format!("other.example/ocm/registration-operator:v1.2.0@{}", digest("b")));
        assert_eq!(upgrade.unpinned, None);
    }

    #[test]
    fn digests_of_the_release_that_runs_stay() {
        let upgrade = plan(&live(), &Bundle::parse("1.1.0").unwrap(), &Source::default(), "x").unwrap();
        let spec = upgrade.resource.objects().next().unwrap().body()["spec"].clone();
        assert_eq!(spec["workImagePullSpec"], "mirror.example/ocm/my-work:v1.1.0@sha256:ab");
    }

    #[test]
    fn what_runs_is_what_the_operator_and_the_cluster_manager_name() {
        assert_eq!(parts(&live()).told(), "v1.1.0");
        assert_eq!(parts(&live()).way_back(&Bundle::default()), None, "work is pinned");
        assert_eq!(parts(&live()).0.len(), 4);
    }

    #[test]
    fn what_is_no_hub_or_has_no_operator_is_refused() {
        let planned = |live: &Live| plan(live, &Bundle::default(), &Source::default(), "x");
        let none = planned(&Live::default()).unwrap_err();
        assert!(none.message.contains("is no hub"), "{none}");
        let without = planned(&Live { operator: None, ..live() }).unwrap_err();
        assert!(without.message.contains("operator"), "{without}");
    }

    #[test]
    fn roles_that_a_hub_does_not_have_can_be_left_out() {
        let mut upgrade = plan(&live(), &Bundle::default(), &Source::default(), "x").unwrap();
        upgrade.retain(|object| object.kind() != "ClusterRoleBinding" && object.kind() != "ClusterRole");
        assert_eq!(upgrade.operator.stages.len(), 2);
    }
}
