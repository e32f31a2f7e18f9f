//! Certificate requests.

use csr_fixtures::{Fixture, Kind, pem};
use ocm_core::csr::{Content, Signature};

use crate::support::Random;
use crate::{fuzz, mutate};

/// What the signature covers: the first element of the outer sequence, as it is written.
fn signed(der: &[u8]) -> Option<&[u8]> {
    let (_, inside) = element(der)?;
    let (whole, _) = element(inside)?;
    Some(whole)
}

/// An element of DER and its content.
fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = usize::from(*der.get(1)?);
    let (front, length) = match first {
        0..=0x7f => (2, first),
        0x81..=0x84 => {
            let bytes = der.get(2..2 + (first - 0x80))?;
            (2 + bytes.len(), bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
        }
        _ => return None,
    };
    let end = front.checked_add(length)?;
    Some((der.get(..end)?, der.get(front..end)?))
}

/// Requests as agents make them, of every kind of key, and some that ask for more.
fn right() -> Vec<Vec<u8>> {
    let agent = || Fixture::agent("c1", "a1");
    let mut requests = vec![
        agent().der(),
        agent().dns("hub.example.com").ip([10, 0, 0, 1]).email("a@example.com").uri("spiffe://a").der(),
        agent().organization("system:masters").challenge_password("secret").der(),
        Fixture::addon("c1", "search").no_extensions().der(),
    ];
    for kind in [Kind::P384, Kind::P521, Kind::Ed25519, Kind::Rsa(2048)] {
        requests.push(agent().kind(kind).der());
    }
    requests
}

#[test]
fn damaged_certificate_requests() {
    let right = right();
    let known: Vec<(&[u8], Content)> = right
        .iter()
        .map(|der| {
            let content = Content::read(pem("CERTIFICATE REQUEST", der).as_bytes()).expect("it can be read");
            assert_eq!(content.signature, Signature::Valid);
            (signed(der).expect("it is DER"), content)
        })
        .collect();
    let make = |random: &mut Random| {
        let mut der = random.one(&right).clone();
        let other = random.one(&right);
        match random.below(8) {
            // What one asks for, with the signature of another.
            0 => {
                let (mine, theirs) = (signed(&der).map(<[u8]>::len), signed(other).map(<[u8]>::len));
                if let (Some(mine), Some(theirs)) = (mine, theirs) {
                    let front = if other[1] == 0x82 { 4 } else { 3 };
                    let own = if der[1] == 0x82 { 4 } else { 3 };
                    let made = [&der[own..own + mine], &other[front + theirs..]].concat();
                    let length = u16::try_from(made.len()).unwrap_or(u16::MAX).to_be_bytes();
                    der = [&[0x30, 0x82, length[0], length[1]], made.as_slice()].concat();
                }
            }
            // One bit, which leaves the layout as it is more often than not.
            1..=4 => {
                let at = random.below(der.len());
                der[at] ^= 1 << random.below(8);
            }
            _ => mutate::bytes(&mut der, other, random),
        }
        der
    };
    let (mut unreadable, mut invalid, mut valid) = (0, 0, 0);
    fuzz("requests", 3_000, make, |_, der| match Content::read(pem("CERTIFICATE REQUEST", der).as_bytes()) {
        Err(_) => unreadable += 1,
        Ok(content) if content.signature == Signature::Valid => {
            valid += 1;
            let signed = signed(der).expect("what can be read is DER");
            let original = known.iter().find(|(original, _)| *original == signed);
            let (_, original) = original.expect("nothing is signed but what was signed");
            assert_eq!(content, *original, "the same is signed, and something else is read");
        }
        Ok(_) => invalid += 1,
    });
    crate::say(&format!("requests: {unreadable} unreadable, {invalid} with a wrong signature, {valid} as they were"));
    assert!(unreadable > 0 && invalid > 0, "{unreadable} {invalid} {valid}");
}

#[test]
fn damaged_armour_of_certificate_requests() {
    let right = right();
    let known: Vec<Content> = right
        .iter()
        .map(|der| Content::read(pem("CERTIFICATE REQUEST", der).as_bytes()).expect("it can be read"))
        .collect();
    let make = |random: &mut Random| {
        let mut text = pem("CERTIFICATE REQUEST", random.one::<Vec<u8>>(&right)).into_bytes();
        let other = pem("CERTIFICATE REQUEST", random.one::<Vec<u8>>(&right));
        match random.below(6) {
            0 => text.extend_from_slice(other.as_bytes()),
            1 => {
                let line_end: &&str = random.one(&["\r\n", " \n", "\r", "\n\n"]);
                text = String::from_utf8_lossy(&text).replace('\n', line_end).into_bytes();
            }
            2 => {
                let front: &&str = random.one(&[" \n", "Name: x\n", "-----BEGIN X-----\n", "\u{feff}"]);
                drop(text.splice(..0, front.bytes()));
            }
            _ => mutate::bytes(&mut text, other.as_bytes(), random),
        }
        text
    };
    fuzz("armour", 3_000, make, |_, text| {
        if let Ok(content) = Content::read(text)
            && content.signature == Signature::Valid
        {
            assert!(known.contains(&content), "something is read that nobody signed");
        }
    });
}
