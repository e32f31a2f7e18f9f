//! The built-in function that reads YAML: `yaml.unmarshal`.
//!
//! Readers of YAML disagree about words without quotes. Those that the reader of Rego may read as something else are
//! refused, as are tags, anchors, aliases and merged maps.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Error, NonFiniteFloatPolicy, Spanned};

use super::term::Term;
use super::work::Work;

/// Documents are read on the stack of whoever decides.
const DEEPEST: usize = 24;
/// Values of a document, each of which takes some hundred bytes.
const MOST: usize = 50_000;
/// Of a byte.
const BYTE: u64 = 600;

/// `yaml.unmarshal`.
pub(super) fn unmarshal(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [text] = values else { return Err("it takes one value".to_owned()) };
    let text = text.text()?;
    read(text, work)?.map_err(|error| match error.location() {
        Some(location) => format!("this YAML cannot be read, at line {}", location.line()),
        None => "this YAML cannot be read".to_owned(),
    })
}

fn read(text: &str, work: &mut Work) -> Result<Result<Term, Error>, String> {
    work.charge((text.len() as u64).saturating_mul(BYTE))?;
    if text.lines().any(is_exotic) || text.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        return Ok(Err(Error::custom("a line is read in different ways")));
    }
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        reject_unsupported_tags: true,
        merge_keys: MergeKeyPolicy::Error,
        duplicate_keys: DuplicateKeyPolicy::Error,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            max_nodes: MOST,
            max_documents: 1,
            max_aliases: 0,
            max_anchors: 0,
        },
    };
    let read = serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options);
    let read = read.and_then(|raw| term(raw, text));
    Ok(read.and_then(|term| match term {
        Term::Text(_) => Err(Error::custom("a text alone is read in different ways")),
        other => Ok(other),
    }))
}

/// Whether readers disagree about such a line.
fn is_exotic(line: &str) -> bool {
    let begins = line.trim_start_matches([' ', '-', '?', ':']);
    // Within brackets, some take such a colon for a part of a word.
    let colon = [":]", ":}", ":,"].iter().any(|colon| line.contains(colon));
    line.starts_with('%') || line.starts_with("...") || begins.starts_with('\t') || colon
}

