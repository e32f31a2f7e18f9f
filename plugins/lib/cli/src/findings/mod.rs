//! Findings of checks, as every command that has some shows them and leaves them out.

pub mod ci;
mod contexts;
pub mod markdown;
mod suppress;

pub use contexts::Contexts;
pub use suppress::SuppressArgs;
