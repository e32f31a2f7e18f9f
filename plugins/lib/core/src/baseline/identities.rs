//! Who is who, in CEL: [`ocm_rules::identity`].

use ocm_rules::identity::{AWS_PREFIX, GRPC_SERVER_USER, MANAGED_CLUSTERS_GROUP, PREFIX};

use super::cel::text;

/// User name of a bootstrap token, as a regular expression.
pub(super) const BOOTSTRAP_TOKEN: &str = "^system:bootstrap:[a-z0-9]{6}$";

/// Whether somebody is an agent, has another name of the hub's, or is the hub's gRPC server, which writes for agents.
/// Agents with an AWS identity are known by their cluster's group alone.
pub(crate) fn is_agent(user: &str) -> String {
    format!(
        "{user}.username == {} || {user}.username.startsWith({prefix}) || \
         {user}.?groups.orValue([]).exists(g, {})",
        text(GRPC_SERVER_USER),
        is_clusters_group("g"),
        prefix = text(PREFIX),
    )
}

/// Whether a group is that of one cluster's agents.
fn is_clusters_group(group: &str) -> String {
    format!(
        "{group} != {} && {group}.matches({})",
        text(MANAGED_CLUSTERS_GROUP),
        text(&format!("^({PREFIX}|{AWS_PREFIX})[^:]+$")),
    )
}

/// Whether somebody is the agent with an AWS identity of the cluster that `cluster` evaluates to:
/// [`ocm_rules::identity::Requester::is_aws_agent_of`].
pub(super) fn is_aws_agent_of(name: &str, groups: &str, cluster: &str) -> String {
    let (prefix, aws) = (text(PREFIX), text(AWS_PREFIX));
    format!(
        "({name} == {cluster} && ({aws} + {cluster}) in {groups} && \
         {groups}.all(g, !({}) || g == {prefix} + {cluster} || g == {aws} + {cluster}))",
        is_clusters_group("g"),
    )
}

/// Whether an agent is one of the cluster that `cluster` evaluates to, or of one of its add-ons. For whom the gRPC server
/// writes is not in the request: it may have written for any.
pub(super) fn is_of_cluster(user: &str, cluster: &str) -> String {
    let name = format!("{user}.username");
    let groups = format!("{user}.?groups.orValue([]).filter(g, {})", is_clusters_group("g"));
    let own_name =
        format!("({name}.startsWith({} + {cluster} + \":\") && {name}.split(\":\").size() == 4)", text(PREFIX));
    let own_addon = format!("{name}.startsWith({} + {cluster} + \":addon:\")", text(&format!("{PREFIX}cluster:")));
    let own_group = format!(
        "(!{name}.startsWith({prefix}) && {groups}.all(g, g == {prefix} + {cluster} || g == {aws} + {cluster}))",
        prefix = text(PREFIX),
        aws = text(AWS_PREFIX),
    );
    format!("({name} == {} || {own_name} || {own_addon} || {own_group})", text(GRPC_SERVER_USER))
}
