//! A hub that is hosted: its operator, its ClusterManager and its pods are on another cluster, the hosting one, and reach
//! the hub through an account that we make there. The hub's API server reaches the webhooks at addresses of the hosting
//! cluster.

use std::ops::RangeInclusive;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::Manifest;
use ocm_api::names::{bootstrap, namespaces, secrets};
use serde_json::{Value, json};

use super::rbac::{self, Row, binding, role};
use super::{Driver, HubMode, Live, Options, OptionsError};
use crate::kubeconfig::{Bootstrap, HUB_UID};
use crate::release::Bundle;
use crate::{Plan, Stage, account, operator};

pub use super::hosting::{Hosting, WEBHOOK_PORT, Webhook, WebhookExposure};

/// Name of the ClusterManager of a hosted hub, and so of the namespace of its pods, and of its controllers' accounts on the
/// hub. It is that of other hubs' namespace: policies and rules know the accounts by it.
pub const NAME: &str = namespaces::HUB;
/// Annotation of the namespace of the operator's account: the UID of the namespace `kube-system` of the hosting cluster.
pub const HOSTING_UID: &str = "kubectl-ocm/hosting-uid";
/// From this release on, the API server asks each webhook at the port at which its pods listen, and that can be chosen. Before,
/// it asks all of them at the port of the webhook of registration. Upstream: `webhook-validatingconfiguration.yaml`.
const OWN_PORTS: &str = "1.3.0";
/// The webhooks of a hosted hub: the member of the ClusterManager with the address, the name of the Deployment after that of the
/// hub, and the port of the hosting cluster's nodes at which it is exposed unless another one is given.
const WEBHOOKS: [(&str, &str, u16); 2] = [
    ("registrationWebhookConfiguration", "registration-webhook", 30443),
    ("workWebhookConfiguration", "work-webhook", 31443),
];
/// Ports of nodes, unless an API server is told others (`--service-node-port-range`).
const NODE_PORTS: RangeInclusive<u64> = 30000..=32767;
/// Ports at which only privileged processes listen on most systems.
const PRIVILEGED: u16 = 1024;

/// The mode of a ClusterManager.
pub fn mode_of(manager: &Value) -> HubMode {
    match manager.pointer("/spec/deployOption/mode").and_then(Value::as_str) {
        Some("Hosted") => HubMode::Hosted,
        _ => HubMode::Default,
    }
}

/// Checks what was typed of the mode.
///
/// # Errors
/// What no hub of that mode has.
pub(super) fn check(options: &Options) -> Result<(), OptionsError> {
    let Hosting { mode, registration, work, expose, kubeconfig: _ } = &options.hosting;
    match mode {
        Some(HubMode::Default) if registration.is_some() || work.is_some() || expose.is_some() => {
            Err(OptionsError::NotHosted)
        }
        // Its Service would be on the hub, where no pod is behind it.
        Some(HubMode::Hosted) if asks_for_grpc(options) => Err(OptionsError::HostedGrpc),
        _ => Ok(()),
    }
}

/// The mode that a hub gets: the typed one, that of the hub that is there, or the usual one.
///
/// # Errors
/// When a hub that is there is in another mode than the typed one; addresses that nobody would dial; what no hosted hub has.
pub fn mode(options: &Options, live: &Live) -> Result<HubMode, OptionsError> {
    let Hosting { mode, registration, work, expose, kubeconfig: _ } = &options.hosting;
    let there = live.cluster_manager.as_ref().map(mode_of);
    if let (Some(typed), Some(there)) = (mode, there)
        && *typed != there
    {
        return Err(OptionsError::OtherMode(there));
    }
    let mode = mode.or(there).unwrap_or_default();
    match mode {
        HubMode::Default if registration.is_some() || work.is_some() || expose.is_some() => {
            Err(OptionsError::NotHosted)
        }
        // Its Service would be on the hub, where no pod is behind it.
        HubMode::Hosted if asks_for_grpc(options) => Err(OptionsError::HostedGrpc),
        mode => Ok(mode),
    }
}

