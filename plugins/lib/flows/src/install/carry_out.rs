//! From options to a hub.

use std::time::Duration;

use ocm_core::install::{self, Installation, Live, Options, OptionsError};
use ocm_core::plan::{Applied, Mode};
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::{Cluster, access, apply};

use super::{health, preflight, survey};

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Request {
    /// What was chosen about the hub.
    pub options: Options,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until the hub is usable, for so long.
    pub wait: Option<Duration>,
}

/// What an installation came to.
#[derive(Debug)]
pub struct Installed {
    /// The plan and what there is to say about it.
    pub installation: Installation,
    /// Every object of the plan with what became of it; empty where it is only rendered.
    pub applied: Vec<Applied>,
    /// Whether the hub is usable, or why not; none if nobody waited for it.
    pub usable: Option<Result<(), Failure>>,
}

/// Why a hub could not be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallError {
    /// The options contradict each other or what is there; nothing was tried.
    Options(OptionsError),
    /// It failed.
    Failed(Failure),
}

impl From<OptionsError> for InstallError {
    fn from(error: OptionsError) -> Self {
        Self::Options(error)
    }
}

impl From<Failure> for InstallError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Installs a hub, or does with its plan what the request says. `each` hears of every object as soon as it is there.
///
/// # Errors
/// When the cluster cannot be read, is a hub of another make, or contradicts the options; the failure of a request.
pub async fn install(
    cluster: &Cluster,
    request: &Request,
    narrator: &dyn Narrator,
    each: impl FnMut(&Applied),
) -> Result<Installed, InstallError> {
    let installation = prepare(cluster, &request.options, narrator).await?;
    let plan = &installation.plan;
    if request.mode == Mode::Render {
        return Ok(Installed { installation, applied: Vec::new(), usable: None });
    }
    if request.mode.changes() {
        preflight::preflight(cluster, plan, narrator).await?;
    }
    let applied = apply::plan(cluster, plan, request.mode.dry_run(), narrator, each).await?;
    let usable = match request.wait.filter(|_| request.mode.changes()) {
        Some(timeout) => Some(health::usable(cluster, &installation.hub, timeout, narrator).await),
        None => None,
    };
    Ok(Installed { installation, applied, usable })
}

/// The plan of a new hub, for which no cluster is looked at.
///
/// # Errors
/// Options that contradict each other.
pub fn new_hub(options: &Options, narrator: &dyn Narrator) -> Result<Installation, OptionsError> {
    let installation = install::plan(options, &Live::default())?;
    tell_about(&installation, narrator);
    Ok(installation)
}

/// Looks at the cluster and plans.
async fn prepare(cluster: &Cluster, options: &Options, narrator: &dyn Narrator) -> Result<Installation, InstallError> {
    narrator.tell(Event::now(format!("looking at {}", cluster.label())));
    let live = match survey::survey(cluster).await {
        Err(failure) if failure.reason == Reason::Forbidden => {
            // Whoever may not even look lacks more than that: all of it is named at once.
            let plan = install::plan(options, &Live::default())?.plan;
            access::require(cluster, preflight::PURPOSE, &access::to_apply(&plan)).await?;
            return Err(failure.into());
        }
        live => live?,
    };
    let installation = install::plan(options, &live)?;
    tell_about(&installation, narrator);
    Ok(installation)
}

/// Says what a plan has to say about itself.
fn tell_about(installation: &Installation, narrator: &dyn Narrator) {
    installation.notes.iter().for_each(|note| narrator.tell(Event::note(note)));
    installation.warnings.iter().for_each(|warning| narrator.tell(Event::warning(warning)));
}
