//! From what was typed and what is there to the objects of a hub.
//!
//! Three layers make every object, the upper one wins: our defaults, what the cluster holds, what was typed. So a
//! second run without flags changes nothing, and a hub that another tool installed keeps what it was given.

use std::collections::BTreeMap;

use ocm_api::names::{bootstrap, operators};
use ocm_api::{Manifest, crds};
use serde_json::Value;

use super::images::{Images, SERVER};
use super::{HubMode, Live, Options, OptionsError, cluster_manager, deployment, expose, hosted, rbac};
use crate::order::Collect as _;
use crate::release::{self, Bundle, Component};
use crate::{Plan, Stage, images, operator};

/// The plan of an installation, and what is to be said about it.
#[derive(Clone, Debug)]
pub struct Installation {
    /// What is to be applied where the hub's pods run.
    pub plan: Plan,
    /// What is to be applied on the hub itself, where that is another cluster.
    pub on_hub: Option<Plan>,
    /// What of ours has led agents to the gRPC server, and leads none any more; it may be there.
    pub unneeded: Vec<Manifest>,
    /// Name of the ClusterManager.
    pub hub: String,
    /// The release that the hub runs afterwards; none if its images name none, or several.
    pub bundle: Option<Bundle>,
    /// Worth knowing.
    pub notes: Vec<String>,
    /// May bite.
    pub warnings: Vec<String>,
}

/// Checks options before any cluster is looked at.
///
/// # Errors
/// Options that contradict each other, whatever is there.
pub fn check(options: &Options) -> Result<(), OptionsError> {
    if options.replicas.is_some_and(|replicas| replicas < 1) {
        return Err(OptionsError::NoReplicas);
    }
    hosted::check(options)?;
    cluster_manager::check(options)
}

