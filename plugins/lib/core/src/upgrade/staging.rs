//! Stages of a fleet: so many clusters at once, set by set.

use std::ops::Range;

/// How many clusters are upgraded at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many.
    Number(usize),
    /// So many of a hundred, at least one.
    Percent(u8),
}

impl Size {
    /// Reads `3` or `10%`; none for what is neither, zero, or more than all.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.strip_suffix('%') {
            Some(share) => share.parse().ok().filter(|share| (1..=100).contains(share)).map(Self::Percent),
            None => text.parse().ok().filter(|number| *number > 0).map(Self::Number),
        }
    }

    /// How many that is of so many clusters.
    pub fn of(self, all: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(share) => (all * usize::from(share) / 100).max(1),
        }
    }
}

/// The stages of clusters that stand in the order in which they are upgraded, as ranges of their indices.
///
/// `sets` says to which group each belongs: a stage has clusters of one group, and groups are runs of equal words. The share
/// of a size is of its group.
pub fn stages(sets: &[&str], size: Size) -> Vec<Range<usize>> {
    let mut stages = Vec::new();
    let mut begin = 0;
    while begin < sets.len() {
        let length = sets[begin..].iter().take_while(|set| **set == sets[begin]).count();
        let end = begin + length;
        let step = size.of(length);
        stages.extend((begin..end).step_by(step).map(|first| first..(first + step).min(end)));
        begin = end;
    }
    stages
}

/// The indices of clusters by the sets that were named, in the order of these; each cluster once. Those of other sets, and of
/// none, are left out.
pub fn in_order_of_sets(sets: &[Option<String>], named: &[String]) -> Vec<usize> {
    let of = |name: &String| {
        let name = name.clone();
        (0..sets.len()).filter(move |index| sets[*index].as_ref() == Some(&name))
    };
    let mut order = Vec::new();
    for index in named.iter().flat_map(of) {
        if !order.contains(&index) {
            order.push(index);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_type_them() {
        assert_eq!(Size::parse("3"), Some(Size::Number(3)));
        assert_eq!(Size::parse(" 10% "), Some(Size::Percent(10)));
        for wrong in ["", "0", "0%", "101%", "ten", "-1", "1.5", "%"] {
            assert_eq!(Size::parse(wrong), None, "{wrong}");
        }
        assert_eq!((Size::Percent(10).of(5), Size::Percent(50).of(5), Size::Percent(100).of(0)), (1, 2, 1));
    }

    #[test]
    fn a_stage_never_has_clusters_of_two_groups() {
        assert_eq!(stages(&[""; 5], Size::Number(2)), [0..2, 2..4, 4..5]);
        assert_eq!(stages(&["dev", "prod", "prod", "prod"], Size::Percent(67)), [0..1, 1..3, 3..4]);
        assert_eq!(stages(&["a", "b"], Size::Number(9)), [0..1, 1..2]);
        assert!(stages(&[], Size::Number(1)).is_empty());
    }

    #[test]
    fn clusters_follow_the_order_of_the_sets() {
        let sets = [Some("prod"), Some("dev"), None, Some("prod"), Some("other")].map(|set| set.map(str::to_owned));
        let named = ["dev", "prod", "dev"].map(str::to_owned);
        assert_eq!(in_order_of_sets(&sets, &named), [1, 0, 3]);
    }
}
