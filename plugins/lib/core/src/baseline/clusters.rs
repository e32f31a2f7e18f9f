//! Managed clusters: rules M1 to M6.

use ocm_rules::Code;
use ocm_rules::cluster::{ACCEPTED_BY_HUB, CLUSTER_SET, DEFAULT_SET};
use ocm_rules::identity::{BOOTSTRAP_USER, GRPC_SERVER_USER, OWN_NAMES, PREFIX};

use super::cel::{any, grants, list, of_any, text};
use super::policy::{Check, Policy, Rule};
use super::{Settings, identities};

/// Name of the policy.
pub(super) const NAME: &str = "managedclusters.baseline.kubectl-ocm.dev";

const LABELS: &str = "object.metadata.?labels.orValue({})";
const ANNOTATIONS: &str = "object.metadata.?annotations.orValue({})";
/// OCM's schema of managed clusters does not require a spec: neither does any expression here.
const ACCEPTED: &str = "object.?spec.?hubAcceptsClient.orValue(false)";

/// OCM's webhook puts what has no set into the default one, whoever writes.
const BY_HUB: &str = "(variables.oldSet == \"\" && variables.set == \"default\")";

/// The policy, without what shows that it is in force.
pub(super) fn rules(settings: &Settings) -> Policy {
    let mut checks = creation(settings);
    checks.extend(registration(settings));
    checks.extend(rights());
    checks.extend(agents(settings));
    Policy {
        name: NAME,
        rules: vec![Rule {
            group: "cluster.open-cluster-management.io",
            version: "*",
            resource: "managedclusters",
            operations: &["CREATE", "UPDATE"],
        }],
        conditions: Vec::new(),
        variables: variables(settings),
        checks,
    }
}

fn variables(settings: &Settings) -> Vec<(&'static str, String)> {
    let user = "request.userInfo.username";
    let registers = format!(
        "{user} in {} || {user}.matches({}) || {user}.startsWith({})",
        list(
            [BOOTSTRAP_USER, GRPC_SERVER_USER]
                .into_iter()
                .chain(settings.requests.requesters.iter().map(String::as_str))
        ),
        text(identities::BOOTSTRAP_TOKEN),
        text(PREFIX),
    );
    let may = |resource: &str, verb: &str| format!("authorizer.{resource}.check({}).allowed()", text(verb));
    // What whoever registers a cluster may not bring.
    let foreign = |map: &str, patterns: &[String], known: &[&str]| {
        let granted = any([format!("k in {}", list(known.iter().copied())), grants(patterns, "k")]);
        format!("variables.registers ? {map}.map(k, k).filter(k, !({granted})) : []")
    };
    let accept = "group(\"register.open-cluster-management.io\").resource(\"managedclusters\").subresource(\"accept\")\
                  .name(object.metadata.name)";
    let join = |set: &str| {
        let sets =
            "group(\"cluster.open-cluster-management.io\").resource(\"managedclustersets\").subresource(\"join\")";
        may(&format!("{sets}.name({set})"), "create")
    };
    vec![
        ("created", "request.operation == \"CREATE\"".to_owned()),
        ("registers", format!("variables.created && ({registers})")),
        ("agent", format!("!variables.created && ({})", identities::is_agent("request.userInfo"))),
        ("labels", LABELS.to_owned()),
        ("annotations", ANNOTATIONS.to_owned()),
        ("accepted", ACCEPTED.to_owned()),
        ("set", format!("variables.labels[?{}].orValue(\"\")", text(CLUSTER_SET))),
        ("oldLabels", format!("variables.created ? {{}} : {}", old(LABELS))),
        ("oldAnnotations", format!("variables.created ? {{}} : {}", old(ANNOTATIONS))),
        ("wasAccepted", format!("!variables.created && {}", old(ACCEPTED))),
        ("oldSet", format!("variables.oldLabels[?{}].orValue(\"\")", text(CLUSTER_SET))),
        ("foreignLabels", foreign("variables.labels", &settings.clusters.labels, &[CLUSTER_SET])),
        ("foreignAnnotations", foreign("variables.annotations", &settings.clusters.annotations, &[])),
        ("mayAccept", may(accept, "update")),
        (
            "mayMove",
            format!(
                "(variables.set == \"\" || {}) && (variables.oldSet == \"\" || {})",
                join("variables.set"),
                join("variables.oldSet")
            ),
        ),
    ]
}

