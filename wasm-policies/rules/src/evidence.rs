//! What a policy is told of the hub: the rows that a query finds, within bounds.

use ocm_policy_abi::{Query, Row, Table};
use serde_json::{Value, json};

use crate::review::{self, Unusable};
use crate::syntax;

/// How much one table may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Rows, whatever the query says.
    pub rows: usize,
    /// Bytes of all rows as JSON.
    pub bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rows: 5000, bytes: 256 * 1024 }
    }
}

/// Why a query cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// The selector is none.
    #[error("selector {selector:?}: {wrong}")]
    Selector {
        /// The selector.
        selector: String,
        /// What is wrong.
        wrong: String,
    },
    /// A field is no JSON pointer.
    #[error("field {0:?} is no JSON pointer")]
    Field(String),
}

/// Checks a query without objects, for when a policy is loaded.
///
/// # Errors
/// Says what is wrong with it.
pub fn check(query: &Query) -> Result<(), BadQuery> {
    plan(query).map(|_| ())
}

fn plan(query: &Query) -> Result<Selector, BadQuery> {
    let pointer = |field: &&String| !field.is_empty() && !field.starts_with('/');
    if let Some(field) = query.fields.iter().find(pointer) {
        return Err(BadQuery::Field(field.clone()));
    }
    Selector::parse(query.selector.as_deref().unwrap_or_default())
}

/// Answers a query from the objects of its source. Rows are sorted by namespace and name before anything is cut off, so
/// that the same objects give the same table in whatever order they come.
///
/// # Errors
/// Says what is wrong with the query.
pub fn table<'v>(
    query: &Query,
    objects: impl IntoIterator<Item = &'v Value>,
    revision: &str,
    budget: Budget,
) -> Result<Table<'static>, BadQuery> {
    let selector = plan(query)?;
    let text = |object: &'v Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let mut found: Vec<_> = objects
        .into_iter()
        .filter(|object| selector.matches(|key| object.pointer("/metadata/labels")?.get(key)?.as_str()))
        .map(|object| {
            let namespace = text(object, "/metadata/namespace").filter(|namespace| !namespace.is_empty());
            (namespace, text(object, "/metadata/name").unwrap_or_default(), object)
        })
        .collect();
    found.sort_by_key(|(namespace, name, _)| (*namespace, *name));
    let limit = query.limit.map_or(budget.rows, |limit| budget.rows.min(limit as usize));
    let mut table = Table { revision: revision.to_owned().into(), complete: found.len() <= limit, rows: Vec::new() };
    let mut bytes = 0;
    for (namespace, name, object) in found.into_iter().take(limit) {
        let row = Row {
            namespace: namespace.map(|namespace| namespace.to_owned().into()),
            name: name.to_owned().into(),
            values: query.fields.iter().map(|at| object.pointer(at).cloned().unwrap_or(Value::Null)).collect(),
        };
        bytes += serde_json::to_vec(&row).map_or(usize::MAX, |json| json.len());
        if bytes > budget.bytes {
            table.complete = false;
            break;
        }
        table.rows.push(row);
    }
    Ok(table)
}

/// The entries of a ConfigMap as objects of a query: each is named as its key, and its value is `/value`.
pub fn entries(config_map: &Value) -> Vec<Value> {
    let namespace = config_map.pointer("/metadata/namespace");
    let data = config_map.get("data").and_then(Value::as_object);
    let entry =
        |(key, value): (&String, &Value)| json!({"metadata": {"name": key, "namespace": namespace}, "value": value});
    data.into_iter().flatten().map(entry).collect()
}

/// A CertificateSigningRequest as an object of a query: the members of [`ocm_policy_abi::Csr`], and its metadata.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn certificate_request(object: &Value) -> Result<Value, Unusable> {
    let facts = review::certificate_request(object)?;
    let metadata = json!({"name": facts.name, "labels": facts.labels});
    let mut value = serde_json::to_value(&facts)
        .map_err(|error| Unusable { path: "object".to_owned(), wrong: error.to_string() })?;
    value["metadata"] = metadata;
    Ok(value)
}

/// A label selector of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    /// Also holds where the label is absent.
    NotIn(Vec<String>),
}

impl Selector {
    /// Reads a selector: `a=b`, `a==b`, `a!=b`, `a in (b, c)`, `a notin (b, c)`, `a`, `!a`, with commas between them.
    /// An empty one selects everything.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadQuery> {
        let bad = |wrong: String| BadQuery::Selector { selector: text.to_owned(), wrong };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        split(text).into_iter().map(requirement).collect::<Result<_, _>>().map(Self).map_err(bad)
    }

    /// Whether labels fulfil every requirement.
    pub fn matches<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.0.iter().all(|requirement| {
            let value = label(&requirement.key);
            let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|known| known == value));
            match &requirement.test {
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::In(values) => among(values),
                Test::NotIn(values) => !among(values),
            }
        })
    }
}

