//! Clusters, sets and placements as a hub has them.

use jiff::Timestamp;
use ocm_api::names::labels;
use ocm_api::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

fn cluster(name: &str, set: &str, env: &str) -> ManagedCluster {
    read(json!({"metadata": {"name": name, "labels": {labels::CLUSTER_SET: set, "env": env}}}))
}

fn tainted(name: &str, set: &str, effect: &str) -> ManagedCluster {
    let mut cluster = cluster(name, set, "prod");
    let taint = json!({"key": "k", "value": "v", "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"});
    cluster.spec = read(json!({"taints": [taint]}));
    cluster
}

fn set(name: &str) -> ManagedClusterSet {
    read(json!({"metadata": {"name": name}, "spec": {}}))
}

fn by_labels(name: &str, selector: Value) -> ManagedClusterSet {
    let selector = json!({"selectorType": "LabelSelector", "labelSelector": selector});
    read(json!({"metadata": {"name": name}, "spec": {"clusterSelector": selector}}))
}

fn binding(namespace: &str, set: &str) -> ManagedClusterSetBinding {
    read(json!({"metadata": {"namespace": namespace, "name": set}, "spec": {"clusterSet": set}}))
}

fn facts(clusters: Vec<ManagedCluster>, bound: &[&str]) -> Facts {
    let sets = vec![set("default"), set("prod"), by_labels("global", json!({}))];
    Facts { clusters, sets, bindings: bound.iter().map(|set| binding("team", set)).collect() }
}

fn unsatisfied(spec: Value) -> Placement {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = [condition("PlacementMisconfigured", "False"), condition("PlacementSatisfied", "False")];
    read(json!({"metadata": {"namespace": "team", "name": "p"}, "spec": spec, "status": {"conditions": conditions}}))
}

fn selecting(placement: Placement, names: &[&str]) -> Selection {
    let decisions: Vec<Value> = names.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    let decision: PlacementDecision = read(json!({
        "metadata": {"namespace": "team", "name": "p-decision-1", "labels": {labels::PLACEMENT: "p"}},
        "status": {"decisions": decisions},
    }));
    selections(vec![placement], &[decision]).remove(0)
}

fn reason(spec: Value, facts: &Facts) -> String {
    why(&selecting(unsatisfied(spec), &[]), Some(facts), now()).unwrap()
}

fn standing_of(spec: Value, selected: &[&str], facts: &Facts, cluster: &str) -> Standing {
    let all = choices(&selecting(unsatisfied(spec), selected), facts, now());
    all.into_iter().find(|choice| choice.cluster == cluster).unwrap().standing
}

#[test]
fn the_api_server_is_asked_for_the_clusters_of_a_set_by_a_selector() {
    const LABEL: &str = labels::CLUSTER_SET;
    assert_eq!(selector_of(&set("prod")), format!("{LABEL}=prod"));
    assert_eq!(selector_of(&by_labels("global", json!({}))), "", "all clusters");
    let chosen = json!({"matchLabels": {"a": "1", "b": ""}, "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["2", "3"]}, {"key": "d", "operator": "NotIn", "values": ["4"]},
        {"key": "e", "operator": "Exists"}, {"key": "f", "operator": "DoesNotExist"}]});
    assert_eq!(selector_of(&by_labels("x", chosen)), "a=1,b=,c in (2,3),d notin (4),e,!f");
    // What chooses no cluster finds none.
    let nobody = format!("{LABEL},!{LABEL}");
    let unknown = json!({"matchExpressions": [{"key": "c", "operator": "Near", "values": ["2"]}]});
    for set in [by_labels("none", Value::Null), by_labels("odd", unknown)] {
        assert_eq!(selector_of(&set), nobody);
        assert!(facts(vec![cluster("c1", "prod", "dev")], &[]).members(&set).is_empty());
    }
}

