//! Who holds a cluster's name (rules R6 and R8).

use std::collections::BTreeSet;

use crate::csr::{self, Csr};
use crate::{Code, Violation, time};

/// What the hub holds of the cluster itself. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// When it was created.
    pub created: Option<i64>,
    /// Whether it is being removed.
    pub deleting: bool,
    /// Whether the hub accepts it.
    pub accepted: bool,
    /// Whether the hub accepted it by itself, as it does for everybody where that is switched on:
    /// [`is_accepted_by_hub`](crate::cluster::is_accepted_by_hub).
    pub accepted_by_hub: bool,
    /// Whether the hub has acted on an acceptance of it: it has the condition `HubAcceptedManagedCluster`, true or not.
    pub accepted_before: bool,
    /// Whether its agent joined.
    pub joined: bool,
    /// When its agent joined, where that is known.
    pub joined_at: Option<i64>,
}

impl Holder {
    /// Whether somebody decided that the hub accepts it.
    pub fn accepted_by_person(&self) -> bool {
        self.accepted && !self.accepted_by_hub
    }
}

/// What the hub has under the name of a cluster before it is accepted: a namespace of that name becomes its agent's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Namespace {
    /// No namespace has the name.
    #[default]
    Absent,
    /// The namespace is labelled as this cluster's.
    Own {
        /// When it was created.
        created: Option<i64>,
    },
    /// The namespace is something else's.
    Foreign,
}

/// What became of a request for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has decided.
    Pending,
    /// It was approved.
    Granted {
        /// When; none where that is not known.
        at: Option<i64>,
    },
    /// It was denied.
    Denied {
        /// When; none where that is not known.
        at: Option<i64>,
    },
    /// It was approved, and its signer failed.
    Failed,
}

/// A request for the name of an agent of the cluster, that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimant<'a> {
    /// Identifies its key, such as a digest; empty where it cannot be read.
    pub key: &'a str,
    /// What became of it.
    pub state: State,
}

/// A request of the hub as one for the name of an agent of `cluster`. None where it does not count: add-ons' requests
/// and renewals, what gives no identity on the hub, and pending ones that break a rule, which anybody may create.
pub fn claimant<'a, S: AsRef<str>>(
    request: &Csr<'_, S>,
    key: &'a str,
    state: State,
    cluster: &str,
    settings: &csr::Settings,
) -> Option<Claimant<'a>> {
    let counts = match state {
        _ if !request.is_first_of(cluster) => false,
        State::Pending => csr::first_certificate(request, cluster, settings).is_empty(),
        // Whoever holds that certificate may be the agent.
        State::Granted { .. } => request.may_act_for(cluster),
        State::Denied { .. } => true,
        State::Failed => false,
    };
    counts.then_some(Claimant { key, state })
}

/// Nothing is granted to a cluster that is being removed, nor is it accepted.
pub fn detaching(deleting: bool) -> Option<Violation> {
    deleting.then(|| Violation::new(Code::Detaching, "metadata.name", "it is being removed from the hub"))
}

/// Whether the cluster itself lets a request for its name be granted.
pub fn standing(holder: Option<&Holder>) -> Option<Violation> {
    let (code, detail) = match holder {
        None => (Code::NoManagedCluster, "the hub has no managed cluster of this name"),
        Some(holder) if holder.deleting => return detaching(true),
        Some(holder) if holder.accepted_before && !holder.accepted => (Code::DeniedBefore, "it was denied"),
        Some(_) => return None,
    };
    Some(Violation::new(code, "metadata.name", detail))
}

/// Whether the cluster itself lets its agent have its certificate again.
pub fn renewal(holder: Option<&Holder>) -> Option<Violation> {
    standing(holder).or_else(|| {
        let accepted = holder.is_some_and(|holder| holder.accepted);
        (!accepted).then(|| Violation::new(Code::DeniedBefore, "metadata.name", "the hub does not accept it"))
    })
}

/// Whether the namespace of the name is free for the agent.
pub fn namespace(name: &str, namespace: Namespace) -> Option<Violation> {
    (namespace == Namespace::Foreign).then(|| {
        let detail = format!("the namespace {name} belongs to something else, and the agent would get rights there");
        Violation::new(Code::NamespaceTaken, "metadata.name", detail)
    })
}

