//! A narrator of tests: it keeps what it hears.

use std::sync::Mutex;

use ocm_core::{Event, Narrator};

#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<Event>>);

impl Narrator for Heard {
    fn tell(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}
