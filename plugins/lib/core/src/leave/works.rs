//! Records of works on a managed cluster: of which hub they are.

use ocm_api::work::DeletePropagationPolicy;
use ocm_api::{AppliedManifestWork, ManifestWork};
use ring::digest;
use serde_json::Value;

/// The hash by which a work agent marks its records: SHA-256, in hexadecimal, of the address at which it has found its hub.
/// That is the URL of the API server as the agent's kubeconfig says it, or over gRPC HOST:PORT. Upstream: `HubHash`.
pub fn hub_hash(address: &str) -> String {
    let sum = digest::digest(&digest::SHA256, address.as_bytes());
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// By what records name those of these works with which all of their objects go: their names, and their UIDs, which agents take
/// where a name is not told over gRPC. A record of a former way to the hub may be older than the wish that objects stay.
pub fn with_their_objects(works: &[ManifestWork]) -> Vec<String> {
    let goes = |work: &&ManifestWork| {
        let option = work.spec.delete_option.as_ref();
        option.is_none_or(|option| option.propagation_policy == DeletePropagationPolicy::Foreground)
    };
    let words = |work: &ManifestWork| [work.metadata.name.clone(), work.metadata.uid.clone()];
    works.iter().filter(goes).flat_map(words).flatten().collect()
}

/// Takes the records of these works of a hub that agents find, or have found, at one of these addresses from all others. An
/// agent that goes over to another address of its hub makes records anew and leaves the former ones, as further owners of the
/// objects.
pub fn of_hub(
    records: Vec<AppliedManifestWork>,
    addresses: &[String],
    works: &[String],
) -> (Vec<AppliedManifestWork>, Vec<AppliedManifestWork>) {
    let hashes: Vec<String> = addresses.iter().map(|address| hub_hash(address)).collect();
    let is_of_hub = |record: &AppliedManifestWork| {
        hashes.contains(&record.spec.hub_hash) && works.contains(&record.spec.manifest_work_name)
    };
    records.into_iter().partition(is_of_hub)
}

/// What of a record of a work tells whether its agent gives it up. The rest of it is many times as much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// UID of the agent's Klusterlet.
    pub agent: String,
    /// By which hub it is: see [`hub_hash`].
    pub hub: String,
    /// The work's name there.
    pub work: String,
    /// Whether the agent has marked it, or it is being deleted.
    pub is_given_up: bool,
}

impl Record {
    /// Reads it from the content of a record, without its metadata. `is_leaving`: it is being deleted.
    pub fn of(content: &Value, is_leaving: bool) -> Self {
        let word = |path| content.pointer(path).and_then(Value::as_str).unwrap_or_default();
        Self {
            agent: word("/spec/agentID").to_owned(),
            hub: word("/spec/hubHash").to_owned(),
            work: word("/spec/manifestWorkName").to_owned(),
            is_given_up: is_leaving || !word("/status/evictionStartTime").is_empty(),
        }
    }
}

/// By which works those records of an agent are that the works of its former hub have left, and that it has not begun to give up:
/// an agent that comes to a hub marks the records of all others when it starts, and deletes them when their time is over. Until
/// then it may still be at the former hub, and would clean up there. `agent` is the UID of its Klusterlet, `addresses` those of the
/// hub that it comes to. Upstream: `unmanagedAppliedWorkController`.
pub fn not_given_up(records: &[Record], agent: &str, addresses: &[String]) -> Vec<String> {
    let hashes: Vec<String> = addresses.iter().map(|address| hub_hash(address)).collect();
    let is_held = |record: &&Record| record.agent == agent && !hashes.contains(&record.hub) && !record.is_given_up;
    records.iter().filter(is_held).map(|record| record.work.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(work: &str, address: &str) -> AppliedManifestWork {
        let hash = hub_hash(address);
        serde_json::from_value(json!({"metadata": {"name": format!("{hash}-{work}")},
            "spec": {"hubHash": hash, "agentID": "u", "manifestWorkName": work}}))
        .unwrap()
    }

    #[test]
    fn a_hub_is_known_by_the_hash_that_agents_make() {
        // printf %s hub.example:443 | sha256sum
        assert_eq!(hub_hash("hub.example:443"), "906f0b232d013ad85c03a8e3ec5d85fa3d88e928237685760ffee0a420ce6473");
        assert_eq!(
            hub_hash("https://hub.example:6443"),
            "5752eec54596c9e783980dfcc51609e0654205e048ca38e03e73a91533419e15"
        );
    }

    #[test]
    fn records_of_each_way_to_the_hub_are_the_hubs_and_no_others() {
        let (url, grpc) = ("https://hub.example:6443", "hub.example:443");
        let records =
            vec![record("now", url), record("before", grpc), record("elsewhere", "https://other.example:6443")];
        let works = |records: &[AppliedManifestWork]| {
            records.iter().map(|record| record.spec.manifest_work_name.clone()).collect::<Vec<_>>()
        };
        let (addresses, all) = ([url.to_owned(), grpc.to_owned()], works(&records));
        let (own, others) = of_hub(records.clone(), &addresses, &all);
        assert_eq!((works(&own), works(&others)), (works(&records[..2]), works(&records[2..])));
        let (own, others) = of_hub(records.clone(), &[], &all);
        assert!(own.is_empty() && others.len() == records.len(), "nobody knows whose they are");
        let (own, others) = of_hub(records.clone(), &addresses, &["now".to_owned()]);
        assert_eq!((works(&own), works(&others)), (works(&records[..1]), works(&records[1..])), "the hub has no other");
    }

    #[test]
    fn an_agent_has_left_its_former_hub_when_it_has_marked_the_records_of_its_works() {
        let (here, former) = ("https://hub.example:6443", "https://former.example:6443");
        let mut records = [record("now", here), record("before", former), record("other", former)];
        records[2].spec.agent_id = "another Klusterlet".to_owned();
        let mut records = records.map(|record| serde_json::to_value(record).unwrap());
        let held = |records: &[Value], is_leaving: bool| {
            let records: Vec<Record> = records.iter().map(|record| Record::of(record, is_leaving)).collect();
            not_given_up(&records, "u", &[here.to_owned()])
        };
        assert_eq!(held(&records, false), ["before"]);
        assert!(held(&records, true).is_empty());
        records[1]["status"] = json!({"appliedResources": []});
        assert_eq!(held(&records, false), ["before"]);
        records[1]["status"]["evictionStartTime"] = json!("2026-01-01T00:00:00Z");
        assert!(held(&records, false).is_empty());
    }

    #[test]
    fn works_whose_objects_are_to_stay_do_not_count() {
        let work = |name: &str, option: Value| -> ManifestWork {
            let spec = match option.is_null() {
                true => json!({}),
                false => json!({"deleteOption": option}),
            };
            serde_json::from_value(json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": spec}))
                .unwrap()
        };
        let policy = |word: &str| json!({"propagationPolicy": word});
        let works = [
            work("plain", Value::Null),
            work("deletes", policy("Foreground")),
            work("leaves", policy("Orphan")),
            work("leaves-some", policy("SelectivelyOrphan")),
        ];
        assert_eq!(with_their_objects(&works), ["plain", "uid-plain", "deletes", "uid-deletes"]);
    }
}