/// Whether clusters are to register over gRPC. What somebody else has written into the ClusterManager stays.
fn asks_for_grpc(options: &Options) -> bool {
    let named =
        options.values.spec().pointer("/registrationConfiguration/registrationDrivers").and_then(Value::as_array);
    let lists = match &options.registration_drivers {
        Some(typed) => typed.contains(&Driver::Grpc),
        None => named.into_iter().flatten().any(|entry| entry["authType"] == Driver::Grpc.word()),
    };
    let server = options.grpc_endpoint.is_some() || options.grpc_server.is_some() || options.expose_grpc.is_some();
    lists || server || !options.auto_approved_grpc_identities.is_empty()
}

/// Says in the spec of a ClusterManager that its hub is hosted, and where its webhooks are found.
///
/// # Errors
/// Addresses that are missing, or that the release cannot have.
pub(super) fn lay(
    spec: &mut Value,
    live: Option<&Value>,
    options: &Options,
    release: Option<&Bundle>,
    warnings: &mut Vec<String>,
) -> Result<(), OptionsError> {
    let Hosting { registration, work, expose, .. } = &options.hosting;
    let on_nodes = *expose == Some(WebhookExposure::NodePort);
    // A file of values may say it; what the hub that is there has is not among the defaults.
    let mut hosted = match spec["deployOption"]["hosted"].take() {
        Value::Null => live.and_then(|live| live.pointer("/spec/deployOption/hosted")).cloned().unwrap_or_default(),
        laid => laid,
    };
    let mut ports = Vec::new();
    for ((member, _, on_node), typed) in WEBHOOKS.into_iter().zip([registration, work]) {
        if let Some(Webhook { host, port }) = typed {
            hosted[member]["address"] = json!(host);
            let stays =
                port.is_none() && hosted[member]["port"].as_u64().is_some_and(|there| goes_with(there, *expose));
            if !stays {
                let port = port.unwrap_or(if on_nodes { on_node } else { WEBHOOK_PORT });
                hosted[member]["port"] = json!(port);
                // The pods have to listen where they are asked.
                hosted[member]["bindConfiguration"]["port"] = json!(port);
            }
        }
        if hosted[member]["address"].as_str().is_none_or(str::is_empty) {
            return Err(OptionsError::NoWebhookAddress);
        }
        // The API server fills in 443.
        ports.push(hosted[member]["port"].as_u64().unwrap_or(443));
    }
    match release.filter(|release| is_before_own_ports(release)) {
        Some(release) if ports.windows(2).any(|pair| pair[0] != pair[1]) => {
            return Err(OptionsError::WebhookPortsDiffer(release.to_string()));
        }
        None if ports.iter().any(|port| *port < u64::from(PRIVILEGED)) => warnings.push(format!(
            "the pods of the webhooks listen at the ports of their addresses; most nodes let them have none below \
             {PRIVILEGED}, so take {WEBHOOK_PORT} where you can"
        )),
        _ => {}
    }
    if let (true, [first, second]) = (on_nodes, &ports[..])
        && first == second
    {
        return Err(OptionsError::WebhooksShareNodePort(u16::try_from(*first).unwrap_or_default()));
    }
    spec["deployOption"]["mode"] = json!(HubMode::Hosted.word());
    spec["deployOption"]["hosted"] = hosted;
    Ok(())
}

/// Whether the port of a webhook that is there can stay where this is typed to lead to it, or nothing is.
fn goes_with(port: u64, expose: Option<WebhookExposure>) -> bool {
    let is_of_nodes = NODE_PORTS.contains(&port);
    match expose {
        None => true,
        Some(WebhookExposure::NodePort) => is_of_nodes,
        Some(WebhookExposure::LoadBalancer) => !is_of_nodes,
    }
}

/// Whether a release asks both webhooks at one port, and has their pods listen at the usual one.
fn is_before_own_ports(release: &Bundle) -> bool {
    release.is_before(&Bundle::parse(OWN_PORTS).unwrap_or_default())
}

