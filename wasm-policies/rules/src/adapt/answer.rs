//! What reading the answers of all contracts has in common.

use ocm_policy_abi::{Decision, Reason};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ERROR_BYTES, PolicyError};
use crate::json::{Unique, shorten};
use crate::validate::Bounds;

pub(super) fn malformed(wrong: impl Into<String>) -> PolicyError {
    PolicyError::Malformed(shorten(&wrong.into(), ERROR_BYTES))
}

/// Reads an answer of at most so many bytes. Readers differ about which of two equal members counts, so there may not
/// be two.
pub(super) fn read(json: &[u8], most: usize) -> Result<Value, PolicyError> {
    if json.len() > most {
        return Err(PolicyError::TooLarge(format!("{} bytes, {most} allowed", json.len())));
    }
    serde_json::from_slice(json).map(|Unique(value)| value).map_err(|error| malformed(error.to_string()))
}

/// Reads an answer that has to be an object: serde takes a list for a struct as well, by position.
pub(super) fn read_object<T: DeserializeOwned>(json: &[u8], most: usize) -> Result<T, PolicyError> {
    typed(read(json, most)?)
}

/// The members of an object.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, PolicyError> {
    if !value.is_object() {
        return Err(malformed("it must be an object"));
    }
    serde_json::from_value(value).map_err(|error| malformed(error.to_string()))
}

pub(super) fn reason(code: &str, message: &str, bounds: &Bounds) -> Reason {
    let message = shorten(message.trim(), bounds.message);
    let message = if message.is_empty() { "the policy does not say why".to_owned() } else { message };
    Reason { code: code.to_owned(), message, field: None }
}

/// The last check of what was made of a foreign answer.
pub(super) fn checked(decision: Decision, bounds: &Bounds) -> Result<Decision, PolicyError> {
    bounds.check(&decision)?;
    Ok(decision)
}

/// The one value of a result set of Rego.
///
/// # Errors
/// The rule is undefined, or it is no result set of one value.
pub(super) fn one_result(json: &[u8], bounds: &Bounds) -> Result<Value, PolicyError> {
    let Value::Array(mut results) = read(json, bounds.bytes)? else {
        return Err(malformed("the result set must be an array"));
    };
    match (results.len(), results.pop()) {
        (_, None) => Err(malformed("the rule is undefined for this request")),
        (1, Some(Value::Object(mut found))) => match (found.remove("result"), found.keys().next()) {
            (Some(result), None) => Ok(result),
            (Some(_), Some(other)) => Err(malformed(format!("the result set has the unknown member {other:?}"))),
            (None, _) => Err(malformed("a result set without result")),
        },
        (1, Some(_)) => Err(malformed("a result must be an object")),
        (more, _) => Err(malformed(format!("{more} results instead of one"))),
    }
}

/// What a rule of Rego says: nothing, true, one message or several.
pub(super) fn messages(
    word: &str,
    value: Option<&Value>,
    code: &str,
    bounds: &Bounds,
) -> Result<Vec<Reason>, PolicyError> {
    let one = |value: &Value| match value {
        Value::String(message) => Ok(reason(code, message, bounds)),
        Value::Object(members) => {
            let message = members.get("msg").or_else(|| members.get("message")).and_then(Value::as_str);
            Ok(reason(code, message.unwrap_or_default(), bounds))
        }
        _ => Err(malformed(format!("{word} holds something that is no message"))),
    };
    match value {
        None | Some(Value::Bool(false)) => Ok(Vec::new()),
        Some(Value::Bool(true)) => Ok(vec![reason(code, "", bounds)]),
        Some(Value::Array(items)) => items.iter().map(one).collect(),
        Some(Value::Object(members)) if members.is_empty() => Ok(Vec::new()),
        Some(value) => one(value).map(|reason| vec![reason]),
    }
}
