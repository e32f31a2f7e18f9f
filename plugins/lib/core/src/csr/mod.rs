//! Certificate signing requests: the object that asks, and what it really asks for, as facts for the rules of
//! [`ocm_rules::csr`].
//!
//! ```text
//! CertificateSigningRequest ─▶ Request          the object, as the API server keeps it
//!        └─ spec.request ────▶ Content          one PEM block, strictly encoded (der), read, its signature verified
//! ```

mod content;
mod der;
mod request;
mod signature;

pub use crate::key::Key;
pub use content::{Content, LONGEST, Names, Unreadable};
pub use ocm_rules::csr::{Settings, Signature};
pub use ocm_rules::{Code, Violation};
pub use request::{Request, Requester, State};
