//! Objects of the hub as they are kept: as what tells them apart from others of their kind, which takes a small part of the memory
//! of their text. Nothing of them is lost: policies may ask for any field.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::delta::{self, Sample};

/// Texts that the sample of a kind is made of. A hub has a kind in a few shapes, such as clusters before and after they have
/// joined. Whoever fills the sample with objects unlike all others makes those take what their text does, and no more.
const LEARNED: usize = 8;
/// Bytes of each of them, so that nobody fills the sample with one object.
const LONGEST: usize = 8 << 10;
/// Shorter ones take little as they are.
const SHORTEST: usize = 128;
/// A text that takes more than this part of its bytes has a shape that the sample does not know: one third.
const PART: usize = 3;

/// Packs objects of one kind.
#[derive(Debug, Default)]
pub struct Packer(RwLock<Learned>);

/// What is known of a kind.
#[derive(Debug, Default)]
struct Learned {
    sample: Arc<Sample>,
    texts: usize,
}

impl Packer {
    /// Of a value that is JSON.
    pub fn pack(&self, value: &impl Serialize) -> Packed {
        // It is plain JSON, and memory takes what is written.
        let text = serde_json::to_vec(value).unwrap_or_default();
        let sample = self.sample();
        let packed = sample.pack(&text);
        // A first text that repeats itself takes little of its own, and those after it would take as much again.
        let is_unknown = sample.text().is_empty() || packed.len() > text.len() / PART;
        if is_unknown && let Some(sample) = self.learn(&text) {
            let packed = sample.pack(&text).into();
            return Packed { sample, packed };
        }
        Packed { sample, packed: packed.into() }
    }

    fn sample(&self) -> Arc<Sample> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).sample.clone()
    }

    /// The sample with one more text; none: it is not worth it. What was packed before keeps the one that it was packed with.
    fn learn(&self, text: &[u8]) -> Option<Arc<Sample>> {
        let mut learned = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if learned.texts >= LEARNED || text.len() < SHORTEST {
            return None;
        }
        let shown = text.get(..LONGEST).unwrap_or(text);
        let sample = Arc::new(Sample::new([learned.sample.text(), shown].concat()));
        *learned = Learned { sample: sample.clone(), texts: learned.texts + 1 };
        Some(sample)
    }
}

/// A value that is read again when it is needed.
#[derive(Clone)]
pub struct Packed {
    sample: Arc<Sample>,
    packed: Arc<[u8]>,
}

impl Packed {
    /// The value.
    pub fn read(&self) -> Value {
        self.read_as().unwrap_or_default()
    }

    /// The value as one of this type; none: it is of another one.
    pub fn read_as<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.text()?).ok()
    }

    /// Bytes of its text.
    pub fn size(&self) -> usize {
        delta::length(&self.packed).unwrap_or_default()
    }

    /// Bytes that it takes, besides the sample that all of its kind share.
    pub fn kept(&self) -> usize {
        self.packed.len()
    }

    /// Whether both are in memory once.
    #[cfg(test)]
    pub(crate) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.packed, &other.packed)
    }

    fn text(&self) -> Option<Vec<u8>> {
        self.sample.unpack(&self.packed)
    }
}

impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        match Arc::ptr_eq(&self.sample, &other.sample) {
            true => self.packed == other.packed,
            false => self.size() == other.size() && self.text() == other.text(),
        }
    }
}

impl Eq for Packed {}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Packed").field(&self.read()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A cluster as a hub stores it once it has joined.
    fn cluster(number: usize) -> Value {
        let condition = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": "Simulated", "message": "a cluster reports",
                "lastTransitionTime": format!("2026-01-01T00:{:02}:{:02}Z", number / 60 % 60, number % 60),
            })
        };
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {
                "name": format!("c{number}"), "uid": format!("00000000-0000-4000-8000-{number:012x}"),
                "resourceVersion": (number * 7).to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"cluster.open-cluster-management.io/clusterset": "default"},
            },
            "spec": {
                "hubAcceptsClient": true, "leaseDurationSeconds": 60,
                "managedClusterClientConfigs": [{"url": "https://192.0.2.7:6443", "caBundle": "eA=="}],
            },
            "status": {
                "capacity": {"cpu": "4", "memory": "16Gi"}, "allocatable": {"cpu": "4", "memory": "15Gi"},
                "conditions": [condition("ManagedClusterJoined"), condition("ManagedClusterConditionAvailable")],
                "version": {"kubernetes": "v1.35.0"},
            },
        })
    }

    #[test]
    fn what_was_packed_is_read_as_it_was() {
        let packer = Packer::default();
        let values = [
            json!({"b": [1, -2, 0.5, u64::MAX, "\u{0}\"\u{1F600}"], "a": {"": null}, "c": true}),
            json!(null),
            json!("x".repeat(100_000)),
            cluster(1),
            cluster(2),
        ];
        let packed = [0, 1].map(|_| values.each_ref().map(|value| packer.pack(value)));
        for round in &packed {
            assert_eq!(round.each_ref().map(Packed::read), values);
        }
        for (packed, value) in packed[0].iter().zip(&values) {
            assert_eq!(packed.size(), value.to_string().len());
        }
        assert_eq!(packer.pack(&["a"]).read_as::<Vec<String>>(), Some(vec!["a".to_owned()]));
        assert_eq!(packer.pack(&["a"]).read_as::<u8>(), None);
    }

    #[test]
    fn the_same_value_is_the_same_whatever_the_sample() {
        let packer = Packer::default();
        let first = packer.pack(&cluster(1));
        assert!((0..LEARNED).all(|number| packer.pack(&json!({ number.to_string().repeat(200): number })).size() > 0));
        let again = packer.pack(&cluster(1));
        assert!(!Arc::ptr_eq(&first.sample, &again.sample), "it has learned since");
        assert_eq!(first, again);
        let other = packer.pack(&cluster(0));
        assert_eq!(first.size(), other.size(), "only what is in it tells them apart");
        assert_ne!(first, other);
        assert_eq!(packer.pack(&cluster(3)), packer.pack(&cluster(3)));
    }

    #[test]
    fn ten_thousand_clusters_take_a_small_part_of_their_text() {
        let packer = Packer::default();
        let packed: Vec<Packed> = (0..10_000).map(|number| packer.pack(&cluster(number))).collect();
        let (kept, text) = packed.iter().fold((0, 0), |(kept, text), one| (kept + one.kept(), text + one.size()));
        assert!(kept * 6 < text, "{kept} bytes of {text}");
        assert_eq!(packed[9999].read(), cluster(9999));
    }

    #[test]
    fn the_sample_is_bounded_whatever_is_written() {
        let packer = Packer::default();
        for number in 0..100_u64 {
            // The generator of Knuth's MMIX: texts that have nothing in common, and in which nothing is repeated.
            let mut state = number;
            let noise = (0..2 * LONGEST).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b'a' + (state >> 60) as u8)
            });
            let value = json!({ number.to_string(): noise.collect::<String>() });
            assert_eq!(packer.pack(&value).read(), value);
        }
        assert_eq!(packer.sample().text().len(), LEARNED * LONGEST);
    }

    #[test]
    fn those_after_a_first_one_that_repeats_itself_are_told_apart_from_it() {
        let packer = Packer::default();
        let value = |number: usize| json!({"name": number, "record": r#"{"a":"b","c":"d"}"#.repeat(50)});
        assert_eq!(packer.pack(&value(1)).read(), value(1));
        let next = packer.pack(&value(2));
        assert_eq!(next.read(), value(2));
        assert!(next.kept() < 50, "{} of {}", next.kept(), next.size());
    }
}
