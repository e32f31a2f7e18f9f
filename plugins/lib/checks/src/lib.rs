//! Why a cluster is not joined, and whether it stays joined: facts in, findings out.
//!
//! ```text
//! Snapshot ─▶ Facts ─▶ checks of the registry ─▶ Outcomes ─▶ Report: a headline, findings, what follows from them
//! (observed,  (found    (pure functions)                       ▲
//!  or a file)  by name)                                        └─ suppressions
//! ```

mod causes;
pub mod chain;
pub mod changes;
pub mod facts;
pub mod finding;
pub mod fix;
pub mod judge;
pub mod page;
pub mod registry;
pub mod snapshot;
pub mod suppress;
mod text;
pub mod timeline;
pub mod tls;
