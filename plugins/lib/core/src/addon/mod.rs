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
    Configured, Level, Named, Progress, TakenAway, configurations, kind_and_object, progress, taken_away,
    unused_template,
};
pub use defined::{DefinitionOptions, definition_plan, template_name};
pub use enabled::{AddOnOptions, is_hubs, manifest, parse_config, placements, supported, takes_one, unsupported};
pub use places::{
    Place, Several, Unwanted, addon_loses_template, addon_without, definition_loses_template, definition_without,
    has_default_template, keep_configurations, kept_templates, of_kind, referred, referring, several_at, several_in,
};
pub use removal::{Template, templates, why_not_deleted};
pub use rollout::{RolloutStage, StageState, rollout};
