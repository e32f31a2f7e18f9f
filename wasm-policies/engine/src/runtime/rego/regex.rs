//! Built-in functions about regular expressions.

use super::pattern::{Pattern, Refused, Spans};
use super::term::Term;
use super::work::Work;

/// Of a byte that is written.
const BYTE: u64 = 40;

fn compiled(pattern: &Term, groups: bool, work: &mut Work) -> Result<Pattern, String> {
    Ok(Pattern::new(pattern.text()?, groups, work)??)
}

/// `regex.is_valid`: what is no string is none.
pub(super) fn is_valid(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [Term::Text(pattern)] = values else { return Ok(Term::Bool(false)) };
    match Pattern::new(pattern, false, work)? {
        Ok(_) => Ok(Term::Bool(true)),
        Err(Refused::Invalid(_)) => Ok(Term::Bool(false)),
        Err(refused) => Err(refused.into()),
    }
}

/// `regex.match`: whether a pattern matches a part of a text.
pub(super) fn is_match(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [pattern, text] = values else { return Err(wrong()) };
    let pattern = compiled(pattern, false, work)?;
    Ok(Term::Bool(pattern.find(text.text()?, 0, false, work)?.is_some()))
}

/// `regex.template_match`: a pattern that is a text but for what stands between two delimiters.
pub(super) fn template_match(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [template, text, start, end] = values else { return Err(wrong()) };
    let (template, text) = (template.text()?, text.text()?);
    let delimiter = |term: &Term| match term.text()?.as_bytes() {
        [one] => Ok(*one),
        _ => Err(format!("{} is no delimiter of one character", term.shown())),
    };
    let (start, end) = (delimiter(start)?, delimiter(end)?);
    let mut pattern = String::from("^");
    let mut done = 0;
    for (from, to) in between(template, start, end)? {
        let inner = template.get(from + 1..to).unwrap_or_default();
        pattern.push_str(&quoted(template.get(done..from).unwrap_or_default()));
        // Alone it must be a pattern as well: it may not close a group that it has not opened.
        Pattern::new(inner, false, work)??;
        pattern.push_str(&format!("({inner})"));
        done = to + 1;
    }
    pattern.push_str(&quoted(template.get(done..).unwrap_or_default()));
    pattern.push('$');
    let pattern = Pattern::new(&pattern, false, work)??;
    Ok(Term::Bool(pattern.find(text, 0, false, work)?.is_some()))
}

/// Where the outermost pairs of delimiters stand.
fn between(template: &str, start: u8, end: u8) -> Result<Vec<(usize, usize)>, String> {
    let unbalanced = || "the delimiters of the template are not balanced".to_owned();
    let (mut pairs, mut depth, mut begins) = (Vec::new(), 0_usize, 0);
    for (at, byte) in template.bytes().enumerate() {
        if byte == start {
            depth += 1;
            if depth == 1 {
                begins = at;
            }
        } else if byte == end {
            depth = depth.checked_sub(1).ok_or_else(unbalanced)?;
            if depth == 0 {
                pairs.push((begins, at));
            }
        }
    }
    if depth == 0 { Ok(pairs) } else { Err(unbalanced()) }
}

/// A text as a pattern that matches it alone.
fn quoted(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, letter| {
        if letter.is_ascii() && !letter.is_ascii_alphanumeric() {
            out.push('\\');
        }
        out.push(letter);
        out
    })
}

fn span(spans: &Spans, group: usize) -> Option<(usize, usize)> {
    spans.get(group).copied().flatten()
}

/// `regex.split`: what stands between the matches.
pub(super) fn split(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [pattern, text] = values else { return Err(wrong()) };
    let (written, text) = (pattern.text()?, text.text()?);
    let pattern = compiled(pattern, false, work)?;
    if text.is_empty() && !written.is_empty() {
        return Ok(Term::Array(vec![Term::Text(String::new())]));
    }
    let piece = |from: usize, to: usize| Term::Text(text.get(from..to).unwrap_or_default().to_owned());
    let (mut pieces, mut from, mut to) = (Vec::new(), 0, 0);
    for (start, end) in pattern.all(text, usize::MAX, false, work)?.iter().filter_map(|spans| span(spans, 0)) {
        to = start;
        if end != 0 {
            pieces.push(piece(from, to));
        }
        from = end;
    }
    if to != text.len() {
        pieces.push(piece(from, text.len()));
    }
    Ok(Term::Array(pieces))
}

