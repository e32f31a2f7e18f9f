//! Whether bytes are a certificate request (RFC 2986) that is encoded by the distinguished rules (X.690) and no others.
//!
//! Readers of certificate requests forgive different mistakes. What is encoded in the one way that is allowed, all of
//! them read alike, the signer included.

/// How deep values may lie in each other; a request needs nine levels.
const DEPTH: usize = 16;

/// How deep the attributes of a request lie, the only thing in it with a tag of the context.
const ATTRIBUTES: usize = 3;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xa0;

/// Whether bytes are exactly one request, each part of it the type that belongs there.
pub(crate) fn is_request(bytes: &[u8]) -> bool {
    is_strict(bytes) && parts(bytes).is_some()
}

fn parts(bytes: &[u8]) -> Option<()> {
    let [request] = children(bytes, [SEQUENCE])?;
    let [info, signature_algorithm, _] = children(request, [SEQUENCE, SEQUENCE, BIT_STRING])?;
    let [_, subject, key, attributes] = children(info, [INTEGER, SEQUENCE, SEQUENCE, CONTEXT_0])?;
    let [key_algorithm, _] = children(key, [SEQUENCE, BIT_STRING])?;
    for algorithm in [signature_algorithm, key_algorithm] {
        let (tag, _, parameters) = first(algorithm)?;
        let alone = parameters.is_empty() || first(parameters)?.2.is_empty();
        (tag == IDENTIFIER && alone).then_some(())?;
    }
    for names in each(subject, SET)? {
        for name in each(names, SEQUENCE)? {
            let (tag, _, value) = first(name)?;
            (tag == IDENTIFIER && first(value)?.2.is_empty()).then_some(())?;
        }
    }
    for attribute in each(attributes, SEQUENCE)? {
        children(attribute, [IDENTIFIER, SET])?;
    }
    Some(())
}

/// The contents of exactly these values.
fn children<const N: usize>(mut bytes: &[u8], tags: [u8; N]) -> Option<[&[u8]; N]> {
    let mut contents = [bytes; N];
    for (expected, place) in tags.into_iter().zip(&mut contents) {
        let (tag, content, rest) = first(bytes)?;
        (tag == expected).then_some(())?;
        (*place, bytes) = (content, rest);
    }
    bytes.is_empty().then_some(contents)
}

/// The contents of any number of values of one type.
fn each(mut bytes: &[u8], expected: u8) -> Option<Vec<&[u8]>> {
    let mut contents = Vec::new();
    while !bytes.is_empty() {
        let (tag, content, rest) = first(bytes)?;
        (tag == expected).then_some(())?;
        contents.push(content);
        bytes = rest;
    }
    Some(contents)
}

/// Tag and content of the first value, and what follows it.
fn first(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (length, rest) = length(rest)?;
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Checks tags, lengths and the forms of simple types, as deep as constructed values go.
fn is_strict(bytes: &[u8]) -> bool {
    all(bytes, 1).is_some()
}

fn all(mut bytes: &[u8], depth: usize) -> Option<()> {
    if depth > DEPTH {
        return None;
    }
    while !bytes.is_empty() {
        let (tag, content, rest) = first(bytes)?;
        value(tag, content, depth)?;
        bytes = rest;
    }
    Some(())
}

fn value(tag: u8, content: &[u8], depth: usize) -> Option<()> {
    let (class, constructed, number) = (tag >> 6, tag & 0x20 != 0, tag & 0x1f);
    let right = match (class, number) {
        // Numbers above thirty take another byte; nothing in a request has one.
        (_, 0x1f) => false,
        // Boolean.
        (0, 1) => !constructed && matches!(content, [0x00] | [0xff]),
        // Integer: no more bytes than needed.
        (0, 2) => !constructed && !matches!(content, [] | [0x00, 0x00..=0x7f, ..] | [0xff, 0x80..=0xff, ..]),
        // Bit string: keys and signatures are whole bytes.
        (0, 3) => !constructed && content.first() == Some(&0),
        // Null.
        (0, 5) => !constructed && content.is_empty(),
        // Sequence and set.
        (0, 16 | 17) => constructed,
        // Octet string, object identifier, and the strings: which of those may be a name is said elsewhere.
        (0, 4 | 6 | 12 | 18..=20 | 22 | 28 | 30) => !constructed,
        (2, 0) => constructed && depth == ATTRIBUTES,
        _ => false,
    };
    if !right {
        return None;
    }
    if constructed { all(content, depth + 1) } else { Some(()) }
}

/// A length in its shortest form, and what follows it.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [short @ 0..=0x7f, rest @ ..] => Some((usize::from(*short), rest)),
        [0x81, one @ 0x80..=0xff, rest @ ..] => Some((usize::from(*one), rest)),
        [0x82, high @ 1..=0xff, low, rest @ ..] => Some((usize::from(u16::from_be_bytes([*high, *low])), rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_encoding_is_right() {
        for right in [
            &b"\x30\x03\x02\x01\x05"[..],
            b"\x05\x00",
            b"\x03\x02\x00\xff",
            b"\x02\x02\x00\x80",
            b"\x30\x04\x30\x02\xa0\x00",
        ] {
            assert!(is_strict(right), "{right:x?}");
        }
        for wrong in [
            &b"\x10\x03\x02\x01\x05"[..],
            b"\x30\x80\x02\x01\x05\x00\x00",
            b"\x30\x81\x03\x02\x01\x05",
            b"\x30\x82\x00\x03\x02\x01\x05",
            b"\x30\x04\x02\x01\x05",
            b"\x22\x03\x02\x01\x05",
            b"\x02\x02\x00\x7f",
            b"\x02\x02\xff\x80",
            b"\x02\x00",
            b"\x03\x02\x01\xfe",
            b"\x03\x00",
            b"\x05\x01\x00",
            b"\x01\x01\x01",
            b"\x1f\x01\x00",
            b"\x40\x00",
            b"\xa0\x00",
            b"\x30\x04\x30\x02\xa1\x00",
            b"\x30",
        ] {
            assert!(!is_strict(wrong), "{wrong:x?}");
        }
        let deep = (0..DEPTH + 1).fold(Vec::new(), |inner: Vec<u8>, _| {
            let mut outer = vec![0x30, u8::try_from(inner.len()).unwrap()];
            outer.extend(inner);
            outer
        });
        assert!(!is_strict(&deep));
    }
}
