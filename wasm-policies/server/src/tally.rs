//! What is counted at every decision. Each thread counts in lines of the caches of its own, and a scrape adds up: counting in one
//! place, processors would take the lines of every policy from each other.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// So many threads have a tally to themselves; where there are more, some share one.
const TALLIES: usize = 16;

/// Upper ends of the buckets of decisions, in microseconds: a decision takes microseconds.
const BUCKETS: [u64; 16] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 2_000_000];

static THREADS: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// The tallies of all threads.
#[derive(Default)]
pub(crate) struct Tallies([Own; TALLIES]);

/// In lines of the caches that it shares with no other.
#[derive(Default)]
#[repr(align(128))]
struct Own(Mutex<Tally>);

impl Own {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tallies {
    /// That of this thread.
    pub(crate) fn own(&self) -> MutexGuard<'_, Tally> {
        self.0[THREAD.with(|thread| thread % TALLIES)].tally()
    }

    /// What was counted since this was called last, in parts to be added up.
    pub(crate) fn take(&self) -> impl Iterator<Item = Tally> {
        self.0.iter().map(|own| std::mem::take(&mut *own.tally()))
    }
}

/// What threads have counted.
#[derive(Default)]
pub(crate) struct Tally {
    /// Reviews, by what they are about and HTTP or status code.
    pub(crate) reviews: Vec<((&'static str, u16), u64)>,
    /// By the places of policies.
    pub(crate) policies: BTreeMap<String, OfPlace>,
}

/// What the policy of a place came to.
#[derive(Default)]
pub(crate) struct OfPlace {
    /// Decisions, by operation, verdict and mode.
    pub(crate) decisions: Vec<([&'static str; 3], u64)>,
    /// Errors, by their codes.
    pub(crate) errors: Vec<(&'static str, u64)>,
    /// How long the decisions took.
    pub(crate) took: Took,
    /// The fuel that was used.
    pub(crate) fuel: u64,
}

impl Tally {
    /// Counts a review.
    pub(crate) fn review(&mut self, operation: &'static str, code: u16) {
        add(&mut self.reviews, (operation, code));
    }

    /// Counts something about the policy of a place.
    pub(crate) fn policy(&mut self, place: &str, count: impl FnOnce(&mut OfPlace)) {
        match self.policies.get_mut(place) {
            Some(known) => count(known),
            None => count(self.policies.entry(place.to_owned()).or_default()),
        }
    }
}

impl OfPlace {
    /// Counts a decision.
    pub(crate) fn decided(&mut self, operation: &'static str, verdict: &'static str, mode: &'static str, micros: u64) {
        add(&mut self.decisions, [operation, verdict, mode]);
        self.took.observe(micros);
    }

    /// Counts an error.
    pub(crate) fn failed(&mut self, code: &'static str) {
        add(&mut self.errors, code);
    }

    /// Adds fuel.
    pub(crate) fn spent(&mut self, fuel: u64) {
        self.fuel = self.fuel.saturating_add(fuel);
    }
}

/// There are few of each kind, so the first that fits is soon found.
fn add<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K) {
    match counts.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += 1,
        None => counts.push((key, 1)),
    }
}

/// How long decisions took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Took {
    micros: u64,
    /// How many lie in each bucket alone; the last is for those that lie in no other.
    counts: [u64; BUCKETS.len() + 1],
}

impl Took {
    fn observe(&mut self, micros: u64) {
        self.micros = self.micros.saturating_add(micros);
        self.counts[BUCKETS.partition_point(|upper| *upper < micros)] += 1;
    }

    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether none was observed.
    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }
}

/// The histogram of what threads have observed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations(Arc<Mutex<Took>>);

impl Durations {
    fn all(&self) -> MutexGuard<'_, Took> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what was observed.
    pub(crate) fn add(&self, took: &Took) {
        let mut all = self.all();
        all.micros = all.micros.saturating_add(took.micros);
        all.counts.iter_mut().zip(took.counts).for_each(|(count, more)| *count += more);
    }
}

impl TypedMetric for Durations {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let all = self.all().clone();
        let uppers = BUCKETS.into_iter().map(seconds).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = uppers.zip(all.counts).collect();
        encoder.encode_histogram::<NoLabelSet>(seconds(all.micros), all.count(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of decisions are few")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::registry::{Metric, Registry};

    use super::*;

    #[test]
    fn what_threads_count_is_found_once_however_many_there_are() {
        let tallies = Arc::new(Tallies::default());
        let threads: Vec<_> = (0..3 * TALLIES)
            .map(|number| {
                let tallies = tallies.clone();
                std::thread::spawn(move || {
                    for _ in 0..100 {
                        let mut own = tallies.own();
                        own.review("create", 200);
                        own.policy(if number % 3 == 0 { "a" } else { "b" }, |of| {
                            of.decided("create", "allow", "Enforce", 7);
                            of.spent(10);
                        });
                    }
                })
            })
            .collect();
        // While they count.
        let mut taken: Vec<Tally> = tallies.take().collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        taken.extend(tallies.take());
        let reviews: u64 = taken.iter().flat_map(|tally| &tally.reviews).map(|(_, count)| count).sum();
        let of = |place: &str| {
            let all = taken.iter().filter_map(|tally| tally.policies.get(place));
            all.fold([0; 3], |[decided, took, fuel], of| {
                let counts: u64 = of.decisions.iter().map(|(_, count)| count).sum();
                [decided + counts, took + of.took.count(), fuel + of.fuel]
            })
        };
        assert_eq!(reviews, 4_800);
        assert_eq!([of("a"), of("b")], [[1_600, 1_600, 16_000], [3_200, 3_200, 32_000]]);
        assert!(tallies.take().all(|tally| tally.reviews.is_empty() && tally.policies.is_empty()), "found once");
    }

    #[test]
    fn each_kind_is_counted_for_itself() {
        let mut tally = Tally::default();
        let decided = [("create", "allow"), ("create", "deny"), ("accept", "allow"), ("create", "allow")];
        for (operation, verdict) in decided {
            tally.policy("p", |of| of.decided(operation, verdict, "Enforce", 1));
        }
        tally.policy("p", |of| of.failed("trap"));
        let of = &tally.policies["p"];
        let count = |operation, verdict| of.decisions.iter().find(|(key, _)| *key == [operation, verdict, "Enforce"]);
        assert_eq!(count("create", "allow").map(|(_, count)| *count), Some(2));
        assert_eq!(count("accept", "allow").map(|(_, count)| *count), Some(1));
        assert_eq!((of.decisions.len(), &of.errors, of.took.count()), (3, &vec![("trap", 1)], 4));
    }

    #[test]
    fn a_scrape_finds_the_histogram_that_one_place_would_have_had() {
        let observed: Vec<u64> = BUCKETS.into_iter().flat_map(|upper| [upper - 1, upper, upper + 1]).collect();
        let ours = Family::<Labels, Durations>::default();
        let theirs = Family::<Labels, Histogram, fn() -> Histogram>::new_with_constructor(usual);
        for micros in observed {
            let mut took = Took::default();
            took.observe(micros);
            let labels = vec![("micros", micros.to_string())];
            // Twice the same: sums are exact then.
            for _ in 0..2 {
                ours.get_or_create(&labels).add(&took);
                theirs.get_or_create(&labels).observe(seconds(micros));
            }
        }
        assert_eq!(lines(ours), lines(theirs));
    }

    type Labels = Vec<(&'static str, String)>;

    fn usual() -> Histogram {
        Histogram::new(BUCKETS.map(seconds))
    }

    /// What a scrape finds, in any order.
    fn lines(metric: impl Metric) -> Vec<String> {
        let (mut registry, mut out) = (Registry::default(), String::new());
        registry.register("it", "It", metric);
        text::encode(&mut out, &registry).unwrap();
        let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }
}
