//! How far the hub has come with an add-on on the clusters of its placements, stage by stage.
//!
//! ```text
//! mandatory decision groups, one after the other ─▶ all others: at once · so many at once · one group after the other
//! ```
//!
//! Upstream: `pkg/addon/controllers/addonconfiguration/graph.go`, `sdk-go: pkg/apis/cluster/v1alpha1/rollout.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use ocm_api::conditions::managed_cluster_add_on::PROGRESSING;
use ocm_api::names::labels;
use ocm_api::{ManagedClusterAddOn, PlacementDecision};
use serde_json::Value;

use super::configuration::{configurations, last_placement, object_of, progression, taken_away, text};
use crate::cluster_sets::decided_for;
use crate::duration;
use crate::order::Collect as _;

/// How a stage stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageState {
    /// The hub has come further: all of its clusters are done, or as many as need to be.
    Completed,
    /// The hub rolls it out.
    Progressing,
    /// More clusters have failed than may, or there is no such placement: the hub does not go on.
    Stopped,
    /// One that comes first is not completed.
    Pending,
}

impl fmt::Display for StageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "Completed",
            Self::Progressing => "Progressing",
            Self::Stopped => "Stopped",
            Self::Pending => "Pending",
        })
    }
}

/// A stage of a rollout: clusters of a placement that get what is new together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutStage {
    /// Namespace and name of the placement.
    pub placement: String,
    /// Type of its rollout strategy.
    pub strategy: String,
    /// Its number among the stages of the placement, from 1.
    pub number: usize,
    /// Which clusters are in it, for people: `group 0 (canary)`.
    pub group: String,
    /// How many clusters are in it.
    pub total: usize,
    /// How many of them have all configurations of the add-on in effect.
    pub completed: usize,
    /// How it stands.
    pub state: StageState,
    /// What it waits for, or what has failed; none if there is nothing.
    pub why: Option<String>,
}

/// The stages of every placement that the hub rolls an add-on out by, in their order. `addons` are those of all clusters, by
/// cluster; `now` is the time of the hub.
pub fn rollout(
    definition: &Value,
    addons: &BTreeMap<&str, &ManagedClusterAddOn>,
    decisions: &[PlacementDecision],
    now: Timestamp,
) -> Vec<RolloutStage> {
    let strategy = &definition["spec"]["installStrategy"];
    let placements = strategy["placements"].as_array().filter(|_| strategy["type"] == "Placements");
    let selected = decided_for(decisions);
    let mut all = Vec::new();
    for placement in placements.into_iter().flatten() {
        let name = object_of(placement);
        // Of an add-on with a controller of its own the hub notes nothing: it rolls out nothing.
        if progression(definition, &name).is_none() {
            continue;
        }
        // A placement that is there has a decision, if only one for no cluster.
        if !selected.contains_key(&name) {
            all.push(missing(name, &placement["rolloutStrategy"]));
            continue;
        }
        let rolling = Rolling { definition, addons, selected: &selected, placement: &name, now };
        all.extend(rolling.stages(&placement["rolloutStrategy"], decisions));
    }
    all
}

/// The only stage of a placement that is not there. Upstream: `buildConfigurationGraph`, whose error ends the rollout of the add-on
/// for all placements.
fn missing(placement: String, strategy: &Value) -> RolloutStage {
    let why =
        "it does not exist, or nothing was decided for it yet: until then the hub rolls out nothing of the add-on";
    RolloutStage {
        placement,
        strategy: kind_of(strategy).to_owned(),
        number: 1,
        group: "all".to_owned(),
        total: 0,
        completed: 0,
        state: StageState::Stopped,
        why: Some(why.to_owned()),
    }
}

/// Type of a rollout strategy.
fn kind_of(strategy: &Value) -> &str {
    Some(text(strategy, "type")).filter(|kind| !kind.is_empty()).unwrap_or("All")
}

