//! Follows objects of the hub, and tells when nobody can tell any more.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::Api;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use ocm_core::Reason;
use ocm_kube::explain;
use serde_json::{Value, json};

/// Seconds after which the server ends a watch, and it is made again: so one that fell silent is noticed.
const WATCH_SECONDS: u32 = 25;
/// A watch of so long was ended by the server, as it was told to.
const WHOLE: Duration = Duration::from_secs(WATCH_SECONDS as u64 - 1);
/// How long a watch may be silent past its end.
const SILENT: Duration = Duration::from_secs(30);
/// Objects of a page: what is decoded at once.
const PAGE: u32 = 200;
/// Pauses after failures: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// The code of an answer that says that what was asked for is too old (`410 Gone`): everything is read anew.
const GONE: u16 = 410;

/// Bytes of them beyond which nothing is kept, as if all had come with the object: whoever creates it may bring any number.
const MOST: usize = 16 << 10;
/// The member of an entry of `managedFields` that is about the metadata.
const METADATA: &str = "f:metadata";

/// How long an answer may take that has to come at once: a page of a list, the beginning of a watch.
const ANSWER: Duration = Duration::from_secs(10);

/// Something that happened to objects that are followed.
pub enum Change {
    /// All of them are read anew.
    Begun,
    /// One of them.
    Listed(Value),
    /// That was all, as it was at this resource version; none where the hub serves no such objects.
    Complete(Option<String>),
    /// One is new or has changed.
    Now(Value),
    /// One is gone.
    Gone(Value),
    /// Nothing else has happened until now.
    Confirmed,
    /// Why nothing can be told for the time being.
    Lost(String),
}

/// What hears of changes.
pub trait Sink: Send + Sync {
    /// Takes what happened.
    fn take(&self, change: Change);

    /// Whether objects come with what tells which of their metadata was added later (`metadata.managedFields`).
    fn wants_managed_fields(&self) -> bool {
        false
    }
}

/// What it means that the hub does not serve a kind of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// Nobody can tell what there is.
    Lost,
    /// There is none.
    Nothing,
}

/// Follows until it is dropped.
///
/// Not by the watcher of the client library, which does not tell that a watch stands again: on a hub at rest nobody could
/// tell what is fresh from what is lost.
pub async fn follow(api: Api<DynamicObject>, fields: Option<String>, unserved: Unserved, sink: &dyn Sink) {
    let mut pause = PAUSES[0];
    loop {
        let why = match list(&api, fields.as_deref(), unserved, sink).await {
            // It is looked again and again whether it serves the kind by now.
            Ok(None) => {
                sink.take(Change::Complete(None));
                tokio::time::sleep(PAUSES[1]).await;
                continue;
            }
            Ok(Some(version)) => match watch(&api, fields.as_deref(), sink, version, &mut pause).await {
                // The server no longer knows what came after: that is no failure, but whoever answers so each time must not
                // be asked without end.
                None => {
                    tokio::time::sleep(PAUSES[0]).await;
                    continue;
                }
                Some(why) => why,
            },
            Err(why) => why,
        };
        sink.take(Change::Lost(why));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES[1]);
    }
}

/// Reads all objects; gives their resource version, or none where the hub does not serve them and that means that there are
/// none.
async fn list(
    api: &Api<DynamicObject>,
    fields: Option<&str>,
    unserved: Unserved,
    sink: &dyn Sink,
) -> Result<Option<String>, String> {
    sink.take(Change::Begun);
    let mut params = ListParams { field_selector: fields.map(str::to_owned), ..ListParams::default() }.limit(PAGE);
    loop {
        let page = match in_time(api.list(&params)).await? {
            Ok(page) => page,
            Err(error) => {
                let failure = explain(&error);
                let is_nothing = unserved == Unserved::Nothing && failure.reason == Reason::KindNotServed;
                return if is_nothing { Ok(None) } else { Err(failure.to_string()) };
            }
        };
        for object in page.items {
            sink.take(Change::Listed(value(object, sink)));
        }
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            let version = page.metadata.resource_version.unwrap_or_default();
            sink.take(Change::Complete(Some(version.clone())));
            return Ok(Some(version));
        }
    }
}

