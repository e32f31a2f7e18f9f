//! The built-in functions `json.patch` and `object.subset`.

use super::term::{DEEPEST, Term};
use super::work::Work;

/// What copying or comparing a value costs.
fn price(term: &Term) -> u64 {
    term.size().saturating_mul(4)
}

/// `json.patch` (RFC 6902). A path is a text, or an array of what stands between its slashes.
pub(super) fn patch(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [document, Term::Array(operations)] = values else { return Err("its operations are no array".to_owned()) };
    work.charge(price(document))?;
    let mut document = document.clone();
    for operation in operations {
        work.charge(price(operation))?;
        operate(&mut document, operation, work)?;
    }
    Ok(document)
}

fn operate(document: &mut Term, operation: &Term, work: &mut Work) -> Result<(), String> {
    let Term::Object(members) = operation else { return Err(format!("{} is no operation", operation.shown())) };
    let member = |name: &str| {
        let found = members.iter().find(|(key, _)| matches!(key, Term::Text(text) if text == name));
        found.map(|(_, value)| value).ok_or_else(|| format!("an operation has no {name}"))
    };
    let path = path(member("path")?)?;
    match member("op")?.text()? {
        "add" => {
            let value = copied(member("value")?, work)?;
            add(document, &path, value, work)
        }
        "remove" => take(document, &path, work).map(drop),
        "replace" => {
            let value = copied(member("value")?, work)?;
            fits(&path, &value)?;
            *at_mut(document, &path, work)? = value;
            Ok(())
        }
        "move" => {
            let from = self::path(member("from")?)?;
            // The whole document cannot be put into what it was taken from.
            let value = take(document, &from, work)?;
            // How deep it is has to be looked at.
            work.charge(price(&value))?;
            add(document, &path, value, work)
        }
        "copy" => {
            let from = self::path(member("from")?)?;
            let value = at_mut(document, &from, work)?;
            let value = copied(value, work)?;
            add(document, &path, value, work)
        }
        "test" => {
            let value = member("value")?;
            let found = at_mut(document, &path, work)?;
            work.charge(price(value))?;
            match found.same(value) {
                true => Ok(()),
                false => Err("a value is not the one that an operation tests".to_owned()),
            }
        }
        other => Err(format!("{other:?} is no operation")),
    }
}

fn copied(value: &Term, work: &mut Work) -> Result<Term, String> {
    work.charge(price(value))?;
    Ok(value.clone())
}

/// The steps of a path.
fn path(path: &Term) -> Result<Vec<Term>, String> {
    match path {
        Term::Text(text) if text.is_empty() => Ok(Vec::new()),
        Term::Text(text) => {
            let steps = text.trim_start_matches('/').split('/');
            Ok(steps.map(|step| Term::Text(step.replace("~1", "/").replace("~0", "~"))).collect())
        }
        Term::Array(steps) => Ok(steps.clone()),
        other => Err(format!("{} is no path", other.shown())),
    }
}

/// Whether a document with this value at this path is not nested too deeply.
fn fits(path: &[Term], value: &Term) -> Result<(), String> {
    match path.len().saturating_add(value.depth()) <= DEEPEST {
        true => Ok(()),
        false => Err("the document becomes too deep".to_owned()),
    }
}

/// What a path leads to.
fn at_mut<'t>(mut term: &'t mut Term, path: &[Term], work: &mut Work) -> Result<&'t mut Term, String> {
    for step in path {
        work.charge(price(step).saturating_mul(8))?;
        let found = match term {
            Term::Object(members) => {
                member(members, step).ok().and_then(|at| members.get_mut(at)).map(|(_, value)| value)
            }
            Term::Array(members) => {
                let at = index(members.len(), step)?;
                members.get_mut(at)
            }
            Term::Set(_) => return Err("it does not change sets".to_owned()),
            _ => None,
        };
        term = found.ok_or_else(|| format!("nothing is at {}", step.shown()))?;
    }
    Ok(term)
}

/// Where a member of an object stands, or would stand.
fn member(members: &[(Term, Term)], key: &Term) -> Result<usize, usize> {
    members.binary_search_by(|(known, _)| known.order(key))
}

/// The place in an array of this length that a step names: `-` is behind its end.
fn index(length: usize, step: &Term) -> Result<usize, String> {
    let digits = match step {
        Term::Text(text) if text == "-" => return Ok(length),
        Term::Text(text) if text == "0" || !text.starts_with('0') => text,
        Term::Number(text) => text,
        _ => "",
    };
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    number.ok_or_else(|| format!("{} is no place in an array", step.shown()))
}

