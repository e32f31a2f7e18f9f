//! What time it is.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The time of day, which is never earlier than it was when this began plus what has passed since: a clock that is set back
/// keeps nobody in.
pub(crate) struct Clock {
    began: Timestamp,
    since: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { began: Timestamp::now(), since: Instant::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        later(Timestamp::now(), self.began, self.since)
    }

    /// How long ago it was started.
    pub(crate) fn age(&self) -> std::time::Duration {
        self.since.elapsed()
    }
}

fn later(told: Timestamp, began: Timestamp, since: Instant) -> Timestamp {
    let passed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
    told.max(began.checked_add(passed).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_does_not_count() {
        let (began, since) = (Timestamp::now(), Instant::now());
        let hour = SignedDuration::from_hours(1);
        assert!(later(began - hour, began, since) >= began, "back");
        assert_eq!(later(began + hour, began, since), began + hour, "ahead");
        let long = since.checked_sub(std::time::Duration::from_secs(60)).unwrap_or(since);
        let passed = since.duration_since(long).as_secs();
        assert!(later(began - hour, began, long) >= began + SignedDuration::from_secs(passed.try_into().unwrap()));
    }
}
