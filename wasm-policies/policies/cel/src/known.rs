//! A request as expressions see it.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{SerializationError, Value, to_value};
use ocm_policy_sdk::Request;
use serde::Serialize;

/// Members that are there though they are empty: rules need not ask whether a cluster has labels at all.
const MAPS: [&str; 3] = ["labels", "annotations", "extra"];
/// The same of lists.
const LISTS: [&str; 6] = ["groups", "finalizers", "owners", "taints", "claims", "conditions"];

/// The members of a request, by the names that they have in the contract. What it is not about is not there, so that
/// `has()` tells.
pub(crate) fn of(request: &Request<'_>) -> Result<Value, SerializationError> {
    let mut all: HashMap<Key, Value> = HashMap::new();
    let mut put = |name: &str, value: Option<Value>| {
        all.extend(value.map(|value| (Key::from(name), value)));
    };
    put("id", Some(request.id().into()));
    put("operation", Some(request.operation().word().into()));
    put("now", Some(request.now().into()));
    put("dryRun", Some(request.is_dry_run().into()));
    put("attempt", Some(i64::from(request.attempt()).into()));
    put("stage", request.stage().map(|stage| stage.word().into()));
    put("requester", Some(shown(request.requester())?));
    put("creator", request.creator().map(shown).transpose()?);
    put("resource", request.resource().map(shown).transpose()?);
    put("cluster", request.cluster().map(shown).transpose()?);
    put("previous", request.previous().map(shown).transpose()?);
    put("csr", request.csr().map(shown).transpose()?);
    Ok(Value::Map(Map { map: Arc::new(all) }))
}

/// A record with its empty members.
fn shown<T: Serialize>(record: &T) -> Result<Value, SerializationError> {
    let value = to_value(record)?;
    let Value::Map(Map { mut map }) = value else { return Ok(value) };
    let all = Arc::make_mut(&mut map);
    for name in MAPS {
        all.entry(Key::from(name)).or_insert_with(|| HashMap::<Key, Value>::new().into());
    }
    for name in LISTS {
        all.entry(Key::from(name)).or_insert_with(|| Vec::<Value>::new().into());
    }
    // The user of a certificate request is one of its members.
    if let Some(Value::Map(Map { map: inner })) = all.get_mut(&Key::from("requester")) {
        let inner = Arc::make_mut(inner);
        inner.entry(Key::from("groups")).or_insert_with(|| Vec::<Value>::new().into());
        inner.entry(Key::from("extra")).or_insert_with(|| HashMap::<Key, Value>::new().into());
    }
    Ok(Value::Map(Map { map }))
}
