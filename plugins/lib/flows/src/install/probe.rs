//! Whether the API server answers by the baseline: asked with a dry run of a cluster that the baseline refuses.

use std::time::Duration;

use ocm_core::{Failure, Reason, baseline};
use ocm_kube::Cluster;
use ocm_kube::access::Right;
use ocm_kube::admission::{self, Answer};

/// Time between two looks.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// How many answers in a row have to be alike: several API servers may stand behind one address, and each learns of a
/// change by itself.
const IN_A_ROW: usize = 5;

/// What the answers have shown so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// All of them were as they should be.
    All,
    /// The last one was not.
    NotYet,
    /// The cluster does not serve managed clusters, so nobody can ask.
    NoHub,
}

/// The rights that asking needs.
pub(crate) fn rights() -> Vec<Right> {
    let probe = baseline::probe();
    ["create", "patch"].map(|verb| Right::new(verb, probe.group(), probe.plural()).on(probe.name())).to_vec()
}

/// Asks until enough answers in a row are as they should be, or one is not.
///
/// # Errors
/// When the API server gives no answer.
pub(crate) async fn ask(cluster: &Cluster, is_right: impl Fn(&Answer) -> bool) -> Result<Seen, Failure> {
    let probe = baseline::probe();
    for _ in 0..IN_A_ROW {
        match admission::ask(cluster, &probe).await {
            Ok(answer) if is_right(&answer) => {}
            Ok(_) => return Ok(Seen::NotYet),
            Err(failure) if failure.reason == Reason::KindNotServed => return Ok(Seen::NoHub),
            Err(failure) => return Err(failure),
        }
    }
    Ok(Seen::All)
}