/// The same of the object as it was.
fn old(expression: &str) -> String {
    expression.replacen("object.", "oldObject.", 1)
}

/// What binds everybody who creates a cluster, [`ocm_rules::cluster::creation`], and of it what binds everybody who accepts one,
/// [`ocm_rules::name::acceptance`].
fn creation(settings: &Settings) -> Vec<Check> {
    let name = "object.metadata.name";
    let label = text("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$");
    let known = format!("{name} in {}", list(ocm_rules::name::RESERVED.iter().copied()));
    let prefixes =
        ocm_rules::name::RESERVED_PREFIXES.iter().map(|prefix| format!("{name}.startsWith({})", text(prefix)));
    let reserved = any([known].into_iter().chain(prefixes).chain([of_any(&settings.clusters.reserved, name)]));
    let addons = list(OWN_NAMES.iter().map(|names| names.cluster));
    let lease = "object.?spec.?leaseDurationSeconds";
    let (least, most) = (settings.clusters.min_lease_seconds, settings.clusters.max_lease_seconds);
    vec![
        Check::new(
            Code::NameForm,
            "the name of a managed cluster has to be a DNS label of at most 63 characters",
            format!("!variables.created || {name}.matches({label})"),
        ),
        Check::new(Code::NameReserved, "the hub uses this name itself", format!("!variables.created || !({reserved})")),
        Check::new(
            Code::NameReserved,
            "certificates of an add-on would have the rights of a cluster of this name",
            format!("!({name} in {addons}) || (!variables.created && (!variables.accepted || variables.wasAccepted))"),
        ),
        Check::new(
            Code::LeaseDuration,
            "the lease duration of a managed cluster is too short or too long",
            format!(
                "!variables.created || !{lease}.hasValue() || ({lease}.value() >= {least} && {lease}.value() <= {most})"
            ),
        ),
    ]
}

/// What besides binds those who register clusters: [`ocm_rules::cluster::registration`].
fn registration(settings: &Settings) -> Vec<Check> {
    let kept = |holds: String| format!("!variables.registers || {holds}");
    let none = |field: &str| kept(format!("object.{field}.orValue([]).size() == 0"));
    let sets = list(["", DEFAULT_SET].into_iter().chain(settings.clusters.cluster_sets.iter().map(String::as_str)));
    vec![
        Check::new(
            Code::AcceptedAtCreation,
            "whoever registers a cluster cannot create it as accepted",
            kept("!variables.accepted".to_owned()),
        ),
        Check::new(
            Code::ClusterSet,
            "whoever registers a cluster cannot choose its cluster set",
            kept(format!("variables.set in {sets}")),
        ),
        Check::none_of(Code::Labels, "whoever registers a cluster cannot set these labels", "variables.foreignLabels"),
        Check::none_of(
            Code::Annotations,
            "whoever registers a cluster cannot set these annotations",
            "variables.foreignAnnotations",
        ),
        Check::new(Code::Taints, "whoever registers a cluster cannot set taints", none("?spec.?taints")),
        Check::new(Code::Finalizers, "whoever registers a cluster cannot set finalizers", none("metadata.?finalizers")),
        Check::new(
            Code::OwnerReferences,
            "whoever registers a cluster cannot set owner references",
            none("metadata.?ownerReferences"),
        ),
    ]
}

