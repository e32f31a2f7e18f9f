//! Files of test cases.

use std::fmt;

use jiff::Timestamp;
use ocm_core::yaml;
use ocm_policy_abi::{Manifest, Operation, Request, Requester};
use ocm_policy_rules::review::{self, Asking};
use ocm_policy_rules::{evidence, obligation};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use serde_saphyr::Spanned;

use crate::expect::Expect;

/// When test cases are asked that do not say: 2026-01-01T00:00:00Z, in milliseconds since 1970.
const NOW: i64 = 1_767_225_600_000;

/// What is wrong with a file of test cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The line, counted from 1; none where it is not known.
    pub line: Option<u64>,
    /// The name of the case.
    pub case: Option<String>,
    /// What is wrong, and what to write instead.
    pub wrong: String,
}

impl std::error::Error for Bad {}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(case) = &self.case {
            write!(f, "case {case:?}: ")?;
        }
        f.write_str(&self.wrong)
    }
}

/// A file of test cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Settings of the cases that have none of their own.
    pub settings: Value,
    /// The cases in their order.
    pub cases: Vec<Case>,
}

/// One question and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name, unlike every other's.
    pub name: String,
    /// The line on which it begins, counted from 1.
    pub line: u64,
    /// What has to be answered.
    pub expect: Expect,
    /// The line on which what is expected begins.
    pub(crate) expect_line: u64,
    settings: Option<Value>,
    question: Question,
    evidence: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
enum Question {
    Request(Value),
    Review { review: Value, now: i64 },
    Objects { operation: Operation, cluster: Option<Value>, csr: Option<Value>, requester: Option<Value>, now: i64 },
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    settings: Value,
    #[serde(default)]
    base: Map<String, Value>,
    cases: Vec<Spanned<Written>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    settings: Option<Value>,
    #[serde(default)]
    request: Option<Value>,
    #[serde(default)]
    review: Option<Value>,
    #[serde(default)]
    objects: Option<Objects>,
    #[serde(default)]
    operation: Option<Operation>,
    #[serde(default)]
    requester: Option<Value>,
    #[serde(default)]
    now: Option<Value>,
    #[serde(default)]
    evidence: Map<String, Value>,
    expect: Spanned<Expect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Objects {
    #[serde(default)]
    cluster: Option<Value>,
    #[serde(default)]
    csr: Option<Value>,
}

impl Suite {
    /// Has cases without settings of their own asked with these.
    ///
    /// # Errors
    /// When the file has some for them.
    pub fn use_settings(&mut self, settings: Value) -> Result<(), &'static str> {
        if self.settings != Value::Null {
            return Err(
                "its test cases are asked with the settings of the policy: leave `settings` out of the file, or write \
                        them into the cases that need others",
            );
        }
        self.settings = settings;
        Ok(())
    }

    /// Reads a file of test cases.
    ///
    /// # Errors
    /// Names the line, the case, and what to write instead.
    pub fn read(text: &str) -> Result<Self, Bad> {
        let file: File = serde_saphyr::from_str_with_options(text, yaml::options()).map_err(|error| {
            let line = error.location().map(|location| location.line());
            Bad { line, case: None, wrong: first_line(&error) }
        })?;
        if file.cases.is_empty() {
            let wrong = "there are no cases: write `cases:` and a list of them".to_owned();
            return Err(Bad { line: None, case: None, wrong });
        }
        let base = Value::Object(file.base);
        let mut suite = Self { settings: file.settings, cases: Vec::new() };
        for written in file.cases {
            let line = written.referenced.line();
            let case = Case::read(written.value, &base, line)?;
            if let Some(other) = suite.cases.iter().find(|other| other.name == case.name) {
                return Err(case.bad(format!("line {} has a case of this name: name it otherwise", other.line)));
            }
            // What cannot be asked is said here, not only when somebody asks.
            case.request()?;
            suite.cases.push(case);
        }
        Ok(suite)
    }

    /// The codes of a manifest's reasons that no case expects.
    pub fn uncovered(&self, manifest: &Manifest) -> Vec<String> {
        let expected = |code: &str| {
            self.cases.iter().flat_map(|case| case.expect.reasons.iter().flatten()).any(|reason| reason.code() == code)
        };
        manifest.reasons.iter().filter(|reason| !expected(&reason.code)).map(|reason| reason.code.clone()).collect()
    }
}

