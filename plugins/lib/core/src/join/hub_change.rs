//! A cluster that has joined one hub goes to another one: how far it has come, and what is written down of it meanwhile.
//!
//! An agent goes by the kubeconfig that it registers with. When that leads to another hub, it starts once more, keeps its name, and
//! asks that hub for a certificate. Until it has got it, the one of the former hub stays in its Secret: the agent for works goes on
//! with it, and the former hub can be asked whose it is. Upstream: `bootstrapKubeconfigEventHandler`, `IsHubKubeconfigValid`.
//!
//! ```text
//! registers with, and holds a certificate of   former, former ─▶ this one, former ─▶ this one, this one
//!                                                  Begins            Turned              Arrived
//! ```

use ocm_api::Klusterlet;
use serde_json::{Value, json};

use super::membership::Found;
use crate::kubeconfig::{HubAddress, Likeness};
use crate::{Failure, Remedy, duration};

/// Annotation of a Klusterlet whose cluster goes to another hub: the address of that hub.
const MOVES_TO: &str = "kubectl-ocm/moves-to";
/// The address of the hub that it leaves.
const MOVES_FROM: &str = "kubectl-ocm/moves-from";
/// The UID of that hub, where it is known.
const FORMER_HUB: &str = "kubectl-ocm/former-hub-uid";
/// The UID of the managed cluster there, where that hub has said that it is this cluster's.
const FORMER_CLUSTER: &str = "kubectl-ocm/former-cluster-uid";

/// How long agents keep what works of a former hub have applied, unless a Klusterlet says otherwise. Upstream:
/// `appliedManifestWorkEvictionGracePeriod`.
const GRACE: &str = "60m";

/// What is written down on the Klusterlet, so that a run that was killed is gone on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Address of the hub that the cluster goes to.
    pub to: String,
    /// The hub that it leaves: its address, and its UID where that is known.
    pub from: HubAddress,
    /// UID of the managed cluster that the former hub has of it; none: that hub has not said which it is.
    pub cluster: Option<String>,
}

impl Intent {
    /// What is written down; none where nothing is, or not all.
    pub fn of(klusterlet: &Klusterlet) -> Option<Self> {
        let all = klusterlet.metadata.annotations.as_ref()?;
        let word = |key: &str| all.get(key).filter(|word| !word.is_empty()).cloned();
        let from = HubAddress { server: word(MOVES_FROM)?, uid: word(FORMER_HUB), ..HubAddress::default() };
        Some(Self { to: word(MOVES_TO)?, from, cluster: word(FORMER_CLUSTER) })
    }

    /// The merge patch that writes it down.
    pub fn patch(&self) -> Value {
        let Self { to, from: HubAddress { server, uid, .. }, cluster } = self;
        json!({"metadata": {"annotations": {
            MOVES_TO: to, MOVES_FROM: server, FORMER_HUB: uid, FORMER_CLUSTER: cluster,
        }}})
    }

    /// The merge patch that takes it away.
    pub fn without() -> Value {
        json!({"metadata": {"annotations": {
            MOVES_TO: null, MOVES_FROM: null, FORMER_HUB: null, FORMER_CLUSTER: null,
        }}})
    }
}

/// How far a cluster has come on its way to another hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its agent registers with the former hub, and may hold a certificate of it.
    Begins,
    /// Its agent registers with the hub that it goes to, and holds no certificate of that one.
    Turned,
    /// It holds one. What the former hub has of the cluster may still be there.
    Arrived,
}

/// A cluster on its way to another hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubChange {
    /// How far it is.
    pub stage: Stage,
    /// The hub that it leaves.
    pub from: HubAddress,
    /// UID of the managed cluster there, where it is written down.
    pub cluster: Option<String>,
    /// What is written down.
    pub noted: Option<Intent>,
}

impl HubChange {
    /// What is to be written down before anything is changed; none where it is.
    pub fn to_note(&self, to: &str) -> Option<Intent> {
        let intent = Intent { to: to.to_owned(), from: self.from.clone(), cluster: self.cluster.clone() };
        let is_noted = self.noted.as_ref().is_some_and(|noted| {
            (&noted.to, &noted.cluster) == (&intent.to, &intent.cluster) && noted.from.server == intent.from.server
        });
        (!is_noted && self.stage != Stage::Arrived).then_some(intent)
    }
}

/// What was typed of the hub that a cluster leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Typed<'a> {
    /// Its address.
    pub server: Option<&'a str>,
    /// Whether there is access to it.
    pub is_reached: bool,
}