/// How long a cluster may take before it counts as failed, as it is written and as a time; none: as long as it takes. Upstream:
/// `parseTimeout`.
fn deadline(settings: &Value) -> Option<(&str, SignedDuration)> {
    let text = text(settings, "progressDeadline");
    let time = duration::parse(text).ok()?;
    Some((text, SignedDuration::try_from(time).ok()?))
}

/// A stage as the strategy has it.
struct Planned {
    group: String,
    clusters: BTreeSet<String>,
    /// How many of its clusters may fail before the hub stops.
    may_fail: usize,
    /// Whether it comes behind mandatory groups: then it is stopped by a cluster of any other stage that has failed, too.
    is_behind: bool,
}

/// How a cluster stands, and why it is not done.
enum Step {
    Done,
    Failed(String),
    Progressing(String),
    Waiting(String),
}

impl Step {
    /// Why it is not done, and which of several is told first; none if it is done.
    fn open(&self) -> Option<(u8, &str)> {
        match self {
            Self::Done => None,
            Self::Failed(why) => Some((0, why.as_str())),
            Self::Progressing(why) => Some((1, why.as_str())),
            Self::Waiting(why) => Some((2, why.as_str())),
        }
    }
}

/// What the stages of a placement are told from.
struct Rolling<'a> {
    definition: &'a Value,
    addons: &'a BTreeMap<&'a str, &'a ManagedClusterAddOn>,
    selected: &'a BTreeMap<String, BTreeSet<String>>,
    placement: &'a str,
    now: Timestamp,
}

impl Rolling<'_> {
    fn stages(&self, strategy: &Value, decisions: &[PlacementDecision]) -> Vec<RolloutStage> {
        let kind = kind_of(strategy);
        let deadline = deadline(&strategy[member(kind)]);
        let minimum = text(&strategy[member(kind)], "minSuccessTime");
        let minimum = Some(minimum).filter(|_| kind != "All").filter(|time| !["", "0", "0s"].contains(time));
        let mut first_open: Option<usize> = None;
        let mut all = Vec::new();
        let of = |planned: Planned| {
            let steps: Vec<(String, Step)> =
                planned.clusters.iter().map(|cluster| (cluster.clone(), self.step(cluster, deadline))).collect();
            (planned, steps)
        };
        let stages: Vec<(Planned, Vec<(String, Step)>)> =
            planned(kind, strategy, groups(self.placement, decisions)).into_iter().map(of).collect();
        let failed = stages.iter().flat_map(|(_, steps)| steps).find_map(|(cluster, step)| match step {
            Step::Failed(why) => Some(format!("{cluster}: {why}")),
            _ => None,
        });
        for (index, (planned, steps)) in stages.into_iter().enumerate() {
            let number = index + 1;
            let count = |is: fn(&Step) -> bool| steps.iter().filter(|(_, step)| is(step)).count();
            let completed = count(|step| matches!(step, Step::Done));
            let has_failed = count(|step| matches!(step, Step::Failed(_)));
            let is_stopped = has_failed > planned.may_fail;
            let elsewhere = failed.clone().filter(|_| planned.is_behind && completed < steps.len());
            let (state, why) = match first_open {
                Some(open) if completed < steps.len() => (StageState::Pending, Some(format!("stage {open}"))),
                _ if is_stopped => (StageState::Stopped, told(&steps)),
                _ if elsewhere.is_some() => (StageState::Stopped, elsewhere),
                _ if completed + has_failed < steps.len() => (StageState::Progressing, told(&steps)),
                _ if steps.is_empty() => (StageState::Completed, Some("it has no clusters".to_owned())),
                _ => (StageState::Completed, told(&steps)),
            };
            let is_open = state != StageState::Completed;
            // Whether it has been for so long, the hub alone counts.
            let rests = completed > 0 || index > 0;
            let is_begun = steps.iter().any(|(_, step)| matches!(step, Step::Progressing(_) | Step::Failed(_)));
            let why = match minimum {
                Some(time) if state == StageState::Progressing && rests && !is_begun => {
                    why.map(|why| format!("{why}; those before it have to be well for {time}"))
                }
                _ => why,
            };
            if is_open && first_open.is_none() {
                first_open = Some(number);
            }
            all.push(RolloutStage {
                placement: self.placement.to_owned(),
                strategy: kind.to_owned(),
                number,
                total: steps.len(),
                group: planned.group,
                completed,
                state,
                why,
            });
        }
        all
    }

    fn step(&self, cluster: &str, deadline: Option<(&str, SignedDuration)>) -> Step {
        let rules = last_placement(self.definition, cluster, self.selected).map(object_of);
        if let Some(other) = rules.filter(|name| name != self.placement) {
            return Step::Waiting(format!("placement {other} selects it, too, and decides what it gets"));
        }
        let Some(addon) = self.addons.get(cluster) else {
            return Step::Waiting("the hub has not added the add-on to it yet".to_owned());
        };
        let all = configurations(self.definition, addon, self.selected);
        if let Some(why) = all.iter().find(|one| !one.is_reached).and_then(|one| one.why.clone()) {
            return Step::Waiting(why);
        }
        if !taken_away(addon, &all).is_empty() {
            return Step::Waiting("it has a configuration still that was taken away".to_owned());
        }
        let Some(why) = all.into_iter().find_map(|one| one.why) else { return Step::Done };
        let mut conditions = addon.status.iter().flat_map(|status| &status.conditions);
        let Some(condition) = conditions.find(|one| one.type_ == PROGRESSING) else { return Step::Progressing(why) };
        let since = self.now.duration_since(condition.last_transition_time.0);
        match (condition.reason.as_str(), deadline) {
            (FAILED, _) => Step::Failed(format!("{FAILED}: {}", condition.message)),
            (PROGRESSES, Some((text, time))) if since >= time => {
                Step::Failed(format!("{why}; its progressDeadline of {text} is over"))
            }
            _ => Step::Progressing(why),
        }
    }
}

