//! Why a hub is not installed.

use ocm_core::Failure;
use ocm_core::install::OptionsError;

/// Why a hub could not be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallError {
    /// The options contradict each other or what is there; nothing was tried.
    Options(OptionsError),
    /// It failed.
    Failed(Failure),
}

impl From<OptionsError> for InstallError {
    fn from(error: OptionsError) -> Self {
        Self::Options(error)
    }
}

impl From<Failure> for InstallError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
