//! What is checked before a hub is installed.

use futures::future::join_all;
use ocm_core::{DryRun, Event, Failure, Narrator, Plan};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use ocm_kube::apply;
use ocm_net::Endpoint;

/// What the rights are needed for.
pub(super) const PURPOSE: &str = "install a hub";

/// A release of Kubernetes.
pub(super) struct Version {
    /// Major and minor number.
    pub(super) number: (u32, u32),
    /// As the server says it.
    pub(super) text: String,
}

/// Which release of Kubernetes the server runs.
///
/// # Errors
/// When it cannot be asked.
pub(super) async fn server_version(cluster: &Cluster) -> Result<Version, Failure> {
    let version = cluster.client.apiserver_version().await;
    let version = version.map_err(|error| cluster.explain("ask for the server's version", error))?;
    // Vendors write `30+`.
    let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or_default();
    Ok(Version { number: (number(&version.major), number(&version.minor)), text: version.git_version })
}

/// Checks what can be checked before anything is changed: the server's version, our rights, the hub's address `server`.
///
/// # Errors
/// A server that is too old, missing rights, or a server that cannot be asked.
pub(super) async fn preflight(
    cluster: &Cluster,
    plan: &Plan,
    server: &str,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    may_apply(cluster, plan, PURPOSE, narrator).await?;
    if Endpoint::parse(server, None).is_ok_and(|endpoint| endpoint.is_loopback()) {
        narrator.tell(Event::note(format!(
            "the hub's address {server} only works on this machine: clusters that join have to be told another one"
        )));
    }
    Ok(())
}

/// Checks the server's version, and our rights to apply a plan that installs an operator and grants it its own.
///
/// # Errors
/// A server that is too old, missing rights, or a server that cannot be asked.
pub(crate) async fn may_apply(
    cluster: &Cluster,
    plan: &Plan,
    purpose: &str,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    narrator.tell(Event::now("checking the server and your rights"));
    let version = server_version(cluster).await?;
    if version.number < (1, 22) {
        return Err(Failure::refused(format!(
            "the cluster runs Kubernetes {}; Open Cluster Management needs 1.22 or newer",
            version.text
        )));
    }
    access::require(cluster, purpose, &access::to_apply(plan)).await?;
    // Nobody can grant what they do not hold, unless they may escalate. Then the server is asked object by object.
    let group = "rbac.authorization.k8s.io";
    let escalate = [Right::new("escalate", group, "clusterroles"), Right::new("bind", group, "clusterroles")];
    if !access::missing(cluster, &escalate).await?.is_empty() {
        let roles = plan.objects().filter(|manifest| manifest.kind() == "ClusterRole");
        for failure in join_all(roles.map(|role| apply::one(cluster, role, DryRun::Server))).await {
            if let Err(failure) = failure {
                return Err(failure
                    .context("your user cannot grant what the operator needs; nothing was changed")
                    .hint("do it as cluster-admin, or have the rights to escalate and bind ClusterRoles"));
            }
        }
    }
    Ok(())
}
