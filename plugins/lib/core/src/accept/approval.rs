//! What a person's approval of a cluster says, and whether that person has given it before.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use ocm_api::approval::{ApprovedCluster, MAX_GROUPS, RegistrationApprovalSpec};
use ocm_api::{ManagedCluster, RegistrationApproval};
use ocm_rules::identity;
use serde_json::json;

use super::{Help, Refusal};
use crate::csr::{Code, Request, State};
use crate::order;

/// Groups that the API server gives to everybody, or to its own components. They tell nothing of a person.
const SYSTEM: &str = "system:";

/// Who approves, as the hub knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approver {
    /// User name.
    pub user: String,
    /// The groups that are to count.
    pub groups: Vec<String>,
}

/// Why these groups cannot count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongGroups {
    /// The approver is in more groups than an approval names.
    #[error("you are in {0} groups, and an approval names at most {MAX_GROUPS}")]
    TooMany(usize),
    /// The approver is not in a group that was named.
    #[error("you are not in the group {group:?}; the hub knows you as {user:?} in {}", names(.groups))]
    NotIn {
        /// The approver.
        user: String,
        /// What was named.
        group: String,
        /// The groups of the approver.
        groups: Vec<String>,
    },
}

fn names(groups: &[String]) -> String {
    if groups.is_empty() { "no group".to_owned() } else { groups.join(", ") }
}

impl Approver {
    /// A user of these groups, of which the wanted ones are to count; where none is named, all but those of the system.
    ///
    /// # Errors
    /// When the user is not in a group that was named, or in too many.
    pub fn new(user: &str, groups: &[String], wanted: &[String]) -> Result<Self, WrongGroups> {
        if let Some(group) = wanted.iter().find(|group| !groups.contains(group)) {
            return Err(WrongGroups::NotIn { user: user.to_owned(), group: group.clone(), groups: groups.to_vec() });
        }
        let counts = |group: &&String| match wanted {
            [] => !group.starts_with(SYSTEM),
            wanted => wanted.contains(group),
        };
        let mut groups: Vec<String> = groups.iter().filter(counts).cloned().collect();
        order::sort(&mut groups);
        groups.dedup();
        match groups.len() {
            0..=MAX_GROUPS => Ok(Self { user: user.to_owned(), groups }),
            many => Err(WrongGroups::TooMany(many)),
        }
    }

    /// Whether this is no person: policies do not count such unless they name it.
    pub fn is_machine(&self) -> bool {
        ["system:serviceaccount:", "system:bootstrap:", identity::PREFIX]
            .iter()
            .any(|prefix| self.user.starts_with(prefix))
    }
}

/// What an approval is given with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Who approves.
    pub approver: Approver,
    /// Why.
    pub reason: Option<String>,
    /// From when on it does not count.
    pub until: Timestamp,
    /// The time on the hub.
    pub now: Timestamp,
    /// Approvals that were not created after that do not count.
    pub proved_since: Timestamp,
    /// Whether it is for an emergency.
    pub break_glass: bool,
}

/// A person's word about one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// It was given before, and still counts: by this approval.
    Given(Box<RegistrationApproval>),
    /// It is to be given, with this approval.
    ToGive(Box<RegistrationApproval>),
    /// It would not count.
    Refused(Refusal),
}

/// What there is to say about a cluster for which `requester` asks, after the approvals that the hub has.
pub fn word(cluster: &ManagedCluster, requester: &str, terms: &Terms, known: &[RegistrationApproval]) -> Word {
    let Approver { user, groups } = &terms.approver;
    if user == requester {
        let detail = format!("{user} asks for this cluster's certificate: whoever asks cannot approve");
        return Word::Refused(Refusal::new(Code::Approver, detail, None));
    }
    let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
    let (given, spent): (Vec<_>, Vec<_>) = known
        .iter()
        .filter(|known| {
            let spec = &known.spec;
            spec.cluster.uid == uid
                && spec.requester == requester
                && spec.approver == *user
                && spec.break_glass == terms.break_glass
        })
        .partition(|known| counts(known, terms));
    let latest = given.into_iter().max_by_key(|given| until(given));
    if let Some(given) = latest {
        return Word::Given(Box::new(given.clone()));
    }
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let object = name_of(&name, &json!([uid, requester, user, terms.break_glass]), &spent);
    let mut approval = RegistrationApproval::new(
        &object,
        RegistrationApprovalSpec {
            cluster: ApprovedCluster { name: name.clone(), uid: uid.to_owned() },
            requester: requester.to_owned(),
            approver: user.clone(),
            groups: groups.clone(),
            reason: terms.reason.clone(),
            expires_at: terms.until.to_string(),
            break_glass: terms.break_glass,
        },
    );
    // It is about this very object and goes with it.
    approval.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "cluster.open-cluster-management.io/v1".to_owned(),
        kind: "ManagedCluster".to_owned(),
        name,
        uid: uid.to_owned(),
        ..OwnerReference::default()
    }]);
    Word::ToGive(Box::new(approval))
}

