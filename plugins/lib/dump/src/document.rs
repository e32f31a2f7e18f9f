//! Text as documents of YAML or JSON.

use serde_json::Value;

/// How many values the documents of a file may have: small ones take more room in memory than in the file.
const VALUES: usize = 8_000_000;
/// How deep a document may be.
const DEPTH: usize = 100;
/// How much room the parser has for what is deep: bytes.
const STACK: usize = 32 << 20;
/// How many documents a file may have.
const DOCUMENTS: usize = 200_000;

/// Reads the documents of a text.
///
/// # Errors
/// What is wrong with it, in half a sentence that quotes nothing of it: there may be Secrets in it.
pub(crate) fn documents(text: &[u8]) -> Result<Vec<Value>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['{', '[']) {
        // At most as many values as that; its parser limits how deep they are.
        if text.bytes().filter(|byte| b",[{".contains(byte)).count() > VALUES {
            return Err(format!("it has more than {VALUES} values"));
        }
        let values = serde_json::Deserializer::from_str(text).into_iter().collect::<Result<Vec<Value>, _>>();
        return values.map_err(|error| format!("it is no JSON at line {}", error.line()));
    }
    // Documents as deep as that need more room than the thread may have that reads them.
    let read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || yaml(text));
        thread.ok().and_then(|thread| thread.join().ok())
    });
    read.unwrap_or_else(|| Err("this machine has no room to read it".to_owned()))
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
        },
    };
    let read: Result<Vec<Value>, _> = serde_saphyr::from_multiple_with_options(text, options);
    read.map_err(|error| match error.location() {
        Some(location) => format!("it is no YAML that kubectl writes, at line {}", location.line()),
        None => "it is no YAML that kubectl writes".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for text in [bomb.as_str(), "a: *canary", "canary: [", "{\"canary\": canary}", &deep, &deep_json] {
            let why = documents(text.as_bytes()).unwrap_err();
            assert!(!why.contains("canary") && why.starts_with("it is no "), "{why}");
        }
        assert_eq!(documents(b"\xff").unwrap_err(), "it is not UTF-8");
    }
}
