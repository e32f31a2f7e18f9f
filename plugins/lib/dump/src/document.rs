//! Text as documents of YAML or JSON.

use serde_json::{Deserializer, Value};

use crate::room::{Measured, ROOM, within};

/// How many values the documents of a file may have: reading them takes room, too.
const VALUES: usize = 8_000_000;
/// How deep a document may be.
const DEPTH: usize = 100;
/// How much room the parser has for what is deep: bytes.
const STACK: usize = 32 << 20;
/// How many documents a file may have.
const DOCUMENTS: usize = 200_000;

/// Why a text is not read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    /// Its values take more memory than they may.
    #[error("the objects that are read take more than {} GiB of memory together, the most that is used for them", ROOM >> 30)]
    NoRoom,
    /// What is wrong with it, in half a sentence that quotes nothing of it: there may be Secrets in it.
    #[error("{0}")]
    Form(String),
}

/// Reads the documents of a text, which may take so much memory: bytes.
///
/// # Errors
/// There is no room for them, or what is wrong with the text.
pub(crate) fn documents(text: &[u8], room: usize) -> Result<Vec<Value>, Unread> {
    let text = std::str::from_utf8(text).map_err(|_| Unread::Form("it is not UTF-8".to_owned()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = || if text.trim_start().starts_with(['{', '[']) { json(text) } else { yaml(text) };
    // Documents as deep as that need more room than the thread may have that reads them.
    let read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || within(room, read));
        thread.ok().and_then(|thread| thread.join().ok())
    });
    let read = read.ok_or_else(|| Unread::Form("this machine has no room to read it".to_owned()))?;
    read.ok_or(Unread::NoRoom)?.map_err(Unread::Form)
}

fn json(text: &str) -> Result<Vec<Value>, String> {
    let mut values = Vec::new();
    for value in Deserializer::from_str(text).into_iter() {
        let Measured(value) =
            value.map_err(|error: serde_json::Error| format!("it is not valid JSON at line {}", error.line()))?;
        if values.len() >= DOCUMENTS {
            return Err(format!("it has more than {DOCUMENTS} documents"));
        }
        values.push(value);
    }
    Ok(values)
}

fn yaml(text: &str) -> Result<Vec<Value>, String> {
    let options = serde_saphyr::options! {
        // As kubectl reads it.
        legacy_octal_numbers: true,
        strict_booleans: false,
        budget: serde_saphyr::budget! {
            max_events: VALUES * 2,
            max_nodes: VALUES,
            max_depth: DEPTH,
            max_documents: DOCUMENTS,
            max_total_scalar_bytes: text.len(),
            // kubectl writes none, and a few of them stand for any number of values.
            max_aliases: 0,
            max_anchors: 0,
            max_merge_keys: 0,
        },
    };
    let read: Result<Vec<Measured>, _> = serde_saphyr::from_multiple_with_options(text, options);
    let read = read.map(|values| values.into_iter().map(|Measured(value)| value).collect());
    read.map_err(|error| match error.location() {
        Some(location) => format!("it is not YAML as kubectl writes it, at line {}", location.line()),
        None => "it is not YAML as kubectl writes it".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(text: &[u8]) -> Result<Vec<Value>, Unread> {
        super::documents(text, ROOM)
    }

    #[test]
    fn a_few_characters_that_take_much_memory_are_refused_in_either_form() {
        let (json, flow) = (format!("[{}0]", "{\"\":0},".repeat(50_000)), "- {'': 0}\n".repeat(50_000));
        for text in [json.as_str(), &flow, &"{\"\":0}".repeat(50_000)] {
            assert_eq!(super::documents(text.as_bytes(), 30 << 20), Err(Unread::NoRoom));
            assert!(super::documents(text.as_bytes(), 50 << 20).is_ok());
        }
        let many = format!("{{}}{}", " 0".repeat(DOCUMENTS));
        assert_eq!(documents(many.as_bytes()).unwrap_err().to_string(), "it has more than 200000 documents");
    }

    #[test]
    fn values_of_yaml_are_those_of_its_core_schema() {
        let text =
            "a: [yes, true, 017, 0x1f, 1.5, ~, '1', 18446744073709551615, -1, 2026-03-01T12:00:00Z]\n1: |\n  x\n  y\n";
        let read = documents(text.as_bytes()).unwrap();
        let plain: Vec<Value> = serde_saphyr::from_multiple_with_options(
            text,
            serde_saphyr::options! {
                legacy_octal_numbers: true,
                strict_booleans: false,
            },
        )
        .unwrap();
        assert_eq!(read, plain);
    }

    #[test]
    fn documents_of_both_forms_are_read() {
        assert_eq!(documents(b"a: 1\n---\nb: [x]\n").unwrap().len(), 2);
        assert_eq!(documents(b"{\"a\": 1}\n{\"b\": 2}\n").unwrap().len(), 2);
        assert_eq!(documents("\u{feff}a: 1\n".as_bytes()).unwrap().len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_without_a_word_of_the_text() {
        let bomb = format!(
            "a: &a [x, x]\n{}",
            (b'b'..=b'z')
                .map(|to| {
                    let (from, to) = (char::from(to - 1), char::from(to));
                    format!("{to}: &{to} [*{from}, *{from}, *{from}, *{from}, *{from}, *{from}, *{from}, *{from}]\n")
                })
                .collect::<String>()
        );
        let deep = format!("{}canary", "- ".repeat(5000));
        let deep_json = format!("{}canary", "[".repeat(5000));
        for text in
            [bomb.as_str(), "a: *canary", "<<: {canary: 1}", "canary: [", "{\"canary\": canary}", &deep, &deep_json]
        {
            let why = documents(text.as_bytes()).unwrap_err().to_string();
            assert!(!why.contains("canary") && why.starts_with("it is not "), "{why}");
        }
        assert_eq!(documents(b"\xff").unwrap_err().to_string(), "it is not UTF-8");
    }
}