/// Why a cluster cannot be accepted by an approval with breakGlass for this requester: a certificate of its agent was given to
/// somebody else, who would be let in as well. `requests` are those that the hub has of the name.
pub fn another_requester(name: &str, requester: &str, requests: &[Request]) -> Option<Refusal> {
    let is_given = |request: &&Request| {
        matches!(request.state, State::Approved | State::Issued)
            && request.may_act_for(name)
            && identity::Identity::of(request.asked_by()).cluster() != Some(name)
    };
    let other = requests.iter().filter(is_given).find(|request| request.asked_by() != requester)?;
    let detail = format!(
        "request {} of {} was approved for this name, too, and an approval with breakGlass is for {requester} alone",
        other.name,
        other.asked_by()
    );
    Some(Refusal::new(Code::SeveralRequesters, detail, Help::Request(other.name.clone())))
}

/// Whether an approval of this approver says already what is to be said.
fn counts(known: &RegistrationApproval, terms: &Terms) -> bool {
    let created = known.metadata.creation_timestamp.as_ref().map(|time| time.0);
    known.metadata.deletion_timestamp.is_none()
        && created.is_some_and(|created| created > terms.proved_since)
        && until(known).is_some_and(|until| until > terms.now)
        && terms.approver.groups.iter().all(|group| known.spec.groups.contains(group))
}

fn until(known: &RegistrationApproval) -> Option<Timestamp> {
    known.spec.expires_at.parse().ok()
}

