//! What commands do, as functions that emit events: no flags, no printing. Doors hand in settings and a narrator and
//! render what comes back.
//! The flows: what the commands do, told as events while they do it. No flags and no printing here.

pub mod accept;
pub mod get;
pub mod install;
pub mod registry;
pub mod workload;
