//! How requests prove who sends them: what a kubeconfig says of its user, read once and never shown.
//!
//! ```text
//! AuthInfo ─▶ Credentials   the `Authorization` of each request: none, one that stays, a file's, a credential plugin's
//!          ─▶ certificate   what the client shows itself with in the TLS handshake
//! ```

mod header;
mod plugin;
mod token_file;
mod user;

pub(crate) use user::{Credentials, Unusable, certificate, sends_any};
