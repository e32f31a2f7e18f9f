//! What the hub's operator and a registering agent may do.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use ocm_api::Manifest;
use ocm_api::names::{bootstrap, hub, namespaces, operators, secrets};

/// API groups, resources, names of objects (none: all), verbs; words are separated by blanks, `core` is the core group.
pub(crate) type Row<'a> = (&'static str, &'static str, &'a [&'a str], &'static str);

const ALL: &str = "create delete get list patch update watch";
const ALL_AND_COLLECTION: &str = "create delete deletecollection get list patch update watch";
const READ: &str = "get list watch";
const STATUS: &str = "patch update";

/// Secrets that the operator keeps.
const SECRETS: &[&str] = &[
    secrets::SIGNER,
    secrets::REGISTRATION_WEBHOOK_CERT,
    secrets::WORK_WEBHOOK_CERT,
    secrets::ADDON_WEBHOOK_CERT,
    "grpc-server-serving-cert",
    "placement-debug-serving-cert",
    "registration-controller-sa-kubeconfig",
    "registration-webhook-sa-kubeconfig",
    "work-webhook-sa-kubeconfig",
    "placement-controller-sa-kubeconfig",
    "work-controller-sa-kubeconfig",
    "addon-manager-controller-sa-kubeconfig",
    "addon-webhook-sa-kubeconfig",
    "grpc-server-sa-kubeconfig",
    secrets::EXTERNAL_HUB_KUBECONFIG,
    "work-driver-config",
    "cluster-import-config",
    secrets::IMAGE_PULL_CREDENTIALS,
];

/// The operator's rights. It can grant only what it holds, so they include those of every controller that it installs.
const OPERATOR: &[Row<'_>] = &[
    ("core", "configmaps namespaces serviceaccounts services", &[], ALL_AND_COLLECTION),
    // `subscribe` is no verb of the API server: clients of the gRPC server need it.
    ("core", "serviceaccounts/token", &[], "create subscribe"),
    ("core", "pods", &[], "get"),
    ("core", "nodes", &[], READ),
    ("core", "secrets", &[], "create"),
    ("core", "secrets", SECRETS, "delete get list patch update watch"),
    ("core events.k8s.io", "events", &[], ALL_AND_COLLECTION),
    ("coordination.k8s.io", "leases", &[], ALL),
    ("authorization.k8s.io", "subjectaccessreviews", &[], "create get"),
    ("authentication.k8s.io", "tokenreviews", &[], "create"),
    ("apps", "deployments", &[], ALL),
    ("apps", "replicasets", &[], "get"),
    ("rbac.authorization.k8s.io", "clusterrolebindings clusterroles rolebindings roles", &[], ALL),
    ("apiextensions.k8s.io", "customresourcedefinitions", &[], ALL),
    ("apiextensions.k8s.io", "customresourcedefinitions/status", &[], STATUS),
    ("apiregistration.k8s.io", "apiservices", &[], ALL),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations validatingwebhookconfigurations", &[], ALL),
    ("networking.k8s.io", "networkpolicies", &[], ALL),
    ("migration.k8s.io", "storageversionmigrations", &[], ALL),
    ("flowcontrol.apiserver.k8s.io", "flowschemas prioritylevelconfigurations", &[], READ),
    ("certificates.k8s.io", "certificatesigningrequests", &[], "create get list watch"),
    ("certificates.k8s.io", "certificatesigningrequests/approval certificatesigningrequests/status", &[], "update"),
    ("certificates.k8s.io", "signers", &[], "approve sign"),
    ("operator.open-cluster-management.io", "clustermanagers", &[], "delete get list patch update watch"),
    ("operator.open-cluster-management.io", "clustermanagers/status", &[], STATUS),
    ("cluster.open-cluster-management.io", "managedclusters", &[], "create get list patch update watch"),
    ("cluster.open-cluster-management.io", "managedclustersets placementdecisions", &[], ALL),
    ("cluster.open-cluster-management.io", "addonplacementscores managedclustersetbindings placements", &[], READ),
    (
        "cluster.open-cluster-management.io",
        "managedclusters/status managedclustersetbindings/status managedclustersets/status placementdecisions/status \
         placements/status",
        &[],
        STATUS,
    ),
    ("cluster.open-cluster-management.io", "placements/finalizers", &[], "update"),
    ("cluster.open-cluster-management.io", "managedclustersets/join", &[], "create"),
    ("register.open-cluster-management.io", "managedclusters/accept", &[], "update"),
    ("register.open-cluster-management.io", "managedclusters/clientcertificates", &[], "renew"),
    (
        "work.open-cluster-management.io",
        "manifestworks",
        &[],
        "create delete deletecollection execute-as get list patch update watch",
    ),
    ("work.open-cluster-management.io", "manifestworkreplicasets", &[], ALL_AND_COLLECTION),
    ("work.open-cluster-management.io", "manifestworkreplicasets/finalizers", &[], "update"),
    ("work.open-cluster-management.io", "manifestworkreplicasets/status manifestworks/status", &[], STATUS),
    ("addon.open-cluster-management.io", "clustermanagementaddons managedclusteraddons", &[], ALL),
    ("addon.open-cluster-management.io", "clustermanagementaddons/status managedclusteraddons/status", &[], STATUS),
    (
        "addon.open-cluster-management.io",
        "clustermanagementaddons/finalizers managedclusteraddons/finalizers",
        &[],
        "update",
    ),
    ("addon.open-cluster-management.io", "addondeploymentconfigs addontemplates", &[], READ),
    ("multicluster.x-k8s.io", "clusterprofiles", &[], ALL),
    ("multicluster.x-k8s.io", "clusterprofiles/status", &[], STATUS),
    ("config.openshift.io", "infrastructures", &[], "get"),
    ("cluster.x-k8s.io", "clusters", &[], READ),
];