/// The first line of an error: the others draw the place, which only a terminal wants.
fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

impl Case {
    fn read(written: Written, base: &Value, line: u64) -> Result<Self, Bad> {
        let Written { name, settings, request, review, objects, operation, requester, now, evidence, expect } = written;
        let bad = |wrong: &str| Bad { line: Some(line), case: Some(name.clone()), wrong: wrong.to_owned() };
        if name.trim().is_empty() {
            return Err(bad("it has no name: write what is special about it"));
        }
        let expect_line = expect.referenced.line();
        let expect = expect.value;
        expect.sound().map_err(|wrong| Bad { line: Some(expect_line), ..bad(&wrong) })?;
        let time = |now: Option<Value>| now.map_or(Ok(NOW), |now| moment(&now).map_err(|wrong| bad(&wrong)));
        let question = match (request, review, objects) {
            // Settings are refused before anything is asked.
            (None, None, None) if expect.refused.is_some() => {
                let mut any = base_request();
                any["operation"] = Operation::Create.word().into();
                Question::Request(any)
            }
            (None, None, None) => return Err(bad("it asks nothing: write `request`, `review` or `objects`")),
            (Some(mut request), None, None) => {
                if operation.is_some() || requester.is_some() {
                    return Err(bad("`operation` and `requester` are members of `request` here"));
                }
                if let Some(members) = request.as_object_mut() {
                    members.extend(now.map(|now| ("now".to_owned(), now)));
                } else {
                    return Err(bad("`request` is an object with the members of a request"));
                }
                let mut whole = base_request();
                merge(&mut whole, base);
                merge(&mut whole, &request);
                if let Some(now) = whole.get("now") {
                    whole["now"] = moment(now).map_err(|wrong| bad(&wrong))?.into();
                }
                Question::Request(whole)
            }
            (None, Some(review), None) => {
                if operation.is_some() || requester.is_some() {
                    return Err(bad("a review says itself what happens and who asks: leave out the other members"));
                }
                Question::Review { review, now: time(now)? }
            }
            (None, None, Some(Objects { cluster, csr })) => {
                let lack = "`objects` need `operation`: approve, accept, join, create, update or delete";
                let operation = operation.ok_or_else(|| bad(lack))?;
                Question::Objects { operation, cluster, csr, requester, now: time(now)? }
            }
            _ => return Err(bad("it asks twice: keep one of `request`, `review` and `objects`")),
        };
        Ok(Self { line, expect, expect_line, settings, question, evidence, name })
    }

    fn bad(&self, wrong: impl fmt::Display) -> Bad {
        Bad { line: Some(self.line), case: Some(self.name.clone()), wrong: wrong.to_string() }
    }

    /// The settings of the policy for this case, as JSON: its own, or those of the suite, or `null`.
    pub fn settings(&self, suite: &Suite) -> String {
        self.settings_value(suite).to_string()
    }

    pub(crate) fn settings_value<'s>(&'s self, suite: &'s Suite) -> &'s Value {
        self.settings.as_ref().unwrap_or(&suite.settings)
    }

