//! Why something could not be had from, or given to, a registry or a web server.

use std::fmt;

use ocm_api::conditions::hub_policy::reasons;
use ocm_core::{Failure, Reason};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no connection, or it broke, or took too long.
    Unreachable,
    /// Nobody vouches for the server.
    Untrusted,
    /// It wants credentials, or others.
    Unauthorized,
    /// It is not there.
    NotFound,
    /// The server answers with something else.
    Refused,
    /// It is not what its digest says.
    WrongDigest,
    /// It is no module, or packed in a way that is not known.
    NotAModule,
    /// It is larger than it may be.
    TooLarge,
    /// It has no signature.
    Unsigned,
    /// No signature of it is by the key that is wanted.
    WrongSignature,
    /// What was wanted cannot be: a reference, a key or a certificate.
    Invalid,
}

impl ErrorKind {
    /// A stable word, as the reason of a condition.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unreachable => reasons::SOURCE_UNREACHABLE,
            Self::Untrusted => "SourceUntrusted",
            Self::Unauthorized => "SourceUnauthorized",
            Self::NotFound => "ModuleNotFound",
            Self::Refused => reasons::SOURCE_REFUSED,
            Self::WrongDigest => "DigestDiffers",
            Self::NotAModule => "NotAModule",
            Self::TooLarge => "ModuleTooLarge",
            Self::Unsigned => "SignatureMissing",
            Self::WrongSignature => "SignatureWrong",
            Self::Invalid => "SourceInvalid",
        }
    }

    /// Whether it may be otherwise soon, without anybody doing something about the policy.
    pub fn may_pass(self) -> bool {
        reasons::MAY_PASS.contains(&self.word())
    }
}

/// Why something could not be had or given. Nothing in it holds a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// It as the failure of a command.
    pub failure: Box<Failure>,
}

impl Error {
    /// An error with this sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let reason = match kind {
            ErrorKind::Unreachable => Reason::Unreachable,
            ErrorKind::Untrusted => Reason::Tls,
            ErrorKind::Unauthorized => Reason::Unauthorized,
            ErrorKind::NotFound => Reason::NotFound,
            ErrorKind::Invalid => Reason::Usage,
            _ => Reason::Other,
        };
        Self::of(kind, Failure::new(reason, message))
    }

    pub(crate) fn of(kind: ErrorKind, failure: Failure) -> Self {
        Self { kind, failure: Box::new(failure) }
    }

    pub(crate) fn because(self, cause: impl fmt::Display) -> Self {
        Self { failure: Box::new(self.failure.because(cause)), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl std::error::Error for Error {}
