//! The hub that a cluster leaves for another one: whether it is the one that is meant, which managed cluster there is this
//! cluster's, and how that goes.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::Klusterlet;
use ocm_api::operator::RegistrationAuthType;
use ocm_core::join::driver_of;
use ocm_core::join::hub_change::{
    AtFormerHub, HubChange, Intent, Stage, Typed, at_former_hub, must_agree, standing, turned_back,
};
use ocm_core::join::membership::moves_from;
use ocm_core::kubeconfig::{HubAddress, Likeness};
use ocm_core::leave::hub::Agent;
use ocm_core::plan::{Applied, Mode};
use ocm_core::{DryRun, Event, Failure, Narrator, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{Right, require};
use ocm_kube::apply::FIELD_MANAGER;

use super::handover::{self, Handover};
use super::hub_access::TrustedBy;
use super::reach::are_one;
use super::request::{FormerHubOptions, Request};
use super::session::{Access, HubSession};
use super::survey::Survey;
use crate::hub::uid;
use crate::leave::{self, Held, Leaving, is_hub_at};
use crate::observe::managed as observe;

/// A hub that a cluster leaves, and what has become of the cluster there, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftHub {
    /// Its address.
    pub server: String,
    /// Why it still has something of the cluster; none: it has nothing.
    pub still: Option<Still>,
}

/// Why a hub still has something of a cluster that leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Still {
    /// The cluster is not available at the other hub. When it is, the same command goes on.
    NotYet,
    /// It stays, for this reason.
    Stays(String),
    /// What it has is another cluster's, which has registered under the name since.
    Anothers,
}

/// The hub that a cluster leaves.
pub(super) struct FormerHub {
    /// How far the cluster has come on its way from it.
    pub(super) change: HubChange,
    /// The hub, where there is access to it.
    hub: Option<Cluster>,
    /// UID of the managed cluster there that is this cluster's, or why that is not known.
    own: Result<String, String>,
}

impl FormerHub {
    /// The hub that the cluster leaves for `hub`; none where it leaves none. Nothing is changed yet.
    ///
    /// # Errors
    /// A refusal of another hub than the one that is left, and of a cluster that does not go as it is; the failure of a request.
    pub(super) async fn of(
        managed: &Cluster,
        request: &Request,
        hub: &HubSession,
        survey: &Survey,
        label: &str,
        narrator: Arc<dyn Narrator>,
    ) -> Result<Option<Self>, Failure> {
        let FormerHubOptions { server, hub: former } = &request.former;
        if let Some(former) = former
            && are_one(hub.client(), former).await
        {
            let (one, other) = (hub.client().label(), former.label());
            return Err(Failure::usage(format!("{one} and {other} are one hub, to join and to leave")));
        }
        let name = &request.settings.name;
        let typed = Typed { server: server.as_deref(), is_reached: former.is_some() };
        let Some(mut change) = standing(&survey.found, name, &hub.address, typed, label)? else {
            if request.former.is_given() {
                narrator.tell(Event::note(format!(
                    "{label} is on its way from no other hub, so nothing is deleted on the one that was named as its former hub"
                )));
            }
            return Ok(None);
        };
        match change.stage {
            Stage::Begins | Stage::Turned => goes_as_it_is(request, survey, name, label)?,
            Stage::Arrived => narrator.tell(Event::note(format!(
                "{label} has come from the hub at {}, which it has still to leave",
                change.from.server
            ))),
        }
        let mut own = change.cluster.clone().ok_or_else(|| "its former hub was not asked before it went".to_owned());
        if let Some(former) = former {
            narrator.tell(Event::now(format!("looking at the former hub ({})", former.label())));
            if !is_hub_at(former, &change.from).await? {
                return Err(Failure::refused(format!(
                    "the hub that {label} leaves is the one at {}, not {}; nothing was changed",
                    change.from.server,
                    former.label()
                ))
                .hint(Remedy::NameFormerHub));
            }
            change.from.uid = uid(former).await.or(change.from.uid);
            // Whoever can write to the Klusterlet can note any UID on it.
            let holds = change.stage != Stage::Arrived && survey.found.identity.is_some();
            if own.is_err() || holds {
                let said = whose(managed, former, &change.from, survey, name).await?;
                if let Ok(said) = &said {
                    must_agree(change.cluster.as_deref(), said, label)?;
                }
                if said.is_ok() || own.is_err() || !has_another(managed, survey, &change.from).await? {
                    own = said;
                }
            }
            change.cluster = own.clone().ok();
        }
        Ok(Some(Self { change, hub: former.clone(), own }))
    }

