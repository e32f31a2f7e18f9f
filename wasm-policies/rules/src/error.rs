//! Why a policy gave no decision.

use serde::{Deserialize, Serialize};

use crate::json::shorten;

/// Bytes of what an error quotes; logs and events hold it.
pub(crate) const ERROR_BYTES: usize = 512;
/// Bytes of the particulars of an error that is kept, such as why a policy is not in force.
const KEPT_BYTES: usize = 2 << 10;

/// Why there is no decision. An error never allows anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", content = "detail", rename_all = "kebab-case")]
pub enum PolicyError {
    /// It computed longer than its fuel lasts.
    #[error("the policy used up its fuel")]
    OutOfFuel,
    /// It took longer than it may.
    #[error("the policy took longer than it may")]
    TimedOut,
    /// It wanted more memory than it may have.
    #[error("the policy wanted more memory than it may have")]
    OutOfMemory,
    /// Its calls were nested too deeply.
    #[error("the policy used up its stack")]
    StackExhausted,
    /// It failed while it ran.
    #[error("the policy failed: {0}")]
    Trap(String),
    /// Its answer is no decision, or contradicts itself.
    #[error("the policy's answer is no decision: {0}")]
    Malformed(String),
    /// Its answer is larger than it may be.
    #[error("the policy's answer is too large: {0}")]
    TooLarge(String),
    /// It asked the host for something that it may not have.
    #[error("the policy asked for what it may not have: {0}")]
    HostCall(String),
    /// It is wanted, and is not in force yet: it is being compiled.
    #[error("the policy is being loaded: try again in some seconds")]
    Loading,
    /// It is missing or cannot be loaded.
    #[error("the policy cannot be loaded: {0}")]
    Load(String),
    /// It reads what our requests do not have, as Rego does that is given reviews, and does not declare its kind.
    #[error(
        "the policy cannot be loaded: it reads input.review, as templates of Gatekeeper do, or input.request, which only \
         an AdmissionReview has, and does not declare its kind: gatekeeper, or opa if it reads the requests of this contract"
    )]
    UndeclaredKind,
    /// It stops to judge operations that the version before it judges: their words.
    #[error("the policy cannot be loaded: it would no longer be asked about {0}, as the version before it is")]
    StopsToJudge(String),
    /// It does not take its settings.
    #[error("the policy cannot be loaded: it refuses its settings: {0}")]
    Settings(String),
    /// It was not evaluated, or not to its end: nobody waits for the answer any more.
    #[error("the deadline of the request has passed")]
    DeadlineExceeded,
    /// It was not evaluated: too much is being evaluated already.
    #[error("too many requests are being evaluated: {0}")]
    Overloaded(String),
    /// It wants to change what it may not change.
    #[error("the policy may not make this change: {0}")]
    EditRefused(String),
    /// Two policies want to change the same in different ways.
    #[error("policies disagree about a change: {0}")]
    EditConflict(String),
    /// What it has to know of the hub is missing, or has another form than it asked for.
    #[error("the policy cannot be evaluated: {0}")]
    Evidence(String),
    /// It was not evaluated: whether it is asked about such requests cannot be told.
    #[error("whether the policy is evaluated cannot be told: {0}")]
    Condition(String),
    /// It wants something to follow that this hub cannot do.
    #[error("the hub does not know the obligation {0}")]
    UnknownObligation(String),
    /// It ended with an exit code that means a failure.
    #[error("the policy ended with exit code {0}")]
    Exit(i32),
}

