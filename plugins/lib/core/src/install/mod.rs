//! Installing a hub: from what was typed and what is there to a [`Plan`].
//!
//! Three layers make every object, the upper one wins: our defaults, what the cluster holds, what was typed. So a
//! second run without flags changes nothing, and a hub that another tool installed keeps what it was given.

pub mod bundle;
mod cluster_manager;
pub mod feature_gates;
pub(crate) mod operator;
mod quantity;
pub(crate) mod rbac;

use std::collections::BTreeMap;

use ocm_api::names::{bootstrap, operators};
use ocm_api::operator::ResourceQosClass;
use ocm_api::{Manifest, crds};
use serde_json::Value;

use crate::gates::Gate;
use crate::{Failure, Plan, Stage, reconcile};
use bundle::{Bundle, Component, Image, REGISTRY};

/// What was typed. Whatever is empty was not.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The release.
    pub bundle: Option<Bundle>,
    /// Where all images are.
    pub registry: Option<String>,
    /// Images of single components.
    pub images: BTreeMap<Component, String>,
    /// Registry credentials, a Docker configuration file.
    pub pull_credentials: Option<Vec<u8>>,
    /// Feature gates.
    pub feature_gates: Vec<(&'static Gate, bool)>,
    /// Ways in which clusters may register.
    pub registration_drivers: Option<Vec<Driver>>,
    /// ARN of the hub's EKS cluster.
    pub hub_cluster_arn: Option<String>,
    /// Tags of IAM resources.
    pub aws_resource_tags: Vec<String>,
    /// Users whose CSRs the hub approves by itself.
    pub auto_approved_csr_identities: Vec<String>,
    /// Patterns of the ARNs of clusters that the hub approves by itself.
    pub auto_approved_arn_patterns: Vec<String>,
    /// Users whose requests over gRPC the hub approves by itself.
    pub auto_approved_grpc_identities: Vec<String>,
    /// How agents reach the gRPC server.
    pub grpc_endpoint: Option<GrpcEndpoint>,
    /// Address of the gRPC server.
    pub grpc_server: Option<String>,
    /// How much CPU and memory the hub's pods ask for.
    pub resource_qos_class: Option<ResourceQosClass>,
    /// Limits of the hub's containers.
    pub resource_limits: BTreeMap<String, String>,
    /// Requests of the hub's containers.
    pub resource_requests: BTreeMap<String, String>,
    /// Whether bootstrap tokens may register clusters.
    pub use_bootstrap_token: bool,
    /// Whether the operator copies the ClusterManager's labels to what it creates.
    pub enable_sync_labels: Option<bool>,
    /// Whether the namespace is part of the plan.
    pub create_namespace: bool,
    /// Number of the operator's pods.
    pub replicas: Option<i32>,
}

/// A way in which clusters register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Client certificates.
    Csr,
    /// AWS IAM roles.
    AwsIrsa,
    /// Certificates over gRPC.
    Grpc,
}

impl Driver {
    /// The word in the ClusterManager, and the name of the member with its settings.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Csr => "csr",
            Self::AwsIrsa => "awsirsa",
            Self::Grpc => "grpc",
        }
    }
}

/// How the gRPC server is exposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrpcEndpoint {
    /// Under a host name that somebody routes to the Service.
    #[default]
    Hostname,
    /// By a Service of type LoadBalancer.
    LoadBalancer,
}

/// What the cluster holds.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The ClusterManager, if it is a hub already.
    pub cluster_manager: Option<Value>,
    /// The operator's Deployment.
    pub operator: Option<Value>,
    /// How many nodes there are, where that is known.
    pub nodes: Option<usize>,
}

/// The plan of an installation, and what is to be said about it.
#[derive(Clone, Debug)]
pub struct Installation {
    /// What is to be applied.
    pub plan: Plan,
    /// Name of the ClusterManager.
    pub hub: String,
    /// The release that the hub runs afterwards; none if its images do not tell.
    pub bundle: Option<Bundle>,
    /// Worth knowing.
    pub notes: Vec<String>,
    /// May bite.
    pub warnings: Vec<String>,
}

