//! Who asks, and about which object.

use ocm_policy_abi::{Map, Requester, Resource, Text};
use ocm_rules::identity;

use super::value::{At, Unusable, unusable};

pub(super) fn resource<'a>(request: &At<'a>, subject: Option<&At<'a>>) -> Result<Resource<'a>, Unusable> {
    let kind = request.needed("kind")?;
    let plural = request.needed("resource")?;
    let needed = |at: &At<'a>, name: &str| at.text(name)?.ok_or_else(|| unusable(at.at(name), "there is none"));
    let metadata = subject.map(|subject| subject.member("metadata")).transpose()?.flatten();
    let named = |name: &str| -> Result<Option<Text<'a>>, Unusable> {
        let of_object = metadata.as_ref().map(|metadata| metadata.text(name)).transpose()?.flatten();
        Ok(request.text(name)?.or(of_object).map(Text::from))
    };
    let options = request.member("options")?;
    let manager = options.as_ref().map(|options| options.text("fieldManager")).transpose()?.flatten();
    let members = options.as_ref().and_then(|options| options.value.as_object()).into_iter().flatten();
    let mut options: Vec<_> = members
        // Members of every object, and the one that has a name of its own here.
        .filter(|(name, value)| !["apiVersion", "kind", "fieldManager"].contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| match value.as_str() {
            Some(text) => (name.as_str(), Text::from(text)),
            None => (name.as_str(), Text::from(value.to_string())),
        })
        .collect();
    options.sort_by_key(|(name, _)| *name);
    Ok(Resource {
        group: plural.text("group")?.unwrap_or_default().into(),
        version: needed(&plural, "version")?.into(),
        kind: needed(&kind, "kind")?.into(),
        resource: needed(&plural, "resource")?.into(),
        subresource: request.text("subResource")?.map(Text::from),
        namespace: named("namespace")?,
        name: named("name")?,
        operation: needed(request, "operation")?.into(),
        field_manager: manager.map(Text::from),
        options: options.into_iter().collect(),
    })
}

/// `userInfo` of a review and the spec of a certificate request name their members alike.
pub(super) fn requester<'a>(at: &At<'a>) -> Result<Requester<'a>, Unusable> {
    let mut entries = Vec::new();
    if let Some(extra) = at.member("extra")? {
        for key in extra.value.as_object().into_iter().flat_map(|members| members.keys()) {
            entries.push((key.as_str(), extra.texts(key)?));
        }
    }
    entries.sort_by_key(|(key, _)| *key);
    let extra: Map<'a, Vec<Text<'a>>> = entries.into_iter().collect();
    Ok(Requester {
        username: at.text("username")?.unwrap_or_default().into(),
        uid: at.text("uid")?.map(Text::from),
        groups: at.texts("groups")?,
        certificate_sha256: certificate_sha256(&extra),
        extra,
    })
}

/// Whether this is the hub's gRPC server, and not somebody who impersonates it.
pub(crate) fn is_grpc_server(requester: &Requester<'_>) -> bool {
    facts(requester).is_grpc_server()
}

/// Whether this is the agent of some cluster with its AWS identity.
pub(super) fn is_aws_agent(requester: &Requester<'_>) -> bool {
    facts(requester).is_aws_agent_of(&requester.username)
}

fn facts<'r, 'a>(requester: &'r Requester<'a>) -> identity::Requester<'r, Text<'a>> {
    identity::Requester {
        user: &requester.username,
        uid: requester.uid.as_deref(),
        groups: &requester.groups,
        credential_ids: requester.extra.get(identity::CREDENTIAL_ID).map_or(&[], Vec::as_slice),
    }
}

/// The fingerprint of the client certificate that was shown, as the API server tells it.
fn certificate_sha256<'a>(extra: &Map<'a, Vec<Text<'a>>>) -> Option<Text<'a>> {
    let ids = extra.get(identity::CREDENTIAL_ID)?;
    let digest = ids.iter().find_map(|id| id.strip_prefix("X509SHA256="))?;
    Some(digest.to_ascii_lowercase().into())
}
