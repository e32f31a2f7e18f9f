//! A request as a policy reads it: only the parts that are looked at are parsed, and only their parsers are linked.

use std::cell::OnceCell;

use ocm_policy_abi::{Cluster, Csr, Map, Operation, Requester, Resource, Table, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A request. Its parts are read when they are asked for, and remembered.
pub struct Request<'a> {
    parts: Parts<'a>,
    requester: OnceCell<Requester<'a>>,
    resource: OnceCell<Option<Resource<'a>>>,
    cluster: OnceCell<Option<Cluster<'a>>>,
    previous: OnceCell<Option<Cluster<'a>>>,
    csr: OnceCell<Option<Csr<'a>>>,
    evidence: OnceCell<Map<'a, Table<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    operation: Operation,
    now: i64,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    attempt: u32,
    #[serde(borrow)]
    requester: &'a RawValue,
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cluster: Option<&'a RawValue>,
    #[serde(borrow, default)]
    previous: Option<&'a RawValue>,
    #[serde(borrow, default)]
    csr: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    previous_object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    evidence: Option<&'a RawValue>,
}

/// A part that the host wrote in another way than the contract says: the policy cannot know what it decides about, so
/// it ends here, which is an error and never an allow.
fn part<'a, T: Deserialize<'a>>(json: &'a RawValue) -> T {
    match serde_json::from_str(json.get()) {
        Ok(part) => part,
        Err(error) => panic!("the request breaks the contract: {error}"),
    }
}

impl<'a> Request<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// When the text is no request.
    pub fn read(json: &'a str) -> Result<Self, serde_json::Error> {
        let parts = serde_json::from_str(json)?;
        Ok(Self {
            parts,
            requester: OnceCell::new(),
            resource: OnceCell::new(),
            cluster: OnceCell::new(),
            previous: OnceCell::new(),
            csr: OnceCell::new(),
            evidence: OnceCell::new(),
        })
    }

    /// Names the question: the UID of an admission review, or what the asking controller chose.
    pub fn id(&self) -> &str {
        &self.parts.id
    }

    /// What is to be decided.
    pub fn operation(&self) -> Operation {
        self.parts.operation
    }

    /// When it was asked, in milliseconds since 1970-01-01T00:00:00Z. The only clock that there is.
    pub fn now(&self) -> i64 {
        self.parts.now
    }

    /// Whether nothing will be stored whatever the answer.
    pub fn is_dry_run(&self) -> bool {
        self.parts.dry_run
    }

    /// How often the same question was answered with `hold` before.
    pub fn attempt(&self) -> u32 {
        self.parts.attempt
    }

    /// Who asks.
    pub fn requester(&self) -> &Requester<'a> {
        self.requester.get_or_init(|| part(self.parts.requester))
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
        self.parts.object.map(RawValue::get)
    }

    /// The whole object before an update or a deletion as JSON, where the manifest asks for objects.
    pub fn previous_object(&self) -> Option<&'a str> {
        self.parts.previous_object.map(RawValue::get)
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
        assert_eq!((request.id(), request.operation(), request.now()), ("1", Operation::Join, 5));
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
