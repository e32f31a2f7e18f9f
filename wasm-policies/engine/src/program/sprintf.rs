//! The built-in function `sprintf` of Rego, for the patterns that messages are made with. Others are refused: a message
//! is no reason to guess.

use serde_json::Value;

/// Fills a pattern, written as a Rego string, with the members of an array, written as Rego.
pub(crate) fn sprintf(pattern: &str, values: &str) -> Result<String, String> {
    let pattern: String = serde_json::from_str(pattern).map_err(|_| "sprintf: the pattern is no string".to_owned())?;
    let mut values = members(values).ok_or_else(|| "sprintf: the values are no array".to_owned())?.into_iter();
    let mut out = String::new();
    let mut rest = pattern.as_str();
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let verb = rest[at + 1..].chars().next();
        let verb = verb.ok_or_else(|| "sprintf: the pattern ends with %".to_owned())?;
        rest = &rest[at + 1 + verb.len_utf8()..];
        if verb == '%' {
            out.push('%');
            continue;
        }
        let value = values.next();
        match (verb, value) {
            ('v' | 's' | 'd' | 'q', None) => out.push_str(&format!("%!{verb}(MISSING)")),
            ('v' | 's' | 'd' | 'q', Some(value)) => out.push_str(&one(verb, value)?),
            _ => return Err(format!("sprintf: %{verb} is not supported")),
        }
    }
    out.push_str(rest);
    if values.next().is_some() {
        return Err("sprintf: there are more values than the pattern names".to_owned());
    }
    Ok(out)
}

fn one(verb: char, value: &str) -> Result<String, String> {
    let unusual =
        || Err(format!("sprintf: %{verb} of {} is not supported", value.chars().take(64).collect::<String>()));
    match (verb, serde_json::from_str::<Value>(value)) {
        ('v' | 's', Ok(Value::String(text))) => Ok(text),
        ('q', Ok(Value::String(text))) if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => {
            Ok(format!("{text:?}").replace("\\'", "'"))
        }
        ('v' | 'd', Ok(Value::Number(number))) if number.is_i64() || number.is_u64() => Ok(number.to_string()),
        ('v', Ok(Value::Number(number))) => match number.as_f64() {
            Some(float) if float == 0.0 || (1e-4..1e21).contains(&float.abs()) => Ok(float.to_string()),
            _ => unusual(),
        },
        // Everything else is given as the text that Rego writes it with.
        ('v' | 's', Ok(Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_)) | Err(_)) => {
            Ok(spaced(value))
        }
        _ => unusual(),
    }
}

/// The members of an array as Rego writes it; there, sets stand in braces.
fn members(array: &str) -> Option<Vec<&str>> {
    let inner = array.trim().strip_prefix('[')?.strip_suffix(']')?;
    let mut found = Vec::new();
    let (mut depth, mut begun) = (0_usize, 0);
    for (at, letter) in outside_strings(inner) {
        match letter {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                found.push(inner[begun..at].trim());
                begun = at + 1;
            }
            _ => {}
        }
    }
    let last = inner[begun..].trim();
    if !last.is_empty() {
        found.push(last);
    }
    Some(found)
}

/// The letters that stand in no string.
fn outside_strings(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut inside, mut escaped) = (false, false);
    text.char_indices().filter(move |(_, letter)| {
        let was = inside;
        match letter {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ => {}
        }
        !was && *letter != '"'
    })
}

/// Puts a space behind each comma and colon, as Rego does when it writes for people.
fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut written = 0;
    for (at, _) in outside_strings(text).filter(|(_, letter)| matches!(letter, ',' | ':')) {
        out.push_str(&text[written..=at]);
        if !text[at + 1..].starts_with(' ') {
            out.push(' ');
        }
        written = at + 1;
    }
    out + &text[written..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_made() {
        let made = |pattern: &str, values: &str| sprintf(&format!("{pattern:?}"), values);
        assert_eq!(made("no dots: %v", r#"["a.b"]"#).unwrap(), "no dots: a.b");
        assert_eq!(made("%s of %d, 100%%", r#"["a\"],", 5]"#).unwrap(), "a\"], of 5, 100%");
        assert_eq!(made("%v", r#"[{"a":[1,2],"b":",:"}]"#).unwrap(), r#"{"a": [1, 2], "b": ",:"}"#);
        assert_eq!(made("%v %v", r#"[{"x","y"},set()]"#).unwrap(), r#"{"x", "y"} set()"#);
        assert_eq!(made("%v %v %v", "[1.5, true, null]").unwrap(), "1.5 true null");
        assert_eq!(made("%q", r#"["it's \"x\""]"#).unwrap(), r#""it's \"x\"""#);
        assert_eq!(made("%v %v", "[1]").unwrap(), "1 %!v(MISSING)");
        assert_eq!(made("nothing", "[]").unwrap(), "nothing");
    }

    #[test]
    fn what_is_not_known_is_no_message() {
        for (pattern, values) in
            [("%08.3f", "[1]"), ("%", "[]"), ("%d", "[\"x\"]"), ("a", "[1]"), ("%v", "7"), ("%v", "[1e40]")]
        {
            assert!(sprintf(&format!("{pattern:?}"), values).is_err(), "{pattern} {values}");
        }
        assert!(sprintf("5", "[]").is_err());
    }
}
