//! Whether what was applied runs: from what the operator's Deployments show to what is missing.

use ocm_api::Klusterlet;
use ocm_api::conditions::{self, klusterlet as kinds};
use ocm_api::operator::OperatorStatus;

use crate::managed::{Unapplied, unapplied};
use crate::workload::Health;

/// A Deployment of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its name.
    pub name: String,
    /// How its rollout is.
    pub health: Health,
    /// The images of its containers.
    pub images: Vec<String>,
    /// How many pods are wanted.
    pub wanted: i32,
    /// How many of its pods are ready.
    pub ready: i32,
}

/// The first Deployment that the operator has applied and whose image is not one of these: the operator has not come to it
/// yet. A Deployment may have containers of others beside its own.
pub fn not_yet_updated(status: &OperatorStatus, running: &[Running], images: &[String]) -> Option<String> {
    let applied =
        |name: &str| status.generations.iter().any(|applied| applied.resource == "deployments" && applied.name == name);
    let old = |one: &&Running| applied(&one.name) && !one.images.iter().any(|image| images.contains(image));
    let one = running.iter().find(old)?;
    Some(format!("the operator has not updated Deployment {} yet: it has {}", one.name, one.images.join(", ")))
}

/// What is missing of a Klusterlet's rollout; nothing if its agents run as planned. `wanted` are the names of the agents'
/// Deployments, `running` those that are there.
pub fn agents_lack(
    klusterlet: &Klusterlet,
    operator: &Health,
    wanted: &[String],
    running: &[Running],
    images: &[String],
) -> Option<String> {
    if let Some(because) = operator.because() {
        return Some(format!("the operator: {because}"));
    }
    match unapplied(klusterlet) {
        Some(Unapplied::Reported(bad)) => return Some(format!("the operator reports {}: {}", bad.reason, bad.message)),
        Some(Unapplied::NotObserved) => {
            return Some("the operator has not observed the latest generation of the Klusterlet yet".to_owned());
        }
        None => {}
    }
    let conditions = klusterlet.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if conditions::find(conditions, kinds::APPLIED).is_none() {
        return Some(format!("the operator has not reported {} yet", kinds::APPLIED));
    }
    if let Some(missing) = wanted.iter().find(|name| !running.iter().any(|one| one.name == **name)) {
        return Some(format!("Deployment {missing} does not exist yet"));
    }
    let own = || running.iter().filter(|one| wanted.contains(&one.name));
    if let Some(old) = own().find(|one| !one.images.iter().any(|image| images.contains(image))) {
        return Some(format!(
            "the operator has not updated Deployment {} yet: it has {}",
            old.name,
            old.images.join(", ")
        ));
    }
    own().find_map(|one| Some(format!("Deployment {}: {}", one.name, one.health.because()?)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn klusterlet(generation: i64, applied: Option<&str>) -> Klusterlet {
        let conditions: Vec<Value> = applied
            .into_iter()
            .map(|status| {
                json!({"type": "Applied", "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
            "metadata": {"name": "k", "generation": generation}, "spec": {},
            "status": {"observedGeneration": 2, "conditions": conditions},
        }))
        .unwrap()
    }

    fn running(name: &str, image: &str, health: Health) -> Running {
        Running {
            name: name.to_owned(),
            health,
            images: vec!["side:1".to_owned(), image.to_owned()],
            wanted: 1,
            ready: 1,
        }
    }

    #[test]
    fn agents_run_when_every_deployment_has_the_new_image_and_is_ready() {
        let (wanted, images) = (["a".to_owned(), "b".to_owned()], ["new".to_owned()]);
        let lacks = |klusterlet: &Klusterlet, running: &[Running]| {
            agents_lack(klusterlet, &Health::Ready, &wanted, running, &images).unwrap_or_default()
        };
        let ready = || vec![running("a", "new", Health::Ready), running("b", "new", Health::Ready)];
        let now = klusterlet(2, Some("True"));
        assert_eq!(lacks(&now, &ready()), "");
        assert!(lacks(&klusterlet(3, Some("True")), &ready()).contains("not observed the latest generation"));
        assert!(lacks(&klusterlet(2, Some("False")), &ready()).contains("reports R: m"));
        assert!(lacks(&klusterlet(2, None), &ready()).contains("has not reported Applied"));
        assert!(lacks(&now, &ready()[..1]).contains("Deployment b does not exist yet"));
        let old = vec![running("a", "new", Health::Ready), running("b", "old", Health::Ready)];
        assert!(lacks(&now, &old).contains("not updated Deployment b yet: it has side:1, old"));
        let rolling = Health::not_yet("1 of 2 pods updated");
        let rolls = vec![running("a", "new", rolling.clone()), running("b", "new", Health::Ready)];
        assert_eq!(lacks(&now, &rolls), "Deployment a: 1 of 2 pods updated");
        let operator = agents_lack(&now, &rolling, &wanted, &ready(), &images);
        assert_eq!(operator.as_deref(), Some("the operator: 1 of 2 pods updated"));
    }

    #[test]
    fn deployments_of_others_in_the_hubs_namespace_do_not_count() {
        let generation =
            json!({"group": "apps", "version": "v1", "resource": "deployments", "name": "own", "lastGeneration": 1});
        let status: OperatorStatus = serde_json::from_value(json!({"generations": [generation]})).unwrap();
        let images = ["new".to_owned()];
        let all = [running("other", "any", Health::Ready), running("own", "new", Health::Ready)];
        assert_eq!(not_yet_updated(&status, &all, &images), None);
        let old = [running("own", "old", Health::Ready)];
        assert!(not_yet_updated(&status, &old, &images).unwrap().contains("not updated Deployment own yet"));
    }
}
