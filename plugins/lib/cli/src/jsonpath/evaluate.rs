//! What templates, columns and paths find in a document.

use std::cmp::Ordering;

use serde_json::Value;

use super::template::{Column, Comparison, Operand, Part, Path, Step, Template};
use crate::clean;
use crate::list::NONE;
use crate::output::{escaped, in_json};

impl Template {
    /// The template with what its paths find in a document. Values of one path are parted by blanks; objects and lists are
    /// JSON. Characters of values that a terminal obeys or does not show are written as escapes.
    pub fn render(&self, document: &Value) -> String {
        let mut text = String::new();
        render(&self.0, document, &mut text);
        text
    }
}

fn render(parts: &[Part], element: &Value, out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Values(path) => {
                *out += &path.find(element).into_iter().map(shown).collect::<Vec<_>>().join(" ");
            }
            Part::Range(path, parts) => path.find(element).into_iter().for_each(|found| render(parts, found, out)),
        }
    }
}

impl Column {
    /// What stands in its cell for a document.
    pub fn cell(&self, document: &Value) -> String {
        let found = self.path.find(document);
        if found.is_empty() {
            return NONE.to_owned();
        }
        let cells = found.into_iter().map(|value| if value.is_null() { NONE.to_owned() } else { shown(value) });
        cells.collect::<Vec<_>>().join(",")
    }
}

/// A value as text.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text
            .split_inclusive(['\n', '\t'])
            .map(|piece| match piece.strip_suffix(['\n', '\t']) {
                Some(line) => clean(line) + &piece[line.len()..],
                None => clean(piece),
            })
            .collect(),
        other => escaped(&other.to_string(), in_json),
    }
}

impl Path {
    /// What it finds, in the order of the document.
    pub fn find<'a>(&self, element: &'a Value) -> Vec<&'a Value> {
        self.0.iter().fold(vec![element], |found, step| step.take_all(&found))
    }
}

impl Step {
    /// A union gives what its first step finds in all elements, then what its second one does.
    fn take_all<'a>(&self, elements: &[&'a Value]) -> Vec<&'a Value> {
        match self {
            Self::Union(steps) => steps.iter().flat_map(|step| step.take_all(elements)).collect(),
            step => elements.iter().flat_map(|element| step.take(element)).collect(),
        }
    }

    fn take<'a>(&self, element: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => element.get(name).into_iter().collect(),
            Self::Key(literal, path) => match element.get(literal) {
                Some(found) => vec![found],
                None => path.find(element),
            },
            Self::Wildcard => children(element),
            Self::Recursive => containers(element),
            Self::Index(index) => {
                let list = items(element);
                absolute(*index, list.len()).and_then(|index| list.get(index)).into_iter().collect()
            }
            Self::Slice(first, last, step) => {
                let list = items(element);
                let bound = |at: Option<i64>, default: usize| at.map_or(default, |at| clamped(at, list.len()));
                let (first, last) = (bound(*first, 0), bound(*last, list.len()));
                list.get(first..last).unwrap_or_default().iter().step_by(*step).collect()
            }
            Self::Union(_) => self.take_all(&[element]),
            Self::Filter(left, test) => items(element).iter().filter(|item| holds(left, test.as_ref(), item)).collect(),
        }
    }
}

