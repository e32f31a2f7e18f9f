//! Which clusters a placement may select, and what keeps the others out. Upstream: `pkg/placement`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use ocm_api::cluster::{Taint, TaintEffect};
use ocm_api::conditions::{self, placement as conditions_of};
use ocm_api::names::annotations;
use ocm_api::placement::{ClusterSelector, Toleration, TolerationOperator};
use ocm_api::{ManagedCluster, ManagedClusterSet, Placement};

use super::membership::{Facts, holds, labels_of};
use super::selections::Selection;
use super::selector;
use crate::delivery::{find, leaving, told};
use crate::leave::some;
use crate::order::{self, Collect as _};

/// What a placement makes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is selected.
    Selected,
    /// It is in no set that the placement may select from; why, in words.
    Elsewhere(String),
    /// It is being removed from the hub.
    Leaving,
    /// It matches none of the predicates; what it lacks.
    Unmatched(String),
    /// It has a taint that the placement does not tolerate.
    Tainted(String),
    /// Whether it matches depends on CEL expressions, which only the placement controller evaluates.
    Unevaluated,
    /// It could be selected, and others were, as many as are wanted.
    Spare,
    /// It could be selected, and was not yet.
    Awaited,
}

impl Standing {
    /// What keeps the cluster from being selected; none if it is.
    pub fn why(&self) -> Option<String> {
        Some(match self {
            Self::Selected => return None,
            Self::Elsewhere(why) => why.clone(),
            Self::Leaving => "it is being removed from the hub".to_owned(),
            Self::Unmatched(lacks) => format!("it matches no predicate: {lacks}"),
            Self::Tainted(taint) => format!("the placement does not tolerate its taint {taint}"),
            Self::Unevaluated => "the CEL expressions of the predicates are not true for it, as far as the placement \
                 controller has evaluated them"
                .to_owned(),
            Self::Spare => "others are selected, as many as are wanted".to_owned(),
            Self::Awaited => "it can be selected, and waits for the placement controller".to_owned(),
        })
    }
}

/// A cluster as a placement sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the cluster.
    pub cluster: String,
    /// Names of the sets that it is in.
    pub sets: Vec<String>,
    /// What the placement makes of it.
    pub standing: Standing,
}

/// What a placement makes of each cluster of the hub, by name. `now` is the time of the hub.
pub fn choices(selection: &Selection, facts: &Facts, now: Timestamp) -> Vec<Choice> {
    let pool = Pool::of(&selection.placement, facts);
    let mut all: Vec<Choice> = facts
        .clusters
        .iter()
        .map(|cluster| {
            let held = facts.sets.iter().filter(|set| holds(set, cluster));
            let mut sets: Vec<String> = held.filter_map(|set| set.metadata.name.clone()).collect();
            order::sort(&mut sets);
            let name = cluster.metadata.name.clone().unwrap_or_default();
            let standing = standing(selection, &pool, cluster, &sets, now);
            Choice { cluster: name, sets, standing }
        })
        .collect();
    order::sort_by(&mut all, |left, right| left.cluster.cmp(&right.cluster));
    all
}

