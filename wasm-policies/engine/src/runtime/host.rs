//! The host of modules that import functions.

use wasmtime::Store;

use crate::runtime::host_calls::{HostCalls, Murmur};
use crate::runtime::store::Guarded;

/// What the host of a foreign module remembers. Each kind uses its part.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) wasi: super::wasi::Wasi,
    pub(crate) calls: HostCalls,
    pub(crate) talk: super::wapc::Talk,
    pub(crate) builtins: std::sync::Arc<super::opa::Builtins>,
    pub(crate) murmur: Murmur,
    /// Bytes of each buffer.
    pub(crate) most: usize,
    /// Milliseconds since 1970, as the request says.
    pub(crate) now: i64,
}

impl Host {
    pub(crate) fn new(most: u64) -> Self {
        Self { most: usize::try_from(most).unwrap_or(usize::MAX), ..Self::default() }
    }
}

/// A store with such a host.
pub(crate) type Guest = Store<Guarded<Host>>;