/// What takes a right of its own, as OCM's webhook asks for it: that one may be missing, this one is not.
fn rights() -> Vec<Check> {
    vec![
        Check::new(
            Code::HubAcceptsClient,
            "to accept a cluster takes the right to update managedclusters/accept in the group \
             register.open-cluster-management.io",
            "!variables.accepted || variables.wasAccepted || variables.mayAccept",
        ),
        Check::new(
            Code::ClusterSet,
            "to change the cluster set of a cluster takes the right to create managedclustersets/join for both sets",
            format!("variables.set == variables.oldSet || {BY_HUB} || variables.mayMove"),
        ),
        Check::new(
            Code::HubAcceptsClient,
            "the annotation that keeps the hub from accepting a cluster by itself may be changed and removed only by those \
             who may accept it",
            format!(
                "!({annotation} in variables.oldAnnotations) || ({annotation} in variables.annotations && \
                 variables.annotations[{annotation}] == variables.oldAnnotations[{annotation}]) || variables.mayAccept",
                annotation = text(ACCEPTED_BY_HUB)
            ),
        ),
    ]
}

/// What agents may change of their own clusters: [`ocm_rules::cluster::agent_change`].
fn agents(settings: &Settings) -> Vec<Check> {
    let may_not = |code, sentence, same: String| Check::new(code, sentence, format!("!variables.agent || {same}"));
    let list = |field: &str| format!("object.{field}.orValue([]) == oldObject.{field}.orValue([])");
    let same = |field: &str| format!("object.{field} == oldObject.{field}");
    let own = format!("({})", grants(&settings.agents.annotations, "k"));
    let within = |one: &str, other: &str| {
        format!(
            "variables.{one}.all(k, {own} || (k in variables.{other} && variables.{one}[k] == variables.{other}[k]))"
        )
    };
    let rest = |one: &str, other: &str| {
        let set = text(CLUSTER_SET);
        format!(
            "variables.{one}.all(k, k == {set} || (k in variables.{other} && variables.{one}[k] == variables.{other}[k]))"
        )
    };
    let known = "[\"hubAcceptsClient\", \"leaseDurationSeconds\", \"managedClusterClientConfigs\", \"taints\"]";
    let fields = |one: &str, other: &str| {
        let (one, other) = (format!("{one}.?spec.orValue({{}})"), format!("{other}.?spec.orValue({{}})"));
        format!("{one}.all(k, k in {known} || (k in {other} && {one}[k] == {other}[k]))")
    };
    let mut checks = vec![
        may_not(
            Code::OtherCluster,
            "an agent may not write to another cluster",
            identities::is_of_cluster("request.userInfo", "object.metadata.name"),
        ),
        may_not(
            Code::Labels,
            "an agent may not change the labels of its cluster",
            format!(
                "(variables.labels == variables.oldLabels || ({BY_HUB} && {} && {}))",
                rest("oldLabels", "labels"),
                rest("labels", "oldLabels")
            ),
        ),
        may_not(
            Code::Annotations,
            "an agent may not change these annotations of its cluster",
            format!("({} && {})", within("annotations", "oldAnnotations"), within("oldAnnotations", "annotations")),
        ),
        may_not(Code::Taints, "an agent may not change the taints of its cluster", list("?spec.?taints")),
        may_not(
            Code::Finalizers,
            "an agent may not change the finalizers of its cluster",
            list("metadata.?finalizers"),
        ),
        may_not(
            Code::OwnerReferences,
            "an agent may not change the owner references of its cluster",
            list("metadata.?ownerReferences"),
        ),
        may_not(
            Code::LeaseDuration,
            "an agent may not change the lease duration of its cluster",
            same("?spec.?leaseDurationSeconds"),
        ),
        may_not(
            Code::HubAcceptsClient,
            "an agent may not change the acceptance of its cluster",
            "variables.accepted == variables.wasAccepted".to_owned(),
        ),
        may_not(
            Code::OtherFields,
            "an agent may not change other fields of its cluster",
            format!("({} && {})", fields("object", "oldObject"), fields("oldObject", "object")),
        ),
    ];
    if !settings.agents.client_configs {
        checks.push(may_not(
            Code::ClientConfigs,
            "an agent may not change how the hub reaches its cluster",
            list("?spec.?managedClusterClientConfigs"),
        ));
    }
    checks
}