impl Typed<'_> {
    fn is_given(&self) -> bool {
        self.server.is_some() || self.is_reached
    }
}

/// How far the cluster `name` has come on its way to `hub`; none: it is not on one, or only a hub is named that it is not to leave.
/// `label` is how messages name the cluster.
///
/// # Errors
/// A refusal of a cluster without a hub, of one that is on its way to another hub or has another name, and of another former hub
/// than the one that was typed.
pub fn standing(
    found: &Found,
    name: &str,
    hub: &HubAddress,
    typed: Typed<'_>,
    label: &str,
) -> Result<Option<HubChange>, Failure> {
    if typed.server.is_some_and(|server| hub.is_at(server)) {
        return Err(Failure::usage(format!("the hub at {} is both the one to join and the one to leave", hub.server)));
    }
    let all = found.of_cluster(name);
    let [klusterlet] = all.as_slice() else {
        return match typed.is_given() && all.is_empty() {
            true => Err(Failure::refused(format!("{label} has no agent, and leaves no hub; nothing was changed"))
                .hint("to join it for the first time, name no former hub")),
            false => Ok(None),
        };
    };
    let noted = Intent::of(klusterlet);
    let identity = found.identity.as_ref().map(|identity| &identity.hub);
    let bootstrap = found.bootstrap.as_ref().map(|bootstrap| &bootstrap.hub);
    let other = |address: &HubAddress| address.likeness(hub) == Likeness::OtherHub;
    // The hub may be named by another address than before.
    let leads_to = |to: &str| bootstrap.is_some_and(|bootstrap| bootstrap.is_at(to));
    let is_here = |to: &str| hub.is_at(to) || (leads_to(to) && !bootstrap.is_some_and(other));
    let is_away = |noted: &&Intent| !is_here(&noted.to) && leads_to(&noted.to);
    if let (Some(Intent { to, from, .. }), None) = (noted.as_ref().filter(is_away), turned_back(found, name, hub)) {
        return Err(Failure::refused(format!(
            "{label} is on its way from the hub at {} to the one at {to}; nothing was changed",
            from.server
        ))
        .hint("bring that to its end first: the command that has begun it, once more")
        .hint(Remedy::UnjoinAlone(name.to_owned())));
    }
    let noted = noted.filter(|noted| is_here(&noted.to));
    let (stage, from) = match (identity.map(|at| (at, other(at))), bootstrap.map(|there| (there, other(there)))) {
        (Some((_, false)), _) => (Stage::Arrived, None),
        (Some((at, true)), Some((_, false))) => (Stage::Turned, Some(at)),
        (None, Some((_, false))) => (Stage::Turned, None),
        (Some((at, true)), _) | (None, Some((at, true))) => (Stage::Begins, Some(at)),
        (None, None) => return Ok(None),
    };
    let Some(from) = from.or(noted.as_ref().map(|noted| &noted.from)).cloned() else { return Ok(None) };
    let is_wanted = typed.is_given() && stage != Stage::Arrived;
    if klusterlet.metadata.deletion_timestamp.is_some() || !(is_wanted || noted.is_some()) {
        return Ok(None);
    }
    if let Some(server) = typed.server.filter(|server| !from.is_at(server)) {
        return Err(Failure::refused(format!(
            "the hub that {label} leaves is the one at {}, not the one at {server}; nothing was changed",
            from.server
        ))
        .hint(Remedy::NameFormerHub));
    }
    let known_as = klusterlet.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    let known_as = known_as.or(found.identity.as_ref().map(|identity| identity.cluster.as_str()));
    if let Some(known_as) = known_as.filter(|known_as| *known_as != name && stage != Stage::Arrived) {
        return Err(Failure::refused(format!(
            "{label} is {known_as:?} at the hub at {}, and is not renamed to {name:?} on its way; nothing was changed",
            from.server
        ))
        .hint(Remedy::KeepName(known_as.to_owned())));
    }
    let same = noted.as_ref().filter(|noted| noted.from.is_at(&from.server));
    // The kubeconfig that had the hub's UID beside it is another one by now.
    let uid = from.uid.clone().or_else(|| same?.from.uid.clone());
    let cluster = same.and_then(|noted| noted.cluster.clone());
    Ok(Some(HubChange { stage, from: HubAddress { uid, ..from }, cluster, noted }))
}

