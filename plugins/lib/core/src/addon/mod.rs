//! Add-ons: what defines one on the hub, what enables one on a cluster, which configuration takes effect there, and the
//! proxies of its agents.

mod configuration;
mod defined;
mod enabled;
pub mod proxy;

pub use configuration::{Configured, Level, Named, Progress, configurations, progress, unused_template};
pub use defined::{DefinitionOptions, definition_plan, template_name};
pub use enabled::{AddOnOptions, manifest, parse_config, placements, unsupported};
