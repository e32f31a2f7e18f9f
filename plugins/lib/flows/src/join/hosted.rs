//! The managed cluster of a hosted join: what is in the way there, how pods of the hosting cluster reach it, and the
//! account that its operator gets.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use ocm_core::join::hosted::{self as rules, is_ours, is_token};
use ocm_core::join::state::own;
use ocm_core::kubeconfig::{Bootstrap, HubAddress};
use ocm_core::plan::{Applied, Mode};
use ocm_core::{Event, Failure, Narrator, Plan, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::wait::{Check, until};
use ocm_kube::{Cluster, apply};
use ocm_net::Endpoint;

use crate::hub;
use crate::observe::managed as observe;

/// How long Kubernetes may take to make a token, which it does at once where it is well.
const TOKEN: Duration = Duration::from_secs(30);
/// Time between two looks at it.
const PAUSE: Duration = Duration::from_millis(200);

/// The managed cluster of a hosted join, and what was found out about it.
pub(super) struct Guest<'a> {
    pub(super) cluster: &'a Cluster,
    /// How pods of the hosting cluster reach it.
    pub(super) address: HubAddress,
    /// Name of the Klusterlet, and of the account.
    klusterlet: String,
}

/// Looks at the managed cluster. Nothing is changed yet. `internal`: pods take the address that it publishes.
///
/// # Errors
/// A refusal where it has an agent of its own or of another Klusterlet, or a foreign namespace is in the way; when pods
/// cannot reach it at its address; the failure of a request.
pub(super) async fn look<'a>(
    cluster: &'a Cluster,
    klusterlet: &str,
    internal: bool,
    narrator: &dyn Narrator,
) -> Result<Guest<'a>, Failure> {
    let spaces: Api<Namespace> = Api::all(cluster.client.clone());
    let (klusterlets, agents, space, address) = futures::join!(
        observe::klusterlets(cluster),
        observe::other_agents(cluster, Some(klusterlet)),
        spaces.get_metadata_opt(klusterlet),
        address(cluster, internal, narrator),
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
    if space.is_some_and(|space| !is_ours(&space.metadata)) {
        return Err(Failure::refused(format!(
            "{label} has a namespace {klusterlet:?} that is somebody else's, and the account of the operator would be in it; \
             nothing was changed"
        ))
        .hint("choose another name for the cluster"));
    }
    Ok(Guest { cluster, address: address?, klusterlet: klusterlet.to_owned() })
}

/// How pods of another cluster reach this one, by an address that was seen to be vouched for.
async fn address(cluster: &Cluster, internal: bool, narrator: &dyn Narrator) -> Result<HubAddress, Failure> {
    let label = cluster.label();
    if cluster.insecure {
        return Err(Failure::new(
            Reason::Tls,
            format!("{label} is not verified: its kubeconfig says insecure-skip-tls-verify; nothing was changed"),
        )
        .because("the operator would be given the credentials of whoever answers")
        .hint("name a kubeconfig with the CA of the managed cluster"));
    }
    if let Some(name) = &cluster.tls_server_name {
        return Err(Failure::new(
            Reason::Tls,
            format!("the kubeconfig of {label} says tls-server-name {name:?}, which operators do not heed; nothing was changed"),
        )
        .hint("name a kubeconfig with an address that the certificate of the managed cluster is for"));
    }
    let mut server = cluster.server.clone();
    let mut endpoint = Endpoint::parse(&server, None)?;
    let mut candidates: Vec<Vec<Vec<u8>>> = cluster.ca.iter().cloned().collect();
    if internal || endpoint.is_loopback() {
        let published = hub::cluster_info(cluster).await?;
        let usable = published.and_then(|info| Some((Endpoint::parse(&info.server, None).ok()?, info)));
        let Some((found, info)) = usable.filter(|(endpoint, _)| !endpoint.is_loopback()) else {
            let failure = match internal {
                true => Failure::new(
                    Reason::NotFound,
                    format!("{label} publishes no address for others; nothing was changed"),
                )
                .because("kube-public/cluster-info is not there, may not be read, or names none that others reach"),
                false => Failure::usage(format!(
                    "pods of the hosting cluster cannot reach the managed cluster at {server}: to a pod that is the pod itself"
                )),
            };
            return Err(failure.hint("name a kubeconfig with the address at which other machines reach it"));
        };
        narrator.tell(Event::note(format!(
            "the operator reaches the managed cluster at {}, the address in its kube-public/cluster-info",
            info.server
        )));
        (endpoint, server) = (found, info.server);
        candidates.extend([info.ca, hub::root_ca(cluster).await?]);
    }
    let mut trouble = None;
    for candidate in candidates.iter().filter(|candidate| !candidate.is_empty()) {
        match hub::vouching(&endpoint, candidate).await {
            Ok(ca) => return Ok(HubAddress { server, ca, ..HubAddress::default() }),
            Err(failure) => trouble = trouble.or(Some(failure)),
        }
    }
    match trouble {
        Some(failure) => Err(failure.hint("name a kubeconfig with the CA of the managed cluster")),
        // The authorities of the system vouch for it here, and do in the operator's pod.
        None => Ok(HubAddress { server, ..HubAddress::default() }),
    }
}