/// The Services by which the hub's API server reaches the webhooks of a hub with this ClusterManager, in the namespace of its pods,
/// with which they go.
pub(super) fn services(
    hub: &str,
    exposure: WebhookExposure,
    manager: &Value,
    release: Option<&Bundle>,
) -> impl Iterator<Item = Manifest> {
    let hosted = manager["spec"]["deployOption"]["hosted"].clone();
    let is_early = release.is_some_and(is_before_own_ports);
    WEBHOOKS.into_iter().map(move |(member, name, _)| {
        let webhook = &hosted[member];
        let port = webhook["port"].as_u64().unwrap_or(443);
        let listens = webhook["bindConfiguration"]["port"].as_u64().filter(|_| !is_early);
        let target = listens.unwrap_or(u64::from(WEBHOOK_PORT));
        let mut entry = json!({"name": "webhook", "protocol": "TCP", "port": port, "targetPort": target});
        let type_ = match exposure {
            WebhookExposure::NodePort => {
                entry["nodePort"] = json!(port);
                "NodePort"
            }
            WebhookExposure::LoadBalancer => "LoadBalancer",
        };
        let meta = ObjectMeta {
            namespace: Some(hub.to_owned()),
            name: Some(format!("{hub}-{name}-external")),
            ..ObjectMeta::default()
        };
        let spec = json!({"type": type_, "selector": {"app": format!("{hub}-{name}")}, "ports": [entry]});
        // A port of nodes goes when there is a load balancer in its place.
        Manifest::with::<Service>(&meta, json!({ "spec": spec })).exactly()
    })
}

/// What whoever upgrades a hosted hub has to know of the ports of its webhooks; none where nothing changes.
pub fn moved_ports(manager: &Value, release: &Bundle) -> Option<String> {
    if mode_of(manager) != HubMode::Hosted || is_before_own_ports(release) {
        return None;
    }
    let hosted = manager.pointer("/spec/deployOption/hosted")?.as_object()?;
    let mut ports = hosted.values().filter_map(|webhook| webhook["port"].as_u64());
    ports.find(|port| *port != u64::from(WEBHOOK_PORT)).map(|port| {
        format!(
            "from v{OWN_PORTS} on the pods of a webhook listen, and are asked, at the port of its bindConfiguration, or without \
             one at {WEBHOOK_PORT}: it has to be that of its address, such as {port}, and what leads there has to lead to it"
        )
    })
}

/// The namespace of the hub's pods on the hosting cluster, which the operator would expect there.
pub(super) fn space(hub: &str) -> Manifest {
    let meta = ObjectMeta { name: Some(hub.to_owned()), ..ObjectMeta::default() };
    Manifest::with::<Namespace>(&meta, Value::Null)
}

/// The Secret with the kubeconfig through which the operator keeps the hub, in the namespace of the hub's pods.
pub fn secret(hub: &str, kubeconfig: &Bootstrap) -> Manifest {
    let mut secret = Secret::default();
    secret.metadata.name = Some(secrets::EXTERNAL_HUB_KUBECONFIG.to_owned());
    secret.metadata.namespace = Some(hub.to_owned());
    let uid = kubeconfig.hub.uid.clone().unwrap_or_default();
    secret.metadata.annotations = Some([(HUB_UID.to_owned(), uid)].into());
    let text = ByteString(kubeconfig.to_yaml().into_bytes());
    secret.data = Some([(secrets::KUBECONFIG_KEY.to_owned(), text)].into());
    Manifest::of(&secret)
}

/// What belongs on the hub itself: what lets clusters register.
pub(super) fn on_hub(options: &Options) -> Plan {
    let space = options.create_namespace.then(|| Manifest::of(&operator::namespace()));
    let mut accounts = vec![Manifest::of(&operator::service_account(bootstrap::SERVICE_ACCOUNT, false))];
    accounts.extend(rbac::bootstrap_rights());
    if options.use_bootstrap_token {
        accounts.push(Manifest::of(&rbac::token_binding()));
    }
    Plan::new([
        Stage::new("the namespace of who registers clusters", space.into_iter().collect()),
        Stage::new("who registers clusters", accounts),
    ])
}

/// Name of the account on the hub with which its operator works, and of its namespace. The operator deletes the namespace of
/// the hub's controllers while it still needs the account, so this is another one.
pub fn account_name(hub: &str) -> String {
    account::short(format!("{hub}-operator"), hub)
}

