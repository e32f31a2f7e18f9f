//! Carrying out a plan: server-side apply, in parallel where the order allows, told in the order of the plan.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use ocm_api::Manifest;
use ocm_core::plan::{Applied, Outcome, without_bookkeeping};
use ocm_core::reconcile::{Reconciled, is_applied, reconcile, taken_over};
use ocm_core::written::replacement;
use ocm_core::{DryRun, Event, Failure, Narrator, Plan, Reason, Remedy};
use serde_json::{Value, json};

use crate::Cluster;
use crate::triggers::{Triggers, named};
use crate::wait::{Check, until_triggered};

pub use ocm_core::reconcile::FIELD_MANAGER;

/// How many objects of a stage are on the way at once.
const AT_ONCE: usize = 8;

/// How often an object is read and applied that others change at the same time.
const TRIES: u32 = 8;

/// The first pause between two tries; each further one is as much longer.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads an object; none if it does not exist or its kind is not served.
///
/// # Errors
/// Every other failure of the request.
pub async fn read(cluster: &Cluster, manifest: &Manifest) -> Result<Option<Value>, Failure> {
    match api(cluster, manifest).get(manifest.name()).await {
        Ok(object) => to_value(&object).map(Some),
        Err(error) => {
            let failure = cluster.explain(format_args!("read {}", manifest.reference()), error);
            match failure.reason {
                Reason::NotFound | Reason::KindNotServed => Ok(None),
                _ => Err(failure),
            }
        }
    }
}

/// Applies one object: reads what is there, carries over what must not be lost, and applies server-side. A client-side
/// dry run compares instead, and sends nothing but the read.
///
/// What is applied replaces whole lists, with what others have added to them by the time of the read. So it is applied to
/// exactly the version that was read; if the object has changed since, all begins anew.
///
/// # Errors
/// The failure of the request, naming the object. [`Reason::Conflict`] of an object that changes all the time, or is being
/// deleted.
pub async fn one(cluster: &Cluster, manifest: &Manifest, dry_run: DryRun) -> Result<Applied, Failure> {
    until_unchanged(async || try_on(cluster, manifest, read(cluster, manifest).await?, dry_run).await).await
}

/// Tries again, after growing pauses, as long as the object changes between the read and the write.
async fn until_unchanged(mut attempt: impl AsyncFnMut() -> Result<Tried, Failure>) -> Result<Applied, Failure> {
    let mut count = 1;
    loop {
        match attempt().await? {
            Tried::Applied(applied) => return Ok(*applied),
            Tried::Changed(failure) if count == TRIES => return Err(failure),
            Tried::Changed(_) => {
                tokio::time::sleep(PAUSE * count).await;
                count += 1;
            }
        }
    }
}

/// What has become of one try.
enum Tried {
    Applied(Box<Applied>),
    /// The object has changed since it was read.
    Changed(Failure),
}

/// Applies one object if it still is the one that was looked at, as it was then: an object with this UID and this version.
/// Otherwise it is kept. Besides, as [`one`].
///
/// # Errors
/// The failure of the request, naming the object.
pub async fn pinned(
    cluster: &Cluster,
    manifest: &Manifest,
    (uid, version): (&str, &str),
    dry_run: DryRun,
) -> Result<Applied, Failure> {
    let before = read(cluster, manifest).await?;
    let kept = |before: Option<Value>| Applied {
        manifest: manifest.clone(),
        outcome: Outcome::Kept(HAS_CHANGED.to_owned()),
        after: before.clone().unwrap_or_default(),
        before,
    };
    if !is_version(before.as_ref(), uid, version) {
        return Ok(kept(before));
    }
    match try_on(cluster, manifest, before.clone(), dry_run).await? {
        Tried::Applied(applied) => Ok(*applied),
        Tried::Changed(_) => Ok(kept(before)),
    }
}

/// Applies what `plan` makes of an object that is there, to exactly the version that it was made of. If the object has changed
/// since, it is read and planned anew.
///
/// # Errors
/// What `plan` refuses; the failure of the request, naming the object. [`Reason::Conflict`] of an object that changes all the
/// time; [`Reason::NotFound`] of one that is gone.
pub async fn planned(
    cluster: &Cluster,
    live: Value,
    plan: &dyn Fn(&Value) -> Result<Manifest, Failure>,
    dry_run: DryRun,
) -> Result<Applied, Failure> {
    from(cluster, live, plan, async |manifest, live| try_on(cluster, &manifest, Some(live), dry_run).await).await
}

