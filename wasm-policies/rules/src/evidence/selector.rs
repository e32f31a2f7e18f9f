//! Label selectors as Kubernetes writes them. The crates of Kubernetes have none that reads its text.

use ocm_api::policy::{ClusterSelector, ClusterSelectorRequirement, SelectorOperator};

use crate::syntax;

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
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        split(text).into_iter().map(requirement).collect::<Result<_, _>>().map(Self)
    }

    /// The selector of an object of Kubernetes. What a newer release requires of labels counts as fulfilled.
    pub fn of(selector: &ClusterSelector) -> Self {
        let ClusterSelector { match_labels, match_expressions } = selector;
        let equal =
            |(key, value): (&String, &String)| Requirement { key: key.clone(), test: Test::In(vec![value.clone()]) };
        let expression = |one: &ClusterSelectorRequirement| {
            let test = match one.operator {
                SelectorOperator::In => Test::In(one.values.clone()),
                SelectorOperator::NotIn => Test::NotIn(one.values.clone()),
                SelectorOperator::Exists => Test::Exists,
                SelectorOperator::DoesNotExist => Test::Absent,
                SelectorOperator::Other(_) => return None,
            };
            Some(Requirement { key: one.key.clone(), test })
        };
        Self(match_labels.iter().map(equal).chain(match_expressions.iter().filter_map(expression)).collect())
    }

    /// A label that has one of these values in whatever is selected; none where no requirement says so.
    pub(super) fn one_of(&self) -> Option<(&str, &[String])> {
        self.0.iter().find_map(|requirement| match &requirement.test {
            Test::In(values) => Some((requirement.key.as_str(), values.as_slice())),
            Test::Exists | Test::Absent | Test::NotIn(_) => None,
        })
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
}
