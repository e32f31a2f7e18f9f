//! What came of a storm, in numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::agent::Agent;
use crate::hostile::{Attempt, Hostile};

/// How long things took.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that this part of them, from 0 to 1, took at most; none: there are none.
    pub fn part(&self, part: f64) -> Option<Duration> {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index of a few thousand"
        )]
        let index = (self.0.len() as f64 * part.clamp(0.0, 1.0)).ceil() as usize;
        self.0.get(index.saturating_sub(1)).copied()
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [Some(half), Some(most), Some(all)] = [0.5, 0.99, 1.0].map(|part| self.part(part)) else {
            return f.write_str("none");
        };
        write!(f, "p50 {} ms, p99 {} ms, most {} ms", half.as_millis(), most.as_millis(), all.as_millis())
    }
}

/// What came of a storm.
#[derive(Clone, Debug)]
pub struct Report {
    /// How many right clusters there were.
    pub clusters: usize,
    /// How many of them were accepted.
    pub accepted: usize,
    /// The right clusters that have joined.
    pub agents: Vec<Agent>,
    /// From sending the request until the cluster was seen to be accepted.
    pub to_accepted: Latencies,
    /// From sending the request until its certificate was seen.
    pub to_certificate: Latencies,
    /// How many hostile clusters were planned.
    pub planned_hostile: usize,
    /// What came of the hostile ones that have tried.
    pub hostile: Vec<Attempt>,
    /// What right clusters could not do once they had certificates.
    pub failures: Vec<String>,
    /// Why requests had to be sent again, and how often, since the fleet began.
    pub repeated: BTreeMap<String, usize>,
    /// From the beginning of the storm until the first right cluster was accepted.
    pub first: Duration,
    /// From the beginning of the storm until the last right cluster was accepted.
    pub took: Duration,
}

impl Report {
    /// The hostile clusters that got in.
    pub fn let_in(&self) -> Vec<&Attempt> {
        self.hostile.iter().filter(|attempt| attempt.is_in).collect()
    }

    /// How many hostile clusters have tried, in which way.
    pub fn tried(&self) -> BTreeMap<Hostile, usize> {
        let mut tried = BTreeMap::new();
        self.hostile.iter().for_each(|attempt| *tried.entry(attempt.kind).or_default() += 1);
        tried
    }

    /// Whether all right clusters joined and reported, and all hostile ones tried and none got in.
    pub fn is_right(&self) -> bool {
        let (joined, tried) = (self.agents.len(), self.hostile.len());
        let have_all_come = joined == self.clusters && tried == self.planned_hostile;
        have_all_come && self.let_in().is_empty() && self.failures.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let rate = self.accepted as f64 / seconds.max(f64::MIN_POSITIVE);
        let Self { clusters, accepted, agents, .. } = self;
        writeln!(f, "right clusters          {clusters}: {accepted} accepted, {} with certificates", agents.len())?;
        writeln!(f, "request to accepted     {}", self.to_accepted)?;
        writeln!(f, "request to certificate  {}", self.to_certificate)?;
        writeln!(f, "all accepted after      {seconds:.1} s, {rate:.1} clusters/s")?;
        let refused = self.hostile.iter().filter(|attempt| attempt.request.is_none()).count();
        let (planned, tried, inside) = (self.planned_hostile, self.hostile.len(), self.let_in().len());
        write!(f, "hostile clusters        {planned}: {tried} tried, {inside} let in, ")?;
        writeln!(f, "{refused} without a request that the hub took")?;
        for (kind, count) in self.tried() {
            writeln!(f, "  tried: {count} as {kind:?}")?;
        }
        for attempt in self.let_in() {
            writeln!(f, "  let in: {} as {:?}, request {:?}", attempt.cluster, attempt.kind, attempt.request)?;
        }
        for failure in &self.failures {
            writeln!(f, "  failed: {failure}")?;
        }
        for (why, count) in &self.repeated {
            writeln!(f, "  sent again {count} times: {why}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of a storm without right clusters.
    fn report(planned_hostile: usize, hostile: Vec<Attempt>) -> Report {
        Report {
            clusters: 0,
            accepted: 0,
            agents: Vec::new(),
            to_accepted: Latencies::default(),
            to_certificate: Latencies::default(),
            planned_hostile,
            hostile,
            failures: Vec::new(),
            repeated: BTreeMap::new(),
            first: Duration::ZERO,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn hostile_clusters_that_never_tried_do_not_count_as_kept_out() {
        let attempt = |kind, is_in| Attempt {
            kind,
            cluster: "c".to_owned(),
            request: None,
            refusals: vec!["no".to_owned()],
            is_in,
        };
        let two = vec![attempt(Hostile::OtherName, false), attempt(Hostile::SecondKey, false)];
        assert!(report(2, two.clone()).is_right());
        assert!(!report(3, two.clone()).is_right() && !report(1, Vec::new()).is_right());
        assert!(!report(1, vec![attempt(Hostile::OtherName, true)]).is_right());
        let told = report(3, two).to_string();
        for line in
            ["hostile clusters        3: 2 tried, 0 let in", "  tried: 1 as OtherName", "  tried: 1 as SecondKey"]
        {
            assert!(told.contains(line), "{told}");
        }
    }

    #[test]
    fn latencies_are_told_by_their_parts() {
        let all = Latencies::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!(all.to_string(), "p50 100 ms, p99 198 ms, most 200 ms");
        assert_eq!(Latencies::of(vec![Duration::from_millis(7)]).part(0.0), Some(Duration::from_millis(7)));
        assert_eq!((Latencies::default().part(0.5), Latencies::default().to_string().as_str()), (None, "none"));
    }
}
