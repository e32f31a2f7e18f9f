//! What a long operation says while it runs: one stream, whatever shows it.

/// One thing that a flow has to say.
///
/// A terminal shows [`Event::Now`] as a line that changes in place; everywhere else each event is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What is being done or waited for right now and, where known, what holds it up.
    Now {
        /// The wait or the work, as a participle: `waiting for Deployment cluster-manager`.
        doing: String,
        /// What blocks it: `0 of 1 ready; pod x: image y cannot be pulled`.
        because: Option<String>,
    },
    /// Something that is done and stays done if the command ends here. After an interruption these are listed.
    Done(String),
    /// Something worth knowing that is neither progress nor a danger.
    Note(String),
    /// Something that may bite: the command goes on.
    Warning(String),
}

impl Event {
    /// [`Event::Now`] with nothing known to be in the way.
    pub fn now(doing: impl Into<String>) -> Self {
        Self::Now { doing: doing.into(), because: None }
    }

    /// [`Event::Now`] with what holds it up.
    pub fn blocked(doing: impl Into<String>, because: impl Into<String>) -> Self {
        Self::Now { doing: doing.into(), because: Some(because.into()) }
    }

    /// [`Event::Done`].
    pub fn done(what: impl Into<String>) -> Self {
        Self::Done(what.into())
    }

    /// [`Event::Note`].
    pub fn note(what: impl Into<String>) -> Self {
        Self::Note(what.into())
    }

    /// [`Event::Warning`].
    pub fn warning(what: impl Into<String>) -> Self {
        Self::Warning(what.into())
    }

    /// With the name in front of that of which it is told.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        let of = |text: String| format!("{name}: {text}");
        match self {
            Self::Now { doing, because } => Self::Now { doing: of(doing), because },
            Self::Done(what) => Self::Done(of(what)),
            Self::Note(what) => Self::Note(of(what)),
            Self::Warning(what) => Self::Warning(of(what)),
        }
    }
}

/// One of many that are worked on at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct One {
    /// Its place among them, from 0: two may have one name, as a hub and a cluster.
    pub place: usize,
    /// Its name.
    pub name: String,
}

/// Whoever listens to a flow: the terminal, a log, a test.
pub trait Narrator: Send + Sync {
    /// Takes one event. Must not block for long: flows call it between requests.
    fn tell(&self, event: Event);

    /// Takes one event of one of many. Whoever does not show them side by side hears it with the name in front.
    fn tell_of(&self, one: &One, event: Event) {
        self.tell(event.of(&one.name));
    }

    /// Takes the last event of one of many, with the word for its outcome.
    fn end_of(&self, one: &One, _outcome: &str, event: Event) {
        self.tell_of(one, event);
    }
}

/// A narrator that listens to nothing, for callers who only want the result.
pub struct Silent;

impl Narrator for Silent {
    fn tell(&self, _: Event) {}
}