/// Changes the spec of an object that is there to what `plan` makes of it and nothing else of it, as [`planned`] applies. What
/// others have written can be taken away so, and what stays remains theirs.
///
/// # Errors
/// As of [`planned`].
pub async fn replanned(
    cluster: &Cluster,
    live: Value,
    plan: &dyn Fn(&Value) -> Result<Manifest, Failure>,
    dry_run: DryRun,
) -> Result<Applied, Failure> {
    from(cluster, live, plan, async |manifest, live| change(cluster, manifest, live, dry_run).await).await
}

/// Tries with what `plan` makes of the object, first as it was looked at, then as it is read.
async fn from(
    cluster: &Cluster,
    live: Value,
    plan: &dyn Fn(&Value) -> Result<Manifest, Failure>,
    attempt: impl AsyncFn(Manifest, Value) -> Result<Tried, Failure>,
) -> Result<Applied, Failure> {
    let manifest = plan(&live)?;
    let mut looked_at = Some(live);
    until_unchanged(async || {
        let live = match looked_at.take() {
            Some(live) => live,
            None => read(cluster, &manifest).await?.ok_or_else(|| {
                Failure::new(Reason::NotFound, format!("cannot change {}", manifest.reference()))
                    .because("somebody has deleted it meanwhile")
            })?,
        };
        attempt(plan(&live)?, live).await
    })
    .await
}

/// Applies an object of which others have written the spec, so that its spec is the planned one and nothing else. First the
/// spec becomes ours as it is, and then one apply changes it: at no time it is anything between the two.
///
/// # Errors
/// The failure of a request, naming the object. [`Reason::Conflict`] if it is not any more what was looked at.
pub async fn over(cluster: &Cluster, manifest: &Manifest, live: Value, dry_run: DryRun) -> Result<Applied, Failure> {
    must_stay(manifest, Some(&live))?;
    let patch = match dry_run {
        DryRun::Client => {
            let (manifest, after) = (manifest.clone(), manifest.body().clone());
            return Ok(Applied { manifest, outcome: Outcome::Configured, before: Some(live), after });
        }
        DryRun::Server => replacement(manifest, &live),
        DryRun::No => json!({"metadata": {
            "resourceVersion": live["metadata"]["resourceVersion"],
            "managedFields": taken_over(&live, manifest.api_version()),
        }}),
    };
    let dry = dry_run == DryRun::Server;
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), dry_run: dry, ..PatchParams::default() };
    let sent = api(cluster, manifest).patch(manifest.name(), &params, &Patch::Merge(patch)).await;
    let after = sent.map_err(|error| cluster.explain(format_args!("replace {}", manifest.reference()), error))?;
    if dry {
        let (manifest, after) = (manifest.clone(), to_value(&after)?);
        return Ok(Applied { manifest, outcome: Outcome::Configured, before: Some(live), after });
    }
    one(cluster, manifest, dry_run).await
}

/// Why an object is kept that was to be changed as it was looked at.
pub(crate) const HAS_CHANGED: &str = "it has changed since it was looked at";

/// Whether an object is the one with this UID and this version.
pub(crate) fn is_version(object: Option<&Value>, uid: &str, version: &str) -> bool {
    object.is_some_and(|object| object["metadata"]["uid"] == uid && object["metadata"]["resourceVersion"] == version)
}

/// Changes the spec of an object to the planned one and nothing else of it, if it still is as it was looked at.
async fn change(cluster: &Cluster, manifest: Manifest, live: Value, dry_run: DryRun) -> Result<Tried, Failure> {
    let done = |outcome, after| {
        let (manifest, before) = (manifest.clone(), Some(live.clone()));
        Ok(Tried::Applied(Box::new(Applied { manifest, outcome, before, after })))
    };
    must_stay(&manifest, Some(&live))?;
    if manifest.body()["spec"] == live["spec"] {
        return done(Outcome::Unchanged, live.clone());
    }
    if dry_run == DryRun::Client {
        return done(Outcome::Configured, manifest.body().clone());
    }
    let mut patch = replacement(&manifest, &live);
    patch["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    let dry = dry_run == DryRun::Server;
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), dry_run: dry, ..PatchParams::default() };
    match api(cluster, &manifest).patch(manifest.name(), &params, &Patch::Merge(patch)).await {
        Ok(after) => done(Outcome::Configured, to_value(&after)?),
        Err(error) => refused(cluster, "change", &manifest, error),
    }
}

