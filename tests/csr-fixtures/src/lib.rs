//! Certificate signing requests (PKCS #10, RFC 2986): right ones as agents make them, and every kind of wrong one.
//!
//! ```
//! let right = csr_fixtures::Fixture::agent("c1", "a1").pem();
//! let wrong = csr_fixtures::Fixture::agent("c1", "a1").organization("system:masters").pem();
//! assert_ne!(right, wrong);
//! ```

#![expect(clippy::unwrap_used, reason = "a fixture that cannot make what it was asked for must end the test")]

mod fixture;
mod key;
pub mod oid;
mod pem;
mod text;

pub use fixture::Fixture;
pub use key::{Hash, Key, Kind};
pub use pem::pem;
pub use text::Text;
