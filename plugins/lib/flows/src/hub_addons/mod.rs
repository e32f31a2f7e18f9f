//! The hub's side of add-ons: installed from files that somebody has rendered, taken away again, and listed.
//!
//! ```text
//! install:   kinds ─▶ rights ─▶ look (whose is each?) ─▶ plan ─▶ apply ─▶ wait
//! uninstall: sweep by label ─▶ whose, and enabled where? ─▶ rights ─▶ the caller asks ─▶ delete in the opposite order
//! ```

mod install;
mod list;
mod uninstall;

pub use install::{HubAddOnInstalled, HubAddOnRequest, install_hub_addon, new_hub_addon};
pub use list::{HubAddOnRow, hub_addons, watch_hub_addons};
pub use uninstall::{HubAddOnFound, HubAddOnRemoval, HubAddOnUninstalled, find_hub_addons, uninstall_hub_addon};