/// Reason of a cluster's `Progressing` by which the hub counts it as failed. Upstream: `ProgressingReasonFailed`.
const FAILED: &str = "Failed";

/// Reason of a cluster's `Progressing` since which its deadline runs. Upstream: `ProgressingReasonProgressing`,
/// `determineRolloutStatus`.
const PROGRESSES: &str = "Progressing";

/// What the clusters of a stage wait for: the first that is under way, or failed, or waits; and how many are not done besides.
fn told(steps: &[(String, Step)]) -> Option<String> {
    let of = |(cluster, step): &(String, Step)| step.open().map(|(rank, why)| (rank, format!("{cluster}: {why}")));
    let open: Vec<(u8, String)> = steps.iter().filter_map(of).collect();
    let (_, first) = open.iter().min_by_key(|(rank, _)| *rank)?;
    Some(match open.len() - 1 {
        0 => first.clone(),
        more => format!("{first} (and {more} more)"),
    })
}

/// A group of clusters that a placement has decided for: number, name, and clusters.
type Group = (i32, String, BTreeSet<String>);

/// In the order of their numbers. Upstream: `PlacementDecisionClustersTracker`.
fn groups(placement: &str, decisions: &[PlacementDecision]) -> Vec<Group> {
    let mut all: BTreeMap<(i32, String), BTreeSet<String>> = BTreeMap::new();
    for decision in decisions {
        let label = |label: &str| decision.metadata.labels.as_ref().and_then(|all| all.get(label));
        let namespace = decision.metadata.namespace.as_deref().unwrap_or_default();
        if label(labels::PLACEMENT).is_none_or(|name| format!("{namespace}/{name}") != placement) {
            continue;
        }
        let number = label(labels::DECISION_GROUP_INDEX).and_then(|text| text.parse::<i32>().ok()).unwrap_or_default();
        let name = label(labels::DECISION_GROUP_NAME).cloned().unwrap_or_default();
        let clusters = decision.status.iter().flat_map(|status| &status.decisions).map(|one| one.cluster_name.clone());
        all.entry((number, name)).or_default().extend(clusters.filter(|name| !name.is_empty()));
    }
    all.into_iter().map(|((number, name), clusters)| (number, name, clusters)).collect()
}

