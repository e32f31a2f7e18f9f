//! What rounds of a benchmark say that do not agree.

/// Whether ratios of rounds meet a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All but a quarter of the rounds do.
    Met,
    /// All but a quarter of them do not.
    Missed,
    /// They contradict each other.
    Open,
}

/// The lower quartile, the median and the upper quartile.
///
/// # Panics
/// When there are no values.
pub fn quartiles(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| sorted[(sorted.len() - 1) * quarter / 4])
}

/// What the ratios of some rounds say of a target.
///
/// # Panics
/// When there are no ratios.
pub fn verdict(ratios: &[f64], target: f64) -> Verdict {
    match quartiles(ratios) {
        [low, ..] if low >= target => Verdict::Met,
        [.., high] if high < target => Verdict::Missed,
        _ => Verdict::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_round_among_others_is_no_miss_and_rounds_that_contradict_each_other_are_open() {
        assert_eq!(verdict(&[1.0, 1.1, 0.77, 1.0, 0.95, 1.2, 1.0], 0.9), Verdict::Met);
        assert_eq!(verdict(&[0.8, 0.7, 1.0, 0.85, 0.8, 0.7, 0.89], 0.9), Verdict::Missed);
        assert_eq!(verdict(&[0.77, 1.0, 0.8, 1.1, 0.85, 1.0, 0.95], 0.9), Verdict::Open);
        assert_eq!(quartiles(&[4.0, 1.0, 5.0, 2.0, 3.0]), [2.0, 3.0, 4.0]);
        assert_eq!(verdict(&[0.9], 0.9), Verdict::Met);
    }
}
