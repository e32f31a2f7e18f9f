//! Where the members of a request begin and end.
//!
//! Most policies look at one part of a request. Finding its bounds takes a few instructions for each byte, parsing it
//! many, so the others are passed over here. What is found is parsed, and thereby checked, by whoever looks at it.

/// Calls `member` with each key and value of an object, as they stand in the text. `None` when the text is no object.
pub(crate) fn members<'a>(json: &'a str, mut member: impl FnMut(&'a str, &'a str)) -> Option<()> {
    let bytes = json.as_bytes();
    let mut at = expect(bytes, space(bytes, 0), b'{')?;
    at = space(bytes, at);
    if bytes.get(at) == Some(&b'}') {
        return end(bytes, at + 1);
    }
    loop {
        let key = at + 1;
        at = string(bytes, at)?;
        // The keys of the contract hold no escapes; one that does is none of them.
        let name = json.get(key..at - 1)?;
        at = space(bytes, expect(bytes, space(bytes, at), b':')?);
        let start = at;
        at = value(bytes, at)?;
        member(name, json.get(start..at)?);
        at = space(bytes, at);
        match bytes.get(at)? {
            b',' => at = space(bytes, at + 1),
            b'}' => return end(bytes, at + 1),
            _ => return None,
        }
    }
}

fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
        at += 1;
    }
    at
}

fn expect(bytes: &[u8], at: usize, byte: u8) -> Option<usize> {
    (bytes.get(at) == Some(&byte)).then_some(at + 1)
}

fn end(bytes: &[u8], at: usize) -> Option<()> {
    (space(bytes, at) == bytes.len()).then_some(())
}

/// Behind the string that begins here.
fn string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = expect(bytes, at, b'"')?;
    loop {
        // Sixteen bytes at once where the target has such instructions.
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Behind the value that begins here.
fn value(bytes: &[u8], mut at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => return string(bytes, at),
        b'{' | b'[' => {}
        _ => {
            let rest = bytes.get(at..)?;
            let length = rest.iter().position(|byte| b",}] \n\t\r".contains(byte)).unwrap_or(rest.len());
            return (length > 0).then_some(at + length);
        }
    }
    let mut depth = 0_usize;
    loop {
        let rest = bytes.get(at..)?;
        let (skipped, byte) = rest.iter().enumerate().find(|(_, byte)| is_structure(**byte))?;
        at += skipped;
        match byte {
            b'"' => at = string(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            _ => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
    }
}

/// Quotes and brackets. `[` and `]` differ from `{` and `}` in one bit, and so do no other characters of JSON outside
/// strings.
fn is_structure(byte: u8) -> bool {
    byte == b'"' || matches!(byte | 0x20, b'{' | b'}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(json: &str) -> Option<Vec<(&str, &str)>> {
        let mut found = Vec::new();
        members(json, |key, value| found.push((key, value)))?;
        Some(found)
    }

    #[test]
    fn members_are_found_as_they_stand() {
        assert_eq!(all(" { } "), Some(Vec::new()));
        let json = r#"{ "a" : "x \" } ," , "b":{"c":[1,{"d":"]}"}],"e":"\\"},"f":-1.5e3 ,"g":null,"h":[]}"#;
        let found = all(json).unwrap();
        let expected = [
            ("a", r#""x \" } ,""#),
            ("b", r#"{"c":[1,{"d":"]}"}],"e":"\\"}"#),
            ("f", "-1.5e3"),
            ("g", "null"),
            ("h", "[]"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_object_is_none() {
        for json in [
            "",
            "[]",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":1,}",
            "{\"a\":1}x",
            "{\"a\":[1}",
            "{a:1}",
            "{\"a\":\"",
            "{\"a\":\"\\",
            "{\"a\" 1}",
            "\"a\"",
            "{\"a\":[[]",
            "{\"a\":1 2}",
        ] {
            // Brackets of two kinds may be mixed up here: the parser of that part refuses it.
            let mixed = json == "{\"a\":[1}";
            assert!(all(json).is_none() || mixed, "{json}");
        }
    }
}
