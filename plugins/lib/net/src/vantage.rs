//! From where connections are opened: this machine, or another place that passes bytes on.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::connect_error::ConnectError;
use crate::direct::direct;
use crate::stream::Stream;

/// A connection that is being opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, ConnectError>> + Send + 'a>>;

/// A place that opens connections and passes bytes on.
pub trait Dial: Send + Sync {
    /// Opens a TCP connection to a host, whose name it resolves there, and a port.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> Opening<'a>;
}

/// From where connections are opened.
#[derive(Clone, Default)]
pub struct Vantage(Option<Arc<dyn Dial>>);

impl Vantage {
    /// A place other than this machine.
    pub fn elsewhere(place: impl Dial + 'static) -> Self {
        Self(Some(Arc::new(place)))
    }

    /// Whether it is this machine, to whose connections its environment applies.
    pub fn is_here(&self) -> bool {
        self.0.is_none()
    }

    /// Opens a TCP connection.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn open(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, ConnectError> {
        match &self.0 {
            Some(place) => place.dial(host, port).await,
            None => Ok(Box::new(direct(host, port).await?)),
        }
    }
}

impl fmt::Debug for Vantage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_here() { "here" } else { "elsewhere" })
    }
}
