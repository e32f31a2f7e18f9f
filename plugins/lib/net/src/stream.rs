//! What bytes go through.

use tokio::io::{AsyncRead, AsyncWrite};

/// A connection: to a server, or through a proxy that may speak TLS itself.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