/// Follows all changes after a version, watch after watch. Ends with the reason when a watch cannot be made or breaks;
/// without one when everything has to be read anew.
async fn watch(
    api: &Api<DynamicObject>,
    fields: Option<&str>,
    sink: &dyn Sink,
    mut version: String,
    pause: &mut Duration,
) -> Option<String> {
    let params = WatchParams { field_selector: fields.map(str::to_owned), ..WatchParams::default() };
    let params = params.timeout(WATCH_SECONDS);
    loop {
        let mut events = match in_time(api.watch(&params, &version)).await {
            Ok(Ok(events)) => Box::pin(events),
            Ok(Err(kube::Error::Api(status))) if status.code == GONE => return None,
            Ok(Err(error)) => return Some(explain(&error).to_string()),
            Err(why) => return Some(why),
        };
        sink.take(Change::Confirmed);
        *pause = PAUSES[0];
        let begun = Instant::now();
        loop {
            let object = match tokio::time::timeout(SILENT, events.next()).await {
                Err(_) => return Some(format!("the hub told nothing for {} seconds", SILENT.as_secs())),
                Ok(None) => {
                    // The server has told everything until it ended the watch. One that ends early may have been cut off long before
                    // that was seen, and the next one tells.
                    if begun.elapsed() >= WHOLE {
                        sink.take(Change::Confirmed);
                    }
                    break;
                }
                Ok(Some(Err(error))) => return Some(explain(&error).to_string()),
                Ok(Some(Ok(WatchEvent::Error(status)))) if status.code == GONE => return None,
                Ok(Some(Ok(WatchEvent::Error(status)))) => return Some(status.message.clone()),
                Ok(Some(Ok(WatchEvent::Bookmark(mark)))) => {
                    version = mark.metadata.resource_version;
                    sink.take(Change::Confirmed);
                    continue;
                }
                Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => (object, true),
                Ok(Some(Ok(WatchEvent::Deleted(object)))) => (object, false),
            };
            let (object, is_there) = object;
            version = object.metadata.resource_version.clone().unwrap_or(version);
            let object = value(object, sink);
            sink.take(if is_there { Change::Now(object) } else { Change::Gone(object) });
        }
        // A server that ends watches at once is not asked without end either.
        if begun.elapsed() < PAUSES[0] {
            tokio::time::sleep(PAUSES[0]).await;
        }
    }
}

/// An answer that comes in time. The client repeats requests to a server that is overloaded or starts, for minutes, and
/// gives watches all the time that they want.
async fn in_time<T>(answer: impl Future<Output = T>) -> Result<T, String> {
    let late = |_| format!("the hub has not answered within {} seconds", ANSWER.as_secs());
    tokio::time::timeout(ANSWER, answer).await.map_err(late)
}

/// The object without what nobody asks for.
fn value(mut object: DynamicObject, sink: &dyn Sink) -> Value {
    let fields = object.metadata.managed_fields.take();
    if sink.wants_managed_fields() {
        let fields: Vec<_> = fields.into_iter().flatten().filter_map(of_metadata).collect();
        let size = serde_json::to_string(&fields).map_or(usize::MAX, |text| text.len());
        object.metadata.managed_fields = Some(fields).filter(|_| size <= MOST);
    }
    serde_json::to_value(object).unwrap_or_default()
}

/// What an entry says of the metadata of the object, if anything. Who wrote it, and when, is what clients choose.
fn of_metadata(entry: ManagedFieldsEntry) -> Option<ManagedFieldsEntry> {
    if entry.subresource.is_some_and(|part| !part.is_empty()) {
        return None;
    }
    let metadata = entry.fields_v1?.0.get_mut(METADATA)?.take();
    Some(ManagedFieldsEntry {
        fields_v1: Some(FieldsV1(json!({ METADATA: metadata }))),
        ..ManagedFieldsEntry::default()
    })
}

#[cfg(test)]
mod tests {
    use kube::api::ApiResource;

    use super::*;

    struct Wants(bool);

    impl Sink for Wants {
        fn take(&self, _: Change) {}

        fn wants_managed_fields(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn of_managed_fields_what_is_told_of_the_metadata_is_kept_where_it_is_wanted() {
        let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&());
        let object = |labels: usize| {
            let mut object = DynamicObject::new("c1", &kind);
            let labels: serde_json::Map<_, _> = (0..labels).map(|at| (format!("f:label-{at}"), json!({}))).collect();
            object.metadata.managed_fields = serde_json::from_value(json!([
                {"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                 "fieldsV1": {"f:metadata": {"f:labels": labels}, "f:spec": {"f:taints": {}}}},
                {"manager": "hub", "subresource": "status", "fieldsV1": {"f:metadata": {"f:labels": {"f:b": {}}}}},
                {"manager": "agent", "fieldsV1": {"f:spec": {}}},
                {"manager": "none"},
            ]))
            .unwrap();
            object
        };
        let fields = |labels, wants| value(object(labels), &Wants(wants)).pointer("/metadata/managedFields").cloned();
        assert_eq!(fields(1, false), None);
        let kept = json!([{"fieldsV1": {"f:metadata": {"f:labels": {"f:label-0": {}}}}}]);
        assert_eq!(fields(1, true), Some(kept));
        assert_eq!(fields(2000, true), None, "they are too many");
    }
}