/// Splits at the commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|letter| {
        match letter {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        letter == ',' && !inside
    })
    .collect()
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let text = text.trim();
    let (key, test) = if let Some(key) = text.strip_prefix('!') {
        (key, Test::Absent)
    } else if let Some((key, value)) = text.split_once("!=") {
        (key, Test::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (key, Test::In(vec![value.trim().to_owned()]))
    } else if let Some(end) = text.find(|letter: char| letter.is_whitespace() || letter == '(') {
        let (key, rest) = text.split_at(end);
        (key, among(rest.trim())?)
    } else {
        (text, Test::Exists)
    };
    let key = key.trim();
    if !syntax::is_qualified_name(key) {
        return Err(format!("{key:?} is no key of a label"));
    }
    let values = match &test {
        Test::In(values) | Test::NotIn(values) => values.as_slice(),
        Test::Exists | Test::Absent => &[],
    };
    if let Some(value) = values.iter().find(|value| !syntax::is_label_value(value)) {
        return Err(format!("{value:?} is no value of a label"));
    }
    Ok(Requirement { key: key.to_owned(), test })
}

/// `in (…)` or `notin (…)`, behind the key.
fn among(text: &str) -> Result<Test, String> {
    let (word, list) = text.split_once('(').ok_or_else(|| format!("{text:?} is not understood"))?;
    let list = list.strip_suffix(')').ok_or("a parenthesis is open")?;
    let values: Vec<String> = list.split(',').map(|value| value.trim().to_owned()).collect();
    match word.trim() {
        "in" => Ok(Test::In(values)),
        "notin" => Ok(Test::NotIn(values)),
        word => Err(format!("{word:?} is not understood")),
    }
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::EvidenceSource;

    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        Selector::parse(selector)
            .unwrap()
            .matches(|key| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value))
    }

    #[test]
    fn selectors_mean_what_they_mean_in_kubernetes() {
        let labels = [("env", "prod"), ("example.com/tier", "1"), ("empty", "")];
        for yes in [
            "",
            "env",
            "env=prod",
            "env == prod",
            "env!=dev",
            "absent!=dev",
            "!absent",
            "env in (dev, prod)",
            "env in(prod)",
            "env notin (dev)",
            "absent notin (dev)",
            "example.com/tier=1,env=prod",
            "empty=",
            "empty",
            "env in (a,prod),!absent",
        ] {
            assert!(selects(yes, &labels), "{yes}");
        }
        for no in ["absent", "env=dev", "env!=prod", "!env", "env in (dev)", "env notin (prod,x)", "absent=", "env,x"] {
            assert!(!selects(no, &labels), "{no}");
        }
    }

    #[test]
    fn what_is_no_selector_selects_nothing() {
        for bad in
            ["=a", "a b", "a in", "a in (b", "a in b)", "a=b c", "a,,b", "a in (b))", "(a)", "a>1", "!!a", "a/b/c"]
        {
            assert!(Selector::parse(bad).is_err(), "{bad}");
        }
    }

    fn query(fields: &[&str], limit: Option<u32>) -> Query {
        Query {
            name: "q".into(),
            source: EvidenceSource::Clusters,
            selector: Some("env=prod".into()),
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
            limit,
        }
    }

    fn objects() -> Vec<Value> {
        let object =
            |name: &str, env: &str| json!({"metadata": {"name": name, "labels": {"env": env}}, "spec": {"n": 1}});
        vec![object("c", "prod"), object("a", "prod"), object("x", "dev"), object("b", "prod")]
    }

    #[test]
    fn tables_are_sorted_and_say_when_they_are_cut() {
        let all = table(&query(&["/spec/n", "/none", ""], None), &objects(), "7", Budget::default()).unwrap();
        assert_eq!(all.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((&*all.revision, all.complete), ("7", true));
        assert_eq!(all.rows[0].values[..2], [json!(1), Value::Null]);
        let cut = table(&query(&[], Some(2)), &objects(), "7", Budget::default()).unwrap();
        assert_eq!((cut.rows.len(), cut.complete, &*cut.rows[0].name), (2, false, "a"));
        let three = table(&query(&[], Some(3)), &objects(), "7", Budget::default()).unwrap();
        assert!(three.complete);
        let small = table(&query(&[], None), &objects(), "7", Budget { rows: 9, bytes: 50 }).unwrap();
        assert!(!small.complete && small.rows.len() < 3);
        assert_eq!(check(&query(&["spec"], None)), Err(BadQuery::Field("spec".into())));
    }

    #[test]
    fn a_config_map_has_a_row_for_each_key() {
        let map = json!({"metadata": {"name": "m", "namespace": "n"}, "data": {"b": "2", "a": "1"}});
        let query = Query { selector: None, ..query(&["/value"], None) };
        let table = table(&query, &entries(&map), "", Budget::default()).unwrap();
        assert_eq!((&*table.rows[0].name, &table.rows[0].values[0]), ("a", &json!("1")));
        assert_eq!(table.rows[0].namespace.as_deref(), Some("n"));
    }
}
