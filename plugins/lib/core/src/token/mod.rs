//! Tokens with which clusters register: what can be read off one, and how bootstrap tokens are made and kept.

mod bootstrap;
mod content;
mod rights;
mod word;

pub use bootstrap::{BootstrapToken, Kept, MANAGED_BY, SECRET_PREFIX, SECRET_TYPE, reveal, to_the_second};
pub use content::{Content, check, expired, issued, read};
pub use rights::{can_name_set, cluster_set_rights, token_binding};
pub use word::is_id;