#[test]
fn clusters_are_in_the_set_of_their_label_and_in_those_that_choose_them() {
    let all = facts(vec![cluster("c1", "prod", "dev"), cluster("c2", "", "dev")], &[]);
    assert_eq!(all.members(&set("prod")), ["c1"]);
    assert_eq!(all.members(&set("")), Vec::<String>::new(), "no set has the empty name");
    assert_eq!(all.members(all.set("global").unwrap()), ["c1", "c2"]);
    assert_eq!(all.members(&by_labels("dev", json!({"matchLabels": {"env": "dev"}}))), ["c1", "c2"]);
    let expression = |operator: &str, values: Value| {
        by_labels("x", json!({"matchExpressions": [{"key": "env", "operator": operator, "values": values}]}))
    };
    assert!(all.members(&expression("NotIn", json!(["dev"]))).is_empty());
    assert!(all.members(&expression("DoesNotExist", Value::Null)).is_empty());
    assert_eq!(all.members(&expression("In", json!(["dev", "x"]))).len(), 2);
    assert_eq!(all.members(&expression("Exists", Value::Null)).len(), 2);
    // Without a selector such a set chooses nothing.
    assert!(all.members(&by_labels("none", Value::Null)).is_empty());
    assert_eq!(all.after_moving(&["c2"], Some("prod")).members(&set("prod")), ["c1", "c2"]);
    assert_eq!(set_of(&all.after_moving(&["c1"], None).clusters[0]), None);
}

#[test]
fn names_of_sets_are_values_of_labels_too() {
    for good in ["a", "prod-1", "a.b"] {
        assert!(can_name(good), "{good}");
    }
    for bad in ["", "A", "a_b", "-a", "a-", "a..b", "ö", &"x".repeat(64)] {
        assert!(!can_name(bad), "{bad}");
    }
}

#[test]
fn what_a_placement_lacks_is_told_from_the_outside_in() {
    let two = vec![cluster("c1", "prod", "dev"), cluster("c2", "default", "prod")];
    let empty = json!({});
    assert_eq!(reason(empty.clone(), &facts(two.clone(), &[])), "no set is bound to namespace team");
    assert!(reason(empty.clone(), &facts(two.clone(), &["gone"])).ends_with("none exists: gone"));
    let foreign = reason(json!({"clusterSets": ["default"]}), &facts(two.clone(), &["prod"]));
    assert_eq!(foreign, "of the sets that it names (default) none is bound to namespace team, only prod");
    assert_eq!(
        reason(empty, &facts(vec![two[1].clone()], &["prod"])),
        "no cluster is in the sets that it may select from (prod)"
    );
    let wants_prod =
        json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}]});
    assert_eq!(
        reason(wants_prod, &facts(two, &["prod"])),
        "of the only cluster in prod: 1 matches no predicate (c1: label env is \"dev\", not \"prod\")"
    );
    let some =
        vec![tainted("c1", "prod", "NoSelect"), tainted("c2", "prod", "NoSelectIfNew"), cluster("c3", "prod", "x")];
    let told =
        why(&selecting(unsatisfied(json!({"numberOfClusters": 3})), &["c3"]), Some(&facts(some, &["prod"])), now());
    assert_eq!(
        told.unwrap(),
        "it wants 3; of 3 clusters in prod: 2 have taints that it does not tolerate (c1: k=v:NoSelect)"
    );
    let all = facts(vec![cluster("c3", "prod", "x")], &["prod"]);
    let told = why(&selecting(unsatisfied(json!({"numberOfClusters": 2})), &["c3"]), Some(&all), now());
    assert_eq!(told.unwrap(), "it wants 2; of the only cluster in prod: all are selected");
}

