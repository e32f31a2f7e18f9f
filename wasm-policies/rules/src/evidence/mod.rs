//! What a policy is told of the hub: the rows that a query finds, within bounds.
//!
//! ```text
//! query + objects ─▶ Evidence (projected, sorted, by cluster) ─▶ for a request: Table
//! ```

mod field;
mod objects;
mod query;
mod selector;

pub use objects::{approval, certificate_request, entries, registration};
pub use query::{
    BadQuery, Budget, Evidence, check, clusters, fill_columns, fill_table, finds_the_same, labelled, table,
};
pub use selector::Selector;
