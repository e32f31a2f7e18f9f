//! Test cases of policies: questions, and the answers that they have to get.
//!
//! ```text
//! tests.yaml ─▶ Suite ─▶ Case { settings, request } ─▶ a policy ─▶ Result<Decision, PolicyError>
//!                            └── Expect ◀────────── check, update ──────────┘
//! ```
//!
//! ```yaml
//! settings: {prefixes: [prod-]}        # of every case that has none of its own
//! base:                                # what the requests have in common
//!   operation: create
//! cases:
//!   - name: a name that fits
//!     request: {cluster: {name: prod-1}}
//!     expect: {verdict: allow}
//!   - name: another name
//!     request: {cluster: {name: test-1}}
//!     expect:
//!       verdict: deny
//!       reasons: [NamePrefix]
//! ```
//!
//! A case asks with `request`, laid over `base` as a JSON merge patch (RFC 7396, so `null` takes a member away); with
//! `review`, the request of an AdmissionReview; or with `objects`, a ManagedCluster and a CertificateSigningRequest.
//! Nothing here runs a policy: whoever does passes its answers to [`Expect::check`], or everything to [`run`].

mod expect;
mod run;
mod suite;
mod update;

pub use expect::{Expect, Mismatch, WantedReason, Word};
pub use run::{run, run_suite};
pub use suite::{Bad, Case, Suite};
