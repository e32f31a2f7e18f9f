//! Shell completion: what may stand at the end of a command line, in the words of Cobra's protocol, which kubectl asks
//! plugins in. No cluster is asked.
//!
//! ```text
//! kubectl ocm get clu⇥ ─▶ kubectl_complete-ocm get clu ─▶ kubectl-ocm-get __complete clu ─▶ clusters⇥Managed clusters
//!                                                                                           :4
//! ```

mod candidate;
mod line;
mod names;
mod protocol;

pub(crate) use protocol::{WORD, main};
