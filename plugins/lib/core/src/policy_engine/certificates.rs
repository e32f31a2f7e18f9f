//! The certificates by which the API server knows the webhook: of an authority of our own, or of cert-manager.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use ocm_api::Manifest;
use ocm_api::cert_manager::{Certificate, CertificateSpec, Issuer, PrivateKey, SecretTemplate};
use serde_json::{Value, json};

use super::names::{ISSUED_SECRET, MARK, WEBHOOK, within};
use crate::certificate::from_pem;

/// The name of the webhook's Service as the API server calls it: what the serving certificate is valid for.
pub const SERVER_NAME: &str = "ocm-policy-webhook.ocm-policy-engine.svc";

/// A certificate and its private key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key, which nobody prints.
    pub key: String,
}

impl Pair {
    /// What a Secret of type `kubernetes.io/tls` holds; none where that is no text.
    pub fn of_secret(secret: &Value) -> Option<Self> {
        let text = |key: &str| String::from_utf8(STANDARD.decode(secret["data"][key].as_str()?).ok()?).ok();
        Some(Self { certificate: text("tls.crt")?, key: text("tls.key")? })
    }

    /// The member `data` of such a Secret.
    pub fn to_data(&self) -> Value {
        let Self { certificate, key } = self;
        json!({"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key)})
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { certificate, key } = self;
        f.debug_struct("Pair")
            .field("certificate", certificate)
            .field("key", &format_args!("{} bytes", key.len()))
            .finish()
    }
}

/// What an engine is planned with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The authority that signs from now on.
    pub authority: Pair,
    /// What the webhook serves with.
    pub serving: Pair,
    /// The authorities that the API server is to trust, as PEM: the one that signs from now on, and those whose
    /// certificates may still be served.
    pub bundle: String,
}

/// Who tells the API server which authorities to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// We do: these, as PEM.
    Bundle(String),
    /// cert-manager does: the authority of its [`certificate`].
    Injected,
}

/// What cert-manager is asked for where it looks after the certificate: it issues it by this issuer, renews it, and puts it
/// where the webhook takes it from.
pub fn certificate(issuer: &Issuer) -> Manifest {
    let (key, value) = MARK;
    let spec = CertificateSpec {
        secret_name: ISSUED_SECRET.to_owned(),
        // By its label a removal knows that the Secret is ours.
        secret_template: SecretTemplate { labels: [(key.to_owned(), value.to_owned())].into() },
        issuer_ref: issuer.clone(),
        dns_names: vec![SERVER_NAME.to_owned()],
        usages: ["digital signature", "server auth"].map(str::to_owned).into(),
        duration: Some("2160h".to_owned()),
        private_key: PrivateKey {
            algorithm: Some("ECDSA".to_owned()),
            size: Some(256),
            rotation_policy: Some("Always".to_owned()),
        },
    };
    Manifest::of(&Certificate { metadata: within(WEBHOOK), ..Certificate::new(WEBHOOK, spec) })
}

/// The Secret that it is put into, without what it holds.
pub fn issued_secret() -> Manifest {
    Manifest::with::<Secret>(&within(ISSUED_SECRET), Value::Null)
}

/// Who issues a live [`certificate`]; none where it is not of our make.
pub fn issuer(live: &Value) -> Option<Issuer> {
    let (key, value) = MARK;
    let is_ours = live["metadata"]["labels"][key] == value;
    is_ours.then(|| serde_json::from_value(live["spec"]["issuerRef"].clone()).ok())?
}

/// What a live [`certificate`] and the Secret that it is put into lack; none once it is issued with its authority.
pub fn lacks(live: &Value, secret: Option<&Value>) -> Option<String> {
    let all = live.pointer("/status/conditions").and_then(Value::as_array);
    let ready = all.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let Some(ready) = ready.filter(|ready| is_of(ready, live)) else {
        return Some(format!("cert-manager has said nothing of the Certificate {WEBHOOK} yet"));
    };
    if ready["status"] != "True" {
        let said = ready["message"].as_str().unwrap_or_default();
        return Some(format!("cert-manager says of the Certificate {WEBHOOK}: {said}"));
    }
    let Some(secret) = secret else { return Some(format!("there is no Secret {ISSUED_SECRET} yet")) };
    authority(secret).is_none().then(|| {
        format!(
            "the issuer puts no authority into ca.crt of the Secret {ISSUED_SECRET}, so nobody can verify the webhook"
        )
    })
}

