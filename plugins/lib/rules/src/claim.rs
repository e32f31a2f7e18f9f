//! Who holds a cluster's name (rules R6 and R8).

use crate::{Code, Violation};

/// What the hub holds of the cluster itself. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// When it was created.
    pub created: Option<i64>,
    /// Whether it is being removed.
    pub deleting: bool,
    /// Whether the hub accepts it.
    pub accepted: bool,
    /// Whether the hub has acted on a denial.
    pub denied: bool,
    /// Whether its agent joined.
    pub joined: bool,
    /// When its agent joined, where that is known.
    pub joined_at: Option<i64>,
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
}

/// A request for the name of an agent of the cluster. Requests that were denied or failed, and pending ones that break
/// a rule, are not among them: anybody may create those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimant<'a> {
    /// Identifies its key, such as a digest; empty where it cannot be read.
    pub key: &'a str,
    /// What became of it.
    pub state: State,
}

/// Whether the cluster itself lets a request for its name be granted.
pub fn standing(holder: Option<&Holder>) -> Option<Violation> {
    let code = match holder {
        None => Code::NoManagedCluster,
        Some(holder) if holder.deleting => Code::Detaching,
        Some(holder) if holder.denied && !holder.accepted => Code::DeniedBefore,
        Some(_) => return None,
    };
    let detail = match code {
        Code::NoManagedCluster => "the hub has no managed cluster of this name",
        Code::Detaching => "it is being removed from the hub",
        _ => "it was denied",
    };
    Some(Violation::new(code, "metadata.name", detail))
}

/// Whether the namespace of the name is free for the agent.
pub fn namespace(name: &str, namespace: Namespace) -> Option<Violation> {
    (namespace == Namespace::Foreign).then(|| {
        let detail = format!("the namespace {name} belongs to something else, and the agent would get rights there");
        Violation::new(Code::NamespaceTaken, "metadata.name", detail)
    })
}

/// Whether a request that was granted belongs to this registration of the cluster rather than to an earlier one: it was
/// granted when the cluster was there. When the request was created does not matter: agents keep theirs.
pub fn is_of_registration(holder: &Holder, state: State) -> bool {
    match (state, holder.created) {
        (State::Granted { at: Some(at) }, Some(created)) => at >= created,
        (State::Granted { .. }, _) => true,
        (State::Pending, _) => false,
    }
}

/// Whether another key holds the name, or waits for it, so that `key` does not simply get it.
pub fn rivals<'a>(
    holder: &Holder,
    key: &str,
    claimants: impl Iterator<Item = Claimant<'a>> + Clone,
) -> Option<Violation> {
    let mine = |claimant: &Claimant<'_>| !claimant.key.is_empty() && claimant.key == key;
    let granted = claimants.clone().filter(|claimant| is_of_registration(holder, claimant.state));
    let before_join = |claimant: &Claimant<'_>| match (claimant.state, holder.joined_at) {
        (State::Granted { at: Some(at) }, Some(joined)) => at <= joined,
        _ => true,
    };
    if holder.joined && !granted.clone().any(|claimant| mine(&claimant) && before_join(&claimant)) {
        return Some(Violation::new(
            Code::NameTaken,
            "spec.request",
            "a joined cluster holds this name with another key",
        ));
    }
    // A certificate of this registration went to another key, and whoever holds it may be about to join.
    if granted.clone().any(|claimant| !mine(&claimant)) {
        let detail = "another key was approved for this name";
        return Some(Violation::new(Code::NameTaken, "spec.request", detail));
    }
    claimants
        .clone()
        .any(|claimant| claimant.state == State::Pending && !mine(&claimant))
        .then(|| Violation::new(Code::TwoKeys, "spec.request", "several keys ask for this name"))
}

/// What shows that a name was used before the cluster registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// The namespace is older than the cluster.
    Namespace,
    /// A request was approved before the cluster registered.
    Request,
    /// The agents' role is older than the cluster.
    Role,
    /// The hub keeps the name on a list of used ones.
    Record,
}

impl Trace {
    fn words(self) -> &'static str {
        match self {
            Self::Namespace => "its namespace is older than this registration",
            Self::Request => "a certificate for the name was approved before this registration",
            Self::Role => "the role of its agents is older than this registration",
            Self::Record => "the hub has a record of the name",
        }
    }
}

