//! Texts as their differences from a sample of the same kind (delta encoding): objects of one kind have most of their text in
//! common.
//!
//! ```text
//! length · bytes that are new · (how many bytes, from where in the sample and the text so far · bytes that are new)*
//! ```
//!
//! It is undone by copying pieces, so that reading many objects costs little more than reading their texts does.

/// Bytes by which a piece is looked up.
const WORD: usize = 4;
/// Shorter pieces are as long as what tells where they are.
const LEAST: usize = 6;
/// Bits of the number of a slot.
const BITS: u32 = 12;
/// Bits of a number that one byte holds.
const DIGIT: u32 = 7;
/// The bit of such a byte that tells that more follow.
const MORE: u8 = 1 << DIGIT;

/// A text of which others are told apart.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    text: Vec<u8>,
    places: Places,
}

impl Sample {
    pub(crate) fn new(text: Vec<u8>) -> Self {
        let mut places = Places::new();
        (0..text.len()).for_each(|at| places.note(&text, at));
        Self { text, places }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// A text as its differences from this one.
    pub(crate) fn pack(&self, text: &[u8]) -> Vec<u8> {
        let (mut packed, mut before) = (Vec::new(), Places::new());
        put_number(&mut packed, text.len());
        // What is before `told` is packed, and nothing between it and `at` was found anywhere.
        let (mut told, mut at) = (0, 0);
        while let Some(slot) = slot(text, at) {
            let (place, length) = self.longest(text, at, slot, &before);
            if length < LEAST {
                before.note(text, at);
                at += 1;
                continue;
            }
            put_bytes(&mut packed, &text[told..at]);
            put_number(&mut packed, length);
            put_number(&mut packed, place);
            (at..at + length).for_each(|at| before.note(text, at));
            at += length;
            told = at;
        }
        put_bytes(&mut packed, &text[told..]);
        packed
    }

    /// The text that was packed with this sample; none: it was not.
    pub(crate) fn unpack(&self, mut packed: &[u8]) -> Option<Vec<u8>> {
        let all = take_number(&mut packed)?;
        let mut text = Vec::with_capacity(all);
        loop {
            let new = take_number(&mut packed)?;
            let (new, rest) = packed.split_at_checked(new)?;
            text.extend_from_slice(new);
            packed = rest;
            if packed.is_empty() {
                return (text.len() == all).then_some(text);
            }
            let (length, place) = (take_number(&mut packed)?, take_number(&mut packed)?);
            match place.checked_sub(self.text.len()) {
                None => text.extend_from_slice(self.text.get(place..place.checked_add(length)?)?),
                Some(place) => {
                    let end = place.checked_add(length).filter(|end| *end <= text.len())?;
                    text.extend_from_within(place..end);
                }
            }
        }
    }

    /// Where the longest piece is that the rest of a text begins with, and its length. Places in the text itself are counted from
    /// the end of the sample.
    fn longest(&self, text: &[u8], at: usize, slot: usize, before: &Places) -> (usize, usize) {
        let rest = &text[at..];
        let in_sample = self.places.last(slot).map(|place| (place, common(&self.text[place..], rest)));
        let in_text = before.last(slot).map(|place| (self.text.len() + place, common(&text[place..at], rest)));
        in_sample.into_iter().chain(in_text).max_by_key(|(_, length)| *length).unwrap_or_default()
    }
}

/// Bytes of the text that was packed, without unpacking it.
pub(crate) fn length(mut packed: &[u8]) -> Option<usize> {
    take_number(&mut packed)
}

/// Where words are in a text: of all that share a slot the last one, counted from 1; 0: none.
#[derive(Debug, Default)]
struct Places(Vec<u32>);

impl Places {
    fn new() -> Self {
        Self(vec![0; 1 << BITS])
    }

    /// Notes the word that begins here.
    fn note(&mut self, text: &[u8], at: usize) {
        if let Some(slot) = slot(text, at)
            && let Some(place) = self.0.get_mut(slot)
        {
            *place = u32::try_from(at + 1).unwrap_or_default();
        }
    }

    fn last(&self, slot: usize) -> Option<usize> {
        let place = self.0.get(slot)?.checked_sub(1)?;
        usize::try_from(place).ok()
    }
}

/// The slot of the word that begins here; none: so much does not follow.
fn slot(text: &[u8], at: usize) -> Option<usize> {
    let word = text.get(at..)?.first_chunk::<WORD>()?;
    // A multiplicative hash, by 2^32 over the golden ratio.
    let slot = u32::from_le_bytes(*word).wrapping_mul(0x9E37_79B1) >> (u32::BITS - BITS);
    usize::try_from(slot).ok()
}

/// How many bytes both begin with.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

fn put_bytes(packed: &mut Vec<u8>, bytes: &[u8]) {
    put_number(packed, bytes.len());
    packed.extend_from_slice(bytes);
}

fn put_number(packed: &mut Vec<u8>, mut number: usize) {
    while number >= usize::from(MORE) {
        packed.push((number % usize::from(MORE)) as u8 | MORE);
        number >>= DIGIT;
    }
    packed.push(number as u8);
}

fn take_number(packed: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(DIGIT as usize) {
        let bytes = *packed;
        let (byte, rest) = bytes.split_first()?;
        *packed = rest;
        number |= usize::from(byte % MORE) << shift;
        if *byte < MORE {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_read_as_it_was(sample: &str, text: &str) -> usize {
        let sample = Sample::new(sample.into());
        let packed = sample.pack(text.as_bytes());
        assert_eq!(sample.unpack(&packed).as_deref(), Some(text.as_bytes()));
        assert_eq!(length(&packed), Some(text.len()));
        packed.len()
    }

    #[test]
    fn every_text_is_read_as_it_was_whatever_the_sample() {
        let long = "abcdefgh".repeat(100_000);
        let binary: String = (0..=0x2FF).filter_map(char::from_u32).collect();
        let texts =
            ["", "a", "abc", "abcdef", "abcdefabcdef", "xabcdefyabcdefz", "aaaaaaaaaaaaaaaaaaaaaaa", &binary, &long];
        for sample in texts {
            for text in texts {
                is_read_as_it_was(sample, text);
            }
        }
        let none = Sample::default();
        assert_eq!(none.unpack(&none.pack(b"abcdefabcdef")).as_deref(), Some(&b"abcdefabcdef"[..]));
    }

    #[test]
    fn texts_of_one_kind_are_kept_as_what_tells_them_apart() {
        let text = |name: &str, uid: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}","uid":"{uid}","labels":{{"a":"b"}}}}}}"#
            )
        };
        let (one, other) = (text("c1", "f81d4fae"), text("another", "7dec11d0"));
        assert!(is_read_as_it_was(&one, &one) < 8);
        let packed = is_read_as_it_was(&one, &other);
        assert!(packed < 40, "{packed} of {}", other.len());
        // What has nothing in common with the sample takes hardly more than its own length.
        assert!(is_read_as_it_was("0123456789", "qwertyuiop") < 14);
    }

    #[test]
    fn what_was_not_packed_with_the_sample_is_no_text() {
        let sample = Sample::new(b"0123456789".to_vec());
        let packed = sample.pack(b"x0123456789y");
        assert_eq!(sample.unpack(&packed[..packed.len() - 1]), None);
        assert_eq!(Sample::default().unpack(&packed), None);
        for bad in [&[][..], &[1], &[0, 5], &[0xff; 20], &[9, 0, 9, 5, 0]] {
            assert_eq!(sample.unpack(bad), None, "{bad:?}");
        }
    }
}
