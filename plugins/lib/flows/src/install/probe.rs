//! Whether the API server answers by the baseline or by the policy webhook: asked with a dry run of a cluster that they
//! refuse.

use std::time::Duration;

use ocm_api::Manifest;
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

/// The rights that asking the baseline needs.
pub(crate) fn rights() -> Vec<Right> {
    rights_on(&baseline::probe())
}

/// The rights that asking with this cluster needs.
pub(crate) fn rights_on(probe: &Manifest) -> Vec<Right> {
    ["create", "patch"].map(|verb| Right::new(verb, probe.group(), probe.plural()).on(probe.name())).to_vec()
}

/// Asks the baseline until enough answers in a row are as they should be, or one is not.
///
/// # Errors
/// When the API server gives no answer.
pub(crate) async fn ask(cluster: &Cluster, is_right: impl Fn(&Answer) -> bool) -> Result<Seen, Failure> {
    ask_with(cluster, &baseline::probe(), IN_A_ROW, is_right).await
}

/// Asks with a cluster until so many answers in a row are as they should be, or one is not.
///
/// # Errors
/// When the API server gives no answer.
pub(crate) async fn ask_with(
    cluster: &Cluster,
    probe: &Manifest,
    times: usize,
    is_right: impl Fn(&Answer) -> bool,
) -> Result<Seen, Failure> {
    for _ in 0..times {
        match admission::ask(cluster, probe).await {
            Ok(answer) if is_right(&answer) => {}
            Ok(_) => return Ok(Seen::NotYet),
            Err(no_answer) => {
                let failure = no_answer.failure();
                return if failure.reason == Reason::KindNotServed { Ok(Seen::NoHub) } else { Err(failure) };
            }
        }
    }
    Ok(Seen::All)
}
