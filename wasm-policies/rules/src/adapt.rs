//! Answers and questions of other kinds of policies, in our words.
//!
//! Such policies do not know our bounds: messages and warnings are shortened and keys of audit entries are put right.
//! Nothing that decides is guessed: what cannot be understood is a fault.

use std::collections::BTreeMap;

use ocm_api::names::labels::CLUSTER_SET;
use ocm_policy_abi::{
    Decision, Edit, EditGrant, Manifest, Operation, Reason, ReasonDoc, Request, TaintEffect, Verdict,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::json::{is_empty, shorten, step};
use crate::outcome::{Bounds, FAULT_BYTES, Fault, read_decision};
use crate::review::admission_request;

/// What the manifest of a Kubewarden policy names as its contract.
pub const KUBEWARDEN_CONTRACT: &str = "kubewarden:policy@v1";

/// Code of the reason why a Kubewarden policy does not accept.
pub const REJECTED: &str = "kubewarden-rejected";
/// Code of the reasons why a Rego rule denies.
pub const REGO_DENIES: &str = "rego-denies";
/// Code of the reasons why a Rego rule holds.
pub const REGO_HOLDS: &str = "rego-holds";
/// Code of the reasons that Gatekeeper calls violations.
pub const VIOLATION: &str = "gatekeeper-violation";

fn malformed(wrong: impl Into<String>) -> Fault {
    Fault::Malformed(shorten(&wrong.into(), FAULT_BYTES))
}

/// Reads an answer of at most so many bytes.
fn read<T: DeserializeOwned>(json: &[u8], most: usize) -> Result<T, Fault> {
    if json.len() > most {
        return Err(Fault::TooLarge(format!("{} bytes, {most} allowed", json.len())));
    }
    serde_json::from_slice(json).map_err(|error| malformed(error.to_string()))
}

/// Reads an answer that has to be an object: serde takes a list for a struct as well, by position.
fn read_object<T: DeserializeOwned>(json: &[u8], most: usize) -> Result<T, Fault> {
    let members: Map<String, Value> = read(json, most)?;
    serde_json::from_value(Value::Object(members)).map_err(|error| malformed(error.to_string()))
}

fn reason(code: &str, message: &str, bounds: &Bounds) -> Reason {
    let message = shorten(message.trim(), bounds.message);
    let message = if message.is_empty() { "the policy does not say why".to_owned() } else { message };
    Reason { code: code.to_owned(), message, field: None }
}

/// The last check of what was made of a foreign answer.
fn checked(decision: Decision, bounds: &Bounds) -> Result<Decision, Fault> {
    bounds.check(&decision)?;
    Ok(decision)
}

// ── Kubewarden ──

/// What a Kubewarden policy is given to validate.
pub fn kubewarden_input(request: &Request<'_>, settings: &Value) -> Value {
    json!({"request": admission_request(request, None), "settings": settings})
}

#[derive(Deserialize)]
struct ValidationResponse {
    accepted: bool,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    code: Option<u16>,
    #[serde(default)]
    mutated_object: Option<Value>,
    #[serde(default)]
    audit_annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

/// Reads the answer of a Kubewarden policy about `original`, the object that it was given; none for a deletion.
///
/// # Errors
/// [`Fault::EditRefused`] names the path of a change that is none of our edits.
pub fn kubewarden_response(json: &[u8], original: Option<&Value>, bounds: &Bounds) -> Result<Decision, Fault> {
    // A mutated object comes back whole.
    let object = original.map_or(0, |object| object.to_string().len());
    let response: ValidationResponse = read_object(json, bounds.bytes.saturating_add(object.saturating_mul(2)))?;
    let mut decision = Decision {
        warnings: response
            .warnings
            .unwrap_or_default()
            .iter()
            .filter(|warning| !warning.is_empty())
            .take(bounds.warnings)
            .map(|warning| shorten(warning, bounds.warning))
            .collect(),
        audit: response
            .audit_annotations
            .unwrap_or_default()
            .iter()
            .filter_map(|(key, value)| Some((audit_key(key)?, shorten(value, bounds.audit_value))))
            .take(bounds.audit)
            .collect(),
        ..Decision::default()
    };
    if response.accepted {
        decision.verdict = Verdict::Allow;
        if let Some(mutated) = response.mutated_object.filter(|mutated| !mutated.is_null()) {
            let original = original.ok_or_else(|| Fault::EditRefused("/: there is no object to change".to_owned()))?;
            decision.edits = diff(original, &mutated)?;
        }
    } else {
        decision.verdict = Verdict::Deny;
        decision.reasons.push(reason(REJECTED, response.message.as_deref().unwrap_or_default(), bounds));
        if let Some(code) = response.code
            && decision.audit.len() < bounds.audit
        {
            decision.audit.insert("code".to_owned(), code.to_string());
        }
    }
    checked(decision, bounds)
}

/// A key that the audit log takes; none if nothing of it is left.
fn audit_key(key: &str) -> Option<String> {
    let fit = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    let key: String = key.chars().map(fit).take(63).collect();
    let key = key.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    (!key.is_empty()).then(|| key.to_owned())
}

/// What a policy says of its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settings {
    /// They can be used.
    Valid,
    /// They cannot, and why.
    Invalid(String),
}

/// Reads what a Kubewarden policy says of its settings.
///
/// # Errors
/// It says nothing that can be understood.
pub fn kubewarden_settings(json: &[u8], bounds: &Bounds) -> Result<Settings, Fault> {
    #[derive(Deserialize)]
    struct Response {
        valid: bool,
        #[serde(default)]
        message: Option<String>,
    }
    let response: Response = read_object(json, bounds.bytes)?;
    Ok(match response.valid {
        true => Settings::Valid,
        false => Settings::Invalid(reason(REJECTED, response.message.as_deref().unwrap_or_default(), bounds).message),
    })
}

/// The edits that make `mutated` of `original`. Missing, null and empty are the same: typed policies in other languages
/// write an object back in their own way.
///
/// # Errors
/// [`Fault::EditRefused`] names the first path of a change that is no edit.
pub fn diff(original: &Value, mutated: &Value) -> Result<Vec<Edit>, Fault> {
    let mut edits = Vec::new();
    unchanged("", Some(original), Some(mutated), &|path| EDITABLE.contains(&path))?;
    let both = |pointer| (original.pointer(pointer), mutated.pointer(pointer));
    for (key, value) in changes("/metadata/labels", both("/metadata/labels"))? {
        edits.push(match (key, value) {
            (CLUSTER_SET, Some(name)) => Edit::SetClusterSet { name },
            (CLUSTER_SET, None) => return Err(refused(&format!("/metadata/labels/{}", step(CLUSTER_SET)))),
            (key, Some(value)) => Edit::SetLabel { key: key.to_owned(), value },
            (key, None) => Edit::RemoveLabel { key: key.to_owned() },
        });
    }
    for (key, value) in changes("/metadata/annotations", both("/metadata/annotations"))? {
        edits.push(match value {
            Some(value) => Edit::SetAnnotation { key: key.to_owned(), value },
            None => Edit::RemoveAnnotation { key: key.to_owned() },
        });
    }
    diff_taints(both("/spec/taints"), &mut edits)?;
    let (old, new) = both(LEASE);
    if old != new && !(is_empty(old) && is_empty(new)) {
        let seconds = new.and_then(Value::as_u64).and_then(|seconds| u32::try_from(seconds).ok());
        edits.push(Edit::SetLeaseDuration { seconds: seconds.ok_or_else(|| refused(LEASE))? });
    }
    Ok(edits)
}

const LEASE: &str = "/spec/leaseDurationSeconds";
const EDITABLE: [&str; 4] = ["/metadata/labels", "/metadata/annotations", "/spec/taints", LEASE];

fn refused(path: &str) -> Fault {
    Fault::EditRefused(format!("{}: it is changed, and no edit can do that", shorten(path, FAULT_BYTES)))
}

/// Refuses any change below `path`, except where edits look themselves.
fn unchanged(path: &str, old: Option<&Value>, new: Option<&Value>, skip: &impl Fn(&str) -> bool) -> Result<(), Fault> {
    if skip(path) || old == new || (is_empty(old) && is_empty(new)) {
        return Ok(());
    }
    // An empty object and none are the same, so that what is below may be added or left out.
    let nothing = Map::new();
    let members = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Some(nothing.clone()),
        Some(Value::Object(members)) => Some(members.clone()),
        Some(_) => None,
    };
    match (members(old), members(new)) {
        (Some(old), Some(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter()
                .try_for_each(|key| unchanged(&format!("{path}/{}", step(key)), old.get(key), new.get(key), skip))
        }
        _ => match (old, new) {
            (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
                old.iter().zip(new).enumerate().try_for_each(|(index, (old, new))| {
                    unchanged(&format!("{path}/{index}"), Some(old), Some(new), skip)
                })
            }
            _ => Err(refused(if path.is_empty() { "/" } else { path })),
        },
    }
}

/// What differs between two maps of texts, sorted by key: the new values, none where a key is gone.
fn changes<'v>(
    path: &str,
    (old, new): (Option<&'v Value>, Option<&'v Value>),
) -> Result<BTreeMap<&'v str, Option<String>>, Fault> {
    let mut found = BTreeMap::new();
    if !is_empty(new) && new.and_then(Value::as_object).is_none() {
        return Err(refused(path));
    }
    let new = new.and_then(Value::as_object);
    let old = old.and_then(Value::as_object);
    for (key, value) in new.into_iter().flatten() {
        if old.and_then(|old| old.get(key)) != Some(value) {
            let value = value.as_str().ok_or_else(|| refused(&format!("{path}/{}", step(key))))?;
            found.insert(key.as_str(), Some(value.to_owned()));
        }
    }
    for key in old.into_iter().flat_map(|old| old.keys()) {
        if new.is_none_or(|new| !new.contains_key(key)) {
            found.insert(key, None);
        }
    }
    Ok(found)
}