impl PolicyError {
    /// The same with particulars that are not too long to be kept, and to be said with every request: a module chooses the
    /// words that they quote.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if let Self::Trap(text)
        | Self::Malformed(text)
        | Self::TooLarge(text)
        | Self::HostCall(text)
        | Self::Load(text)
        | Self::StopsToJudge(text)
        | Self::Settings(text)
        | Self::Overloaded(text)
        | Self::EditRefused(text)
        | Self::EditConflict(text)
        | Self::Evidence(text)
        | Self::Condition(text)
        | Self::UnknownObligation(text) = &mut self
            && text.len() > KEPT_BYTES
        {
            *text = shorten(text, KEPT_BYTES);
        }
        self
    }

    /// The sentence without its particulars, which may quote settings or objects: for whoever made the request.
    pub const fn in_short(&self) -> &'static str {
        match self {
            Self::OutOfFuel => "the policy used up its fuel",
            Self::TimedOut => "the policy took longer than it may",
            Self::OutOfMemory => "the policy wanted more memory than it may have",
            Self::StackExhausted => "the policy used up its stack",
            Self::Trap(_) | Self::Exit(_) => "the policy failed",
            Self::Malformed(_) | Self::TooLarge(_) => "the policy's answer cannot be used",
            Self::HostCall(_) => "the policy asked for what it may not have",
            Self::Loading => "the policy is being loaded: try again in some seconds",
            Self::Load(_) | Self::UndeclaredKind | Self::StopsToJudge(_) | Self::Settings(_) => {
                "the policy cannot be loaded"
            }
            Self::DeadlineExceeded => "the deadline of the request has passed",
            Self::Overloaded(_) => "too many requests are being evaluated",
            Self::EditRefused(_) => "the policy may not make a change that it wants",
            Self::EditConflict(_) => "policies disagree about a change",
            Self::Evidence(_) => "what the policy has to know of the hub is not known",
            Self::Condition(_) => "whether the policy is evaluated cannot be told",
            Self::UnknownObligation(_) => "the policy wants something to follow that this hub cannot do",
        }
    }

    /// A stable word for the kind of error; metrics and records use it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OutOfFuel => "out-of-fuel",
            Self::TimedOut => "timed-out",
            Self::OutOfMemory => "out-of-memory",
            Self::StackExhausted => "stack-exhausted",
            Self::Trap(_) => "trap",
            Self::Malformed(_) => "malformed",
            Self::TooLarge(_) => "too-large",
            Self::HostCall(_) => "host-call",
            Self::Loading => "loading",
            Self::Load(_) => "load",
            Self::UndeclaredKind => "undeclared-kind",
            Self::StopsToJudge(_) => "stops-to-judge",
            Self::Settings(_) => "settings",
            Self::DeadlineExceeded => "deadline-exceeded",
            Self::Overloaded(_) => "overloaded",
            Self::EditRefused(_) => "edit-refused",
            Self::EditConflict(_) => "edit-conflict",
            Self::Evidence(_) => "evidence",
            Self::Condition(_) => "condition",
            Self::UnknownObligation(_) => "unknown-obligation",
            Self::Exit(_) => "exit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_quotes_is_cut_between_characters() {
        let short = PolicyError::Load("a\nb".to_owned());
        assert_eq!(short.clone().bounded(), short);
        let long = "ä".repeat(KEPT_BYTES);
        let texts: [fn(String) -> PolicyError; 13] = [
            PolicyError::Trap,
            PolicyError::Malformed,
            PolicyError::TooLarge,
            PolicyError::HostCall,
            PolicyError::Load,
            PolicyError::StopsToJudge,
            PolicyError::Settings,
            PolicyError::Overloaded,
            PolicyError::EditRefused,
            PolicyError::EditConflict,
            PolicyError::Evidence,
            PolicyError::Condition,
            PolicyError::UnknownObligation,
        ];
        for of in texts {
            let bounded = of(long.clone()).bounded();
            assert_eq!(bounded, of("ä".repeat((KEPT_BYTES - 3) / 2) + "…"));
        }
    }

    #[test]
    fn codes_of_errors_are_their_words_in_json() {
        let text = || "x".to_owned();
        for error in [
            PolicyError::OutOfFuel,
            PolicyError::TimedOut,
            PolicyError::OutOfMemory,
            PolicyError::StackExhausted,
            PolicyError::Trap(text()),
            PolicyError::Malformed(text()),
            PolicyError::TooLarge(text()),
            PolicyError::HostCall(text()),
            PolicyError::Loading,
            PolicyError::Load(text()),
            PolicyError::UndeclaredKind,
            PolicyError::StopsToJudge(text()),
            PolicyError::Settings(text()),
            PolicyError::DeadlineExceeded,
            PolicyError::Overloaded(text()),
            PolicyError::EditRefused(text()),
            PolicyError::EditConflict(text()),
            PolicyError::Evidence(text()),
            PolicyError::Condition(text()),
            PolicyError::UnknownObligation(text()),
            PolicyError::Exit(3),
        ] {
            let json = serde_json::to_value(&error).unwrap();
            assert_eq!(json["code"], error.code());
            assert_eq!(serde_json::from_value::<PolicyError>(json).unwrap(), error);
        }
    }
}