impl Guest<'_> {
    /// The kubeconfig of the account with this token.
    pub(super) fn kubeconfig(&self, token: &str) -> Bootstrap {
        Bootstrap { hub: self.address.clone(), token: token.to_owned(), exclusive: true, ..Bootstrap::default() }
    }

    /// The account as it would be made.
    pub(super) fn plan(&self) -> Plan {
        rules::account(&self.klusterlet, None)
    }

    /// Checks the rights on the managed cluster.
    ///
    /// # Errors
    /// [`Reason::Forbidden`] with those that are missing; the failure of a request.
    pub(super) async fn check_rights(&self) -> Result<(), Failure> {
        let mut rights = access::to_apply(&self.plan());
        for verb in ["escalate", "bind"] {
            rights.push(Right::new(verb, "rbac.authorization.k8s.io", "clusterroles"));
        }
        for verb in ["create", "get", "list", "delete"] {
            rights.push(Right::new(verb, "", "secrets").within(&self.klusterlet));
        }
        access::require(self.cluster, "let an operator elsewhere manage the cluster", &rights).await
    }

    /// Makes or tries the account. `each` hears of every object, and that it is on the managed cluster.
    ///
    /// # Errors
    /// The failure of a request.
    pub(super) async fn account(
        &self,
        mode: Mode,
        narrator: &dyn Narrator,
        each: &mut impl FnMut(&Cluster, &Applied),
    ) -> Result<Vec<Applied>, Failure> {
        let mut each = |applied: &Applied| each(self.cluster, applied);
        if !mode.changes() {
            return apply::plan(self.cluster, &self.plan(), mode.dry_run(), narrator, each).await;
        }
        // The namespace comes first: it owns the rights.
        let mut space = self.plan();
        space.stages.truncate(1);
        let mut applied = apply::plan(self.cluster, &space, mode.dry_run(), narrator, &mut each).await?;
        let name = &self.klusterlet;
        let spaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        let space = spaces.get_metadata(name).await;
        let space = space.map_err(|error| self.cluster.explain(format_args!("read namespace {name:?}"), error))?;
        let mut rest = rules::account(name, Some(&space.metadata));
        rest.stages.remove(0);
        applied.extend(apply::plan(self.cluster, &rest, mode.dry_run(), narrator, &mut each).await?);
        Ok(applied)
    }

    /// Has Kubernetes make a token of the account. The name of its Secret, and the token.
    ///
    /// # Errors
    /// [`Reason::TimedOut`], or the failure of a request.
    pub(super) async fn token(&self, narrator: &dyn Narrator) -> Result<(String, String), Failure> {
        let secrets = self.secrets();
        let explained = |error| self.cluster.explain("make a token for the operator's account", error);
        let made = secrets.create(&PostParams::default(), &rules::token(&self.klusterlet)).await.map_err(explained)?;
        let name = made.metadata.name.unwrap_or_default();
        let doing = "waiting for the token of the operator's account";
        let token = until(doing, Instant::now() + TOKEN, PAUSE, narrator, async || {
            let found = secrets.get(&name).await.map_err(explained)?;
            let token =
                found.data.and_then(|mut data| data.remove("token")).and_then(|token| String::from_utf8(token.0).ok());
            Ok(match token.filter(|token| !token.is_empty()) {
                Some(token) => Check::Ready(token),
                None => Check::Unwatched("Kubernetes has not made it yet".to_owned()),
            })
        })
        .await?;
        Ok((name, token))
    }

    /// Deletes every token of the account but this one: whoever holds one of them gets in no more.
    ///
    /// # Errors
    /// The failure of a request.
    pub(super) async fn revoke_all_but(&self, kept: &str, narrator: &dyn Narrator) -> Result<(), Failure> {
        let secrets = self.secrets();
        let explained = |error| self.cluster.explain("revoke tokens of the operator's account", error);
        let all = secrets.list_metadata(&ListParams::default()).await.map_err(explained)?.items;
        let old = all.into_iter().map(|secret| secret.metadata).filter(|secret| {
            is_token(secret, &self.klusterlet) && secret.name.as_deref().is_some_and(|name| name != kept)
        });
        let mut revoked = 0;
        for secret in old {
            let pinned = Preconditions { uid: secret.uid, resource_version: None };
            let params = DeleteParams { preconditions: Some(pinned), ..DeleteParams::default() };
            match secrets.delete(secret.name.as_deref().unwrap_or_default(), &params).await {
                Ok(_) => revoked += 1,
                Err(error) => match ocm_kube::explain(&error).reason {
                    Reason::NotFound | Reason::Conflict => {}
                    _ => return Err(explained(error)),
                },
            }
        }
        if revoked > 0 {
            narrator.tell(Event::note("the former token of the operator's account on the managed cluster was revoked"));
        }
        Ok(())
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.cluster.client.clone(), &self.klusterlet)
    }
}
