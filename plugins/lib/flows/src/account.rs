//! An account of ours on one cluster, for an operator that runs on another one: how pods there reach the cluster, the account
//! and its rights, and its token, which replaces the former ones.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use ocm_api::Manifest;
use ocm_core::account::{self as rules, is_former, is_token};
use ocm_core::kubeconfig::HubAddress;
use ocm_core::plan::{Applied, Mode};
use ocm_core::{Event, Failure, Narrator, Plan, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::wait::{Check, until};
use ocm_kube::{Cluster, apply};
use ocm_net::Endpoint;

use crate::hub;

/// How long Kubernetes may take to make a token, which it does at once where it is well.
const TOKEN: Duration = Duration::from_secs(30);
/// Time between two looks at it.
const PAUSE: Duration = Duration::from_millis(200);

/// The account and its rights as they would be made, with the namespace that owns the rights where it is there.
type Planned<'a> = Box<dyn Fn(Option<&ObjectMeta>) -> Plan + Send + Sync + 'a>;

/// An account.
pub(crate) struct Account<'a> {
    /// Where it is.
    pub(crate) cluster: &'a Cluster,
    /// What that cluster is, for people: `the managed cluster`.
    what: &'static str,
    /// Its name, and that of its namespace.
    name: String,
    planned: Planned<'a>,
}

impl<'a> Account<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        what: &'static str,
        name: String,
        planned: impl Fn(Option<&ObjectMeta>) -> Plan + Send + Sync + 'a,
    ) -> Self {
        Self { cluster, what, name, planned: Box::new(planned) }
    }

    /// The account as it would be made.
    pub(crate) fn plan(&self) -> Plan {
        (self.planned)(None)
    }

    /// The rights that making it needs.
    pub(crate) fn rights(&self) -> Vec<Right> {
        let mut rights = access::to_apply(&self.plan());
        for verb in ["escalate", "bind"] {
            rights.push(Right::new(verb, "rbac.authorization.k8s.io", "clusterroles"));
        }
        for verb in ["create", "get", "list", "delete"] {
            rights.push(Right::new(verb, "", "secrets").within(&self.name));
        }
        rights
    }

    /// Makes or tries the account. `each` hears of every object, and where it is.
    ///
    /// # Errors
    /// The failure of a request.
    pub(crate) async fn make(
        &self,
        mode: Mode,
        narrator: &dyn Narrator,
        each: &mut dyn FnMut(&Cluster, &Applied),
    ) -> Result<Vec<Applied>, Failure> {
        let mut each = |applied: &Applied| each(self.cluster, applied);
        if !mode.changes() {
            return apply::plan(self.cluster, &self.plan(), mode.dry_run(), narrator, each).await;
        }
        // The namespace comes first: it owns the rights.
        let mut space = self.plan();
        space.stages.truncate(1);
        let mut applied = apply::plan(self.cluster, &space, mode.dry_run(), narrator, &mut each).await?;
        let name = &self.name;
        let spaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        let space = spaces.get_metadata(name).await;
        let space = space.map_err(|error| self.cluster.explain(format_args!("read namespace {name:?}"), error))?;
        let mut rest = (self.planned)(Some(&space.metadata));
        rest.stages.remove(0);
        applied.extend(apply::plan(self.cluster, &rest, mode.dry_run(), narrator, &mut each).await?);
        Ok(applied)
    }

    /// Has Kubernetes make a token of the account. The name of its Secret, and the token.
    ///
    /// # Errors
    /// [`Reason::TimedOut`], or the failure of a request.
    pub(crate) async fn token(&self, narrator: &dyn Narrator) -> Result<(String, String), Failure> {
        let secrets = self.secrets();
        let explained = |error| self.cluster.explain("make a token for the operator's account", error);
        let made = secrets.create(&PostParams::default(), &rules::token(&self.name)).await.map_err(explained)?;
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

    /// Settles on the token of Secret `kept`, which the operator gets with `holder` on the cluster where it runs: former tokens
    /// are revoked, and whoever holds one of them gets in no more. Where another run of the same command has given the operator
    /// another token meanwhile, this one is revoked.
    ///
    /// # Errors
    /// [`Reason::Conflict`] where another run has revoked the token that the operator holds; the failure of a request.
    pub(crate) async fn settle(
        &self,
        kept: &str,
        (cluster, holder): (&Cluster, &Manifest),
        narrator: &dyn Narrator,
    ) -> Result<(), Failure> {
        let is_held = async || {
            let live = apply::read(cluster, holder).await?;
            Ok::<bool, Failure>(live.is_some_and(|live| live["data"] == holder.body()["data"]))
        };
        let explained = |error| self.cluster.explain("revoke tokens of the operator's account", error);
        let all = self.secrets().list_metadata(&ListParams::default()).await.map_err(explained)?.items;
        let all = all.into_iter().map(|secret| secret.metadata).filter(|secret| is_token(secret, &self.name));
        let (own, others): (Vec<ObjectMeta>, Vec<ObjectMeta>) =
            all.partition(|secret| secret.name.as_deref() == Some(kept));
        let held = is_held().await?;
        let Some(own) = own.into_iter().next() else { return if held { Err(self.is_taken()) } else { Ok(()) } };
        if !held {
            return self.revoke([own]).await.map(drop);
        }
        let revoked = self.revoke(others.into_iter().filter(|secret| is_former(secret, &own))).await?;
        if revoked > 0 {
            narrator
                .tell(Event::note(format!("the former token of the operator's account on {} was revoked", self.what)));
            // Nobody gets one that was revoked just now.
            if !is_held().await? {
                return Err(self.is_taken());
            }
        }
        Ok(())
    }

    /// Another run of the same command works at the same account.
    fn is_taken(&self) -> Failure {
        let sentence = format!("somebody else gives the operator another token for {} at the same time", self.what);
        Failure::new(Reason::Conflict, sentence).hint(Remedy::RunAgain)
    }

    /// Deletes tokens, and says how many.
    async fn revoke(&self, tokens: impl IntoIterator<Item = ObjectMeta>) -> Result<usize, Failure> {
        let secrets = self.secrets();
        let mut revoked = 0;
        for secret in tokens {
            let pinned = Preconditions { uid: secret.uid, resource_version: None };
            let params = DeleteParams { preconditions: Some(pinned), ..DeleteParams::default() };
            match secrets.delete(secret.name.as_deref().unwrap_or_default(), &params).await {
                Ok(_) => revoked += 1,
                Err(error) => match ocm_kube::explain(&error).reason {
                    Reason::NotFound | Reason::Conflict => {}
                    _ => return Err(self.cluster.explain("revoke tokens of the operator's account", error)),
                },
            }
        }
        Ok(revoked)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.cluster.client.clone(), &self.name)
    }
}