    /// Whether the cluster has still to be let in by the hub that it goes to.
    pub(super) fn is_left(&self) -> bool {
        self.change.stage != Stage::Arrived
    }

    /// Whether it is known what there is the cluster's, so that it can go.
    pub(super) fn lets_go(&self) -> bool {
        self.hub.is_some() && self.own.is_ok()
    }

    /// Checks the rights to take the cluster away there, and to see on `works`, where works are applied, whether its agent has
    /// left.
    ///
    /// # Errors
    /// The rights that are missing.
    pub(super) async fn check_rights(&self, works: &Cluster, name: &str) -> Result<(), Failure> {
        let Some(hub) = self.hub.as_ref().filter(|_| self.own.is_ok()) else { return Ok(()) };
        leave::check_rights_to_detach(hub, &[name.to_owned()], true).await?;
        let right = Right::new("list", "work.open-cluster-management.io", "appliedmanifestworks");
        require(works, "see whether the agent has left its former hub", &[right]).await
    }

    /// Writes down on the Klusterlet where the cluster goes, before anything is changed.
    ///
    /// # Errors
    /// The failure of the request.
    pub(super) async fn note(
        &self,
        managed: &Cluster,
        klusterlet: &str,
        to: &str,
        narrator: &dyn Narrator,
    ) -> Result<(), Failure> {
        let Some(intent) = self.change.to_note(to) else { return Ok(()) };
        write(managed, klusterlet, &intent.patch()).await?;
        let from = &intent.from.server;
        narrator.tell(Event::done(format!("noted on Klusterlet {klusterlet} that it goes from {from} to {to}")));
        Ok(())
    }

    /// Takes the note away: the cluster has left its former hub.
    ///
    /// # Errors
    /// The failure of the request.
    pub(super) async fn forget(
        &self,
        managed: &Cluster,
        klusterlet: &str,
        narrator: &dyn Narrator,
    ) -> Result<(), Failure> {
        write(managed, klusterlet, &Intent::without()).await?;
        narrator.tell(Event::done(format!("the cluster has left the hub at {}", self.change.from.server)));
        Ok(())
    }

    /// Takes the cluster away from it, or only tries to, and says why something of it stays there, if it does. Of what its works
    /// have applied, nothing is deleted with it: no agent is there any more.
    ///
    /// # Errors
    /// As those of a detach.
    pub(super) async fn detach(
        &self,
        name: &str,
        (dry_run, timeout): (DryRun, Duration),
        narrator: &dyn Narrator,
        applied: &mut Vec<Applied>,
        each: &mut dyn FnMut(&Cluster, &Applied),
    ) -> Result<Option<Still>, Failure> {
        let Some(hub) = &self.hub else { return Ok(Some(Still::Stays("there is no access to it".to_owned()))) };
        let held = leave::inspect(hub, name).await?;
        let there = held.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.as_deref());
        match at_former_hub(held.is_empty(), there, self.own.as_deref().map_err(String::as_str)) {
            AtFormerHub::Nothing => return Ok(None),
            AtFormerHub::Stays(why) => return Ok(Some(Still::Stays(why))),
            AtFormerHub::Anothers => return Ok(Some(Still::Anothers)),
            AtFormerHub::Goes => {}
        }
        // Its agent has left: nobody cleans up there.
        let held = Held { agent: Agent::Silent(None), ..held };
        leave::refuse(&held, true, narrator)?;
        let rows = RefCell::new(Vec::new());
        let leaving = Leaving { force: true, purge: false, dry_run, timeout };
        let note = |row: &Applied| rows.borrow_mut().push(row.clone());
        let detached = leave::detach(hub, &held, leaving, narrator, &note).await;
        for row in rows.into_inner() {
            each(hub, &row);
            applied.push(row);
        }
        detached.map(|_| None)
    }
}

