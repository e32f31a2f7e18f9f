//! What a watch tells of.

use crate::Failure;

/// One thing that a watch finds.
#[derive(Clone, Debug)]
pub enum Changed<T, G = T> {
    /// It is new or has changed.
    Now(T),
    /// It is gone.
    Gone(G),
    /// All that there are have been found.
    Listed,
    /// The hub cannot be watched at the moment; the watch goes on trying. Once for each interruption.
    Lost(Failure),
    /// It can be watched again.
    Back,
}

impl<T, G> Changed<T, G> {
    /// The same of something else.
    pub fn map<U, H>(self, now: impl FnOnce(T) -> U, gone: impl FnOnce(G) -> H) -> Changed<U, H> {
        match self {
            Self::Now(seen) => Changed::Now(now(seen)),
            Self::Gone(seen) => Changed::Gone(gone(seen)),
            Self::Listed => Changed::Listed,
            Self::Lost(failure) => Changed::Lost(failure),
            Self::Back => Changed::Back,
        }
    }
}
