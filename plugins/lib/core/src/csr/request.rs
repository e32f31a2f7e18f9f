//! A certificate signing request as the API server keeps it.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::member::Member;
use ocm_api::names::{annotations, labels};
use ocm_rules::csr::{self as rules, Settings};
use ocm_rules::{Violation, identity};
use serde::Serialize;

use super::{Content, Unreadable};

/// Nobody has a longer name: what an annotation says beyond it need not be kept.
const LONGEST_USER: usize = 1024;

/// A request: the object around it, and what it asks for. It can be written down: reading the object again would verify its
/// signature again.
#[derive(Clone, Debug, PartialEq, Serialize, Member)]
pub struct Request {
    /// Name of the object.
    pub name: String,
    /// Its UID: what is created anew under the same name is another request.
    pub uid: Option<String>,
    /// The cluster that its label names; a claim.
    pub cluster_label: Option<String>,
    /// The add-on that its label names; a claim.
    pub addon_label: Option<String>,
    /// `spec.signerName`.
    pub signer: String,
    /// `spec.usages`.
    pub usages: Vec<String>,
    /// `spec.expirationSeconds`.
    pub lifetime_seconds: Option<i32>,
    /// Who created the object, as the API server recorded it.
    pub requester: Requester,
    /// The user that OCM's gRPC server says to have asked, as far as names of users go; anybody may write it.
    pub grpc_user: Option<String>,
    /// When the object was created.
    pub created: Option<Timestamp>,
    /// What has become of it.
    pub state: State,
    /// When that was decided; none where that is not known.
    pub decided: Option<Timestamp>,
    /// What it asks for; or why that cannot be read.
    pub content: Result<Content, Unreadable>,
}

/// `spec.username` and what belongs to it: the API server writes them, nobody else can.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
pub struct Requester {
    /// User name.
    pub user: String,
    /// UID; service accounts have one unless somebody acted as them.
    pub uid: Option<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// What they authenticated with: `JTI=…` for a token, `X509SHA256=…` for a client certificate. Old API servers do
    /// not say.
    pub credential_ids: Vec<String>,
}

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Member)]
pub enum State {
    /// Nobody has decided.
    Pending,
    /// Approved, no certificate yet.
    Approved,
    /// The certificate is there.
    Issued,
    /// Denied.
    Denied,
    /// The signer failed.
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Request {
    /// Reads an object of the API.
    pub fn read(object: &CertificateSigningRequest) -> Self {
        let metadata = &object.metadata;
        let spec = &object.spec;
        let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
        let conditions = object.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let has = |kind: &str| conditions.iter().any(|condition| condition.type_ == kind);
        let issued = object
            .status
            .as_ref()
            .and_then(|status| status.certificate.as_ref())
            .is_some_and(|certificate| !certificate.0.is_empty());
        let state = match () {
            // Denied wins: the API server forbids both, but a rule must not depend on that.
            () if has("Denied") => State::Denied,
            () if has("Failed") => State::Failed,
            () if issued => State::Issued,
            () if has("Approved") => State::Approved,
            () => State::Pending,
        };
        // The API server fills in both times where an approver leaves them out: whoever may approve may also choose them. A
        // time before there was a request tells nothing.
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
        let decided = conditions
            .iter()
            .filter(|condition| condition.type_ != "Failed" || state == State::Failed)
            .filter_map(|condition| condition.last_transition_time.as_ref().or(condition.last_update_time.as_ref()))
            .map(|time| time.0)
            .max()
            .filter(|decided| created.is_none_or(|created| *decided >= created));
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone(),
            cluster_label: label(labels::CLUSTER_NAME),
            addon_label: label(labels::ADDON_NAME),
            signer: spec.signer_name.clone(),
            usages: spec.usages.clone().unwrap_or_default(),
            lifetime_seconds: spec.expiration_seconds,
            requester: Requester {
                user: spec.username.clone().unwrap_or_default(),
                uid: spec.uid.clone().filter(|uid| !uid.is_empty()),
                groups: spec.groups.clone().unwrap_or_default(),
                credential_ids: spec
                    .extra
                    .as_ref()
                    .and_then(|extra| extra.get(identity::CREDENTIAL_ID))
                    .cloned()
                    .unwrap_or_default(),
            },
            grpc_user: metadata
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get(annotations::CSR_USER))
                .map(|user| user.chars().take(LONGEST_USER).collect()),
            created,
            state,
            decided,
            content: Content::read(&spec.request.0),
        }
    }

    /// The digest of the key; none if it cannot be read.
    pub fn key_digest(&self) -> Option<&str> {
        self.content.as_ref().ok().map(|content| content.spki_sha256.as_str())
    }

    /// The fingerprint as people see and type it: `sha256:` and the hex digest of the key. None if unreadable.
    pub fn fingerprint(&self) -> Option<String> {
        self.content.as_ref().ok().map(|content| format!("sha256:{}", content.spki_sha256))
    }

    /// The facts that the rules judge.
    pub fn facts(&self) -> rules::Csr<'_, String> {
        rules::Csr {
            cluster_label: self.cluster_label.as_deref(),
            addon_label: self.addon_label.as_deref(),
            grpc_user: self.grpc_user.as_deref(),
            signer: &self.signer,
            usages: &self.usages,
            lifetime_seconds: self.lifetime_seconds.map(i64::from),
            requester: identity::Requester {
                user: &self.requester.user,
                uid: self.requester.uid.as_deref(),
                groups: &self.requester.groups,
                credential_ids: &self.requester.credential_ids,
            },
            content: self.content.as_ref().map(Content::facts).map_err(Unreadable::facts),
        }
    }

    /// The user who asked; behind the hub's gRPC server the one that it names.
    pub fn asked_by(&self) -> &str {
        self.facts().asked_by()
    }

    /// Whether the request is an add-on's, which other approvers decide about.
    pub fn is_addons(&self) -> bool {
        self.facts().is_addons()
    }

    /// Whether an agent of `cluster` renews its own certificate with this request, which the hub itself decides about.
    pub fn is_renewal(&self, cluster: &str) -> bool {
        self.facts().is_renewal(cluster)
    }

    /// Whether the request, right or wrong, asks for the name of an agent of `cluster`.
    pub fn names_agent_of(&self, cluster: &str) -> bool {
        self.facts().names_agent_of(cluster)
    }

    /// Whether a certificate of the request may have the rights of an agent of `cluster` on the hub.
    pub fn may_act_for(&self, cluster: &str) -> bool {
        self.facts().may_act_for(cluster)
    }

    /// Checks the request against every rule for the first certificate of an agent of `cluster`.
    /// An empty answer means that it asks for exactly that and nothing else.
    pub fn violations(&self, cluster: &str, settings: &Settings) -> Vec<Violation> {
        rules::first_certificate(&self.facts(), cluster, settings)
    }
}

