//! The facts of a CertificateSigningRequest.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_core::csr;
use ocm_policy_abi::{Csr, Key, Requester, Signature, Text};
use ocm_rules::csr::{self as rules, CLUSTER_NAME, CSR_USER};
use ocm_rules::identity::{Identity, cluster_of_group};
use serde_json::Value;

use super::requester::{is_grpc_server, requester};
use super::value::{At, Unusable, unusable};

/// The facts of a CertificateSigningRequest as it is stored, and when it was decided about, in milliseconds since 1970.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub(crate) fn certificate_request(object: &Value) -> Result<(Csr<'_>, Option<i64>), Unusable> {
    read_decided_csr(&At { value: object, path: "object".to_owned() })
}

/// The cluster whose agent's name a certificate request asks for, or else the one that its label names: the request
/// counts among those of that cluster. Whether it may have what it asks for is another question.
pub fn cluster_of_csr<'r>(csr: &'r Csr<'_>) -> Option<&'r str> {
    let named = csr.common_names.iter().find_map(|name| Identity::of(name).cluster());
    named.or_else(|| cluster_label(csr))
}

/// Every cluster that a certificate request names, by its common names, its groups or its label.
pub(crate) fn clusters_of_csr<'r>(csr: &'r Csr<'_>) -> BTreeSet<&'r str> {
    let named = csr.common_names.iter().filter_map(|name| Identity::of(name).cluster());
    let in_groups = csr.organizations.iter().filter_map(|group| cluster_of_group(group));
    named.chain(in_groups).chain(cluster_label(csr)).collect()
}

/// Who asked for a certificate; behind the hub's gRPC server, and there only, the user that it names.
pub fn asked_by<'r>(csr: &'r Csr<'_>) -> &'r str {
    match csr.annotations.get(CSR_USER) {
        Some(user) if is_grpc_server(&csr.requester) => user,
        _ => &csr.requester.username,
    }
}

/// What of a certificate request tells whom it lets in.
pub(super) fn asked<'r, 'a>(csr: &'r Csr<'a>) -> rules::Asked<'r, Text<'a>> {
    rules::Asked {
        signer: &csr.signer,
        asked_by: asked_by(csr),
        is_readable: csr.unreadable.is_none(),
        common_names: &csr.common_names,
        organizations: &csr.organizations,
    }
}

/// The cluster that the label of a certificate request names; a claim.
pub(super) fn cluster_label<'r>(csr: &'r Csr<'_>) -> Option<&'r str> {
    csr.labels.get(CLUSTER_NAME).map(Text::as_str)
}

/// A certificate request that is being created. What only the server may write is not there yet, or is a claim of the
/// client: who asks is who makes the API request, and nobody has decided.
pub(super) fn created_csr<'a>(at: &At<'a>, requester: &Requester<'a>) -> Result<Csr<'a>, Unusable> {
    Ok(Csr { requester: requester.clone(), state: state_word(csr::State::Pending), ..read_csr(at)? })
}

/// A certificate request that is written again. Its spec never changes, so the stored one counts, and so does what has
/// become of it so far.
pub(super) fn updated_csr<'a>(new: &At<'a>, old: &At<'a>, subresource: Option<&str>) -> Result<Csr<'a>, Unusable> {
    let stored = read_csr(old)?;
    let metadata = new.needed("metadata")?;
    let adds_condition = match subresource {
        Some("approval" | "status") => added_condition(new, old)?,
        _ => None,
    };
    Ok(Csr { labels: metadata.map("labels")?, annotations: metadata.map("annotations")?, adds_condition, ..stored })
}

/// The condition that is new. If there were several, the most consequential one: a rule for approvals must see it.
fn added_condition<'a>(new: &At<'a>, old: &At<'a>) -> Result<Option<Text<'a>>, Unusable> {
    let types = |at: &At<'a>| -> Result<Vec<&'a str>, Unusable> {
        let Some(status) = at.member("status")? else { return Ok(Vec::new()) };
        Ok(status.items("conditions")?.iter().filter_map(|item| item.value.get("type")?.as_str()).collect())
    };
    let before = types(old)?;
    let added: Vec<&str> = types(new)?.into_iter().filter(|kind| !before.contains(kind)).collect();
    let first = ["Approved", "Denied", "Failed"].into_iter().find(|kind| added.contains(kind));
    Ok(first.or(added.first().copied()).map(Text::from))
}

fn state_word<'a>(state: csr::State) -> Text<'a> {
    state.to_string().into()
}

pub(super) fn read_csr<'a>(at: &At<'a>) -> Result<Csr<'a>, Unusable> {
    read_decided_csr(at).map(|(csr, _)| csr)
}

fn read_decided_csr<'a>(at: &At<'a>) -> Result<(Csr<'a>, Option<i64>), Unusable> {
    let metadata = at.needed("metadata")?;
    let spec = at.needed("spec")?;
    let object: CertificateSigningRequest =
        serde_json::from_value(at.value.clone()).map_err(|error| unusable(at.path.clone(), error.to_string()))?;
    let read = csr::Request::read(&object);
    let mut csr = Csr {
        name: metadata.text("name")?.map(Text::from),
        uid: metadata.text("uid")?.map(Text::from),
        resource_version: metadata.text("resourceVersion")?.map(Text::from),
        labels: metadata.map("labels")?,
        annotations: metadata.map("annotations")?,
        signer: spec.text("signerName")?.unwrap_or_default().into(),
        usages: spec.texts("usages")?,
        lifetime_seconds: spec.number("expirationSeconds")?,
        requester: requester(&spec)?,
        created: metadata.time("creationTimestamp")?,
        state: state_word(read.state),
        ..Csr::default()
    };
    let owned = |texts: Vec<String>| texts.into_iter().map(Text::from).collect();
    match read.content {
        Err(error) => {
            csr.unreadable = Some(error.to_string().into());
            if let csr::Unreadable::Pem(names) = error {
                csr.common_names = owned(names.common_names);
                csr.organizations = owned(names.organizations);
            }
        }
        Ok(content) => {
            csr.common_names = owned(content.common_names);
            csr.organizations = owned(content.organizations);
            csr.other_attributes = owned(content.other_attributes);
            csr.alternative_names = owned(content.alternative_names);
            csr.extensions = owned(content.extensions);
            csr.key = key(content.key);
            csr.spki_sha256 = content.spki_sha256.into();
            csr.signature = match content.signature {
                csr::Signature::Valid => Signature::Valid,
                csr::Signature::Invalid => Signature::Invalid,
                csr::Signature::Unverifiable => Signature::Unverifiable,
            };
        }
    }
    Ok((csr, read.decided.map(Timestamp::as_millisecond)))
}

fn key<'a>(key: csr::Key) -> Key<'a> {
    let (algorithm, bits) = match key {
        csr::Key::P256 => ("ECDSA".to_owned(), 256),
        csr::Key::P384 => ("ECDSA".to_owned(), 384),
        csr::Key::P521 => ("ECDSA".to_owned(), 521),
        csr::Key::Ed25519 => ("Ed25519".to_owned(), 256),
        csr::Key::Rsa(bits) => ("RSA".to_owned(), u32::try_from(bits).unwrap_or(u32::MAX)),
        csr::Key::Other(name) => (name, 0),
    };
    Key { algorithm: algorithm.into(), bits }
}
