//! kubectl's JSONPath: templates such as `{range .items[*]}{.metadata.name}{"\n"}{end}`, and the paths of custom columns.
//!
//! The language is the one of Kubernetes (reference: "JSONPath Support"), not RFC 9535: text stands outside of braces, `$`
//! and `@` are both the current element, and quoted keys may be paths. What a path does not find is not there, and no
//! error.

mod evaluate;
mod parse;
mod template;

pub use template::{Column, Path, Template};