/// What a placement may select from.
pub(super) enum Pool<'a> {
    /// No set that exists is bound to its namespace; those that are bound and do not exist.
    Unbound { missing: Vec<&'a str> },
    /// Of the sets that it names none is bound; those that are.
    Foreign { bound: Vec<&'a str> },
    /// These sets; and those that are bound besides.
    Sets { sets: Vec<&'a ManagedClusterSet>, besides: Vec<&'a str> },
}

impl<'a> Pool<'a> {
    pub(super) fn of(placement: &Placement, facts: &'a Facts) -> Self {
        let names = facts
            .bindings
            .iter()
            .filter(|binding| binding.metadata.namespace == placement.metadata.namespace)
            .filter_map(|binding| binding.metadata.name.as_deref());
        let names: BTreeSet<&str> = names.collect_set();
        let (there, missing): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| facts.set(name).is_some());
        if there.is_empty() {
            return Self::Unbound { missing };
        }
        let wanted = &placement.spec.cluster_sets;
        let is_wanted = |name: &&str| wanted.is_empty() || wanted.iter().any(|one| one == name);
        let (eligible, besides): (Vec<&str>, Vec<&str>) = there.iter().partition(|name| is_wanted(name));
        if eligible.is_empty() {
            return Self::Foreign { bound: there };
        }
        Self::Sets { sets: eligible.into_iter().filter_map(|name| facts.set(name)).collect(), besides }
    }

    pub(super) fn holds(&self, cluster: &ManagedCluster) -> bool {
        matches!(self, Self::Sets { sets, .. } if sets.iter().any(|set| holds(set, cluster)))
    }

    /// Why the sets of a cluster are none to select from.
    fn misses(&self, placement: &Placement, sets: &[String]) -> String {
        let namespace = placement.metadata.namespace.as_deref().unwrap_or_default();
        let bound: &[&str] = match self {
            Self::Unbound { .. } => &[],
            Self::Foreign { bound } => bound,
            Self::Sets { besides, .. } => besides,
        };
        let (bound, unbound): (Vec<String>, Vec<String>) =
            sets.iter().cloned().partition(|set| bound.contains(&set.as_str()));
        match (bound.first(), unbound.first()) {
            (None, None) => "it is in no set".to_owned(),
            (Some(_), _) => format!("it is in set {}, which the placement does not name", some(&bound)),
            (None, _) => format!("it is in set {}, which is not bound to namespace {namespace}", some(&unbound)),
        }
    }
}

fn standing(
    selection: &Selection,
    pool: &Pool<'_>,
    cluster: &ManagedCluster,
    sets: &[String],
    now: Timestamp,
) -> Standing {
    let placement = &selection.placement;
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if selection.clusters.contains(name) {
        return Standing::Selected;
    }
    if !pool.holds(cluster) {
        return Standing::Elsewhere(pool.misses(placement, sets));
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return Standing::Leaving;
    }
    let matched = match matches(placement, cluster) {
        Match::No(lacks) => return Standing::Unmatched(lacks),
        matched => matched,
    };
    if let Some(taint) = cluster.spec.taints.iter().find(|taint| keeps_away(taint, &placement.spec.tolerations, now)) {
        return Standing::Tainted(written(taint));
    }
    let wanted = placement.spec.number_of_clusters.and_then(|number| usize::try_from(number).ok());
    match matched {
        Match::Unknown => Standing::Unevaluated,
        _ if wanted.is_some_and(|wanted| selection.clusters.len() >= wanted) => Standing::Spare,
        _ => Standing::Awaited,
    }
}

/// Whether a cluster matches.
pub(super) enum Match {
    Yes,
    /// What it lacks.
    No(String),
    /// Only the placement controller knows.
    Unknown,
}

pub(super) fn matches(placement: &Placement, cluster: &ManagedCluster) -> Match {
    let predicates = &placement.spec.predicates;
    if predicates.is_empty() {
        return Match::Yes;
    }
    let mut lacks = Vec::new();
    let mut unknown = false;
    for predicate in predicates {
        match matches_one(&predicate.required_cluster_selector, cluster) {
            Match::Yes => return Match::Yes,
            Match::No(what) => lacks.push(what),
            Match::Unknown => unknown = true,
        }
    }
    if unknown { Match::Unknown } else { Match::No(lacks.join("; ")) }
}

fn matches_one(selector: &ClusterSelector, cluster: &ManagedCluster) -> Match {
    let claims = cluster.status.iter().flat_map(|status| &status.cluster_claims);
    let claims: BTreeMap<String, String> = claims
        .map(|claim| (claim.name.clone().unwrap_or_default(), claim.value.clone().unwrap_or_default()))
        .collect_map();
    let by_labels = selector.label_selector.as_ref().and_then(|all| selector::unmet(all, labels_of(cluster)));
    let by_claims = || {
        let mut all = selector.claim_selector.iter().flat_map(|all| &all.match_expressions);
        all.find_map(|one| selector::unmet_by(one, &claims, "claim"))
    };
    match by_labels.or_else(by_claims) {
        Some(lacks) => Match::No(lacks),
        None if selector.cel_selector.as_ref().is_some_and(|cel| !cel.cel_expressions.is_empty()) => Match::Unknown,
        None => Match::Yes,
    }
}

