//! From options to a Placement.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use ocm_api::placement::{ClusterClaimSelector, ClusterPredicate, ClusterSelector, PlacementSpec, Toleration};
use ocm_api::{ManagedClusterSetBinding, Manifest, Placement};
use serde_json::json;

use super::Prioritizer;
use crate::plan::{Plan, Stage};

/// What a placement selects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementOptions {
    /// Names of the sets to select from; empty: all that are bound to the namespace.
    pub cluster_sets: Vec<String>,
    /// A cluster has to match one of them; empty: every cluster does.
    pub label_selectors: Vec<LabelSelector>,
    /// Claims that a cluster must have besides.
    pub claims: Vec<LabelSelectorRequirement>,
    /// Which clusters come first; empty: as the placement controller has it.
    pub prioritizers: Vec<Prioritizer>,
    /// How many clusters are selected; none: all that can be.
    pub count: Option<i32>,
    /// Taints in spite of which clusters are selected.
    pub tolerations: Vec<Toleration>,
}

/// A placement that selects this and nothing else. Upstream: `PlacementSpec`.
pub fn plan(namespace: &str, name: &str, options: &PlacementOptions) -> Plan {
    let PlacementOptions { cluster_sets, label_selectors: _, claims: _, prioritizers, count, tolerations } = options;
    let configurations: Vec<_> = prioritizers.iter().map(Prioritizer::config).collect();
    let spec = PlacementSpec {
        cluster_sets: cluster_sets.clone(),
        number_of_clusters: *count,
        predicates: predicates(options),
        // What is not said besides keeps its weight.
        prioritizer_policy: (!configurations.is_empty())
            .then(|| json!({"mode": "Additive", "configurations": configurations})),
        tolerations: tolerations.clone(),
        ..PlacementSpec::default()
    };
    let mut placement = Placement::new(name, spec);
    placement.metadata.namespace = Some(namespace.to_owned());
    let mut manifest = Manifest::of(&placement).exactly();
    // Said even where there are none, so that the spec is never empty: who applies an empty one owns nothing of it.
    manifest.body_mut()["spec"]["predicates"] = json!(placement.spec.predicates);
    Plan::new([Stage::new("placements", vec![manifest])])
}

/// One predicate for each selector of labels, each with all claims.
fn predicates(options: &PlacementOptions) -> Vec<ClusterPredicate> {
    let PlacementOptions { label_selectors, claims, .. } = options;
    let claim_selector = (!claims.is_empty()).then(|| ClusterClaimSelector { match_expressions: claims.clone() });
    let predicate = |label_selector: Option<&LabelSelector>| ClusterPredicate {
        required_cluster_selector: ClusterSelector {
            label_selector: label_selector.cloned(),
            claim_selector: claim_selector.clone(),
            cel_selector: None,
        },
    };
    match label_selectors.as_slice() {
        [] if claims.is_empty() => Vec::new(),
        [] => vec![predicate(None)],
        all => all.iter().map(|one| predicate(Some(one))).collect(),
    }
}

/// Those of these sets that are not bound to a namespace, of which these are the bindings. Upstream: a binding has the name
/// of its set.
pub fn unbound(sets: &[String], bindings: &[ManagedClusterSetBinding]) -> Vec<String> {
    let is_bound = |set: &String| bindings.iter().any(|binding| binding.metadata.name.as_ref() == Some(set));
    sets.iter().filter(|set| !is_bound(set)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use ocm_api::names::taints;
    use serde_json::Value;

    use super::*;
    use crate::placement::{label_selector, of_taint, requirements};
    use crate::reconcile::is_applied;

    fn spec(options: &PlacementOptions) -> Value {
        let plan = plan("team", "web", options);
        let manifest = plan.objects().next().unwrap();
        assert_eq!((manifest.namespace(), manifest.name(), manifest.is_exact()), (Some("team"), "web", true));
        manifest.body()["spec"].clone()
    }

    #[test]
    fn without_options_every_cluster_of_the_bound_sets_is_selected() {
        assert_eq!(spec(&PlacementOptions::default()), json!({"predicates": []}));
    }

    #[test]
    fn every_option_is_in_the_spec_as_the_server_stores_it() {
        let options = PlacementOptions {
            cluster_sets: vec!["prod".to_owned()],
            label_selectors: vec![label_selector("env=prod").unwrap(), label_selector("!draining").unwrap()],
            claims: requirements("region in (eu,us)").unwrap(),
            prioritizers: vec![Prioritizer::parse("BuiltIn:Steady:3").unwrap()],
            count: Some(2),
            tolerations: vec![of_taint(taints::UNREACHABLE)],
        };
        let claims = json!({"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu", "us"]}]});
        let spec = spec(&options);
        assert_eq!(
            spec,
            json!({
                "clusterSets": ["prod"],
                "numberOfClusters": 2,
                "predicates": [
                    {"requiredClusterSelector": {
                        "labelSelector": {"matchLabels": {"env": "prod"}}, "claimSelector": claims}},
                    {"requiredClusterSelector": {
                        "labelSelector": {"matchExpressions": [{"key": "draining", "operator": "DoesNotExist"}]},
                        "claimSelector": claims}},
                ],
                "prioritizerPolicy": {"mode": "Additive", "configurations": [
                    {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 3}]},
                "tolerations": [{"key": taints::UNREACHABLE, "operator": "Exists"}],
            })
        );
        // The server's other defaults are no difference.
        let plan = plan("team", "web", &options);
        let manifest = plan.objects().next().unwrap();
        let mut live = manifest.body().clone();
        live["spec"]["sortBy"] = "ClusterName".into();
        live["spec"]["scoreRateLimit"] = "1m".into();
        assert!(is_applied(manifest, &live));
    }

    #[test]
    fn claims_alone_are_a_predicate_of_their_own() {
        let options = PlacementOptions { claims: requirements("id").unwrap(), ..PlacementOptions::default() };
        assert_eq!(
            spec(&options)["predicates"],
            json!([{"requiredClusterSelector": {"claimSelector": {"matchExpressions": [{"key": "id", "operator": "Exists"}]}}}])
        );
    }

    #[test]
    fn sets_without_a_binding_are_named() {
        let binding: ManagedClusterSetBinding = serde_json::from_value(json!({"metadata": {"name": "prod"}})).unwrap();
        let sets = ["prod".to_owned(), "dev".to_owned()];
        assert_eq!(unbound(&sets, &[binding]), ["dev"]);
        assert_eq!(unbound(&sets, &[]), sets);
    }
}