fn add(document: &mut Term, path: &[Term], value: Term, work: &mut Work) -> Result<(), String> {
    fits(path, &value)?;
    let Some((last, parents)) = path.split_last() else {
        *document = value;
        return Ok(());
    };
    let parent = at_mut(document, parents, work)?;
    work.charge(price(last).saturating_mul(8))?;
    match parent {
        Term::Object(members) => {
            work.charge(members.len() as u64)?;
            match member(members, last) {
                Ok(at) => {
                    if let Some((_, old)) = members.get_mut(at) {
                        *old = value;
                    }
                }
                Err(at) => members.insert(at, (last.clone(), value)),
            }
        }
        Term::Array(members) => {
            work.charge(members.len() as u64)?;
            let at = index(members.len(), last)?;
            if at > members.len() {
                return Err(format!("{} is behind the end of the array", last.shown()));
            }
            members.insert(at, value);
        }
        other => return Err(format!("nothing can be added to {}", other.shown())),
    }
    Ok(())
}

fn take(document: &mut Term, path: &[Term], work: &mut Work) -> Result<Term, String> {
    let Some((last, parents)) = path.split_last() else {
        return Err("the whole document cannot be removed".to_owned());
    };
    let parent = at_mut(document, parents, work)?;
    work.charge(price(last).saturating_mul(8))?;
    let nothing = || format!("nothing is at {}", last.shown());
    match parent {
        Term::Object(members) => {
            work.charge(members.len() as u64)?;
            let at = member(members, last).map_err(|_| nothing())?;
            Ok(members.remove(at).1)
        }
        Term::Array(members) => {
            work.charge(members.len() as u64)?;
            let at = index(members.len(), last)?;
            if at >= members.len() {
                return Err(nothing());
            }
            Ok(members.remove(at))
        }
        _ => Err(nothing()),
    }
}

/// `object.subset`: whether an object, a set or an array holds all of another one.
pub(super) fn subset(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [whole, part] = values else { return Err("it takes two values".to_owned()) };
    let held = match (whole, part) {
        (Term::Object(_), Term::Object(_)) | (Term::Set(_), Term::Set(_)) | (Term::Array(_), Term::Array(_)) => {
            holds(whole, part, work)?
        }
        (Term::Array(members), Term::Set(wanted)) => {
            work.charge(price(part).saturating_mul(members.len() as u64 + 1))?;
            // An empty array holds no set, not even an empty one: so says Rego.
            !members.is_empty() && wanted.iter().all(|one| members.iter().any(|member| member.same(one)))
        }
        _ => return Err("it needs two objects, two sets, two arrays, or an array and a set".to_owned()),
    };
    Ok(Term::Bool(held))
}