/// A name that two runs at once both come to, so that they write one object, and another one once what was written with it
/// does not count any more.
fn name_of(cluster: &str, said: &serde_json::Value, spent: &[&RegistrationApproval]) -> String {
    let mut spent: Vec<_> = spent.iter().map(|spent| &spent.metadata.uid).collect();
    order::sort(&mut spent);
    let digest = ring::digest::digest(&ring::digest::SHA256, json!([said, spent]).to_string().as_bytes());
    let digits: String = digest.as_ref()[..10].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{cluster}-{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn cluster() -> ManagedCluster {
        let mut cluster = ManagedCluster::default();
        cluster.metadata.name = Some("c1".to_owned());
        cluster.metadata.uid = Some("u1".to_owned());
        cluster
    }

    fn terms() -> Terms {
        Terms {
            approver: Approver { user: "ann".to_owned(), groups: vec!["admins".to_owned()] },
            reason: Some("ticket 4711".to_owned()),
            until: time("2026-01-04T00:00:00Z"),
            now: time("2026-01-01T00:00:00Z"),
            proved_since: time("2025-01-01T00:00:00Z"),
            break_glass: false,
        }
    }

    fn to_give(known: &[RegistrationApproval], terms: &Terms) -> RegistrationApproval {
        match word(&cluster(), "agent", terms, known) {
            Word::ToGive(approval) => *approval,
            other => panic!("{other:?}"),
        }
    }

    /// An approval as the hub holds it.
    fn kept(mut approval: RegistrationApproval) -> RegistrationApproval {
        approval.metadata.uid = Some(format!("of {}", approval.metadata.name.as_deref().unwrap_or_default()));
        approval.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time("2025-12-31T00:00:00Z")));
        approval
    }

    #[test]
    fn an_approval_says_who_lets_which_cluster_in_for_whom_and_goes_with_the_cluster() {
        let approval = to_give(&[], &terms());
        assert_eq!(
            serde_json::to_value(&approval.spec).unwrap(),
            json!({
                "cluster": {"name": "c1", "uid": "u1"}, "requester": "agent", "approver": "ann", "groups": ["admins"],
                "reason": "ticket 4711", "expiresAt": "2026-01-04T00:00:00Z",
            })
        );
        assert_eq!(
            serde_json::to_value(&approval.metadata.owner_references).unwrap(),
            json!([{"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "name": "c1", "uid": "u1"}])
        );
    }

    #[test]
    fn what_was_said_and_still_counts_is_not_said_again() {
        let said = kept(to_give(&[], &terms()));
        let again = word(&cluster(), "agent", &terms(), std::slice::from_ref(&said));
        assert_eq!(again, Word::Given(Box::new(said.clone())));
        type Change = fn(&mut RegistrationApproval);
        let changes: [(&str, Change); 8] = [
            ("it has ended", |said| said.spec.expires_at = "2026-01-01T00:00:00Z".to_owned()),
            ("its end cannot be read", |said| said.spec.expires_at = "never".to_owned()),
            ("it is for an emergency", |said| said.spec.break_glass = true),
            ("another group", |said| said.spec.groups = vec!["night".to_owned()]),
            ("another person", |said| said.spec.approver = "bob".to_owned()),
            ("another requester", |said| said.spec.requester = "other".to_owned()),
            ("another cluster of this name", |said| said.spec.cluster.uid = "u0".to_owned()),
            ("it is being deleted", |said| {
                said.metadata.deletion_timestamp = said.metadata.creation_timestamp.clone();
            }),
        ];
        for (what, change) in changes {
            let mut other = said.clone();
            change(&mut other);
            assert!(matches!(word(&cluster(), "agent", &terms(), &[other]), Word::ToGive(_)), "{what}");
        }
        let unproved = Terms { proved_since: time("2025-12-31T00:00:00Z"), ..terms() };
        assert!(matches!(word(&cluster(), "agent", &unproved, &[said]), Word::ToGive(_)), "nobody proved it");
    }

    #[test]
    fn an_approval_for_an_emergency_is_another_one() {
        let emergency = Terms { break_glass: true, ..terms() };
        let (first, second) = (kept(to_give(&[], &terms())), to_give(&[], &emergency));
        assert_ne!(first.metadata.name, second.metadata.name);
        assert!(second.spec.break_glass);
        let again = word(&cluster(), "agent", &emergency, &[first]);
        assert!(matches!(again, Word::ToGive(_)), "the ordinary one breaks nothing");
        let second = kept(second);
        let again = word(&cluster(), "agent", &emergency, std::slice::from_ref(&second));
        assert_eq!(again, Word::Given(Box::new(second)));
    }

    #[test]
    fn two_runs_come_to_one_name_and_after_the_end_to_another() {
        let first = to_give(&[], &terms());
        let later = Terms { until: time("2026-01-05T00:00:00Z"), reason: None, ..terms() };
        assert_eq!(first.metadata.name, to_give(&[], &later).metadata.name);
        let mut ended = kept(first.clone());
        ended.spec.expires_at = "2026-01-01T00:00:00Z".to_owned();
        let next = to_give(std::slice::from_ref(&ended), &terms());
        assert_ne!(first.metadata.name, next.metadata.name);
        // What others say changes nothing.
        let mut others = ended;
        others.spec.approver = "bob".to_owned();
        assert_eq!(first.metadata.name, to_give(&[others], &terms()).metadata.name);
    }

    #[test]
    fn whoever_asks_does_not_approve() {
        let Word::Refused(refusal) = word(&cluster(), "ann", &terms(), &[]) else { panic!("it is approved") };
        assert_eq!(refusal.code, Code::Approver);
    }

    #[test]
    fn groups_are_those_that_are_named_or_all_but_the_systems() {
        let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let of = groups(&["system:authenticated", "night", "admins"]);
        let counted = |wanted: &[&str]| Approver::new("ann", &of, &groups(wanted)).map(|approver| approver.groups);
        assert_eq!(counted(&[]), Ok(groups(&["admins", "night"])));
        assert_eq!(counted(&["night", "night"]), Ok(groups(&["night"])));
        assert_eq!(counted(&["system:authenticated"]), Ok(groups(&["system:authenticated"])));
        let wrong = counted(&["night", "masters"]).unwrap_err();
        assert!(wrong.to_string().contains("not in the group \"masters\""), "{wrong}");
        let many: Vec<String> = (0..=MAX_GROUPS).map(|number| format!("g{number}")).collect();
        assert_eq!(Approver::new("ann", &many, &[]), Err(WrongGroups::TooMany(17)));
        assert_eq!(Approver::new("ann", &many[1..], &[]).map(|approver| approver.groups.len()), Ok(MAX_GROUPS));
        assert_eq!(Approver::new("ann", &many, &many[..1]).map(|approver| approver.groups.len()), Ok(1));
    }

    #[test]
    fn only_people_are_people() {
        let is_machine = |user: &str| Approver { user: user.to_owned(), groups: Vec::new() }.is_machine();
        assert!(!is_machine("ann") && !is_machine("system:admin"));
        for user in ["system:serviceaccount:a:b", "system:bootstrap:abcdef", "system:open-cluster-management:c1:a1"] {
            assert!(is_machine(user), "{user}");
        }
    }
}