/// Whether the credential that is shown registered the cluster, where it has not joined yet.
pub fn credential(holder: &Holder, registered_by: Option<&str>, shown: Option<&str>) -> Option<Violation> {
    let (code, field, detail) = match registered_by {
        _ if holder.joined => return None,
        None => {
            let detail = "the cluster does not tell which credential registered it";
            (Code::CredentialUnknown, "metadata.annotations", detail)
        }
        Some(_) if registered_by == shown => return None,
        Some(_) => (Code::OtherCredential, "spec.extra", "another credential than this one registered the cluster"),
    };
    Some(Violation::new(code, field, detail))
}

/// Whether a request was granted in this registration of the cluster rather than in an earlier one. When the request was
/// created does not matter: agents keep theirs.
pub fn is_of_registration(holder: &Holder, state: State) -> bool {
    matches!(state, State::Granted { at } if is_since(holder, at))
}

/// Whether a request that was decided at this time was decided when the cluster was there.
pub fn is_since(holder: &Holder, at: Option<i64>) -> bool {
    at.zip(holder.created).is_none_or(|(at, created)| at >= created)
}

/// Whether somebody denied a request for the name since the cluster registered. Whoever was denied can ask again with
/// another key, so only somebody who means this very cluster lets it in.
pub fn denied<'a>(holder: &Holder, mut claimants: impl Iterator<Item = Claimant<'a>>) -> Option<Violation> {
    let denied = |claimant: Claimant<'_>| matches!(claimant.state, State::Denied { at } if is_since(holder, at));
    let let_in = holder.accepted_by_person() || (holder.accepted && holder.joined);
    (!let_in && claimants.any(denied))
        .then(|| Violation::new(Code::DeniedBefore, "spec.request", "a request for its name was denied"))
}

/// Whether another key holds the name, or waits for it, so that `key` does not simply get it.
pub fn rivals<'a>(
    holder: &Holder,
    key: &str,
    claimants: impl Iterator<Item = Claimant<'a>> + Clone,
) -> Option<Violation> {
    let granted = |claimant: Claimant<'_>| is_key(&claimant, key) && is_of_registration(holder, claimant.state);
    taken(holder, key, claimants.clone()).or_else(|| {
        // Anybody who may register clusters may ask for the name of one whose key is known: it is accepted, or was.
        let holds = (holder.accepted || holder.joined) && claimants.clone().any(granted);
        if holds { None } else { contested(key, claimants) }
    })
}

/// Whether another key holds the name.
pub fn taken<'a>(
    holder: &Holder,
    key: &str,
    claimants: impl Iterator<Item = Claimant<'a>> + Clone,
) -> Option<Violation> {
    let mine = |claimant: &Claimant<'_>| is_key(claimant, key);
    let granted = claimants.filter(|claimant| is_of_registration(holder, claimant.state));
    let before_join = |claimant: &Claimant<'_>| match (claimant.state, holder.joined_at) {
        // What cannot be told is taken for the worse.
        (State::Granted { at }, Some(joined)) => at.is_some_and(|at| at <= joined),
        _ => true,
    };
    let detail = match () {
        () if holder.joined && !granted.clone().any(|claimant| mine(&claimant) && before_join(&claimant)) => {
            "a joined cluster holds this name with another key"
        }
        // A certificate of this registration went to another key, and whoever holds it may be about to join.
        () if granted.clone().any(|claimant| !mine(&claimant)) => "another key was approved for this name",
        () => return None,
    };
    Some(Violation::new(Code::NameTaken, "spec.request", detail))
}

/// Whether other keys wait for the name.
pub fn contested<'a>(key: &str, claimants: impl Iterator<Item = Claimant<'a>>) -> Option<Violation> {
    let pending = claimants.filter(|claimant| claimant.state == State::Pending && !is_key(claimant, key));
    // Inserted one by one: collecting would sort them first, with code of its own.
    let mut others: BTreeSet<&str> = BTreeSet::new();
    others.extend(pending.map(|claimant| claimant.key));
    (!others.is_empty()).then(|| {
        let detail = format!("{} keys ask for this name", others.len() + 1);
        Violation::new(Code::TwoKeys, "spec.request", detail)
    })
}

