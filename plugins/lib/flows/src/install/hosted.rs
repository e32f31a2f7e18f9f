//! The hub of an installation whose pods run on another cluster: what is in the way there, how pods of the hosting cluster
//! reach it, and the account that its operator gets.

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use ocm_api::names::secrets;
use ocm_api::{ClusterManager, ManagedCluster};
use ocm_core::account::is_ours;
use ocm_core::install::mode::is_hosted;
use ocm_core::install::{Live, hosted as rules};
use ocm_core::kubeconfig::{Bootstrap, HUB_UID, HubAddress};
use ocm_core::{Event, Failure, Narrator, Plan, Reason, Remedy};
use ocm_kube::{Cluster, access};

use super::preflight;
use crate::account::{self, Account};
use crate::hub;
use crate::join::{are_one, serves};
use crate::served::or_nothing;

/// Stands in a plan for a token that is made only when the plan is carried out.
const NOT_MADE: &str = "made-when-installing";
/// What it is, for people.
const WHAT: &str = "the hub";

/// The hub of a hosted installation, and what was found out about it.
pub(super) struct Hub<'a> {
    /// The account that its operator gets there.
    pub(super) account: Account<'a>,
    /// How pods of the hosting cluster reach it.
    address: HubAddress,
}

/// Looks at the hub. Nothing is changed yet. `internal`: pods take the address that it publishes.
///
/// # Errors
/// A refusal where it is the hosting cluster itself, a hub of its own, or hosted elsewhere, or where something of somebody
/// else's has a name that is needed; when pods cannot reach it at its address; the failure of a request.
pub(super) async fn inspect<'a>(
    hosting: &Cluster,
    cluster: &'a Cluster,
    live: &Live,
    internal: bool,
    narrator: &dyn Narrator,
) -> Result<Hub<'a>, Failure> {
    let label = cluster.label();
    narrator.tell(Event::now(format!("looking at {label}")));
    apart(hosting, cluster).await?;
    let manager = live.cluster_manager.as_ref();
    let name = manager.and_then(|manager| manager["metadata"]["name"].as_str()).unwrap_or(rules::NAME).to_owned();
    let account = rules::account_name(&name);
    let (own, space, hosting_uid, uid, there, address) = futures::join!(
        own_manager(cluster),
        space(cluster, &account),
        hub::uid(hosting),
        hub::uid(cluster),
        kept(hosting, &name),
        account::address(cluster, WHAT, internal, narrator),
    );
    let (space, there, mut address) = (space?, there?, address?);
    refuse_own(own?, &label)?;
    if let Some(there) = &there
        && !is_hub(there, uid.as_deref(), cluster)
    {
        return Err(Failure::refused(format!(
            "ClusterManager {name:?} ({}) has another hub than {label}, at {}; nothing was changed",
            hosting.label(),
            there.server
        ))
        .hint(Remedy::UninstallOtherHub));
    }
    match space {
        Some(space) if !is_ours(&space.metadata) => {
            return Err(Failure::refused(format!(
                "{label} has a namespace {account:?} that is somebody else's, and the account of the operator would be in it; \
                 nothing was changed"
            ))
            .hint("delete it, or move what is in it"));
        }
        Some(space) => {
            let other = rules::hosting_uid(&space.metadata).zip(hosting_uid.as_deref());
            if other.is_some_and(|(noted, hosting)| noted != hosting) {
                return Err(Failure::refused(format!(
                    "{label} is a hub that another cluster than {} hosts; nothing was changed",
                    hosting.label()
                ))
                .hint(Remedy::UninstallAtHosting));
            }
        }
        // Nothing of ours is there, so whoever made it a hub did so in another way.
        None if manager.is_none() && serves::<ManagedCluster>(cluster).await? => {
            return Err(Failure::refused(format!(
                "{label} is a hub already, and no account of ours is on it: another operator keeps it; nothing was changed"
            ))
            .hint("take that hub away first, with what has installed it"));
        }
        None => {}
    }
    for (place, whose, name) in
        [(hosting, "hosting cluster", &name), (cluster, "hub", &name), (cluster, "hub", &account)]
    {
        let going = self::space(place, name).await?.is_some_and(|space| space.metadata.deletion_timestamp.is_some());
        if going {
            return Err(Failure::new(
                Reason::Conflict,
                format!("namespace {name:?} of the {whose} ({}) is going away; nothing was changed", place.label()),
            )
            .hint(Remedy::RunAgain));
        }
    }
    if address.ca.is_empty() {
        // Upstream: `ensureSAKubeconfigs`.
        return Err(Failure::new(
            Reason::Tls,
            format!("the kubeconfig of {label} names no CA, and the hub's controllers would verify nobody; nothing was changed"),
        )
        .hint("name a kubeconfig with the CA of the hub"));
    }
    address.uid = uid;
    let account =
        Account::new(cluster, WHAT, account, move |namespace| rules::account(&name, hosting_uid.as_deref(), namespace));
    Ok(Hub { account, address })
}