/// Whether a condition is about what the object asks for now.
fn is_of(condition: &Value, object: &Value) -> bool {
    let of = |value: &Value| value.as_i64();
    of(&condition["observedGeneration"]).is_none_or(|seen| Some(seen) >= of(&object["metadata"]["generation"]))
}

/// The authorities that cert-manager has put beside a certificate, as PEM; none where there are none.
pub fn authority(secret: &Value) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(secret["data"]["ca.crt"].as_str()?).ok()?).ok()?;
    from_pem(text.as_bytes()).is_ok_and(|all| !all.is_empty()).then_some(text)
}

/// An issuer as people write it, `KIND[.GROUP]/NAME`; none where it is something else.
pub fn read_issuer(text: &str) -> Option<Issuer> {
    let (kind, name) = text.split_once('/')?;
    let (kind, group) = kind.split_once('.').map_or((kind, None), |(kind, group)| (kind, Some(group)));
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
    let is_name = |name: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        !name.is_empty() && name.chars().all(inner) && !name.starts_with(['-', '.']) && !name.ends_with(['-', '.'])
    };
    // Without a group there are two kinds, and a third one is a slip.
    let is_known = group.map_or(matches!(kind, "Issuer" | "ClusterIssuer"), is_name);
    (is_word(kind) && is_known && is_name(name)).then(|| Issuer {
        group: group.map(str::to_owned),
        kind: Some(kind.to_owned()),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_are_read_as_people_write_them_and_found_again() {
        let issuer_of = |text: &str| read_issuer(text).unwrap_or_else(|| panic!("{text}"));
        for text in ["Issuer/a", "ClusterIssuer/internal-ca.example", "AWSPCAClusterIssuer.awspca.cert-manager.io/x"] {
            let wanted = issuer_of(text);
            assert_eq!(issuer(certificate(&wanted).body()), Some(wanted), "{text}");
        }
        let other = issuer_of("StepIssuer.certmanager.step.sm/s");
        assert_eq!((other.kind.as_deref(), other.group.as_deref()), (Some("StepIssuer"), Some("certmanager.step.sm")));
        for wrong in [
            "",
            "a",
            "/a",
            "Issuer/",
            "clusterissuer/a",
            "Secret/a",
            "Issuer/A",
            "Issuer/a/b",
            "Issuer.x/-",
            "Is suer.x/a",
        ] {
            assert_eq!(read_issuer(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_somebody_else_has_made_says_nothing_and_what_waits_says_why() {
        let mut live = certificate(&Issuer { name: "a".to_owned(), ..Issuer::default() }).body().clone();
        let pem = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap().cert.pem();
        let secret = |ca: &str| json!({"data": {"ca.crt": STANDARD.encode(ca)}});
        let said = |live: &Value, secret: Option<Value>| lacks(live, secret.as_ref()).unwrap_or_default();
        assert_eq!(said(&live, None), "cert-manager has said nothing of the Certificate ocm-policy-webhook yet");
        live["metadata"]["generation"] = 2.into();
        live["status"] = json!({"conditions": [{"type": "Ready", "status": "False", "message": "no such issuer"}]});
        assert_eq!(said(&live, None), "cert-manager says of the Certificate ocm-policy-webhook: no such issuer");
        live["status"]["conditions"][0]["status"] = "True".into();
        assert_eq!(said(&live, None), "there is no Secret ocm-policy-webhook-issued yet");
        for empty in ["", "no PEM"] {
            assert!(
                said(&live, Some(secret(empty))).starts_with("the issuer puts no authority into ca.crt"),
                "{empty}"
            );
        }
        assert_eq!((said(&live, Some(secret(&pem))), authority(&secret(&pem))), (String::new(), Some(pem.clone())));
        // Of what was asked for before.
        live["status"]["conditions"][0]["observedGeneration"] = 1.into();
        assert!(said(&live, Some(secret(&pem))).contains("nothing"));
        live["metadata"]["labels"] = json!({});
        assert_eq!(issuer(&live), None);
    }
}
