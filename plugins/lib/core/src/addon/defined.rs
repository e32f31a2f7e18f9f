//! What defines an add-on on the hub: a ClusterManagementAddOn, and the AddOnTemplate of what is put on clusters.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::names::annotations;
use ocm_api::{AddOnTemplate, ClusterManagementAddOn, Manifest};
use serde_json::{Value, json};

use crate::order::Collect as _;
use crate::plan::{Plan, Stage};
use crate::work::Content;

const GROUP: &str = "addon.open-cluster-management.io";

/// What is said of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionOptions {
    /// Its name.
    pub name: String,
    /// Version of its template.
    pub version: String,
    /// Namespace and name of the placement by which the hub installs it; none: people enable it.
    pub placement: Option<(String, String)>,
    /// Whether its agents get a kubeconfig for the hub.
    pub hub_registration: bool,
    /// ClusterRole on the hub that its agents hold in the namespace of their cluster.
    pub cluster_role: Option<String>,
    /// Labels of both objects.
    pub labels: BTreeMap<String, String>,
}

/// Name of the template of a version.
pub fn template_name(name: &str, version: &str) -> String {
    format!("{name}-{version}")
}

/// The template, and then the add-on that uses it by default. Upstream: `addon/v1alpha1.AddOnTemplate`,
/// `addon/v1alpha1.ClusterManagementAddOn`.
pub fn definition_plan(options: &DefinitionOptions, content: &Content) -> Plan {
    Plan::new([
        Stage::new("templates", vec![template(options, content)]),
        Stage::new("add-ons", vec![definition(options)]),
    ])
}

fn metadata(options: &DefinitionOptions, name: String) -> ObjectMeta {
    let labels = (!options.labels.is_empty()).then(|| options.labels.clone());
    ObjectMeta { name: Some(name), labels, ..ObjectMeta::default() }
}

fn template(options: &DefinitionOptions, content: &Content) -> Manifest {
    let DefinitionOptions { name, version, hub_registration, cluster_role, .. } = options;
    let metadata = metadata(options, template_name(name, version));
    let mut manifest = Manifest::with::<AddOnTemplate>(&metadata, Value::Null);
    // As the objects stand: a null in one of somebody's may mean something.
    let spec = json!({"addonName": name, "agentSpec": {"workload": {"manifests": content.manifests()}}});
    manifest.body_mut()["spec"] = spec;
    if *hub_registration {
        let mut registration = json!({"type": "KubeClient"});
        if let Some(role) = cluster_role {
            let permission = json!({"type": "CurrentCluster", "currentCluster": {"clusterRoleName": role}});
            registration["kubeClient"] = json!({"hubPermissions": [permission]});
        }
        manifest.body_mut()["spec"]["registration"] = json!([registration]);
    }
    manifest.exactly()
}

fn definition(options: &DefinitionOptions) -> Manifest {
    let DefinitionOptions { name, version, placement, .. } = options;
    let mut metadata = metadata(options, name.clone());
    // Without it the add-on would have to bring a controller of its own.
    let manager = (annotations::ADDON_LIFECYCLE.to_owned(), annotations::ADDON_MANAGER.to_owned());
    metadata.annotations = Some([manager].collect_map());
    let strategy = match placement {
        None => json!({"type": "Manual"}),
        Some((namespace, name)) => json!({"type": "Placements", "placements": [
            {"namespace": namespace, "name": name, "rolloutStrategy": {"type": "All"}}]}),
    };
    let spec = json!({
        "supportedConfigs": [
            {"group": GROUP, "resource": "addontemplates", "defaultConfig": {"name": template_name(name, version)}},
            // What a template can be adapted with: variables, images, proxies, where its pods run.
            {"group": GROUP, "resource": "addondeploymentconfigs"},
        ],
        "installStrategy": strategy,
    });
    Manifest::with::<ClusterManagementAddOn>(&metadata, json!({"spec": spec})).exactly()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Document;

    fn planned(options: &DefinitionOptions) -> (Value, Value) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": null}});
        let content = Content::read(vec![Document { source: "f".to_owned(), value: object }]).unwrap();
        let plan = definition_plan(options, &content);
        let all: Vec<&Manifest> = plan.objects().collect();
        assert!(all.iter().all(|manifest| manifest.is_exact() && manifest.namespace().is_none()));
        assert_eq!(all[0].body()["spec"]["agentSpec"]["workload"]["manifests"], json!(content.manifests()));
        (all[0].body().clone(), all[1].body().clone())
    }

    fn hello() -> DefinitionOptions {
        DefinitionOptions { name: "hello".to_owned(), version: "0.0.1".to_owned(), ..DefinitionOptions::default() }
    }

    #[test]
    fn an_add_on_uses_the_template_of_its_version() {
        let (template, definition) = planned(&hello());
        assert_eq!(
            (&template["metadata"]["name"], &template["spec"]["addonName"]),
            (&json!("hello-0.0.1"), &json!("hello"))
        );
        assert_eq!(template["spec"].get("registration"), None);
        assert_eq!(
            definition["metadata"]["annotations"],
            json!({"addon.open-cluster-management.io/lifecycle": "addon-manager"})
        );
        assert_eq!(definition["metadata"].get("labels"), None);
        assert_eq!(
            definition["spec"],
            json!({
                "supportedConfigs": [
                    {"group": GROUP, "resource": "addontemplates", "defaultConfig": {"name": "hello-0.0.1"}},
                    {"group": GROUP, "resource": "addondeploymentconfigs"}],
                "installStrategy": {"type": "Manual"},
            })
        );
    }

    #[test]
    fn what_is_said_besides_is_in_it() {
        let options = DefinitionOptions {
            placement: Some(("team".to_owned(), "web".to_owned())),
            hub_registration: true,
            cluster_role: Some("reader".to_owned()),
            labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            ..hello()
        };
        let (template, definition) = planned(&options);
        assert_eq!(
            template["spec"]["registration"],
            json!([{"type": "KubeClient", "kubeClient": {"hubPermissions": [
                {"type": "CurrentCluster", "currentCluster": {"clusterRoleName": "reader"}}]}}])
        );
        assert_eq!(definition["spec"]["installStrategy"]["placements"][0]["namespace"], "team");
        assert_eq!(crate::addon::placements(&definition), ["team/web"]);
        assert_eq!(
            (&template["metadata"]["labels"], &definition["metadata"]["labels"]),
            (&json!({"a": "b"}), &json!({"a": "b"}))
        );
        let (template, _) = planned(&DefinitionOptions { cluster_role: None, ..options });
        assert_eq!(template["spec"]["registration"], json!([{"type": "KubeClient"}]));
    }
}