/// The member of a strategy that holds its settings.
fn member(kind: &str) -> &'static str {
    match kind {
        "Progressive" => "progressive",
        "ProgressivePerGroup" => "progressivePerGroup",
        _ => "all",
    }
}

/// The stages of a strategy. Upstream: `RolloutHandler.GetRolloutCluster`, whose `getProgressiveClusters` and
/// `getProgressivePerGroupClusters` go beyond mandatory groups only where no cluster of any group has failed.
fn planned(kind: &str, strategy: &Value, groups: Vec<Group>) -> Vec<Planned> {
    let settings = &strategy[member(kind)];
    let total: usize = groups.iter().map(|(.., clusters)| clusters.len()).sum();
    let together = |groups: Vec<Group>| groups.into_iter().flat_map(|(.., clusters)| clusters).collect_set();
    if !["Progressive", "ProgressivePerGroup"].contains(&kind) {
        let (group, clusters) = ("all".to_owned(), together(groups));
        return vec![Planned { group, clusters, may_fail: total, is_behind: false }];
    }
    let mandatory = settings["mandatoryDecisionGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_mandatory = |(number, name, _): &Group| {
        mandatory.iter().any(|one| match text(one, "groupName") {
            "" => one["groupIndex"].as_i64().unwrap_or_default() == i64::from(*number),
            named => named == name,
        })
    };
    let (first, others): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(is_mandatory);
    let of_group = |(number, name, clusters): Group, (may_fail, is_behind): (usize, bool)| {
        let group = if name.is_empty() { format!("group {number}") } else { format!("group {number} ({name})") };
        Planned { group, clusters, may_fail, is_behind }
    };
    let is_behind = !first.is_empty();
    let may_fail = |total: usize| if is_behind { 0 } else { portion(&settings["maxFailures"], total) };
    let mut all: Vec<Planned> = first.into_iter().map(|group| of_group(group, (0, false))).collect();
    if kind == "ProgressivePerGroup" {
        all.extend(others.into_iter().map(|group| {
            let may_fail = may_fail(group.2.len());
            of_group(group, (may_fail, is_behind))
        }));
    } else if all.is_empty() || !others.is_empty() {
        let word = if all.is_empty() { "all" } else { "all others" };
        let at_once = match &settings["maxConcurrency"] {
            Value::String(text) => format!(", {text} at once"),
            Value::Number(number) => format!(", {number} at once"),
            _ => String::new(),
        };
        let (group, clusters, may_fail) = (format!("{word}{at_once}"), together(others), may_fail(total));
        all.push(Planned { group, clusters, may_fail, is_behind });
    }
    all
}