/// Whether a claimant has this key. One that cannot be read is nobody's.
fn is_key(claimant: &Claimant<'_>, key: &str) -> bool {
    !claimant.key.is_empty() && claimant.key == key
}

/// What the policy controller has noted of the keys that a name was given to. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registration<'a> {
    /// UID of the cluster that they were approved for; none where that is not known.
    pub cluster_uid: Option<&'a str>,
    /// Until when the last of their certificates may be valid, `i64::MAX` where nobody can tell; none: there are no keys.
    pub until: Option<i64>,
}

impl Registration<'_> {
    /// Until when certificates may be valid that were given to another cluster of the name than the one of this UID; none:
    /// there are no such, or they have ended.
    pub fn of_another_until(&self, cluster_uid: Option<&str>, now: Option<i64>) -> Option<i64> {
        // What cannot be told is taken for the worse.
        let own = self.cluster_uid.is_some() && self.cluster_uid == cluster_uid;
        self.until.filter(|until| !own && now.is_none_or(|now| *until > now))
    }
}

/// What the hub holds about a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The name.
    pub name: &'a str,
    /// UID of the cluster, where it is known.
    pub uid: Option<&'a str>,
    /// The cluster.
    pub holder: Option<Holder>,
    /// The namespace of the name.
    pub namespace: Namespace,
    /// When the ClusterRole of the cluster's agents was created, if there is one.
    pub role_created: Option<i64>,
    /// What the policy controller has noted of the name, if anything.
    pub registration: Option<Registration<'a>>,
    /// The time; none where what was noted counts whatever the time is.
    pub now: Option<i64>,
}

impl Facts<'_> {
    /// Until when certificates of another cluster of the name may be valid, as far as that was noted: `i64::MAX` where
    /// nobody can tell.
    pub fn noted_until(&self) -> Option<i64> {
        self.registration?.of_another_until(self.uid, self.now)
    }
}

/// Everything that keeps `key` from getting the first certificate for a name.
pub fn first_certificate<'a>(
    facts: &Facts<'_>,
    key: &str,
    claimants: impl Iterator<Item = Claimant<'a>> + Clone,
) -> Vec<Violation> {
    let mut found = Vec::new();
    found.extend(standing(facts.holder.as_ref()));
    found.extend(namespace(facts.name, facts.namespace));
    if let Some(holder) = &facts.holder {
        found.extend(denied(holder, claimants.clone()));
        found.extend(rivals(holder, key, claimants.clone()));
        found.extend(used_before(holder, facts, claimants));
    }
    found
}

