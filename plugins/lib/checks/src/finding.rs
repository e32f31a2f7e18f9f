//! What a check comes to, and what it has found.

use std::fmt;
use std::str::FromStr;

use ocm_core::redact::redact;
use serde::{Serialize, Serializer};

use crate::snapshot::{Side, Trouble};
use crate::text;

/// The id of a check: `OCM` and four digits. An id is never used again for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u16);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("OCM{:04}", self.0))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a text is no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not the id of a check: that is OCM and four digits")]
pub struct NotAnId {
    text: String,
}

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let wrong = || NotAnId { text: text.to_owned() };
        let upper = text.to_ascii_uppercase();
        let digits = upper.strip_prefix("OCM").filter(|digits| digits.len() == 4).ok_or_else(wrong)?;
        digits.parse().map(Self).map_err(|_| wrong())
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works, and will not for ever, or not as it should.
    Warning,
    /// It does not work.
    Error,
}

/// What a check comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All is well.
    Pass,
    /// Something is not: at least one finding.
    Found(Vec<Finding>),
    /// It does not apply, and why.
    Skip(String),
    /// It could not be checked.
    Unknown(Trouble),
}

impl Outcome {
    /// The findings; well if there are none.
    pub fn of(findings: Vec<Finding>) -> Self {
        if findings.is_empty() { Self::Pass } else { Self::Found(findings) }
    }

    /// A reason to leave it out.
    pub fn skip(why: impl Into<String>) -> Self {
        Self::Skip(why.into())
    }
}

impl From<Option<Finding>> for Outcome {
    fn from(finding: Option<Finding>) -> Self {
        Self::of(finding.into_iter().collect())
    }
}

/// An object that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Where it is.
    pub side: Side,
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Hub => "hub",
            Side::Managed => "managed cluster",
        };
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{} ({side})", self.kind, self.name),
            None => write!(f, "{} {} ({side})", self.kind, self.name),
        }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Next {
    /// A command to paste, against the cluster of this side: whoever shows it names the context.
    Command {
        /// Which cluster it is for.
        side: Side,
        /// The line, from `kubectl` on and without a context.
        line: String,
    },
    /// In words.
    Text(String),
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The check that has found it.
    pub id: Id,
    /// How much it matters.
    pub severity: Severity,
    /// The cluster that it is about; none: the hub as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// One sentence without a final stop, that may stand after "stopped at step 5 of 9:".
    pub summary: String,
    /// The objects that show it.
    pub objects: Vec<ObjectRef>,
    /// What was seen, a line each.
    pub evidence: Vec<String>,
    /// Why it is so, as far as that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// What to do next.
    pub next: Vec<Next>,
    /// What follows from it and needs nothing done of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Self>,
    /// Whether it is on its way: what needs it waits for it, and is nothing of its own as long as nobody has joined.
    #[serde(skip)]
    pub is_coming: bool,
    /// The checks of which it explains nothing, though others that its check finds do.
    #[serde(skip)]
    pub unrelated: Vec<Id>,
    /// Whether it explains nothing at all, though others that its check finds do.
    #[serde(skip)]
    pub is_apart: bool,
}

impl Finding {
    /// A finding with its sentence. Words of clusters go through [`redact`] wherever they enter. Check and cluster are filled in by whoever runs the check.
    pub fn new(severity: Severity, summary: impl Into<String>) -> Self {
        Self {
            id: Id(0),
            severity,
            cluster: None,
            summary: redact(&summary.into()),
            objects: Vec::new(),
            evidence: Vec::new(),
            cause: String::new(),
            next: Vec::new(),
            consequences: Vec::new(),
            is_coming: false,
            unrelated: Vec::new(),
            is_apart: false,
        }
    }

    /// Something that does not work.
    pub fn error(summary: impl Into<String>) -> Self {
        Self::new(Severity::Error, summary)
    }

    /// Something that works, but not as it should.
    pub fn warning(summary: impl Into<String>) -> Self {
        Self::new(Severity::Warning, summary)
    }

    /// Its id and its cluster, as a suppression names it.
    pub fn name(&self) -> String {
        match &self.cluster {
            Some(cluster) => format!("{}:{cluster}", self.id),
            None => self.id.to_string(),
        }
    }

    /// Says that it explains nothing.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.is_apart = true;
        self
    }

    /// Adds an object that shows it.
    #[must_use]
    pub fn on(mut self, side: Side, kind: &'static str, namespace: Option<&str>, name: &str) -> Self {
        self.objects.push(ObjectRef { side, kind, namespace: namespace.map(str::to_owned), name: name.to_owned() });
        self
    }

    /// Adds what was seen.
    #[must_use]
    pub fn seen(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(redact(&line.into()));
        self
    }

    /// Says why it is so.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = redact(&cause.into());
        self
    }

    /// Adds a command for one of the two clusters: words with a blank between, and `{}` for each of the values. Those come
    /// from clusters and files, where names may hold whatever a shell acts upon: every word is quoted.
    #[must_use]
    pub fn run(mut self, side: Side, words: &'static str, values: &[&str]) -> Self {
        self.next.push(Next::Command { side, line: text::command(words, values) });
        self
    }

    /// Adds what to do, in words.
    #[must_use]
    pub fn advise(mut self, text: impl Into<String>) -> Self {
        self.next.push(Next::Text(redact(&text.into())));
        self
    }
}
