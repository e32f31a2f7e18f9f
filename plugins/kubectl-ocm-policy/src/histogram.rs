//! Times in little memory, however many: counted in buckets of at most two percent.

/// Nanoseconds, counted.
#[derive(Clone)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

/// Buckets for each power of two.
const STEPS: u64 = 64;

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { buckets: vec![0; (STEPS * 60) as usize], count: 0, max: 0 }
    }

    pub(crate) fn add(&mut self, nanos: u64) {
        if let Some(bucket) = self.buckets.get_mut(index(nanos)) {
            *bucket += 1;
        }
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += more;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The time that a share of all times does not exceed, in thousandths.
    pub(crate) fn at(&self, thousandths: u64) -> u64 {
        let wanted = (self.count * thousandths).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper(index as u64).min(self.max);
            }
        }
        self.max
    }
}

/// Times below the first step count one by one; above, each power of two has as many buckets.
fn index(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let power = u64::from(nanos.ilog2());
    let shift = power - u64::from(STEPS.ilog2());
    (STEPS * (shift + 1) + ((nanos >> shift) - STEPS)) as usize
}

/// The largest time of a bucket.
fn upper(index: u64) -> u64 {
    if index < STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    ((STEPS + index % STEPS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_right_within_two_percent() {
        let mut histogram = Histogram::new();
        for nanos in 1..=100_000 {
            histogram.add(nanos);
        }
        for (thousandths, exact) in [(500, 50_000), (900, 90_000), (990, 99_000)] {
            let found = histogram.at(thousandths);
            assert!(found >= exact && found <= exact + exact / 50, "{thousandths}: {found}");
        }
        assert_eq!((histogram.at(1_000), histogram.max(), histogram.count()), (100_000, 100_000, 100_000));
        let mut both = histogram.clone();
        both.merge(&histogram);
        assert_eq!(both.at(500), histogram.at(500));
    }

    #[test]
    fn every_time_has_its_bucket() {
        for nanos in [0, 1, 63, 64, 65, 127, 128, 1_000, 123_456_789, 1 << 50] {
            let bucket = index(nanos);
            assert!(upper(bucket as u64) >= nanos && (bucket == 0 || upper(bucket as u64 - 1) < nanos), "{nanos}");
        }
    }
}
