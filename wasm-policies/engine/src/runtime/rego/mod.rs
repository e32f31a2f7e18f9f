//! Values of Rego and the built-in functions that the host computes for compiled Rego.

mod builtin;
mod encoding;
mod jwt;
mod net;
mod patch;
mod pattern;
mod regex;
mod semver;
mod sprintf;
mod strings;
mod term;
mod time;
mod units;
mod work;
mod yaml;

pub(crate) use builtin::Builtin;
pub(crate) use work::Work;
