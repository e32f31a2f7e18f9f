//! Clusters that the hub would accept by itself, and policies would not: it is kept from trying.
//!
//! A hub with the feature gate ManagedClusterAutoApproval accepts every cluster within seconds. The webhook refuses that
//! where policies object, and the hub would try again for ever. It leaves alone what has the annotation by which it notes its
//! own acceptances, so a cluster that waits gets it, and loses it as soon as nobody objects any more.

use std::time::Duration;

use jiff::Timestamp;
use ocm_api::ManagedCluster;
use ocm_api::conditions::find;
use ocm_api::conditions::managed_cluster::HUB_ACCEPTED;
use ocm_api::names::annotations::AUTOMATICALLY_ACCEPTED_ON;
use ocm_api::names::identity::REGISTRATION_CONTROLLER_USER;
use ocm_api::names::labels::CLUSTER_SET;
use ocm_api::names::namespaces;
use ocm_policy_abi::{Operation, Request, Stage};
use ocm_policy_engine::Deadline;
use ocm_policy_rules::review::{self, Asking};
use ocm_policy_server::{Objection, Policies};
use ocm_rules::cluster::HELD;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::failed::Failed;
use crate::hub::Snapshot;
use crate::joins::{DECIDES, Joins, LONGEST, LOOKS};
use crate::queue::Next;

/// How long it may take to accept one that was released: its controller is told of each change.
const ACCEPTS: Duration = Duration::from_secs(3);

/// What is to be done about a cluster that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Hold,
    Release,
}

/// What keeps the hub from accepting a cluster, and what is known of it. `objects`: policies would refuse it.
/// `was_accepted`: it was accepted once, and somebody took that back.
fn step(annotation: Option<&str>, is_on: bool, objects: bool, was_accepted: bool) -> Step {
    match annotation {
        None if is_on && (objects || was_accepted) => Step::Hold,
        // Whoever took an acceptance back has decided: what the hub does by itself is no answer to that.
        Some(HELD) if !(was_accepted || is_on && objects) => Step::Release,
        // What others wrote there holds it, too, and is theirs.
        _ => Step::Nothing,
    }
}

impl Joins {
    /// Keeps the hub from accepting a cluster that it may not accept, and no other. `expired`: its acceptance was withdrawn. When
    /// it is to be looked at again.
    pub(crate) async fn hold(
        &self,
        snapshot: &Snapshot,
        cluster: &ManagedCluster,
        expired: bool,
    ) -> Result<Next, Failed> {
        let metadata = &cluster.metadata;
        if cluster.spec.hub_accepts_client.unwrap_or_default() || metadata.deletion_timestamp.is_some() {
            return Ok(Next::Rest);
        }
        let annotation =
            metadata.annotations.as_ref().and_then(|all| all.get(AUTOMATICALLY_ACCEPTED_ON)).map(String::as_str);
        let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let was_accepted = expired || find(conditions, HUB_ACCEPTED).is_some();
        let is_on = self.auto_approval.is_on();
        // Where policies are out of force on purpose, none of them objects.
        let objects = is_on && !self.emergency.is_on() && self.objects(snapshot).await?;
        let step = step(annotation, is_on, objects, was_accepted);
        let patch = match step {
            Step::Nothing => return Ok(if objects { Next::Waits(LONGEST) } else { Next::Rest }),
            Step::Hold => holding(metadata.annotations.is_some()),
            Step::Release => releasing(),
        };
        match self.effects.change(cluster, patch).await {
            Ok(()) if step == Step::Release => {
                self.accepted_before_the_next(&snapshot.name).await?;
                Ok(Next::Rest)
            }
            Ok(()) => Ok(Next::Waits(LONGEST)),
            // It keeps nobody out that it is not written: the webhook does.
            Err(Failed::Forbidden(why)) => {
                self.log.refused(&snapshot.name, &why);
                Ok(Next::Waits(LONGEST))
            }
            Err(Failed::Refused(why) | Failed::Invalid(why)) => {
                self.log.refused(&snapshot.name, &why);
                Ok(Next::Again)
            }
            Err(failed) => Err(failed),
        }
    }

    /// Where policies count and the hub accepts by itself, gives it time to accept one that was released before another one is
    /// looked at: of many that wait for one place, one is to be released.
    async fn accepted_before_the_next(&self, name: &str) -> Result<(), Failed> {
        if !self.policies.count(Operation::Accept) || !self.auto_approval.is_on() {
            return Ok(());
        }
        let end = Instant::now() + ACCEPTS;
        let accepts = || {
            let cluster = self.hub.snapshot(name).cluster;
            cluster.is_none_or(|cluster| cluster.spec.hub_accepts_client.unwrap_or_default())
        };
        while !accepts() && Instant::now() < end {
            self.effects.send(async { Ok(()) }).await?;
            tokio::time::sleep(LOOKS).await;
        }
        Ok(())
    }

    /// Before an acceptance is withdrawn: has the hub leave the cluster alone, where it would accept it again at once.
    pub(crate) async fn hold_first(&self, snapshot: &Snapshot, cluster: &ManagedCluster) -> Result<(), Failed> {
        let annotations = cluster.metadata.annotations.as_ref();
        let is_there = annotations.is_some_and(|all| all.contains_key(AUTOMATICALLY_ACCEPTED_ON));
        if is_there || !self.auto_approval.is_on() {
            return Ok(());
        }
        match self.effects.annotate(cluster, AUTOMATICALLY_ACCEPTED_ON, HELD).await {
            // Who may do less than that withdraws it all the same.
            Err(Failed::Forbidden(why) | Failed::Refused(why) | Failed::Invalid(why)) => {
                self.log.refused(&snapshot.name, &why);
                Ok(())
            }
            held => held,
        }
    }

