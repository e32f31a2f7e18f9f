//! The emergency exit: the API server asks no policy any more, and a mark says who wanted it so.
//!
//! ```text
//! rights ─▶ find (whose is it?) ─▶ the caller asks ─▶ mark ─▶ delete configurations
//! ```

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_core::plan::{Applied, Found};
use ocm_core::policy_engine::{self as engine, EMERGENCY, Mark};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason};
use ocm_kube::access::Right;
use ocm_kube::apply::FIELD_MANAGER;
use ocm_kube::{Cluster, access, remove};
use serde_json::{Value, json};

/// What the rights are needed for.
const PURPOSE: &str = "take the hub's policies out of force";

/// What has the API server ask policies.
#[derive(Debug)]
pub struct Asking(Vec<Found>);

impl Asking {
    /// Whether there is anything.
    pub fn is_there(&self) -> bool {
        self.0.iter().any(|found| found.live.is_some())
    }
}

/// What has the API server ask policies. Nothing is changed yet.
///
/// # Errors
/// When a right is missing, or somebody else made an object of such a name; the failure of a request.
pub async fn find_asking(hub: &Cluster, dry_run: DryRun, narrator: &dyn Narrator) -> Result<Asking, Failure> {
    let configurations = engine::removal(false, false).configurations;
    if dry_run == DryRun::No {
        narrator.tell(Event::now("checking your rights"));
        let mut rights = access::to_remove(&configurations);
        rights.push(Right::new("patch", "", "namespaces").on(engine::NAMESPACE));
        access::require(hub, PURPOSE, &rights).await?;
    }
    Ok(Asking(remove::find(hub, &configurations).await?))
}

/// Whom the API server asked before it was told to ask nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The policies.
    Policies,
    /// Nobody, and there is a mark: whoever puts policies in force meanwhile stops.
    Nobody,
    /// Nobody, and there is nothing that could be marked.
    Nothing,
}

/// Has the API server ask nobody any more. The mark comes first: whatever happens then, it says what was wanted, also to whoever is
/// about to have policies asked.
///
/// # Errors
/// The failure of a request; what was deleted before it is gone.
pub async fn stop_asking(
    hub: &Cluster,
    found: Asking,
    reason: &str,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: impl FnMut(&Applied),
) -> Result<Asked, Failure> {
    let is_there = found.is_there();
    let mut is_marked = false;
    if dry_run != DryRun::Client {
        is_marked = match leave_mark(hub, reason, dry_run).await {
            Err(failure) if failure.reason == Reason::NotFound => false,
            marked => marked.map(|()| true)?,
        };
        // Nobody has to keep the namespace for that.
        if is_there && !is_marked {
            narrator.tell(Event::warning(format!("no mark is left: there is no namespace {}", engine::NAMESPACE)));
        }
    }
    remove::all(hub, found.0, dry_run, narrator, each).await?;
    Ok(match (is_there, is_marked) {
        (true, _) => Asked::Policies,
        (false, true) => Asked::Nobody,
        (false, false) => Asked::Nothing,
    })
}

async fn leave_mark(hub: &Cluster, reason: &str, dry_run: DryRun) -> Result<(), Failure> {
    // What is there is read by a change of nothing, for which the right to make one is enough.
    let former = patch(hub, json!({}), DryRun::Server).await?;
    let review = access::myself(hub).await?;
    // Other clocks may be wrong in an emergency, too.
    let at = review.metadata.creation_timestamp.map_or_else(Timestamp::now, |time| time.0);
    let by = review.status.and_then(|status| status.user_info?.username).unwrap_or_default();
    let mark = Mark { at, again: None, by, reason: reason.to_owned() }.after(former.as_deref());
    annotate(hub, Value::from(json!(mark).to_string()), dry_run).await
}

/// The mark that is there, if any.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn mark(hub: &Cluster) -> Result<Option<String>, Failure> {
    let api: Api<Namespace> = Api::all(hub.client.clone());
    let found = api.get_metadata_opt(engine::NAMESPACE).await;
    let found = found.map_err(|error| hub.explain(format_args!("read namespace {}", engine::NAMESPACE), error))?;
    Ok(found.and_then(|found| found.metadata.annotations?.remove(EMERGENCY)))
}

/// Refuses where policies were taken out of force since `known` was the mark: that is of whoever looked at what is there now.
///
/// # Errors
/// The refusal; the failure of a request.
pub(crate) async fn refuse_another(hub: &Cluster, known: Option<&str>) -> Result<(), Failure> {
    match mark(hub).await? {
        Some(mark) if Some(mark.as_str()) != known => {
            Err(Failure::refused(format!("policies were taken out of force meanwhile {}", Mark::words(&mark)))
                .hint("to put them back in force all the same, run this again"))
        }
        _ => Ok(()),
    }
}

/// Takes the mark away that was there before the API server asked again, and tells what it said.
///
/// # Errors
/// As [`refuse_another`].
pub(crate) async fn ended(hub: &Cluster, known: Option<&str>, narrator: &dyn Narrator) -> Result<(), Failure> {
    refuse_another(hub, known).await?;
    let Some(mark) = known else { return Ok(()) };
    annotate(hub, Value::Null, DryRun::No).await?;
    narrator.tell(Event::note(format!("policies were out of force {}", Mark::words(mark))));
    Ok(())
}

async fn annotate(hub: &Cluster, mark: Value, dry_run: DryRun) -> Result<(), Failure> {
    patch(hub, json!({"metadata": {"annotations": { EMERGENCY: mark }}}), dry_run).await.map(|_| ())
}

/// Changes the namespace, and returns the mark that it has then.
async fn patch(hub: &Cluster, patch: Value, dry_run: DryRun) -> Result<Option<String>, Failure> {
    let api: Api<Namespace> = Api::all(hub.client.clone());
    let params = PatchParams {
        dry_run: dry_run == DryRun::Server,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patched = api.patch_metadata(engine::NAMESPACE, &params, &Patch::Merge(patch)).await;
    let after = patched.map_err(|error| hub.explain(format_args!("mark namespace {}", engine::NAMESPACE), error))?;
    Ok(after.metadata.annotations.and_then(|mut annotations| annotations.remove(EMERGENCY)))
}
