//! What of an object is public: certificates, and whether a private key belongs to one.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use ocm_api::names::secrets;
use ocm_checks::snapshot::{PolicyRule, Side};
use ocm_checks::tls::{Copied, Copy, Inventory, ObjectKind, Place, Purpose, Relation, Renewal, Trust, Use};
use ocm_core::certificate::{self, Certificate};
use ocm_kube::Cluster;

use super::unreadable::Unreadable;

/// A Secret; none: it is not there, or could not be read, which the inventory then says.
pub(super) async fn secret(cluster: &Cluster, namespace: &str, name: &str) -> Result<Option<Secret>, Unreadable> {
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), namespace);
    let what = format!("Secret {namespace}/{name}");
    api.get_opt(name).await.map_err(|error| Unreadable {
        failure: cluster.explain(format_args!("read {what}"), error),
        rule: Some(PolicyRule::new("get", "", "secrets", Some(namespace))),
        what,
    })
}

/// A ConfigMap; none: it is not there.
pub(super) async fn config_map(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<ConfigMap>, Unreadable> {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let what = format!("ConfigMap {namespace}/{name}");
    api.get_opt(name).await.map_err(|error| Unreadable {
        failure: cluster.explain(format_args!("read {what}"), error),
        rule: Some(PolicyRule::new("get", "", "configmaps", Some(namespace))),
        what,
    })
}

/// What was read; what could not be goes into the inventory.
pub(super) fn noted<T>(found: Result<Option<T>, Unreadable>, inventory: &mut Inventory) -> Option<T> {
    match found {
        Ok(found) => found,
        Err(unreadable) => {
            inventory.unseen.push(unreadable.into());
            None
        }
    }
}

/// The value of a key of a Secret.
pub(super) fn value<'a>(secret: &'a Secret, key: &str) -> Option<&'a [u8]> {
    Some(secret.data.as_ref()?.get(key)?.0.as_slice())
}

/// The value of a key of a Secret that is text.
pub(super) fn text(secret: &Secret, key: &str) -> Option<String> {
    String::from_utf8(value(secret, key)?.to_vec()).ok()
}

/// Certificates in DER, as inventories have them.
pub(super) fn der(certificates: Vec<Vec<u8>>) -> Vec<ByteString> {
    certificates.into_iter().map(ByteString).collect()
}

/// The certificates of a PEM file that can be read, as most verifiers take them; empty if there are none.
pub(super) fn certificates(pem: &[u8]) -> Vec<Vec<u8>> {
    certificate::readable(pem).0
}

/// A copy of authorities as PEM.
pub(super) fn copy(what: Copied, place: Place, pem: &[u8]) -> Copy {
    let (authorities, unreadable) = certificate::readable(pem);
    let authorities = der(authorities);
    Copy { what, cluster: None, place, authorities, unreadable, server: None, proxy: None, vouches: None }
}

/// Where a key of an object is.
pub(super) fn place(side: Side, kind: ObjectKind, namespace: Option<&str>, name: &str, key: &str) -> Place {
    Place::Object {
        side,
        kind,
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        key: Some(key.to_owned()).filter(|key| !key.is_empty()),
    }
}

/// The relation of `tls.crt` and `tls.key` of a Secret; none if it has no such key.
pub(super) fn of_secret(side: Side, secret: &Secret) -> Option<Relation> {
    let chain = chain(value(secret, secrets::TLS_CERT_KEY)?);
    let own = chain.first()?;
    let metadata = &secret.metadata;
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default());
    Some(Relation {
        holds_key: value(secret, secrets::TLS_KEY_KEY).and_then(|key| ocm_net::key::belongs(key, own)),
        ..plain(chain, place(side, ObjectKind::Secret, namespace, name, secrets::TLS_CERT_KEY))
    })
}

/// The chain of a PEM file. One of which nothing can be read is a chain of nothing, so that it is told of; what there is
/// instead may be a private key, and goes nowhere.
pub(super) fn chain(pem: &[u8]) -> Vec<Vec<u8>> {
    let chain = certificates(pem);
    if chain.is_empty() { vec![Vec::new()] } else { chain }
}

/// A relation of which nothing is known but the chain. What an authority is, and what is for clients only, it says itself.
pub(super) fn plain(chain: Vec<Vec<u8>>, place: Place) -> Relation {
    let own = chain.first().and_then(|der| Certificate::read(der));
    let usage = match own {
        Some(own) if own.is_ca => Use::Authority,
        Some(own) if own.usage.is_some_and(|usage| usage.client && !usage.server) => Use::Client,
        _ => Use::Server,
    };
    Relation {
        purpose: Purpose::Given,
        cluster: None,
        presenter: place.to_string(),
        verifier: "whoever verifies it".to_owned(),
        client: None,
        place,
        usage,
        chain: der(chain),
        trust: Trust::Unknown,
        names: Vec::new(),
        identity: None,
        holds_key: None,
        renewal: Renewal::Unknown,
        handshake: None,
        clock_ahead_seconds: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_place_of_a_certificate_goes_nowhere() {
        let made = rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let of = |certificate: &str| {
            let mut secret = Secret::default();
            let values = [("tls.crt", certificate), ("tls.key", key.as_str())];
            secret.data =
                Some(values.map(|(name, value)| (name.to_owned(), ByteString(value.as_bytes().to_vec()))).into());
            of_secret(Side::Hub, &secret).unwrap()
        };
        let right = of(&certificate);
        assert_eq!((right.chain[0].0.as_slice(), right.holds_key), (made.cert.der().as_ref(), Some(true)));
        for wrong in [key.as_str(), "canary", ""] {
            let relation = of(wrong);
            assert_eq!((relation.chain, relation.holds_key), (vec![ByteString(Vec::new())], None), "{wrong}");
        }
        // A key that stands behind its certificate is passed over.
        assert_eq!(of(&format!("{certificate}{key}")).chain, right.chain);
        assert_eq!(of_secret(Side::Hub, &Secret::default()), None);
    }
}
