//! How busy the processors of this machine are.

use std::fs;
use std::time::{Duration, Instant};

/// How long is looked on before more work begins: a cluster that has just begun to start is seen by then.
const LOOKED_ON: Duration = Duration::from_secs(10);
/// The share of the processors' time that must have been left for more work to begin. What then comes on top of it makes
/// nobody late who waits for half a minute.
const LEFT: f64 = 0.25;

/// What the processors did since some time, in the unit of `/proc/stat` (proc_stat(5)).
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    /// Nothing, or what steps back for everybody else.
    idle: u64,
    all: u64,
}

impl Time {
    /// Of a first line like `cpu  user nice system idle iowait irq softirq steal guest guest_nice`; guests are part of `user`.
    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let numbers: Vec<u64> = line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { idle: numbers.get(1)? + numbers.get(3)? + numbers.get(4)?, all: numbers.iter().sum() })
    }

    fn now() -> Option<Self> {
        Self::read(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The share of the time since `earlier` that was left.
    #[expect(clippy::cast_precision_loss, reason = "a share needs few digits")]
    fn left_since(self, earlier: Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        if all == 0 { 0.0 } else { self.idle.saturating_sub(earlier.idle) as f64 / all as f64 }
    }
}

/// Tells when more work may begin beside what runs, so that the processors have work and nobody who waits is late.
#[derive(Debug)]
pub(crate) struct Spare {
    since: Instant,
    then: Option<Time>,
}

impl Spare {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), then: Time::now() }
    }

    /// Whether the processors had time left, of which the caller now takes some: until it has been looked on again, nobody else
    /// is told so.
    pub(crate) fn take(&mut self) -> bool {
        if self.since.elapsed() < LOOKED_ON {
            return false;
        }
        let now = Time::now();
        // A system that does not tell is taken for one that has time: its tests run as many at once as there are lanes.
        let left = now.zip(self.then).is_none_or(|(now, then)| now.left_since(then) >= LEFT);
        (self.since, self.then) = (Instant::now(), now);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_was_left_is_told() {
        let earlier = Time::read("cpu  96 4 50 296 10 0 0 44 5 0\ncpu0 1 2 3 4\n").expect("it is a line");
        assert_eq!((earlier.idle, earlier.all), (310, 500));
        let later = Time::read("cpu  156 7 70 311 12 0 0 44 9 0\n").expect("it is a line");
        assert!((later.left_since(earlier) - 0.2).abs() < 1e-9);
        assert!(earlier.left_since(earlier) < LEFT, "no time has passed");
        assert!(Time::read("intr 1 2 3").is_none() && Time::read("cpu  1 2").is_none());
    }

    #[test]
    fn one_is_told_at_a_time() {
        let long_ago = Instant::now().checked_sub(LOOKED_ON * 2).expect("the machine runs for longer");
        let mut spare = Spare { since: long_ago, then: Some(Time::default()) };
        let first = spare.take();
        assert_eq!(first, Time::now().is_none_or(|now| now.left_since(Time::default()) >= LEFT));
        assert!(!spare.take(), "nobody has looked on since");
    }
}
