//! Paths to the single values that a query projects.

use serde_json::Value;

/// A JSON pointer (RFC 6901) with one addition: a step `[type=Ready]` is the first item of a list whose member `type`
/// is `Ready`, so that one condition can be read without all the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A member of an object, or the index of an item.
    Member(String),
    /// The item of a list whose member has this value.
    Item { member: String, value: String },
}

impl Path {
    /// Reads a path; none where it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        text.strip_prefix('/')?.split('/').map(Step::parse).collect::<Option<_>>().map(Self)
    }

    /// Whether this is the whole object.
    pub(super) fn is_whole(&self) -> bool {
        self.0.is_empty()
    }

    /// What stands there.
    pub(super) fn find<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |at, step| match (step, at) {
            (Step::Member(name), Value::Object(members)) => members.get(name),
            (Step::Member(index), Value::Array(items)) => items.get(index.parse::<usize>().ok()?),
            (Step::Item { member, value }, Value::Array(items)) => {
                items.iter().find(|item| item.get(member).and_then(Value::as_str) == Some(value))
            }
            _ => None,
        })
    }
}

impl Step {
    fn parse(text: &str) -> Option<Self> {
        let plain = |text: &str| text.replace("~1", "/").replace("~0", "~");
        match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => {
                let (member, value) = inner.split_once('=')?;
                (!member.is_empty()).then(|| Self::Item { member: plain(member), value: plain(value) })
            }
            None => Some(Self::Member(plain(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn single_values_are_found() {
        let object =
            json!({"a/b": {"c~d": 1}, "list": [{"type": "A", "status": "no"}, {"type": "B", "status": "yes"}]});
        let find = |path: &str| Path::parse(path).unwrap().find(&object).cloned();
        assert_eq!(find("/a~1b/c~0d"), Some(json!(1)));
        assert_eq!(find("/list/[type=B]/status"), Some(json!("yes")));
        assert_eq!(find("/list/0/type"), Some(json!("A")));
        assert_eq!(find(""), Some(object.clone()));
        for nothing in ["/none", "/list/[type=C]/status", "/a~1b/[type=A]", "/list/x"] {
            assert_eq!(find(nothing), None, "{nothing}");
        }
        for bad in ["a", "/[type]/x", "/[=x]"] {
            assert_eq!(Path::parse(bad), None, "{bad}");
        }
    }
}
