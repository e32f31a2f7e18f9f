//! Built-in functions about versions (Semantic Versioning 2). A leading `v` is passed over, as Rego does.

use std::cmp::Ordering;

use semver::Version;
use serde_json::Value;

use super::term::Term;

fn version(text: &str) -> Option<Version> {
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok().filter(|version| {
        // Numbers of Rego's versions have a sign.
        [version.major, version.minor, version.patch].iter().all(|number| i64::try_from(*number).is_ok())
    })
}

/// `semver.is_valid`: what is no string is no version.
pub(super) fn is_valid(text: &Term) -> Value {
    matches!(text, Term::Text(text) if version(text).is_some()).into()
}

/// `semver.compare`: -1, 0 or 1. What stands behind `+` says nothing.
pub(super) fn compare(a: &Term, b: &Term) -> Result<Value, String> {
    let read = |term: &Term| {
        let text = term.text()?;
        version(text).ok_or_else(|| format!("{} is no version", term.shown()))
    };
    Ok(match read(a)?.cmp_precedence(&read(b)?) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
    .into())
}