/// A value as the library reads it.
enum Raw {
    Nothing,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

fn term(raw: Spanned<Raw>, text: &str) -> Result<Term, Error> {
    let span = raw.defined.span();
    let part = span.byte_offset().zip(span.byte_len());
    let part = part.and_then(|(at, length)| Some((usize::try_from(at).ok()?, usize::try_from(length).ok()?)));
    let written = part.and_then(|(at, length)| text.get(at..at.checked_add(length)?)).unwrap_or_default().trim();
    let sure = |sure: bool, term: Term| match sure {
        true => Ok(term),
        false => Err(Error::custom("a word without quotes is read in different ways")),
    };
    match raw.value {
        Raw::Nothing => sure(["", "~", "null", "Null", "NULL"].contains(&written), Term::Null),
        Raw::Bool(value) => {
            let words = if value { ["true", "True", "TRUE"] } else { ["false", "False", "FALSE"] };
            sure(words.contains(&written), Term::Bool(value))
        }
        Raw::Number(number) => sure(is_plain_number(written), Term::Number(number)),
        Raw::Text(value) => sure(is_surely_text(written, &value, text), Term::Text(value)),
        Raw::List(entries) => {
            entries.into_iter().map(|entry| term(entry, text)).collect::<Result<_, _>>().map(Term::Array)
        }
        Raw::Map(members) => {
            let mut all = Vec::with_capacity(members.len());
            for (key, value) in members {
                match term(key, text)? {
                    key @ Term::Text(_) => all.push((key, term(value, text)?)),
                    _ => return Err(Error::custom("the name of a member must be a string")),
                }
            }
            all.sort_by(|(a, _), (b, _)| a.order(b));
            Ok(Term::Object(all))
        }
    }
}

/// Whether everybody reads this as the same number.
fn is_plain_number(written: &str) -> bool {
    let digits = written.strip_prefix('-').unwrap_or(written);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let exact = digits.len() < 16 || written.parse::<i64>().is_ok();
    all_digits(whole) && all_digits(fraction) && (whole == "0" || !whole.starts_with('0')) && exact
}

/// Whether everybody reads this as this text.
fn is_surely_text(written: &str, value: &str, document: &str) -> bool {
    if written.starts_with('"') {
        // Some put two halves of a character together, and some do not know how JSON writes a slash.
        let half =
            |escape: &str| escape.to_ascii_lowercase().starts_with('d') && escape.as_bytes().get(1) >= Some(&b'8');
        return !written.split("\\u").skip(1).any(half) && !written.contains("\\/");
    }
    // At the end of a document without a last line break, some give a block one.
    let block_at_the_end = value.ends_with('\n') && !document.ends_with('\n');
    let nothing = value.is_empty() && !written.starts_with('\'');
    let punctuated = written.starts_with([':', '?']) || written.ends_with(':');
    !block_at_the_end && !nothing && !punctuated && !is_like_a_number(written)
}

/// Whether some could read this as a number.
fn is_like_a_number(written: &str) -> bool {
    let rest = written.strip_prefix(['+', '-']).unwrap_or(written);
    let mut before = ' ';
    let alien = rest.chars().any(|c| {
        let exponent = std::mem::replace(&mut before, c).eq_ignore_ascii_case(&'e');
        !(c.is_ascii_digit() || "._eE".contains(c) || ("+-".contains(c) && exponent))
    });
    let prefixed = ["0x", "0o", "0b"].iter().any(|prefix| rest.to_ascii_lowercase().starts_with(prefix));
    let digits = rest.contains(|c: char| c.is_ascii_digit());
    digits && (prefixed || (!alien && rest.matches('.').count() < 2))
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Raw, E> {
                Ok(Raw::Nothing)
            }

            fn visit_none<E>(self) -> Result<Raw, E> {
                Ok(Raw::Nothing)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
                deserializer.deserialize_any(self)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::Number(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
                Ok(Raw::Number(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::Number(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
                Ok(Raw::Text(value.to_owned()))
            }

            fn visit_string<E>(self, value: String) -> Result<Raw, E> {
                Ok(Raw::Text(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = entries.next_element()? {
                    all.push(entry);
                }
                Ok(Raw::List(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Raw, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = members.next_entry()? {
                    all.push(member);
                }
                Ok(Raw::Map(all))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<String, String> {
        let answer = unmarshal(&[Term::Text(text.to_owned())], &mut Work::new(1_000_000_000))?;
        Ok(answer.to_string())
    }

    /// As OPA 1.22 reads them.
    #[test]
    fn documents_are_read_as_opa_reads_them() {
        for (text, value) in [
            ("", "null"),
            ("a: 1\nb: [x, 'y', \"z\\n\"]\n", r#"{"a": 1, "b": ["x", "y", "z\n"]}"#),
            ("- a\n- b: 1\n  c: ~\n", r#"["a", {"b": 1, "c": null}]"#),
            ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", r#"{"a": "x\ny\n", "b": "x y"}"#),
            ("a: yes\non: No\ny: n\n", r#"{"a": "yes", "on": "No", "y": "n"}"#),
            ("a: True\nb: FALSE\nc: NULL\n", r#"{"a": true, "b": false, "c": null}"#),
            ("a: -1.5\nb: 9223372036854775807\n", r#"{"a": -1.5, "b": 9223372036854775807}"#),
            ("a: 2026-01-01\nb: 10.0.0.1\nc: 100Mi\n", r#"{"a": "2026-01-01", "b": "10.0.0.1", "c": "100Mi"}"#),
            (r#"{"a": [1, true, {"b": "5"}]}"#, r#"{"a": [1, true, {"b": "5"}]}"#),
        ] {
            assert_eq!(read_text(text).as_deref(), Ok(value), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_yaml_or_is_read_in_different_ways_is_refused() {
        for text in [
            "[",
            "a: b: c",
            "a: {",
            "a: \"x",
            "a: 1\n---\nb: 2",
            "a: 1\na: 2",
            "a: !!int \"5\"",
            "a: !foo x",
            "a: !",
            "<<: {a: 1}",
            "a: &x 1",
            "a: &x 1\nb: *x",
            "1: a",
            "true: a",
            "a: 017",
            "a: 0x1F",
            "a: 0o17",
            "a: 0b11",
            "a: 1_000",
            "a: +1",
            "a: 1e3",
            "a: .5",
            "a: .inf",
            "a: 1.",
            "a: 1e400",
            "a: nULL",
            "a: 12345678901234567890123",
            "a: |\n  x",
            "\ta: 1",
            "-\ta",
            "a:\n  \tb: 1",
            "%YAML 1.2\n---\na: 1",
            "...",
            "a: \"\\ud83d\\ude00\"",
            "a: \"\\/\"",
            "a: [b:]",
            "a: [:b]",
            "a: [?b]",
            "a: x\u{2028}y",
            "a text",
        ] {
            assert!(read_text(text).is_err(), "{text:?} is {:?}", read_text(text));
        }
    }

    #[test]
    fn neither_depth_nor_aliases_take_more_than_they_cost() {
        let bomb: String = (b'b'..=b'z')
            .map(|to| {
                let (from, to) = (char::from(to - 1), char::from(to));
                format!("{to}: &{to} [*{from}, *{from}, *{from}, *{from}]\n")
            })
            .collect();
        assert!(read_text(&format!("a: &a [x, x]\n{bomb}")).is_err());
        for deep in ["[".repeat(1 << 20), "{a: ".repeat(1 << 18), "- ".repeat(1 << 19), "? ".repeat(1 << 19)] {
            assert!(read_text(&deep).is_err());
        }
        assert!(read_text(&format!("{}{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST))).is_ok());
        assert!(read_text(&format!("[{}a]", "a,".repeat(MOST / 2))).is_ok());
        assert!(read_text(&format!("[{}a]", "a,".repeat(MOST))).is_err());
        let mut work = Work::new(1_000_000);
        assert!(unmarshal(&[Term::Text("- a\n".repeat(10_000))], &mut work).is_err());
        assert_eq!(work.spent(), u64::MAX, "its fuel is taken before it is read");
    }
}
