//! What a request selects, as far as people's commands ask: label selectors, fields that are equal, pages.

use serde_json::Value;

/// The query of a request.
#[derive(Debug, Default)]
pub(crate) struct Query {
    labels: Vec<Label>,
    /// Paths of members, and what they have to be.
    fields: Vec<(String, String)>,
    /// How many objects a page has; none: no pages.
    pub(crate) limit: Option<usize>,
    /// Where the page begins.
    pub(crate) from: Option<String>,
    /// The other parameters.
    others: Vec<(String, String)>,
}

/// One requirement of a label selector.
#[derive(Debug, PartialEq, Eq)]
enum Label {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// The part of it that is not understood.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value);
            match name {
                "labelSelector" => {
                    query.labels = requirements(&value).map(label).collect::<Option<_>>().ok_or(value)?;
                }
                "fieldSelector" => {
                    let field = |text: &str| {
                        let (path, wanted) = text.split_once("==").or_else(|| text.split_once('='))?;
                        (!path.ends_with('!')).then(|| (path.to_owned(), wanted.to_owned()))
                    };
                    let fields = value.split(',').filter(|text| !text.is_empty()).map(field);
                    query.fields = fields.collect::<Option<_>>().ok_or(value.clone())?;
                }
                "limit" => query.limit = value.parse().ok().filter(|limit| *limit > 0),
                "continue" => query.from = Some(value),
                _ => query.others.push((name.to_owned(), value)),
            }
        }
        Ok(query)
    }

    /// Another parameter.
    pub(crate) fn other(&self, name: &str) -> Option<&str> {
        self.others.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The only name that objects may have.
    pub(crate) fn name(&self) -> Option<&str> {
        self.fields.iter().find(|(path, _)| path == "metadata.name").map(|(_, name)| name.as_str())
    }

    /// Whether an object is selected.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        let field = |(path, wanted): &(String, String)| {
            let found = path.split('.').try_fold(object, |value, member| value.get(member));
            found.and_then(Value::as_str).unwrap_or_default() == wanted
        };
        let labels = object.pointer("/metadata/labels");
        let value = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
        let label = |label: &Label| match label {
            Label::In(name, values) => value(name).is_some_and(|own| values.iter().any(|value| value == own)),
            Label::NotIn(name, values) => value(name).is_none_or(|own| values.iter().all(|value| value != own)),
            Label::Exists(name) => value(name).is_some(),
            Label::Missing(name) => value(name).is_none(),
        };
        self.fields.iter().all(field) && self.labels.iter().all(label)
    }
}

/// The requirements of a selector: commas within parentheses separate values.
fn requirements(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let split = text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    split.map(str::trim).filter(|text| !text.is_empty())
}

fn label(text: &str) -> Option<Label> {
    let values = |text: &str| -> Option<Vec<String>> {
        let list = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(list.split(',').map(|value| value.trim().to_owned()).collect())
    };
    let owned = |name: &str| name.trim().to_owned();
    if let Some((name, list)) = text.split_once(" notin ") {
        return Some(Label::NotIn(owned(name), values(list)?));
    }
    if let Some((name, list)) = text.split_once(" in ") {
        return Some(Label::In(owned(name), values(list)?));
    }
    if let Some((name, value)) = text.split_once("!=") {
        return Some(Label::NotIn(owned(name), vec![owned(value)]));
    }
    if let Some((name, value)) = text.split_once('=') {
        return Some(Label::In(owned(name), vec![owned(value.trim_start_matches('='))]));
    }
    match text.strip_prefix('!') {
        Some(name) => Some(Label::Missing(owned(name))),
        None => (!text.contains([' ', '(', ')', '<', '>'])).then(|| Label::Exists(owned(text))),
    }
}

/// Takes the escapes out of a part of a URL.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let escaped = || {
            let digits = [bytes.clone().next()?, bytes.clone().nth(1)?];
            let digits = std::str::from_utf8(&digits).ok()?.to_owned();
            u8::from_str_radix(&digits, 16).ok()
        };
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => match escaped() {
                Some(escaped) => {
                    decoded.push(escaped);
                    bytes.nth(1);
                }
                None => decoded.push(byte),
            },
            byte => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_select_as_the_api_does() {
        let object = json!({"metadata": {"name": "x", "labels": {"a": "1", "b": "2"}}, "status": {"phase": "Active"}});
        let selects = |query: &str| Query::parse(query).unwrap().selects(&object);
        for query in [
            "",
            "labelSelector=a",
            "labelSelector=a%3D1%2Cb%3D2",
            "labelSelector=a+in+%281%2C3%29%2C%21c",
            "labelSelector=a+notin+%282%2C3%29",
            "labelSelector=a%21%3D2%2Ca%3D%3D1",
            "fieldSelector=metadata.name%3Dx",
            "fieldSelector=status.phase=Active,metadata.name=x&limit=1",
        ] {
            assert!(selects(query), "{query}");
        }
        for query in [
            "labelSelector=c",
            "labelSelector=%21a",
            "labelSelector=a+in+%282%2C3%29",
            "labelSelector=a+notin+%281%29",
            "labelSelector=a%3D1%2Cb%3D3",
            "fieldSelector=metadata.name%3Dy",
            "fieldSelector=metadata.name%3Dx%2Cspec.none%3D1",
        ] {
            assert!(!selects(query), "{query}");
        }
        for query in ["labelSelector=a+like+b", "fieldSelector=a%21%3Db", "fieldSelector=a"] {
            assert!(Query::parse(query).is_err(), "{query}");
        }
        let query = Query::parse("limit=500&continue=500&container=c%2Fd").unwrap();
        assert_eq!(
            (query.limit, query.from.as_deref(), query.other("container")),
            (Some(500), Some("500"), Some("c/d"))
        );
        assert_eq!(decode("%zz%4"), "%zz%4");
    }
}
