//! HubPolicies, and the objects that hold their modules, as people write them into files.

mod documents;
mod error;

pub use self::error::{FilesError, Holder, MAX_DATA};
pub use documents::{Document, Files, Given, Located};
