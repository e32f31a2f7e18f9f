//! `uninstall baseline`: the policies of the API server go, and nothing else.
//!
//! ```text
//! rights ─▶ find (whose is it?) ─▶ the caller asks ─▶ delete: bindings, then policies ─▶ wait until it is seen
//! ```

use std::time::{Duration, Instant};

use ocm_core::plan::{Applied, Found};
use ocm_core::{DryRun, Event, Failure, Narrator, baseline};
use ocm_kube::admission::Answer;
use ocm_kube::wait::{Check, until};
use ocm_kube::{Cluster, access, remove};

use crate::install::probe::{self, PAUSE, Seen};

/// What the rights are needed for.
const PURPOSE: &str = "uninstall the baseline";

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// How much of it is only tried.
    pub dry_run: DryRun,
    /// Wait until it has taken effect, for so long.
    pub wait: Option<Duration>,
}

/// What a removal came to.
#[derive(Debug)]
pub struct Uninstalled {
    /// Every object with what became of it.
    pub applied: Vec<Applied>,
    /// Whether the API server was seen to refuse nothing by the baseline any more, which on a cluster that is no hub
    /// nobody can; or why not. None if nobody waited for it.
    pub gone: Option<Result<bool, Failure>>,
}

/// What there is of the baseline. Nothing is deleted yet.
///
/// # Errors
/// When a right is missing, or somebody else made an object of such a name; the failure of a request.
pub async fn find_baseline(
    cluster: &Cluster,
    request: Request,
    narrator: &dyn Narrator,
) -> Result<Vec<Found>, Failure> {
    let plan = baseline::removal();
    if request.dry_run == DryRun::No {
        narrator.tell(Event::now("checking your rights"));
        let mut rights = access::to_remove(&plan);
        rights.extend(request.wait.iter().flat_map(|_| probe::rights()));
        access::require(cluster, PURPOSE, &rights).await?;
    }
    narrator.tell(Event::now(format!("looking at {}", cluster.label())));
    remove::find(cluster, &plan).await
}

/// Deletes what was found. `each` hears of every object as soon as it is gone.
///
/// # Errors
/// The failure of a request; what was deleted before it is gone.
pub async fn uninstall_baseline(
    cluster: &Cluster,
    found: Vec<Found>,
    request: Request,
    narrator: &dyn Narrator,
    each: impl FnMut(&Applied),
) -> Result<Uninstalled, Failure> {
    let applied = remove::all(cluster, found, request.dry_run, narrator, each).await?;
    let gone = match request.wait.filter(|_| request.dry_run == DryRun::No) {
        Some(timeout) => Some(gone(cluster, timeout, narrator).await),
        None => None,
    };
    Ok(Uninstalled { applied, gone })
}

/// Waits until the API server no longer answers by the baseline.
async fn gone(cluster: &Cluster, timeout: Duration, narrator: &dyn Narrator) -> Result<bool, Failure> {
    let is_right = |answer: &Answer| !answer.said().iter().any(baseline::is_answer);
    until("waiting for the removal to take effect", Instant::now() + timeout, PAUSE, narrator, async || {
        Ok(match probe::ask(cluster, is_right).await? {
            Seen::All => Check::Ready(true),
            Seen::NotYet => Check::Unwatched("the API server still answers by the baseline".to_owned()),
            Seen::NoHub => Check::Ready(false),
        })
    })
    .await
    .map_err(|failure| failure.hint("perhaps somebody has installed it again: run the same command again"))
}