/// Taints by key and effect: where they stand and what they are. The order says nothing.
type Taints<'v> = BTreeMap<(&'v str, &'v str), (usize, &'v Value)>;

fn diff_taints((old, new): (Option<&Value>, Option<&Value>), edits: &mut Vec<Edit>) -> Result<(), Fault> {
    const PATH: &str = "/spec/taints";
    let at = |index: usize| format!("{PATH}/{index}");
    let word = |taint: &Value, name: &str| taint.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    if old == new || (is_empty(old) && is_empty(new)) {
        return Ok(());
    }
    let old = taints(old).map_err(|_| refused(PATH))?;
    let new = taints(new).map_err(|index| refused(&index.map_or_else(|| PATH.to_owned(), at)))?;
    let mut removed: Vec<&str> = Vec::new();
    for (key, effect) in old.keys().filter(|name| !new.contains_key(*name)) {
        if let Some((_, (index, _))) = new.iter().find(|((other, _), _)| other == key) {
            // An edit removes all taints of a key, and here one of them stays or comes.
            let wrong = format!("{}: not all taints {key} are removed, {effect} is", at(*index));
            return Err(Fault::EditRefused(shorten(&wrong, FAULT_BYTES)));
        }
        if removed.last() != Some(key) {
            removed.push(key);
        }
    }
    edits.extend(removed.into_iter().map(|key| Edit::RemoveTaint { key: key.to_owned() }));
    for ((key, effect), (index, taint)) in new {
        let before = old.get(&(key, effect)).map(|(_, before)| *before);
        let known = ["key", "value", "effect", "timeAdded"];
        let members = taint.as_object().into_iter().flat_map(|members| members.keys());
        if let Some(other) = members.into_iter().find(|member| !known.contains(&member.as_str())) {
            return Err(refused(&format!("{}/{}", at(index), step(other))));
        }
        let time = |taint: &Value| taint.get("timeAdded").filter(|time| !time.is_null()).cloned();
        if time(taint).is_some() && time(taint) != before.and_then(time) {
            return Err(refused(&format!("{}/timeAdded", at(index))));
        }
        let value = word(taint, "value");
        if before.is_some_and(|before| word(before, "value") == value) {
            continue;
        }
        let effect = match effect {
            "NoSelect" => TaintEffect::NoSelect,
            "PreferNoSelect" => TaintEffect::PreferNoSelect,
            "NoSelectIfNew" => TaintEffect::NoSelectIfNew,
            _ => return Err(refused(&format!("{}/effect", at(index)))),
        };
        edits.push(Edit::AddTaint { key: key.to_owned(), value, effect });
    }
    Ok(())
}