/// Refuses an object that is being deleted: what is written to it goes with it, and nothing would be left of it.
///
/// # Errors
/// [`Reason::Conflict`].
pub fn must_stay(manifest: &Manifest, live: Option<&Value>) -> Result<(), Failure> {
    match live.and_then(|live| live.pointer("/metadata/deletionTimestamp")) {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Failure::new(Reason::Conflict, format!("{} is being deleted", manifest.reference()))
            .because("what is written to it now goes with it")
            .hint(Remedy::RunAgain)),
    }
}

/// What a refused request means for a try.
fn refused(cluster: &Cluster, verb: &str, manifest: &Manifest, error: kube::Error) -> Result<Tried, Failure> {
    let changed = is_changed(&error);
    let failure = cluster.explain(format_args!("{verb} {}", manifest.reference()), error);
    if changed { Ok(Tried::Changed(failure)) } else { Err(failure) }
}

async fn try_on(
    cluster: &Cluster,
    manifest: &Manifest,
    before: Option<Value>,
    dry_run: DryRun,
) -> Result<Tried, Failure> {
    let done = |applied| Ok(Tried::Applied(Box::new(applied)));
    must_stay(manifest, before.as_ref())?;
    let manifest = match reconcile(manifest, before.as_ref()) {
        Reconciled::Apply(manifest) => manifest,
        Reconciled::Keep(reason) => {
            let after = before.clone().unwrap_or_default();
            return done(Applied { manifest: manifest.clone(), outcome: Outcome::Kept(reason), before, after });
        }
    };
    if dry_run == DryRun::Client {
        let outcome = match &before {
            None => Outcome::Created,
            Some(live) if is_applied(&manifest, live) => Outcome::Unchanged,
            Some(_) => Outcome::Configured,
        };
        let after = manifest.body().clone();
        return done(Applied { manifest, outcome, before, after });
    }
    let mut params = PatchParams::apply(FIELD_MANAGER);
    // What somebody makes meanwhile is theirs: it is looked at again.
    params.force = before.is_some();
    params.dry_run = dry_run == DryRun::Server;
    let mut body = manifest.body().clone();
    if let Some(version) = before.as_ref().and_then(|before| before.pointer("/metadata/resourceVersion")) {
        body["metadata"]["resourceVersion"] = version.clone();
    }
    let sent = api(cluster, &manifest).patch(manifest.name(), &params, &Patch::Apply(body)).await;
    let after = match sent {
        Ok(after) => after,
        Err(error) if before.is_none() && is_owned(&error) => {
            return Ok(Tried::Changed(cluster.explain(format_args!("apply {}", manifest.reference()), error)));
        }
        Err(error) => return refused(cluster, "apply", &manifest, error),
    };
    let after = to_value(&after)?;
    let outcome = match &before {
        None => Outcome::Created,
        Some(before) if same(before, &after, dry_run) => Outcome::Unchanged,
        Some(_) => Outcome::Configured,
    };
    done(Applied { manifest, outcome, before, after })
}

/// Whether an object was not applied as it has changed since it was read. Conflicts of field managers, which no new read
/// would mend, say themselves what they are.
fn is_changed(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict()) && !is_owned(error)
}

/// Whether fields that were to be applied are another manager's.
fn is_owned(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    status.is_conflict() && causes.any(|cause| cause.reason == "FieldManagerConflict")
}

/// Carries out a plan stage by stage. Between the stages it waits until new kinds are served.
///
/// `each` hears of every object in the order of the plan, as soon as its turn has come.
///
/// # Errors
/// The first failure in the order of the plan; what was applied before it stays, and is told as done.
pub async fn plan(
    cluster: &Cluster,
    plan: &Plan,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let mut all = Vec::new();
    for stage in &plan.stages {
        let verb = if dry_run == DryRun::No { "applying" } else { "comparing" };
        narrator.tell(Event::now(format!("{verb} {}", stage.name)));
        let begin = all.len();
        let answers = futures::stream::iter(&stage.objects)
            .map(|manifest| async move {
                match one(cluster, manifest, dry_run).await {
                    // What only the plan itself brings is not there in a dry run: the object cannot be validated.
                    Err(failure)
                        if dry_run == DryRun::Server
                            && matches!(failure.reason, Reason::NotFound | Reason::KindNotServed)
                            && plan.provides_for(manifest) =>
                    {
                        let after = manifest.body().clone();
                        Ok(Applied { manifest: manifest.clone(), outcome: Outcome::Created, before: None, after })
                    }
                    answer => answer,
                }
            })
            .buffered(AT_ONCE);
        all.extend(told(answers, dry_run, narrator, &mut each).await?);
        if dry_run == DryRun::No {
            for applied in &all[begin..] {
                if applied.manifest.kind() == "CustomResourceDefinition" {
                    established(cluster, applied, narrator).await?;
                }
            }
        }
    }
    Ok(all)
}

