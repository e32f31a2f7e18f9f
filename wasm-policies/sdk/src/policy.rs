//! What a policy is to the code around it.

use crate::build::{Answer, ManifestBuilder};
use crate::request::Request;

/// A policy.
pub trait Policy: Sized + Send + Sync + 'static {
    /// Its settings as JSON. `()` for a policy without any.
    type Settings: serde::de::DeserializeOwned;

    /// What it is, answers and needs.
    fn manifest() -> ManifestBuilder;

    /// Takes the settings.
    ///
    /// # Errors
    /// What is wrong with them, one sentence each.
    fn configure(settings: Self::Settings) -> Result<Self, Vec<String>>;

    /// Decides.
    fn decide(&self, request: &Request<'_>) -> Answer;
}
