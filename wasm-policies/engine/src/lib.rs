//! Policies as WebAssembly: loaded, limited and run.
//!
//! ```text
//! module ─▶ shape ─▶ kind ─▶ compile (a process of its own) ─▶ Artifact ─▶ cache
//!                                                                 │
//!   Request ─▶ evaluate: Registry (active · candidate · canary), evidence ─▶ Policy: fresh instance, fuel, time, memory
//!                                                                 │
//!                                           Final: verdict, obligations, patch, records (ocm-policy-rules)
//! ```
//!
//! A policy can compute and nothing else. It has no clock, no randomness and no network unless an administrator grants a
//! host call, every decision is made by an instance that has made no other, and whatever goes wrong is a [`PolicyError`], which
//! never allows anything. This crate knows no cluster and no clock either: what a decision depends on is handed in, and
//! time passes when [`Engine::tick`] is called.

mod artifact;
mod background;
mod cases;
mod compiler;
mod concurrency;
mod deadline;
mod digest;
mod engine;
mod evaluate;
mod limits;
mod module;
mod policy;
mod question;
mod registry;
mod runtime;
mod wit_types;

pub use artifact::{Artifact, Header};
pub use cases::pass_cases;
#[doc(hidden)]
pub use compiler::confine_for_tests;
pub use compiler::{Cache, CacheError, Compiler, compile_here, serve};
pub use deadline::{Cancellation, Deadline};
pub use digest::digest;
pub use engine::{Engine, EngineLoad, EngineSettings, use_shard};
pub use evaluate::{
    Comparison, Evaluated, EvidenceReader, Final, NoEvidence, WantedEdits, evaluate, evaluate_question, may_edit,
    wanted_edits,
};
pub use limits::{Ceiling, Limits};
pub use module::{Inspection, Kind, Shape, ShapeLimits, annotate, componentize, inspect};
pub use ocm_policy_rules::{Outcome, PolicyError};
pub use policy::{Answered, Asked, NotAsked, Policy};
pub use question::Question;
pub use registry::{Installation, Operations, Registry, Slot};