/// Plans an installation.
///
/// # Errors
/// A usage failure for flags that contradict each other or what is there.
pub fn plan(options: &Options, live: &Live) -> Result<Installation, Failure> {
    let (mut notes, mut warnings) = (Vec::new(), Vec::new());
    let hub = live.cluster_manager.as_ref().and_then(name_of).unwrap_or(operators::CLUSTER_MANAGER_OBJECT).to_owned();
    if options.replicas.is_some_and(|replicas| replicas < 1) {
        return Err(Failure::usage("--replicas must be at least 1: nothing else installs and repairs the hub"));
    }
    if let Some(config) = &options.pull_credentials {
        check_credentials(config)?;
    }
    let chosen = Images::of(options, live);
    if let Some(text) = chosen.kept_note() {
        notes.push(text);
    }
    let bundle = chosen.after();
    if let Some(bundle) = bundle.as_ref().filter(|bundle| bundle.is_vulnerable()) {
        warnings.push(format!(
            "{bundle} lacks the fix of CVE-2026-4740: a joined cluster can pass for another one; choose {} or newer",
            bundle::DEFAULT
        ));
    }

    if let (Some(after), Some(before)) = (&options.bundle, &chosen.installed)
        && after.is_before(before)
    {
        warnings
            .push(format!("{after} is older than {before}, which the hub runs; upstream does not test the way back"));
    }

    let images: BTreeMap<Component, String> =
        Component::ALL.into_iter().map(|component| (component, chosen.image(component))).collect();
    let cluster_manager = cluster_manager::body(&hub, live.cluster_manager.as_ref(), &images, options, &mut warnings)?;
    let mut manager = Manifest::of(&ocm_api::ClusterManager::new(&hub, Default::default()));
    *manager.body_mut() = cluster_manager;

    let mut first = vec![crds::cluster_manager_manifest()];
    if options.create_namespace {
        first.insert(0, Manifest::of(&operator::namespace()));
    }
    let mut second = vec![
        Manifest::of(&operator::service_account(operators::CLUSTER_MANAGER, true)),
        Manifest::of(&operator::service_account(bootstrap::SERVICE_ACCOUNT, false)),
        Manifest::of(&operator::pull_secret(options.pull_credentials.as_deref())),
        Manifest::of(&rbac::operator_role()),
        Manifest::of(&rbac::operator_binding()),
        Manifest::of(&rbac::bootstrap_role()),
        Manifest::of(&rbac::bootstrap_binding()),
    ];
    if options.use_bootstrap_token {
        second.push(Manifest::of(&rbac::token_binding()));
    }
    let third = vec![operator_manifest(options, live, &chosen), manager];
    let plan = Plan::new([
        Stage::new("the namespace and the definition of ClusterManager", first),
        Stage::new("accounts and roles", second),
        Stage::new("the operator and the ClusterManager", third),
    ]);
    Ok(Installation { plan, hub, bundle, notes, warnings })
}

fn name_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/name").and_then(Value::as_str)
}

/// The operator's Deployment: defaults, under what is there, under what was typed.
fn operator_manifest(options: &Options, live: &Live, images: &Images) -> Manifest {
    // The first run decides; afterwards the live number stands.
    let replicas = if live.nodes == Some(1) { 1 } else { 3 };
    let container = live.operator.as_ref().and_then(operator_container);
    let name = container.and_then(|container| container["name"].as_str()).unwrap_or(operator::CONTAINER);
    let image = images.image(Component::Operator);
    let mut manifest = Manifest::of(&operator::deployment(&image, &images.agent_image(), replicas, name));
    if let Some(live) = &live.operator {
        let body = reconcile::over(manifest.body(), live);
        *manifest.body_mut() = body;
    }
    let body = manifest.body_mut();
    if let Some(replicas) = options.replicas {
        body["spec"]["replicas"] = Value::from(replicas);
    }
    let containers = body.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        container["image"] = Value::from(image.as_str());
        for variable in container["env"].as_array_mut().into_iter().flatten() {
            if variable["name"] == operator::AGENT_IMAGE && variable.get("valueFrom").is_none() {
                variable["value"] = Value::from(images.agent_image());
            }
        }
        if let (Some(on), Some(arguments)) = (options.enable_sync_labels, container["args"].as_array_mut()) {
            // Said in both directions: the argument of an earlier run must not stay.
            let flag = "--enable-sync-labels";
            arguments.retain(|argument| argument.as_str().is_none_or(|text| text.split('=').next() != Some(flag)));
            arguments.push(Value::from(if on { flag.to_owned() } else { format!("{flag}=false") }));
        }
    }
    manifest
}

