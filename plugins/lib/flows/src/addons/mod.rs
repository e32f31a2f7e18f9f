//! Add-ons: defined on the hub, enabled on clusters, which configurations they refer to and which of them takes effect, the
//! proxies of their agents, and deleted.

mod configure;
mod define;
mod delete;
mod effect;
mod enable;
mod proxy;
mod referrers;
mod status;

pub use configure::{Change, ConfigPlan, ConfigRequest, Referrer, configure, plan_configure};
pub use define::{DefineRequest, define};
pub use delete::{AddOnFound, delete, find};
pub use enable::{AddOnsEnabled, EnableRequest, definitions, enable, tell_of_placements};
pub use proxy::{ProxyRequest, Target, configure_proxy, plan_proxy, services_of};
pub use status::{AddOnStatus, status};
