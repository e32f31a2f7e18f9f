//! From what was typed and what is there to the objects of a join.
//!
//! Three layers make every object, the upper one wins: our defaults, what the cluster holds, what was typed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use ocm_api::names::{annotations, namespaces, operators};
use ocm_api::operator::{
    AddOnRegistrationDriver, FeatureGate, HubApiServerHostAlias, KlusterletDeployOption, KlusterletMode,
    KlusterletSpec, RegistrationConfiguration, RegistrationDriver, ResourceRequirement, ServerUrl,
};
use ocm_api::{Klusterlet, Manifest, crds};
use serde_json::{Value, json};

use super::bootstrap_secrets::{bootstrap_secret, external_secret};
use super::fallback::{self, Hubs};
use super::gates::{GATES, set_gate};
use super::{hosted, rbac};
use crate::gates::{Gate, Part};
use crate::images::Digests;
use crate::install::deployment::sync_labels;
use crate::kubeconfig::Bootstrap;
use crate::operator::{Operator, PullCredentials};
use crate::order::Collect as _;
use crate::release::{self, Bundle, Component, Image};
use crate::scheduling::Scheduling;
use crate::values::Values;
use crate::{Plan, Stage, operator, reconcile};

/// How long an agent's certificate lives unless something else is said: a year.
pub const DEFAULT_CERTIFICATE_SECONDS: i32 = 31_536_000;

/// The fields of a Klusterlet that name images, with whose they are.
pub(super) const IMAGES: [(&str, Component); 3] = [
    ("registrationImagePullSpec", Component::Registration),
    ("workImagePullSpec", Component::Work),
    ("imagePullSpec", Component::Operator),
];

/// What a join is to come to. Whatever is empty was not said.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name of the managed cluster.
    pub name: String,
    /// On which cluster and in how many Deployments the agent runs.
    pub mode: Option<KlusterletMode>,
    /// The release.
    pub bundle: Option<Bundle>,
    /// Where all images are.
    pub registry: Option<String>,
    /// Digests of the images.
    pub digests: Digests,
    /// A part of the spec of the Klusterlet, below what was typed. Its mode and its driver are typed, too, where no flag says them.
    pub values: Values,
    /// Registry credentials, a Docker configuration file.
    pub pull_credentials: Option<PullCredentials>,
    /// Whether the operator's namespace is part of the plan.
    pub create_namespace: bool,
    /// Feature gates.
    pub feature_gates: Vec<(&'static Gate, bool)>,
    /// Life of the agent's certificate.
    pub certificate_life: Option<CertificateLife>,
    /// Annotations that the agent gives its ManagedCluster when it registers. It passes only those with a prefix, which
    /// the plan adds where it is missing.
    pub annotations: BTreeMap<String, String>,
    /// Addresses of the managed cluster's API server that the hub should know.
    pub server_urls: Vec<String>,
    /// CPU and memory of the agent's pods.
    pub resources: Option<ResourceRequirement>,
    /// On which nodes the agent's pods and those of its operator run.
    pub scheduling: Scheduling,
    /// Whether the operator copies the Klusterlet's labels to what it creates.
    pub enable_sync_labels: Option<bool>,
    /// How the agent proves its identity to the hub.
    pub driver: Option<RegistrationDriver>,
    /// How add-ons prove theirs.
    pub addon_driver: Option<AddOnRegistrationDriver>,
    /// A hosts entry for the hub in the agent's pods.
    pub host_alias: Option<HubApiServerHostAlias>,
}

impl Settings {
    /// Whether the agents run on another cluster than the one that they manage.
    pub fn is_hosted(&self) -> bool {
        self.mode.as_ref().is_some_and(KlusterletMode::is_hosted)
    }

    /// Whether something was said of the operator's own pods.
    pub fn is_about_operator(&self) -> bool {
        self.enable_sync_labels.is_some() || self.host_alias.is_some() || self.scheduling != Scheduling::default()
    }
}