/// The taints of a list; the place of the one that is wrong, or none if all is.
fn taints(list: Option<&Value>) -> Result<Taints<'_>, Option<usize>> {
    if is_empty(list) {
        return Ok(Taints::new());
    }
    let mut found = Taints::new();
    for (index, taint) in list.and_then(Value::as_array).ok_or(None)?.iter().enumerate() {
        let word = |name: &str| taint.get(name).and_then(Value::as_str);
        let value_is_text = taint.get("value").is_none_or(|value| value.is_string() || value.is_null());
        let name = word("key").zip(word("effect")).filter(|_| value_is_text).ok_or(Some(index))?;
        if found.insert(name, (index, taint)).is_some() {
            return Err(Some(index));
        }
    }
    Ok(found)
}

/// Makes a manifest of the section `io.kubewarden.metadata` of a Kubewarden policy. What it may edit is not told in
/// detail, so one that changes objects announces everything that an administrator can permit by pattern.
///
/// # Errors
/// [`Fault::Load`]: it is no such section, or the policy is not about objects of Kubernetes.
pub fn kubewarden_manifest(section: &[u8]) -> Result<Manifest, Fault> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        protocol_version: Option<String>,
        #[serde(default)]
        rules: Vec<Rule>,
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
        #[serde(default)]
        mutating: bool,
        #[serde(default)]
        policy_type: Option<String>,
    }
    let metadata: Metadata =
        read_object(section, usize::MAX).map_err(|fault| Fault::Load(format!("io.kubewarden.metadata: {fault}")))?;
    if let Some(version) = metadata.protocol_version.filter(|version| version != "v1") {
        return Err(Fault::Load(format!("protocol version {version:?} is not known")));
    }
    if let Some(kind) = metadata.policy_type.filter(|kind| kind != "kubernetes") {
        return Err(Fault::Load(format!("policies of type {kind:?} are not about objects of Kubernetes")));
    }
    let annotations = metadata.annotations.unwrap_or_default();
    let about = |name: &str| annotations.get(&format!("io.kubewarden.policy.{name}")).map(String::as_str);
    let mut operations: Vec<Operation> = metadata.rules.iter().flat_map(Rule::operations).collect();
    operations.sort();
    operations.dedup();
    let any = || "*".to_owned();
    let edits = match metadata.mutating {
        true => vec![
            EditGrant::Label { key: any() },
            EditGrant::Annotation { key: any() },
            EditGrant::Taint { key: any() },
            EditGrant::ClusterSet,
            EditGrant::LeaseDuration,
        ],
        false => Vec::new(),
    };
    Ok(Manifest {
        contract: KUBEWARDEN_CONTRACT.to_owned(),
        name: name_of(about("title").unwrap_or_default()),
        version: about("version").unwrap_or("0.0.0").to_owned(),
        description: shorten(about("description").unwrap_or_default(), Bounds::default().message),
        operations,
        wants_object: true,
        edits,
        reasons: vec![ReasonDoc {
            code: REJECTED.to_owned(),
            description: "the policy does not accept the object".to_owned(),
        }],
        ..Manifest::default()
    })
}