/// What an agent needs until the hub knows it. Of the ConfigMaps, only those that tell the hub's address and CA.
const BOOTSTRAP: &[Row<'_>] = &[
    ("core", "configmaps", &["cluster-info", "kube-root-ca.crt", secrets::CA_BUNDLE_CONFIGMAP], "get"),
    ("certificates.k8s.io", "certificatesigningrequests", &[], "create get list watch"),
    ("cluster.open-cluster-management.io", "managedclusters", &[], "create get list watch"),
    // The hub puts new clusters into the set `default` and then asks whether their creator may do that. Other sets are
    // not for those who register clusters to choose.
    ("cluster.open-cluster-management.io", "managedclustersets/join", &[hub::DEFAULT_CLUSTER_SET], "create"),
];

/// The role of the hub's operator, and its binding.
pub fn operator_rights() -> [Manifest; 2] {
    let name = operators::CLUSTER_MANAGER;
    [Manifest::of(&role(name, OPERATOR)), Manifest::of(&binding(name, name, service_account(name)))]
}

/// The role of whoever registers clusters, and its binding to the ServiceAccount whose tokens do.
pub fn bootstrap_rights() -> [Manifest; 2] {
    let subject = service_account(bootstrap::SERVICE_ACCOUNT);
    let binding = binding(bootstrap::SERVICE_ACCOUNT_BINDING, bootstrap::CLUSTER_ROLE, subject);
    [Manifest::of(&role(bootstrap::CLUSTER_ROLE, BOOTSTRAP)), Manifest::of(&binding)]
}

/// Lets bootstrap tokens of our group register agents.
pub(crate) fn token_binding() -> ClusterRoleBinding {
    binding(bootstrap::TOKEN_BINDING, bootstrap::CLUSTER_ROLE, group(bootstrap::TOKEN_GROUP))
}

/// Lets clusters be registered into a set, and nothing else.
pub(crate) fn cluster_set_role(set: &str) -> ClusterRole {
    let name = bootstrap::cluster_set_role(set);
    let mut role = role(&name, &[(GROUP, "managedclustersets/join", &[], "create")]);
    role.rules.iter_mut().flatten().for_each(|rule| rule.resource_names = Some(vec![set.to_owned()]));
    role
}

/// Grants that to the bootstrap tokens that are in the group of the set.
pub(crate) fn cluster_set_binding(set: &str) -> ClusterRoleBinding {
    let name = bootstrap::cluster_set_role(set);
    binding(&name, &name, group(&bootstrap::cluster_set_group(set)))
}

const GROUP: &str = "cluster.open-cluster-management.io";

fn group(name: &str) -> Subject {
    Subject {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "Group".to_owned(),
        name: name.to_owned(),
        namespace: None,
    }
}

pub(crate) fn service_account(name: &str) -> Subject {
    Subject {
        api_group: None,
        kind: "ServiceAccount".to_owned(),
        name: name.to_owned(),
        namespace: Some(namespaces::OPERATOR.to_owned()),
    }
}

pub(crate) fn role(name: &str, rows: &[Row<'_>]) -> ClusterRole {
    let mut role = ClusterRole { rules: Some(rows.iter().map(rule).collect()), ..ClusterRole::default() };
    role.metadata.name = Some(name.to_owned());
    role
}

fn rule((groups, resources, names, verbs): &Row<'_>) -> PolicyRule {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let group = |group: String| if group == "core" { String::new() } else { group };
    PolicyRule {
        api_groups: Some(words(groups).into_iter().map(group).collect()),
        resources: Some(words(resources)),
        resource_names: (!names.is_empty()).then(|| names.iter().map(|name| (*name).to_owned()).collect()),
        verbs: words(verbs),
        ..PolicyRule::default()
    }
}

pub(crate) fn binding(name: &str, role: &str, subject: Subject) -> ClusterRoleBinding {
    let mut binding = ClusterRoleBinding {
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: Some(vec![subject]),
        ..ClusterRoleBinding::default()
    };
    binding.metadata.name = Some(name.to_owned());
    binding
}
