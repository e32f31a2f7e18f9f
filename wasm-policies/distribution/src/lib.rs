//! Modules of policies from registries (OCI distribution and image specifications) and web servers, and the signatures of
//! images, as cosign makes them with a key.
//!
//! ```text
//! Reference ─▶ Registry::manifest ─▶ Image (layout, layer) ─▶ Registry::module
//!                     └─▶ Registry::signatures ─▶ PublicKey::verify(digest)
//! URL       ─▶ file
//! HubPolicy's source ─▶ fetch = the above, in this order ─▶ judge, again, wherever it was kept
//! ```
//!
//! What comes from outside is bounded in size and time, and believed by its digest alone.

mod bounds;
mod credentials;
mod digest;
mod error;
mod fetch;
mod file;
mod http;
mod image;
mod push;
mod reference;
mod registry;
mod signature;
mod trust;

pub use bounds::{MAX_MODULE, MAX_SIGNATURES};
pub use credentials::{Credentials, DockerConfig, Entry};
pub use digest::{Digest, sha256};
pub use error::{Error, ErrorKind};
pub use fetch::{Fetched, fetch, judge};
pub use file::file;
pub use image::{Image, Layout};
pub use push::Pushed;
pub use reference::{Reference, ReferenceError};
pub use registry::Registry;
pub use signature::{KeyError, PublicKey, Signature, SigningKey, Unverified};
pub use trust::Trust;
