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
use serde_json::{Value, json};

use crate::json::{is_empty, step};
use crate::outcome::{Bounds, Fault, read_decision};
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
    Fault::Malformed(wrong.into())
}

/// Reads JSON that is no larger than an answer with the object of `original` in it may be.
fn read<'j, T: Deserialize<'j>>(json: &'j [u8], most: usize) -> Result<T, Fault> {
    if json.len() > most {
        return Err(Fault::TooLarge(format!("{} bytes, {most} allowed", json.len())));
    }
    serde_json::from_slice(json).map_err(|error| malformed(error.to_string()))
}

/// A text within bounds for people: control characters become spaces, and what is too long ends with `…`.
fn shorten(text: &str, bytes: usize) -> String {
    const MORE: &str = "…";
    let mut clean: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if clean.len() > bytes {
        let end = (0..=bytes.saturating_sub(MORE.len())).rev().find(|end| clean.is_char_boundary(*end)).unwrap_or(0);
        clean.truncate(end);
        clean.push_str(MORE);
    }
    clean
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
    let response: ValidationResponse = read(json, bounds.bytes.saturating_add(object.saturating_mul(2)))?;
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
    let response: Response = read(json, bounds.bytes)?;
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
    Fault::EditRefused(format!("{path}: it is changed, and no edit can do that"))
}

/// Refuses any change below `path`, except where edits look themselves.
fn unchanged(path: &str, old: Option<&Value>, new: Option<&Value>, skip: &impl Fn(&str) -> bool) -> Result<(), Fault> {
    if skip(path) || old == new || (is_empty(old) && is_empty(new)) {
        return Ok(());
    }
    // An empty object and none are the same, so that what is below may be added or left out.
    let nothing = serde_json::Map::new();
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
            return Err(Fault::EditRefused(format!("{}: not all taints {key} are removed, {effect} is", at(*index))));
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
    let metadata: Metadata = serde_json::from_slice(section).map_err(|error| Fault::Load(error.to_string()))?;
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

#[derive(Deserialize)]
struct Found {
    result: Value,
}

/// The one value of a result set; none where the rule is undefined.
fn one_result(json: &[u8], bounds: &Bounds) -> Result<Option<Value>, Fault> {
    let mut results: Vec<Found> = read(json, bounds.bytes)?;
    match results.len() {
        0 | 1 => Ok(results.pop().map(|found| found.result)),
        more => Err(malformed(format!("{more} results instead of one"))),
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
