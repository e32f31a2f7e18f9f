//! Says of which cluster it is that something is told.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ocm_core::{Event, Narrator, One};

/// How long a cluster is silent that waits for the same all the time.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// One of many that are followed at once: what it does is told when it changes, for the others tell theirs in between.
pub(crate) struct OneOfMany {
    one: One,
    narrator: Arc<dyn Narrator>,
    last: Mutex<Option<(Event, Instant)>>,
}

impl OneOfMany {
    pub(crate) fn new(place: usize, name: &str, narrator: Arc<dyn Narrator>) -> Self {
        Self { one: One { place, name: name.to_owned() }, narrator, last: Mutex::default() }
    }

    /// Tells how it has ended.
    pub(crate) fn end(&self, outcome: &str, event: Event) {
        self.narrator.end_of(&self.one, outcome, event);
    }

    /// Whether this was told last, and not long ago.
    fn is_known(&self, event: &Event) -> bool {
        let Ok(mut last) = self.last.lock() else { return false };
        if last.as_ref().is_some_and(|(known, at)| known == event && at.elapsed() < HEARTBEAT) {
            return true;
        }
        *last = Some((event.clone(), Instant::now()));
        false
    }
}

impl Narrator for OneOfMany {
    fn tell(&self, event: Event) {
        let repeats = matches!(event, Event::Now { .. }) && self.is_known(&event);
        if !repeats {
            self.narrator.tell_of(&self.one, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heard::Heard;

    #[test]
    fn each_tells_what_it_waits_for_once_and_its_end_always() {
        let heard = Arc::new(Heard::default());
        let [one, two] = [(0, "c1"), (1, "c2")].map(|(place, name)| OneOfMany::new(place, name, heard.clone()));
        for narrator in [&one, &two, &one, &two] {
            narrator.tell(Event::now("waiting"));
        }
        one.tell(Event::blocked("waiting", "no pod"));
        one.tell(Event::note("n"));
        one.tell(Event::note("n"));
        one.end("Changed", Event::note("n"));
        let expected = [
            Event::now("c1: waiting"),
            Event::now("c2: waiting"),
            Event::blocked("c1: waiting", "no pod"),
            Event::note("c1: n"),
            Event::note("c1: n"),
            Event::note("c1: n"),
        ];
        assert_eq!(*heard.0.lock().unwrap(), expected);
    }
}
