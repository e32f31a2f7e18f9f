//! The policy engine of a hub: the objects that run the policy webhook and the controller, and have the API server ask the
//! webhook.
//!
//! ```text
//! Options + what is there + certificates ─▶ engine: namespace, roles, pods ─▶ configurations (Ignore) ─▶ (Fail)
//! ```
//!
//! An API server that cannot reach the webhook lets pass or refuses what an entry of the configurations is about, as its
//! failure policy says. So the entries say `Fail` only when the webhook was seen to answer, and only where nothing but
//! registrations waits for it: see [`webhooks`].

mod api_servers;
mod certificates;
mod emergency;
mod engine;
mod in_force;
mod names;
mod policies;
mod rbac;
mod removal;
mod repair;
pub mod webhooks;
mod workload;

pub use api_servers::{NotANetwork, read_network};
pub use certificates::{
    Certificates, Pair, SERVER_NAME, Trust, authority, certificate, issued_secret, issuer, lacks, read_issuer,
};
pub use emergency::{EMERGENCY, Mark};
pub use engine::{Engine, Options, OptionsError, REPLICAS, Running, outline, plan, serving_secret};
pub use in_force::{
    PROBE, PROBE_CODE, PROBE_OF_OTHERS, PROBE_SENTENCE, is_answer, is_answer_by, probe, probe_of_others,
    probe_of_requests,
};
pub use names::{
    AUTHORITY_SECRET, CERTIFICATES, CONTROLLER, DECIDING_PODS, ISSUED_SECRET, NAMESPACE, PODS, PULL_SECRET,
    SERVING_SECRET, WEBHOOK,
};
pub use policies::NAMES as POLICIES;
pub use removal::{Removal, removal};
pub use repair::REPAIR;
pub use webhooks::{FIRST_MINOR, FailurePolicy, configurations};
