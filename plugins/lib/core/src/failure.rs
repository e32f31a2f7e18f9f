//! How a command ends: exit codes and the one error value that people see.

use std::fmt;

use ocm_api::member::Member;
use serde::Serialize;

use crate::Hint;

/// Exit codes of every command of the suite. Documented in `docs/reference/exit-codes.md`; a test keeps both equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Everything that was asked for is so.
    Ok = 0,
    /// The operation failed.
    Failed = 1,
    /// The command line cannot be acted upon.
    Usage = 2,
    /// The command worked and found something that was asked to be reported: a refused request, a difference.
    Findings = 3,
    /// The command could not find out.
    Inconclusive = 4,
    /// A wait ended before what it waited for came true.
    TimedOut = 124,
    /// Ctrl-C, SIGTERM, SIGHUP or SIGQUIT.
    Interrupted = 130,
}

impl Exit {
    /// Every code, for documentation and tests.
    pub const ALL: [Self; 7] =
        [Self::Ok, Self::Failed, Self::Usage, Self::Findings, Self::Inconclusive, Self::TimedOut, Self::Interrupted];

    /// The number that the process returns.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The word that machine output carries as `verdict`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Findings => "findings",
            Self::Inconclusive => "inconclusive",
            Self::TimedOut => "timed-out",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> Self {
        exit.code()
    }
}

/// What went wrong, as a word that programs can match and flows can branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Member)]
pub enum Reason {
    /// A flag, an argument or a file of the user's cannot be used.
    Usage,
    /// The kubeconfig is missing, malformed, or lacks the named context, cluster or user.
    Kubeconfig,
    /// No connection to the server: DNS, TCP, a proxy, or a request that took too long.
    Unreachable,
    /// A connection, but no trust: the certificate does not verify.
    Tls,
    /// The server does not know who we are: no, wrong or expired credentials (HTTP 401).
    Unauthorized,
    /// The server knows who we are and says no (HTTP 403 by RBAC).
    Forbidden,
    /// The named object does not exist.
    NotFound,
    /// The server does not serve this kind: the CRD is missing.
    KindNotServed,
    /// The dump that is read in a cluster's place does not hold it.
    NotInDump,
    /// The object changed in between, or another manager owns the field (HTTP 409).
    Conflict,
    /// The server's validation refused the object (HTTP 400, 422).
    Invalid,
    /// An admission webhook or policy refused the object.
    Admission,
    /// The server is there but cannot serve now: HTTP 429 and 5xx, an admission webhook that must answer and did not, a namespace
    /// that is being deleted.
    Busy,
    /// A wait ended before what it waited for came true.
    TimedOut,
    /// Ctrl-C, SIGTERM, SIGHUP or SIGQUIT.
    Interrupted,
    /// A rule of ours refused: nothing was changed.
    Refused,
    /// None of the above.
    Other,
}

impl Reason {
    /// The exit code that goes with the reason.
    pub const fn exit(self) -> Exit {
        match self {
            Self::Usage | Self::Kubeconfig => Exit::Usage,
            Self::TimedOut => Exit::TimedOut,
            Self::Interrupted => Exit::Interrupted,
            Self::Refused => Exit::Findings,
            _ => Exit::Failed,
        }
    }

    /// Whether the same request may succeed a moment later without anybody doing anything.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Unreachable | Self::Busy | Self::Conflict)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An error as people see it: one sentence, what lies behind it, and what to type next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of trouble.
    pub reason: Reason,
    /// One sentence without a final stop: what was wrong, and where.
    pub message: String,
    /// What lies behind it, outermost first.
    pub causes: Vec<String>,
    /// What to do next; a command ready to be typed where there is one.
    pub hints: Vec<Hint>,
    /// The object that the last cause is about, where whoever waited for it knows it.
    pub about: Option<Box<Named>>,
}

/// An object, as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its kind.
    pub kind: String,
    /// Its namespace; none: it has none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Failure {
    /// A failure with a reason and its sentence.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), causes: Vec::new(), hints: Vec::new(), about: None }
    }

    /// A command line that cannot be acted upon.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Reason::Usage, message)
    }

    /// A rule of ours refused; nothing was changed.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Reason::Refused, message)
    }

    /// A failure of no particular kind.
    pub fn other(message: impl Into<String>) -> Self {
        Self::new(Reason::Other, message)
    }

    /// Adds what lies behind it.
    #[must_use]
    pub fn because(mut self, cause: impl fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// Says which object its last cause is about.
    #[must_use]
    pub fn about(self, about: Option<Named>) -> Self {
        Self { about: about.map(Box::new), ..self }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Puts a wider sentence in front; the present one becomes the first cause.
    #[must_use]
    pub fn context(mut self, message: impl Into<String>) -> Self {
        self.causes.insert(0, std::mem::replace(&mut self.message, message.into()));
        self
    }

    /// What failures of several things come to, each with the name of what failed; none where there are none. A single failure
    /// of a single thing is told as it is; else `sentence` says how many there are.
    pub fn of_several(
        total: usize,
        mut failed: Vec<(String, Self)>,
        sentence: impl FnOnce(usize) -> String,
    ) -> Option<Self> {
        let (_, first) = failed.first()?;
        if total == 1 {
            return failed.pop().map(|(_, only)| only);
        }
        let whole = Self::new(first.reason, sentence(failed.len()));
        let hints = first.hints.clone();
        let whole = failed.iter().fold(whole, |whole, (name, failure)| whole.because(format!("{name}: {failure}")));
        Some(hints.into_iter().fold(whole, Self::hint))
    }

    /// The exit code of a command that ends with this failure.
    pub const fn exit(&self) -> Exit {
        self.reason.exit()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_keeps_the_inner_sentence_as_the_first_cause() {
        let failure = Failure::new(Reason::Forbidden, "inner").because("root").context("outer");
        assert_eq!(failure.to_string(), "outer: inner: root");
        assert_eq!(failure.exit(), Exit::Failed);
    }

    #[test]
    fn several_failures_are_one_that_names_each() {
        let one = || ("a".to_owned(), Failure::refused("no").hint("try"));
        let told = |failed: usize| format!("{failed} of 2 failed");
        assert_eq!(Failure::of_several(2, Vec::new(), told), None);
        assert_eq!(Failure::of_several(1, vec![one()], told).unwrap().message, "no");
        let both = Failure::of_several(2, vec![one()], told).unwrap();
        assert_eq!(
            (both.to_string().as_str(), both.reason, both.hints.len()),
            ("1 of 2 failed: a: no", Reason::Refused, 1)
        );
    }

    #[test]
    fn exit_codes_are_distinct() {
        let mut codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes, [0, 1, 2, 3, 4, 124, 130]);
    }
}