/// How many matches are wanted: all, if the number is negative.
fn most(number: &Term) -> Result<usize, String> {
    Ok(usize::try_from(number.integer()?).unwrap_or(usize::MAX))
}

/// `regex.find_n`: the texts that match.
pub(super) fn find(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [pattern, text, number] = values else { return Err(wrong()) };
    let (most, text) = (most(number)?, text.text()?);
    let found = compiled(pattern, false, work)?.all(text, most, false, work)?;
    Ok(Term::Array(found.iter().map(|spans| group(text, spans, 0)).collect()))
}

/// `regex.find_all_string_submatch_n`: the texts that match, each with what its groups match.
pub(super) fn find_groups(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [pattern, text, number] = values else { return Err(wrong()) };
    let (most, text) = (most(number)?, text.text()?);
    let found = compiled(pattern, true, work)?.all(text, most, true, work)?;
    let mut matches = Vec::with_capacity(found.len());
    for spans in &found {
        let bytes: usize = spans.iter().flatten().map(|(start, end)| end - start).sum();
        work.charge((bytes as u64).saturating_mul(BYTE))?;
        matches.push(Term::Array((0..spans.len()).map(|number| group(text, spans, number)).collect()));
    }
    Ok(Term::Array(matches))
}

/// What a group has matched. One that was passed by is empty.
fn group(text: &str, spans: &Spans, number: usize) -> Term {
    let found = span(spans, number).and_then(|(start, end)| text.get(start..end));
    Term::Text(found.unwrap_or_default().to_owned())
}

/// `regex.replace`: puts a text in the place of each match, in which `$1` and `${name}` are what groups have matched.
pub(super) fn replace(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [text, pattern, value] = values else { return Err(wrong()) };
    let (text, value) = (text.text()?, value.text()?);
    let groups = value.contains('$');
    let pattern = compiled(pattern, groups, work)?;
    let pieces = pieces(value, &pattern)?;
    let mut out = String::new();
    let mut done = 0;
    for spans in pattern.all(text, usize::MAX, groups, work)? {
        let Some((start, end)) = span(&spans, 0) else { continue };
        push(&mut out, text.get(done..start).unwrap_or_default(), work)?;
        for piece in &pieces {
            let piece = match piece {
                Piece::Text(text) => text,
                Piece::Group(number) => span(&spans, *number).and_then(|(s, e)| text.get(s..e)).unwrap_or_default(),
            };
            push(&mut out, piece, work)?;
        }
        done = end;
    }
    push(&mut out, text.get(done..).unwrap_or_default(), work)?;
    Ok(Term::Text(out))
}

fn push(out: &mut String, text: &str, work: &mut Work) -> Result<(), String> {
    work.charge((text.len() as u64).saturating_mul(BYTE).saturating_add(20))?;
    out.push_str(text);
    Ok(())
}

/// A piece of what is put in the place of a match.
enum Piece<'v> {
    Text(&'v str),
    Group(usize),
}

/// Reads what is put in the place of matches, as Go does (`Regexp.Expand`).
fn pieces<'v>(value: &'v str, pattern: &Pattern) -> Result<Vec<Piece<'v>>, String> {
    let mut pieces = Vec::new();
    let mut left = value;
    while let Some((before, behind)) = left.split_once('$') {
        pieces.push(Piece::Text(before));
        if let Some(rest) = behind.strip_prefix('$') {
            pieces.push(Piece::Text("$"));
            left = rest;
            continue;
        }
        let inner = behind.strip_prefix('{').unwrap_or(behind);
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, rest) = inner.split_at(end);
        if rest.starts_with(|c: char| !c.is_ascii()) {
            return Err("a name of a group that is not in ASCII is not supported".to_owned());
        }
        let rest = if inner.len() < behind.len() { rest.strip_prefix('}') } else { Some(rest) };
        match rest.filter(|_| !name.is_empty()) {
            None => {
                pieces.push(Piece::Text("$"));
                left = behind;
            }
            Some(rest) => {
                pieces.extend(numbered(name, pattern).map(Piece::Group));
                left = rest;
            }
        }
    }
    pieces.push(Piece::Text(left));
    Ok(pieces)
}