/// How long an agent's certificate is to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateLife(i32);

impl CertificateLife {
    /// The shortest life in seconds that the operator lets through, apart from 0 for the signer's own.
    pub const SHORTEST: i32 = 3600;

    /// So many seconds, or 0 for the signer's own choice; none for a life that is too short.
    pub const fn seconds(seconds: i32) -> Option<Self> {
        if seconds == 0 || seconds >= Self::SHORTEST { Some(Self(seconds)) } else { None }
    }
}

/// What the cluster holds.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The Klusterlet, if it has one.
    pub klusterlet: Option<Value>,
    /// The operator's Deployment.
    pub operator: Option<Value>,
    /// The address that the managed cluster publishes for others, if it is one that others can reach.
    pub published: Option<String>,
    /// Whether the operator serves other Klusterlets, and stays as it is for the hosted one that comes.
    pub is_shared: bool,
}

/// The kubeconfigs that a plan gives agent and operator. One that is missing stays as it is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kubeconfigs<'a> {
    /// That which the agent registers with.
    pub hub: Option<&'a Bootstrap>,
    /// That of a hosted cluster, for the operator.
    pub managed: Option<&'a Bootstrap>,
    /// Those of further hubs, with the list of all hubs.
    pub hubs: Option<&'a Hubs>,
}

/// Plans a join, on the cluster where the agents run.
///
/// The Klusterlet is the last object: where it is there, everything before it was there too.
pub fn plan(settings: &Settings, kubeconfigs: Kubeconfigs<'_>, live: &Live) -> Plan {
    let agent = agent_namespace(settings, live);
    let mut secrets: Vec<Manifest> = kubeconfigs.hub.map(|hub| bootstrap_secret(&agent, hub)).into_iter().collect();
    secrets.extend(kubeconfigs.managed.map(|managed| external_secret(&agent, managed)));
    let mut klusterlet = klusterlet(settings, live, &agent);
    if let Some(hubs) = kubeconfigs.hubs {
        secrets.extend(hubs.kubeconfigs.iter().map(|(name, hub)| fallback::secret(&agent, name, hub)));
        hubs.lay(&mut klusterlet.body_mut()["spec"]);
    }
    let last = Stage::new("the Klusterlet", vec![klusterlet]);
    if live.is_shared {
        let space = Stage::new("the namespace", vec![agent_namespace_object(&agent)]);
        return Plan::new([space, Stage::new("secrets", secrets), last]);
    }
    let mut first = vec![agent_namespace_object(&agent), crds::klusterlet_manifest()];
    if settings.create_namespace {
        first.insert(0, Manifest::of(&operator::namespace()));
    }
    let mut second = vec![
        Manifest::of(&operator::service_account(operators::KLUSTERLET, true)),
        Manifest::of(&operator::pull_secret(settings.pull_credentials.as_ref())),
    ];
    second.extend(rbac::operator_rights());
    second.extend(secrets);
    Plan::new([
        Stage::new("namespaces and the definition of Klusterlet", first),
        Stage::new("accounts, roles and secrets", second),
        Stage::new("the operator", vec![operator_deployment(settings, live)]),
        last,
    ])
}

/// Name of the Klusterlet: as it is there, else the usual one.
fn klusterlet_name(settings: &Settings, live: &Live) -> String {
    let there = live.klusterlet.as_ref().and_then(|live| live.pointer("/metadata/name")).and_then(Value::as_str);
    there.map_or_else(
        || match settings.is_hosted() {
            true => hosted::klusterlet_name(&settings.name),
            false => operators::KLUSTERLET_OBJECT.to_owned(),
        },
        str::to_owned,
    )
}

/// The namespace of the agent: where it is already, else the usual one. Upstream: `AgentNamespace`.
pub(super) fn agent_namespace(settings: &Settings, live: &Live) -> String {
    if settings.is_hosted() {
        return klusterlet_name(settings, live);
    }
    let named = live.klusterlet.as_ref().and_then(|live| live.pointer("/spec/namespace")).and_then(Value::as_str);
    named.filter(|name| !name.is_empty()).unwrap_or(namespaces::AGENT).to_owned()
}