/// The container of a Deployment that runs the operator.
fn operator_container(deployment: &Value) -> Option<&Value> {
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    let named = containers.iter().find(|container| container["name"] == operator::CONTAINER);
    let runs = |container: &&Value| {
        container["image"].as_str().is_some_and(|image| image.contains(Component::Operator.image()))
    };
    named.or_else(|| containers.iter().find(runs)).or_else(|| containers.first())
}

pub(crate) fn check_credentials(config: &[u8]) -> Result<(), Failure> {
    let parsed: Result<Value, _> = serde_json::from_slice(config);
    match parsed {
        Ok(value) if value["auths"].is_object() => Ok(()),
        Ok(_) => Err(Failure::usage("the file of --image-pull-credential-file names no registries").hint(
            "it should be a Docker configuration such as {\"auths\": {\"registry.example\": {\"auth\": \"…\"}}}",
        )),
        Err(error) => Err(Failure::usage("the file of --image-pull-credential-file is not JSON").because(error)),
    }
}

/// Which image every component gets.
struct Images<'a> {
    options: &'a Options,
    live: &'a Live,
    /// The release that runs now.
    installed: Option<Bundle>,
}

impl<'a> Images<'a> {
    fn of(options: &'a Options, live: &'a Live) -> Self {
        let mut images = Self { options, live, installed: None };
        let order = [Component::Operator, Component::Registration, Component::Work, Component::Placement];
        images.installed =
            order.into_iter().filter_map(|component| images.running(component)).find_map(Bundle::of_image);
        images
    }