#[test]
fn what_the_controller_says_comes_first() {
    let told = |placement: Placement| why(&selecting(placement, &[]), None, now());
    assert_eq!(told(unsatisfied(json!({}))).unwrap(), "R: m");
    let mut fresh = unsatisfied(json!({}));
    fresh.status = None;
    assert_eq!(told(fresh).unwrap(), "no placement controller has looked at it yet");
    let mut wrong = unsatisfied(json!({}));
    wrong.status.as_mut().unwrap().conditions[0].status = "True".to_owned();
    assert_eq!(told(wrong).unwrap(), "R: m");
    let mut good = unsatisfied(json!({}));
    good.status.as_mut().unwrap().conditions[1].status = "True".to_owned();
    assert_eq!(told(good), None);
    let mut off = unsatisfied(json!({}));
    off.metadata.annotations =
        Some(read(json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"})));
    assert!(told(off).unwrap().contains("leave it alone"));
}

#[test]
fn each_cluster_is_told_what_keeps_it_out() {
    let mut leaving = cluster("leaving", "prod", "prod");
    leaving.metadata.deletion_timestamp = Some(read(json!("2026-01-01T00:00:00Z")));
    let all = vec![
        cluster("in", "prod", "prod"),
        cluster("more", "prod", "prod"),
        cluster("dev", "prod", "dev"),
        cluster("other", "default", "prod"),
        tainted("tainted", "prod", "NoSelect"),
        tainted("mild", "prod", "PreferNoSelect"),
        leaving,
    ];
    let all = facts(all, &["prod"]);
    let spec = |number: i32| {
        json!({"numberOfClusters": number,
            "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}]})
    };
    let of = |cluster: &str| standing_of(spec(1), &["in"], &all, cluster);
    assert_eq!(of("in"), Standing::Selected);
    assert_eq!(of("more"), Standing::Spare);
    assert_eq!(of("mild"), Standing::Spare);
    assert_eq!(of("leaving"), Standing::Leaving);
    assert_eq!(of("tainted"), Standing::Tainted("k=v:NoSelect".to_owned()));
    assert!(matches!(of("dev"), Standing::Unmatched(lacks) if lacks == "label env is \"dev\", not \"prod\""));
    let elsewhere = of("other").why().unwrap();
    assert_eq!(elsewhere, "it is in set default, global, which is not bound to namespace team");
    assert_eq!(standing_of(spec(3), &["in"], &all, "more"), Standing::Awaited);
    let unnamed = Facts { bindings: vec![binding("team", "prod"), binding("team", "default")], ..all.clone() };
    let named = json!({"clusterSets": ["prod"]});
    let why = standing_of(named, &[], &unnamed, "other").why().unwrap();
    assert_eq!(why, "it is in set default, which the placement does not name");
}

#[test]
fn tolerations_tolerate_for_their_time() {
    let all = facts(vec![tainted("c1", "prod", "NoSelect")], &["prod"]);
    let with = |toleration: Value| standing_of(json!({"tolerations": [toleration]}), &[], &all, "c1");
    for good in [
        json!({"key": "k", "operator": "Exists"}),
        json!({"operator": "Exists"}),
        json!({"key": "k", "value": "v"}),
        json!({"key": "k", "value": "v", "effect": "NoSelect", "tolerationSeconds": 601}),
    ] {
        assert_eq!(with(good.clone()), Standing::Awaited, "{good}");
    }
    for bad in [
        json!({"key": "k", "value": "w"}),
        json!({"key": "k"}),
        json!({"key": "l", "operator": "Exists"}),
        json!({"operator": "Exists", "effect": "NoSelectIfNew"}),
        json!({"operator": "Exists", "tolerationSeconds": 600}),
    ] {
        assert!(matches!(with(bad.clone()), Standing::Tainted(_)), "{bad}");
    }
}

#[test]
fn claims_are_matched_and_expressions_left_to_the_hub() {
    let mut one = cluster("c1", "prod", "prod");
    one.status = Some(read(json!({"clusterClaims": [{"name": "region", "value": "eu"}]})));
    let all = facts(vec![one], &["prod"]);
    let claims = |values: Value| json!({"claimSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": values}]}});
    let with = |selectors: Vec<Value>| {
        let predicates: Vec<Value> =
            selectors.into_iter().map(|selector| json!({"requiredClusterSelector": selector})).collect();
        standing_of(json!({"predicates": predicates}), &[], &all, "c1")
    };
    assert_eq!(with(vec![claims(json!(["eu"]))]), Standing::Awaited);
    let lacks = "claim region is \"eu\", none of us, ap";
    assert_eq!(with(vec![claims(json!(["us", "ap"]))]), Standing::Unmatched(lacks.to_owned()));
    let cel = json!({"celSelector": {"celExpressions": ["true"]}});
    assert_eq!(with(vec![cel.clone()]), Standing::Unevaluated);
    // One predicate that matches is enough, and one that cannot be told may be.
    assert_eq!(with(vec![cel.clone(), claims(json!(["eu"]))]), Standing::Awaited);
    assert_eq!(with(vec![claims(json!(["us"])), cel]), Standing::Unevaluated);
}

#[test]
fn placements_lose_clusters_that_leave_their_sets_and_not_those_that_stay_in_reach() {
    let all = vec![cluster("c1", "prod", "prod"), cluster("c2", "prod", "prod")];
    let before = facts(all, &["prod"]);
    let selection = [selecting(unsatisfied(json!({})), &["c1", "c2", "unknown"])];
    let moved = before.after_moving(&["c1"], Some("default"));
    let told = vec![Lost { placement: "team/p".to_owned(), clusters: vec!["c1".to_owned()] }];
    assert_eq!(lost(&selection, &before, &moved), told);
    let both = Facts { bindings: vec![binding("team", "prod"), binding("team", "default")], ..before.clone() };
    assert_eq!(lost(&selection, &both, &both.after_moving(&["c1"], Some("default"))), []);
    let elsewhere = before.after_unbinding("prod", &["other".to_owned()]);
    assert_eq!(lost(&selection, &before, &elsewhere), []);
    assert_eq!(lost(&selection, &before, &before.after_unbinding("prod", &[]))[0].clusters, ["c1", "c2"]);
}

#[test]
fn groups_are_named_or_numbered() {
    let mut placement = unsatisfied(json!({}));
    placement.status.as_mut().unwrap().decision_groups = read(json!([
        {"decisionGroupIndex": 0, "decisionGroupName": "canary", "clusterCount": 1},
        {"decisionGroupIndex": 1, "decisionGroupName": "", "clusterCount": 4},
    ]));
    assert_eq!(selecting(placement, &[]).groups(), [("canary".to_owned(), 1), ("1".to_owned(), 4)]);
}

#[test]
fn decisions_are_final_when_they_are_those_of_the_placement_as_it_is_now() {
    let tainted = tainted("c3", "prod", "NoSelect");
    let all = facts(vec![cluster("c1", "prod", "prod"), cluster("c2", "prod", "dev"), tainted], &["prod"]);
    let told = |spec: Value, selected: &[&str]| undecided(&selecting(unsatisfied(spec), selected), Some(&all), now());
    assert_eq!(told(json!({}), &["c1", "c2"]), None);
    assert!(told(json!({}), &["c1"]).unwrap().ends_with("wait for the placement controller (c2)"));
    let dev = json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "dev"}}}}]});
    assert!(told(dev.clone(), &["c1", "c2"]).unwrap().ends_with("may not select any more (c1)"));
    assert_eq!(told(dev, &["c2"]), None);
    assert!(told(json!({}), &["c1", "c2", "c3"]).unwrap().ends_with("may not select any more (c3)"));
    let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
    assert_eq!(told(tolerant, &["c1", "c2", "c3"]), None);
    assert_eq!(told(json!({"numberOfClusters": 1}), &["c1"]), None);
    assert_eq!(
        told(json!({"numberOfClusters": 1}), &["c1", "c2"]).unwrap(),
        "it still selects 2 clusters, and is to select 1"
    );
    // The conditions are still those of the decisions before.
    let mut counting = unsatisfied(json!({"numberOfClusters": 1}));
    counting.status.as_mut().unwrap().number_of_selected_clusters = Some(2);
    let told = |selected: &[&str]| undecided(&selecting(counting.clone(), selected), Some(&all), now());
    assert_eq!(told(&["c1"]).unwrap(), "its status still counts 2 as selected, and its decisions name 1");
    counting.status.as_mut().unwrap().number_of_selected_clusters = Some(1);
    assert_eq!(undecided(&selecting(counting, &["c1"]), Some(&all), now()), None);
    // Without facts it counts that the placement controller has looked at it, and before that nothing does.
    assert_eq!(undecided(&selecting(unsatisfied(json!({})), &[]), None, now()), None);
    let new: Placement = read(json!({"metadata": {"namespace": "team", "name": "p"}, "spec": {}}));
    assert!(undecided(&selecting(new, &[]), Some(&all), now()).unwrap().starts_with("no placement controller"));
}
