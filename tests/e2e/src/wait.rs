//! Waiting for what has to follow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long something may take that follows at once, on a slow machine with other tests beside.
pub const SOON: Duration = Duration::from_secs(90);

/// Waits for what has to follow at once.
///
/// # Panics
///
/// When it does not.
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    until_within(SOON, what, String::new, holds);
}

/// Waits for what has to follow within some time; `said` tells what there is in its place.
///
/// # Panics
///
/// When it does not.
pub fn until_within(time: Duration, what: &str, said: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        if holds() {
            return;
        }
        assert!(begun.elapsed() < time, "not within {} seconds: {what} {}", time.as_secs(), said());
        pause_after(looked);
    }
}

/// Pauses after a look at what has to follow that began then: for several times as long as the look took, so that whoever
/// waits leaves the processors to what is waited for. What the API server does for a quick look is not seen here.
pub fn pause_after(looked: Instant) {
    thread::sleep((looked.elapsed() * 6).clamp(Duration::from_millis(100), Duration::from_secs(3)));
}

/// Tells a thread to end that goes on for so long, also when what goes on beside it fails.
pub struct Ends<'e>(pub &'e AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
