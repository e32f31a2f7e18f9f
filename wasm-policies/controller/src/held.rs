//! Clusters that the hub would accept by itself, and policies would not: it is kept from trying.
//!
//! A hub with the feature gate ManagedClusterAutoApproval accepts every cluster within seconds. The webhook refuses that
//! where policies object, and the hub would try again for ever. It leaves alone what has the annotation by which it notes its
//! own acceptances, so a cluster that waits gets it, and loses it as soon as nobody objects any more.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use ocm_api::names::identity::REGISTRATION_CONTROLLER_USER;
use ocm_api::operator::ClusterManager;
use ocm_api::{ManagedCluster, names::annotations::AUTOMATICALLY_ACCEPTED_ON};
use ocm_core::install::health::accepts_clusters;
use ocm_kube::{Cluster, explain};
use ocm_policy_abi::{Operation, Requester};
use ocm_policy_engine::Deadline;
use ocm_policy_rules::review::{self, Asking};
use ocm_rules::cluster::HELD;
use serde_json::{Value, json};

use crate::effects::Failed;
use crate::hub::Snapshot;
use crate::join::{DECIDES, Joins};

/// Whether the hub accepts clusters by itself. It does until the opposite is known.
pub(crate) struct AutoApproval(AtomicBool);

impl Default for AutoApproval {
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

impl AutoApproval {
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Looks at the hub.
    ///
    /// # Errors
    /// A sentence why that cannot be told.
    pub(crate) async fn look(&self, hub: &Cluster) -> Result<(), String> {
        let api: Api<ClusterManager> = Api::all(hub.client.clone());
        let (is_on, result) = match api.list(&ListParams::default()).await {
            Ok(found) => (accepts_clusters(&found.items), Ok(())),
            // A hub whose operator runs elsewhere has no such kind.
            Err(kube::Error::Api(status)) if status.code == 404 => (true, Ok(())),
            Err(error) => {
                let why = explain(&error);
                (true, Err(format!("whether the hub accepts clusters by itself cannot be told, so it may: {why}")))
            }
        };
        self.0.store(is_on, Ordering::Relaxed);
        result
    }
}

/// What is to be done about a cluster that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Hold,
    Release,
}

/// `objects`: whether policies would refuse that the hub accepts it.
fn step(annotation: Option<&str>, objects: bool) -> Step {
    match annotation {
        None if objects => Step::Hold,
        Some(HELD) if !objects => Step::Release,
        // What others wrote there holds it, too, and is theirs.
        _ => Step::Nothing,
    }
}

impl Joins {
    /// Keeps the hub from accepting a cluster that it may not accept, and no other. Whether it is to be looked at again when
    /// policies, or what they know, have changed.
    pub(crate) async fn hold(&self, snapshot: &Snapshot, cluster: &ManagedCluster) -> Result<bool, Failed> {
        let metadata = &cluster.metadata;
        if cluster.spec.hub_accepts_client.unwrap_or_default() || metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let annotation =
            metadata.annotations.as_ref().and_then(|all| all.get(AUTOMATICALLY_ACCEPTED_ON)).map(String::as_str);
        let objects = self.auto_approval.is_on() && self.object(snapshot).await?;
        let patch = match step(annotation, objects) {
            Step::Nothing => return Ok(objects),
            Step::Hold => holding(metadata.annotations.is_some()),
            Step::Release => releasing(),
        };
        match self.effects.change(cluster, patch).await {
            Ok(()) => Ok(objects),
            // It keeps nobody out that it is not written: the webhook does.
            Err(Failed::Refused(why) | Failed::Forbidden(why)) => {
                self.log.refused(&snapshot.name, &why);
                Ok(objects)
            }
            Err(failed) => Err(failed),
        }
    }

    /// Whether policies would refuse that the hub accepts this cluster now.
    async fn object(&self, snapshot: &Snapshot) -> Result<bool, Failed> {
        let Some(object) = snapshot.object.clone() else { return Ok(false) };
        let policies = self.policies.clone();
        let asking = Asking { now: Timestamp::now().as_millisecond(), wants_object: true, ..Asking::default() };
        let asked = tokio::task::spawn_blocking(move || {
            let question = review::of_cluster(Operation::Accept, &object, hub(), &asking);
            let question = question.map_err(|error| error.to_string())?.into_owned();
            let made = policies.evaluate(question, &Deadline::after(DECIDES));
            Ok::<_, String>(review::is_refused(made.request(), &made.answer))
        });
        match asked.await {
            Ok(Ok(refused)) => Ok(refused),
            Ok(Err(why)) => Err(Failed::Refused(format!("it cannot be read: {why}"))),
            Err(_) => Err(Failed::Late),
        }
    }
}

/// Who accepts where the hub does so by itself.
fn hub() -> Requester<'static> {
    Requester { username: REGISTRATION_CONTROLLER_USER.into(), ..Requester::default() }
}

fn path() -> String {
    format!("/metadata/annotations/{}", AUTOMATICALLY_ACCEPTED_ON.replace('/', "~1"))
}

fn holding(has_annotations: bool) -> Vec<Value> {
    match has_annotations {
        true => vec![json!({"op": "add", "path": path(), "value": HELD})],
        false => {
            vec![json!({"op": "add", "path": "/metadata/annotations", "value": {AUTOMATICALLY_ACCEPTED_ON: HELD}})]
        }
    }
}

fn releasing() -> Vec<Value> {
    vec![json!({"op": "test", "path": path(), "value": HELD}), json!({"op": "remove", "path": path()})]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_theirs() {
        assert_eq!((step(None, true), step(None, false)), (Step::Hold, Step::Nothing));
        assert_eq!((step(Some(HELD), true), step(Some(HELD), false)), (Step::Nothing, Step::Release));
        for objects in [true, false] {
            assert_eq!(step(Some("2026-01-01T00:00:00Z"), objects), Step::Nothing, "{objects}");
        }
    }

    #[test]
    fn annotations_of_others_stay() {
        assert_eq!(
            json!(holding(true)),
            json!([{"op": "add", "value": HELD,
                    "path": "/metadata/annotations/open-cluster-management.io~1automatically-accepted-on"}])
        );
        assert_eq!(holding(false)[0]["path"], "/metadata/annotations");
        assert_eq!(releasing()[0]["op"], "test");
    }
}
