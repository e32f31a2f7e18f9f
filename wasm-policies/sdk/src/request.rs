//! A request as a policy reads it: only the parts that are looked at are parsed, and only their parsers are linked.

use std::cell::OnceCell;

use ocm_policy_abi::{Cluster, Csr, Map, Operation, Requester, Resource, Table, Text};
use serde::Deserialize;

use crate::split::members;

/// A request. Its parts are read when they are asked for, and remembered.
#[derive(Default)]
pub struct Request<'a> {
    parts: Parts<'a>,
    requester: OnceCell<Requester<'a>>,
    resource: OnceCell<Option<Resource<'a>>>,
    cluster: OnceCell<Option<Cluster<'a>>>,
    previous: OnceCell<Option<Cluster<'a>>>,
    csr: OnceCell<Option<Csr<'a>>>,
    evidence: OnceCell<Map<'a, Table<'a>>>,
}

/// The members of a request as they stand in its text.
#[derive(Default)]
struct Parts<'a> {
    id: Option<&'a str>,
    operation: Option<&'a str>,
    now: Option<&'a str>,
    dry_run: Option<&'a str>,
    attempt: Option<&'a str>,
    requester: Option<&'a str>,
    resource: Option<&'a str>,
    cluster: Option<&'a str>,
    previous: Option<&'a str>,
    csr: Option<&'a str>,
    object: Option<&'a str>,
    previous_object: Option<&'a str>,
    evidence: Option<&'a str>,
}

/// A part that the host wrote in another way than the contract says: the policy cannot know what it decides about, so
/// it ends here, which is an error and never an allow.
fn part<'a, T: Deserialize<'a>>(json: &'a str) -> T {
    match serde_json::from_str(json) {
        Ok(part) => part,
        Err(error) => panic!("the request breaks the contract: {error}"),
    }
}

/// A part that every request has.
fn needed<'a, T: Deserialize<'a>>(json: Option<&'a str>) -> T {
    part(json.unwrap_or(""))
}

impl<'a> Request<'a> {
    /// Finds the parts of a request. `None` when the text is no JSON object.
    ///
    /// What a part holds is read when it is asked for. One that is not as the contract says ends the policy then, which
    /// the host counts as an error.
    pub fn read(json: &'a str) -> Option<Self> {
        let mut parts = Parts::default();
        members(json, |key, value| {
            let place = match key {
                "id" => &mut parts.id,
                "operation" => &mut parts.operation,
                "now" => &mut parts.now,
                "dryRun" => &mut parts.dry_run,
                "attempt" => &mut parts.attempt,
                "requester" => &mut parts.requester,
                "resource" => &mut parts.resource,
                "cluster" => &mut parts.cluster,
                "previous" => &mut parts.previous,
                "csr" => &mut parts.csr,
                "object" => &mut parts.object,
                "previousObject" => &mut parts.previous_object,
                "evidence" => &mut parts.evidence,
                _ => return,
            };
            *place = (value != "null").then_some(value);
        })?;
        Some(Self { parts, ..Self::default() })
    }

    /// Names the question: the UID of an admission review, or what the asking controller chose.
    pub fn id(&self) -> Text<'a> {
        needed(self.parts.id)
    }

    /// What is to be decided.
    pub fn operation(&self) -> Operation {
        needed(self.parts.operation)
    }

    /// When it was asked, in milliseconds since 1970-01-01T00:00:00Z. The only clock that there is.
    pub fn now(&self) -> i64 {
        needed(self.parts.now)
    }

    /// Whether nothing will be stored whatever the answer.
    pub fn is_dry_run(&self) -> bool {
        self.parts.dry_run.is_some_and(part)
    }

    /// How often the same question was answered with `hold` before.
    pub fn attempt(&self) -> u32 {
        self.parts.attempt.map(part).unwrap_or_default()
    }

    /// Who asks.
    pub fn requester(&self) -> &Requester<'a> {
        self.requester.get_or_init(|| needed(self.parts.requester))
    }

    /// Which API object this is about.
    pub fn resource(&self) -> Option<&Resource<'a>> {
        self.resource.get_or_init(|| self.parts.resource.map(part)).as_ref()
    }

    /// The ManagedCluster as it will be; of a deletion as it is.
    pub fn cluster(&self) -> Option<&Cluster<'a>> {
        self.cluster.get_or_init(|| self.parts.cluster.map(part)).as_ref()
    }

    /// The ManagedCluster before an update.
    pub fn previous(&self) -> Option<&Cluster<'a>> {
        self.previous.get_or_init(|| self.parts.previous.map(part)).as_ref()
    }

    /// The certificate request.
    pub fn csr(&self) -> Option<&Csr<'a>> {
        self.csr.get_or_init(|| self.parts.csr.map(part)).as_ref()
    }

    /// The whole object as JSON, where the manifest asks for objects.
    pub fn object(&self) -> Option<&'a str> {
        self.parts.object
    }

    /// The whole object before an update or a deletion as JSON, where the manifest asks for objects.
    pub fn previous_object(&self) -> Option<&'a str> {
        self.parts.previous_object
    }

    /// What a query of the manifest found. A table that is missing is as good as one that is not complete.
    pub fn evidence(&self, query: &str) -> Option<&Table<'a>> {
        self.evidence.get_or_init(|| self.parts.evidence.map(part).unwrap_or_default()).get(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_that_the_host_writes() {
        let host = ocm_policy_abi::Request {
            id: "1".into(),
            operation: Operation::Join,
            now: 5,
            dry_run: true,
            attempt: 2,
            requester: Requester { username: "u \"quoted\"".into(), ..Requester::default() },
            resource: Some(Resource { kind: "ManagedCluster".into(), ..Resource::default() }),
            cluster: Some(Cluster { name: "c".into(), ..Cluster::default() }),
            previous: Some(Cluster { name: "p".into(), ..Cluster::default() }),
            csr: None,
            object: Some(serde_json::json!({"a": [1, 2.5]})),
            previous_object: None,
            evidence: [("clusters", Table { complete: true, ..Table::default() })].into_iter().collect(),
        };
        let json = serde_json::to_string(&host).unwrap();
        let request = Request::read(&json).unwrap();
        assert_eq!((request.id(), request.operation(), request.now()), ("1".into(), Operation::Join, 5));
        assert_eq!((request.is_dry_run(), request.attempt()), (true, 2));
        assert_eq!(request.requester(), &host.requester);
        assert_eq!((request.resource(), request.cluster()), (host.resource.as_ref(), host.cluster.as_ref()));
        assert_eq!((request.previous(), request.csr()), (host.previous.as_ref(), None));
        assert_eq!((request.object(), request.previous_object()), (Some(r#"{"a":[1,2.5]}"#), None));
        assert_eq!(request.evidence("clusters"), host.evidence.get("clusters"));
        assert_eq!(request.evidence("others"), None);
    }

    #[test]
    #[should_panic(expected = "breaks the contract")]
    fn a_part_that_is_none_ends_the_policy() {
        let json = r#"{"id": "1", "operation": "create", "now": 0, "requester": {}, "cluster": 5}"#;
        Request::read(json).unwrap().cluster();
    }
}