fn items(element: &Value) -> &[Value] {
    element.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn children(element: &Value) -> Vec<&Value> {
    match element {
        Value::Object(members) => members.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

/// The element and all below it that hold others.
fn containers(element: &Value) -> Vec<&Value> {
    let below = children(element);
    if below.is_empty() {
        return Vec::new();
    }
    std::iter::once(element).chain(below.into_iter().flat_map(containers)).collect()
}

/// The index that counts from the end where it is negative; none where there is no such element.
fn absolute(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    usize::try_from(if index < 0 { index.checked_add(length)? } else { index }).ok()
}

/// The bound of a slice, within the list.
fn clamped(index: i64, length: usize) -> usize {
    absolute(index, length).unwrap_or_default().min(length)
}

fn holds(left: &Operand, test: Option<&(Comparison, Operand)>, item: &Value) -> bool {
    let left = left.find(item);
    let Some((comparison, right)) = test else { return !left.is_empty() };
    // What is not there compares with nothing.
    match (left.as_slice(), right.find(item).as_slice()) {
        ([left], [right]) => comparison.holds(left, right),
        _ => false,
    }
}

impl Operand {
    fn find<'a>(&'a self, item: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Literal(value) => vec![value],
            Self::Path(path) => path.find(item),
        }
    }
}

impl Comparison {
    /// Only numbers and texts have an order; values of two kinds differ.
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
            }
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (left, right) if left == right => Some(Ordering::Equal),
            _ => None,
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list() -> Value {
        json!({ "kind": "List", "items": [
            { "metadata": { "name": "c1", "labels": { "env": "prod", "app.kubernetes.io/name": "web" } },
              "spec": { "accepted": true, "weights": [1, 2, 3, 4] },
              "status": { "conditions": [
                  { "type": "Joined", "status": "True" }, { "type": "Available", "status": "False" },
              ] } },
            { "metadata": { "name": "c2" }, "spec": { "accepted": false, "weights": [10] }, "status": null },
        ] })
    }

    fn render(template: &str) -> String {
        template.parse::<Template>().unwrap().render(&list())
    }

    #[test]
    fn paths_find_what_kubectl_finds() {
        for (template, expected) in [
            ("{.kind}", "List"),
            ("{$.kind}{'-'}{@.kind}", "List-List"),
            ("{.items[*].metadata.name}", "c1 c2"),
            ("{.items[0].metadata.name}", "c1"),
            ("{.items[-1].metadata.name}", "c2"),
            ("{.items[0].spec.weights[1:3]}", "2 3"),
            ("{.items[0].spec.weights[-2:]}", "3 4"),
            ("{.items[0].spec.weights[:3:2]}", "1 3"),
            ("{.items[0].spec.weights[0,3]}", "1 4"),
            ("{.items[0].spec.weights}", "[1,2,3,4]"),
            ("{.items[0].spec.accepted}", "true"),
            ("{.items[1].status}", "null"),
            ("{.items[0].metadata.labels}", r#"{"app.kubernetes.io/name":"web","env":"prod"}"#),
            (r"{.items[0].metadata.labels.app\.kubernetes\.io/name}", "web"),
            (r"{.items[0].metadata.labels['app\.kubernetes\.io/name']}", "web"),
            ("{.items[0].metadata.labels['app.kubernetes.io/name']}", "web"),
            ("{.items[*]['metadata.name', 'spec.accepted']}", "c1 c2 true false"),
            ("{.items[0].metadata.labels.*}", "web prod"),
            ("{..name}", "c1 c2"),
            ("{.items[*]..type}", "Joined Available"),
        ] {
            assert_eq!(render(template), expected, "{template}");
        }
    }

    #[test]
    fn what_is_not_there_prints_nothing() {
        for template in [
            "{.nothing}",
            "{.kind.deeper}",
            "{.items[7].metadata.name}",
            "{.items[-7]}",
            "{.items[5:9]}",
            "{.items[1:0]}",
            "{.kind[0]}",
            "{.kind[*]}",
            "{.items[?(@.nothing == 1)]}",
            "{.kind[?(@.a)]}",
            "{range .nothing[*]}x{end}",
            "{..nothing}",
        ] {
            assert_eq!(render(template), "", "{template}");
        }
    }

    #[test]
    fn filters_choose_elements() {
        for (filter, expected) in [
            ("@.metadata.name==\"c1\"", "c1"),
            ("@.metadata.name == 'c2'", "c2"),
            ("@.metadata.name != 'c2'", "c1"),
            ("@.spec.accepted == true", "c1"),
            ("@.spec.weights[0] > 1", "c2"),
            ("@.spec.weights[0] >= 1", "c1 c2"),
            ("@.spec.weights[0] < 10.5", "c1 c2"),
            ("@.spec.weights[0] <= 1", "c1"),
            ("@.metadata.labels", "c1"),
            ("@.metadata.labels.env", "c1"),
            ("@.spec.accepted == 'true'", ""),
            ("@.spec.accepted != 'true'", "c1 c2"),
        ] {
            assert_eq!(render(&format!("{{.items[?({filter})].metadata.name}}")), expected, "{filter}");
        }
        assert_eq!(render("{.items[0].status.conditions[?(@.type==\"Available\")].status}"), "False");
    }

    #[test]
    fn ranges_repeat_what_stands_in_them() {
        let lines = r#"{range .items[*]}{.metadata.name}{"\t"}{.spec.accepted}{"\n"}{end}end of {.kind}"#;
        assert_eq!(render(lines), "c1\ttrue\nc2\tfalse\nend of List");
        let nested = "{range .items[*]}{.metadata.name}:{range .status.conditions[*]} {.type}={.status}{end};{end}";
        assert_eq!(render(nested), "c1: Joined=True Available=False;c2:;");
    }

    #[test]
    fn cells_are_never_empty_where_nothing_was_found() {
        let columns =
            Column::all("NAME:.metadata.name,ENV:metadata.labels.env,WEIGHTS:{.spec.weights[*]},S:.status").unwrap();
        let cells = |item: &Value| columns.iter().map(|column| column.cell(item)).collect::<Vec<_>>();
        let list = list();
        assert_eq!(cells(&list["items"][0])[..3], ["c1", "prod", "1,2,3,4"]);
        assert_eq!(cells(&list["items"][1]), ["c2", "<none>", "10", "<none>"]);
    }

    #[test]
    fn values_do_not_reach_the_terminal_as_they_are() {
        let template: Template = "{.a}{.b}".parse().unwrap();
        let text = template.render(&json!({ "a": "x\u{1b}[31m\ny\t\u{202e}", "b": ["\u{1b}"] }));
        assert_eq!(text, "x\\u{1b}[31m\ny\t\\u{202e}[\"\\u001b\"]");
    }
}