/// Whether a name was used before this registration: certificates of the former holder live on, and get their rights
/// back as soon as the name is accepted again. A cluster that has joined holds the name itself.
///
/// `role_created` is when the ClusterRole of the cluster's agents was created, if there is one; `recorded` whether the
/// hub keeps a record of the name.
pub fn used_before<'a>(
    holder: &Holder,
    namespace: Namespace,
    role_created: Option<i64>,
    recorded: bool,
    mut claimants: impl Iterator<Item = Claimant<'a>>,
) -> Option<Trace> {
    if holder.joined {
        return None;
    }
    let older = |at: Option<i64>| match (at, holder.created) {
        (Some(at), Some(created)) => at < created,
        // What cannot be told is taken for the worse.
        _ => true,
    };
    match namespace {
        Namespace::Own { created } if older(created) => return Some(Trace::Namespace),
        _ => {}
    }
    let earlier = |claimant: &Claimant<'_>| {
        matches!(claimant.state, State::Granted { .. }) && !is_of_registration(holder, claimant.state)
    };
    if claimants.any(|claimant| earlier(&claimant)) {
        return Some(Trace::Request);
    }
    if role_created.is_some_and(|created| older(Some(created))) {
        return Some(Trace::Role);
    }
    recorded.then_some(Trace::Record)
}

/// The violation for a name that was used before.
pub fn used_before_violation(trace: Trace) -> Violation {
    let detail = format!("a cluster of this name was here before: {}", trace.words());
    Violation::new(Code::NameUsedBefore, "metadata.name", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Holder =
        Holder { created: Some(100), deleting: false, accepted: false, denied: false, joined: false, joined_at: None };
    const JOINED: Holder = Holder { accepted: true, joined: true, joined_at: Some(200), ..NEW };

    fn pending(key: &str) -> Claimant<'_> {
        Claimant { key, state: State::Pending }
    }

    fn granted(key: &str, at: i64) -> Claimant<'_> {
        Claimant { key, state: State::Granted { at: Some(at) } }
    }

    fn rivals_of(holder: &Holder, claimants: &[Claimant<'_>]) -> Option<Code> {
        rivals(holder, "k1", claimants.iter().copied()).map(|violation| violation.code)
    }

    #[test]
    fn a_cluster_must_stand_for_its_name() {
        let code = |holder: Option<Holder>| standing(holder.as_ref()).map(|violation| violation.code);
        assert_eq!(code(None), Some(Code::NoManagedCluster));
        assert_eq!(code(Some(Holder { deleting: true, ..NEW })), Some(Code::Detaching));
        assert_eq!(code(Some(Holder { denied: true, ..NEW })), Some(Code::DeniedBefore));
        assert_eq!(code(Some(NEW)), None);
        assert_eq!(namespace("a", Namespace::Foreign).map(|violation| violation.code), Some(Code::NamespaceTaken));
        assert_eq!(namespace("a", Namespace::Own { created: None }), None);
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
    }

    #[test]
    fn a_joined_cluster_keeps_its_key() {
        assert_eq!(rivals_of(&JOINED, &[]), Some(Code::NameTaken));
        assert_eq!(rivals_of(&JOINED, &[granted("k1", 110)]), None);
        assert_eq!(rivals_of(&JOINED, &[granted("k1", 210)]), Some(Code::NameTaken), "after the other one joined");
        assert_eq!(rivals_of(&JOINED, &[granted("k1", 110), granted("k2", 110)]), Some(Code::NameTaken));
    }

    #[test]
    fn traces_of_earlier_holders_are_seen() {
        let trace = |holder: &Holder, namespace, role, recorded, claimants: &[Claimant<'_>]| {
            used_before(holder, namespace, role, recorded, claimants.iter().copied())
        };
        let own = |created| Namespace::Own { created: Some(created) };
        assert_eq!(trace(&NEW, Namespace::Absent, None, false, &[]), None);
        assert_eq!(trace(&NEW, own(100), Some(100), false, &[granted("k1", 100), pending("k2")]), None);
        assert_eq!(trace(&NEW, own(99), None, false, &[]), Some(Trace::Namespace));
        assert_eq!(trace(&NEW, Namespace::Own { created: None }, None, false, &[]), Some(Trace::Namespace));
        assert_eq!(trace(&NEW, Namespace::Absent, None, false, &[granted("k1", 99)]), Some(Trace::Request));
        assert_eq!(trace(&NEW, Namespace::Absent, Some(99), false, &[]), Some(Trace::Role));
        assert_eq!(trace(&NEW, Namespace::Absent, None, true, &[]), Some(Trace::Record));
        assert_eq!(trace(&JOINED, own(99), Some(99), true, &[granted("k1", 99)]), None);
        assert_eq!(used_before_violation(Trace::Role).code, Code::NameUsedBefore);
    }
}