/// A number of clusters, or so many percent of them; none where it is more than there are. Upstream: `calculateRolloutSize`.
fn portion(setting: &Value, total: usize) -> usize {
    let portion = match setting {
        Value::Number(number) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        Value::String(text) => text
            .strip_suffix('%')
            .and_then(|text| text.parse::<usize>().ok())
            .map(|percent| percent.saturating_mul(total).div_ceil(100)),
        _ => None,
    };
    portion.filter(|portion| *portion <= total).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(strategy: Value) -> Value {
        let hash = json!({"name": "t", "specHash": "2"});
        let reference = json!({"group": "g", "resource": "templates", "desiredConfig": hash});
        json!({
            "spec": {
                "supportedConfigs": [{"group": "g", "resource": "templates", "defaultConfig": {"name": "t"}}],
                "installStrategy": {"type": "Placements", "placements": [
                    {"namespace": "p", "name": "x", "rolloutStrategy": strategy}]}},
            "status": {"installProgressions": [{"namespace": "p", "name": "x", "configReferences": [reference]}]},
        })
    }

    /// The groups of placement `p/x`, by number: names, and clusters.
    fn decisions(groups: &[(&str, &[&str])]) -> Vec<PlacementDecision> {
        let of = |(number, (name, clusters)): (usize, &(&str, &[&str]))| {
            let all: Vec<Value> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
            serde_json::from_value(json!({
                "metadata": {"name": format!("x-{number}"), "namespace": "p", "labels": {
                    (labels::PLACEMENT): "x", (labels::DECISION_GROUP_NAME): name,
                    (labels::DECISION_GROUP_INDEX): number.to_string()}},
                "status": {"decisions": all}}))
            .unwrap()
        };
        groups.iter().enumerate().map(of).collect()
    }

    /// An add-on that was told to take one content of its template, and has applied one.
    fn addon(cluster: &str, (desired, applied): (&str, &str), reason: &str) -> ManagedClusterAddOn {
        let hash = |hash: &str| json!({"name": "t", "specHash": hash});
        serde_json::from_value(json!({"metadata": {"name": "a", "namespace": cluster}, "spec": {}, "status": {
            "conditions": [{"type": "Progressing", "status": "False", "reason": reason, "message": "words",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "configReferences": [{"group": "g", "resource": "templates", "desiredConfig": hash(desired),
                "lastAppliedConfig": hash(applied)}]}}))
        .unwrap()
    }

    fn told_of(definition: &Value, groups: &[(&str, &[&str])], addons: &[ManagedClusterAddOn]) -> Vec<String> {
        let by_cluster: BTreeMap<&str, &ManagedClusterAddOn> =
            addons.iter().map(|one| (one.metadata.namespace.as_deref().unwrap(), one)).collect();
        let of = |stage: &RolloutStage| {
            let RolloutStage { number, group, total, completed, state, why, .. } = stage;
            format!("{number} {group} {completed}/{total} {state} {}", why.as_deref().unwrap_or_default())
        };
        rollout(definition, &by_cluster, &decisions(groups), now())
            .iter()
            .map(of)
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// Half an hour after the conditions of [`addon`].
    fn now() -> Timestamp {
        "2026-01-01T00:30:00Z".parse().unwrap()
    }

    const DONE: (&str, &str) = ("2", "2");
    const NOW: (&str, &str) = ("2", "1");
    const OLD: (&str, &str) = ("1", "1");
    const NOT_COME: &str = "its content has changed, and its rollout has not come to the cluster";

    #[test]
    fn all_at_once_is_one_stage() {
        for strategy in [Value::Null, json!({"type": "All"})] {
            let addons = [addon("c1", DONE, "Completed"), addon("c2", NOW, "Progressing")];
            let told = told_of(&definition(strategy), &[("", &["c1", "c2", "c3"])], &addons);
            assert_eq!(told, ["1 all 1/3 Progressing c2: an earlier content of it is applied still (and 1 more)"]);
        }
        let told = told_of(&definition(Value::Null), &[("", &["c1"])], &[]);
        assert_eq!(told, ["1 all 0/1 Progressing c1: the hub has not added the add-on to it yet"]);
        let told = told_of(&definition(Value::Null), &[("", &[])], &[]);
        assert_eq!(told, ["1 all 0/0 Completed it has no clusters"]);
    }

    #[test]
    fn a_placement_that_is_not_there_stops_the_rollout() {
        let told = told_of(&definition(json!({"type": "Progressive"})), &[], &[]);
        assert!(told[0].starts_with("1 all 0/0 Stopped it does not exist"), "{told:?}");
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn a_cluster_that_takes_longer_than_it_may_has_failed() {
        let strategy = |deadline: &str| {
            definition(
                json!({"type": "Progressive", "progressive": {"maxConcurrency": 1, "progressDeadline": deadline}}),
            )
        };
        let groups: &[(&str, &[&str])] = &[("", &["c1", "c2"])];
        let of = |deadline: &str, reason: &str| {
            let addons = [addon("c1", NOW, reason), addon("c2", OLD, "Completed")];
            told_of(&strategy(deadline), groups, &addons).remove(0)
        };
        let still = "c1: an earlier content of it is applied still";
        for deadline in ["30m", "10s", "0s"] {
            assert_eq!(
                of(deadline, "Progressing"),
                format!(
                    "1 all, 1 at once 0/2 Stopped {still}; its progressDeadline of {deadline} is over (and 1 more)"
                )
            );
        }
        for deadline in ["31m", "1h", "None", "", "soon"] {
            assert_eq!(
                of(deadline, "Progressing"),
                format!("1 all, 1 at once 0/2 Progressing {still} (and 1 more)"),
                "{deadline}"
            );
        }
        // Since when it is at it the hub tells for this reason alone.
        assert!(of("10s", "Completed").contains(" Progressing "));
    }

    #[test]
    fn one_group_comes_after_the_other_and_the_mandatory_ones_first() {
        let strategy = json!({"type": "ProgressivePerGroup", "progressivePerGroup": {
            "minSuccessTime": "1h", "maxFailures": "50%", "mandatoryDecisionGroups": [{"groupName": "canary"}]}});
        let groups: &[(&str, &[&str])] = &[("", &["c1", "c2"]), ("canary", &["c3"]), ("", &["c4"])];
        let begun = [
            addon("c1", OLD, "Completed"),
            addon("c2", OLD, "Completed"),
            addon("c3", NOW, "Progressing"),
            addon("c4", OLD, "Completed"),
        ];
        assert_eq!(
            told_of(&definition(strategy.clone()), groups, &begun),
            [
                "1 group 1 (canary) 0/1 Progressing c3: an earlier content of it is applied still",
                "2 group 0 0/2 Pending stage 1",
                "3 group 2 0/1 Pending stage 1",
            ]
        );
        // The canaries are done: others wait until they have been well for long enough.
        let mut further = begun.clone();
        further[2] = addon("c3", DONE, "Completed");
        let told = told_of(&definition(strategy.clone()), groups, &further);
        assert_eq!(told[0], "1 group 1 (canary) 1/1 Completed");
        let rests = "those before it have to be well for 1h";
        assert_eq!(told[1], format!("2 group 0 0/2 Progressing c1: {NOT_COME} (and 1 more); {rests}"));
        assert_eq!(told[2], "3 group 2 0/1 Pending stage 2");
        // Where groups are mandatory nobody may fail, whatever else is said: `getProgressivePerGroupClusters` has
        // `progressivePerGroup` look at the clusters of all groups, and goes no further if one of them has failed.
        further[0] = addon("c1", NOW, "Failed");
        further[1] = addon("c2", DONE, "Completed");
        let told = told_of(&definition(strategy.clone()), groups, &further);
        assert_eq!(told[1], "2 group 0 1/2 Stopped c1: Failed: words");
        assert_eq!(told[2], "3 group 2 0/1 Pending stage 2");
        let mut elsewhere = further.clone();
        elsewhere[0] = addon("c1", OLD, "Completed");
        elsewhere[3] = addon("c4", NOW, "Failed");
        let told = told_of(&definition(strategy.clone()), groups, &elsewhere);
        assert_eq!(told[1], "2 group 0 1/2 Stopped c4: Failed: words");
        // Half of a group may fail where none is.
        let mut every = strategy.clone();
        every["progressivePerGroup"]["mandatoryDecisionGroups"] = Value::Null;
        let told = told_of(&definition(every), groups, &further);
        assert_eq!(told[0], "1 group 0 1/2 Completed c1: Failed: words");
        assert!(told[2].starts_with("3 group 2 0/1 Progressing c4: "), "{told:?}");
        further[2] = addon("c3", NOW, "Failed");
        let told = told_of(&definition(strategy), groups, &further);
        assert_eq!(told[0], "1 group 1 (canary) 0/1 Stopped c3: Failed: words");
        assert_eq!(told[1], "2 group 0 1/2 Pending stage 1");
    }

    #[test]
    fn so_many_clusters_at_once_are_one_stage_behind_the_mandatory_groups() {
        let strategy = |mandatory: Value| {
            definition(json!({"type": "Progressive", "progressive": {
                "maxConcurrency": 2, "maxFailures": 1, "mandatoryDecisionGroups": mandatory}}))
        };
        let groups: &[(&str, &[&str])] = &[("", &["c1"]), ("", &["c2", "c3"])];
        let mut addons =
            vec![addon("c1", DONE, "Completed"), addon("c2", NOW, "Failed"), addon("c3", NOW, "Progressing")];
        assert_eq!(
            told_of(&strategy(json!([{"groupIndex": 0}])), groups, &addons),
            ["1 group 0 1/1 Completed", "2 all others, 2 at once 0/2 Stopped c2: Failed: words (and 1 more)"],
            "`getProgressiveClusters` has `progressivePerGroup` look at all clusters for the mandatory groups"
        );
        assert_eq!(
            told_of(&strategy(json!([])), groups, &addons),
            ["1 all, 2 at once 1/3 Progressing c2: Failed: words (and 1 more)"]
        );
        addons[2] = addon("c3", NOW, "Failed");
        assert_eq!(
            told_of(&strategy(json!([])), groups, &addons),
            ["1 all, 2 at once 1/3 Stopped c2: Failed: words (and 1 more)"]
        );
    }

    #[test]
    fn a_cluster_belongs_to_the_last_placement_that_selects_it() {
        let mut definition = definition(Value::Null);
        definition["spec"]["installStrategy"]["placements"] =
            json!([{"namespace": "p", "name": "x"}, {"namespace": "p", "name": "y"}, {"namespace": "p", "name": "z"}]);
        definition["status"]["installProgressions"] =
            json!([{"namespace": "p", "name": "x"}, {"namespace": "p", "name": "y"}]);
        let mut all = decisions(&[("", &["c1"])]);
        let mut other = all[0].clone();
        other.metadata.labels.as_mut().unwrap().insert(labels::PLACEMENT.to_owned(), "y".to_owned());
        all.push(other);
        let addon = addon("c1", DONE, "Completed");
        let stages = rollout(&definition, &BTreeMap::from([("c1", &addon)]), &all, now());
        // Of the third the hub has noted nothing.
        let placements: Vec<(&str, usize)> =
            stages.iter().map(|stage| (stage.placement.as_str(), stage.completed)).collect();
        assert_eq!(placements, [("p/x", 0), ("p/y", 1)]);
        assert!(stages[0].why.as_ref().unwrap().contains("placement p/y selects it, too"), "{stages:?}");
        assert_eq!(stages[0].strategy, "All");
    }

    #[test]
    fn a_configuration_that_was_taken_away_is_waited_for() {
        let mut addon = addon("c1", DONE, "Completed");
        let more = json!({"group": "g", "resource": "others", "desiredConfig": {"name": "o", "specHash": "1"}});
        addon.status.as_mut().unwrap().config_references.push(more);
        let told = told_of(&definition(Value::Null), &[("", &["c1"])], &[addon]);
        assert_eq!(told, ["1 all 0/1 Progressing c1: it has a configuration still that was taken away"]);
    }

    #[test]
    fn a_portion_is_a_number_or_so_many_percent() {
        for (setting, told) in [
            (json!(2), 2),
            (json!("25%"), 2),
            (json!("100%"), 5),
            (json!(6), 0),
            (json!("2"), 0),
            (json!(-1), 0),
            (Value::Null, 0),
        ] {
            assert_eq!(portion(&setting, 5), told, "{setting}");
        }
    }
}