/// The account, and its rights. `namespace` is its namespace as it is there, which becomes the owner of the rights; none: it is
/// only planned. `hosting`: the UID of the hosting cluster, where it is known.
pub fn account(hub: &str, hosting: Option<&str>, namespace: Option<&ObjectMeta>) -> Plan {
    let name = account_name(hub);
    let mut space = account::space(&name);
    space.metadata.annotations = hosting.map(|uid| [(HOSTING_UID.to_owned(), uid.to_owned())].into());
    account::plan(&space, rights(hub, account::subject(&name)), namespace)
}

/// The UID of the cluster that hosts a hub, as the namespace of its operator's account tells it.
pub fn hosting_uid(namespace: &ObjectMeta) -> Option<&str> {
    let noted = namespace.annotations.as_ref()?.get(HOSTING_UID)?;
    Some(noted.as_str()).filter(|uid| !uid.is_empty())
}

/// Roles that the operator binds to the accounts of the hub's controllers, after the name of the ClusterManager. Upstream:
/// `manifests/cluster-manager/hub`.
const OF_CONTROLLERS: &[&str] = &[
    "registration:controller",
    "registration:webhook",
    "placement:controller",
    "addon-manager:controller",
    "work:controller",
    "work:webhook",
    "work-executor-admin:webhook",
    "clusterprofile:controller",
    "grpc-server",
];

/// The accounts of the hub's controllers, of which the operator makes tokens. Upstream: `getSAs`.
const CONTROLLERS: &[&str] = &[
    "registration-controller-sa",
    "registration-webhook-sa",
    "placement-controller-sa",
    "addon-manager-controller-sa",
    "work-controller-sa",
    "work-webhook-sa",
    "grpc-server-sa",
];