/// The group that a number or a name stands for, if there is one.
fn numbered(name: &str, pattern: &Pattern) -> Option<usize> {
    let number = name.bytes().all(|byte| byte.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
    match number {
        // No pattern has as many groups as do not fit.
        true => name.parse().ok(),
        false => pattern.group(name),
    }
}

fn wrong() -> String {
    "it is given another number of values than it takes".to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    type Function = fn(&[Term], &mut Work) -> Result<Term, String>;

    fn text(text: &str) -> Term {
        Term::Text(text.to_owned())
    }

    fn told(function: Function, values: &[Term]) -> Result<String, String> {
        function(values, &mut Work::new(500_000_000)).map(|term| term.to_string())
    }

    /// As OPA 1.22 answers: what Go and the crate beneath read in different ways.
    #[test]
    fn patterns_match_what_they_match_in_go() {
        for (pattern, given, matches) in [
            ("^(docker\\.io|quay\\.io)/.+$", "docker.io/nginx", true),
            ("^(docker\\.io|quay\\.io)/.+$", "dockerxio/nginx", false),
            ("", "", true),
            ("^b$", "a\nb", false),
            ("(?m)^b$", "a\nb\nc", true),
            ("a.b", "a\nb", false),
            ("(?s)a.b", "a\nb", true),
            ("[[a]b]", "[b]", true),
            ("[[a]b]", "a", false),
            ("[a&&b]", "&", true),
            ("\\<a\\>", "<a>", true),
            ("\\<a\\>", "a", false),
            ("a{,2}", "a{,2}", true),
            ("a{,2}", "aa", false),
            ("^a{2$", "a{2", true),
            ("^a{01}$", "a", false),
            ("\\w", "ä", false),
            ("\\W", "ä", true),
            ("\\s", "\u{b}", false),
            ("[[:space:]]", "\u{b}", true),
            ("[[:^alpha:]]", "a", false),
            ("[^a]", "\n", true),
            ("(?i)^k$", "\u{212a}", true),
            ("(?i)^[^k]$", "\u{212a}", false),
            ("(?i)^S$", "\u{17f}", true),
            ("(?i)^\\w$", "\u{17f}", true),
            ("(?i:A)b", "ab", true),
            ("(?i:A)b", "aB", false),
            ("a b", "a b", true),
            ("#", "#", true),
            ("\\Qa.b\\Ec", "a.bc", true),
            ("\\x41\\x{e4}\\101", "AäA", true),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("[\\d-z]", "-", true),
            ("\\bfoo\\b", "äfooä", true),
        ] {
            let found = told(is_match, &[text(pattern), text(given)]);
            assert_eq!(found, Ok(matches.to_string()), "{pattern} {given:?}");
        }
    }

    #[test]
    fn what_is_no_pattern_in_go_is_none_and_what_is_not_known_is_an_error() {
        for pattern in [
            "*",
            "a**",
            "a*{2}",
            "a{2}{3}",
            "a{2,1}",
            "a{1001}",
            "(a{100}){11}",
            "(",
            "a)",
            "[",
            "[z-a]",
            "[a--b]",
            "[a-\\d]",
            "(?x)a",
            "(?=a)",
            "(?P<>a)",
            "(?i-)a",
            "\\1",
            "\\8",
            "\\E",
            "\\Z",
            "\\C",
            "\\é",
            "a\\",
            "[[:foo:]]",
            "\\x{110000}",
            "(a{1000}){1000}",
        ] {
            assert_eq!(told(is_valid, &[text(pattern)]).as_deref(), Ok("false"), "{pattern}");
            assert!(told(is_match, &[text(pattern), text("")]).is_err(), "{pattern}");
        }
        for pattern in ["\\pL", "(?i)é", "[\\p{Greek}]", "a(?i)*", "(?P<n>a)(?P<n>b)", "\\x{d800}"] {
            assert!(told(is_valid, &[text(pattern)]).is_err(), "{pattern}");
        }
        assert_eq!(told(is_valid, &[Term::Null]).as_deref(), Ok("false"));
    }

    /// As OPA 1.22 answers.
    #[test]
    fn texts_are_split_found_and_replaced_as_in_go() {
        let all = Term::Number("-1".to_owned());
        for (pattern, given, pieces, found) in [
            (",", "a,b,,c,", r#"["a", "b", "", "c", ""]"#, r#"[",", ",", ",", ","]"#),
            ("x*", "axbxc", r#"["a", "b", "c"]"#, r#"["", "x", "x", ""]"#),
            ("", "äb", r#"["ä", "b"]"#, r#"["", "", ""]"#),
            ("a", "", r#"[""]"#, "[]"),
            ("^", "ab", r#"["ab"]"#, r#"[""]"#),
            ("(a|ab)(c|bcd)", "abcd", r#"["", ""]"#, r#"["abcd"]"#),
        ] {
            assert_eq!(told(split, &[text(pattern), text(given)]).as_deref(), Ok(pieces), "{pattern} {given}");
            let told = told(find, &[text(pattern), text(given), all.clone()]);
            assert_eq!(told.as_deref(), Ok(found), "{pattern} {given}");
        }
        let two = Term::Number("2".to_owned());
        assert_eq!(told(find, &[text("a"), text("aaa"), two]).as_deref(), Ok(r#"["a", "a"]"#));
        let groups = told(find_groups, &[text("(a)(x)?(?P<n>b)"), text("ab ab"), all]);
        assert_eq!(groups.as_deref(), Ok(r#"[["ab", "a", "", "b"], ["ab", "a", "", "b"]]"#));
        for (given, pattern, value, answer) in [
            ("foo", "^[a-z]", "F", "Foo"),
            ("a-b", "(\\w)-(?P<n>\\w)", "${n}.$1.$0.$$.$", "b.a.a-b.$.$"),
            ("a-b", "(\\w)-(\\w)", "$1x", ""),
            ("a-b", "(\\w)-(\\w)", "${1}x$7", "ax"),
            ("abc", "x*", "-", "-a-b-c-"),
            ("baaac", "a*", "x", "xbxcx"),
            ("äb", "", ".", ".ä.b."),
            ("abc", "z", "$0", "abc"),
        ] {
            let found = told(replace, &[text(given), text(pattern), text(value)]);
            assert_eq!(found, Ok(text(answer).to_string()), "{given} {pattern} {value}");
        }
        for (template, given, delimiters, matches) in [
            ("urn:foo:<.*>", "urn:foo:bar:baz", ["<", ">"], true),
            ("x.y{[0-9]{2}}", "xzy12", ["{", "}"], false),
            ("x.y{[0-9]{2}}", "x.y12", ["{", "}"], true),
            ("<a|b>c", "bc", ["<", ">"], true),
        ] {
            let [start, end] = delimiters.map(text);
            let found = told(template_match, &[text(template), text(given), start, end]);
            assert_eq!(found, Ok(matches.to_string()), "{template} {given}");
        }
        for (template, start, end) in [("a<b", "<", ">"), ("a>b", "<", ">"), ("a", "<<", ">"), ("<a)(b>", "<", ">")] {
            assert!(told(template_match, &[text(template), text("ab"), text(start), text(end)]).is_err(), "{template}");
        }
    }

    #[test]
    fn a_pattern_that_takes_long_has_no_fuel_for_it() {
        let large = "a".repeat(1 << 20);
        let begun = Instant::now();
        let mut ended = 0;
        for (pattern, given) in [
            ("(a*)*b", large.as_str()),
            ("(a|aa)+$", &large),
            ("(x+x+)+y", &large),
            ("(.*)(.*)(.*)(.*)(.*)=", &large),
            ("(a?){500}a{400}b", &large[..20_000]),
            ("a.*z|a", &large[..4_000]),
            ("((((((((((a{9}){9}){9}))))))))", "a"),
            ("([a-z]{30}){30}", "a"),
            (&"(".repeat(5_000), "a"),
            (&"(a)".repeat(2_700), "a"),
            (&"[:".repeat(4_000), "a"),
            (&large, "a"),
        ] {
            for function in [is_match, split] {
                let mut work = Work::new(20_000_000);
                // Nothing comes of it, or it has cost what it was worth.
                ended += u32::from(function(&[text(pattern), text(given)], &mut work).is_err());
            }
            let values = [text(pattern), text(given), Term::Number("-1".to_owned())];
            let _ = find_groups(&values, &mut Work::new(20_000_000));
            let _ = replace(&[text(given), text(pattern), text(&"$0".repeat(10_000))], &mut Work::new(20_000_000));
        }
        assert!(ended >= 18, "{ended} of 24");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
