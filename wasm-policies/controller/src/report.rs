//! What the controller that acts tells of policies: the status of HubPolicies, events and metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use ocm_api::HubPolicy;
use ocm_api::conditions::hub_policy::LOADED;
use ocm_api::conditions::{UNKNOWN as UNKNOWN_YET, find, is_true};
use ocm_api::policy::HubPolicyStatus;
use ocm_core::policy_engine::WEBHOOK;
use ocm_core::{Event, Narrator};
use ocm_kube::apply::FIELD_MANAGER;
use ocm_policy_server::State;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::auto_approval::AutoApproval;
use crate::effects::Effects;
use crate::emergency::Emergency;
use crate::enforcement::{Enforcement, Problem, UNKNOWN, look};
use crate::failed::Failed;
use crate::lease::Leadership;
use crate::modules::Modules;
use crate::parts::Parts;
use crate::policy_status::{loaded_in_short, status};

/// How often it is looked whether policies have changed.
const TICK: Duration = Duration::from_secs(1);
/// How often the hub is asked whether it asks the policies.
const LOOKS: Duration = Duration::from_secs(5);
/// After how long what was written is compared with what is there, though nothing has changed.
const AGAIN: Duration = Duration::from_secs(60);

/// How many digits of a digest are the mark of an event.
const DIGITS: usize = 16;

/// Tells what becomes of policies, while this process leads.
pub(crate) struct Report<'a> {
    parts: &'a Parts,
    effects: Effects,
    api: Api<DynamicObject>,
    modules: &'a Modules,
    auto_approval: &'a AutoApproval,
    emergency: &'a Emergency,
}

/// What was written last, and when.
type Written = (BTreeMap<String, State>, Enforcement, Instant);

impl<'a> Report<'a> {
    pub(crate) fn new(
        parts: &'a Parts,
        lead: &Leadership,
        modules: &'a Modules,
        auto_approval: &'a AutoApproval,
        emergency: &'a Emergency,
    ) -> Self {
        let effects = Effects::new(parts.effects.clone(), lead.clone());
        let api = Api::all_with(parts.effects.clone(), &ApiResource::erase::<HubPolicy>(&()));
        Self { parts, effects, api, modules, auto_approval, emergency }
    }