impl Hub<'_> {
    /// The kubeconfig of the account with this token; none: it is made later.
    pub(super) fn kubeconfig(&self, token: Option<&str>) -> Bootstrap {
        let token = token.unwrap_or(NOT_MADE).to_owned();
        Bootstrap { hub: self.address.clone(), token, exclusive: true, ..Bootstrap::default() }
    }

    /// Checks the server's version, and the rights on the hub.
    ///
    /// # Errors
    /// A server that is too old, missing rights, or a server that cannot be asked.
    pub(super) async fn preflight(&self, plan: &Plan, narrator: &dyn Narrator) -> Result<(), Failure> {
        preflight::may_apply(self.account.cluster, plan, preflight::PURPOSE, narrator).await?;
        access::require(self.account.cluster, preflight::PURPOSE, &self.account.rights()).await
    }
}

/// Refuses two connections that lead to one cluster.
///
/// # Errors
/// The refusal.
pub(crate) async fn apart(hosting: &Cluster, cluster: &Cluster) -> Result<(), Failure> {
    match are_one(hosting, cluster).await {
        false => Ok(()),
        true => Err(Failure::refused(format!(
            "{} and {} are one cluster: a hosted hub is another cluster than the hosting one; nothing was changed",
            hosting.label(),
            cluster.label()
        ))
        .hint("name two clusters, or let the hub's pods run on the hub itself")),
    }
}

/// Refuses a cluster that is a hub of its own: `own` is the name of its ClusterManager.
///
/// # Errors
/// The refusal.
pub(crate) fn refuse_own(own: Option<String>, label: &str) -> Result<(), Failure> {
    match own {
        None => Ok(()),
        Some(own) => Err(Failure::refused(format!(
            "{label} is a hub whose pods run on itself: it has ClusterManager {own:?}, in mode Default; nothing was changed"
        ))
        .hint("name that cluster alone, or another one as the hub")),
    }
}

/// Refuses a cluster, without a ClusterManager of its own, that is a hub which another cluster hosts.
///
/// # Errors
/// The refusal; or when its namespaces cannot be read.
pub(crate) async fn refuse_hosted(cluster: &Cluster) -> Result<(), Failure> {
    let found = space(cluster, &rules::account_name(rules::NAME)).await?;
    if !found.is_some_and(|found| is_ours(&found.metadata) && rules::hosting_uid(&found.metadata).is_some()) {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "the pods of the hub ({}) run on another cluster, which hosts it; nothing was changed",
        cluster.label()
    ))
    .hint("name the cluster that hosts it, and this one as its hub"))
}

/// The ClusterManager of a hub whose pods run on itself; none where there is none.
///
/// # Errors
/// When they cannot be listed.
pub(crate) async fn own_manager(cluster: &Cluster) -> Result<Option<String>, Failure> {
    let api: Api<ClusterManager> = Api::all(cluster.client.clone());
    let listed = api.list(&ListParams::default()).await;
    let all =
        or_nothing(listed.map(|list| list.items).map_err(|error| cluster.explain("list ClusterManagers", error)))?;
    Ok(all.into_iter().find(|one| !is_hosted(one)).and_then(|one| one.metadata.name))
}

/// How the operator of a hosting cluster reaches its hub; none where no Secret says that in a way that can be read.
///
/// # Errors
/// When it cannot be asked.
pub(crate) async fn kept(hosting: &Cluster, name: &str) -> Result<Option<HubAddress>, Failure> {
    let secret = secrets::EXTERNAL_HUB_KUBECONFIG;
    let api: Api<Secret> = Api::namespaced(hosting.client.clone(), name);
    let found = api.get_opt(secret).await;
    let found = found.map_err(|error| hosting.explain(format_args!("read Secret {name}/{secret}"), error))?;
    let Some(mut found) = found else { return Ok(None) };
    let text = found.data.as_mut().and_then(|data| data.remove(secrets::KUBECONFIG_KEY));
    let text = text.and_then(|text| String::from_utf8(text.0).ok()).unwrap_or_default();
    let noted = found.metadata.annotations.and_then(|mut all| all.remove(HUB_UID)).filter(|uid| !uid.is_empty());
    Ok(hub::parse(&text).map(|kubeconfig| HubAddress { uid: noted, ..kubeconfig.hub }))
}

/// Whether the hub that an operator keeps is this cluster, whose UID this is, where it is known.
pub(crate) fn is_hub(kept: &HubAddress, uid: Option<&str>, cluster: &Cluster) -> bool {
    match (kept.uid.as_deref(), uid) {
        (Some(noted), Some(uid)) => noted == uid,
        _ => kept.is_at(&cluster.server),
    }
}

/// A namespace's metadata.
async fn space(cluster: &Cluster, name: &str) -> Result<Option<PartialObjectMeta<Namespace>>, Failure> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let found = api.get_metadata_opt(name).await;
    found.map_err(|error| cluster.explain(format_args!("read namespace {name:?}"), error))
}