    /// What the policy is asked. Whole objects are in it, if the case has any.
    ///
    /// # Errors
    /// Names the member that is missing or wrong.
    pub fn request(&self) -> Result<Request<'static>, Bad> {
        self.request_for(&Manifest { wants_object: true, ..Manifest::default() })
    }

    /// What the policy is asked. Hosts leave whole objects out where the manifest does not ask for them.
    ///
    /// # Errors
    /// Names the member that is missing or wrong.
    pub fn request_for(&self, manifest: &Manifest) -> Result<Request<'static>, Bad> {
        let wants_object = manifest.wants_object;
        let asking = |now| Asking { id: "test".to_owned(), now, wants_object, ..Asking::default() };
        let unusable = |error: review::Unusable| self.bad(format!("this cannot be asked: {error}"));
        let mut whole = match &self.question {
            Question::Request(value) => value.clone(),
            Question::Review { review, now } => {
                // The whole review or the request inside of it.
                let request = match review.get("kind").and_then(Value::as_str) {
                    Some(_) => review::request_of(review).map_err(unusable)?,
                    None => review,
                };
                to_value(&review::from_admission(request, &asking(*now)).map_err(unusable)?, self)?
            }
            Question::Objects { operation, cluster, csr, requester, now } => {
                let who = match requester {
                    Some(value) => Requester::deserialize(value).map_err(|error| self.bad(error))?,
                    None => Requester { username: "nobody".into(), ..Requester::default() },
                };
                let asking = asking(*now);
                let question = match (operation, cluster, csr) {
                    (Operation::Join, Some(cluster), Some(csr)) => review::join(csr, cluster, &asking),
                    (Operation::Join, ..) => return Err(self.bad("join needs `objects.cluster` and `objects.csr`")),
                    (Operation::Request | Operation::Approve, None, Some(csr)) => {
                        review::of_csr(*operation, csr, &asking)
                    }
                    (Operation::Request | Operation::Approve, ..) => {
                        return Err(self.bad(format!("{} needs `objects.csr`, and nothing else", operation.word())));
                    }
                    (operation, Some(cluster), None) => review::of_cluster(*operation, cluster, who, &asking),
                    (operation, ..) => {
                        return Err(self.bad(format!("{} needs `objects.cluster`, and nothing else", operation.word())));
                    }
                };
                to_value(&question.map_err(unusable)?, self)?
            }
        };
        for (name, table) in &self.evidence {
            whole["evidence"][name] = table.clone();
        }
        if let Some(tables) = whole.get_mut("evidence").and_then(Value::as_object_mut) {
            tables.values_mut().for_each(evidence::fill_table);
        }
        // A certificate request without a requester of its own was created by whoever asks.
        let requester = whole["requester"].clone();
        if let Some(csr) = whole.get_mut("csr").and_then(Value::as_object_mut) {
            csr.entry("requester").or_insert(requester);
        }
        obligation::declare(&mut whole);
        if !wants_object && let Some(members) = whole.as_object_mut() {
            members.remove("object");
            members.remove("previousObject");
        }
        let mut request: Request<'static> =
            Request::deserialize(whole).map_err(|error| self.bad(format!("the request cannot be read: {error}")))?;
        for query in &manifest.evidence {
            if let Some(table) = request.evidence.get_mut(&query.name) {
                evidence::fill_columns(table, query);
            }
        }
        Ok(request)
    }
}

fn to_value(request: &Request<'_>, case: &Case) -> Result<Value, Bad> {
    serde_json::to_value(request).map_err(|error| case.bad(error))
}

fn base_request() -> Value {
    json!({"id": "test", "now": NOW, "requester": {"username": "nobody"}})
}

/// A time as RFC 3339 or as milliseconds since 1970.
fn moment(value: &Value) -> Result<i64, String> {
    let wrong = || format!("now is {value}: write a time such as 2026-01-01T00:00:00Z");
    match value {
        Value::String(text) => text.parse::<Timestamp>().map(Timestamp::as_millisecond).map_err(|_| wrong()),
        other => other.as_i64().ok_or_else(wrong),
    }
}

