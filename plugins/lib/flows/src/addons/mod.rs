//! Add-ons: defined on the hub, enabled on clusters, and which configuration takes effect there.

mod define;
mod enable;
mod status;

pub use define::{DefineRequest, define};
pub use enable::{AddOnsEnabled, EnableRequest, definitions, enable, tell_of_placements};
pub use status::{AddOnStatus, status};
