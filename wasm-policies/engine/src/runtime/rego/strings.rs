//! Built-in functions about strings.

use serde_json::Value;

use super::term::Term;
use super::work::Work;

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

/// `strings.split_n`: the first pieces of a text between delimiters, or the last if the number is negative.
pub(super) fn split_n(values: &[Term], work: &mut Work) -> Result<Term, String> {
    /// Of a piece.
    const PIECE: u64 = 100;
    let [text, delimiter, number] = values else { return Err("it takes three values".to_owned()) };
    let (text, delimiter, number) = (text.text()?, delimiter.text()?, number.integer()?);
    work.charge((text.len() as u64 + 1).saturating_mul(PIECE))?;
    let mut pieces: Vec<Term> = match delimiter.is_empty() {
        true => text.chars().map(|letter| Term::Text(letter.to_string())).collect(),
        false => text.split(delimiter).map(|piece| Term::Text(piece.to_owned())).collect(),
    };
    let wanted = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    match number >= 0 {
        true => pieces.truncate(wanted),
        false => drop(pieces.drain(..pieces.len().saturating_sub(wanted))),
    }
    Ok(Term::Array(pieces))
}

/// `glob.quote_meta`: a text as a pattern of globs that matches it alone.
pub(super) fn quote_glob(text: &Term) -> Result<Value, String> {
    let text = text.text()?;
    let quoted = text.chars().fold(String::with_capacity(text.len()), |mut out, letter| {
        if "*?\\[]{}".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
        out
    });
    Ok(quoted.into())
}

/// `numbers.range_step`: from one whole number to another, upwards or downwards.
pub(super) fn range_step(values: &[Term], work: &mut Work) -> Result<Term, String> {
    /// Of a number that is written and read.
    const NUMBER: u64 = 500;
    let [from, to, step] = values else { return Err("it takes three values".to_owned()) };
    let (from, to, step) = (from.integer()?, to.integer()?, step.integer()?);
    let step = u64::try_from(step).ok().filter(|step| *step > 0).ok_or("a step is no positive number")?;
    let count = from.abs_diff(to) / step;
    work.charge(count.saturating_add(1).saturating_mul(NUMBER))?;
    let number = |index: u64| {
        let away = i128::from(index) * i128::from(step);
        Term::Number((i128::from(from) + if from <= to { away } else { -away }).to_string())
    };
    Ok(Term::Array((0..=count).map(number).collect()))
}