/// The rights of the account, and their binding. What controllers may do depends on the release, so the account must be able
/// to make roles that hold more than it does; it can bind no others than those of this hub.
fn rights(hub: &str, account: Subject) -> (ClusterRole, ClusterRoleBinding) {
    const WRITE: &str = "create delete get update";
    let own: Vec<String> = OF_CONTROLLERS.iter().map(|part| format!("open-cluster-management:{hub}-{part}")).collect();
    let roles: Vec<&str> = own.iter().map(String::as_str).collect();
    let hooks = "mutatingwebhookconfigurations validatingwebhookconfigurations";
    let rows: [Row<'_>; 12] = [
        ("core", "namespaces", &[], "create"),
        ("core", "namespaces", &[hub], "delete get update"),
        ("core", "endpoints serviceaccounts services", &[], WRITE),
        ("core", "serviceaccounts/token", CONTROLLERS, "create"),
        ("core", "secrets", &[], "create"),
        ("core", "secrets", &[secrets::IMAGE_PULL_CREDENTIALS, "work-driver-config"], "delete get update"),
        ("rbac.authorization.k8s.io", "clusterroles", &[], "create delete escalate get update"),
        ("rbac.authorization.k8s.io", "clusterroles", &roles, "bind"),
        ("rbac.authorization.k8s.io", "clusterrolebindings", &[], WRITE),
        ("apiextensions.k8s.io", "customresourcedefinitions", &[], WRITE),
        ("apiextensions.k8s.io", "customresourcedefinitions/status", &[], "update"),
        ("admissionregistration.k8s.io", hooks, &[], WRITE),
    ];
    let name = format!("open-cluster-management:hosted:{}", account_name(hub));
    (role(&name, &rows), binding(&name, &name, account))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{GrpcEndpoint, GrpcExposure, plan};
    use crate::kubeconfig::HubAddress;
    use crate::values::{Kind, Values};

    fn options(release: &str, registration: &str, work: &str) -> Options {
        Options {
            bundle: Some(Bundle::parse(release).unwrap()),
            hosting: Hosting {
                mode: Some(HubMode::Hosted),
                registration: Webhook::parse(registration),
                work: Webhook::parse(work),
                expose: None,
                kubeconfig: Some(Bootstrap {
                    hub: HubAddress {
                        server: "https://hub:6443".to_owned(),
                        uid: Some("u1".to_owned()),
                        ..HubAddress::default()
                    },
                    ..Bootstrap::default()
                }),
            },
            create_namespace: true,
            ..Options::default()
        }
    }

    fn references(plan: &Plan) -> Vec<String> {
        plan.objects().map(Manifest::reference).collect()
    }

    fn manager(plan: &Plan) -> Value {
        plan.objects().find(|object| object.kind() == "ClusterManager").unwrap().body().clone()
    }

    #[test]
    fn a_hosted_hub_is_on_two_clusters() {
        let planned = plan(&options("1.2.0", "10.0.0.1:8443", "10.0.0.2:8443"), &Live::default()).unwrap();
        assert_eq!(
            references(&planned.plan),
            [
                "namespace/open-cluster-management",
                "customresourcedefinition.apiextensions.k8s.io/clustermanagers.operator.open-cluster-management.io",
                "namespace/open-cluster-management-hub",
                "serviceaccount/cluster-manager",
                "secret/open-cluster-management-image-pull-credentials",
                "clusterrole.rbac.authorization.k8s.io/cluster-manager",
                "clusterrolebinding.rbac.authorization.k8s.io/cluster-manager",
                "secret/external-hub-kubeconfig",
                "deployment.apps/cluster-manager",
                "clustermanager.operator.open-cluster-management.io/open-cluster-management-hub",
            ]
        );
        assert_eq!(
            references(planned.on_hub.as_ref().unwrap()),
            [
                "namespace/open-cluster-management",
                "serviceaccount/agent-registration-bootstrap",
                "clusterrole.rbac.authorization.k8s.io/open-cluster-management:bootstrap",
                "clusterrolebinding.rbac.authorization.k8s.io/open-cluster-management:bootstrap:agent-registration",
            ]
        );
        let secret = planned.plan.objects().find(|object| object.name() == "external-hub-kubeconfig").unwrap();
        assert_eq!(secret.body()["metadata"]["annotations"][HUB_UID], "u1");
        let webhook = |address: &str| json!({"address": address, "port": 8443, "bindConfiguration": {"port": 8443}});
        let hosted = json!({"registrationWebhookConfiguration": webhook("10.0.0.1"),
            "workWebhookConfiguration": webhook("10.0.0.2")});
        assert_eq!(manager(&planned.plan)["spec"]["deployOption"], json!({"mode": "Hosted", "hosted": hosted}));
        assert_eq!(plan(&Options::default(), &Live::default()).unwrap().on_hub, None);
    }

    #[test]
    fn a_second_run_keeps_what_was_typed_and_one_in_another_mode_is_refused() {
        let first = plan(&options("1.2.0", "10.0.0.1", "10.0.0.2"), &Live::default()).unwrap();
        let live = Live { cluster_manager: Some(manager(&first.plan)), ..Live::default() };
        let again = plan(&Options::default(), &live).unwrap();
        assert_eq!(manager(&again.plan)["spec"]["deployOption"], manager(&first.plan)["spec"]["deployOption"]);
        assert!(again.on_hub.is_some());
        let mut other = Options::default();
        other.hosting.mode = Some(HubMode::Default);
        assert_eq!(plan(&other, &live).unwrap_err(), OptionsError::OtherMode(HubMode::Hosted));
        let usual = Live {
            cluster_manager: Some(json!({"metadata": {"name": "cluster-manager"}, "spec": {}})),
            ..Live::default()
        };
        let refused = plan(&options("1.2.0", "10.0.0.1", "10.0.0.2"), &usual).unwrap_err();
        assert_eq!(refused, OptionsError::OtherMode(HubMode::Default));
    }

    #[test]
    fn a_hosted_hub_needs_addresses_that_its_release_can_have() {
        let refused = |options: Options| plan(&options, &Live::default()).unwrap_err();
        assert_eq!(refused(options("1.2.0", "10.0.0.1", "")), OptionsError::NoWebhookAddress);
        let differ = options("1.2.0", "10.0.0.1:30443", "10.0.0.1:31443");
        assert_eq!(refused(differ.clone()), OptionsError::WebhookPortsDiffer("v1.2.0".to_owned()));
        let newer = Options { bundle: Some(Bundle::parse("1.3.1").unwrap()), ..differ };
        let planned = plan(&newer, &Live::default()).unwrap();
        assert!(planned.warnings.is_empty(), "{:?}", planned.warnings);
        let told = moved_ports(&manager(&planned.plan), &Bundle::parse("1.3.1").unwrap()).unwrap();
        assert!(told.contains("such as 30443"), "{told}");
        assert_eq!(moved_ports(&manager(&planned.plan), &Bundle::parse("1.2.1").unwrap()), None);
        let low = plan(&options("1.3.1", "10.0.0.1:443", "10.0.0.2:443"), &Live::default()).unwrap();
        assert!(low.warnings.iter().any(|warning| warning.contains("none below 1024")), "{:?}", low.warnings);
        let mut plain = options("1.3.1", "10.0.0.1", "10.0.0.2");
        plain.hosting.mode = None;
        assert_eq!(refused(plain), OptionsError::NotHosted);
        let mut grpc = options("1.3.1", "10.0.0.1", "10.0.0.2");
        grpc.registration_drivers = Some(vec![Driver::Csr, Driver::Grpc]);
        assert_eq!(refused(grpc), OptionsError::HostedGrpc);
    }

    #[test]
    fn webhooks_are_exposed_where_the_hub_asks_for_them_and_where_their_pods_listen() {
        let exposed = |release: &str, addresses: [&str; 2], expose: WebhookExposure| {
            let mut options = options(release, addresses[0], addresses[1]);
            options.hosting.expose = Some(expose);
            plan(&options, &Live::default()).map(|planned| planned.plan)
        };
        let ports = |plan: &Plan| {
            let services = plan.objects().filter(|object| object.kind() == "Service").map(Manifest::body);
            let entry = |service: &Value| {
                assert_eq!(service["metadata"]["namespace"], NAME);
                let [port, target, node] =
                    ["port", "targetPort", "nodePort"].map(|member| service["spec"]["ports"][0][member].as_u64());
                (service["spec"]["selector"]["app"].as_str().unwrap().to_owned(), port, target, node)
            };
            services.map(entry).collect::<Vec<_>>()
        };
        let of = |name: &str| format!("{NAME}-{name}");
        let (registration, work) = (of("registration-webhook"), of("work-webhook"));
        let node = exposed("1.3.1", ["10.0.0.1", "10.0.0.1"], WebhookExposure::NodePort).unwrap();
        let at = |port: u64| (Some(port), Some(port), Some(port));
        let expected = |(name, (port, target, node)): (&String, _)| (name.clone(), port, target, node);
        assert_eq!(ports(&node), [(&registration, at(30443)), (&work, at(31443))].map(expected));
        let told = manager(&node);
        let hosted = &told["spec"]["deployOption"]["hosted"];
        assert_eq!(hosted["workWebhookConfiguration"]["bindConfiguration"]["port"], 31443);
        // Earlier releases have their pods listen at the usual port, whatever the address says.
        let balanced = exposed("1.2.0", ["10.0.0.1:443", "10.0.0.2:443"], WebhookExposure::LoadBalancer).unwrap();
        let behind = (Some(443), Some(9443), None);
        assert_eq!(ports(&balanced), [(&registration, behind), (&work, behind)].map(expected));
        let same = ["10.0.0.1:30443", "10.0.0.2:30443"];
        let shared = exposed("1.3.1", same, WebhookExposure::NodePort).unwrap_err();
        assert_eq!(shared, OptionsError::WebhooksShareNodePort(30443));
        let early = exposed("1.2.0", ["10.0.0.1", "10.0.0.1"], WebhookExposure::NodePort).unwrap_err();
        assert_eq!(early, OptionsError::WebhookPortsDiffer("v1.2.0".to_owned()));
        let mut elsewhere = Options::default();
        elsewhere.hosting.expose = Some(WebhookExposure::NodePort);
        assert_eq!(plan(&elsewhere, &Live::default()).unwrap_err(), OptionsError::NotHosted);
    }

    #[test]
    fn another_address_keeps_the_port_that_is_there_unless_one_is_said() {
        let with = |registration: &str, work: &str, expose: Option<WebhookExposure>| {
            let mut options = options("1.3.1", registration, work);
            options.hosting.expose = expose;
            options
        };
        let (nodes, balanced) = (Some(WebhookExposure::NodePort), Some(WebhookExposure::LoadBalancer));
        let first = plan(&with("10.0.0.1", "10.0.0.1:31500", nodes), &Live::default()).unwrap();
        let live = Live { cluster_manager: Some(manager(&first.plan)), ..Live::default() };
        let found = |options: &Options| {
            let planned = manager(&plan(options, &live).unwrap().plan);
            WEBHOOKS.map(|(member, ..)| {
                let webhook = &planned["spec"]["deployOption"]["hosted"][member];
                assert_eq!(webhook["bindConfiguration"]["port"], webhook["port"], "pods listen where they are asked");
                format!("{}:{}", webhook["address"].as_str().unwrap(), webhook["port"])
            })
        };
        assert_eq!(found(&with("10.0.0.2", "", None)), ["10.0.0.2:30443", "10.0.0.1:31500"]);
        assert_eq!(found(&with("10.0.0.2", "10.0.0.2", nodes)), ["10.0.0.2:30443", "10.0.0.2:31500"]);
        assert_eq!(found(&with("10.0.0.2:8443", "10.0.0.2", None)), ["10.0.0.2:8443", "10.0.0.2:31500"]);
        // What leads there now has other ports.
        assert_eq!(found(&with("lb1", "lb2", balanced)), ["lb1:9443", "lb2:9443"]);
    }

    #[test]
    fn a_hosted_hub_gets_no_grpc_server_whoever_asks_for_it() {
        let hosted = || options("1.3.1", "10.0.0.1", "10.0.0.2");
        let drivers = json!({"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]});
        let said = Values::read(json!({"registrationConfiguration": drivers}), Kind::ClusterManager).unwrap();
        let by_values = Options { values: said, ..hosted() };
        let refused = |options: &Options, live: &Live| plan(options, live).unwrap_err();
        assert_eq!(refused(&by_values, &Live::default()), OptionsError::HostedGrpc);
        let typed = Options { registration_drivers: Some(vec![Driver::Csr]), ..by_values };
        assert!(plan(&typed, &Live::default()).is_ok(), "what is typed stands in their place");
        // What another tool has written is left as it is, and gets nothing of ours.
        let mut theirs = manager(&plan(&hosted(), &Live::default()).unwrap().plan);
        theirs["spec"]["registrationConfiguration"] = drivers;
        theirs["spec"]["serverConfiguration"] = json!({"endpointsExposure": [{"protocol": "grpc"}]});
        let live = Live { cluster_manager: Some(theirs), ..Live::default() };
        assert!(plan(&hosted(), &live).is_ok());
        for options in [
            Options { grpc_server: Some("hub.example".to_owned()), ..hosted() },
            Options { expose_grpc: Some(GrpcExposure::NodePort), ..hosted() },
            Options { grpc_endpoint: Some(GrpcEndpoint::LoadBalancer), ..hosted() },
            Options { auto_approved_grpc_identities: vec!["u".to_owned()], ..hosted() },
        ] {
            assert_eq!(refused(&options, &live), OptionsError::HostedGrpc, "{options:?}");
        }
    }

    #[test]
    fn the_account_binds_nothing_but_what_controllers_get_and_goes_with_its_namespace() {
        let there = ObjectMeta { uid: Some("u1".to_owned()), ..ObjectMeta::default() };
        let plan = account("h", Some("hosting"), Some(&there));
        let space = plan.objects().next().unwrap();
        assert_eq!(
            (space.name(), &space.body()["metadata"]["annotations"][HOSTING_UID]),
            ("h-operator", &json!("hosting"))
        );
        let role = plan.objects().find(|object| object.kind() == "ClusterRole").unwrap().body().clone();
        assert_eq!(role["metadata"]["ownerReferences"][0]["uid"], "u1");
        let rules = role["rules"].as_array().unwrap();
        let binds = |rule: &&Value| rule["verbs"].as_array().unwrap().contains(&json!("bind"));
        let binds: Vec<&Value> = rules.iter().filter(binds).collect();
        assert_eq!(binds.len(), 1);
        let names = binds[0]["resourceNames"].as_array().unwrap();
        let is_own = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("open-cluster-management:h-"));
        assert!(!names.is_empty() && names.iter().all(is_own), "{names:?}");
        assert_eq!(account_name(&"a".repeat(60)).len(), 63);
    }
}
