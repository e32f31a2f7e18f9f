//! Patterns of names: `*` is any text, `?` any byte, `[a-z0-9]` one of these and `[!…]` none of them.

/// Whether a pattern is well-formed.
///
/// # Errors
/// Says what is wrong with it.
pub fn check(pattern: &str) -> Result<(), String> {
    let mut rest = pattern.as_bytes();
    while let Some(&first) = rest.first() {
        if first == b'[' && class(rest).is_none() {
            return Err(format!("the pattern {pattern:?} has a [ without its ]"));
        }
        rest = &rest[step(rest)..];
    }
    if pattern.is_empty() { Err("a pattern is empty".to_owned()) } else { Ok(()) }
}

/// Whether a text is of the pattern from its first to its last character. Work is bounded by the product of lengths.
pub fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.as_bytes(), text.as_bytes());
    // Where to try on: behind the last star, one byte of the text later.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some((b'*', rest)) = pattern.split_first() {
            pattern = rest;
            retry = Some((pattern, text));
        } else if let Some((_, rest)) = text.split_first().filter(|(byte, _)| takes(pattern, **byte)) {
            pattern = &pattern[step(pattern)..];
            text = rest;
        } else if pattern.is_empty() && text.is_empty() {
            return true;
        } else {
            let Some((after, from)) = retry else { return false };
            let Some((_, later)) = from.split_first() else { return false };
            (pattern, text) = (after, later);
            retry = Some((after, later));
        }
    }
}

/// Whether a text is of any of the patterns.
pub fn any<P: AsRef<str>>(patterns: &[P], text: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern.as_ref(), text))
}

fn takes(pattern: &[u8], byte: u8) -> bool {
    match pattern.first() {
        None => false,
        Some(b'?') => true,
        Some(b'[') => class(pattern).is_some_and(|class| is_of(class, byte)),
        Some(&other) => other == byte,
    }
}

/// How long the first piece of a pattern is.
fn step(pattern: &[u8]) -> usize {
    match pattern.first() {
        Some(b'[') => class(pattern).map_or(1, |class| class.len() + 2),
        _ => 1,
    }
}

/// What stands between brackets.
fn class(pattern: &[u8]) -> Option<&[u8]> {
    let inner = pattern.get(1..)?;
    let end = inner.iter().position(|byte| *byte == b']').filter(|end| *end > 0)?;
    Some(&inner[..end])
}

fn is_of(class: &[u8], byte: u8) -> bool {
    let (mut left, wanted) = match class.split_first() {
        Some((b'!', rest)) => (rest, false),
        _ => (class, true),
    };
    let mut found = false;
    while let Some(&from) = left.first() {
        if let [from, b'-', to, ..] = *left {
            found |= (from..=to).contains(&byte);
            left = &left[3..];
        } else {
            found |= from == byte;
            left = &left[1..];
        }
    }
    found == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_whole_texts() {
        for (pattern, text) in [
            ("prod-*", "prod-1"),
            ("*", ""),
            ("a*b*c", "aXbXbc"),
            ("?-[a-c0-9]", "x-b"),
            ("[!x]y", "ay"),
            ("*-dev", "a-dev-dev"),
            ("*[0-9]", "c10"),
            ("a**b", "ab"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("prod-*", "test-1"),
            ("prod", "prod-1"),
            ("prod-1", "prod"),
            ("?", ""),
            ("[a-c]", "d"),
            ("[!a-c]", "b"),
            ("*-dev", "a-dev-x"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
        assert!(any(&["a", "b*"], "bc") && !any(&["a"], "b"));
    }

    #[test]
    fn patterns_are_checked() {
        assert!(check("[a-").is_err() && check("[]").is_err() && check("").is_err());
        assert_eq!(check("a-*[0-9]?"), Ok(()));
    }

    #[test]
    fn many_stars_end() {
        assert!(!fits(&"*a".repeat(30), &"a".repeat(29)));
    }
}
