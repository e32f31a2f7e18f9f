//! A request as expressions see it.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{SerializationError, Value, to_value};
use ocm_policy_sdk::Request;
use serde::Serialize;

use crate::names::Members;

/// Members that are there though they are empty, maps and lists: rules need not ask whether a cluster has labels at all.
type Always = (&'static [&'static str], &'static [&'static str]);

/// Of users.
const USER: Always = (&["extra"], &["groups"]);
/// Of API objects.
const RESOURCE: Always = (&["options"], &[]);
/// Of ManagedClusters.
const CLUSTER: Always =
    (&["labels", "annotations"], &["finalizers", "owners", "taints", "clientConfigs", "claims", "conditions"]);
/// Of certificate requests.
const CSR: Always = (&["labels", "annotations"], &[]);

/// The members of a request that are looked at, by the names that they have in the contract. What it is not about is not
/// there, so that `has()` tells.
pub(crate) fn of(request: &Request<'_>, wanted: &Members) -> Result<Value, SerializationError> {
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
    // To show one of these takes longer than most rules do.
    let mut show = |name: &str, show: &dyn Fn() -> Result<Option<Value>, SerializationError>| {
        if wanted.has(name) {
            put(name, show()?);
        }
        Ok(())
    };
    show("requester", &|| shown(request.requester(), USER).map(Some))?;
    show("creator", &|| request.creator().map(|user| shown(user, USER)).transpose())?;
    show("resource", &|| request.resource().map(|resource| shown(resource, RESOURCE)).transpose())?;
    show("cluster", &|| request.cluster().map(|cluster| shown(cluster, CLUSTER)).transpose())?;
    show("previous", &|| request.previous().map(|cluster| shown(cluster, CLUSTER)).transpose())?;
    show("csr", &|| request.csr().map(|csr| shown(csr, CSR)).transpose())?;
    Ok(Value::Map(Map { map: Arc::new(all) }))
}

/// A record with its empty members.
fn shown<T: Serialize>(record: &T, always: Always) -> Result<Value, SerializationError> {
    let mut value = to_value(record)?;
    fill(&mut value, always);
    // The user of a certificate request is one of its members.
    if let Value::Map(Map { map }) = &mut value
        && let Some(user) = Arc::make_mut(map).get_mut(&Key::from("requester"))
    {
        fill(user, USER);
    }
    Ok(value)
}

fn fill(value: &mut Value, (maps, lists): Always) {
    let Value::Map(Map { map }) = value else { return };
    let all = Arc::make_mut(map);
    for name in maps {
        all.entry(Key::from(*name)).or_insert_with(|| HashMap::<Key, Value>::new().into());
    }
    for name in lists {
        all.entry(Key::from(*name)).or_insert_with(|| Vec::<Value>::new().into());
    }
}