/// Collects the answers about objects in their order. `each` hears of every object as soon as its turn has come, and changes
/// are told as done.
///
/// # Errors
/// The first failure in this order; what comes after it is not begun any more.
pub async fn told(
    answers: impl Stream<Item = Result<Applied, Failure>>,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let mut answers = pin!(answers);
    let mut all = Vec::new();
    while let Some(answer) = answers.next().await {
        let applied = answer?;
        each(&applied);
        if dry_run == DryRun::No && applied.outcome.is_change() {
            narrator.tell(Event::done(format!("{} {}", applied.manifest.reference(), applied.outcome.word())));
        }
        all.push(applied);
    }
    Ok(all)
}

/// Waits until the API server serves a new kind.
async fn established(cluster: &Cluster, applied: &Applied, narrator: &dyn Narrator) -> Result<(), Failure> {
    let definition = &applied.manifest;
    if is_established(definition, &applied.after)? {
        return Ok(());
    }
    let doing = format!("waiting until the cluster serves {}", definition.name());
    let deadline = Instant::now() + Duration::from_secs(60);
    let triggers = Triggers::default().of(api(cluster, definition), named(definition.name()));
    until_triggered(&doing, deadline, Duration::from_millis(500), triggers, narrator, async || {
        let live = read(cluster, definition).await?.unwrap_or_default();
        let not_yet = || Check::NotYet("not established yet".to_owned());
        Ok(if is_established(definition, &live)? { Check::Ready(()) } else { not_yet() })
    })
    .await
}

/// Whether the conditions of a definition say that its kind is served.
fn is_established(definition: &Manifest, live: &Value) -> Result<bool, Failure> {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let find = |kind: &str| conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    if let Some(bad) = find("NamesAccepted").filter(|condition| condition["status"] == "False") {
        let why = bad["message"].as_str().unwrap_or_default();
        return Err(Failure::other(format!("the names of {} are taken", definition.name())).because(why));
    }
    Ok(find("Established").is_some_and(|condition| condition["status"] == "True"))
}

/// The API of an object of a plan.
pub fn api(cluster: &Cluster, manifest: &Manifest) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: manifest.group().to_owned(),
        version: manifest.version().to_owned(),
        api_version: manifest.api_version().to_owned(),
        kind: manifest.kind().to_owned(),
        plural: manifest.plural().to_owned(),
    };
    match manifest.namespace() {
        Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &resource),
        None => Api::all_with(cluster.client.clone(), &resource),
    }
}

fn to_value(object: &DynamicObject) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::other("the server's answer cannot be read").because(error))
}