/// Lays one value over another (RFC 7396).
fn merge(under: &mut Value, over: &Value) {
    let Value::Object(over) = over else {
        *under = over.clone();
        return;
    };
    if !under.is_object() {
        *under = Value::Object(Map::new());
    }
    let Value::Object(under) = under else { return };
    for (key, value) in over {
        if value.is_null() {
            under.remove(key);
        } else {
            merge(under.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
settings: {prefixes: [prod-]}
base:
  operation: create
  requester: {username: u, groups: [a]}
cases:
  - name: fits
    request: {cluster: {name: prod-1}, now: 2026-01-01T00:00:01Z}
    expect: {verdict: allow}
  - name: another
    settings: {prefixes: [x-]}
    request: {cluster: {name: test-1}, requester: {groups: null}}
    evidence: {known: [{name: a, values: [1]}]}
    expect:
      verdict: deny
      reasons: [NamePrefix]
";

    fn bad(text: &str) -> String {
        Suite::read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_read() {
        let suite = Suite::read(FILE).unwrap();
        let [one, other] = &suite.cases[..] else { panic!("two cases") };
        assert_eq!((one.line, other.line, other.name.as_str()), (7, 10, "another"));
        assert_eq!(
            (one.settings(&suite), other.settings(&suite)),
            (r#"{"prefixes":["prod-"]}"#.to_owned(), r#"{"prefixes":["x-"]}"#.to_owned())
        );
        let request = one.request().unwrap();
        assert_eq!((request.now, request.operation), (NOW + 1000, Operation::Create));
        assert_eq!((request.requester.username.as_str(), request.requester.groups.len()), ("u", 1));
        let request = other.request().unwrap();
        assert_eq!((request.now, request.requester.groups.len()), (NOW, 0), "null takes away");
        let table = request.evidence.get("known").unwrap();
        assert!(table.complete && table.rows[0].name == "a");
    }

    /// What `policy run` reads of the same text.
    #[test]
    fn values_are_those_that_a_request_in_a_file_has() {
        let object = "{mode: 0644, on: y, name: 'on', version: 1.20, size: 1e3}";
        let case = format!(
            "cases: [{{name: on, request: {{operation: create, object: {object}}}, expect: {{verdict: allow}}}}]"
        );
        let suite = Suite::read(&case).unwrap();
        let request = suite.cases[0].request().unwrap();
        let read: Value = yaml::from_str(object).unwrap();
        assert_eq!(serde_json::to_value(&request.object).unwrap(), read);
        assert_eq!((&read["mode"], suite.cases[0].name.as_str()), (&json!(420), "on"));
    }

    #[test]
    fn codes_that_no_case_expects_are_told() {
        let code = |code: &str| ocm_policy_abi::ReasonDoc { code: code.to_owned(), ..Default::default() };
        let manifest = Manifest { reasons: vec![code("NamePrefix"), code("Other")], ..Manifest::default() };
        assert_eq!(Suite::read(FILE).unwrap().uncovered(&manifest), ["Other"]);
    }

    #[test]
    fn reviews_and_objects_are_asked() {
        let suite = Suite::read(
            "
cases:
  - name: a review
    review:
      uid: '7'
      kind: {group: cluster.open-cluster-management.io, version: v1, kind: ManagedCluster}
      resource: {group: cluster.open-cluster-management.io, version: v1, resource: managedclusters}
      operation: CREATE
      userInfo: {username: u}
      object: {metadata: {name: c1}}
    expect: {verdict: allow}
  - name: an object
    objects: {cluster: {metadata: {name: c2}}}
    operation: accept
    requester: {username: v}
    now: 5
    expect: {verdict: allow}
",
        )
        .unwrap();
        let review = suite.cases[0].request().unwrap();
        assert_eq!((review.id.as_str(), review.cluster.unwrap().name.as_str()), ("7", "c1"));
        assert!(review.object.is_some() && suite.cases[0].request_for(&Manifest::default()).unwrap().object.is_none());
        let object = suite.cases[1].request().unwrap();
        assert_eq!((object.operation, object.now, object.requester.username.as_str()), (Operation::Accept, 5, "v"));
    }

    #[test]
    fn mistakes_name_the_line_and_what_to_write() {
        assert!(bad("cases: []").contains("no cases"));
        assert!(bad("case: []").starts_with("line 1: "), "{}", bad("case: []"));
        let one = |case: &str| bad(&format!("cases:\n  - name: n\n    {case}\n    expect: {{verdict: allow}}\n"));
        assert_eq!(one("settings: {}"), "line 2: case \"n\": it asks nothing: write `request`, `review` or `objects`");
        assert!(one("request: {}\n    review: {}").contains("asks twice"));
        assert!(one("request: {operation: create, now: soon}").contains("2026-01-01T00:00:00Z"));
        assert!(one("request: {operation: frobnicate}").contains("frobnicate"));
        assert!(one("request: {}").contains("missing field `operation`"));
        assert!(one("objects: {}").contains("approve, accept, join"));
        assert!(one("objects: {}\n    operation: join").contains("objects.csr"));
        assert!(one("review: {kind: Pod}").contains("must be AdmissionReview"));
        let twice = "cases:\n- &a {name: n, request: {operation: create}, expect: {verdict: allow}}\n- *a\n";
        assert!(bad(twice).contains("name it otherwise"));
    }

    #[test]
    fn patches_are_merged() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        merge(&mut value, &json!({"a": {"b": null, "e": {"f": null, "g": 1}}, "d": [2]}));
        assert_eq!(value, json!({"a": {"c": 2, "e": {"g": 1}}, "d": [2]}));
    }
}
