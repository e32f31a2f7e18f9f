//! Values as Rego writes them. JSON has no sets.

use std::cmp::Ordering;
use std::fmt;

/// Values are nested no deeper than this, so that comparing, writing and freeing them ends.
pub(super) const DEEPEST: usize = 64;
/// Numbers are no longer than this, so that comparing them takes no time that nobody has taken fuel for.
const LONGEST_NUMBER: usize = 64;

/// A value of Rego.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    Text(String),
    Array(Vec<Self>),
    /// Sorted by key.
    Object(Vec<(Self, Self)>),
    /// Sorted.
    Set(Vec<Self>),
}

impl Term {
    /// Reads what Rego wrote.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        read(text).ok_or_else(|| "it is given a value that cannot be read".to_owned())
    }

    /// The text that this is.
    pub(super) fn text(&self) -> Result<&str, String> {
        match self {
            Self::Text(text) => Ok(text),
            other => Err(format!("it needs a string, and is given {}", other.shown())),
        }
    }

    /// The whole number that this is.
    pub(super) fn integer(&self) -> Result<i64, String> {
        match self {
            Self::Number(number) => number.parse().map_err(|_| format!("{} is no whole number", self.shown())),
            other => Err(format!("it needs a number, and is given {}", other.shown())),
        }
    }

    /// The members of an array or a set, or this alone.
    pub(super) fn members(&self) -> &[Self] {
        match self {
            Self::Array(members) | Self::Set(members) => members,
            one => std::slice::from_ref(one),
        }
    }

    /// Whether it can be written as JSON: it holds no sets, and names of members are texts.
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Set(_) => false,
            Self::Array(members) => members.iter().all(Self::is_json),
            Self::Object(members) => members.iter().all(|(key, value)| matches!(key, Self::Text(_)) && value.is_json()),
            _ => true,
        }
    }

    /// The beginning of it, for messages.
    pub(super) fn shown(&self) -> String {
        self.to_string().chars().take(64).collect()
    }

    /// A set of these.
    pub(super) fn set(mut members: Vec<Self>) -> Self {
        members.sort_by(Self::order);
        members.dedup_by(|a, b| a.same(b));
        Self::Set(members)
    }

    /// Whether Rego takes both for the same value.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }

    /// How deep its values are nested: 1 if it holds no others.
    pub(super) fn depth(&self) -> usize {
        let inner = match self {
            Self::Array(members) | Self::Set(members) => members.iter().map(Self::depth).max(),
            Self::Object(members) => members.iter().map(|(key, value)| key.depth().max(value.depth())).max(),
            _ => None,
        };
        1 + inner.unwrap_or(0)
    }

    /// How much there is of it: its texts, in bytes, and as much for each value as it takes itself.
    pub(super) fn size(&self) -> u64 {
        const VALUE: u64 = 50;
        let inner: u64 = match self {
            Self::Null | Self::Bool(_) => 0,
            Self::Number(text) | Self::Text(text) => text.len() as u64,
            Self::Array(members) | Self::Set(members) => members.iter().map(Self::size).sum(),
            Self::Object(members) => members.iter().map(|(key, value)| key.size() + value.size()).sum(),
        };
        inner + VALUE
    }

    /// The order in which Rego shows the members of sets and objects.
    pub(super) fn order(&self, other: &Self) -> Ordering {
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
                // One key for whole and other numbers: of numbers that a float cannot tell apart, the whole ones are told apart
                // exactly, and whatever is sorted has one order.
                let key = |text: &str| {
                    let float = text.parse::<f64>().unwrap_or(f64::NAN) + 0.0;
                    #[expect(
                        clippy::cast_possible_truncation,
                        reason = "it saturates, and floats of the same value stay equal"
                    )]
                    let whole = text.parse::<i128>().unwrap_or(float as i128);
                    (float, whole)
                };
                let ((a, whole), (b, other)) = (key(a), key(b));
                a.total_cmp(&b).then(whole.cmp(&other))
            }
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
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

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, open: &str, members: &[Self], close: &str| {
            f.write_str(open)?;
            for (index, member) in members.iter().enumerate() {
                write!(f, "{}{member}", if index == 0 { "" } else { ", " })?;
            }
            f.write_str(close)
        };
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => write!(f, "{}", serde_json::Value::from(text.as_str())),
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

/// What has been opened and not been closed.
enum Open {
    Array(Vec<Term>),
    /// An object, unless its first member is no pair.
    Braces {
        pairs: Vec<(Term, Term)>,
        singles: Vec<Term>,
        key: Option<Term>,
    },
}

impl Open {
    fn is_empty(&self) -> bool {
        match self {
            Self::Array(members) => members.is_empty(),
            Self::Braces { pairs, singles, .. } => pairs.is_empty() && singles.is_empty(),
        }
    }

    fn close(self) -> Option<Term> {
        match self {
            Self::Array(members) => Some(Term::Array(members)),
            Self::Braces { key: Some(_), .. } => None,
            Self::Braces { mut pairs, mut singles, key: None } => {
                pairs.sort_by(|(a, _), (b, _)| a.order(b));
                singles.sort_by(Term::order);
                match (pairs.is_empty(), singles.is_empty()) {
                    (_, true) => Some(Term::Object(pairs)),
                    (true, false) => Some(Term::Set(singles)),
                    _ => None,
                }
            }
        }
    }
}

