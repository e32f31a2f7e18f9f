//! `join --filename`: from a file to a hub with its clusters.

mod render;
mod run;
mod view;

pub(crate) use run::run;
