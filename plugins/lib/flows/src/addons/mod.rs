//! Add-ons: defined on the hub, enabled on clusters, which configuration takes effect there, and the proxies of their agents.

mod define;
mod enable;
mod proxy;
mod status;

pub use define::{DefineRequest, define};
pub use enable::{AddOnsEnabled, EnableRequest, definitions, enable, tell_of_placements};
pub use proxy::{ProxyRequest, Target, configure_proxy, plan_proxy, services_of};
pub use status::{AddOnStatus, status};