fn agent_namespace_object(name: &str) -> Manifest {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    // OpenShift puts such pods on the cores that are set aside for management.
    namespace.metadata.annotations =
        Some([("workload.openshift.io/allowed".to_owned(), "management".to_owned())].into());
    Manifest::of(&namespace)
}

/// The image of a component beside an operator that stays as it is.
fn beside(operator: &Value, component: Component) -> Option<String> {
    let image = Image::parse(operator::container(operator)?["image"].as_str()?);
    let tag = image.tag.clone()?;
    Some(format!("{}/{}:{tag}", image.registry(), component.image()))
}

/// The image of a component: as typed, else as it is named already, else ours.
fn image(settings: &Settings, component: Component, named: Option<&str>) -> String {
    let usual = |registry: &str| format!("{}/{}", registry.trim_end_matches('/'), component.image());
    let image = match named.filter(|named| !named.is_empty()) {
        None => {
            let repository = usual(settings.registry.as_deref().unwrap_or(release::REGISTRY));
            let bundle = settings.bundle.clone().unwrap_or_default();
            Image { repository, tag: None, digest: None }.of_release(&bundle)
        }
        Some(named) => {
            let mut image = Image::parse(named);
            if let Some(registry) = &settings.registry {
                image.repository = usual(registry);
            }
            match &settings.bundle {
                Some(bundle) => image.of_release(bundle),
                None => image,
            }
        }
    };
    settings.digests.pin(component, image).to_string()
}

/// The operator's Deployment, from the one of the hub's operator: both are the same program.
pub(crate) fn operator_deployment(settings: &Settings, live: &Live) -> Manifest {
    let container = live.operator.as_ref().and_then(operator::container);
    let name = container.and_then(|container| container["name"].as_str()).unwrap_or(operators::KLUSTERLET);
    let picture = image(settings, Component::Operator, container.and_then(|container| container["image"].as_str()));

    let management = "{\"effect\": \"PreferredDuringScheduling\"}";
    let mut manifest = operator::deployment(&Operator {
        name: operators::KLUSTERLET,
        operates: "klusterlet",
        container: name,
        image: &picture,
        agent_image: None,
        replicas: 1,
        annotations: json!({"target.workload.openshift.io/management": management}),
        affinity: Value::Null,
    });
    if let Some(live) = &live.operator {
        *manifest.body_mut() = reconcile::over(manifest.body(), live);
        for container in manifest
            .body_mut()
            .pointer_mut("/spec/template/spec/containers")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if container["name"] == name {
                container["image"] = Value::from(picture.as_str());
            }
        }
    }
    place_typed(settings, live, manifest.body_mut());
    manifest
}

/// Writes what was typed of the operator's own pods into its Deployment.
pub(super) fn place_typed(settings: &Settings, live: &Live, deployment: &mut Value) {
    if let Some(on) = settings.enable_sync_labels {
        let name = operator::container(deployment).map(|container| container["name"].clone());
        let containers = deployment.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
        let is_operator = |container: &&mut Value| Some(&container["name"]) == name.as_ref();
        containers.into_iter().flatten().filter(is_operator).for_each(|container| sync_labels(container, on));
    }
    settings.scheduling.place(deployment);
    know_hub(settings, live, deployment);
}

