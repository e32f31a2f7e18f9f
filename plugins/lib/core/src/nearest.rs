//! Which word was probably meant: "did you mean". Standard library only, because the dispatcher compiles this file too.

/// The candidate that was probably meant: the nearest by edit distance, if it is near enough to be worth naming.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be inserted, deleted, replaced or swapped with their neighbour (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = above[j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_count_once() {
        for (left, right, expected) in
            [("", "", 0), ("", "ab", 2), ("ab", "", 2), ("ab", "ba", 1), ("ca", "abc", 3), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(left, right), expected, "{left:?} {right:?}");
        }
    }

    #[test]
    fn finds_what_was_meant_and_nothing_far_off() {
        assert_eq!(nearest("instal", ["install", "join"]), Some("install"));
        assert_eq!(nearest("acept", ["accept", "get"]), Some("accept"));
        assert_eq!(nearest("jion", ["install", "join"]), Some("join"));
        assert_eq!(nearest("tokne", ["token", "join"]), Some("token"));
        assert_eq!(nearest("egt", ["accept", "get"]), Some("get"));
        assert_eq!(nearest("zzz", ["accept", "get"]), None);
    }
}