/// Reads step by step, with a stack of its own.
fn read(text: &str) -> Option<Term> {
    let mut left = text;
    let mut open: Vec<Open> = Vec::new();
    loop {
        let done = match open.last() {
            Some(Open::Array(_)) if skip(&mut left, "]") => open.pop()?.close()?,
            Some(Open::Braces { key: None, .. }) if skip(&mut left, "}") => open.pop()?.close()?,
            around => {
                let value_of_a_pair = matches!(around, Some(Open::Braces { key: Some(_), .. }));
                let first = around.is_none_or(Open::is_empty);
                if !first && !value_of_a_pair && !skip(&mut left, ",") {
                    return None;
                }
                if skip(&mut left, "[") {
                    open.push(Open::Array(Vec::new()));
                } else if skip(&mut left, "{") {
                    open.push(Open::Braces { pairs: Vec::new(), singles: Vec::new(), key: None });
                } else {
                    let done = plain(&mut left)?;
                    match place(&mut open, done, &mut left) {
                        Some(whole) => return left.trim().is_empty().then_some(whole),
                        None => continue,
                    }
                }
                if open.len() > DEEPEST {
                    return None;
                }
                continue;
            }
        };
        if let Some(whole) = place(&mut open, done, &mut left) {
            return left.trim().is_empty().then_some(whole);
        }
    }
}

/// Gives a value to what is open around it, or back where nothing is.
fn place(open: &mut [Open], done: Term, left: &mut &str) -> Option<Term> {
    match open.last_mut() {
        None => return Some(done),
        Some(Open::Array(members)) => members.push(done),
        Some(Open::Braces { pairs, singles, key }) => match key.take() {
            Some(key) => pairs.push((key, done)),
            None if skip(left, ":") => *key = Some(done),
            None => singles.push(done),
        },
    }
    None
}

/// A value that holds no other.
fn plain(left: &mut &str) -> Option<Term> {
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
    *left = left.trim_start();
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
        true => serde_json::from_str(found).ok().map(Term::Text),
        false => number(found),
    }
}

/// A number that can be compared exactly, in little time.
fn number(text: &str) -> Option<Term> {
    let is_whole = text.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit());
    if text.len() > LONGEST_NUMBER || (is_whole && text.parse::<i128>().is_err()) {
        return None;
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|_| Term::Number(text.to_owned()))
}

fn skip(left: &mut &str, word: &str) -> bool {
    let rest = left.trim_start().strip_prefix(word);
    rest.inspect(|rest| *left = rest).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_order_whatever_holds_them() {
        // Of 2⁵⁴ and what is near it, floats tell few apart.
        let near = 1i128 << 54;
        let whole = (-20..20).map(|step| (near + step).to_string());
        let floats = (-20..20).map(|step| format!("{}.5", near + step)).chain(["1.8014398509481984e16".to_owned()]);
        let mut all: Vec<Term> = whole.chain(floats).map(Term::Number).collect();
        let is = |term: &Term, text: &str| matches!(term, Term::Number(number) if number == text);
        for turn in 0..all.len() {
            all.rotate_left(turn);
            let Term::Set(sorted) = Term::set(all.clone()) else { panic!("a set") };
            assert!(sorted.is_sorted_by(|one, next| one.order(next).is_lt()));
            assert!(sorted.iter().any(|term| is(term, &(near + 1).to_string())));
        }
        let same = |a: &str, b: &str| Term::Number(a.to_owned()).same(&Term::Number(b.to_owned()));
        assert!(same("1", "1.0") && same("0", "-0.0") && same("1e2", "100"));
        assert!(!same("9007199254740993", "9007199254740992.0"));
    }

    #[test]
    fn a_number_that_cannot_be_compared_exactly_is_none() {
        let long = format!("0.{}1", "0".repeat(LONGEST_NUMBER));
        for text in [&long, "1e999", "1000000000000000000000000000000000000000000", "+", "-"] {
            assert!(read(&format!("[{text}]")).is_none(), "{text}");
        }
        assert!(read("[170141183460469231731687303715884105727, -1.5e3]").is_some());
    }

    #[test]
    fn values_are_read_and_written() {
        for (text, written) in [
            (r#"{"z":1,"b":{3,20,"a",[2],true}}"#, r#"{"b": {true, 3, 20, "a", [2]}, "z": 1}"#),
            (r#"[{"y","x"}, set() , {}, []]"#, r#"[{"x", "y"}, set(), {}, []]"#),
            (r#" {"a" : {"b" : [ 1 , 2 ]}} "#, r#"{"a": {"b": [1, 2]}}"#),
            (r#"{[1]: {2}}"#, r#"{[1]: {2}}"#),
            (r#""a\"],\u00e4""#, "\"a\\\"],\u{e4}\""),
            ("-1.5e3", "-1.5e3"),
        ] {
            assert_eq!(Term::read(text).unwrap().to_string(), written, "{text}");
        }
    }

    #[test]
    fn what_is_no_value_or_too_deep_is_refused() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Term::read(&deep(DEEPEST)).is_ok());
        let (too_deep, open, braces) = (deep(DEEPEST + 1), "[".repeat(100_000), "{".repeat(100_000));
        for text in [
            "", "[1", "[1 2]", "[1,,2]", "[,]", "{1:2,3}", "{1,2:3}", "{1:}", "{:1}", "{1:2:3}", "nan", "inf", "1e999",
            "\"a", "[]]", "[}", &too_deep, &open, &braces,
        ] {
            assert!(Term::read(text).is_err(), "{text:.20}");
        }
    }
}
