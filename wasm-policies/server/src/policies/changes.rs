//! What policies change of a cluster in somebody's write: as it is after the mutating stage, and told at the validating stage
//! from what somebody changes.

use ocm_api::names::labels::CLUSTER_SET;
use ocm_policy_abi::{Cluster, Edit, Operation, Request, Stage};
use ocm_policy_engine::{Deadline, EvidenceReader, may_edit, wanted_edits};
use ocm_policy_rules::edits;
use ocm_policy_rules::review::{self, Asking};
use serde_json::{Value, json};

use super::Policies;
use crate::evidence::Shown;

impl Policies {
    /// Whether a policy may change what a request writes.
    pub(crate) fn may_change(&self, request: &Request<'_>) -> bool {
        may_edit(&self.registry, request)
    }

    /// What policies change of the cluster that a request writes, whatever others say: what they say at the mutating stage.
    fn changes(&self, request: &Request<'static>, evidence: &dyn EvidenceReader, deadline: &Deadline) -> Vec<Edit> {
        if !self.may_change(request) {
            return Vec::new();
        }
        let request = Request { stage: Some(Stage::Mutating), ..request.clone() };
        let wanted = wanted_edits(&self.registry, &request, evidence, deadline);
        wanted.fuel.iter().for_each(|(place, fuel)| self.metrics.spend(place, *fuel));
        wanted.edits
    }

    /// Tells questions about one write what policies have set in the cluster at the mutating stage. They say it again, about the
    /// cluster as it is now. What is written as it was before was set by nobody.
    pub(crate) fn tell_what_is_set<'q>(
        &self,
        questions: impl IntoIterator<Item = &'q mut Request<'static>>,
        evidence: &dyn EvidenceReader,
        deadline: &Deadline,
    ) {
        let mut questions: Vec<&mut Request<'static>> = questions.into_iter().collect();
        let is_set = questions.first().is_some_and(|asked| is_set(asked));
        if !is_set {
            return;
        }
        let changes = questions.iter().flat_map(|asked| self.made_changes(asked, evidence, deadline));
        let set = edits::values(&changes.collect::<Vec<_>>());
        questions.iter_mut().for_each(|asked| asked.set_by_policies.clone_from(&set));
    }

    /// What policies have changed in a write: what they want of it, and would want as well if it stood there as it was before. So
    /// what somebody has written before them, and what they only find right, is none of theirs.
    fn made_changes(&self, asked: &Request<'static>, evidence: &dyn EvidenceReader, deadline: &Deadline) -> Vec<Edit> {
        let wanted = self.changes(asked, evidence, deadline);
        if wanted.is_empty() || asked.previous_object.is_none() {
            return wanted;
        }
        let Some(before) = put_back(asked, &wanted) else { return Vec::new() };
        if before.object == asked.object {
            // The same question has the same answer.
            return wanted;
        }
        let made = self.changes(&before, evidence, deadline);
        wanted.into_iter().filter(|edit| made.contains(edit)).collect()
    }

    /// Whether a write that accepts a cluster changes nothing else of it but what policies have changed: it is what they make
    /// of an acceptance and nothing else.
    pub(crate) fn change_all_else(
        &self,
        accepted: &Request<'static>,
        evidence: &dyn EvidenceReader,
        deadline: &Deadline,
    ) -> bool {
        if accepted.operation != Operation::Accept || !self.may_change(accepted) {
            return false;
        }
        let made = accepts_alone(accepted).and_then(|alone| self.after(&alone, evidence, deadline));
        let made = made.and_then(|made| made.object);
        made.zip(accepted.object.as_ref()).is_some_and(|(made, now)| !differ(&made, now))
    }

    /// A write as the API server has it judged when policies have made their changes; of what nobody changes, as it is. For
    /// whoever asks what would become of it.
    pub fn as_changed(&self, request: Request<'static>, deadline: &Deadline) -> Request<'static> {
        let counting = self.counting();
        let shown =
            Shown { knowledge: &self.knowledge, counting: counting.places(), is_newest: true, has_waited: false };
        self.after(&request, &shown, deadline).unwrap_or(request)
    }

    /// A write with the changes of policies; none where there are none, or they cannot be made.
    fn after(
        &self,
        request: &Request<'static>,
        evidence: &dyn EvidenceReader,
        deadline: &Deadline,
    ) -> Option<Request<'static>> {
        let wanted = self.changes(request, evidence, deadline);
        // Where policies disagree, nothing is written.
        let wanted = edits::merge([("", wanted.as_slice())]).ok().filter(|wanted| !wanted.is_empty())?;
        let object = edits::written(request.object.as_ref()?, &wanted).ok()?;
        let mut cluster = request.cluster.clone()?;
        edits::apply(&mut cluster, &wanted);
        let set_by_policies = edits::values(&wanted);
        Some(Request { object: Some(object), cluster: Some(cluster), set_by_policies, ..request.clone() })
    }
}

