//! A program is what all instances of a policy share; a [`Ready`] is one instance that has not decided anything yet.

use ocm_policy_abi::{Decision, Manifest};
use ocm_policy_rules::PolicyError;

use crate::limits::Limits;
use crate::question::Question;
use crate::runtime::store::Clock;

/// Compiled code of one policy.
pub(crate) trait Program: Send + Sync {
    /// A fresh instance, brought to the point where only the request is missing.
    fn prepare(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<Box<dyn Ready>, PolicyError>;

    /// Whether code of the guest runs while an instance is made.
    fn prepares_with_guest_code(&self) -> bool {
        true
    }
}

/// An instance that waits for its one request.
pub(crate) trait Ready: Send {
    /// Decides. Called once.
    fn decide(&mut self, question: &Question, manifest: &Manifest, limits: &Limits) -> Result<Decision, PolicyError>;

    /// When it has to stop.
    fn clock(&mut self) -> &mut Clock;

    /// The fuel that the decision has used, getting ready not counted.
    fn fuel_used(&self) -> u64;
}
