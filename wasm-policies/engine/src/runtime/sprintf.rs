//! The built-in function `sprintf` of Rego, for the patterns that messages are made with. Others are refused: a message
//! is no reason to guess.

use std::cmp::Ordering;

/// A value as Rego writes it. JSON has no sets.
#[derive(Clone, Debug, PartialEq)]
enum Term<'t> {
    Null,
    Bool(bool),
    Number(&'t str),
    /// With its quotes and escapes.
    Text(&'t str),
    Array(Vec<Term<'t>>),
    Object(Vec<(Term<'t>, Term<'t>)>),
    Set(Vec<Term<'t>>),
}

/// Fills a pattern, written as a Rego string, with the members of an array, written as Rego.
pub(crate) fn sprintf(pattern: &str, values: &str) -> Result<String, String> {
    let pattern: String = serde_json::from_str(pattern).map_err(|_| "sprintf: the pattern is no string".to_owned())?;
    let Some(Term::Array(values)) = read(values) else { return Err("sprintf: the values are no array".to_owned()) };
    let mut values = values.iter();
    let mut out = String::new();
    let mut rest = pattern.as_str();
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let verb = rest[at + 1..].chars().next();
        let verb = verb.ok_or_else(|| "sprintf: the pattern ends with %".to_owned())?;
        rest = &rest[at + 1 + verb.len_utf8()..];
        match verb {
            '%' => out.push('%'),
            'v' | 's' | 'd' | 'q' => match values.next() {
                None => out.push_str(&format!("%!{verb}(MISSING)")),
                Some(value) => out.push_str(&one(verb, value)?),
            },
            _ => return Err(format!("sprintf: %{verb} is not supported")),
        }
    }
    out.push_str(rest);
    match values.next() {
        None => Ok(out),
        Some(_) => Err("sprintf: there are more values than the pattern names".to_owned()),
    }
}

fn one(verb: char, value: &Term<'_>) -> Result<String, String> {
    let unusual = || {
        let shown: String = value.to_string().chars().take(64).collect();
        Err(format!("sprintf: %{verb} of {shown} is not supported"))
    };
    match (verb, value) {
        ('v' | 's', Term::Text(text)) => serde_json::from_str(text).or_else(|_| unusual()),
        // Quoted in the same way by JSON and by Go, as long as there is nothing special in it.
        ('q', Term::Text(text)) if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') && !text.contains("\\u") => {
            Ok((*text).to_owned())
        }
        ('v' | 'd', Term::Number(number)) if number.parse::<i64>().is_ok() => Ok((*number).to_owned()),
        ('v', Term::Number(number)) => match number.parse::<f64>() {
            Ok(float) if float == 0.0 || (1e-4..1e21).contains(&float.abs()) => Ok(float.to_string()),
            _ => unusual(),
        },
        // Everything else is given as the text that Rego writes it with.
        ('v' | 's', Term::Null | Term::Bool(_) | Term::Array(_) | Term::Object(_) | Term::Set(_)) => {
            Ok(value.to_string())
        }
        _ => unusual(),
    }
}

impl std::fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |f: &mut std::fmt::Formatter<'_>, open: &str, members: &[Self], close: &str| {
            f.write_str(open)?;
            for (index, member) in members.iter().enumerate() {
                write!(f, "{}{member}", if index == 0 { "" } else { ", " })?;
            }
            f.write_str(close)
        };
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) | Self::Text(text) => f.write_str(text),
            Self::Array(members) => list(f, "[", members, "]"),
            Self::Set(members) if members.is_empty() => f.write_str("set()"),
            Self::Set(members) => list(f, "{", members, "}"),
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (key, value)) in members.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

impl Term<'_> {
    /// The order in which Rego shows the members of sets and objects.
    fn order(&self, other: &Self) -> Ordering {
        let rank = |term: &Self| match term {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
            Self::Set(_) => 6,
        };
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => {
                let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
                number(a).total_cmp(&number(b))
            }
            (Self::Text(a), Self::Text(b)) => {
                let text = |text: &str| serde_json::from_str::<String>(text).unwrap_or_default();
                text(a).cmp(&text(b))
            }
            (Self::Array(a), Self::Array(b)) | (Self::Set(a), Self::Set(b)) => {
                let differs = a.iter().zip(b).map(|(a, b)| a.order(b)).find(|order| order.is_ne());
                differs.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Object(a), Self::Object(b)) => {
                let pair = |((a, x), (b, y)): (&(Self, Self), &(Self, Self))| a.order(b).then_with(|| x.order(y));
                a.iter().zip(b).map(pair).find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

/// Reads what Rego wrote.
fn read(text: &str) -> Option<Term<'_>> {
    let mut left = text.trim();
    let term = term(&mut left, 64)?;
    left.trim().is_empty().then_some(term)
}

fn term<'t>(left: &mut &'t str, depth: usize) -> Option<Term<'t>> {
    *left = left.trim_start();
    let depth = depth.checked_sub(1)?;
    let words = [
        ("null", Term::Null),
        ("true", Term::Bool(true)),
        ("false", Term::Bool(false)),
        ("set()", Term::Set(Vec::new())),
    ];
    for (word, term) in words {
        if skip(left, word) {
            return Some(term);
        }
    }
    if skip(left, "[") {
        let mut members = Vec::new();
        while !skip(left, "]") {
            if !members.is_empty() && !skip(left, ",") {
                return None;
            }
            members.push(term(left, depth)?);
        }
        return Some(Term::Array(members));
    }
    if skip(left, "{") {
        return braces(left, depth);
    }
    let end = match left.strip_prefix('"') {
        Some(inner) => {
            let mut escaped = false;
            let quote = inner.bytes().position(|byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            });
            quote? + 2
        }
        None => left.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(left.len()),
    };
    let (found, rest) = left.split_at(end);
    *left = rest;
    match found.starts_with('"') {
        true => Some(Term::Text(found)),
        false => found.parse::<f64>().ok().map(|_| Term::Number(found)),
    }
}

/// What stands behind an opening brace: an object, unless its first member is no pair.
fn braces<'t>(left: &mut &'t str, depth: usize) -> Option<Term<'t>> {
    let (mut pairs, mut singles) = (Vec::new(), Vec::new());
    while !skip(left, "}") {
        let first = pairs.is_empty() && singles.is_empty();
        if !first && !skip(left, ",") {
            return None;
        }
        let first = term(left, depth)?;
        match skip(left, ":") {
            true => pairs.push((first, term(left, depth)?)),
            false => singles.push(first),
        }
    }
    pairs.sort_by(|(a, _), (b, _)| a.order(b));
    singles.sort_by(Term::order);
    match (pairs.is_empty(), singles.is_empty()) {
        (_, true) => Some(Term::Object(pairs)),
        (true, false) => Some(Term::Set(singles)),
        _ => None,
    }
}

fn skip(left: &mut &str, word: &str) -> bool {
    let rest = left.trim_start().strip_prefix(word);
    rest.inspect(|rest| *left = rest).is_some()
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
        assert_eq!(
            made("%v", r#"[{"z":1,"b":{3,20,"a",[2],true}}]"#).unwrap(),
            r#"{"b": {true, 3, 20, "a", [2]}, "z": 1}"#
        );
        assert_eq!(made("%v %v", r#"[{"y","x"},set()]"#).unwrap(), r#"{"x", "y"} set()"#);
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
        for values in ["[1", "[1 2]", "[{1:2,3}]", "[nan]", "[\"a]", "[,]", "", &"[".repeat(100_000)] {
            assert!(sprintf("\"%v\"", values).is_err(), "{values:.20}");
        }
    }
}
