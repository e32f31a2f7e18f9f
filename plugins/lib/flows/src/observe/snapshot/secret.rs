//! A Secret without its secrets.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::names::secrets;
use ocm_checks::snapshot::{KeyFacts, KubeconfigFacts, SecretFacts, TokenFacts};
use ocm_core::pin::Pin;
use ocm_core::{certificate, token};
use ocm_net::proxy::{Origin, Proxy};

use crate::hub;

/// What may be known of a Secret.
pub(super) fn facts(secret: &Secret) -> SecretFacts {
    let data = secret.data.clone().unwrap_or_default();
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    // The digest of a pin is SHA-256 of whatever bytes it is given.
    let keys = data.iter().map(|(key, value)| {
        (key.clone(), KeyFacts { bytes: value.0.len(), sha256: Pin::of_key(&value.0).to_string() })
    });
    let certificates = data.iter().filter_map(|(key, value)| {
        let chain = certificate::from_pem(&value.0).ok()?;
        Some((key.clone(), chain.into_iter().map(ByteString).collect()))
    });
    let annotations = secret.metadata.annotations.clone().unwrap_or_default();
    SecretFacts {
        namespace: secret.metadata.namespace.clone().unwrap_or_default(),
        name: secret.metadata.name.clone().unwrap_or_default(),
        type_: secret.type_.clone().unwrap_or_default(),
        keys: keys.collect(),
        certificates: certificates.collect(),
        kubeconfig: text(secrets::KUBECONFIG_KEY).and_then(|text| kubeconfig(&text)),
        cluster: text(secrets::CLUSTER_NAME_KEY).filter(|name| !name.is_empty()),
        agent: text(secrets::AGENT_NAME_KEY).filter(|name| !name.is_empty()),
        annotations: annotations.into_iter().filter(|(key, _)| key.starts_with("kubectl-ocm/")).collect(),
    }
}

fn kubeconfig(text: &str) -> Option<KubeconfigFacts> {
    let read = hub::parse(text)?;
    let proxy = read.hub.proxy.map(|url| match Proxy::parse(&url, Origin::Kubeconfig) {
        Ok(proxy) => proxy.to_string(),
        Err(_) => "a proxy whose address cannot be read".to_owned(),
    });
    Some(KubeconfigFacts {
        server: read.hub.server,
        authorities: read.hub.ca.into_iter().map(ByteString).collect(),
        proxy,
        token: (!read.token.is_empty()).then(|| match token::read(&read.token) {
            token::Content::Jwt { subject, expires, id } => {
                TokenFacts::ServiceAccount { subject, expires: expires.map(Time), id }
            }
            token::Content::Bootstrap(id) => TokenFacts::Bootstrap { id },
            token::Content::Opaque => TokenFacts::Opaque,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_among_the_facts() {
        let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: {server: \
                          'https://hub:6443', proxy-url: 'http://someone:canary-one@proxy:3128'}\nusers:\n- name: u\n  \
                          user: {token: canary-two}\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\n";
        let mut secret = Secret::default();
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        secret.data = Some(
            [("kubeconfig", kubeconfig), ("tls.key", "canary-three"), ("cluster-name", "c1")]
                .map(|(key, value)| (key.to_owned(), bytes(value)))
                .into(),
        );
        secret.metadata.annotations = Some([("other/annotation".to_owned(), "canary-four".to_owned())].into());
        let facts = facts(&secret);
        let text = serde_json::to_string(&facts).unwrap();
        assert!(!text.contains("canary"), "{text}");
        let kubeconfig = facts.kubeconfig.unwrap();
        assert_eq!((kubeconfig.server.as_str(), kubeconfig.token), ("https://hub:6443", Some(TokenFacts::Opaque)));
        assert!(kubeconfig.proxy.unwrap().contains("proxy:3128"));
        assert_eq!((facts.cluster.as_deref(), facts.keys["tls.key"].bytes), (Some("c1"), 12));
    }
}
