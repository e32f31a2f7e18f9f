//! The verbs.

pub(crate) mod apply;
pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod describe;
pub(crate) mod diff;
pub(crate) mod emergency;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod switch;
pub(crate) mod test;