    /// The image that a component has now.
    fn running(&self, component: Component) -> Option<&'a str> {
        let image = match cluster_manager::image_member(component) {
            Some(member) => self.live.cluster_manager.as_ref()?.get("spec")?.get(member)?,
            None => operator_container(self.live.operator.as_ref()?)?.get("image")?,
        };
        image.as_str().filter(|image| !image.is_empty())
    }

    /// The release after this run, if it is known.
    fn after(&self) -> Option<Bundle> {
        let is_hub = self.live.cluster_manager.is_some() || self.live.operator.is_some();
        let planned = self.options.bundle.clone().or_else(|| self.installed.clone());
        planned.or_else(|| (!is_hub).then(Bundle::default))
    }

    fn image(&self, component: Component) -> String {
        match self.options.images.get(&component) {
            Some(typed) => typed.clone(),
            None => self.follow(component, self.running(component)),
        }
    }

    /// What becomes of an image that runs: it stays, but for the part that was typed.
    fn follow(&self, component: Component, running: Option<&str>) -> String {
        let Options { bundle, registry, .. } = self.options;
        let Some(running) = running else {
            let tag = self.after().unwrap_or_default();
            // A part that is missing on a hub comes from where the others come from.
            let registry = registry.clone().or_else(|| self.registry()).unwrap_or_else(|| REGISTRY.to_owned());
            return format!("{registry}/{}:{tag}", component.image());
        };
        let mut image = Image::parse(running);
        if let Some(registry) = registry {
            image.repository = format!("{registry}/{}", component.image());
        }
        if let Some(bundle) = bundle {
            (image.tag, image.digest) = (Some(bundle.tag().to_owned()), None);
        }
        image.to_string()
    }

    /// The registry of the images that run, where they are laid out as ours.
    fn registry(&self) -> Option<String> {
        let image = |component: Component| self.running(component).map(|text| (component, Image::parse(text)));
        let usual = |(component, image): &(Component, Image)| image.name() == component.image();
        let found = Component::ALL.into_iter().filter_map(image).find(usual)?;
        Some(found.1.registry().to_owned()).filter(|registry| !registry.is_empty())
    }

    /// The image of the agents that the hub imports clusters with: the operator's, unless somebody chose another.
    fn agent_image(&self) -> String {
        let running = self.live.operator.as_ref().and_then(operator_container).and_then(|container| {
            let variables = container["env"].as_array()?;
            variables.iter().find(|variable| variable["name"] == operator::AGENT_IMAGE)?["value"].as_str()
        });
        match running {
            Some(running) if Some(running) != self.running(Component::Operator) => {
                self.follow(Component::Operator, Some(running))
            }
            _ => self.image(Component::Operator),
        }
    }

    /// That an installed release stays, when nobody asked for another.
    fn kept_note(&self) -> Option<String> {
        if self.options.bundle.is_some() {
            return None;
        }
        let installed = self.installed.as_ref().filter(|installed| **installed != Bundle::default())?;
        let default = bundle::DEFAULT;
        Some(format!(
            "the hub runs {installed} and keeps it; --bundle-version {default} changes to the default release"
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(change: impl FnOnce(&mut Options)) -> Options {
        let mut options = Options { create_namespace: true, ..Options::default() };
        change(&mut options);
        options
    }

    fn gate(text: &str) -> (&'static Gate, bool) {
        feature_gates::parse(text).unwrap()
    }

    /// What a cluster holds after a plan: each object as it was sent, with the fields that we own noted down.
    fn installed(options: &Options, live: &Live) -> Live {
        let plan = plan(options, live).unwrap().plan;
        let find = |kind: &str| {
            let manifest = plan.objects().find(|manifest| manifest.kind() == kind).unwrap();
            let before = if kind == "Deployment" { &live.operator } else { &live.cluster_manager };
            match reconcile::reconcile(manifest, before.as_ref()) {
                reconcile::Reconciled::Apply(manifest) => Some(manifest.body().clone()),
                reconcile::Reconciled::Keep(_) => None,
            }
        };
        Live { operator: find("Deployment"), cluster_manager: find("ClusterManager"), nodes: live.nodes }
    }

    fn spec(live: &Live) -> &Value {
        &live.cluster_manager.as_ref().unwrap()["spec"]
    }

    fn operator_image(live: &Live) -> &str {
        operator_container(live.operator.as_ref().unwrap()).unwrap()["image"].as_str().unwrap()
    }

    #[test]
    fn a_new_hub() {
        let plan = plan(&options(|_| ()), &Live { nodes: Some(1), ..Live::default() }).unwrap();
        let names: Vec<String> = plan.plan.objects().map(Manifest::reference).collect();
        assert_eq!(
            names,
            [
                "namespace/open-cluster-management",
                "customresourcedefinition.apiextensions.k8s.io/clustermanagers.operator.open-cluster-management.io",
                "serviceaccount/cluster-manager",
                "serviceaccount/agent-registration-bootstrap",
                "secret/open-cluster-management-image-pull-credentials",
                "clusterrole.rbac.authorization.k8s.io/cluster-manager",
                "clusterrolebinding.rbac.authorization.k8s.io/cluster-manager",
                "clusterrole.rbac.authorization.k8s.io/open-cluster-management:bootstrap",
                "clusterrolebinding.rbac.authorization.k8s.io/open-cluster-management:bootstrap:agent-registration",
                "deployment.apps/cluster-manager",
                "clustermanager.operator.open-cluster-management.io/cluster-manager",
            ]
        );
        let manager = plan.plan.objects().last().unwrap().body();
        assert_eq!(manager["spec"]["registrationImagePullSpec"], "quay.io/open-cluster-management/registration:v1.3.1");
        let gates = manager["spec"]["registrationConfiguration"]["featureGates"].as_array().unwrap();
        assert_eq!(gates.len(), 2);
        assert_eq!(manager["spec"]["registrationConfiguration"]["registrationDrivers"], json!([{"authType": "csr"}]));
        assert_eq!(manager["metadata"], json!({"name": "cluster-manager"}));
        let deployment = plan.plan.objects().find(|manifest| manifest.kind() == "Deployment").unwrap().body();
        assert_eq!(deployment["spec"]["replicas"], 1);
    }

    #[test]
    fn a_second_run_without_flags_plans_what_is_there() {
        let first = installed(
            &options(|o| {
                o.bundle = Some(Bundle::parse("1.2.1").unwrap());
                o.registry = Some("registry.example/ocm".to_owned());
                o.feature_gates = vec![gate("ManagedClusterAutoApproval=true"), gate("ResourceCleanup=false")];
                o.registration_drivers = Some(vec![Driver::Csr, Driver::Grpc]);
                o.auto_approved_csr_identities = vec!["u".to_owned()];
                o.grpc_server = Some("hub.example:443".to_owned());
                o.replicas = Some(2);
                o.enable_sync_labels = Some(true);
            }),
            &Live::default(),
        );
        let second = installed(&options(|_| ()), &first);
        assert_eq!(second.operator, first.operator);
        // The exposed endpoint is ours; that an apply carries it is for `reconcile` to see.
        let mut expected = first.cluster_manager.clone().unwrap();
        expected["spec"].as_object_mut().unwrap().remove("serverConfiguration");
        assert_eq!(second.cluster_manager.unwrap(), expected);
    }

    #[test]
    fn an_installed_release_and_its_registry_stay_unless_typed() {
        let old = installed(
            &options(|o| {
                o.bundle = Some(Bundle::parse("1.2.1").unwrap());
                o.registry = Some("registry.example/ocm".to_owned());
            }),
            &Live::default(),
        );
        let again = plan(&options(|_| ()), &old).unwrap();
        assert!(again.notes[0].contains("v1.2.1"), "{:?}", again.notes);
        let newer = installed(&options(|o| o.bundle = Some(Bundle::default())), &old);
        assert_eq!(spec(&newer)["workImagePullSpec"], "registry.example/ocm/work:v1.3.1");
        let back = plan(&options(|o| o.bundle = Some(Bundle::parse("1.2.1").unwrap())), &newer).unwrap();
        assert!(back.warnings[0].contains("older than v1.3.1"), "{:?}", back.warnings);
        assert_eq!(operator_image(&newer), "registry.example/ocm/registration-operator:v1.3.1");
        let moved = installed(&options(|o| o.registry = Some("other.example".to_owned())), &old);
        assert_eq!(spec(&moved)["workImagePullSpec"], "other.example/work:v1.2.1");
        // Half an installation: what is missing follows what is there.
        let half = Live { cluster_manager: None, ..old };
        assert_eq!(spec(&installed(&options(|_| ()), &half))["workImagePullSpec"], "registry.example/ocm/work:v1.2.1");
    }

    #[test]
    fn single_images_and_vulnerable_releases() {
        let mut typed = options(|o| o.bundle = Some(Bundle::parse("1.2.0").unwrap()));
        typed.images.insert(Component::Work, "me/work:mine".to_owned());
        let planned = plan(&typed, &Live::default()).unwrap();
        assert!(planned.warnings[0].contains("CVE-2026-4740"), "{:?}", planned.warnings);
        let live = installed(&typed, &Live::default());
        assert_eq!(spec(&live)["workImagePullSpec"], "me/work:mine");
        assert_eq!(spec(&live)["placementImagePullSpec"], "quay.io/open-cluster-management/placement:v1.2.0");
    }

    #[test]
    fn what_another_tool_chose_stays() {
        let live = Live {
            operator: Some(json!({"spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"name": "theirs"}},
                "template": {"spec": {"nodeSelector": {"a": "b"}, "containers": [
                    {"name": "op", "image": "mirror.example/registration-operator@sha256:ab", "args": ["/registration-operator", "hub", "-v=4"]}]}},
            }})),
            cluster_manager: Some(json!({"metadata": {"name": "theirs"}, "spec": {
                "registrationImagePullSpec": "mirror.example/registration:v1.2.1",
                "registrationConfiguration": {
                    "autoApproveUsers": ["them"],
                    "featureGates": [{"feature": "Tomorrow", "mode": "Enable"}, {"feature": "ResourceCleanup", "mode": "Disable"}],
                    "registrationDrivers": [{"authType": "csr", "csr": {"autoApprovedIdentities": ["x"]}}]},
                "workConfiguration": {"workDriver": "grpc"},
            }})),
            nodes: Some(5),
        };
        let planned = plan(&options(|_| ()), &live).unwrap();
        assert_eq!(planned.hub, "theirs");
        let after = installed(&options(|_| ()), &live);
        let operator = after.operator.as_ref().unwrap();
        assert_eq!(operator["spec"]["replicas"], 2);
        assert_eq!(operator["spec"]["selector"], json!({"matchLabels": {"name": "theirs"}}));
        let containers = operator.pointer("/spec/template/spec/containers").and_then(Value::as_array).unwrap();
        assert_eq!(containers.len(), 1);
        assert_eq!(containers[0]["name"], "op");
        assert_eq!(containers[0]["image"], "mirror.example/registration-operator@sha256:ab");
        assert_eq!(containers[0]["args"], json!(["/registration-operator", "hub", "-v=4"]));
        let registration = &spec(&after)["registrationConfiguration"];
        assert_eq!(
            registration["featureGates"],
            json!([{"feature": "Tomorrow", "mode": "Enable"}, {"feature": "ResourceCleanup", "mode": "Disable"},
                {"feature": "DefaultClusterSet", "mode": "Enable"}])
        );
        assert_eq!(
            registration["registrationDrivers"],
            json!([{"authType": "csr", "csr": {"autoApprovedIdentities": ["x"]}}])
        );
        assert_eq!(spec(&after)["workConfiguration"], json!({"workDriver": "grpc"}));
        assert_eq!(spec(&after)["workImagePullSpec"], "mirror.example/work:v1.2.1");
    }

    #[test]
    fn flags_need_each_other() {
        let refused = |change: fn(&mut Options)| plan(&options(change), &Live::default()).unwrap_err().message;
        let csr = |o: &mut Options| o.auto_approved_csr_identities = vec!["u".to_owned()];
        assert!(refused(csr).contains(feature_gates::AUTO_APPROVAL));
        assert!(refused(|o| o.registration_drivers = Some(vec![Driver::Grpc])).contains("--grpc-server"));
        assert!(refused(|o| o.grpc_server = Some("h".to_owned())).contains("driver grpc"));
        assert!(refused(|o| o.registration_drivers = Some(vec![Driver::AwsIrsa])).contains("--hub-cluster-arn"));
        assert!(refused(|o| o.hub_cluster_arn = Some("arn".to_owned())).contains("awsirsa"));
        assert!(refused(|o| o.pull_credentials = Some(b"{}".to_vec())).contains("no registries"));
        assert!(refused(|o| o.replicas = Some(0)).contains("--replicas"));
        assert!(
            refused(|o| o.resource_limits = [("cpu".to_owned(), "1".to_owned())].into()).contains("--resource-limits")
        );
        let above = |o: &mut Options| {
            o.resource_qos_class = Some(ResourceQosClass::ResourceRequirement);
            o.resource_limits = [("cpu".to_owned(), "100m".to_owned())].into();
            o.resource_requests = [("cpu".to_owned(), "1".to_owned())].into();
        };
        assert!(refused(above).contains("above its limit"));
    }

    #[test]
    fn auto_approval_means_our_tokens_unless_somebody_is_named() {
        let on =
            installed(&options(|o| o.feature_gates = vec![gate("ManagedClusterAutoApproval=true")]), &Live::default());
        let registration = &spec(&on)["registrationConfiguration"];
        assert_eq!(
            registration["autoApproveUsers"],
            json!(["system:serviceaccount:open-cluster-management:agent-registration-bootstrap"])
        );
        assert_eq!(registration["featureGates"].as_array().unwrap().len(), 3);
    }
}
