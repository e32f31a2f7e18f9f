//! A request as a policy reads it.

use std::borrow::Cow;
use std::cell::OnceCell;

use ocm_policy_abi as abi;
use ocm_policy_abi::{Cluster, Csr, Map, Operation, Requester, Resource, Stage, Table, Text};
use serde_json::Value;

use crate::wit_types;

/// A request. Of what the host has written, its parts are made when they are asked for, and remembered.
pub struct Request<'a> {
    id: Text<'a>,
    operation: Operation,
    now: i64,
    dry_run: bool,
    attempt: u32,
    stage: Option<Stage>,
    wit: Option<&'a wit_types::Request<'a>>,
    requester: OnceCell<Requester<'a>>,
    creator: OnceCell<Option<Requester<'a>>>,
    resource: OnceCell<Option<Resource<'a>>>,
    cluster: OnceCell<Option<Cluster<'a>>>,
    previous: OnceCell<Option<Cluster<'a>>>,
    csr: OnceCell<Option<Csr<'a>>>,
    object: Option<Cow<'a, str>>,
    previous_object: Option<Cow<'a, str>>,
    evidence: OnceCell<Map<'a, Table<'a>>>,
    set_by_policies: OnceCell<Map<'a, Text<'a>>>,
    obligations: OnceCell<Vec<Text<'a>>>,
    more: OnceCell<Map<'a, Value>>,
}

impl<'a> From<&'a wit_types::Request<'a>> for Request<'a> {
    fn from(records: &'a wit_types::Request<'a>) -> Self {
        Self {
            id: records.id(),
            operation: records.operation(),
            now: records.now(),
            dry_run: records.dry_run(),
            attempt: records.attempt(),
            stage: records.stage(),
            wit: Some(records),
            requester: OnceCell::new(),
            creator: OnceCell::new(),
            resource: OnceCell::new(),
            cluster: OnceCell::new(),
            previous: OnceCell::new(),
            csr: OnceCell::new(),
            object: records.object().map(Into::into),
            previous_object: records.previous_object().map(Into::into),
            evidence: OnceCell::new(),
            set_by_policies: OnceCell::new(),
            obligations: OnceCell::new(),
            more: OnceCell::new(),
        }
    }
}

impl<'a> From<abi::Request<'a>> for Request<'a> {
    fn from(request: abi::Request<'a>) -> Self {
        let abi::Request {
            id,
            operation,
            now,
            dry_run,
            attempt,
            stage,
            requester,
            creator,
            resource,
            cluster,
            previous,
            csr,
            object,
            previous_object,
            evidence,
            set_by_policies,
            obligations,
            more,
        } = request;
        Self {
            id,
            operation,
            now,
            dry_run,
            attempt,
            stage,
            wit: None,
            requester: requester.into(),
            creator: creator.into(),
            resource: resource.into(),
            cluster: cluster.into(),
            previous: previous.into(),
            csr: csr.into(),
            object: object.map(|object| object.to_string().into()),
            previous_object: previous_object.map(|object| object.to_string().into()),
            evidence: evidence.into(),
            set_by_policies: set_by_policies.into(),
            obligations: obligations.into(),
            more: more.into(),
        }
    }
}

impl<'a> Request<'a> {
    /// Names the question: the UID of an admission review, or what the asking controller chose.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What is to be decided.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// When it was asked, in milliseconds since 1970-01-01T00:00:00Z. The only clock that there is.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Whether nothing will be stored whatever the answer.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// How often the same question was answered with `hold` before.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Where in admission it is asked; none outside of it, and at stages that this version of the contract does not know.
    pub fn stage(&self) -> Option<Stage> {
        self.stage
    }

    /// Who makes the API request.
    pub fn requester(&self) -> &Requester<'a> {
        self.requester.get_or_init(|| self.wit.map(wit_types::Request::requester).unwrap_or_default())
    }

    /// Who asked for the certificate, with `approve` in admission and with `join`. With `accept` none: an acceptance does not say
    /// who asked.
    pub fn creator(&self) -> Option<&Requester<'a>> {
        self.creator.get_or_init(|| self.wit?.creator()).as_ref()
    }

    /// Which API object this is about.
    pub fn resource(&self) -> Option<&Resource<'a>> {
        self.resource.get_or_init(|| self.wit?.resource()).as_ref()
    }

    /// The ManagedCluster as it will be; of a deletion as it is.
    pub fn cluster(&self) -> Option<&Cluster<'a>> {
        self.cluster.get_or_init(|| self.wit?.cluster()).as_ref()
    }

    /// The ManagedCluster before an update.
    pub fn previous(&self) -> Option<&Cluster<'a>> {
        self.previous.get_or_init(|| self.wit?.previous()).as_ref()
    }

    /// The certificate request.
    pub fn csr(&self) -> Option<&Csr<'a>> {
        self.csr.get_or_init(|| self.wit?.csr()).as_ref()
    }

    /// The whole object as JSON, where the manifest asks for objects.
    pub fn object(&self) -> Option<&str> {
        self.object.as_deref()
    }

    /// The whole object before an update or a deletion as JSON, where the manifest asks for objects.
    pub fn previous_object(&self) -> Option<&str> {
        self.previous_object.as_deref()
    }

    /// What a query of the manifest found. A table that is missing is as good as one that is not complete.
    pub fn evidence(&self, query: &str) -> Option<&Table<'a>> {
        self.evidence.get_or_init(|| self.wit.map(wit_types::Request::evidence).unwrap_or_default()).get(query)
    }

    /// What policies have set in the object at the mutating stage: values by JSON pointer.
    pub fn set_by_policies(&self) -> &Map<'a, Text<'a>> {
        let read = || self.wit.map(wit_types::Request::set_by_policies).unwrap_or_default();
        self.set_by_policies.get_or_init(read)
    }

    /// Whether the hub knows an obligation. An answer with another one is an error.
    pub fn knows_obligation(&self, name: &str) -> bool {
        let read = || self.wit.map(wit_types::Request::obligations).unwrap_or_default();
        self.obligations.get_or_init(read).iter().any(|known| known == name)
    }

    /// Facts that later hosts tell within this version of the contract.
    pub fn more(&self) -> &Map<'a, Value> {
        self.more.get_or_init(|| self.wit.map(wit_types::Request::more).unwrap_or_default())
    }
}
