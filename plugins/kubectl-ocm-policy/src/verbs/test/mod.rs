//! A policy is run on its test cases: those beside its module, or those of HubPolicies in files.

mod cases;
mod hub;
mod run;
mod view;

pub(crate) use run::run;