/// A DNS label that resembles a title.
fn name_of(title: &str) -> String {
    let fit = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = title.chars().map(fit).take(63).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "kubewarden-policy".to_owned() } else { name.to_owned() }
}

/// A rule of a webhook: what a Kubewarden policy wants to see.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(default)]
    api_groups: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    operations: Vec<String>,
}

impl Rule {
    fn operations(&self) -> Vec<Operation> {
        let has = |list: &[String], word: &str| list.iter().any(|known| known == word || known == "*");
        let verb = |word: &str| has(&self.operations, word);
        let resource =
            |word: &str, any: &str| self.resources.iter().any(|known| known == word || known == any || known == "*/*");
        let mut found = Vec::new();
        let mut rest =
            self.api_groups.iter().any(|group| group == "*") || self.resources.iter().any(|r| r.contains('*'));
        if has(&self.api_groups, "cluster.open-cluster-management.io") && resource("managedclusters", "*") {
            let pairs = [("CREATE", Operation::Create), ("UPDATE", Operation::Update), ("DELETE", Operation::Delete)];
            found.extend(pairs.into_iter().filter(|(word, _)| verb(word)).map(|(_, operation)| operation));
        } else {
            rest = true;
        }
        if has(&self.api_groups, "certificates.k8s.io") {
            let created = verb("CREATE") && resource("certificatesigningrequests", "*");
            let approved = verb("UPDATE") && resource("certificatesigningrequests/approval", "*/approval");
            if created || approved {
                found.push(Operation::Approve);
            }
        }
        if rest {
            found.push(Operation::Admit);
        }
        found
    }
}

