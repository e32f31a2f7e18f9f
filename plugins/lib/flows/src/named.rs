//! Says of which cluster it is that something is told.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ocm_core::{Event, Narrator};

/// How long a cluster is silent that waits for the same all the time.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// What is told, with the name in front.
pub(crate) fn of(name: &str, event: Event) -> Event {
    let of = |text: String| format!("{name}: {text}");
    match event {
        Event::Now { doing, because } => Event::Now { doing: of(doing), because },
        Event::Done(what) => Event::Done(of(what)),
        Event::Note(what) => Event::Note(of(what)),
        Event::Warning(what) => Event::Warning(of(what)),
    }
}

/// One of many that are followed at once: what it does is told when it changes, for the others tell theirs in between.
pub(crate) struct OneOfMany {
    name: String,
    narrator: Arc<dyn Narrator>,
    last: Mutex<Option<(Event, Instant)>>,
}

impl OneOfMany {
    pub(crate) fn new(name: &str, narrator: Arc<dyn Narrator>) -> Self {
        Self { name: name.to_owned(), narrator, last: Mutex::default() }
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
            self.narrator.tell(of(&self.name, event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heard::Heard;

    #[test]
    fn each_tells_what_it_waits_for_once() {
        let heard = Arc::new(Heard::default());
        let [one, two] = ["c1", "c2"].map(|name| OneOfMany::new(name, heard.clone()));
        for narrator in [&one, &two, &one, &two] {
            narrator.tell(Event::now("waiting"));
        }
        one.tell(Event::blocked("waiting", "no pod"));
        one.tell(Event::note("n"));
        one.tell(Event::note("n"));
        let expected = [
            Event::now("c1: waiting"),
            Event::now("c2: waiting"),
            Event::blocked("c1: waiting", "no pod"),
            Event::note("c1: n"),
            Event::note("c1: n"),
        ];
        assert_eq!(*heard.0.lock().unwrap(), expected);
    }
}
