//! Built-in functions that write texts in other ways, and hashes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{EagerHash, Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value};
use sha1::Sha1;
use sha2::Digest as _;
use subtle::ConstantTimeEq as _;

use super::term::Term;

use crate::digest::{digest, hex};

/// `hex.encode`.
pub(super) fn hex_encode(text: &Term) -> Result<Value, String> {
    Ok(hex(text.text()?.as_bytes()).into())
}

/// `hex.decode`.
pub(super) fn hex_decode(text: &Term) -> Result<Value, String> {
    let bad = || format!("{} is no hexadecimal", text.shown());
    let digits = text.text()?.as_bytes();
    if digits.len() % 2 != 0 {
        return Err(bad());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect::<Option<Vec<u8>>>();
    utf8(bytes.ok_or_else(bad)?)
}

/// Strings of Rego are UTF-8.
fn utf8(bytes: Vec<u8>) -> Result<Value, String> {
    String::from_utf8(bytes).map(Value::from).map_err(|_| "what comes out is not UTF-8".to_owned())
}

/// `crypto.sha256`, in lower-case hexadecimal.
pub(super) fn sha256(text: &Term) -> Result<Value, String> {
    Ok(digest(text.text()?.as_bytes()).into())
}

/// `crypto.sha1`, in lower-case hexadecimal.
pub(super) fn sha1(text: &Term) -> Result<Value, String> {
    Ok(hex(&Sha1::digest(text.text()?.as_bytes())).into())
}

/// `crypto.hmac.sha256` and its like: a message and a key, in lower-case hexadecimal.
pub(super) fn hmac<D: EagerHash>(message: &Term, key: &Term) -> Result<Value, String> {
    let mac = Hmac::<D>::new_from_slice(key.text()?.as_bytes()).map_err(|error| error.to_string())?;
    Ok(hex(&mac.chain_update(message.text()?.as_bytes()).finalize().into_bytes()).into())
}

/// `crypto.hmac.equal`: how long it takes tells nothing of where they differ.
pub(super) fn hmac_equal(a: &Term, b: &Term) -> Result<Value, String> {
    Ok(bool::from(a.text()?.as_bytes().ct_eq(b.text()?.as_bytes())).into())
}

/// `base64url.encode_no_pad`.
pub(super) fn base64url(text: &Term) -> Result<Value, String> {
    Ok(URL_SAFE_NO_PAD.encode(text.text()?).into())
}

/// `urlquery.encode`.
pub(super) fn query_encode(text: &Term) -> Result<Value, String> {
    Ok(encoded(text.text()?).into())
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        match byte {
            b' ' => out.push('+'),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            other => {
                out.push('%');
                out.push_str(&hex(&[other]).to_ascii_uppercase());
            }
        }
        out
    })
}

/// `urlquery.decode`.
pub(super) fn query_decode(text: &Term) -> Result<Value, String> {
    let bad = || format!("{} is no part of a query", text.shown());
    let given = text.text()?.as_bytes();
    let mut out = Vec::with_capacity(given.len());
    let mut bytes = given.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let mut digit = || bytes.next().and_then(|byte| char::from(*byte).to_digit(16));
                let value = digit().zip(digit()).map(|(high, low)| high << 4 | low).ok_or_else(bad)?;
                out.push(u8::try_from(value).map_err(|_| bad())?);
            }
            other => out.push(*other),
        }
    }
    utf8(out)
}

/// `urlquery.encode_object`: members sorted by name, each a string or several.
pub(super) fn query_encode_object(object: &Term) -> Result<Value, String> {
    let Term::Object(members) = object else { return Err(format!("{} must be an object", object.shown())) };
    let mut pairs = Vec::new();
    for (name, value) in members {
        let name = encoded(name.text()?);
        for value in value.members() {
            pairs.push(format!("{name}={}", encoded(value.text()?)));
        }
    }
    Ok(pairs.join("&").into())
}

/// `urlquery.decode_object`: each member is the array of its values.
pub(super) fn query_decode_object(text: &Term) -> Result<Value, String> {
    let mut found: Map<String, Value> = Map::new();
    for pair in text.text()?.split('&').filter(|pair| !pair.is_empty()) {
        if pair.contains(';') {
            return Err(format!("{} is no query", text.shown()));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let [name, value] = [name, value].map(|part| query_decode(&Term::Text(part.to_owned())));
        let (Value::String(name), value) = (name?, value?) else { continue };
        match found.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(values) => values.push(value),
            _ => continue,
        }
    }
    Ok(Value::Object(found))
}