// ── Open Policy Agent ──

/// What a Rego policy finds as `input`: our request.
pub fn opa_input(request: &Request<'_>) -> Value {
    serde_json::to_value(request).unwrap_or(Value::Null)
}

/// What a Gatekeeper template finds as `input`.
pub fn gatekeeper_input(request: &Request<'_>, parameters: &Value) -> Value {
    json!({"review": admission_request(request, None), "parameters": parameters})
}

/// The one value of a result set; none where the rule is undefined.
fn one_result(json: &[u8], bounds: &Bounds) -> Result<Option<Value>, Fault> {
    let mut results: Vec<Map<String, Value>> = read(json, bounds.bytes)?;
    match (results.len(), results.pop()) {
        (_, None) => Ok(None),
        (1, Some(mut found)) => {
            found.remove("result").map(Some).ok_or_else(|| malformed("a result set without result"))
        }
        (more, _) => Err(malformed(format!("{more} results instead of one"))),
    }
}

/// Reads the result set of a Rego rule. The last part of `entrypoint`, such as `ocm/deny`, tells what a bare value
/// means: of `deny`, `violation` and `hold` true or messages deny or hold and nothing is no opinion; of any other rule
/// true allows and false denies. A whole package or an object may have members `allow`, `deny`, `violation`, `hold` and
/// `warn`, or be a decision in our words, with `verdict`. Undefined is no opinion.
///
/// # Errors
/// The value is of none of these forms.
pub fn opa_result(json: &[u8], entrypoint: &str, bounds: &Bounds) -> Result<Decision, Fault> {
    let Some(result) = one_result(json, bounds)? else { return Ok(Decision::default()) };
    if result.get("verdict").is_some() {
        return read_decision(result.to_string().as_bytes(), bounds);
    }
    let rule = entrypoint.rsplit(['/', '.']).next().unwrap_or_default();
    let members = match (&result, rule) {
        (Value::Object(_), rule) if !HOLDING.contains(&rule) && !DENYING.contains(&rule) => result,
        (_, "deny" | "violation" | "hold") => json!({rule: result}),
        (Value::Bool(allow), _) => json!({"allow": allow}),
        _ => return Err(malformed(format!("the result of {entrypoint} is neither a boolean nor an object"))),
    };
    let mut decision = Decision::default();
    for word in DENYING {
        decision.reasons.extend(messages(word, members.get(word), REGO_DENIES, bounds)?);
    }
    let allow = match members.get("allow") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(allow)) => Some(*allow),
        Some(_) => return Err(malformed("allow is no boolean")),
    };
    let holds = messages("hold", members.get("hold"), REGO_HOLDS, bounds)?;
    decision.verdict = match allow {
        _ if !decision.reasons.is_empty() => Verdict::Deny,
        Some(false) if holds.is_empty() => {
            decision.reasons.push(reason(REGO_DENIES, "the policy does not allow it", bounds));
            Verdict::Deny
        }
        // A rule that says to wait says more than a default that nothing is allowed yet.
        _ if !holds.is_empty() => Verdict::Hold,
        Some(true) => Verdict::Allow,
        _ => Verdict::NoOpinion,
    };
    if decision.verdict == Verdict::Hold {
        decision.reasons = holds;
    }
    decision.reasons.truncate(bounds.reasons);
    for warning in messages("warn", members.get("warn"), REGO_DENIES, bounds)?.into_iter().take(bounds.warnings) {
        decision.warnings.push(shorten(&warning.message, bounds.warning));
    }
    checked(decision, bounds)
}

const DENYING: [&str; 2] = ["deny", "violation"];
const HOLDING: [&str; 1] = ["hold"];

/// What a rule says: nothing, true, one message or several.
fn messages(word: &str, value: Option<&Value>, code: &str, bounds: &Bounds) -> Result<Vec<Reason>, Fault> {
    let one = |value: &Value| match value {
        Value::String(message) => Ok(reason(code, message, bounds)),
        Value::Object(members) => {
            let message = members.get("msg").or_else(|| members.get("message")).and_then(Value::as_str);
            Ok(reason(code, message.unwrap_or_default(), bounds))
        }
        _ => Err(malformed(format!("{word} holds something that is no message"))),
    };
    match value {
        None | Some(Value::Null | Value::Bool(false)) => Ok(Vec::new()),
        Some(Value::Bool(true)) => Ok(vec![reason(code, "", bounds)]),
        Some(Value::Array(items)) => items.iter().map(one).collect(),
        Some(Value::Object(members)) if members.is_empty() => Ok(Vec::new()),
        Some(value) => one(value).map(|reason| vec![reason]),
    }
}

