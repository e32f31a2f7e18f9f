//! How much is fetched.

/// Bytes of the largest module that is fetched; the engine compiles none that is larger.
pub const MAX_MODULE: usize = 40 << 20;
/// How many signatures of one image are looked at: the newest ones.
pub const MAX_SIGNATURES: usize = 32;
