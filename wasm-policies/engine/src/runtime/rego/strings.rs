//! Built-in functions about strings.

use serde_json::Value;

use super::term::Term;

/// `strings.any_prefix_match` and `strings.any_suffix_match`: whether any of the first begins, or ends, with any of the
/// second. Each is a string, or an array or set of strings.
pub(super) fn any_match(searched: &Term, base: &Term, fits: fn(&str, &str) -> bool) -> Result<Value, String> {
    let texts = |term: &Term| match term {
        Term::Text(_) | Term::Array(_) | Term::Set(_) => {
            term.members().iter().map(|member| member.text().map(str::to_owned)).collect::<Result<Vec<_>, _>>()
        }
        other => Err(format!("it needs a string, an array or a set, and is given {}", other.shown())),
    };
    let (searched, base) = (texts(searched)?, texts(base)?);
    Ok(searched.iter().any(|text| base.iter().any(|part| fits(text, part))).into())
}

/// `strings.count`: how often the second stands in the first, without overlap.
pub(super) fn count(text: &Term, part: &Term) -> Result<Value, String> {
    let (text, part) = (text.text()?, part.text()?);
    Ok(match part.is_empty() {
        true => (text.chars().count() + 1).into(),
        false => text.matches(part).count().into(),
    })
}
