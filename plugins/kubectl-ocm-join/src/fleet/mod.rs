//! `join --filename`: from a file to a hub with its clusters.

mod render;
mod run;
mod view;
mod words;

pub(crate) use run::run;
