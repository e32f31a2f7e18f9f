//! Whose registration is looked at when: each name once at a time.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

/// The first pause after a failure, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(30)];

/// What becomes of a name that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It rests until something changes.
    Rest,
    /// It rests, and is looked at again after this time.
    After(Duration),
    /// It waits for somebody, and is looked at again after this time, or when policies or what they know have changed.
    Waits(Duration),
    /// Its acceptance has a limit: it is looked at again after this time, or when policies or what they know have changed.
    Limited(Duration),
    /// Something failed, and is tried again.
    Again,
}

impl Next {
    /// The same, but it is looked at again after this time at the latest.
    pub(crate) fn within(self, pause: Duration) -> Self {
        match self {
            Self::Rest => Self::After(pause),
            Self::After(again) => Self::After(again.min(pause)),
            Self::Waits(again) => Self::Waits(again.min(pause)),
            Self::Limited(again) => Self::Limited(again.min(pause)),
            Self::Again => Self::Again,
        }
    }
}

/// The names.
#[derive(Default)]
pub(crate) struct Queue {
    due: BTreeSet<(Instant, String)>,
    when: HashMap<String, Instant>,
    running: HashSet<String>,
    /// Those that changed while they were looked at.
    changed: HashSet<String>,
    waiting: HashSet<String>,
    limited: HashSet<String>,
    failures: HashMap<String, u32>,
}

impl Queue {
    /// Looks at a name at this time, if not before.
    pub(crate) fn push(&mut self, name: &str, at: Instant) {
        match self.when.get(name) {
            Some(before) if *before <= at => return,
            Some(before) => drop(self.due.remove(&(*before, name.to_owned()))),
            None => {}
        }
        self.when.insert(name.to_owned(), at);
        self.due.insert((at, name.to_owned()));
    }

    /// Something about a name has changed.
    pub(crate) fn touch(&mut self, name: &str, now: Instant) {
        self.touch_later(name, now);
    }

    /// Something about a name may have changed: it is looked at at this time, if not before.
    pub(crate) fn touch_later(&mut self, name: &str, at: Instant) {
        match self.running.contains(name) {
            true => drop(self.changed.insert(name.to_owned())),
            false => self.push(name, at),
        }
    }

    /// Something has changed that bears on all that wait, and on all whose acceptance has a limit.
    pub(crate) fn touch_asking(&mut self, now: Instant) {
        for name in self.waiting.iter().chain(&self.limited).cloned().collect::<Vec<_>>() {
            self.touch(&name, now);
        }
    }

    /// How many policies are asked about as soon as anything changes.
    pub(crate) fn asking(&self) -> usize {
        self.waiting.len() + self.limited.len()
    }

    /// How many wait for somebody.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes one that is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<String> {
        let at = self.next().filter(|at| *at <= now)?;
        let (_, name) = self.due.pop_first()?;
        debug_assert_eq!(self.when.get(&name), Some(&at));
        self.when.remove(&name);
        self.running.insert(name.clone());
        Some(name)
    }

    /// One was looked at.
    pub(crate) fn done(&mut self, name: &str, next: Next, now: Instant) {
        self.running.remove(name);
        let again = self.changed.remove(name);
        if next == Next::Again {
            let failures = self.failures.entry(name.to_owned()).or_default();
            *failures += 1;
            let pause = PAUSES[0].saturating_mul(1 << (*failures - 1).min(16)).min(PAUSES[1]);
            // What failed because it changed is not tried faster than what failed.
            return self.push(name, now + pause);
        }
        self.failures.remove(name);
        for (all, is_in) in
            [(&mut self.waiting, matches!(next, Next::Waits(_))), (&mut self.limited, matches!(next, Next::Limited(_)))]
        {
            match is_in {
                true => drop(all.insert(name.to_owned())),
                false => drop(all.remove(name)),
            }
        }
        if again {
            return self.push(name, now);
        }
        if let Next::Waits(pause) | Next::Limited(pause) | Next::After(pause) = next {
            self.push(name, now + pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_at_once_at_a_time_and_again_when_it_changed() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.push("a", now);
        queue.push("a", now + PAUSES[1]);
        assert_eq!(queue.take(now).as_deref(), Some("a"));
        queue.touch("a", now);
        assert_eq!(queue.take(now), None, "it is being looked at");
        queue.done("a", Next::Rest, now);
        assert_eq!(queue.take(now).as_deref(), Some("a"), "it changed meanwhile");
        queue.done("a", Next::Rest, now);
        assert_eq!((queue.take(now), queue.next()), (None, None));
    }

    #[test]
    fn those_that_wait_are_looked_at_when_policies_change_and_others_are_not() {
        let mut queue = Queue::default();
        let now = Instant::now();
        let limited = Next::Limited(PAUSES[1] * 2);
        for (name, next) in [("rests", Next::Rest), ("waits", Next::Waits(PAUSES[1])), ("limited", limited)] {
            queue.push(name, now);
            assert!(queue.take(now).is_some());
            queue.done(name, next, now);
        }
        assert_eq!((queue.waiting(), queue.asking(), queue.next()), (1, 2, Some(now + PAUSES[1])));
        queue.touch_asking(now);
        assert_eq!([queue.take(now), queue.take(now)].map(Option::unwrap_or_default), ["limited", "waits"]);
        assert_eq!(queue.next(), None, "sooner takes the place of later");
    }

    #[test]
    fn whoever_is_looked_at_within_a_time_goes_on_resting_or_waiting() {
        let [short, long] = PAUSES;
        for (next, expected) in [
            (Next::Rest.within(short), Next::After(short)),
            (Next::After(long).within(short), Next::After(short)),
            (Next::After(short).within(long), Next::After(short)),
            (Next::Waits(long).within(short), Next::Waits(short)),
            (Next::Limited(short).within(long), Next::Limited(short)),
            (Next::Again.within(short), Next::Again),
        ] {
            assert_eq!(next, expected);
        }
    }

    #[test]
    fn what_may_have_changed_is_looked_at_later_and_never_twice_at_once() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.touch_later("a", now + PAUSES[0]);
        assert_eq!((queue.take(now), queue.take(now + PAUSES[0]).as_deref()), (None, Some("a")));
        queue.touch_later("a", now + PAUSES[0]);
        assert_eq!(queue.take(now + PAUSES[1]), None, "it is being looked at");
        queue.done("a", Next::Rest, now);
        assert_eq!(queue.take(now).as_deref(), Some("a"));
    }

    #[test]
    fn what_fails_is_tried_after_pauses_that_grow() {
        let mut queue = Queue::default();
        let now = Instant::now();
        let mut pauses = Vec::new();
        queue.push("a", now);
        for _ in 0..12 {
            let due = queue.next().unwrap();
            assert!(queue.take(due).is_some());
            queue.touch("a", due);
            queue.done("a", Next::Again, due);
            pauses.push(queue.next().unwrap() - due);
        }
        assert_eq!((pauses[0], pauses[1], pauses[11]), (PAUSES[0], PAUSES[0] * 2, PAUSES[1]));
    }
}