/// Gives the operator's pods the address of the hub that those of the agent are given: the operator asks the hub itself what the
/// agent's credentials allow. What others have given them stays. Upstream: `ssarcontroller`, for the condition
/// `HubConnectionDegraded`.
fn know_hub(settings: &Settings, live: &Live, deployment: &mut Value) {
    const MEMBER: &str = "hubApiServerHostAlias";
    let of = |spec: &Value| Some(spec[MEMBER].clone()).filter(Value::is_object);
    let typed = settings.host_alias.as_ref().map(|alias| json!(alias));
    let laid = typed.or_else(|| of(settings.values.spec()));
    let alias = laid.or_else(|| of(&live.klusterlet.as_ref()?["spec"]));
    // Who does not say which Klusterlet there is, as an upgrade, says nothing of its hub.
    if alias.is_none() && live.klusterlet.is_none() {
        return;
    }
    let entry = |alias: Value| json!({"ip": alias["ip"], "hostnames": [alias["hostname"]]});
    let list = |operator: &Value| {
        operator.pointer("/spec/template/spec/hostAliases").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let there = live.operator.as_ref().map(list).unwrap_or_default();
    let ours = live.operator.as_ref().map(|operator| list(&reconcile::owned_by_us(operator))).unwrap_or_default();
    // The names of an address are one value: those that others have given it would go.
    let has = |list: &[Value], ip: &Value| list.iter().any(|one| one["ip"] == *ip);
    let is_theirs = |one: &Value| has(&there, &one["ip"]) && !has(&ours, &one["ip"]);
    let wanted: Vec<Value> = alias.map(entry).into_iter().filter(|one| !is_theirs(one)).collect();
    let is_so = wanted.iter().all(|one| there.contains(one)) && ours.iter().all(|one| wanted.contains(one));
    if let Some(pod) = deployment.pointer_mut("/spec/template/spec").filter(|_| !is_so) {
        pod["hostAliases"] = Value::Array(wanted);
    }
}

pub(super) fn klusterlet(settings: &Settings, live: &Live, agent: &str) -> Manifest {
    let gates = |part: Part| {
        let on = GATES.iter().filter(|gate| gate.part == part && gate.default);
        on.map(|gate| FeatureGate::enabled(gate.name)).collect::<Vec<_>>()
    };
    // Of a hosted cluster that is where the accounts of its agents are, on the managed cluster.
    let accounts = if settings.is_hosted() { namespaces::AGENT } else { agent };
    let spec = KlusterletSpec {
        namespace: Some(accounts.to_owned()),
        cluster_name: Some(settings.name.clone()),
        deploy_option: Some(KlusterletDeployOption { mode: Some(KlusterletMode::Default) }),
        registration_configuration: Some(RegistrationConfiguration {
            client_cert_expiration_seconds: Some(DEFAULT_CERTIFICATE_SECONDS),
            feature_gates: gates(Part::Registration),
            ..RegistrationConfiguration::default()
        }),
        ..KlusterletSpec::default()
    };
    let mut manifest = Manifest::of(&Klusterlet::new(&klusterlet_name(settings, live), spec));
    let published = live.published.as_slice();
    // What a Klusterlet that is there does not name comes from where its operator does.
    let operator = live.operator.as_ref().filter(|_| live.is_shared || live.klusterlet.is_some());
    let live = live.klusterlet.as_ref();
    let metadata = manifest.body()["metadata"].clone();
    if let Some(live) = live {
        *manifest.body_mut() = reconcile::over(manifest.body(), live);
    }
    let body = manifest.body_mut();
    body["metadata"] = metadata;
    let spec = &mut body["spec"];
    // Where the agent is, and which cluster it is, is decided by now.
    let namespace = spec["namespace"].clone();
    settings.values.lay(spec);
    spec["namespace"] = namespace;
    spec["clusterName"] = Value::from(settings.name.as_str());
    if let Some(mode) = &settings.mode {
        spec["deployOption"] = json!({ "mode": mode.as_str() });
    }
    // Nothing fills these in, and which of them are used depends on the mode: all are said.
    for (member, component) in IMAGES {
        let there = settings.values.spec()[member].as_str().filter(|image| !image.is_empty());
        let there = there.or_else(|| live.and_then(|live| live["spec"][member].as_str())).map(str::to_owned);
        let there = there.or_else(|| beside(operator?, component));
        spec[member] = Value::from(image(settings, component, there.as_deref()));
    }
    for (gate, on) in &settings.feature_gates {
        set_gate(spec, gate, *on);
    }
    let registration = &mut spec["registrationConfiguration"];
    if let Some(CertificateLife(seconds)) = settings.certificate_life {
        registration["clientCertExpirationSeconds"] = Value::from(seconds);
    }
    if !settings.annotations.is_empty() {
        let prefixed = |(key, value): (&String, &String)| match key.starts_with(annotations::AGENT_PREFIX) {
            true => (key.clone(), value.clone()),
            false => (format!("{}{key}", annotations::AGENT_PREFIX), value.clone()),
        };
        let all: BTreeMap<String, String> = settings.annotations.iter().map(prefixed).collect_map();
        registration["clusterAnnotations"] = json!(all);
    }
    if let Some(driver) = &settings.driver {
        registration["registrationDriver"] = json!(driver);
    }
    if let Some(driver) = &settings.addon_driver {
        registration["addOnKubeClientRegistrationDriver"] = json!(driver);
    }
    // The hub shows it to people. What somebody has written, perhaps with its CA, is better than what is published.
    let are_there = |spec: &Value| spec["externalServerURLs"].as_array().is_some_and(|all| !all.is_empty());
    let written = live.is_some_and(|live| are_there(&live["spec"])) || are_there(settings.values.spec());
    let urls = match settings.server_urls.as_slice() {
        [] if written => &[],
        [] => published,
        typed => typed,
    };
    if !urls.is_empty() {
        let url = |url: &String| ServerUrl { url: url.clone(), ca_bundle: None };
        spec["externalServerURLs"] = json!(urls.iter().map(url).collect::<Vec<_>>());
    }
    if let Some(resources) = &settings.resources {
        spec["resourceRequirement"] = json!(resources);
    }
    if let Some(alias) = &settings.host_alias {
        spec["hubApiServerHostAlias"] = json!(alias);
    }
    settings.scheduling.tell_operator(spec);
    manifest
}

#[cfg(test)]
mod tests {
    use ocm_api::operator::RegistrationAuthType;

    use ocm_api::names::secrets;

    use super::*;
    use crate::kubeconfig::HubAddress;
    use crate::scheduling::toleration;

    fn settings() -> Settings {
        Settings { name: "c1".to_owned(), create_namespace: true, ..Settings::default() }
    }

    fn bootstrap() -> Bootstrap {
        let hub = HubAddress { server: "https://hub:6443".to_owned(), ..HubAddress::default() };
        Bootstrap { hub, token: "to.ken".to_owned(), ..Bootstrap::default() }
    }

    fn with_hub(hub: &Bootstrap) -> Kubeconfigs<'_> {
        Kubeconfigs { hub: Some(hub), ..Kubeconfigs::default() }
    }

    fn body(plan: &Plan, kind: &str, name: &str) -> Value {
        let found = plan.objects().find(|object| object.kind() == kind && object.name() == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}")).body().clone()
    }

    #[test]
    fn a_new_cluster_gets_everything_and_the_klusterlet_last() {
        let plan = plan(&settings(), with_hub(&bootstrap()), &Live::default());
        let references: Vec<String> = plan.objects().map(Manifest::reference).collect();
        assert_eq!(
            references,
            [
                "namespace/open-cluster-management",
                "namespace/open-cluster-management-agent",
                "customresourcedefinition.apiextensions.k8s.io/klusterlets.operator.open-cluster-management.io",
                "serviceaccount/klusterlet",
                "secret/open-cluster-management-image-pull-credentials",
                "clusterrole.rbac.authorization.k8s.io/klusterlet",
                "clusterrolebinding.rbac.authorization.k8s.io/klusterlet",
                "secret/bootstrap-hub-kubeconfig",
                "deployment.apps/klusterlet",
                "klusterlet.operator.open-cluster-management.io/klusterlet",
            ]
        );
        let spec = body(&plan, "Klusterlet", "klusterlet")["spec"].clone();
        assert_eq!(spec["clusterName"], "c1");
        assert_eq!(spec["deployOption"]["mode"], "Default");
        for (member, name) in [
            ("registrationImagePullSpec", "registration"),
            ("workImagePullSpec", "work"),
            ("imagePullSpec", "registration-operator"),
        ] {
            assert_eq!(spec[member], format!("quay.io/open-cluster-management/{name}:{}", release::DEFAULT));
        }
        assert_eq!(spec["registrationConfiguration"]["clientCertExpirationSeconds"], 31_536_000);
        let operator = body(&plan, "Deployment", "klusterlet");
        let container = &operator["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], json!(["/registration-operator", "klusterlet"]));
        assert_eq!(container["env"].as_array().unwrap().len(), 1);
        assert_eq!(operator["spec"]["replicas"], 1);
        assert_eq!(operator["spec"]["selector"]["matchLabels"]["app"], "klusterlet");
        assert!(!format!("{plan:?}").contains("to.ken"));
    }

    #[test]
    fn over_grpc_the_agent_gets_a_second_file_and_its_driver() {
        let address = crate::grpc::Address { host: "hub-grpc".to_owned(), port: 30090 };
        let server = crate::grpc::Server { address, ca: vec![b"ca".to_vec()] };
        let driver = RegistrationDriver { auth_type: RegistrationAuthType::Grpc, aws_irsa: None };
        let settings = Settings { driver: Some(driver), ..settings() };
        let keys = |grpc: Option<crate::grpc::Server>| {
            let hub = Bootstrap { grpc, ..bootstrap() };
            let plan = plan(&settings, with_hub(&hub), &Live::default());
            let driver = body(&plan, "Klusterlet", "klusterlet")["spec"]["registrationConfiguration"].clone();
            assert_eq!(driver["registrationDriver"], json!({"authType": "grpc"}));
            let secret = body(&plan, "Secret", secrets::BOOTSTRAP_HUB_KUBECONFIG);
            secret["data"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(Some(server)), ["config.yaml", "kubeconfig"]);
        assert_eq!(keys(None), ["kubeconfig"]);
    }

    #[test]
    fn without_a_bootstrap_kubeconfig_the_one_that_is_there_stays() {
        let plan = plan(&settings(), Kubeconfigs::default(), &Live::default());
        assert!(!plan.objects().any(|object| object.name() == secrets::BOOTSTRAP_HUB_KUBECONFIG));
    }

    #[test]
    fn what_was_typed_is_said() {
        let settings = Settings {
            mode: Some(KlusterletMode::Singleton),
            bundle: Some(Bundle::parse("1.2.0").unwrap()),
            registry: Some("registry.example/ocm/".to_owned()),
            feature_gates: vec![
                crate::gates::parse("ClusterProperty=true", GATES).unwrap(),
                crate::gates::parse("ClusterClaim=false", GATES).unwrap(),
            ],
            certificate_life: CertificateLife::seconds(86_400),
            annotations: [("a", "b"), ("agent.open-cluster-management.io/d", "")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            server_urls: vec!["https://c1.example".to_owned()],
            resources: Some(ResourceRequirement::default()),
            driver: Some(RegistrationDriver { auth_type: RegistrationAuthType::Csr, aws_irsa: None }),
            scheduling: Scheduling {
                node_selector: [("pool".to_owned(), "infra".to_owned())].into(),
                tolerations: vec![toleration("infra=yes:NoExecute").unwrap()],
                priority_class: Some("agents".to_owned()),
            },
            enable_sync_labels: Some(true),
            create_namespace: false,
            ..settings()
        };
        let plan = plan(&settings, Kubeconfigs::default(), &Live::default());
        assert!(!plan.objects().any(|object| object.name() == namespaces::OPERATOR));
        let spec = body(&plan, "Klusterlet", "klusterlet")["spec"].clone();
        assert_eq!(spec["deployOption"]["mode"], "Singleton");
        assert_eq!(spec["imagePullSpec"], "registry.example/ocm/registration-operator:v1.2.0");
        let registration = &spec["registrationConfiguration"];
        assert_eq!(
            registration["featureGates"],
            json!([
                {"feature": "ClusterClaim", "mode": "Disable"},
                {"feature": "AddonManagement", "mode": "Enable"},
                {"feature": "ClusterProperty", "mode": "Enable"},
            ])
        );
        assert_eq!(registration["clientCertExpirationSeconds"], 86_400);
        let annotations = json!({"agent.open-cluster-management.io/a": "b", "agent.open-cluster-management.io/d": ""});
        assert_eq!(registration["clusterAnnotations"], annotations);
        assert_eq!(registration["registrationDriver"]["authType"], "csr");
        assert_eq!(spec["externalServerURLs"], json!([{"url": "https://c1.example"}]));
        assert_eq!(spec["resourceRequirement"], json!({}));
        let tolerations = json!([{"key": "infra", "operator": "Equal", "value": "yes", "effect": "NoExecute"}]);
        assert_eq!(spec["nodePlacement"], json!({"nodeSelector": {"pool": "infra"}, "tolerations": tolerations}));
        assert_eq!(spec["priorityClassName"], "agents");
        // The operator, too.
        let operator = body(&plan, "Deployment", "klusterlet");
        let pod = operator.pointer("/spec/template/spec").unwrap();
        assert_eq!((&pod["nodeSelector"], &pod["tolerations"]), (&json!({"pool": "infra"}), &tolerations));
        assert_eq!(pod["priorityClassName"], "agents");
        let arguments = json!(["/registration-operator", "klusterlet", "--enable-sync-labels"]);
        assert_eq!(pod["containers"][0]["args"], arguments);
    }

    #[test]
    fn what_is_there_and_was_not_typed_stays() {
        let live = Live {
            klusterlet: Some(json!({
                "metadata": {"name": "mine", "uid": "u"},
                "spec": {
                    "namespace": "open-cluster-management-agent-2", "clusterName": "c1",
                    "deployOption": {"mode": "Singleton"},
                    "imagePullSpec": "r.example/registration-operator:v1.1.1",
                    "registrationConfiguration": {"clientCertExpirationSeconds": 7200},
                },
            })),
            published: Some("https://published".to_owned()),
            operator: Some(json!({"spec": {"replicas": 3, "template": {"spec": {"containers": [
                {"name": "operator", "image": "r.example/registration-operator:v1.1.1"}]}}}})),
            is_shared: false,
        };
        let plan = plan(&settings(), with_hub(&bootstrap()), &live);
        let klusterlet = body(&plan, "Klusterlet", "mine");
        assert_eq!(klusterlet["metadata"], json!({"name": "mine"}));
        let spec = &klusterlet["spec"];
        assert_eq!(
            (&spec["deployOption"]["mode"], &spec["namespace"]),
            (&json!("Singleton"), &json!("open-cluster-management-agent-2"))
        );
        assert_eq!(spec["imagePullSpec"], "r.example/registration-operator:v1.1.1");
        assert_eq!(spec["registrationConfiguration"]["clientCertExpirationSeconds"], 7200);
        let secret = plan.objects().find(|object| object.name() == secrets::BOOTSTRAP_HUB_KUBECONFIG).unwrap();
        assert_eq!(secret.namespace(), Some("open-cluster-management-agent-2"));
        let operator = body(&plan, "Deployment", "klusterlet");
        assert_eq!(operator["spec"]["replicas"], 3);
        let container = &operator["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(
            (&container["name"], &container["image"]),
            (&json!("operator"), &json!("r.example/registration-operator:v1.1.1"))
        );
    }

    #[test]
    fn addresses_of_the_cluster_that_somebody_wrote_stay_with_their_ca() {
        let written = json!([{"url": "https://written", "caBundle": "Y2E="}]);
        let live = |urls: &Value| Live {
            klusterlet: Some(json!({
                "metadata": {"name": "klusterlet", "managedFields": [{"manager": reconcile::FIELD_MANAGER,
                    "operation": "Apply", "fieldsV1": {"f:spec": {"f:externalServerURLs": {}}}}]},
                "spec": {"externalServerURLs": urls}})),
            published: Some("https://published".to_owned()),
            ..Live::default()
        };
        let sent = |settings: &Settings, live: &Live| {
            let plan = plan(settings, Kubeconfigs::default(), live);
            let planned = plan.objects().find(|object| object.kind() == "Klusterlet").unwrap();
            match reconcile::reconcile(planned, live.klusterlet.as_ref()) {
                reconcile::Reconciled::Apply(manifest) => manifest.body()["spec"]["externalServerURLs"].clone(),
                reconcile::Reconciled::Keep(reason) => panic!("{reason}"),
            }
        };
        // Mentioned as it is, because we own it: else the apply would remove it.
        assert_eq!(sent(&settings(), &live(&written)), written);
        assert_eq!(sent(&settings(), &live(&json!([]))), json!([{"url": "https://published"}]));
        let typed = Settings { server_urls: vec!["https://typed".to_owned()], ..settings() };
        assert_eq!(sent(&typed, &live(&written)), json!([{"url": "https://typed"}]));
    }

    #[test]
    fn a_certificate_lives_for_an_hour_or_as_the_hub_likes() {
        assert_eq!(CertificateLife::seconds(600), None);
        assert_eq!(CertificateLife::seconds(-1), None);
        assert!(CertificateLife::seconds(0).is_some() && CertificateLife::seconds(3600).is_some());
    }

    fn hosted() -> Settings {
        Settings { mode: Some(KlusterletMode::SingletonHosted), ..settings() }
    }

    #[test]
    fn a_hosted_cluster_gets_a_klusterlet_and_a_namespace_of_its_own() {
        let (hub, managed) = (bootstrap(), bootstrap());
        let kubeconfigs = Kubeconfigs { hub: Some(&hub), managed: Some(&managed), hubs: None };
        let made = plan(&hosted(), kubeconfigs, &Live::default());
        let name = "klusterlet-hosted-c1";
        let klusterlet = body(&made, "Klusterlet", name);
        assert_eq!(klusterlet["spec"]["deployOption"]["mode"], "SingletonHosted");
        assert_eq!(
            klusterlet["spec"]["namespace"], "open-cluster-management-agent",
            "of accounts on the managed cluster"
        );
        for secret in ["bootstrap-hub-kubeconfig", "external-managed-kubeconfig"] {
            assert_eq!(body(&made, "Secret", secret)["metadata"]["namespace"], name);
        }
        body(&made, "Namespace", name);
        body(&made, "Deployment", "klusterlet");
    }

    #[test]
    fn an_operator_that_serves_others_stays_and_says_which_release_it_is() {
        let operator = json!({"spec": {"template": {"spec": {"containers": [{"name": "klusterlet",
            "image": "mirror.example/ocm/registration-operator:v1.2.0", "args": ["/registration-operator", "klusterlet"]}]}}}});
        let live = Live { operator: Some(operator), is_shared: true, ..Live::default() };
        let hub = bootstrap();
        let made = plan(&hosted(), with_hub(&hub), &live);
        let kinds: Vec<&str> = made.objects().map(Manifest::kind).collect();
        assert_eq!(kinds, ["Namespace", "Secret", "Klusterlet"]);
        let spec = body(&made, "Klusterlet", "klusterlet-hosted-c1")["spec"].clone();
        assert_eq!(spec["workImagePullSpec"], "mirror.example/ocm/work:v1.2.0");
        let typed = Settings { registry: Some("other.example".to_owned()), ..hosted() };
        let spec = body(&plan(&typed, with_hub(&hub), &live), "Klusterlet", "klusterlet-hosted-c1")["spec"].clone();
        assert_eq!(spec["workImagePullSpec"], "other.example/work:v1.2.0");
    }
}