/// Plans an installation.
///
/// # Errors
/// Options that contradict each other or what is there.
pub fn plan(options: &Options, live: &Live) -> Result<Installation, OptionsError> {
    check(options)?;
    let (mut notes, mut warnings) = (Vec::new(), Vec::new());
    let is_hosted = hosted::mode(options, live)? == HubMode::Hosted;
    let usual = if is_hosted { hosted::NAME } else { operators::CLUSTER_MANAGER_OBJECT };
    let hub = live.cluster_manager.as_ref().and_then(name_of).unwrap_or(usual).to_owned();
    let chosen = Images::of(options, live);
    if let Some(text) = chosen.kept_note() {
        notes.push(text);
    }
    let running = chosen.parts();
    let planned: BTreeMap<Component, String> =
        Component::ALL.into_iter().map(|component| (component, chosen.image(component))).collect_map();
    let server = chosen.server();
    let releases = planned.values().chain(&server).filter_map(|image| Bundle::of_image(image));
    if let Some(bundle) = releases.chain(options.bundle.clone()).find(Bundle::is_vulnerable) {
        warnings.push(format!(
            "{bundle} lacks the fix of CVE-2026-4740: a joined cluster can pass for another one; choose {} or newer",
            release::DEFAULT
        ));
    }

    if let (Some(after), Some(before)) = (&options.bundle, running.newest())
        && after.is_before(&before)
    {
        warnings.push(format!(
            "{after} is older than {before}, which the hub runs; this project does not test the way back with binaries \
                 of older releases"
        ));
    }

    let of_server = chosen.running_server().zip(server.as_deref()).map(|(running, image)| (SERVER, running, image));
    warnings.extend(images::unpinned(
        planned
            .iter()
            .filter_map(|(component, image)| Some((component.image(), chosen.running(*component)?, image.as_str())))
            .chain(of_server),
    ));
    let images = (&planned, server.as_deref());
    let mut cluster_manager =
        cluster_manager::body(&hub, live.cluster_manager.as_ref(), images, options, &mut warnings)?;
    if is_hosted {
        hosted::lay(
            &mut cluster_manager["spec"],
            live.cluster_manager.as_ref(),
            options,
            chosen.after().as_ref(),
            &mut warnings,
        )?;
    }
    let port = expose::port(options, live.cluster_manager.as_ref())?;
    let before = live.cluster_manager.as_ref();
    let exposed = expose::objects(&hub, options, (&cluster_manager, before), port);
    let mut unneeded = match before.is_some() && !is_hosted {
        true => expose::unneeded(&hub, &cluster_manager, before, options.route_version.as_deref()),
        false => Vec::new(),
    };
    unneeded.retain(|one| exposed.iter().flatten().all(|planned| planned.reference() != one.reference()));
    let mut manager = Manifest::of(&ocm_api::ClusterManager::new(&hub, Default::default()));
    *manager.body_mut() = cluster_manager;

    let mut first = vec![crds::cluster_manager_manifest()];
    if options.create_namespace {
        first.insert(0, Manifest::of(&operator::namespace()));
    }
    let mut second = vec![Manifest::of(&operator::service_account(operators::CLUSTER_MANAGER, true))];
    if !is_hosted {
        second.push(Manifest::of(&operator::service_account(bootstrap::SERVICE_ACCOUNT, false)));
    }
    second.push(Manifest::of(&operator::pull_secret(options.pull_credentials.as_ref())));
    second.extend(rbac::operator_rights());
    if is_hosted {
        first.push(hosted::space(&hub));
        second.extend(options.hosting.kubeconfig.as_ref().map(|kubeconfig| hosted::secret(&hub, kubeconfig)));
        if let Some(exposure) = options.hosting.expose {
            second.extend(hosted::services(&hub, exposure, manager.body(), chosen.after().as_ref()));
        }
    } else {
        second.extend(rbac::bootstrap_rights());
    }
    if let Some([space, way]) = exposed {
        first.push(space);
        second.push(way);
    }
    if options.use_bootstrap_token && !is_hosted {
        second.push(Manifest::of(&rbac::token_binding()));
    }
    let third = vec![deployment::manifest(options, live, &chosen), manager];
    let plan = Plan::new([
        Stage::new("the namespace and the definition of ClusterManager", first),
        Stage::new("accounts and roles", second),
        Stage::new("the operator and the ClusterManager", third),
    ]);
    let on_hub = is_hosted.then(|| hosted::on_hub(options));
    let bundle = chosen.after().filter(|_| options.bundle.is_some() || !running.is_mixed());
    Ok(Installation { plan, on_hub, unneeded, hub, bundle, notes, warnings })
}

