//! What the policies in force know of the hub: stores that follow it, and tables made of them.

mod break_glass;
mod guard;
mod knowledge;
mod objects;
mod passed;
mod registering;
mod source;
mod store;

pub(crate) use self::break_glass::queries as break_glass_queries;
pub(crate) use self::registering::queries as registering_queries;
pub use knowledge::Knowledge;
pub(crate) use knowledge::Shown;
