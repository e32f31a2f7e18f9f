//! The static baseline: what the API server itself refuses on a hub, by ValidatingAdmissionPolicies.
//!
//! They are the rules of [`ocm_rules`], as far as CEL can judge them, with the same codes. No pod answers for them, so
//! they cannot be down. They cannot look into a certificate request or at other objects: what needs that is left to
//! `accept` and to policies. Nothing is refused here that the rules allow, but for what takes a right of its own: that OCM's
//! webhook asks for as well, which may be missing.
//!
//! Nothing of these policies matches deletions, statuses, leases, or the certificate requests of kubelets and people:
//! whatever is wrong with them, the hub works on.

pub mod approvals;
pub(crate) mod cel;
pub(crate) mod certificate_requests;
mod clusters;
pub(crate) mod identities;
mod in_force;
mod objects;
mod policy;
mod removal;
mod settings;
mod works;

pub use in_force::{ANSWERED_BY, answer, is_as_wanted, probe};
pub use objects::{NAMES, plan};
pub use policy::{BINDING_KIND, FIRST_MINOR, POLICY_KIND};
pub use removal::{Effect, effects, is_answer, removal};
pub use settings::{Enforcement, Settings};
