//! How a Deployment is.

use serde::{Deserialize, Serialize};

/// How a Deployment is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Health {
    /// Its latest generation is rolled out and every pod is available.
    Ready,
    /// On its way.
    NotYet {
        /// What is still missing.
        because: String,
    },
    /// It will not get there until somebody changes something.
    Stuck {
        /// What is wrong.
        because: String,
    },
}

impl Health {
    /// What is missing or wrong; none if it is ready.
    pub fn because(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::NotYet { because } | Self::Stuck { because } => Some(because),
        }
    }
}
