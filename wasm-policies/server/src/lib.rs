//! The hub's webhook: which policies are in force, what they know of the hub, and answers to the API server.
//!
//! ```text
//! HubPolicies ─▶ policies ─▶ Registry ──────────┐
//! hub         ─▶ evidence (watched stores) ─────┤
//!                                               ▼
//! API server ─▶ http (TLS, bounds, drain) ─▶ Gate::review ─▶ AdmissionReview
//!                                               └─▶ metrics, a line in the decision log
//! ```
//!
//! A review has no effect: the API server repeats reviews, and what was admitted may still fail. Whatever goes wrong is
//! an answer that lets nothing pass, or no answer, for which the webhook configuration says what follows.

mod delta;
mod evidence;
mod gate;
mod http;
mod log;
mod metrics;
mod packed;
mod parsed;
mod policies;
mod tally;
mod tls;
mod turn;
pub mod watch;

pub use evidence::Knowledge;
pub use gate::{Decided, Gate, Judge, Review, Reviewed, Unread};
pub use http::{Bounds, Health, Server, serve_health};
pub use log::DecisionLog;
pub use metrics::Metrics;
pub use packed::{Packed, Packer};
pub use policies::{
    Candidate, CandidateState, Decisions, Key, Objection, OfPolicy, Policies, Source, State, Wanted, With, follow,
    store,
};
pub use tls::{Certificate, CertificateFiles, ClientCa, Unusable};