/// Reads the result set of a Gatekeeper template's `violation`: each denies, and none of them allows.
///
/// # Errors
/// The value is no set of violations.
pub fn gatekeeper_result(json: &[u8], bounds: &Bounds) -> Result<Decision, Fault> {
    let Some(result) = one_result(json, bounds)? else { return Ok(Decision::default()) };
    let Value::Array(violations) = &result else { return Err(malformed("the result is no set of violations")) };
    if let Some(other) = violations.iter().find(|violation| !violation.is_object()) {
        return Err(malformed(format!("{} is no violation", shorten(&other.to_string(), 64))));
    }
    let mut reasons = messages("violation", Some(&result), VIOLATION, bounds)?;
    reasons.truncate(bounds.reasons);
    let verdict = if reasons.is_empty() { Verdict::Allow } else { Verdict::Deny };
    checked(Decision { verdict, reasons, ..Decision::default() }, bounds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"name": "c1", "labels": {"team": "a", CLUSTER_SET: "default"}, "annotations": {"n": "1"}},
            "spec": {
                "hubAcceptsClient": false,
                "leaseDurationSeconds": 60,
                "taints": [
                    {"key": "k", "effect": "NoSelect", "timeAdded": "2026-11-20T23:04:52Z"},
                    {"key": "k", "effect": "PreferNoSelect"},
                    {"key": "l", "value": "1", "effect": "NoSelect"},
                ],
            },
        })
    }

    fn kubewarden(response: Value, original: Option<&Value>) -> Result<Decision, Fault> {
        kubewarden_response(response.to_string().as_bytes(), original, &Bounds::default())
    }

    fn mutated(change: impl FnOnce(&mut Value)) -> Result<Vec<Edit>, Fault> {
        let mut mutated = object();
        change(&mut mutated);
        let response = json!({"accepted": true, "mutated_object": mutated});
        kubewarden(response, Some(&object())).map(|decision| decision.edits)
    }

    #[test]
    fn kubewarden_accepts_and_rejects() {
        let allow = kubewarden(json!({"accepted": true, "mutated_object": null}), None).unwrap();
        assert_eq!(allow, Decision { verdict: Verdict::Allow, ..Decision::default() });
        let response = json!({
            "accepted": false, "message": "no\nreason ", "code": 403,
            "audit_annotations": {"a/b": "c", "//": "d"}, "warnings": ["w".repeat(300), ""],
        });
        let deny = kubewarden(response, None).unwrap();
        assert_eq!((deny.verdict, &*deny.reasons[0].code), (Verdict::Deny, REJECTED));
        assert_eq!(deny.reasons[0].message, "no reason");
        assert_eq!(deny.audit, [("a-b".into(), "c".into()), ("code".into(), "403".into())].into());
        assert_eq!((deny.warnings.len(), deny.warnings[0].len()), (1, 256));
        let silent = kubewarden(json!({"accepted": false}), None).unwrap();
        assert_eq!(silent.reasons[0].message, "the policy does not say why");
        for wrong in [json!({}), json!({"accepted": "true"}), json!({"accepted": 1}), json!([true]), json!(null)] {
            assert_eq!(kubewarden(wrong.clone(), None).unwrap_err().code(), "malformed", "{wrong}");
        }
    }

    #[test]
    fn mutations_become_edits() {
        let edits = mutated(|object| {
            object["metadata"]["labels"] = json!({"team": "b", CLUSTER_SET: "prod"});
            object["metadata"]["annotations"] = Value::Null;
            object["metadata"]["creationTimestamp"] = Value::Null;
            object["spec"]["leaseDurationSeconds"] = json!(30);
            object["status"] = json!({});
            object["spec"]["taints"] = json!([
                {"key": "new", "effect": "NoSelect"},
                {"key": "k", "effect": "PreferNoSelect", "value": "v"},
                {"key": "k", "effect": "NoSelect", "timeAdded": "2026-11-20T23:04:52Z"},
            ]);
        });
        let key = String::from;
        assert_eq!(
            edits.unwrap(),
            [
                Edit::SetClusterSet { name: "prod".into() },
                Edit::SetLabel { key: key("team"), value: "b".into() },
                Edit::RemoveAnnotation { key: key("n") },
                Edit::RemoveTaint { key: key("l") },
                Edit::AddTaint { key: key("k"), value: "v".into(), effect: TaintEffect::PreferNoSelect },
                Edit::AddTaint { key: key("new"), value: String::new(), effect: TaintEffect::NoSelect },
                Edit::SetLeaseDuration { seconds: 30 },
            ]
        );
        assert_eq!(mutated(|_| {}).unwrap(), []);
    }

    #[test]
    fn other_mutations_are_refused_by_path() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 12] = [
            (|object| object["spec"]["hubAcceptsClient"] = json!(true), "/spec/hubAcceptsClient"),
            (|object| object["metadata"]["finalizers"] = json!(["x"]), "/metadata/finalizers"),
            (|object| object["metadata"]["name"] = json!("c2"), "/metadata/name"),
            (|object| object["status"] = json!({"a": {"b": 1}}), "/status/a/b"),
            (|object| object["spec"] = Value::Null, "/spec/hubAcceptsClient"),
            (|object| *object = json!([]), "/"),
            (|object| object["metadata"]["labels"]["team"] = json!(1), "/metadata/labels/team"),
            (
                |object| object["metadata"]["labels"] = json!({"team": "a"}),
                "/metadata/labels/cluster.open-cluster-management.io~1clusterset",
            ),
            (
                |object| object["spec"]["taints"][0]["timeAdded"] = json!("2020-01-01T00:00:00Z"),
                "/spec/taints/0/timeAdded",
            ),
            (|object| object["spec"]["taints"][0]["more"] = json!(1), "/spec/taints/0/more"),
            (|object| object["spec"]["taints"][1]["effect"] = json!("NoSelectIfNew"), "/spec/taints/0"),
            (|object| object["spec"]["leaseDurationSeconds"] = json!(-1), "/spec/leaseDurationSeconds"),
        ];
        for (change, path) in cases {
            let fault = mutated(change).unwrap_err();
            assert!(
                matches!(&fault, Fault::EditRefused(what) if what.starts_with(&format!("{path}: "))),
                "{path}: {fault}"
            );
        }
        let deleted = kubewarden(json!({"accepted": true, "mutated_object": object()}), None);
        assert_eq!(deleted.unwrap_err().code(), "edit-refused");
    }

    #[test]
    fn kubewarden_settings_and_metadata() {
        let bounds = Bounds::default();
        assert_eq!(kubewarden_settings(br#"{"valid": true}"#, &bounds), Ok(Settings::Valid));
        let invalid = kubewarden_settings(br#"{"valid": false, "message": "no"}"#, &bounds);
        assert_eq!(invalid, Ok(Settings::Invalid("no".into())));
        assert!(kubewarden_settings(b"{}", &bounds).is_err());
        let section = json!({
            "protocolVersion": "v1", "mutating": true, "executionMode": "kubewarden-wapc",
            "annotations": {"io.kubewarden.policy.title": "Team Labels!", "io.kubewarden.policy.version": "1.2.3"},
            "rules": [
                {"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["v1"],
                 "resources": ["managedclusters"], "operations": ["CREATE", "UPDATE"]},
                {"apiGroups": ["certificates.k8s.io"], "apiVersions": ["v1"],
                 "resources": ["certificatesigningrequests/approval"], "operations": ["UPDATE"]},
            ],
        });
        let manifest = kubewarden_manifest(section.to_string().as_bytes()).unwrap();
        assert_eq!((&*manifest.name, &*manifest.version), ("team-labels", "1.2.3"));
        assert_eq!(manifest.operations[..3], [Operation::Create, Operation::Update, Operation::Approve]);
        assert!(manifest.wants_object && manifest.edits.len() == 5);
        let pods = br#"{"rules": [{"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}]}"#;
        let manifest = kubewarden_manifest(pods).unwrap();
        assert_eq!((&manifest.operations[..], &manifest.edits[..]), (&[Operation::Admit][..], &[][..]));
        assert_eq!(kubewarden_manifest(br#"{"policyType": "raw"}"#).unwrap_err().code(), "load");
        assert_eq!(kubewarden_manifest(br#"{"protocolVersion": "v9"}"#).unwrap_err().code(), "load");
    }

    #[test]
    fn rego_says_it_in_many_ways() {
        let bounds = Bounds::default();
        let ask = |result: Value, entry: &str| {
            let set = json!([{"result": result}]).to_string();
            opa_result(set.as_bytes(), entry, &bounds).map(|decision| decision.verdict)
        };
        for (result, entry, verdict) in [
            (json!(true), "ocm/allow", Verdict::Allow),
            (json!(false), "ocm/allow", Verdict::Deny),
            (json!(true), "ocm/deny", Verdict::Deny),
            (json!(false), "ocm/deny", Verdict::NoOpinion),
            (json!(["no"]), "ocm/deny", Verdict::Deny),
            (json!([]), "ocm/deny", Verdict::NoOpinion),
            (json!(["later"]), "ocm/hold", Verdict::Hold),
            (json!([{"msg": "no"}]), "ocm/violation", Verdict::Deny),
            (json!({"allow": true}), "ocm", Verdict::Allow),
            (json!({"allow": false}), "ocm", Verdict::Deny),
            (json!({"allow": true, "deny": ["no"]}), "ocm", Verdict::Deny),
            (json!({"allow": true, "hold": ["later"]}), "ocm", Verdict::Hold),
            (json!({"allow": false, "hold": ["later"]}), "ocm", Verdict::Hold),
            (json!({"allow": true, "deny": [], "helper": 1}), "ocm", Verdict::Allow),
            (json!({"deny": []}), "ocm", Verdict::NoOpinion),
            (json!({}), "ocm", Verdict::NoOpinion),
            (json!({"verdict": "allow"}), "ocm/decision", Verdict::Allow),
        ] {
            assert_eq!(ask(result.clone(), entry), Ok(verdict), "{result} {entry}");
        }
        for (result, entry) in [
            (json!("yes"), "ocm/allow"),
            (json!(["yes"]), "ocm/allow"),
            (json!({"allow": "true"}), "ocm"),
            (json!({"deny": [1]}), "ocm"),
            (json!({"deny": 0}), "ocm"),
            (json!({"verdict": "allow", "more": 1}), "ocm"),
            (json!({"verdict": "deny"}), "ocm"),
        ] {
            assert_eq!(ask(result.clone(), entry).unwrap_err().code(), "malformed", "{result} {entry}");
        }
        for set in ["[[true]]", "[{}]", "true", r#"[{"result": true}, {"result": true}]"#, r#"{"result": true}"#] {
            assert_eq!(opa_result(set.as_bytes(), "ocm/allow", &bounds).unwrap_err().code(), "malformed", "{set}");
        }
        assert_eq!(opa_result(b"[]", "ocm/allow", &bounds), Ok(Decision::default()));
        let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(ask(json!(many), "ocm/deny"), Ok(Verdict::Deny));
    }

    #[test]
    fn gatekeeper_denies_by_violations_alone() {
        let ask = |result: Value| gatekeeper_result(result.to_string().as_bytes(), &Bounds::default());
        assert_eq!(ask(json!([{"result": []}])).unwrap().verdict, Verdict::Allow);
        let deny = ask(json!([{"result": [{"msg": "no", "details": {"a": 1}}, {}]}])).unwrap();
        assert_eq!((deny.verdict, deny.reasons.len()), (Verdict::Deny, 2));
        assert_eq!((&*deny.reasons[0].code, &*deny.reasons[0].message), (VIOLATION, "no"));
        assert_eq!(ask(json!([])).unwrap().verdict, Verdict::NoOpinion);
        for wrong in [json!([{"result": true}]), json!([{"result": ["no"]}]), json!([{"result": {}}]), json!({})] {
            assert_eq!(ask(wrong.clone()).unwrap_err().code(), "malformed", "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_made_of_foreign_answers_keeps_to_the_bounds(
            message in ".{0,600}", warning in ".{0,200}", key in ".{0,80}",
        ) {
            let response = json!({
                "accepted": false, "message": message, "warnings": [warning], "audit_annotations": {key: message},
            });
            prop_assert!(kubewarden(response, None).is_ok());
        }
    }
}