fn name_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/name").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::gates::Gate;
    use crate::images::Digests;
    use crate::install::gateway::Gateway;
    use crate::install::{Driver, DriverSetting, GrpcExposure, feature_gates};
    use crate::reconcile;
    use crate::resources::{self, Amounts};
    use crate::scheduling::{Scheduling, toleration};
    use crate::values::{Kind, Values};
    use ocm_api::operator::ResourceQosClass;

    fn options(change: impl FnOnce(&mut Options)) -> Options {
        let mut options = Options { create_namespace: true, ..Options::default() };
        change(&mut options);
        options
    }

    fn gate(text: &str) -> (&'static Gate, bool) {
        crate::gates::parse(text, feature_gates::GATES).unwrap()
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
        operator::container(live.operator.as_ref().unwrap()).unwrap()["image"].as_str().unwrap()
    }

    #[test]
    fn what_contradicts_itself_is_refused_whatever_is_there() {
        use OptionsError as Error;
        let refused = |change: &dyn Fn(&mut Options)| check(&options(change)).unwrap_err();
        assert_eq!(refused(&|options| options.replicas = Some(0)), Error::NoReplicas);
        assert_eq!(refused(&|options| options.grpc_gateway = Gateway::parse("infra/public")), Error::Gateway);
        let exposed = |options: &mut Options| {
            options.registration_drivers = Some(vec![Driver::Csr]);
            options.expose_grpc = Some(GrpcExposure::Gateway);
        };
        assert_eq!(refused(&exposed), Error::DriverIsOff(Driver::Grpc, DriverSetting::Exposure));
        let at_address = |options: &mut Options| {
            options.expose_grpc = Some(GrpcExposure::Gateway);
            options.grpc_server = Some("192.0.2.1".to_owned());
        };
        assert_eq!(refused(&at_address), Error::NotAName("192.0.2.1".to_owned()));
        let hosted = |options: &mut Options| {
            options.hosting.mode = Some(HubMode::Hosted);
            options.grpc_server = Some("hub.example".to_owned());
        };
        assert_eq!(refused(&hosted), Error::HostedGrpc);
        // The hub that is there may have the driver, and note a Gateway.
        let may_be = options(|options| options.expose_grpc = Some(GrpcExposure::Gateway));
        assert_eq!(check(&may_be), Ok(()));
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
    fn parts_of_several_releases_are_told_as_such() {
        let at = |operator: &str, others: &str| {
            let of = |version: &str| {
                installed(
                    &options(|o| o.bundle = Bundle::parse(version).ok()),
                    &Live { nodes: None, ..Live::default() },
                )
            };
            Live { operator: of(operator).operator, ..of(others) }
        };
        // What an upgrade leaves that was killed behind the operator.
        let killed = at("1.3.1", "1.2.0");
        let again = plan(&options(|_| ()), &killed).unwrap();
        assert_eq!(again.bundle, None);
        assert!(again.notes[0].contains("registration-operator v1.3.1, registration v1.2.0"), "{:?}", again.notes);
        assert!(again.notes[0].ends_with("kubectl ocm upgrade hub"), "{:?}", again.notes);
        assert!(
            again.warnings.iter().any(|warning| warning.starts_with("v1.2.0 lacks the fix")),
            "{:?}",
            again.warnings
        );
        let after = installed(&options(|_| ()), &killed);
        assert!(operator_image(&after).ends_with(":v1.3.1"), "each keeps its own");
        assert!(spec(&after)["workImagePullSpec"].as_str().unwrap().ends_with(":v1.2.0"), "each keeps its own");
        // Whatever is older than one of them is older.
        let middle = plan(&options(|o| o.bundle = Bundle::parse("1.2.1").ok()), &at("1.2.1", "1.3.1")).unwrap();
        assert!(middle.warnings[0].contains("older than v1.3.1"), "{:?}", middle.warnings);
        assert_eq!(middle.bundle, Bundle::parse("1.2.1").ok());
        let one = plan(&options(|_| ()), &at("1.2.1", "1.2.1")).unwrap();
        assert_eq!(one.bundle, Bundle::parse("1.2.1").ok());
    }

    fn digests(letter: &str) -> Digests {
        let digest = format!("sha256:{}", letter.repeat(64));
        Digests::read(&Component::ALL.map(|component| (component.image(), digest.clone())).into_iter().collect())
            .unwrap()
    }

    #[test]
    fn images_are_pinned_by_digests_until_another_release_comes() {
        let pinned = installed(
            &options(|o| (o.bundle, o.digests) = (Bundle::parse("1.2.1").ok(), digests("a"))),
            &Live::default(),
        );
        let image = format!("quay.io/open-cluster-management/work:v1.2.1@sha256:{}", "a".repeat(64));
        assert_eq!(spec(&pinned)["workImagePullSpec"], image);
        assert!(operator_image(&pinned).ends_with(&"a".repeat(64)), "{}", operator_image(&pinned));
        // They stay where nothing else is said, also in another registry.
        assert_eq!(spec(&installed(&options(|_| ()), &pinned))["workImagePullSpec"], image);
        let moved = installed(&options(|o| o.registry = Some("mirror.example".to_owned())), &pinned);
        let moved = spec(&moved)["workImagePullSpec"].as_str().unwrap().to_owned();
        assert_eq!(moved, format!("mirror.example/work:v1.2.1@sha256:{}", "a".repeat(64)));
        let newer = options(|o| o.bundle = Some(Bundle::default()));
        let told = plan(&newer, &pinned).unwrap().warnings;
        assert!(told.iter().any(|warning| warning.starts_with("pinned by a digest until now")), "{told:?}");
        assert_eq!(
            spec(&installed(&newer, &pinned))["workImagePullSpec"],
            "quay.io/open-cluster-management/work:v1.3.1"
        );
        // An image that is typed says all of it.
        let mut typed = options(|o| o.digests = digests("b"));
        typed.images.insert(Component::Work, "me/work:mine".to_owned());
        assert_eq!(spec(&installed(&typed, &pinned))["workImagePullSpec"], "me/work:mine");
    }

    #[test]
    fn a_grpc_server_with_an_image_of_its_own_is_pinned_like_the_others() {
        let with = |image: &str| {
            let mut live = installed(&options(|_| ()), &Live::default());
            live.cluster_manager.as_mut().unwrap()["spec"]["serverConfiguration"] = json!({"imagePullSpec": image});
            live
        };
        let server = |live: &Live| spec(live)["serverConfiguration"]["imagePullSpec"].clone();
        let (own, pin) = ("mirror.example/registration:v1.3.1", options(|o| o.digests = digests("a")));
        let expected = format!("{own}@sha256:{}", "a".repeat(64));
        let pinned = installed(&pin, &with(own));
        assert_eq!(server(&pinned), expected);
        assert_eq!(server(&installed(&options(|_| ()), &pinned)), expected);
        let older = options(|o| o.bundle = Bundle::parse("1.2.1").ok());
        assert_eq!(server(&installed(&older, &pinned)), "mirror.example/registration:v1.2.1");
        let told = plan(&older, &pinned).unwrap().warnings;
        let is_told =
            |warning: &String| warning.starts_with("pinned by a digest until now") && warning.contains(SERVER);
        assert!(told.iter().any(is_told), "{told:?}");
        // A digest of ours is not one of another program. Without an image of its own it runs that of registration.
        assert_eq!(server(&installed(&pin, &with("mirror.example/grpc:v1.3.1"))), "mirror.example/grpc:v1.3.1");
        assert_eq!(server(&installed(&pin, &Live::default())), Value::Null);
        let said = values(json!({"serverConfiguration": {"imagePullSpec": own}}));
        let both = options(|o| (o.digests, o.values) = (digests("a"), said));
        assert_eq!(server(&installed(&both, &Live::default())), expected);
    }

    fn values(value: Value) -> Values {
        Values::read(value, Kind::ClusterManager).unwrap()
    }

    #[test]
    fn a_gate_of_any_part_is_turned_off_again() {
        let all = feature_gates::GATES.iter().filter(|gate| gate.name != feature_gates::AUTO_APPROVAL);
        for gate in all {
            let typed = |on: bool| options(|o| o.feature_gates = vec![(gate, on)]);
            let mode = |live: &Live| {
                let gates = spec(live)[gate.part.member()]["featureGates"].as_array().cloned().unwrap_or_default();
                let said: Vec<Value> = gates.into_iter().filter(|said| said["feature"] == gate.name).collect();
                assert_eq!(said.len(), 1, "{}", gate.name);
                said[0]["mode"].clone()
            };
            let on = installed(&typed(true), &Live::default());
            assert_eq!(mode(&on), "Enable", "{}", gate.name);
            assert_eq!(mode(&installed(&typed(false), &on)), "Disable", "{}", gate.name);
            assert_eq!(mode(&installed(&typed(false), &Live::default())), "Disable", "{}", gate.name);
        }
    }

    #[test]
    fn values_lie_over_what_is_there_and_under_what_was_typed() {
        let live = installed(
            &options(|o| {
                o.feature_gates = vec![gate("ClusterProfile=true")];
                o.registration_drivers = Some(vec![Driver::Csr, Driver::Grpc]);
                o.grpc_server = Some("hub.example".to_owned());
            }),
            &Live::default(),
        );
        let said = values(json!({
            "workImagePullSpec": "mirror.example/work:v1.2.1",
            "nodePlacement": {"nodeSelector": {"pool": "infra"}},
            "registrationConfiguration": {
                "featureGates": [{"feature": "ResourceCleanup", "mode": "Disable"}],
                "registrationDrivers": [{"authType": "csr", "csr": {"autoApprovedIdentities": ["u"]}}],
            },
        }));
        let planned = plan(&options(|o| o.values = said.clone()), &live).unwrap();
        assert!(
            planned.warnings.iter().any(|warning| warning.contains("driver grpc is not in the list")),
            "{planned:?}"
        );
        let after = installed(&options(|o| o.values = said.clone()), &live);
        assert_eq!(spec(&after)["workImagePullSpec"], "mirror.example/work:v1.2.1");
        assert_eq!(spec(&after)["placementImagePullSpec"], "quay.io/open-cluster-management/placement:v1.3.1");
        assert_eq!(spec(&after)["nodePlacement"], json!({"nodeSelector": {"pool": "infra"}}));
        let registration = &spec(&after)["registrationConfiguration"];
        assert_eq!(
            registration["registrationDrivers"],
            json!([{"authType": "csr", "csr": {"autoApprovedIdentities": ["u"]}}])
        );
        let mode = |name: &str| {
            let gates = registration["featureGates"].as_array().unwrap();
            gates.iter().find(|gate| gate["feature"] == name).map(|gate| gate["mode"].clone())
        };
        assert_eq!(mode("ResourceCleanup"), Some(json!("Disable")));
        assert_eq!((mode("DefaultClusterSet"), mode("ClusterProfile")), (Some(json!("Enable")), Some(json!("Enable"))));

        // Flags win, and what they win over is told.
        let typed = options(|o| {
            o.values = said;
            o.bundle = Some(Bundle::default());
            o.feature_gates = vec![gate("ResourceCleanup=true")];
        });
        let told = plan(&typed, &live).unwrap().warnings;
        let mut told: Vec<&str> =
            told.iter().filter_map(|warning| warning.strip_suffix(" stands in its place")).collect();
        told.sort_unstable();
        assert_eq!(
            told,
            [
                "registrationConfiguration.featureGates[ResourceCleanup].mode of the values has no effect: what was typed",
                "workImagePullSpec of the values has no effect: what was typed",
            ]
        );
        let after = installed(&typed, &live);
        assert_eq!(spec(&after)["workImagePullSpec"], "mirror.example/work:v1.3.1");
    }

    #[test]
    fn users_whom_values_do_not_name_stay_and_that_is_told() {
        let users = |names: Value| values(json!({"registrationConfiguration": {"autoApproveUsers": names}}));
        let live = installed(&options(|o| o.values = users(json!(["one", "two"]))), &Live::default());
        let told = |names: Value| plan(&options(|o| o.values = users(names)), &live).unwrap().warnings;
        let warnings = told(json!(["two"]));
        assert!(warnings.iter().any(|told| told.contains("takes nobody out: one stay there")), "{warnings:?}");
        let warnings = told(json!(["one", "two", "three"]));
        assert!(!warnings.iter().any(|told| told.contains("takes nobody out")), "{warnings:?}");
    }

    #[test]
    fn values_alone_expose_the_grpc_server() {
        let exposure = json!([{"protocol": "grpc", "grpc": {"type": "hostname", "hostname": {"host": "h.example"}}}]);
        let drivers = json!({"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]});
        let said =
            json!({"registrationConfiguration": drivers, "serverConfiguration": {"endpointsExposure": exposure}});
        let hub = installed(&options(|o| o.values = values(said)), &Live::default());
        assert_eq!(spec(&hub)["serverConfiguration"]["endpointsExposure"], exposure);
        let without = options(|o| o.values = values(json!({"registrationConfiguration": drivers})));
        assert_eq!(plan(&without, &Live::default()).unwrap_err(), OptionsError::NoGrpcAddress);
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
    fn options_need_each_other() {
        use DriverSetting::{Address, AutoApproved, HubArn};
        use OptionsError as Error;
        let refused = |change: fn(&mut Options)| plan(&options(change), &Live::default()).unwrap_err();
        let identities = || vec!["u".to_owned()];
        assert_eq!(refused(|o| o.auto_approved_csr_identities = vec!["u".to_owned()]), Error::AutoApprovalIsOff);
        let drivers = options(|o| {
            o.feature_gates = vec![gate("ManagedClusterAutoApproval=true")];
            o.auto_approved_grpc_identities = identities();
        });
        let error = plan(&drivers, &Live::default()).unwrap_err();
        assert_eq!(error, Error::DriverIsOff(Driver::Grpc, AutoApproved));
        assert_eq!(refused(|o| o.registration_drivers = Some(vec![Driver::Grpc])), Error::NoGrpcAddress);
        let error = refused(|o| o.grpc_server = Some("h".to_owned()));
        assert_eq!(error, Error::DriverIsOff(Driver::Grpc, Address));
        assert_eq!(refused(|o| o.registration_drivers = Some(vec![Driver::AwsIrsa])), Error::NoHubArn);
        let error = refused(|o| o.hub_cluster_arn = Some("arn".to_owned()));
        assert_eq!(error, Error::DriverIsOff(Driver::AwsIrsa, HubArn));
        assert_eq!(refused(|o| o.replicas = Some(0)), Error::NoReplicas);
    }

    #[test]
    fn identities_that_the_hub_would_split_or_cannot_write_are_refused() {
        const USER: &str = "CN=alice,O=ops";
        let refused = |change: &dyn Fn(&mut Options)| {
            let change = |o: &mut Options| {
                o.feature_gates = vec![gate("ManagedClusterAutoApproval=true")];
                o.registration_drivers = Some(vec![Driver::Csr, Driver::AwsIrsa, Driver::Grpc]);
                (o.grpc_server, o.hub_cluster_arn) = (Some("h".to_owned()), Some("arn".to_owned()));
                change(o);
            };
            plan(&options(change), &Live::default()).err()
        };
        let split = Some(OptionsError::CommaInIdentity(USER.to_owned()));
        let list = || vec!["bob".to_owned(), USER.to_owned()];
        assert_eq!(refused(&|o| o.auto_approved_csr_identities = list()), split);
        assert_eq!(refused(&|o| o.auto_approved_arn_patterns = list()), split);
        assert_eq!(refused(&|o| o.auto_approved_grpc_identities = list()), split);
        let said = |registration: Value| values(json!({"registrationConfiguration": registration}));
        assert_eq!(refused(&|o| o.values = said(json!({"autoApproveUsers": list()}))), split);
        let driver = json!({"authType": "csr", "csr": {"autoApprovedIdentities": list()}});
        assert_eq!(refused(&|o| o.values = said(json!({"registrationDrivers": [driver]}))), split);
        assert_eq!(refused(&|o| o.auto_approved_csr_identities = vec!["bob".to_owned()]), None);
        for text in ["ali\"ce", r"arn:aws:eks:eu-west-1:\d+:cluster/.*", "ali\nce"] {
            let unwritable = Some(OptionsError::QuoteInIdentity(text.to_owned()));
            assert_eq!(refused(&|o| o.auto_approved_arn_patterns = vec![text.to_owned()]), unwritable);
            assert_eq!(refused(&|o| o.values = said(json!({"autoApproveUsers": [text]}))), unwritable);
        }
        assert_eq!(
            refused(&|o| o.auto_approved_arn_patterns = vec!["arn:aws:eks:.*:[0-9]+:cluster/.*".to_owned()]),
            None
        );
    }

    #[test]
    fn the_usual_arn_of_a_hub_is_below_what_it_has_and_what_values_say() {
        const OTHER: &str = "arn:aws:eks:us-west-2:111111111111:cluster/hub";
        let usual = |o: &mut Options| o.usual_hub_arn = Some("usual".to_owned());
        let typed = |o: &mut Options| {
            usual(o);
            o.registration_drivers = Some(vec![Driver::Csr, Driver::AwsIrsa]);
        };
        let arn = |live: &Live| {
            let drivers = spec(live)["registrationConfiguration"]["registrationDrivers"].as_array().unwrap();
            let aws = drivers.iter().find(|driver| driver["authType"] == "awsirsa");
            aws.map(|driver| driver["awsirsa"]["hubClusterArn"].clone())
        };
        assert_eq!(arn(&installed(&options(typed), &Live::default())), Some(json!("usual")));
        assert_eq!(arn(&installed(&options(usual), &Live::default())), None, "there is no such driver");
        let live = installed(
            &options(|o| {
                typed(o);
                o.hub_cluster_arn = Some("theirs".to_owned());
            }),
            &Live::default(),
        );
        assert_eq!(arn(&live), Some(json!("theirs")));
        assert_eq!(arn(&installed(&options(typed), &live)), Some(json!("theirs")));
        assert_eq!(arn(&installed(&options(usual), &live)), Some(json!("theirs")));
        let drivers = |aws: Value| values(json!({"registrationConfiguration": {"registrationDrivers": [aws]}}));
        let said = drivers(json!({"authType": "awsirsa", "awsirsa": {"hubClusterArn": OTHER}}));
        let with = |said: Values| {
            options(|o| {
                usual(o);
                o.values = said;
            })
        };
        assert_eq!(arn(&installed(&with(said), &Live::default())), Some(json!(OTHER)));
        let bare = drivers(json!({"authType": "awsirsa"}));
        assert_eq!(arn(&installed(&with(bare), &Live::default())), Some(json!("usual")));
    }

    #[test]
    fn where_pods_run_and_what_they_need_is_typed_and_stays() {
        let scheduling = Scheduling {
            node_selector: [("pool".to_owned(), "infra".to_owned())].into(),
            tolerations: vec![toleration("infra:NoSchedule").unwrap()],
            priority_class: None,
        };
        let small = resources::requirement(Some(ResourceQosClass::BestEffort), &Amounts::new(), &Amounts::new());
        let first = installed(
            &options(|o| (o.scheduling, o.resources) = (scheduling, small.unwrap())),
            &Live { nodes: Some(3), ..Live::default() },
        );
        let tolerations = json!([{"key": "infra", "operator": "Exists", "effect": "NoSchedule"}]);
        let placement = json!({"nodeSelector": {"pool": "infra"}, "tolerations": tolerations});
        assert_eq!(spec(&first)["nodePlacement"], placement);
        assert_eq!(spec(&first)["resourceRequirement"], json!({"type": "BestEffort"}));
        let pod = |live: &Live| live.operator.as_ref().unwrap().pointer("/spec/template/spec").unwrap().clone();
        assert_eq!(
            (&pod(&first)["nodeSelector"], &pod(&first)["tolerations"]),
            (&placement["nodeSelector"], &tolerations)
        );
        // What is not typed is not mentioned, and an apply leaves it as it is.
        let second = installed(&options(|_| ()), &first);
        assert!(spec(&second).get("nodePlacement").is_none() && pod(&second).get("nodeSelector").is_none());
        assert_eq!(spec(&second)["resourceRequirement"], json!({"type": "BestEffort"}));
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