fn holds(whole: &Term, part: &Term, work: &mut Work) -> Result<bool, String> {
    match (whole, part) {
        (Term::Object(members), Term::Object(wanted)) => {
            work.charge(price(part).saturating_mul(16))?;
            for (key, value) in wanted {
                let found = member(members, key).ok().and_then(|at| members.get(at));
                match found {
                    Some((_, found)) if holds(found, value, work)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Term::Set(members), Term::Set(wanted)) => {
            work.charge(price(part).saturating_mul(16))?;
            Ok(wanted.iter().all(|one| members.binary_search_by(|member| member.order(one)).is_ok()))
        }
        // Side by side, in the same order.
        (Term::Array(members), Term::Array(wanted)) => {
            work.charge(price(part).saturating_mul(members.len() as u64 + 1))?;
            let beside = |window: &[Term]| window.iter().zip(wanted).all(|(member, one)| member.same(one));
            Ok(wanted.is_empty() || members.windows(wanted.len()).any(beside))
        }
        _ => {
            work.charge(price(part))?;
            Ok(whole.same(part))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(document: &str, operations: &str, fuel: u64) -> Result<String, String> {
        let values = [Term::read(document)?, Term::read(operations)?];
        patch(&values, &mut Work::new(fuel)).map(|term| term.to_string())
    }

    /// As OPA 1.22 answers.
    #[test]
    fn documents_are_patched_as_opa_patches_them() {
        const DOCUMENT: &str = r#"{"a/b": 1, "l": [1, [2]], "m~n": {"x": 5}}"#;
        for (operations, answer) in [
            ("[]", DOCUMENT),
            (r#"[{"op":"add","path":"/l/1/-","value":3}]"#, r#"{"a/b": 1, "l": [1, [2, 3]], "m~n": {"x": 5}}"#),
            (r#"[{"op":"add","path":["l",0],"value":{1}}]"#, r#"{"a/b": 1, "l": [{1}, 1, [2]], "m~n": {"x": 5}}"#),
            (
                r#"[{"op":"remove","path":"l/1"},{"op":"remove","path":"/m~0n/x"}]"#,
                r#"{"a/b": 1, "l": [1], "m~n": {}}"#,
            ),
            (r#"[{"op":"replace","path":"//a~1b","value":null}]"#, r#"{"a/b": null, "l": [1, [2]], "m~n": {"x": 5}}"#),
            (r#"[{"op":"move","from":"/l","path":"/m~0n/x"}]"#, r#"{"a/b": 1, "m~n": {"x": [1, [2]]}}"#),
            (r#"[{"op":"copy","from":"/l/1","path":"/l/0"}]"#, r#"{"a/b": 1, "l": [[2], 1, [2]], "m~n": {"x": 5}}"#),
            (r#"[{"op":"test","path":"/l","value":[1.0,[2]]}]"#, DOCUMENT),
            (r#"[{"op":"replace","path":"","value":7}]"#, "7"),
            (r#"[{"op":"add","path":["n",],"value":7}]"#, "refused"),
            (r#"[{"op":"add","path":"","value":[]},{"op":"add","path":"/0","value":7}]"#, "[7]"),
        ] {
            let found = patched(DOCUMENT, operations, 1_000_000).unwrap_or_else(|_| "refused".to_owned());
            assert_eq!(found, answer, "{operations}");
        }
    }

    #[test]
    fn an_operation_that_cannot_be_done_is_an_error() {
        for operations in [
            "5",
            "[5]",
            r#"[{"op":"add","value":1}]"#,
            r#"[{"path":"/l"}]"#,
            r#"[{"op":"set","path":"/l","value":1}]"#,
            r#"[{"op":"add","path":"/l"}]"#,
            r#"[{"op":"add","path":5,"value":1}]"#,
            r#"[{"op":"add","path":"/x/y","value":1}]"#,
            r#"[{"op":"add","path":"/l/3","value":1}]"#,
            r#"[{"op":"add","path":"/l/01","value":1}]"#,
            r#"[{"op":"add","path":"/l/-1","value":1}]"#,
            r#"[{"op":"add","path":"/l/+1","value":1}]"#,
            r#"[{"op":"add","path":"/s/x","value":"x"}]"#,
            r#"[{"op":"remove","path":"/l/-"}]"#,
            r#"[{"op":"remove","path":"/l/2"}]"#,
            r#"[{"op":"remove","path":"/x"}]"#,
            r#"[{"op":"remove","path":""}]"#,
            r#"[{"op":"replace","path":"/x","value":1}]"#,
            r#"[{"op":"move","from":"/l","path":"/l/0"}]"#,
            r#"[{"op":"copy","from":"/x","path":"/y"}]"#,
            r#"[{"op":"test","path":"/l","value":[2,1]}]"#,
            r#"[{"op":"test","path":"/x","value":null}]"#,
        ] {
            assert!(patched(r#"{"l": [1, 2], "s": {"x"}}"#, operations, 1_000_000).is_err(), "{operations}");
        }
    }

    #[test]
    fn what_grows_costs_what_it_grows_by() {
        let copies: Vec<String> =
            (0..40).map(|number| format!(r#"{{"op":"copy","from":"","path":"/a{number}"}}"#)).collect();
        let values = [Term::Object(Vec::new()), Term::read(&format!("[{}]", copies.join(","))).unwrap()];
        let mut work = Work::new(20_000_000);
        assert!(patch(&values, &mut work).is_err());
        assert_eq!(work.spent(), u64::MAX);
        // A path that is as deep as values may be, and then one more.
        let path: String = "/a".repeat(DEEPEST - 1);
        let deep = format!("{}1{}", "{\"a\":".repeat(DEEPEST - 2), "}".repeat(DEEPEST - 2));
        let add = |path: &str, value: &str| {
            patched(&deep, &format!(r#"[{{"op":"add","path":"{path}","value":{value}}}]"#), 1_000_000)
        };
        assert!(add(&path[..path.len() - 2], "1").is_ok());
        assert!(add(&path[..path.len() - 2], "[[1]]").is_err());
    }

    /// As OPA 1.22 answers.
    #[test]
    fn parts_are_found_as_opa_finds_them() {
        for (whole, part, held) in [
            (r#"{"a": {"b": 1, "c": [1, 2, 3]}, "s": {1, 2}}"#, r#"{"a": {"c": [2, 3]}, "s": {2}}"#, true),
            (r#"{"a": [1, 2, 3]}"#, r#"{"a": [1, 3]}"#, false),
            (r#"{"a": 1}"#, r#"{"a": 1.0}"#, true),
            (r#"{"a": 1}"#, r#"{"b": 1}"#, false),
            ("{1, 2}", "{1}", true),
            ("[1, 2]", "{2, 1}", true),
            ("[1, 2]", "{3}", false),
            ("[]", "set()", false),
            ("[1]", "[]", true),
            ("[1]", "[1, 2]", false),
        ] {
            let values = [Term::read(whole).unwrap(), Term::read(part).unwrap()];
            assert_eq!(subset(&values, &mut Work::new(1_000_000)), Ok(Term::Bool(held)), "{whole} {part}");
        }
        assert!(subset(&[Term::Null, Term::Null], &mut Work::new(1_000_000)).is_err());
    }
}
