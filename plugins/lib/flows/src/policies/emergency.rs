//! The emergency exit: the API server asks no policy any more, and a mark says who wanted it so.
//!
//! ```text
//! rights ─▶ find (whose is it?) ─▶ the caller asks ─▶ mark ─▶ delete configurations
//! ```

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_core::plan::{Applied, Found, Plan};
use ocm_core::policy_engine::{self as engine, EMERGENCY, Mark};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::access::Right;
use ocm_kube::apply::FIELD_MANAGER;
use ocm_kube::{Cluster, access, remove};
use serde_json::{Value, json};

/// What the rights are needed for.
const PURPOSE: &str = "take the hub's policies out of force";
/// How often the mark is taken away where others change the namespace at the same time.
const TRIES: u32 = 5;

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
    let configurations = configurations();
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
    let was_there = found.is_there();
    if dry_run == DryRun::Client {
        remove::all(hub, found.0, dry_run, narrator, each).await?;
        return Ok(if was_there { Asked::Policies } else { Asked::Nobody });
    }
    let is_marked = match leave_mark(hub, reason, was_there, dry_run).await {
        Ok(()) => true,
        Err(failure) if failure.reason == Reason::NotFound => false,
        // What refuses that must not keep policies in force.
        Err(failure) if was_there => {
            narrator.tell(Event::warning(format!("no mark is left: {failure}")));
            false
        }
        Err(failure) => return Err(failure),
    };
    // Whoever had policies asked until now may not have seen the mark; whoever does so from now on looks for it.
    let found = match dry_run {
        DryRun::No => Asking(remove::find(hub, &configurations()).await?),
        _ => found,
    };
    let is_there = was_there || found.is_there();
    remove::all(hub, found.0, dry_run, narrator, each).await?;
    Ok(match (is_there, is_marked) {
        (true, _) => Asked::Policies,
        (false, true) => Asked::Nobody,
        (false, false) => Asked::Nothing,
    })
}

/// What has the API server ask policies.
fn configurations() -> Plan {
    engine::removal(false, false).configurations
}

async fn leave_mark(hub: &Cluster, reason: &str, in_force: bool, dry_run: DryRun) -> Result<(), Failure> {
    // What is there is read by a change of nothing, for which the right to make one is enough.
    let former = match patch(hub, json!({}), DryRun::Server).await {
        Err(failure) if failure.reason == Reason::NotFound => return Err(failure),
        // It would only tell since when.
        former => former.ok().flatten().filter(|_| !in_force),
    };
    let review = access::myself(hub).await?;
    // Other clocks may be wrong in an emergency, too.
    let at = review.metadata.creation_timestamp.map_or_else(Timestamp::now, |time| time.0);
    let by = review.status.and_then(|status| status.user_info?.username).unwrap_or_default();
    let mark = Mark { at, by, reason: reason.to_owned(), again: None }.after(former.as_deref());
    patch(hub, json!({"metadata": {"annotations": { EMERGENCY: json!(mark).to_string() }}}), dry_run).await.map(drop)
}

/// The mark that is there, if any.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn mark(hub: &Cluster) -> Result<Option<String>, Failure> {
    read(hub).await.map(|(mark, _)| mark)
}

/// The mark, and the version of the namespace that has it.
async fn read(hub: &Cluster) -> Result<(Option<String>, Option<String>), Failure> {
    let api: Api<Namespace> = Api::all(hub.client.clone());
    let found = api.get_metadata_opt(engine::NAMESPACE).await;
    let found = found.map_err(|error| hub.explain(format_args!("read namespace {}", engine::NAMESPACE), error))?;
    let Some(metadata) = found.map(|found| found.metadata) else { return Ok((None, None)) };
    let mark = metadata.annotations.and_then(|mut annotations| annotations.remove(EMERGENCY));
    Ok((mark, metadata.resource_version))
}

/// The refusal where a mark is another one than `known`: that is of whoever looked at what is there now.
fn another(mark: Option<&str>, known: Option<&str>) -> Option<Failure> {
    let mark = mark.filter(|mark| Some(*mark) != known)?;
    let failure = Failure::refused(format!("policies were taken out of force meanwhile {}", Mark::words(mark)));
    Some(failure.hint(Remedy::PoliciesInForce))
}

/// Refuses where policies were taken out of force since `known` was the mark.
///
/// # Errors
/// The refusal; the failure of a request.
pub(crate) async fn refuse_another(hub: &Cluster, known: Option<&str>) -> Result<(), Failure> {
    another(mark(hub).await?.as_deref(), known).map_or(Ok(()), Err)
}

/// The same after the API server was told to ask policies. Whoever took them out of force may have looked before, so they are
/// taken out once more.
///
/// # Errors
/// As [`refuse_another`]; that they cannot be taken out.
pub(crate) async fn withdraw_for_another(
    hub: &Cluster,
    known: Option<&str>,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let (mark, _) = read(hub).await?;
    let Some(refusal) = another(mark.as_deref(), known) else { return Ok(()) };
    let found = remove::find(hub, &configurations()).await;
    let removed = match found {
        Ok(found) => remove::all(hub, found, DryRun::No, narrator, |_| {}).await,
        Err(failure) => Err(failure),
    };
    match removed {
        Ok(_) => Err(refusal),
        Err(failure) => Err(Failure::refused(format!("{}, and the API server asks them again", refusal.message))
            .because(failure.to_string())
            .hint(Remedy::PoliciesOutOfForce)),
    }
}

/// Takes the mark away that was there before the API server asked again, and tells what it said.
///
/// # Errors
/// As [`withdraw_for_another`].
pub(crate) async fn ended(hub: &Cluster, known: Option<&str>, narrator: &dyn Narrator) -> Result<(), Failure> {
    let mut tries = 0;
    loop {
        withdraw_for_another(hub, known, narrator).await?;
        let (Some(known), (Some(mark), version)) = (known, read(hub).await?) else { return Ok(()) };
        if mark != known {
            continue;
        }
        // Of this version alone: a mark that somebody leaves meanwhile stays.
        let gone = json!({"metadata": {"resourceVersion": version, "annotations": { EMERGENCY: Value::Null }}});
        tries += 1;
        match patch(hub, gone, DryRun::No).await {
            Err(failure) if failure.reason == Reason::Conflict && tries < TRIES => {}
            Err(failure) => return Err(failure),
            Ok(_) => {
                narrator.tell(Event::note(format!("policies were out of force {}", Mark::words(known))));
                return Ok(());
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mark_that_was_not_known_keeps_policies_out_of_force() {
        let told = |mark, known| another(mark, known).map(|failure| failure.message);
        assert_eq!(told(None, None), None);
        assert_eq!(told(None, Some("a")), None);
        assert_eq!(told(Some("a"), Some("a")), None);
        assert_eq!(told(Some("b"), Some("a")).as_deref(), Some("policies were taken out of force meanwhile b"));
        assert!(told(Some("b"), None).is_some());
    }
}
