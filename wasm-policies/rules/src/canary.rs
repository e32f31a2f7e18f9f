//! Who is in a canary: a share of the clusters, and always the same ones.

use sha2::{Digest as _, Sha256};

/// How many buckets there are: a share is given in hundredths of a percent.
pub const BUCKETS: u16 = 10_000;

/// The bucket of a cluster for a policy, below [`BUCKETS`]. It depends on both names alone: a larger share keeps
/// everybody of a smaller one, and different policies try different clusters first.
pub fn bucket(policy: &str, cluster: &str) -> u16 {
    let mut hash = Sha256::new();
    // With its length before it, no two pairs of names run together to the same bytes.
    hash.update((policy.len() as u64).to_be_bytes());
    hash.update(policy);
    hash.update(cluster);
    let number = hash.finalize().iter().take(8).fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
    // Below 10 000, so it fits.
    (number % u64::from(BUCKETS)) as u16
}

/// Whether a cluster is in the share of a policy, in hundredths of a percent.
pub fn chosen(policy: &str, cluster: &str, share: u16) -> bool {
    bucket(policy, cluster) < share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_stay() {
        // Changing these moves clusters in and out of running canaries.
        assert_eq!([bucket("p", "c1"), bucket("p", "c2"), bucket("q", "c1")], [3936, 6314, 6920]);
        assert_ne!(bucket("ab", "c"), bucket("a", "bc"));
    }

    #[test]
    fn shares_grow_and_are_about_as_large_as_said() {
        let clusters: Vec<String> = (0..2000).map(|n| format!("cluster-{n}")).collect();
        let share = |share| clusters.iter().filter(|name| chosen("p", name, share)).count();
        assert_eq!((share(0), share(BUCKETS)), (0, 2000));
        assert!((150..250).contains(&share(1000)), "{}", share(1000));
        assert!(clusters.iter().all(|name| !chosen("p", name, 100) || chosen("p", name, 1000)));
    }
}
