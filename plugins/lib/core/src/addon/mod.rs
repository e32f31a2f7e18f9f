//! Add-ons: what defines one on the hub, what enables one on a cluster, to which configurations it refers and which of them
//! takes effect, how far the hub has come with it, the proxies of its agents, and what goes with it.

mod configuration;
mod defined;
mod enabled;
mod places;
pub mod proxy;
mod removal;
mod rollout;

pub use configuration::{
    Configured, Level, Named, Progress, configurations, kind_and_object, progress, unused_template,
};
pub use defined::{DefinitionOptions, definition_plan, template_name};
pub use enabled::{AddOnOptions, manifest, parse_config, placements, unsupported};
pub use places::{
    Place, Unwanted, addon_without, definition_without, keep_configurations, of_kind, referred, referring,
};
pub use removal::{Template, templates, why_not_deleted};
pub use rollout::{RolloutStage, StageState, rollout};
