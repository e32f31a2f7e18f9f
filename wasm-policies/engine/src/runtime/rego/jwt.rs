//! Built-in functions about tokens (RFC 7519): what they say, and whether they were made with a shared secret.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{EagerHash, Hmac, KeyInit as _, Mac as _};
use serde::de::IgnoredAny;

use super::term::Term;
use super::work::Work;
use crate::digest::hex;

/// Of a byte of a token, of which all are decoded, read and written.
const BYTE: u64 = 200;

const DECODER: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The three parts of a token, as they are written.
struct Token<'t> {
    header: &'t str,
    payload: &'t str,
    signature: &'t str,
}

impl<'t> Token<'t> {
    fn read(token: &'t Term, work: &mut Work) -> Result<Self, String> {
        let text = token.text()?;
        work.charge((text.len() as u64).saturating_mul(BYTE))?;
        let mut parts = text.split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(header), Some(payload), Some(signature), None) => Ok(Self { header, payload, signature }),
            _ => Err("a token has three parts".to_owned()),
        }
    }

    /// What its header says. What is encrypted, or holds another token, is not supported.
    fn header(&self) -> Result<Term, String> {
        let header = object(self.header)?;
        let member = |name: &str| {
            let Term::Object(members) = &header else { return None };
            members.iter().find(|(key, _)| matches!(key, Term::Text(key) if key == name)).map(|(_, value)| value)
        };
        let nested = match member("cty") {
            None => false,
            Some(Term::Text(kind)) => kind.eq_ignore_ascii_case("JWT"),
            Some(_) => true,
        };
        match member("enc").is_some() || nested {
            true => Err("tokens that are encrypted, or hold others, are not supported".to_owned()),
            false => Ok(header),
        }
    }

    fn algorithm(&self) -> Result<String, String> {
        let Term::Object(members) = self.header()? else {
            return Err("a header of a token must be an object".to_owned());
        };
        let algorithm = members.into_iter().find(|(key, _)| matches!(key, Term::Text(key) if key == "alg"));
        match algorithm {
            Some((_, Term::Text(algorithm))) => Ok(algorithm),
            _ => Err("a header of a token names no algorithm".to_owned()),
        }
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, String> {
    DECODER.decode(part).map_err(|_| "a part of a token is no base64url".to_owned())
}

/// An object of JSON in which no name stands twice: readers would disagree.
fn object(part: &str) -> Result<Term, String> {
    let bad = || "a part of a token must be a JSON object that has no name twice".to_owned();
    let bytes = decoded(part)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| bad())?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|_| bad())?;
    let read = Term::read(text)?;
    match matches!(read, Term::Object(_)) && is_unique(&read) {
        true => Ok(read),
        false => Err(bad()),
    }
}

fn is_unique(term: &Term) -> bool {
    match term {
        Term::Array(members) | Term::Set(members) => members.iter().all(is_unique),
        Term::Object(members) => {
            let twice = members.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a.same(b)));
            !twice && members.iter().all(|(_, value)| is_unique(value))
        }
        _ => true,
    }
}

/// `io.jwt.decode`: what a token says, whoever made it: header, payload, and the signature in hexadecimal.
pub(super) fn decode(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [token] = values else { return Err("it takes one value".to_owned()) };
    let token = Token::read(token, work)?;
    let parts = [token.header()?, object(token.payload)?, Term::Text(hex(&decoded(token.signature)?))];
    Ok(Term::Array(parts.to_vec()))
}

/// `io.jwt.verify_hs256` and its like: whether a token was made with a secret.
pub(super) fn verify<D: EagerHash>(algorithm: &str, values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [token, secret] = values else { return Err("it takes two values".to_owned()) };
    let (token, secret) = (Token::read(token, work)?, secret.text()?);
    let (signature, named) = (decoded(token.signature)?, token.algorithm()?);
    let mac = Hmac::<D>::new_from_slice(secret.as_bytes()).map_err(|error| error.to_string())?;
    let mac = mac.chain_update(token.header).chain_update(".").chain_update(token.payload);
    match (mac.verify_slice(&signature).is_ok(), named == algorithm) {
        (true, false) => Err(format!("a token that was made with {algorithm} names another algorithm")),
        (made, _) => Ok(Term::Bool(made)),
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Sha256, Sha512};

    use super::*;

    fn made<D: EagerHash>(header: &str, payload: &str, secret: &str) -> Term {
        let text = format!("{}.{}", DECODER.encode(header).replace('=', ""), DECODER.encode(payload).replace('=', ""));
        let mac = Hmac::<D>::new_from_slice(secret.as_bytes()).unwrap().chain_update(&text).finalize().into_bytes();
        Term::Text(format!("{text}.{}", DECODER.encode(mac).replace('=', "")))
    }

    fn verified(token: Term, secret: &str) -> Result<Term, String> {
        verify::<Sha256>("HS256", &[token, Term::Text(secret.to_owned())], &mut Work::new(1_000_000))
    }

    #[test]
    fn a_token_is_right_with_its_secret_and_its_algorithm_alone() {
        let right = made::<Sha256>(r#"{"alg":"HS256"}"#, "{}", "secret");
        assert_eq!(verified(right.clone(), "secret"), Ok(Term::Bool(true)));
        assert_eq!(verified(right, "other"), Ok(Term::Bool(false)));
        assert_eq!(verified(made::<Sha512>(r#"{"alg":"HS512"}"#, "{}", "secret"), "secret"), Ok(Term::Bool(false)));
        assert_eq!(verified(Term::Text("eyJhbGciOiJub25lIn0.e30.".to_owned()), "secret"), Ok(Term::Bool(false)));
        for header in
            [r#"{"alg":"HS512"}"#, r#"{"alg":"none"}"#, r#"{"alg":5}"#, "{}", "[]", r#"{"alg":"HS256","enc":""}"#]
        {
            assert!(verified(made::<Sha256>(header, "{}", "secret"), "secret").is_err(), "{header}");
        }
    }

    #[test]
    fn what_a_token_says_is_read_in_one_way() {
        let read = |header: &str, payload: &str| {
            decode(&[made::<Sha256>(header, payload, "s")], &mut Work::new(1_000_000)).map(|term| term.to_string())
        };
        let said = read(r#"{"alg":"HS256"}"#, r#"{"n":1.50,"a":[null]}"#).unwrap();
        assert!(said.starts_with(r#"[{"alg": "HS256"}, {"a": [null], "n": 1.50}, ""#), "{said}");
        for (header, payload) in [
            (r#"{"alg":"HS256"}"#, r#"{"a":1,"a":2}"#),
            (r#"{"alg":"HS256"}"#, r#"{"b":[{"a":1,"\u0061":2}]}"#),
            (r#"{"alg":"HS256"}"#, "[]"),
            (r#"{"alg":"HS256"}"#, "{1, 2}"),
            (r#"{"alg":"HS256","cty":"jwt"}"#, "{}"),
            (r#"{"alg":"HS256","cty":5}"#, "{}"),
            (r#"{"alg":"HS256","enc":"x"}"#, "{}"),
        ] {
            assert!(read(header, payload).is_err(), "{header} {payload}");
        }
        for text in ["", "a.b", "e30.e30.a.b", "!.e30.e30"] {
            assert!(decode(&[Term::Text(text.to_owned())], &mut Work::new(1_000_000)).is_err(), "{text}");
        }
    }
}
