//! A Secret without its secrets.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::names::secrets;
use ocm_checks::snapshot::{GrpcFacts, KeyFacts, KubeconfigFacts, SecretFacts, TokenFacts};
use ocm_core::kubeconfig::HUB_UID;
use ocm_core::order::Collect as _;
use ocm_core::redact::redact;
use ocm_core::{certificate, token};
use ocm_net::proxy::{Origin, Proxy};
use ring::hmac;
use ring::rand::SystemRandom;
use secrecy::ExposeSecret;

use super::facts::{annotations_of, version};
use crate::hub;
use crate::tls::{GrpcConfig, grpc_config};

/// Digests by a key that nobody else has: of a short password a plain one is as good as the password.
pub(super) struct Digests(Option<hmac::Key>);

impl Digests {
    /// With a key of its own.
    pub(super) fn new() -> Self {
        Self(hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok())
    }

    /// Of a value, in hex; empty on a machine without random numbers.
    fn of(&self, value: &[u8]) -> String {
        let digest = self.0.as_ref().map(|key| hmac::sign(key, value));
        digest.iter().flat_map(|digest| digest.as_ref()).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What may be known of a Secret.
pub(super) fn facts(secret: &Secret, digests: &Digests) -> SecretFacts {
    let data = secret.data.clone().unwrap_or_default();
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    let keys =
        data.iter().map(|(key, value)| (key.clone(), KeyFacts { bytes: value.0.len(), digest: digests.of(&value.0) }));
    let certificates = data.iter().filter_map(|(key, value)| {
        let chain = certificate::from_pem(&value.0).ok()?;
        Some((key.clone(), chain.into_iter().map(ByteString).collect()))
    });
    let annotations = annotations_of(&mut secret.metadata.clone(), &[HUB_UID]);
    SecretFacts {
        namespace: secret.metadata.namespace.clone().unwrap_or_default(),
        name: secret.metadata.name.clone().unwrap_or_default(),
        version: version(&secret.metadata),
        type_: secret.type_.clone().unwrap_or_default(),
        keys: keys.collect_map(),
        certificates: certificates.collect_map(),
        holds_key: data.get(secrets::TLS_KEY_KEY).zip(data.get(secrets::TLS_CERT_KEY)).and_then(|(key, chain)| {
            let (chain, _) = certificate::readable(&chain.0);
            ocm_net::key::belongs(&key.0, chain.first()?)
        }),
        grpc: text(secrets::GRPC_CONFIG_KEY).and_then(|text| grpc(&text)),
        kubeconfig: text(secrets::KUBECONFIG_KEY).and_then(|text| kubeconfig(&text)),
        cluster: text(secrets::CLUSTER_NAME_KEY).filter(|name| !name.is_empty()),
        agent: text(secrets::AGENT_NAME_KEY).filter(|name| !name.is_empty()),
        annotations: annotations.unwrap_or_default(),
    }
}

fn kubeconfig(text: &str) -> Option<KubeconfigFacts> {
    let read = hub::parse(text)?;
    let proxy = read.hub.proxy.map(|url| match Proxy::parse(&url, Origin::Kubeconfig) {
        Ok(proxy) => proxy.url(),
        Err(_) => "a proxy whose address cannot be read".to_owned(),
    });
    Some(KubeconfigFacts {
        server: redact(&read.hub.server),
        authorities: read.hub.ca.into_iter().map(ByteString).collect(),
        proxy,
        token: token_facts(&read.token),
    })
}

fn token_facts(text: &str) -> Option<TokenFacts> {
    (!text.is_empty()).then(|| match token::read(text) {
        token::Content::Jwt { subject, expires, id } => {
            TokenFacts::ServiceAccount { subject, expires: expires.map(Time), id }
        }
        token::Content::Bootstrap(id) => TokenFacts::Bootstrap { id },
        token::Content::Opaque => TokenFacts::Opaque,
    })
}

fn grpc(text: &str) -> Option<GrpcFacts> {
    let GrpcConfig { url, pem, token } = grpc_config(text)?;
    let (authorities, _) = certificate::readable(&pem.unwrap_or_default());
    // What stands before an @ is nobody's address.
    let server = url.rsplit_once('@').map_or(url.as_str(), |(_, server)| server);
    Some(GrpcFacts {
        server: redact(server),
        authorities: authorities.into_iter().map(ByteString).collect(),
        token: token_facts(token.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRPC: &str = "caData: ''\nkeepAliveConfig: {}\ntoken: canary-five\nurl: me:canary-six@hub.example:30090\n";

    #[test]
    fn a_proxy_is_told_as_a_url_without_credentials() {
        let of = |url: &str| {
            let text = format!(
                "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {{server: 'https://hub:6443', proxy-url: \
                 '{url}'}}\n"
            );
            kubeconfig(&text).unwrap().proxy
        };
        for (url, told) in [
            ("http://me:canary@proxy:3128/path", "http://proxy:3128"),
            ("https://proxy.example", "https://proxy.example"),
            ("SOCKS5H://me:canary@[fd00::1]:1080", "socks5://[fd00::1]:1080"),
            ("me:canary@proxy:3128", "a proxy whose address cannot be read"),
        ] {
            assert_eq!(of(url).as_deref(), Some(told), "{url}");
        }
        assert_eq!(of(""), None);
    }

    #[test]
    fn no_secret_is_among_the_facts() {
        let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: {server: \
                          'https://me:canary-zero@hub:6443', proxy-url: 'http://someone:canary-one@proxy:3128'}\nusers:\n- name: u\n  \
                          user: {token: canary-two}\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\n";
        let mut secret = Secret::default();
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        secret.data = Some(
            [("kubeconfig", kubeconfig), ("tls.key", "canary-three"), ("cluster-name", "c1"), ("config.yaml", GRPC)]
                .map(|(key, value)| (key.to_owned(), bytes(value)))
                .into(),
        );
        let annotations = [
            ("other/annotation", "canary-four"),
            ("kubectl-ocm/other", "canary-seven"),
            (HUB_UID, "of https://me:canary@u"),
        ];
        secret.metadata.annotations = Some(annotations.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let digests = Digests::new();
        let facts = facts(&secret, &digests);
        let text = serde_json::to_string(&facts).unwrap();
        assert!(!text.contains("canary"), "{text}");
        assert_eq!(facts.annotations, [(HUB_UID.to_owned(), "of https://[redacted]@u".to_owned())].into());
        let grpc = facts.grpc.unwrap();
        assert!(grpc.server.ends_with("hub.example:30090") && grpc.token == Some(TokenFacts::Opaque), "{grpc:?}");
        let kubeconfig = facts.kubeconfig.unwrap();
        let server = "https://[redacted]@hub:6443";
        assert_eq!((kubeconfig.server.as_str(), kubeconfig.token), (server, Some(TokenFacts::Opaque)));
        assert_eq!(kubeconfig.proxy.as_deref(), Some("http://proxy:3128"));
        assert_eq!((facts.cluster.as_deref(), facts.keys["tls.key"].bytes), (Some("c1"), 12));
        // Equal values have equal digests, and only within one observation.
        let digest = |digests: &Digests| digests.of(b"canary-three");
        assert_eq!(facts.keys["tls.key"].digest, digest(&digests));
        assert_eq!(digest(&digests).len(), 64);
        assert_ne!(digest(&digests), digests.of(b"canary-two"));
        assert_ne!(digest(&digests), digest(&Digests::new()));
    }
}
