//! What time it is.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// How far this machine's clock may be from the hub's.
const APART: SignedDuration = SignedDuration::from_mins(5);

/// The time of day.
pub(crate) struct Clock {
    began: Timestamp,
    hub: Timestamp,
    since: Instant,
}

impl Clock {
    /// Begins when the hub says that it is this time.
    pub(crate) fn start(hub: Timestamp) -> Self {
        Self { began: Timestamp::now(), hub, since: Instant::now() }
    }

    /// The time, which is never earlier than it was when this began plus what has passed since: a clock that is set back keeps
    /// nobody in.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now().max(after(self.began, self.since))
    }

    /// The time that it is at the earliest, by the hub's clock as well: what is kept until a time is not forgotten because this
    /// machine's clock is ahead.
    pub(crate) fn earliest(&self) -> Timestamp {
        self.earlier(Timestamp::now())
    }

    fn earlier(&self, told: Timestamp) -> Timestamp {
        told.min(after(self.hub, self.since))
    }

    /// Why nobody can go by this machine's clock; none: it tells about the same time as the hub's.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.differs(Timestamp::now())
    }

    fn differs(&self, told: Timestamp) -> Option<String> {
        let hub = after(self.hub, self.since);
        let by = told.duration_since(hub);
        let word = if by.is_negative() { "behind" } else { "ahead of" };
        (by.abs() > APART).then(|| {
            let seconds = by.abs().as_secs();
            format!(
                "the clock of this machine is {seconds} seconds {word} the hub's: nothing is decided until it is right"
            )
        })
    }

    /// How long ago it was started.
    pub(crate) fn age(&self) -> std::time::Duration {
        self.since.elapsed()
    }
}

/// This time plus what has passed since.
fn after(began: Timestamp, since: Instant) -> Timestamp {
    let passed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
    began.checked_add(passed).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use ocm_api::registration::RegistrationKey;

    use super::*;
    use crate::status;

    #[test]
    fn a_clock_that_is_set_back_does_not_count() {
        let hour = SignedDuration::from_hours(1);
        let began = Timestamp::now();
        let ahead = Clock { began: began + hour, hub: began, since: Instant::now() };
        assert!(ahead.now() >= began + hour, "back");
        let behind = Clock { began: began - hour, ..ahead };
        assert!(behind.now() >= began && behind.now() < began + hour, "ahead");
        let since = Instant::now();
        let long = since.checked_sub(std::time::Duration::from_secs(60)).unwrap_or(since);
        let passed = since.duration_since(long).as_secs();
        assert!(after(began, long) >= began + SignedDuration::from_secs(passed.try_into().unwrap()));
    }

    #[test]
    fn what_is_kept_for_months_is_kept_by_the_clock_of_the_hub() {
        let (hub, year) = (Timestamp::now(), SignedDuration::from_hours(365 * 24));
        let clock = Clock { began: hub + year, hub, since: Instant::now() };
        let soon = hub + SignedDuration::from_mins(1);
        assert!(clock.earlier(hub + year) < soon && clock.earlier(hub - year) == hub - year);
        // Nothing is deleted because its keys have ended, and no key is dropped.
        let until = hub + SignedDuration::from_hours(30 * 24);
        let key = RegistrationKey { until: until.to_string(), spki_sha256: "a".to_owned() };
        let keys = [key.clone()];
        let earliest = clock.earlier(hub + year);
        assert_eq!(status::merged(&keys, Vec::new(), earliest), keys);
        assert_eq!(status::last_end(&keys, earliest), Some(until));
        assert_eq!(status::last_end(&keys, hub + year), None, "it would be by this machine's clock");
    }

    #[test]
    fn a_clock_that_is_far_from_the_hubs_is_wrong_in_either_direction() {
        let hub = Timestamp::now();
        let clock = Clock { began: hub, hub, since: Instant::now() };
        for minutes in [-4, 0, 4] {
            assert_eq!(clock.differs(hub + SignedDuration::from_mins(minutes)), None);
        }
        let told = |minutes| clock.differs(hub + SignedDuration::from_mins(minutes)).unwrap();
        assert!(told(7).contains("seconds ahead of the hub's") && told(-6).contains("seconds behind the hub's"));
    }
}