/// Whether a cluster that was to go from `hub` to another one stays at it, or comes back to it; its agent registers with that other
/// one where `survey` has its bootstrap kubeconfig no longer.
///
/// # Errors
/// A refusal of a cluster that has to come back, and of which the hub does not say that it is its own; the failure of a request.
pub(super) async fn comes_back(
    managed: &Cluster,
    hub: &HubSession,
    survey: &mut Survey,
    name: &str,
    label: &str,
) -> Result<bool, Failure> {
    let Some(noted) = turned_back(&survey.found, name, &hub.address) else { return Ok(false) };
    let there = survey.found.bootstrap.as_ref().map(|bootstrap| bootstrap.hub.likeness(&hub.address));
    if there.is_none_or(|there| there == Likeness::OtherHub) {
        match handover::of(managed, hub, survey, name).await? {
            Handover::ByItself(said) => must_agree(noted.cluster.as_deref(), &said, label)?,
            Handover::ByPerson(why) => {
                return Err(Failure::refused(format!(
                    "{label} is on its way to the hub at {}, and does not come back to the one at {}, which does not say that it \
                     is its own: {why}; nothing was changed",
                    noted.to, hub.address.server
                ))
                .hint(Remedy::UnjoinAlone(name.to_owned())));
            }
        }
        survey.found.bootstrap = None;
    }
    Ok(true)
}

/// Takes the note away from a cluster that stays at its hub, or has come back to it.
///
/// # Errors
/// The failure of the request.
pub(super) async fn forget_way(managed: &Cluster, klusterlet: &str, narrator: &dyn Narrator) -> Result<(), Failure> {
    write(managed, klusterlet, &Intent::without()).await?;
    narrator.tell(Event::done(format!("took the note from Klusterlet {klusterlet} that it goes to another hub")));
    Ok(())
}

/// Refuses a cluster that does not go to another hub with what it has, or with what else was typed.
fn goes_as_it_is(request: &Request, survey: &Survey, name: &str, label: &str) -> Result<(), Failure> {
    let by_aws = |driver: &RegistrationAuthType| *driver == RegistrationAuthType::AwsIrsa;
    let typed = request.settings.driver.as_ref().map(|driver| &driver.auth_type);
    let (why, next) = match () {
        () if request.mode == Mode::Render => {
            ("manifests say nothing of the hub that it leaves", "see what would change instead: a dry run, or a diff")
        }
        () if survey.listing.is_some() || !request.fallback.is_empty() => {
            ("its agent turns to several hubs", "take the further hubs out first, and name them again when it is there")
        }
        () if by_aws(&driver_of(survey.live.klusterlet.as_ref())) || typed.is_some_and(by_aws) => {
            ("with an identity of AWS its agent asks for no certificate", "unjoin it there, and join it here")
        }
        () if moves_from(&survey.found, name, request.settings.mode.as_ref(), label)?.is_some() => {
            ("another mode was typed, too", "change its mode before, or when it is there")
        }
        () => return Ok(()),
    };
    Err(Failure::refused(format!("{label} does not go to another hub as it is: {why}; nothing was changed")).hint(next))
}

