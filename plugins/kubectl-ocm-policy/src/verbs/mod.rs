//! The verbs.

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod new;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod test;