/// Whether an apply changed nothing.
///
/// An apply for real is to exactly the version that was read, so that what differs is what it has changed. The same version
/// means that nothing was stored. Another one does not mean that the object changed: the server also stores who owns which
/// field, and its own form of what an older version of it, or of the definition, has written. Whoever restarts something
/// because an object changed must not do so for that. A dry run answers a made-up version.
fn same(before: &Value, after: &Value, dry_run: DryRun) -> bool {
    let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
    (dry_run == DryRun::No && version(before) == version(after))
        || without_bookkeeping(before) == without_bookkeeping(after)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Method, Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::core::Status;

    use super::*;

    #[test]
    fn only_an_object_that_has_changed_is_read_and_applied_again() {
        let answer = |code, reason: &str, cause: &str| {
            let status: Status = serde_json::from_value(conflict(code, reason, cause)).unwrap();
            is_changed(&kube::Error::Api(Box::new(status)))
        };
        assert!(answer(409, "Conflict", ""));
        assert!(!answer(409, "Conflict", "FieldManagerConflict"));
        assert!(!answer(409, "AlreadyExists", ""));
        assert!(!answer(422, "Invalid", ""));
    }

    #[test]
    fn nothing_is_written_to_what_is_being_deleted() {
        let binding: k8s_openapi::api::rbac::v1::ClusterRoleBinding =
            serde_json::from_value(binding("1", &[])).unwrap();
        let manifest = Manifest::of(&binding);
        let live = |deleted: Value| json!({"metadata": {"name": "b", "deletionTimestamp": deleted}});
        assert_eq!(must_stay(&manifest, None), Ok(()));
        assert_eq!(must_stay(&manifest, Some(&live(Value::Null))), Ok(()));
        let failure = must_stay(&manifest, Some(&live(json!("2026-01-01T00:00:00Z")))).unwrap_err();
        assert_eq!(failure.reason, Reason::Conflict);
        assert!(failure.message.ends_with("is being deleted"), "{failure}");
    }

    #[test]
    fn an_object_has_changed_if_more_than_the_servers_notes_about_it_did() {
        let object = |version: &str, owner: &str, value: &str| {
            json!({"metadata": {"name": "a", "resourceVersion": version, "generation": 1,
                "managedFields": [{"manager": owner, "operation": "Apply"}]}, "spec": {"x": value}})
        };
        let before = object("1", "a", "1");
        for dry_run in [DryRun::No, DryRun::Server] {
            assert!(same(&before, &object("1", "a", "1"), dry_run));
            assert!(same(&before, &object("2", "b", "1"), dry_run), "who owns what is no part of the object");
            assert!(!same(&before, &object("2", "a", "2"), dry_run));
        }
        let mut labelled = object("2", "a", "1");
        labelled["metadata"]["labels"] = json!({"l": "x"});
        assert!(!same(&before, &labelled, DryRun::No));
        assert!(!same(&before, &object("1", "a", "2"), DryRun::Server), "the version of a dry run tells nothing");
    }

    fn conflict(code: u16, reason: &str, cause: &str) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
            "message": "the object was changed", "details": {"causes": [{"reason": cause, "field": ".rules"}]},
        })
    }

    /// A cluster whose object has one subject more at each read, and whose server takes an apply after so many conflicts.
    /// Returns what was applied at last, and how often that was tried.
    async fn applied(conflicts: usize, cause: &'static str) -> (Result<Applied, Failure>, Vec<Value>) {
        let sent = Arc::new(Mutex::new(Vec::<Value>::new()));
        let (reads, seen) = (Arc::new(Mutex::new(0)), sent.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (reads, seen) = (reads.clone(), seen.clone());
            async move {
                let read = request.method() == Method::GET;
                let body = request.into_body().collect_bytes().await?;
                let (code, answer) = if read {
                    let mut reads = reads.lock().unwrap();
                    *reads += 1;
                    let subjects: Vec<Value> = (0..*reads).map(|index| subject(&format!("user{index}"))).collect();
                    (200, binding(&reads.to_string(), &subjects))
                } else {
                    let mut seen = seen.lock().unwrap();
                    seen.push(serde_json::from_slice(&body)?);
                    match seen.len() > conflicts {
                        true => (200, seen[seen.len() - 1].clone()),
                        false => (409, conflict(409, "Conflict", cause)),
                    }
                };
                let answer = Body::from(serde_json::to_vec(&answer)?);
                Ok::<_, tower::BoxError>(Response::builder().status(code).body(answer)?)
            }
        });
        let cluster = Cluster {
            client: Client::new(service, "default"),
            context: None,
            server: String::new(),
            namespace: String::new(),
            ca: None,
            insecure: false,
            tls_server_name: None,
            proxy: None,
            way: ocm_net::Way::Direct,
            role: ocm_core::Role::default(),
        };
        let planned: k8s_openapi::api::rbac::v1::ClusterRoleBinding =
            serde_json::from_value(binding("", &[subject("plan")])).unwrap();
        let applied = one(&cluster, &Manifest::of(&planned), DryRun::No).await;
        let sent = sent.lock().unwrap().clone();
        (applied, sent)
    }

    fn subject(user: &str) -> Value {
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user})
    }

    fn binding(version: &str, subjects: &[Value]) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "b", "resourceVersion": version},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": subjects,
        })
    }

    #[tokio::test]
    async fn what_was_added_since_the_read_is_read_and_stays() {
        let (applied, sent) = applied(2, "").await;
        assert_eq!(applied.unwrap().outcome, Outcome::Unchanged);
        let versions: Vec<&Value> = sent.iter().map(|body| &body["metadata"]["resourceVersion"]).collect();
        assert_eq!(versions, ["1", "2", "3"]);
        assert_eq!(sent[2]["subjects"], json!(["user0", "user1", "user2", "plan"].map(subject)));
    }

    #[tokio::test]
    async fn an_object_that_changes_all_the_time_is_told() {
        let (failed, sent) = applied(usize::MAX, "").await;
        assert_eq!(failed.unwrap_err().reason, Reason::Conflict);
        assert_eq!(sent.len(), TRIES as usize);
        let (failed, sent) = applied(usize::MAX, "FieldManagerConflict").await;
        assert_eq!((failed.unwrap_err().reason, sent.len()), (Reason::Conflict, 1));
    }
}