/// The UID of the managed cluster of a hub that is this cluster's, as the hub itself says of the certificate that the agent holds;
/// or why it does not.
async fn whose(
    managed: &Cluster,
    hub: &Cluster,
    address: &HubAddress,
    survey: &Survey,
    name: &str,
) -> Result<Result<String, String>, Failure> {
    let access = Access::Admin(hub.clone());
    let session = HubSession { address: address.clone(), trusted_by: TrustedBy::Kubeconfig, access };
    Ok(match handover::of(managed, &session, survey, name).await? {
        Handover::ByItself(uid) => Ok(uid),
        Handover::ByPerson(why) => Err(why),
    })
}

/// Whether the agent has got the certificate of another hub meanwhile: then its former hub says nothing of that.
async fn has_another(managed: &Cluster, survey: &Survey, former: &HubAddress) -> Result<bool, Failure> {
    let facts = observe::identity(managed, &survey.names.namespace).await?;
    Ok(facts.hub.is_some_and(|hub| !hub.is_at(&former.server)))
}

/// Changes the annotations of a Klusterlet.
async fn write(managed: &Cluster, klusterlet: &str, patch: &serde_json::Value) -> Result<(), Failure> {
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patched = api.patch_metadata(klusterlet, &params, &Patch::Merge(patch)).await;
    patched.map_err(|error| managed.explain(format_args!("annotate Klusterlet {klusterlet}"), error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use ocm_core::Silent;
    use serde_json::json;

    use super::*;
    use crate::accept::test_hub::hub;

    /// What a cluster at `https://a` leaves, with access to this hub or without.
    fn leaves(hub: Option<Cluster>, own: Result<&str, &str>) -> FormerHub {
        let from = HubAddress { server: "https://a".to_owned(), ..HubAddress::default() };
        let change = HubChange { stage: Stage::Arrived, from, cluster: None, noted: None };
        FormerHub { change, hub, own: own.map(str::to_owned).map_err(str::to_owned) }
    }

    fn absent() -> serde_json::Value {
        json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "no"})
    }

    async fn tried(former: &FormerHub) -> (Option<Still>, Vec<Applied>) {
        let mut applied = Vec::new();
        let how = (DryRun::Server, Duration::from_secs(5));
        let still = former.detach("c1", how, &Silent, &mut applied, &mut |_, _| {}).await.unwrap();
        (still, applied)
    }

    #[tokio::test]
    async fn the_managed_cluster_that_is_this_one_goes_by_its_uid_and_no_other() {
        for (own, goes) in [(Ok("u1"), true), (Ok("u2"), false), (Err("nobody has said it"), false)] {
            let (hub, asked) = hub(|asked| match asked.line.split_once(' ') {
                Some(("GET", path)) if path.contains("/managedclusters/c1") => {
                    (200, json!({"metadata": {"name": "c1", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"}}))
                }
                Some(("GET", path)) if ["/leases/", "/namespaces/c1?"].iter().any(|part| path.contains(part)) => {
                    (404, absent())
                }
                Some(("GET", path)) if path.ends_with("/namespaces/c1") => (404, absent()),
                Some(("GET", _)) => (200, json!({"metadata": {}, "items": []})),
                Some(("POST", _)) => (201, json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})),
                _ => (200, json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})),
            });
            let (still, applied) = tried(&leaves(Some(hub), own)).await;
            let asked = asked.lock().unwrap();
            let deletions: Vec<_> = asked.iter().filter(|asked| asked.line.starts_with("DELETE")).collect();
            let count = usize::from(goes);
            assert_eq!((still.is_none(), deletions.len(), applied.len()), (goes, count, count), "{own:?}");
            assert!(deletions.iter().all(|deletion| deletion.body.contains("\"u1\"")), "{deletions:?}");
        }
    }

    #[tokio::test]
    async fn without_access_to_it_everything_stays_there() {
        let (still, applied) = tried(&leaves(None, Ok("u1"))).await;
        assert_eq!(still, Some(Still::Stays("there is no access to it".to_owned())));
        assert!(applied.is_empty());
    }
}
