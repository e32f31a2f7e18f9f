//! Sorts and collects in order, with one algorithm for every type of element.
//!
//! The sorts of the standard library, which also build its maps and sets of iterators, are made anew for each type of
//! element and each comparison: several kilobytes every time. Here only the comparison and the swap are.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Sorts; equal elements keep their order.
pub fn sort<T: Ord>(all: &mut [T]) {
    sort_by(all, T::cmp);
}

/// Sorts with a comparison; equal elements keep their order.
pub fn sort_by<T>(all: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let swaps = swaps(all.len(), &mut |left, right| compare(&all[left], &all[right]));
    apply(all, swaps);
}

/// Sorts by a key, which is taken once of each element; those of equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(all: &mut [T], key: impl FnMut(&T) -> K) {
    let keys: Vec<K> = all.iter().map(key).collect();
    apply(all, swaps(keys.len(), &mut |left, right| keys[left].cmp(&keys[right])));
}

/// Collects in order. Use it wherever a map or a set would be collected or made from an array.
pub trait Collect: IntoIterator + Sized {
    /// The pairs as a map; of equal keys the last one's value counts.
    fn collect_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: IntoIterator<Item = (K, V)>,
    {
        let mut map = BTreeMap::new();
        for (key, value) in self {
            map.insert(key, value);
        }
        map
    }

    /// The pairs as a map, as [`Collect::collect_map`] has them.
    ///
    /// # Errors
    ///
    /// The first that there is.
    fn try_collect_map<K: Ord, V, E>(self) -> Result<BTreeMap<K, V>, E>
    where
        Self: IntoIterator<Item = Result<(K, V), E>>,
    {
        let mut map = BTreeMap::new();
        for pair in self {
            let (key, value) = pair?;
            map.insert(key, value);
        }
        Ok(map)
    }

    /// The elements as a set.
    fn collect_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        for element in self {
            set.insert(element);
        }
        set
    }

    /// The elements as a set.
    ///
    /// # Errors
    ///
    /// The first that there is.
    fn try_collect_set<T: Ord, E>(self) -> Result<BTreeSet<T>, E>
    where
        Self: IntoIterator<Item = Result<T, E>>,
    {
        let mut set = BTreeSet::new();
        for element in self {
            set.insert(element?);
        }
        Ok(set)
    }

    /// The pairs as the members of a JSON object; of equal names the last one's value counts.
    fn collect_object<V: Into<Value>>(self) -> Map<String, Value>
    where
        Self: IntoIterator<Item = (String, V)>,
    {
        let mut object = Map::new();
        for (name, value) in self {
            object.insert(name, value.into());
        }
        object
    }
}

impl<I: IntoIterator> Collect for I {}

/// Swaps each place with the one that is told for it, from the first on.
fn apply<T>(all: &mut [T], swaps: Vec<usize>) {
    for (place, with) in swaps.into_iter().enumerate() {
        all.swap(place, with);
    }
}

/// With which place each is to be swapped, from the first on, so that what the comparison of two places orders is sorted.
#[inline(never)]
fn swaps(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|left, right| compare(*left, *right));
    // Where every element is meanwhile, and which one is at every place.
    let mut places: Vec<usize> = (0..count).collect();
    let mut elements = places.clone();
    for (place, element) in order.iter_mut().enumerate() {
        let (with, displaced) = (places[*element], elements[place]);
        elements[with] = displaced;
        places[displaced] = with;
        *element = with;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern, of which many are equal.
    fn numbers(count: u32) -> Vec<(u32, u32)> {
        (0..count).map(|place| (place.wrapping_mul(2_654_435_761).rotate_left(11) % (count / 3 + 1), place)).collect()
    }

    #[test]
    fn every_length_is_sorted_as_the_standard_library_sorts_it() {
        for count in (0..70).chain([127, 128, 129, 1000, 10_000]) {
            let (mut sorted, mut expected) = (numbers(count), numbers(count));
            sort_by(&mut sorted, |left, right| left.0.cmp(&right.0));
            expected.sort_by_key(|(number, _)| *number);
            assert_eq!(sorted, expected, "{count}");
            let mut sorted = numbers(count);
            sort_by_key(&mut sorted, |(number, _)| *number);
            assert_eq!(sorted, expected, "{count}");
            let (mut sorted, mut expected) = (numbers(count), numbers(count));
            sort(&mut sorted);
            expected.sort();
            assert_eq!(sorted, expected, "{count}");
        }
    }

    #[test]
    fn equal_elements_keep_their_order() {
        let mut words = ["bb", "a", "cc", "b", "aa"].map(str::to_owned);
        sort_by_key(&mut words, String::len);
        assert_eq!(words, ["a", "b", "bb", "cc", "aa"]);
    }

    #[test]
    fn of_equal_keys_the_last_one_counts() {
        let pairs = [("b", 1), ("a", 2), ("b", 3)];
        assert_eq!(pairs.collect_map(), BTreeMap::from(pairs));
        let tried: Result<_, ()> = pairs.map(Ok).try_collect_map();
        assert_eq!(tried, Ok(BTreeMap::from([("a", 2), ("b", 3)])));
        let object = pairs.map(|(name, value)| (name.to_owned(), value)).collect_object();
        assert_eq!(Value::Object(object), serde_json::json!({"a": 2, "b": 3}));
    }

    #[test]
    fn sets_hold_every_element_once() {
        assert_eq!([3, 1, 3].collect_set(), BTreeSet::from([1, 3]));
        assert!(Vec::<u8>::new().collect_set().is_empty());
        let tried: Result<_, ()> = [3, 1, 3].map(Ok).try_collect_set();
        assert_eq!(tried, Ok(BTreeSet::from([1, 3])));
    }

    #[test]
    fn the_first_error_ends_it() {
        assert_eq!([Ok(("a", 1)), Err("no"), Err("neither")].try_collect_map(), Err("no"));
        assert_eq!([Ok(1), Err("no"), Err("neither")].try_collect_set(), Err("no"));
    }
}
