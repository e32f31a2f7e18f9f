//! A fault, and whom it is about.

use std::time::Duration;

use super::change::Change;
use super::pair::Pair;
use crate::trouble_support::TIME;

/// Whom a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The pair.
    Pair,
    /// Another name under which an agent of the managed cluster registers.
    Other(&'static str),
    /// The pair, for which the managed cluster is named as the hub, too.
    WrongHub,
    /// The pair, and nothing of what is known of the release under test is suppressed.
    Release,
    /// A cluster of which only the hub is asked.
    Name(&'static str),
    /// All clusters of the hub.
    Fleet,
    /// A cluster whose agent has to register, as if it had never come so far.
    Registering,
}

/// A fault.
pub struct Fault {
    /// What it is.
    pub words: &'static str,
    /// The one cause that has to be found.
    pub(super) id: &'static str,
    /// Whom it is about.
    pub(super) of: Of,
    /// Whether it is among the likely ones.
    pub is_likely: bool,
    /// How long it may take until it shows.
    pub(super) patience: Duration,
    /// What makes it.
    pub(super) changes: Vec<Change>,
}

/// A fault that was made.
pub(super) struct Made<'a>(Vec<Box<dyn FnOnce() + 'a>>);

impl Fault {
    /// Whether it is about a name of its own, and disturbs nobody.
    pub(super) fn is_apart(&self) -> bool {
        matches!(self.of, Of::Name(_))
            && !self.changes.iter().any(|change| matches!(change, Change::Stop(..) | Change::Full(_)))
    }

    /// Whether it disturbs nobody but who asks about all clusters.
    pub(super) fn is_of_fleet(&self) -> bool {
        self.of == Of::Fleet
    }

    /// Makes it.
    pub(super) fn make<'a>(&'a self, pair: &Pair<'a>) -> Made<'a> {
        Made(self.changes.iter().map(|change| change.make(pair)).collect())
    }
}

impl Made<'_> {
    /// Undoes it.
    pub(super) fn undo(self) {
        self.0.into_iter().rev().for_each(|undo| undo());
    }
}

/// A fault of the pair.
pub(super) fn fault(words: &'static str, id: &'static str, changes: Vec<Change>) -> Fault {
    Fault { words, id, of: Of::Pair, is_likely: false, patience: TIME, changes }
}

pub(super) fn likely(fault: Fault) -> Fault {
    Fault { is_likely: true, ..fault }
}