/// Whether policies may have set something in what is written.
fn is_set(asked: &Request<'_>) -> bool {
    match asked.operation {
        Operation::Create => true,
        Operation::Accept | Operation::Update => changes_more(asked),
        _ => false,
    }
}

/// Whether a write changes more of a cluster than that it is accepted: what [`ocm_core::policy_engine`] has the webhook asked about.
pub(super) fn changes_more(request: &Request<'_>) -> bool {
    let (Some(new), Some(old)) = (&request.object, &request.previous_object) else { return false };
    differ(new, old)
}

/// Whether two clusters differ in more than that one of them is accepted, what the API server notes down, and the status.
fn differ(one: &Value, other: &Value) -> bool {
    let metadata = ["labels", "annotations", "finalizers", "ownerReferences"];
    let spec = |object: &Value| {
        let mut spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        spec.remove("hubAcceptsClient");
        spec
    };
    let differs = |member: &&str| one["metadata"].get(member) != other["metadata"].get(member);
    metadata.iter().any(differs) || spec(one) != spec(other)
}

/// The same write with what these edits set as it was before; none where it cannot be read so.
fn put_back(asked: &Request<'static>, wanted: &[Edit]) -> Option<Request<'static>> {
    let (mut object, before) = (asked.object.clone()?, asked.previous_object.as_ref()?);
    for edit in wanted {
        match edit {
            Edit::SetLabel { key, .. } => entry_as_before(&mut object, before, "labels", key),
            Edit::SetClusterSet { .. } => entry_as_before(&mut object, before, "labels", CLUSTER_SET),
            Edit::SetAnnotation { key, .. } => entry_as_before(&mut object, before, "annotations", key),
            Edit::SetLeaseDuration { .. } => member_as_before(&mut object, before, "leaseDurationSeconds"),
            Edit::AddTaint { .. } => member_as_before(&mut object, before, "taints"),
            // What is taken away is told to nobody.
            Edit::RemoveLabel { .. } | Edit::RemoveAnnotation { .. } | Edit::RemoveTaint { .. } => {}
        }
    }
    let [cluster, previous] = review::versions(&object, before).ok()?.map(|cluster| Some(cluster.into_owned()));
    Some(Request { object: Some(object), cluster, previous, ..asked.clone() })
}

fn entry_as_before(object: &mut Value, before: &Value, member: &str, key: &str) {
    let Some(entries) = object.pointer_mut("/metadata").and_then(|metadata| metadata.get_mut(member)) else { return };
    let Some(entries) = entries.as_object_mut() else { return };
    match before.pointer("/metadata").and_then(|metadata| metadata.get(member)?.get(key)) {
        Some(value) => entries.insert(key.to_owned(), value.clone()),
        None => entries.remove(key),
    };
}

fn member_as_before(object: &mut Value, before: &Value, member: &str) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match before.pointer("/spec").and_then(|spec| spec.get(member)) {
        Some(value) => spec.insert(member.to_owned(), value.clone()),
        None => spec.remove(member),
    };
}

/// The same acceptance where whoever accepts changes nothing else.
fn accepts_alone(accepted: &Request<'static>) -> Option<Request<'static>> {
    let mut object = accepted.previous_object.clone()?;
    let spec = object.as_object_mut()?.entry("spec").or_insert_with(|| json!({}));
    if spec.is_null() {
        *spec = json!({});
    }
    spec.as_object_mut()?.insert("hubAcceptsClient".to_owned(), true.into());
    let read = review::of_cluster(Operation::Accept, &object, accepted.requester.clone(), &Asking::default()).ok()?;
    let cluster = read.cluster.map(Cluster::into_owned);
    Some(Request { object: Some(object), cluster, ..accepted.clone() })
}