    /// Goes on until it is dropped.
    pub(crate) async fn run(&self, narrator: &dyn Narrator) {
        let mut seen: Option<(Enforcement, Instant)> = None;
        let mut written: Option<Written> = None;
        let mut told = String::new();
        let mut approvals = BTreeSet::new();
        loop {
            self.break_glass(&mut approvals, narrator).await;
            if seen.as_ref().is_none_or(|(_, at)| at.elapsed() >= LOOKS) {
                let hub = &self.parts.hub;
                let (now, unknown, mark) =
                    futures::join!(look(hub), self.auto_approval.look(hub), Emergency::mark(hub));
                self.emergency.learn(mark, &now);
                if let Some(why) = unknown {
                    narrator.tell(Event::warning(why));
                }
                self.alarm(seen.as_ref().map(|(before, _)| before), &now, narrator).await;
                seen = Some((now, Instant::now()));
            }
            let states = self.modules.told(self.parts.policies.states());
            if let Some((now, _)) = &seen
                && self.parts.policies.is_complete()
                && !is_written(written.as_ref(), &states, now)
            {
                match self.write(&states, now).await {
                    Ok(true) => {
                        written = Some((states, now.clone(), Instant::now()));
                        told.clear();
                    }
                    // Some have changed since: what becomes of them is known soon.
                    Ok(false) => {}
                    Err(failed) => {
                        let why = failed.to_string();
                        if why != told {
                            let what = "the status of hubpolicies cannot be written";
                            narrator.tell(Event::warning(format!("{what}: {why}")));
                            told = why;
                        }
                    }
                }
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Tells once of each approval with breakGlass, whether or not its author makes use of it.
    async fn break_glass(&self, told: &mut BTreeSet<String>, narrator: &dyn Narrator) {
        let now = Timestamp::now().as_millisecond();
        let mut counting = BTreeSet::new();
        for approval in self.parts.knowledge.approvals_with_break_glass() {
            let Some(end) = approval["expires"].as_i64().filter(|end| *end > now) else { continue };
            let text = |pointer: &str| approval.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let mark = ocm_policy_engine::digest(text("/metadata/name").as_bytes());
            counting.insert(mark.clone());
            if told.contains(&mark) {
                continue;
            }
            let until = Timestamp::from_millisecond(end).map(|end| end.to_string()).unwrap_or_default();
            let message = format!(
                "{} may let {} in past policies until {until}, for {}: {}",
                text("/approver"),
                text("/cluster"),
                text("/requester"),
                text("/reason")
            );
            narrator.tell(Event::warning(message.clone()));
            let about = ObjectReference {
                api_version: Some("cluster.open-cluster-management.io/v1".to_owned()),
                kind: Some("ManagedCluster".to_owned()),
                name: Some(text("/cluster").to_owned()),
                uid: Some(text("/clusterUid").to_owned()),
                ..ObjectReference::default()
            };
            let mark = &mark[..DIGITS.min(mark.len())];
            self.effects.tell_once(about, mark, "BreakGlass", false, &message).await;
        }
        self.parts.metrics.approvals_with_break_glass(counting.len());
        *told = counting;
    }

    /// Tells once of each change of what is wrong.
    async fn alarm(&self, before: Option<&Enforcement>, now: &Enforcement, narrator: &dyn Narrator) {
        self.parts.metrics.enforcing(now.of_any().is_none(), now.hub.is_none());
        let both = [
            (before.and_then(Enforcement::of_any), now.of_any(), ["NotEnforcing", "Enforcing"]),
            (before.and_then(|before| before.hub.as_ref()), now.hub.as_ref(), ["HubWebhookMissing", "HubWebhookBack"]),
        ];
        for (before, now, [wrong, right]) in both {
            let word = |problem: Option<&Problem>| problem.map(|problem| problem.reason);
            if word(before) == word(now) {
                continue;
            }
            match now {
                Some(problem) => {
                    narrator.tell(Event::warning(problem.message.clone()));
                    // What nobody can tell is no alarm about the hub; the status and the metric say it.
                    if problem.reason != UNKNOWN {
                        self.effects.tell_about(configuration(), wrong, false, &problem.message).await;
                    }
                }
                None => {
                    let message = "the webhook configurations are as they should be again";
                    narrator.tell(Event::done(message));
                    self.effects.tell_about(configuration(), right, true, message).await;
                }
            }
        }
    }

    /// Writes what is not there yet. Whether everything could be said.
    async fn write(&self, states: &BTreeMap<String, State>, seen: &Enforcement) -> Result<bool, Failed> {
        let mut all = true;
        for object in self.effects.send(self.api.list(&ListParams::default())).await?.items {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let observed = (object.metadata.uid.clone(), object.metadata.generation.unwrap_or_default());
            let Some(state) = states.get(name).filter(|state| state.observed == observed) else {
                all = false;
                continue;
            };
            let before: HubPolicyStatus = object
                .data
                .get("status")
                .and_then(|status| serde_json::from_value(status.clone()).ok())
                .unwrap_or_default();
            let mode = object.data.pointer("/spec/mode").and_then(Value::as_str).unwrap_or_default();
            let decisions = self.parts.policies.decisions(name);
            let now = status(state, mode, seen, decisions, &before, Timestamp::now());
            if now == before {
                continue;
            }
            let patch =
                json!({"metadata": {"resourceVersion": object.metadata.resource_version}, "status": whole(&now)});
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            match self.effects.send(self.api.patch_status(name, &params, &Patch::Merge(patch))).await {
                Ok(_) => self.tell(&object, &before, &now, &loaded_in_short(state)).await,
                Err(Failed::Changed) => all = false,
                Err(failed) => return Err(failed),
            }
        }
        Ok(all)
    }

    /// Tells once that a policy cannot be loaded, and that it can again, in these words.
    async fn tell(&self, object: &DynamicObject, before: &HubPolicyStatus, now: &HubPolicyStatus, message: &str) {
        let Some(loaded) = find(&now.conditions, LOADED) else { return };
        let was = find(&before.conditions, LOADED).map(|condition| condition.status.as_str());
        let is = is_true(&now.conditions, LOADED);
        // A policy that is loaded at once, or as soon as its module was fetched, is as usual.
        let nothing_yet = was.is_none_or(|was| was == UNKNOWN_YET);
        if was == Some(loaded.status.as_str()) || loaded.status == UNKNOWN_YET || (nothing_yet && is) {
            return;
        }
        let about = ObjectReference {
            api_version: Some("policy.kubectl-ocm.dev/v1alpha1".to_owned()),
            kind: Some("HubPolicy".to_owned()),
            name: object.metadata.name.clone(),
            uid: object.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        self.effects.tell_about(about, &loaded.reason, is, message).await;
    }
}

fn is_written(written: Option<&Written>, states: &BTreeMap<String, State>, seen: &Enforcement) -> bool {
    written.is_some_and(|(before, then, at)| before == states && then == seen && at.elapsed() < AGAIN)
}

/// All members, so that what is no longer to be said is taken away.
fn whole(status: &HubPolicyStatus) -> Value {
    let absent = ["sha256", "digest", "previousSha256", "kind", "operations", "decisions", "candidate"];
    let mut members = Value::Object(absent.into_iter().map(|member| (member.to_owned(), Value::Null)).collect());
    if let (Some(all), Value::Object(said)) = (members.as_object_mut(), json!(status)) {
        all.extend(said);
    }
    if let Some(candidate) = members.get_mut("candidate").and_then(Value::as_object_mut) {
        for member in ["sha256", "failed", "lastDifference"] {
            candidate.entry(member).or_insert(Value::Null);
        }
    }
    members
}

/// What alarms are about: the object may be gone, and its name is known.
fn configuration() -> ObjectReference {
    ObjectReference {
        api_version: Some("admissionregistration.k8s.io/v1".to_owned()),
        kind: Some("ValidatingWebhookConfiguration".to_owned()),
        name: Some(WEBHOOK.to_owned()),
        ..ObjectReference::default()
    }
}
