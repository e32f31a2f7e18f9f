//! Values of Rego and the built-in functions that the host computes for compiled Rego.

mod builtin;
mod encoding;
mod semver;
mod sprintf;
mod strings;
mod term;
mod time;
mod units;

pub(crate) use builtin::Builtin;