/// What is noted of the way of the cluster `name` from `hub` to another one, where it has not come there: its agent still holds a
/// certificate of `hub`, and can go back.
pub fn turned_back(found: &Found, name: &str, hub: &HubAddress) -> Option<Intent> {
    let all = found.of_cluster(name);
    let ([klusterlet], Some(identity)) = (all.as_slice(), &found.identity) else { return None };
    let is_from = |noted: &Intent| identity.hub.is_at(&noted.from.server);
    Intent::of(klusterlet).filter(|noted| is_from(noted) && identity.hub.likeness(hub) != Likeness::OtherHub)
}

/// What becomes of what the former hub has of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtFormerHub {
    /// There is nothing.
    Nothing,
    /// It is this cluster's, and goes.
    Goes,
    /// It stays, for this reason.
    Stays(String),
    /// Another cluster has registered under the name since, and stays.
    Anothers,
}

/// Judges what the former hub has of a cluster. `there` is the UID of the managed cluster of its name, if there is one; `own` that
/// of the one which the hub has said to be this cluster's, or why it has not.
pub fn at_former_hub(is_empty: bool, there: Option<&str>, own: Result<&str, &str>) -> AtFormerHub {
    match (is_empty, there, own) {
        (true, ..) => AtFormerHub::Nothing,
        (_, _, Err(why)) => AtFormerHub::Stays(format!("whether it is this cluster's is not known: {why}")),
        (_, Some(there), Ok(own)) if there != own => AtFormerHub::Anothers,
        (_, _, Ok(_)) => AtFormerHub::Goes,
    }
}

/// Refuses what is noted of the managed cluster at the former hub where that hub, asked while the agent holds its certificate, says
/// that another one is this cluster's. Both are UIDs.
///
/// # Errors
/// That refusal.
pub fn must_agree(noted: Option<&str>, said: &str, label: &str) -> Result<(), Failure> {
    match noted {
        Some(noted) if noted != said => Err(Failure::refused(format!(
            "annotation {FORMER_CLUSTER} of the Klusterlet of {label} names the managed cluster with UID {noted}, and the hub says \
             that the one with UID {said} is its own; nothing was changed"
        ))
        .hint("if the hub is right, take that annotation away, and run this again")),
        _ => Ok(()),
    }
}

/// Whether agents keep that for ever, and mark none of their records. Upstream: `EvictionGracePeriodBound`.
pub fn is_for_ever(grace: &str) -> bool {
    duration::parse(grace).is_ok_and(|time| time.as_secs() >= 100 * 365 * 24 * 3600)
}

/// How long the agents of a Klusterlet keep what works of a former hub have applied.
pub fn grace(klusterlet: Option<&Value>) -> &str {
    let said =
        klusterlet.and_then(|live| live.pointer("/spec/workConfiguration/appliedManifestWorkEvictionGracePeriod"));
    said.and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or(GRACE)
}

#[cfg(test)]
mod tests {
    use ocm_api::operator::KlusterletSpec;

    use super::*;
    use crate::Reason;
    use crate::join::membership::Identity;
    use crate::kubeconfig::Bootstrap;

    const A: &str = "https://a:6443";
    const B: &str = "https://b:6443";

    fn hub(server: &str) -> HubAddress {
        HubAddress { server: server.to_owned(), ca: vec![server.as_bytes().to_vec()], ..HubAddress::default() }
    }

    /// A cluster whose agent registers with the one hub and holds a certificate of the other.
    fn found(registers: &str, holds: Option<&str>, noted: Option<&Intent>) -> Found {
        let mut klusterlet = Klusterlet::new(
            "klusterlet",
            KlusterletSpec { cluster_name: Some("c1".to_owned()), ..KlusterletSpec::default() },
        );
        let annotations = |noted: &Intent| {
            let patch = noted.patch();
            let all = patch["metadata"]["annotations"].as_object().unwrap();
            all.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        };
        klusterlet.metadata.annotations = noted.map(annotations);
        let identity = |server| Identity { hub: hub(server), cluster: "c1".to_owned(), expires: None };
        Found {
            klusterlets: vec![klusterlet],
            bootstrap: Some(Bootstrap { hub: hub(registers), ..Bootstrap::default() }),
            identity: holds.map(identity),
            is_hosted: false,
        }
    }

    fn intent(from: &str, to: &str) -> Intent {
        let from = HubAddress { server: from.to_owned(), uid: Some("hub".to_owned()), ..HubAddress::default() };
        Intent { to: to.to_owned(), from, cluster: Some("u1".to_owned()) }
    }