/// How pods of another cluster reach this one, by an address that was seen to be vouched for. `what` it is, for people: `the
/// managed cluster`. `internal`: they take the address that it publishes.
///
/// # Errors
/// When pods cannot reach it at its address, or nothing vouches for it; the failure of a request.
pub(crate) async fn address(
    cluster: &Cluster,
    what: &str,
    internal: bool,
    narrator: &dyn Narrator,
) -> Result<HubAddress, Failure> {
    let label = cluster.label();
    if let Some(refusal) = unusable(&label, what, cluster.insecure, cluster.tls_server_name.as_deref()) {
        return Err(refusal);
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
                    "pods of the hosting cluster cannot reach {what} at {server}: to a pod that is the pod itself"
                )),
            };
            return Err(failure.hint("name a kubeconfig with the address at which other machines reach it"));
        };
        narrator.tell(Event::note(format!(
            "the operator reaches {what} at {}, the address in its kube-public/cluster-info",
            info.server
        )));
        (endpoint, server) = (found, info.server);
        candidates.extend([info.ca, hub::root_ca(cluster).await?]);
    } else if cluster.ca.is_none() {
        // The authorities of this machine's system vouch for it here, and those of the operator's image are others.
        candidates.push(hub::root_ca(cluster).await?);
    }
    let mut trouble = None;
    for candidate in candidates.iter().filter(|candidate| !candidate.is_empty()) {
        match hub::vouching_by_either(&endpoint, candidate, cluster).await {
            Ok(ca) => return Ok(HubAddress { server, ca, ..HubAddress::default() }),
            Err(failure) => trouble = trouble.or(Some(failure)),
        }
    }
    Err(unvouched(&label, what, cluster.ca.is_some(), trouble))
}

/// What to do about a kubeconfig that nobody can verify a cluster by.
fn name_ca(what: &str) -> String {
    format!("name a kubeconfig with the CA of {what}, certificate-authority-data")
}

/// Why an operator cannot be given what a kubeconfig says; none: it can.
fn unusable(label: &str, what: &str, insecure: bool, tls_server_name: Option<&str>) -> Option<Failure> {
    if insecure {
        let sentence =
            format!("{label} is not verified: its kubeconfig says insecure-skip-tls-verify; nothing was changed");
        let failure = Failure::new(Reason::Tls, sentence);
        return Some(
            failure.because("the operator would be given the credentials of whoever answers").hint(name_ca(what)),
        );
    }
    let name = tls_server_name?;
    let sentence = format!(
        "the kubeconfig of {label} says tls-server-name {name:?}, which operators do not heed; nothing was changed"
    );
    let hint = format!("name a kubeconfig with an address that the certificate of {what} is for");
    Some(Failure::new(Reason::Tls, sentence).hint(hint))
}

/// No authority that is known vouches for the address. `trouble`: what became of those that were tried.
fn unvouched(label: &str, what: &str, names_ca: bool, trouble: Option<Failure>) -> Failure {
    match trouble {
        Some(failure) if names_ca || failure.reason != Reason::Tls => failure.hint(name_ca(what)),
        _ => Failure::new(
            Reason::Tls,
            format!(
                "the kubeconfig of {label} names no CA, and the cluster publishes none that vouches for its address; nothing \
                 was changed"
            ),
        )
        .because(format!("the operator would have nothing to verify {what} by"))
        .hint(name_ca(what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_gets_nothing_by_which_it_would_verify_nobody() {
        let refused =
            |insecure, name| unusable("cluster \"c1\"", "the hub", insecure, name).map(|failure| failure.message);
        assert_eq!(refused(false, None), None);
        assert!(refused(true, None).is_some_and(|said| said.contains("insecure-skip-tls-verify")));
        assert!(refused(false, Some("api")).is_some_and(|said| said.contains("tls-server-name \"api\"")));
    }

    #[test]
    fn a_kubeconfig_without_a_ca_is_refused_in_one_sentence_and_what_cannot_be_reached_says_so() {
        let of = |names_ca, trouble| unvouched("cluster \"c1\"", "the managed cluster", names_ca, trouble);
        let strange = || Some(Failure::new(Reason::Tls, "signed by a stranger"));
        for trouble in [None, strange()] {
            let failure = of(false, trouble);
            assert!(failure.message.contains("names no CA") && failure.reason == Reason::Tls, "{failure:?}");
        }
        assert_eq!(of(true, strange()).message, "signed by a stranger");
        let away = of(false, Some(Failure::new(Reason::Unreachable, "nobody answers")));
        assert_eq!((away.reason, away.message.as_str()), (Reason::Unreachable, "nobody answers"));
    }
}
