//! The flows: what the commands do, told as events while they do it. No flags and no printing here.

pub mod install;
pub mod workload;