/// Whether a taint keeps a cluster from being selected anew.
fn keeps_away(taint: &Taint, tolerations: &[Toleration], now: Timestamp) -> bool {
    taint.effect != TaintEffect::PreferNoSelect && !tolerations.iter().any(|one| tolerates(one, taint, now))
}

pub(super) fn tolerates(toleration: &Toleration, taint: &Taint, now: Timestamp) -> bool {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let value = match toleration.operator.as_ref().unwrap_or(&TolerationOperator::Equal) {
        TolerationOperator::Exists => true,
        // An empty one is none.
        TolerationOperator::Other(other) if !other.is_empty() => false,
        TolerationOperator::Equal | TolerationOperator::Other(_) => given(&toleration.value) == given(&taint.value),
    };
    let lasts = toleration.toleration_seconds.is_none_or(|seconds| {
        let begun = taint.time_added.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        begun.checked_add(SignedDuration::from_secs(seconds)).is_ok_and(|end| now < end)
    });
    given(&toleration.key).is_none_or(|key| key == taint.key)
        && toleration.effect.as_ref().is_none_or(|effect| *effect == taint.effect)
        && value
        && lasts
}

/// A taint as kubectl writes those of nodes.
fn written(taint: &Taint) -> String {
    match taint.value.as_deref() {
        None | Some("") => format!("{}:{}", taint.key, taint.effect),
        Some(value) => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

/// What keeps a placement from selecting as many clusters as it is to; none if it does. Without facts that is only what
/// the placement controller says.
pub fn why(selection: &Selection, facts: Option<&Facts>, now: Timestamp) -> Option<String> {
    let placement = &selection.placement;
    if let Some(why) = leaving(&placement.metadata) {
        return Some(why);
    }
    let disabled = placement.metadata.annotations.as_ref().and_then(|all| all.get(annotations::SCHEDULING_DISABLED));
    if disabled.is_some_and(|value| value == "true") {
        return Some(format!(
            "its annotation {} has the placement controller leave it alone",
            annotations::SCHEDULING_DISABLED
        ));
    }
    let all = placement.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if let Some(wrong) = find(all, conditions_of::MISCONFIGURED).filter(|one| one.status == conditions::TRUE) {
        return Some(told(wrong));
    }
    match find(all, conditions_of::SATISFIED) {
        None => Some("no placement controller has looked at it yet".to_owned()),
        Some(satisfied) if satisfied.status == conditions::TRUE => None,
        Some(satisfied) => facts.and_then(|facts| short_of(selection, facts, now)).or_else(|| Some(told(satisfied))),
    }
}

/// What there is too little of; none if the facts do not tell.
fn short_of(selection: &Selection, facts: &Facts, now: Timestamp) -> Option<String> {
    let placement = &selection.placement;
    let namespace = placement.metadata.namespace.as_deref().unwrap_or_default();
    let names = |names: &[&str]| some(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let sets = match Pool::of(placement, facts) {
        Pool::Unbound { missing } if missing.is_empty() => {
            return Some(format!("no set is bound to namespace {namespace}"));
        }
        Pool::Unbound { missing } => {
            return Some(format!(
                "of the sets that are bound to namespace {namespace} none exists: {}",
                names(&missing)
            ));
        }
        Pool::Foreign { bound } => {
            let (wanted, bound) = (some(&placement.spec.cluster_sets), names(&bound));
            return Some(format!(
                "of the sets that it names ({wanted}) none is bound to namespace {namespace}, only {bound}"
            ));
        }
        Pool::Sets { sets, .. } => {
            let names: Vec<String> = sets.iter().filter_map(|set| set.metadata.name.clone()).collect();
            some(&names)
        }
    };
    let inside: Vec<Choice> = choices(selection, facts, now)
        .into_iter()
        .filter(|choice| !matches!(choice.standing, Standing::Elsewhere(_)))
        .collect();
    if inside.is_empty() {
        return Some(format!("no cluster is in the sets that it may select from ({sets})"));
    }
    let parts: Vec<String> = KINDS.iter().filter_map(|kind| kind.told(&inside)).collect();
    let wanted = placement.spec.number_of_clusters.map(|wanted| format!("it wants {wanted}; ")).unwrap_or_default();
    let parts = match parts.join(", ") {
        // Everything there is is selected, and that is not enough.
        none if none.is_empty() => "all are selected".to_owned(),
        parts => parts,
    };
    let there = if inside.len() == 1 { "the only cluster".to_owned() } else { format!("{} clusters", inside.len()) };
    Some(format!("{wanted}of {there} in {sets}: {parts}"))
}

/// Clusters that are kept out for the same kind of reason.
struct Kind {
    is: fn(&Standing) -> bool,
    one: &'static str,
    many: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind {
        is: |standing| matches!(standing, Standing::Unmatched(_)),
        one: "matches no predicate",
        many: "match no predicate",
    },
    Kind {
        is: |standing| matches!(standing, Standing::Tainted(_)),
        one: "has a taint that it does not tolerate",
        many: "have taints that it does not tolerate",
    },
    Kind { is: |standing| *standing == Standing::Leaving, one: "is being removed", many: "are being removed" },
    Kind {
        is: |standing| *standing == Standing::Unevaluated,
        one: "does not make its CEL expressions true",
        many: "do not make its CEL expressions true",
    },
    Kind {
        is: |standing| *standing == Standing::Awaited,
        one: "can be selected and waits for the placement controller",
        many: "can be selected and wait for the placement controller",
    },
];

impl Kind {
    /// How many they are, and what is wrong with the first.
    fn told(&self, all: &[Choice]) -> Option<String> {
        let of: Vec<&Choice> = all.iter().filter(|choice| (self.is)(&choice.standing)).collect();
        let first = of.first()?;
        let words = if of.len() == 1 { self.one } else { self.many };
        let detail = match &first.standing {
            Standing::Unmatched(detail) | Standing::Tainted(detail) => format!("{}: {detail}", first.cluster),
            _ => first.cluster.clone(),
        };
        Some(format!("{} {words} ({detail})", of.len()))
    }
}

/// A placement that selects clusters no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Namespace and name of the placement, with a slash.
    pub placement: String,
    /// Names of the clusters.
    pub clusters: Vec<String>,
}

/// Which placements would select clusters no longer that they select now, if the hub held something else.
pub fn lost(all: &[Selection], before: &Facts, after: &Facts) -> Vec<Lost> {
    let (now, then) = (by_name(before), by_name(after));
    let of = |selection: &Selection| {
        let placement = &selection.placement;
        let (pool, pool_then) = (Pool::of(placement, before), Pool::of(placement, after));
        let may = |pool: &Pool<'_>, cluster: &ManagedCluster| {
            pool.holds(cluster) && !matches!(matches(placement, cluster), Match::No(_))
        };
        let goes = |name: &&String| match (now.get(name.as_str()), then.get(name.as_str())) {
            (Some(cluster), Some(changed)) => may(&pool, cluster) && !may(&pool_then, changed),
            _ => false,
        };
        let clusters: Vec<String> = selection.clusters.iter().filter(goes).cloned().collect();
        let placement = format!("{}/{}", selection.namespace(), selection.name());
        (!clusters.is_empty()).then_some(Lost { placement, clusters })
    };
    all.iter().filter_map(of).collect()
}

fn by_name(facts: &Facts) -> BTreeMap<&str, &ManagedCluster> {
    facts.clusters.iter().filter_map(|cluster| Some((cluster.metadata.name.as_deref()?, cluster))).collect_map()
}
