//! What is wrong with a fleet file, and where.

use std::fmt;

use crate::{Hint, nearest};

/// What is wrong with a fleet file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line, counted from 1; none where it is not known.
    pub line: Option<u64>,
    /// The field, as `clusters[1].mode`; empty where the whole file is meant.
    pub field: String,
    /// What is wrong there.
    pub why: String,
    /// What was probably meant, or what to write.
    pub hint: Option<Box<Hint>>,
}

impl Wrong {
    /// Of the whole file.
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { line: None, field: String::new(), why: why.into(), hint: None }
    }

    /// With what to write.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(Box::new(hint.into()));
        self
    }

    /// With which of these words was probably meant, or all of them.
    #[must_use]
    pub(super) fn meant(self, word: &str, known: &[&'static str]) -> Self {
        match nearest(word, known.iter().copied()) {
            Some(near) => self.hint(format!("did you mean {near}?")),
            None => self.hint(format!("there are: {}", known.join(", "))),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for Wrong {}

/// A part of the file.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: String,
    line: Option<u64>,
}

impl Place {
    pub(super) fn of(path: impl Into<String>, line: Option<u64>) -> Self {
        Self { path: path.into(), line }
    }

    /// That a field of it, or itself, is wrong.
    pub(super) fn wrong(&self, field: &str, why: impl fmt::Display) -> Wrong {
        let field = if field.is_empty() { self.path.clone() } else { format!("{}.{field}", self.path) };
        Wrong { line: self.line, field, why: why.to_string(), hint: None }
    }
}
