//! Ways to damage bytes and JSON.

use serde_json::{Map, Value};

use crate::support::Random;

/// Bytes that begin or end something in one of our formats, and numbers at the edge of what LEB128 and DER can say.
const TOKENS: [&[u8]; 16] = [
    b"\0",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x00",
    b"\x80\x00",
    b"\x80\x80\x80\x80\x08",
    b"\x30\x80",
    b"\x30\x84\xff\xff\xff\xff",
    b"\xa0\x00",
    b"\"",
    b"{",
    b"]",
    b"null",
    b"\xef\xbb\xbf",
    b"\\u0000",
    b"\r\n",
];

/// Damages bytes in one to three ways; `other` lends pieces.
pub fn bytes(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(3) {
        if input.is_empty() {
            input.push(random.next() as u8);
        }
        let at = random.below(input.len());
        let most = 1 << random.below(12);
        let length = 1 + random.below((input.len() - at).min(most));
        match random.below(9) {
            0 | 1 => input[at] ^= 1 << random.below(8),
            2 => input[at] = random.next() as u8,
            3 => input.truncate(at),
            4 => drop(input.drain(at..at + length)),
            5 => {
                let piece = input[at..at + length].to_vec();
                let to = random.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            6 if !other.is_empty() => {
                let from = random.below(other.len());
                let end = (from + length).min(other.len());
                let to = (at + end - from).min(input.len());
                input.splice(at..to, other[from..end].iter().copied());
            }
            7 => drop(input.splice(at..at, random.one(&TOKENS).iter().copied())),
            _ => {
                let token = random.one(&TOKENS);
                let end = (at + token.len()).min(input.len());
                input.splice(at..end, token.iter().copied());
            }
        }
    }
}

/// Words that mean something in some answer.
const WORDS: [&str; 22] = [
    "verdict",
    "allow",
    "deny",
    "hold",
    "no-opinion",
    "reasons",
    "edits",
    "accepted",
    "valid",
    "result",
    "violation",
    "message",
    "msg",
    "code",
    "op",
    "mutated_object",
    "askAgainSeconds",
    "warn",
    "mutating",
    "v1",
    "kubernetes",
    "",
];

fn leaf(random: &mut Random) -> Value {
    match random.below(7) {
        0 => Value::Null,
        1 => true.into(),
        2 => false.into(),
        3 => (random.next() >> random.below(64)).into(),
        4 => Value::Array(Vec::new()),
        5 => Value::Object(Map::new()),
        _ => (*random.one(&WORDS)).into(),
    }
}

/// Changes the structure of a value in one place.
pub fn json(value: &mut Value, random: &mut Random) {
    let inside = !random.once_in(4);
    match value {
        Value::Object(members) if inside && !members.is_empty() => {
            let keys: Vec<String> = members.keys().cloned().collect();
            let key = random.one(&keys);
            match random.below(8) {
                0 => drop(members.remove(key)),
                1 => {
                    let moved = members.remove(key).unwrap_or_default();
                    members.insert((*random.one(&WORDS)).to_owned(), moved);
                }
                2 => drop(members.insert((*random.one(&WORDS)).to_owned(), leaf(random))),
                3 => {
                    let moved = members.remove(key).unwrap_or_default();
                    members.insert(key.to_uppercase(), moved);
                }
                _ => members.get_mut(key).into_iter().for_each(|member| json(member, random)),
            }
        }
        Value::Array(items) if inside && !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(5) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                2 => items.push(leaf(random)),
                _ => json(&mut items[at], random),
            }
        }
        other => match random.below(4) {
            // A list instead of an object, by position: serde would take it for a struct.
            0 if other.is_object() => {
                *other = Value::Array(other.as_object().into_iter().flat_map(Map::values).cloned().collect());
            }
            1 => *other = Value::Array(vec![other.take()]),
            2 => *other = Value::Object(Map::from_iter([((*random.one(&WORDS)).to_owned(), other.take())])),
            _ => *other = leaf(random),
        },
    }
}

/// A piece of a module or component: its sections after the eight bytes at the front.
type Section = (u8, Vec<u8>);

fn sections(module: &[u8]) -> Option<Vec<Section>> {
    let mut rest = module.get(8..)?;
    let mut found = Vec::new();
    while let Some((id, after)) = rest.split_first() {
        let (mut length, mut used) = (0_usize, 0);
        loop {
            let byte = *after.get(used)?;
            length |= usize::from(byte & 0x7f) << (7 * used);
            used += 1;
            if byte & 0x80 == 0 {
                break;
            }
            if used == 5 {
                return None;
            }
        }
        found.push((*id, after.get(used..used.checked_add(length)?)?.to_vec()));
        rest = &after[used + length..];
    }
    Some(found)
}

fn written(front: &[u8], sections: &[Section]) -> Vec<u8> {
    let mut out = front[..8.min(front.len())].to_vec();
    for (id, body) in sections {
        out.push(*id);
        let mut length = body.len();
        while length > 0x7f {
            out.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(body);
    }
    out
}

/// Damages a module: anywhere, or its sections as wholes, or inside of one whose length is put right again.
pub fn module(module: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut plain = module.to_vec();
    let Some(mut found) = sections(module).filter(|found| !found.is_empty() && !random.once_in(4)) else {
        bytes(&mut plain, other, random);
        return plain;
    };
    let at = random.below(found.len());
    let to = random.below(found.len());
    match random.below(10) {
        0 => found.swap(at, to),
        1 => found.insert(to, found[at].clone()),
        2 => drop(found.remove(at)),
        3 => {
            let lent = sections(other).unwrap_or_default();
            if let Some(section) = (!lent.is_empty()).then(|| random.one(&lent).clone()) {
                found.insert(at, section);
            }
        }
        4 => found[at].0 = random.below(14) as u8,
        // The front of a component says 0x0d where a module says 1; section 1 of it is a module.
        _ if module.get(4) == Some(&0x0d) && found[at].0 == 1 => {
            found[at].1 = self::module(&found[at].1, other, random);
        }
        5 => bytes(&mut found[at].1, other, random),
        // One bit: most of what is still valid is made this way.
        _ if !found[at].1.is_empty() => {
            let inside = random.below(found[at].1.len());
            found[at].1[inside] ^= 1 << random.below(8);
        }
        _ => {}
    }
    written(module, &found)
}