    /// Whether policies would refuse that the hub accepts this cluster now.
    async fn objects(&self, snapshot: &Snapshot) -> Result<bool, Failed> {
        let Some(object) = snapshot.object.clone() else { return Ok(false) };
        let policies = self.policies.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let asking = Asking {
                now: Timestamp::now().as_millisecond(),
                wants_object: true,
                stage: Some(Stage::Validating),
                carries_out: true,
                ..Asking::default()
            };
            let review = acceptance(&object, REGISTRATION_CONTROLLER_USER, namespaces::HUB);
            let question = review::from_admission(&review, &asking).map_err(|error| error.to_string())?.into_owned();
            let by_the_hub = policies.joins_by_the_hub(&question).then(|| question.clone());
            let deadline = Deadline::after(DECIDES);
            let made = policies.evaluate(as_judged(&policies, question, &deadline), &deadline);
            let refused = review::is_refused(made.request(), &made.answer);
            let joins = by_the_hub.filter(|_| !refused).map(|join| policies.join_by_the_hub(&join, &deadline));
            Ok::<_, String>(match joins {
                None | Some(Ok(_)) => Some(refused),
                Some(Err(Objection::Policies(_))) => Some(true),
                // Nothing is held, and nothing released, before it can be judged. The webhook refuses it meanwhile.
                Some(Err(Objection::Unknown(_))) => None,
            })
        });
        match asked.await {
            Ok(Ok(Some(refused))) => Ok(refused),
            Ok(Ok(None)) => Err(Failed::Late),
            Ok(Err(why)) => Err(Failed::Refused(format!("it cannot be read: {why}"))),
            Err(_) => Err(Failed::Late),
        }
    }
}

/// The hub's write as it is judged, with what policies change in it. The hub's controller may not move a cluster to another set
/// (`managedclustersets/join`, which its role does not have): where policies want that, it is as if they could not change it.
fn as_judged(policies: &Policies, question: Request<'static>, deadline: &Deadline) -> Request<'static> {
    let changed = policies.as_changed(question.clone(), deadline);
    if set(&changed) == set(&question) { changed } else { question }
}

/// The set of the cluster that a request is about.
fn set<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    request.cluster.as_ref()?.labels.get(CLUSTER_SET).map(|set| &**set)
}

/// What the webhook is asked when this service account accepts a cluster.
pub(crate) fn acceptance(cluster: &Value, user: &str, namespace: &str) -> Value {
    let with = |accepted: bool| {
        let mut cluster = cluster.clone();
        if let Some(object) = cluster.as_object_mut() {
            let spec = object.entry("spec").or_insert_with(|| json!({}));
            spec["hubAcceptsClient"] = accepted.into();
        }
        cluster
    };
    let namespace = format!("system:serviceaccounts:{namespace}");
    json!({
        "uid": "",
        "kind": {"group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster"},
        "resource": {"group": "cluster.open-cluster-management.io", "version": "v1", "resource": "managedclusters"},
        "name": cluster.pointer("/metadata/name"),
        "operation": "UPDATE",
        "userInfo": {
            "username": user,
            "groups": ["system:serviceaccounts", namespace, "system:authenticated"],
        },
        "object": with(true),
        "oldObject": with(false),
    })
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
        let of = |annotation, objects| step(annotation, true, objects, false);
        assert_eq!((of(None, true), of(None, false)), (Step::Hold, Step::Nothing));
        assert_eq!((of(Some(HELD), true), of(Some(HELD), false)), (Step::Nothing, Step::Release));
        for objects in [true, false] {
            assert_eq!(of(Some("2026-01-01T00:00:00Z"), objects), Step::Nothing, "{objects}");
        }
        assert_eq!(step(Some(HELD), false, false, false), Step::Release);
        assert_eq!(step(None, false, false, false), Step::Nothing);
    }

    #[test]
    fn an_acceptance_that_somebody_took_back_is_not_given_again() {
        for objects in [true, false] {
            assert_eq!(step(None, true, objects, true), Step::Hold);
            for is_on in [true, false] {
                assert_eq!(step(Some(HELD), is_on, objects, true), Step::Nothing, "{is_on} {objects}");
            }
        }
        // Where the hub does nothing by itself, nothing is written.
        assert_eq!(step(None, false, false, true), Step::Nothing);
    }

    #[test]
    fn the_question_is_that_of_the_webhook() {
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c1", "uid": "u"}, "spec": {"leaseDurationSeconds": 60},
        });
        let review = acceptance(&cluster, REGISTRATION_CONTROLLER_USER, namespaces::HUB);
        let asking = Asking { stage: Some(Stage::Validating), wants_object: true, ..Asking::default() };
        let question = review::from_admission(&review, &asking).expect("it can be asked");
        assert_eq!((question.operation, question.stage), (Operation::Accept, Some(Stage::Validating)));
        assert!(question.cluster.as_ref().is_some_and(|cluster| cluster.accepted));
        assert!(question.previous.as_ref().is_some_and(|cluster| !cluster.accepted));
        assert_eq!(question.requester.username, REGISTRATION_CONTROLLER_USER);
        assert_eq!(question.requester.groups.len(), 3);
        // Of one that is accepted already, it is the same question.
        let mut accepted = cluster;
        accepted["spec"]["hubAcceptsClient"] = true.into();
        let review = acceptance(&accepted, REGISTRATION_CONTROLLER_USER, namespaces::HUB);
        let again = review::from_admission(&review, &asking).expect("it can be asked");
        assert_eq!(
            (again.operation, &again.cluster, &again.previous),
            (Operation::Accept, &question.cluster, &question.previous)
        );
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
