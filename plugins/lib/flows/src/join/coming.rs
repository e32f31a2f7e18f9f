//! A hub that is installed while clusters begin to join it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The installation of a hub, as those see it who wait for the hub.
#[derive(Clone, Debug, Default)]
pub struct Coming(Arc<AtomicBool>);

impl Coming {
    /// Says that nothing of the hub was installed, or not all: nobody needs to wait for it.
    pub fn fail(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether that was said.
    pub fn has_failed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
