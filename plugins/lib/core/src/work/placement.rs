//! What a placement has decided.

use ocm_api::names::labels;
use serde_json::Value;

use crate::order::Collect as _;

/// The clusters that the decisions of a placement name, each once and sorted. `decisions` may be those of others, too.
/// Upstream: `cluster/v1beta1.PlacementDecision`; a decision without a name is not made yet.
pub fn decided(decisions: &[Value], placement: &str) -> Vec<String> {
    let is_its = |decision: &&Value| decision["metadata"]["labels"][labels::PLACEMENT] == placement;
    let all = decisions.iter().filter(is_its).filter_map(|decision| decision["status"]["decisions"].as_array());
    let names = all.flatten().filter_map(|decision| decision["clusterName"].as_str()).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect_set().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_decisions_of_the_placement_count() {
        let decision = |placement: &str, clusters: &[&str]| {
            let decisions: Vec<Value> =
                clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
            json!({"metadata": {"labels": {labels::PLACEMENT: placement}}, "status": {"decisions": decisions}})
        };
        let all =
            [decision("p", &["c2", ""]), decision("q", &["c3"]), decision("p", &["c1", "c2"]), json!({"metadata": {}})];
        assert_eq!(decided(&all, "p"), ["c1", "c2"]);
        assert_eq!(decided(&all, "r"), Vec::<String>::new());
    }
}
