//! What the hub knows of clusters and their requests, read in as few requests as there are kinds.

mod accounts;
mod clusters;
mod noted;
mod pages;
mod requests;
mod scope;

pub use accounts::{all_bound_accounts, bound_accounts};
pub use clusters::{clusters, some_clusters};
pub(crate) use noted::{RECORDS_PAGE, noted, noted_of, serves_registrations};
pub(crate) use pages::{FEW, OfHub, PAGE, all, pages, pages_of_metadata, some};
pub(crate) use requests::{REQUESTS_PAGE, fold_requests, pages_of_requests, requests_of};
pub use requests::{is_plain, requests, some_requests};
pub use scope::{Asked, Registry, Scope};