    fn to_b(found: &Found, typed: Typed<'_>) -> Result<Option<HubChange>, Failure> {
        standing(found, "c1", &hub(B), typed, "context \"a\"")
    }

    const NONE: Typed<'static> = Typed { server: None, is_reached: false };
    const REACHED: Typed<'static> = Typed { server: None, is_reached: true };

    fn stage(found: &Found, typed: Typed<'_>) -> Option<Stage> {
        to_b(found, typed).unwrap().map(|change| change.stage)
    }

    #[test]
    fn what_is_written_down_is_read_again_and_taken_away() {
        let whole = intent(A, B);
        let mut klusterlet = found(A, None, Some(&whole)).klusterlets.remove(0);
        assert_eq!(Intent::of(&klusterlet), Some(whole.clone()));
        let others = klusterlet.metadata.annotations.as_mut().unwrap();
        others.remove(MOVES_FROM);
        assert_eq!(Intent::of(&klusterlet), None);
        let (written, gone) = (whole.patch(), Intent::without());
        let keys =
            |patch: &Value| patch["metadata"]["annotations"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&written), keys(&gone));
        assert!(gone["metadata"]["annotations"].as_object().unwrap().values().all(Value::is_null));
    }

    #[test]
    fn a_cluster_leaves_its_hub_only_when_that_is_typed_or_was_begun() {
        let joined = found(A, Some(A), None);
        assert_eq!(stage(&joined, NONE), None);
        for typed in [REACHED, Typed { server: Some("https://A:6443/"), is_reached: false }] {
            let change = to_b(&joined, typed).unwrap().unwrap();
            assert_eq!((change.stage, change.from, change.cluster), (Stage::Begins, hub(A), None));
        }
        // It has registered there, and nobody has let it in.
        assert_eq!(stage(&found(A, None, None), REACHED), Some(Stage::Begins));
    }

    #[test]
    fn a_run_that_was_killed_is_gone_on_with_at_every_step() {
        let noted = intent(A, B);
        for typed in [NONE, REACHED, Typed { server: Some(A), is_reached: true }] {
            for (registers, holds, expected) in [
                (A, Some(A), Stage::Begins),
                (A, None, Stage::Begins),
                (B, Some(A), Stage::Turned),
                (B, None, Stage::Turned),
                (B, Some(B), Stage::Arrived),
            ] {
                let change = to_b(&found(registers, holds, Some(&noted)), typed).unwrap().unwrap();
                assert_eq!((change.stage, change.from.server.as_str()), (expected, A), "{registers} {holds:?}");
                let known = (change.from.uid.as_deref(), change.cluster.as_deref());
                assert_eq!(known, (Some("hub"), Some("u1")), "what was found out is kept");
                assert_eq!(change.to_note(B), None, "it is written down");
            }
        }
        // What was written before the hub had said which cluster it is, is written again.
        let unsure = Intent { cluster: None, ..intent(A, B) };
        let change = to_b(&found(A, Some(A), Some(&unsure)), REACHED).unwrap().unwrap();
        let change = HubChange { cluster: Some("u1".to_owned()), ..change };
        assert_eq!(change.to_note(B).and_then(|intent| intent.cluster).as_deref(), Some("u1"));
    }

    #[test]
    fn what_has_come_to_its_end_is_no_way_any_more() {
        for typed in [NONE, REACHED, Typed { server: Some(A), is_reached: false }] {
            assert_eq!(stage(&found(B, Some(B), None), typed), None);
            assert_eq!(stage(&found(B, None, None), typed), None, "it joins for the first time");
        }
    }

    #[test]
    fn another_former_hub_than_the_one_that_is_left_is_refused() {
        let wrong = Typed { server: Some("https://c:6443"), is_reached: false };
        for (registers, holds) in [(A, Some(A)), (B, Some(A)), (B, Some(B))] {
            let refused = to_b(&found(registers, holds, Some(&intent(A, B))), wrong).unwrap_err();
            assert_eq!(refused.reason, Reason::Refused);
            assert!(refused.message.contains("the one at https://a:6443, not the one at https://c:6443"), "{refused}");
            assert_eq!(refused.hints, [crate::Hint::from(Remedy::NameFormerHub)]);
        }
        let same = to_b(&found(A, Some(A), None), Typed { server: Some(B), is_reached: false }).unwrap_err();
        assert_eq!(same.reason, Reason::Usage);
        let nobodys = to_b(&Found::default(), REACHED).unwrap_err();
        assert!(nobodys.message.contains("leaves no hub"), "{nobodys}");
        assert_eq!(to_b(&Found::default(), NONE), Ok(None));
    }

    #[test]
    fn a_cluster_on_its_way_to_one_hub_does_not_go_to_another() {
        let goes = |found: &Found, to| standing(found, "c1", &hub(to), REACHED, "it").map(|change| change.is_some());
        let back = |found: &Found| goes(found, A);
        for (holds, to) in [(Some(A), "https://c:6443"), (Some(B), A), (None, A)] {
            let refused = goes(&found(B, holds, Some(&intent(A, B))), to).unwrap_err();
            assert!(
                refused.message.contains("from the hub at https://a:6443 to the one at https://b:6443"),
                "{refused}"
            );
        }
        // Nothing has been changed yet, or all has come to its end.
        assert_eq!(back(&found(A, Some(A), Some(&intent(A, B)))), Ok(false));
        assert_eq!(back(&found(B, Some(B), None)), Ok(true));
    }

    #[test]
    fn a_cluster_goes_back_as_long_as_its_agent_holds_a_certificate_of_its_former_hub() {
        let noted = intent(A, B);
        for typed in [NONE, REACHED, Typed { server: Some(B), is_reached: false }] {
            let turned = found(B, Some(A), Some(&noted));
            assert_eq!(standing(&turned, "c1", &hub(A), typed, "it"), Ok(None), "it leaves no hub for this one");
        }
        let back = |registers, holds, noted, to| turned_back(&found(registers, holds, noted), "c1", &hub(to));
        assert_eq!(back(B, Some(A), Some(&noted), A).as_ref(), Some(&noted));
        assert_eq!(back(A, Some(A), Some(&noted), A).as_ref(), Some(&noted), "nothing but the note is left of it");
        for (holds, noted, to) in [(Some(B), Some(&noted), A), (None, Some(&noted), A), (Some(A), None, A)] {
            assert_eq!(back(B, holds, noted, to), None);
        }
        assert_eq!(back(B, Some(A), Some(&noted), B), None, "it goes on");
    }

    #[test]
    fn a_cluster_keeps_its_name_on_its_way() {
        let refused = standing(&found(A, Some(A), None), "c2", &hub(B), REACHED, "it").unwrap_err();
        assert!(refused.message.contains("is \"c1\" at the hub at https://a:6443"), "{refused}");
    }

    #[test]
    fn what_is_not_certainly_this_clusters_stays_at_the_former_hub() {
        let stays = |judged: AtFormerHub| matches!(judged, AtFormerHub::Stays(_));
        assert_eq!(at_former_hub(false, Some("u1"), Ok("u1")), AtFormerHub::Goes);
        assert_eq!(at_former_hub(false, None, Ok("u1")), AtFormerHub::Goes, "what a run that was killed has left");
        assert_eq!(at_former_hub(false, Some("u2"), Ok("u1")), AtFormerHub::Anothers);
        for there in [Some("u1"), None] {
            assert!(stays(at_former_hub(false, there, Err("nobody has said it"))));
            assert_eq!(at_former_hub(true, there, Err("nobody has said it")), AtFormerHub::Nothing);
        }
    }

    #[test]
    fn what_is_noted_is_believed_only_as_far_as_the_former_hub_says_the_same() {
        assert_eq!(must_agree(None, "u1", "it"), Ok(()));
        assert_eq!(must_agree(Some("u1"), "u1", "it"), Ok(()));
        let refused = must_agree(Some("u2"), "u1", "it").unwrap_err();
        assert_eq!(refused.reason, Reason::Refused);
        assert!(refused.message.contains("UID u2, and the hub says that the one with UID u1"), "{refused}");
        // What it does not say any more is noted no longer.
        let change = to_b(&found(B, Some(A), Some(&intent(A, B))), REACHED).unwrap().unwrap();
        let noted = HubChange { cluster: None, ..change }.to_note(B).unwrap();
        assert_eq!(noted.patch()["metadata"]["annotations"][FORMER_CLUSTER], Value::Null);
    }

    #[test]
    fn what_works_of_the_former_hub_have_applied_stays_as_long_as_the_klusterlet_says() {
        assert_eq!(grace(None), "60m");
        let said = json!({"spec": {"workConfiguration": {"appliedManifestWorkEvictionGracePeriod": "5m"}}});
        assert_eq!(grace(Some(&said)), "5m");
        assert_eq!(["60m", "875999h", "876000h"].map(is_for_ever), [false, false, true]);
    }
}