/// Whether a name was used before this registration: certificates of the former holder live on, and get their rights
/// back as soon as the name is accepted again. A cluster that has joined holds the name itself.
pub fn used_before<'a>(
    holder: &Holder,
    facts: &Facts<'_>,
    mut claimants: impl Iterator<Item = Claimant<'a>>,
) -> Option<Violation> {
    let older = |at: Option<i64>| match (at, holder.created) {
        (Some(at), Some(created)) => at < created,
        // What cannot be told is taken for the worse.
        _ => true,
    };
    let earlier = |claimant: Claimant<'_>| matches!(claimant.state, State::Granted { at } if older(at));
    let trace = match (facts.noted_until(), facts.namespace) {
        _ if holder.joined => return None,
        // It alone tells the end.
        (Some(i64::MAX), _) => "nobody can tell until when its certificates are valid",
        (Some(until), _) => &format!("its certificates may be valid until {}", time::text(until)),
        (_, Namespace::Own { created }) if older(created) => "its namespace is older than this registration",
        _ if claimants.any(earlier) => "a certificate for the name was approved before this registration",
        _ if facts.role_created.is_some_and(|created| older(Some(created))) => {
            "the role of its agents is older than this registration"
        }
        _ => return None,
    };
    let detail = format!("a cluster of this name was here before: {trace}");
    Some(Violation::new(Code::NameUsedBefore, "metadata.name", detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::samples::{CLUSTER_PROXY_OF_HUB, FIRST, RENEWAL, named};

    const NEW: Holder = Holder {
        created: Some(100),
        deleting: false,
        accepted: false,
        accepted_by_hub: false,
        accepted_before: false,
        joined: false,
        joined_at: None,
    };
    const JOINED: Holder = Holder { accepted: true, joined: true, joined_at: Some(200), ..NEW };

    /// Nobody knows when it was approved.
    const UNKNOWN: Claimant<'_> = Claimant { key: "k1", state: State::Granted { at: None } };

    fn pending(key: &str) -> Claimant<'_> {
        Claimant { key, state: State::Pending }
    }

    fn granted(key: &str, at: i64) -> Claimant<'_> {
        Claimant { key, state: State::Granted { at: Some(at) } }
    }

    /// What was noted of keys of a name whose cluster has the UID `own`, at the time 500.
    fn noted<'a>(cluster_uid: Option<&'a str>, until: Option<i64>) -> Facts<'a> {
        let registration = Some(Registration { cluster_uid, until });
        Facts { name: "a", uid: Some("own"), registration, now: Some(500), ..Facts::default() }
    }

    fn rivals_of(holder: &Holder, claimants: &[Claimant<'_>]) -> Option<Code> {
        rivals(holder, "k1", claimants.iter().copied()).map(|violation| violation.code)
    }

    #[test]
    fn a_cluster_must_stand_for_its_name() {
        let code = |holder: Option<Holder>| standing(holder.as_ref()).map(|violation| violation.code);
        assert_eq!(code(None), Some(Code::NoManagedCluster));
        assert_eq!(code(Some(Holder { deleting: true, ..NEW })), Some(Code::Detaching));
        assert_eq!(code(Some(Holder { accepted_before: true, ..NEW })), Some(Code::DeniedBefore));
        assert_eq!(code(Some(Holder { accepted_before: true, accepted: true, ..NEW })), None);
        assert_eq!(code(Some(NEW)), None);
        assert_eq!(namespace("a", Namespace::Foreign).map(|violation| violation.code), Some(Code::NamespaceTaken));
        assert_eq!(namespace("a", Namespace::Own { created: None }), None);
        // Only an accepted cluster gives its agent another certificate.
        let code = |holder: Option<Holder>| renewal(holder.as_ref()).map(|violation| violation.code);
        assert_eq!((code(None), code(Some(NEW))), (Some(Code::NoManagedCluster), Some(Code::DeniedBefore)));
        assert_eq!(code(Some(Holder { deleting: true, ..JOINED })), Some(Code::Detaching));
        assert_eq!(code(Some(JOINED)), None);
    }

    #[test]
    fn requests_count_where_they_say_something_about_the_name() {
        let settings = csr::Settings::default();
        let pending = |request| claimant(&request, "k", State::Pending, "c1", &settings).is_some();
        let granted = |request| claimant(&request, "k", State::Granted { at: None }, "c1", &settings).is_some();
        assert!(pending(FIRST) && granted(FIRST));
        assert_eq!(claimant(&FIRST, "k", State::Failed, "c1", &settings), None);
        let denied = |request| claimant(&request, "k", State::Denied { at: None }, "c1", &settings).is_some();
        assert!(denied(FIRST) && denied(Csr { usages: &["server auth"], ..FIRST }) && !denied(RENEWAL));
        assert_eq!(claimant(&FIRST, "k", State::Pending, "c2", &settings), None, "it is for another name");
        // Nobody knows whose certificate it became.
        let unreadable = Csr { content: Err(csr::Unreadable::of("no PEM")), ..FIRST };
        assert!(granted(unreadable) && granted(Csr { addon_label: Some("x"), ..unreadable }) && !pending(unreadable));
        assert!(!granted(Csr { cluster_label: Some("c2"), ..unreadable }));
        assert!(!granted(Csr { signer: "example.com/s", ..unreadable }));
        // Anybody may create what breaks a rule; once it was approved, it is somebody's certificate.
        for wrong in [
            Csr { usages: &["server auth"], ..FIRST },
            Csr { addon_label: Some("x"), ..FIRST },
            Csr { cluster_label: None, ..FIRST },
            Csr { cluster_label: Some("c2"), ..FIRST },
            named(&["bob", "system:open-cluster-management:c1:a1"]),
            // Roles are bound to its groups.
            named(&["bob"]),
        ] {
            assert!(!pending(wrong) && granted(wrong), "{wrong:?}");
        }
        let of_no_group = Csr {
            content: named(&["bob"]).content.map(|content| csr::Content { organizations: &[], ..content }),
            ..FIRST
        };
        for other in [Csr { signer: "example.com/s", ..FIRST }, of_no_group, RENEWAL] {
            assert!(!pending(other) && !granted(other), "{other:?}");
        }
        let addons = CLUSTER_PROXY_OF_HUB;
        assert!(!pending(addons) && !granted(addons) && !denied(addons), "nobody registers with it");
    }

    #[test]
    fn the_first_key_gets_the_name_unless_another_asks() {
        assert_eq!(rivals_of(&NEW, &[]), None);
        assert_eq!(rivals_of(&NEW, &[pending("k1"), granted("k1", 110)]), None);
        assert_eq!(rivals_of(&NEW, &[pending("k1"), pending("k2")]), Some(Code::TwoKeys));
        assert_eq!(rivals_of(&NEW, &[granted("k2", 110)]), Some(Code::NameTaken));
        assert_eq!(rivals_of(&NEW, &[granted("k2", 90)]), None, "an earlier registration's");
        assert_eq!(
            rivals_of(&NEW, &[Claimant { key: "k2", state: State::Granted { at: None } }]),
            Some(Code::NameTaken)
        );
        assert_eq!(rivals_of(&NEW, &[granted("", 110)]), Some(Code::NameTaken), "nobody knows its key");
        let told = |claimants: &[Claimant<'_>]| contested("k1", claimants.iter().copied()).map(|told| told.detail);
        let three = [pending("k1"), pending("k2"), pending("k2"), pending("k3")];
        assert_eq!(told(&three).as_deref(), Some("3 keys ask for this name"));
    }

    #[test]
    fn a_denial_holds_for_what_is_asked_afterwards() {
        let denied_at = |at| Claimant { key: "k2", state: State::Denied { at } };
        let code = |holder, at| denied(&holder, [denied_at(at)].into_iter()).map(|violation| violation.code);
        assert_eq!(code(NEW, Some(100)), Some(Code::DeniedBefore));
        assert_eq!(code(NEW, None), Some(Code::DeniedBefore));
        assert_eq!(code(NEW, Some(99)), None, "another registration's");
        assert_eq!(code(Holder { accepted: true, ..NEW }, Some(100)), None, "somebody let it in");
        let by_hub = Holder { accepted: true, accepted_by_hub: true, ..NEW };
        assert_eq!(code(by_hub, Some(100)), Some(Code::DeniedBefore), "nobody let it in");
        assert_eq!(code(Holder { accepted_by_hub: true, ..JOINED }, Some(100)), None, "its key is known");
        assert_eq!(rivals_of(&NEW, &[denied_at(Some(100))]), None, "it has no certificate, and does not wait");
    }

    #[test]
    fn a_joined_cluster_keeps_its_key() {
        assert_eq!(rivals_of(&JOINED, &[]), Some(Code::NameTaken));
        assert_eq!(rivals_of(&JOINED, &[granted("k1", 110)]), None);
        assert_eq!(rivals_of(&JOINED, &[granted("k1", 210)]), Some(Code::NameTaken), "after the other one joined");
        assert_eq!(rivals_of(&JOINED, &[UNKNOWN]), Some(Code::NameTaken), "perhaps after the other one joined");
        let some_time = Holder { joined_at: None, ..JOINED };
        assert_eq!(rivals_of(&some_time, &[granted("k1", 210)]), None);
        assert_eq!(rivals_of(&JOINED, &[granted("k1", 110), granted("k2", 110)]), Some(Code::NameTaken));
    }

    #[test]
    fn strangers_do_not_keep_the_holder_from_asking_again() {
        let asked = [granted("k1", 110), pending("k2")];
        assert_eq!(rivals_of(&JOINED, &asked), None);
        assert_eq!(
            rivals_of(&Holder { accepted: false, accepted_before: true, ..JOINED }, &asked),
            None,
            "denied since"
        );
        assert_eq!(rivals_of(&Holder { accepted: true, ..NEW }, &asked), None);
        assert_eq!(rivals_of(&NEW, &asked), Some(Code::TwoKeys), "nobody let the first one in");
        let earlier = [granted("k1", 90), pending("k2")];
        assert_eq!(rivals_of(&Holder { accepted: true, ..NEW }, &earlier), Some(Code::TwoKeys));
    }

    #[test]
    fn the_credential_that_registered_a_cluster_gets_its_certificate() {
        let code = |holder, by, shown| credential(&holder, by, shown).map(|violation: Violation| violation.code);
        assert_eq!(code(NEW, Some("JTI=1"), Some("JTI=1")), None);
        assert_eq!(code(NEW, Some("JTI=1"), Some("JTI=2")), Some(Code::OtherCredential));
        assert_eq!(code(NEW, Some("JTI=1"), None), Some(Code::OtherCredential));
        assert_eq!(code(NEW, None, None), Some(Code::CredentialUnknown));
        assert_eq!(code(JOINED, None, Some("JTI=2")), None);
    }

    #[test]
    fn traces_of_earlier_holders_are_seen() {
        let traced = |holder: Holder, facts: Facts<'_>, claimants: &[Claimant<'_>]| {
            let found = first_certificate(&Facts { holder: Some(holder), ..facts }, "k1", claimants.iter().copied());
            let details: Vec<String> = found
                .into_iter()
                .map(|Violation { code, detail, .. }| {
                    assert_eq!(code, Code::NameUsedBefore);
                    detail
                })
                .collect();
            details.concat()
        };
        let none = Facts { name: "a", ..Facts::default() };
        let own = |created| Facts { namespace: Namespace::Own { created }, ..none };
        assert_eq!(traced(NEW, none, &[]), "");
        let now = Facts { role_created: Some(100), ..own(Some(100)) };
        assert_eq!(traced(NEW, now, &[granted("k1", 100), pending("k1")]), "");
        for (facts, claimants, trace) in [
            (own(Some(99)), [].as_slice(), "its namespace is older than this registration"),
            (own(None), &[], "its namespace is older than this registration"),
            (none, &[granted("k1", 99)], "a certificate for the name was approved before this registration"),
            (none, &[UNKNOWN], "a certificate for the name was approved before this registration"),
            (Facts { role_created: Some(99), ..none }, &[], "the role of its agents is older than this registration"),
            (noted(Some("other"), Some(86_400_000)), &[], "its certificates may be valid until 1970-01-02T00:00:00Z"),
            (noted(Some("other"), Some(i64::MAX)), &[], "nobody can tell until when its certificates are valid"),
        ] {
            assert_eq!(traced(NEW, facts, claimants), format!("a cluster of this name was here before: {trace}"));
            assert_eq!(traced(JOINED, facts, &[&[granted("k1", 150)], claimants].concat()), "");
        }
    }

    #[test]
    fn a_name_is_used_until_the_last_certificate_of_another_cluster_has_ended() {
        let until = |facts: Facts<'_>| facts.noted_until();
        assert_eq!(until(noted(Some("other"), Some(501))), Some(501));
        assert_eq!(until(noted(Some("other"), Some(500))), None, "it has ended");
        assert_eq!(until(noted(Some("other"), None)), None, "no key was approved");
        assert_eq!(until(noted(Some("own"), Some(501))), None, "its own");
        assert_eq!(until(noted(None, Some(501))), Some(501), "nobody knows whose they are");
        assert_eq!(until(Facts { uid: None, ..noted(Some("other"), Some(501)) }), Some(501));
        assert_eq!(until(Facts { uid: None, ..noted(None, Some(501)) }), Some(501));
        assert_eq!(until(Facts { now: None, ..noted(Some("other"), Some(500)) }), Some(500), "nobody knows the time");
        assert_eq!(until(Facts { registration: None, ..noted(None, None) }), None);
    }

    #[test]
    fn everything_that_stands_in_the_way_is_told() {
        let facts = Facts {
            name: "a",
            holder: Some(Holder { deleting: true, ..NEW }),
            namespace: Namespace::Foreign,
            role_created: Some(99),
            ..Facts::default()
        };
        let codes: Vec<Code> = first_certificate(&facts, "k1", [granted("k2", 110)].into_iter())
            .into_iter()
            .map(|told| told.code)
            .collect();
        assert_eq!(codes, [Code::Detaching, Code::NamespaceTaken, Code::NameTaken, Code::NameUsedBefore]);
        let nobody = first_certificate(&Facts { holder: None, ..facts }, "k1", [].into_iter());
        assert_eq!(
            nobody.iter().map(|told| told.code).collect::<Vec<_>>(),
            [Code::NoManagedCluster, Code::NamespaceTaken]
        );
    }
}
