//! What may come next on a command line, as Cobra writes it.

use std::fmt;

use crate::clean;

/// Cobra: put no blank behind the candidate.
const NO_SPACE: u8 = 2;
/// Cobra: offer no files where there are no candidates.
const NO_FILES: u8 = 4;

/// One candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) value: String,
    /// What it is; empty when its name says all.
    pub(super) about: String,
}

/// What may stand in the place of the last word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) candidates: Vec<Candidate>,
    /// Whether files may stand there.
    pub(super) files: bool,
}

/// One candidate a line, its description behind a tab, and Cobra's directive last.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Candidate { value, about } in &self.candidates {
            match about.is_empty() {
                true => writeln!(f, "{}", clean(value))?,
                false => writeln!(f, "{}\t{}", clean(value), clean(about))?,
            }
        }
        // Something has still to be typed behind a value such as jsonpath=.
        let goes_on = !self.candidates.is_empty() && self.candidates.iter().all(|one| one.value.ends_with('='));
        let blank = if goes_on { NO_SPACE } else { 0 };
        let files = if self.files { 0 } else { NO_FILES };
        writeln!(f, ":{}", blank | files)
    }
}