#[cfg(test)]
mod tests {
    use csr_fixtures::Fixture;
    use k8s_openapi::ByteString;
    use k8s_openapi::api::certificates::v1::CertificateSigningRequestStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::csr::{Key, Names, Signature};

    #[test]
    fn what_was_written_down_is_read_as_it_was() {
        let mut object = CertificateSigningRequest::default();
        object.metadata.name = Some("r".to_owned());
        object.metadata.creation_timestamp = Some(Time("2026-01-01T00:00:00.123456789Z".parse().unwrap()));
        object.metadata.labels = Some([(labels::CLUSTER_NAME.to_owned(), "c1".to_owned())].into());
        object.spec.request = ByteString(Fixture::agent("c1", "a1").pem().into_bytes());
        object.spec.expiration_seconds = Some(3600);
        object.spec.groups = Some(vec!["g".to_owned(), "\u{0}\"".to_owned()]);
        object.status = Some(CertificateSigningRequestStatus {
            certificate: Some(ByteString(b"x".to_vec())),
            ..CertificateSigningRequestStatus::default()
        });
        let read = Request::read(&object);
        assert_eq!((read.state, read.content.is_ok()), (State::Issued, true));
        let again = |request: &Request| serde_json::from_str::<Request>(&serde_json::to_string(request).unwrap());
        assert_eq!(again(&read).unwrap(), read);
        let with_key = |key: Key, signature: Signature| {
            let content = read.content.clone().map(|content| Content { key, signature, ..content });
            Request { content, ..read.clone() }
        };
        let names = Names { common_names: vec!["a".to_owned()], ..Names::default() };
        let without =
            |why: Unreadable| Request { content: Err(why), created: None, state: State::Denied, ..read.clone() };
        for request in [
            with_key(Key::Rsa(2048), Signature::Invalid),
            with_key(Key::Other("other".to_owned()), Signature::Unverifiable),
            without(Unreadable::TooLong),
            without(Unreadable::Pem(names)),
            without(Unreadable::Der("why".to_owned())),
            without(Unreadable::Text),
        ] {
            assert_eq!(again(&request).unwrap(), request);
        }
    }
}
