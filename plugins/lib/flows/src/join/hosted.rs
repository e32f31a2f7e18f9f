//! The managed cluster of a hosted join: what is in the way there, how pods of the hosting cluster reach it, and the
//! account that its operator gets.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use ocm_core::join::hosted::{self as rules, is_ours};
use ocm_core::join::membership::own;
use ocm_core::kubeconfig::{Bootstrap, HubAddress};
use ocm_core::{Failure, Narrator, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access;

use super::request::Request;
use super::survey::{leaving, old_namespaces_gone};
use crate::account::{Account, address};
use crate::observe::managed as observe;

/// What it is, for people.
const WHAT: &str = "the managed cluster";

/// The managed cluster of a hosted join, and what was found out about it.
pub(super) struct Guest<'a> {
    /// The account that its operator gets there.
    pub(super) account: Account<'a>,
    /// How pods of the hosting cluster reach it.
    pub(super) address: HubAddress,
}

/// Looks at the managed cluster. Nothing is changed yet; what an earlier account there leaves is waited for until it is gone.
///
/// # Errors
/// A refusal where it has an agent of its own or of another Klusterlet, or a foreign namespace is in the way; when pods
/// cannot reach it at its address; the failure of a request.
pub(super) async fn inspect<'a>(
    cluster: &'a Cluster,
    klusterlet: &str,
    request: &Request,
    narrator: &dyn Narrator,
) -> Result<Guest<'a>, Failure> {
    let spaces: Api<Namespace> = Api::all(cluster.client.clone());
    let (klusterlets, agents, space, address) = futures::join!(
        observe::klusterlets(cluster),
        observe::other_agents(cluster, Some(klusterlet)),
        spaces.get_metadata_opt(klusterlet),
        address(cluster, WHAT, request.internal_managed, narrator),
    );
    let label = cluster.label();
    if let Some(name) = own(&klusterlets?).next().and_then(|own| own.metadata.name.as_deref()) {
        return Err(Failure::refused(format!(
            "{label} has a Klusterlet of its own, {name:?}, and is not moved to a hosted mode as it is: unjoin it first; \
             nothing was changed"
        ))
        .hint(Remedy::Unjoin("CLUSTER".to_owned())));
    }
    if let Some(other) = agents?.first() {
        return Err(Failure::refused(format!(
            "the agents of another Klusterlet, {other:?}, have rights on {label}: it is managed from elsewhere already; \
             nothing was changed"
        ))
        .hint("take that Klusterlet away where it is first"));
    }
    let space = space.map_err(|error| cluster.explain(format_args!("read namespace {klusterlet:?}"), error))?;
    if space.as_ref().is_some_and(|space| !is_ours(&space.metadata)) {
        return Err(Failure::refused(format!(
            "{label} has a namespace {klusterlet:?} that is somebody else's, and the account of the operator would be in it; \
             nothing was changed"
        ))
        .hint("choose another name for the cluster"));
    }
    if let (Some(name), true) = (space.and_then(leaving), request.mode.changes()) {
        old_namespaces_gone(cluster, &[name], request.timeout, narrator).await?;
    }
    let name = klusterlet.to_owned();
    let account = Account::new(cluster, WHAT, name.clone(), move |namespace| rules::account(&name, namespace));
    Ok(Guest { account, address: address? })
}

impl Guest<'_> {
    /// The kubeconfig of the account with this token.
    pub(super) fn kubeconfig(&self, token: &str) -> Bootstrap {
        Bootstrap { hub: self.address.clone(), token: token.to_owned(), exclusive: true, ..Bootstrap::default() }
    }

    /// Checks the rights on the managed cluster.
    ///
    /// # Errors
    /// [`ocm_core::Reason::Forbidden`] with those that are missing; the failure of a request.
    pub(super) async fn check_rights(&self) -> Result<(), Failure> {
        let rights = self.account.rights();
        access::require(self.account.cluster, "let an operator elsewhere manage the cluster", &rights).await
    }
}
