//! What servers say in words alone. It is recognised here and nowhere else: everything above
//! matches on what is returned.

use kube::core::Status;
use ocm_core::admission::{Admission, Objection};

/// What an API server's status is about, where neither its code nor its reason tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusKind {
    /// Admission refused the object. A webhook chooses the code and the reason itself.
    Denied,
    /// A webhook that has to answer did not.
    WebhookFailed,
    /// The server does not serve this kind of object.
    KindNotServed,
    /// Its code tells.
    Plain,
}

impl StatusKind {
    pub(crate) fn of(status: &Status) -> Self {
        let says = |text: &str| status.message.contains(text);
        // An unknown kind is answered with a page that names no object.
        let names_object = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
        // A policy that refuses is named in quotation marks; what is wrong with a policy itself names its kind without.
        if says("denied the request") || says("ValidatingAdmissionPolicy '") {
            Self::Denied
        } else if says("failed calling webhook") || says("conversion webhook") {
            Self::WebhookFailed
        } else if status.code == 404
            && !names_object
            && (says("404 page not found") || says("could not find the requested resource"))
        {
            Self::KindNotServed
        } else {
            Self::Plain
        }
    }
}

/// The webhook that had to answer and did not, by the name of its entry
/// (`k8s.io/apiserver/pkg/admission/plugin/webhook/errors`).
pub(crate) fn failed_webhook(status: &Status) -> Option<&str> {
    status.message.split_once("failed calling webhook \"")?.1.split_once('"').map(|(name, _)| name)
}

/// What admission says of an object, and who says it: a webhook that refuses
/// (`k8s.io/apiserver/pkg/admission/plugin/webhook/errors`), or a ValidatingAdmissionPolicy that refuses or warns
/// (`k8s.io/apiserver/pkg/admission/plugin/policy/validating`).
pub(crate) fn objection(text: &str) -> Objection {
    let (by, why) = by_webhook(text).or_else(|| by_policy(text)).unwrap_or((Admission::Other, text));
    Objection { by, why: why.to_owned(), codes: Vec::new() }
}

fn by_webhook(text: &str) -> Option<(Admission, &str)> {
    let (name, rest) = text.strip_prefix("admission webhook \"")?.split_once('"')?;
    let rest = rest.strip_prefix(" denied the request")?;
    Some((Admission::Webhook(name.to_owned()), rest.strip_prefix(": ").unwrap_or_default()))
}

fn by_policy(text: &str) -> Option<(Admission, &str)> {
    let (before, rest) = text.split_once("ValidatingAdmissionPolicy '")?;
    let (name, rest) = rest.split_once('\'')?;
    let bound = rest.strip_prefix(" with binding '").and_then(|rest| rest.split_once('\''));
    let rest = bound.map_or(rest, |(_, rest)| rest);
    let says = if before == "Validation failed for " { ": " } else { " denied request: " };
    Some((Admission::Policy(name.to_owned()), rest.strip_prefix(says)?))
}

/// Whether a server told that it does not believe another one's certificate. Go names the package that found out.
pub(crate) fn is_distrust(text: &str) -> bool {
    text.contains("x509: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_objects_is_the_one_that_the_server_names_and_not_one_in_its_words() {
        let said = |by, why: &str| Objection { by, why: why.to_owned(), codes: Vec::new() };
        let (webhook, policy) = (|| Admission::Webhook("a.example".to_owned()), || Admission::Policy("p".to_owned()));
        for (text, expected) in [
            ("admission webhook \"a.example\" denied the request: no: x", said(webhook(), "no: x")),
            ("admission webhook \"a.example\" denied the request without explanation", said(webhook(), "")),
            (
                "things.example \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: it's 'so'",
                said(policy(), "it's 'so'"),
            ),
            ("x is forbidden: ValidatingAdmissionPolicy 'p' denied request: no", said(policy(), "no")),
            ("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no", said(policy(), "no")),
            (
                "admission webhook \"a.example\" denied the request: ValidatingAdmissionPolicy 'p' denied request: no",
                said(webhook(), "ValidatingAdmissionPolicy 'p' denied request: no"),
            ),
            ("namespaces \"x\" not found", said(Admission::Other, "namespaces \"x\" not found")),
        ] {
            assert_eq!(objection(text), expected, "{text}");
        }
    }

    #[test]
    fn the_webhook_that_failed_is_the_one_that_the_server_names() {
        let said = |message: &str| Status { message: message.to_owned(), ..Status::default() };
        let failed =
            said("Internal error occurred: failed calling webhook \"a.example\": failed to call webhook: \"b\"");
        assert_eq!(failed_webhook(&failed), Some("a.example"));
        assert_eq!(StatusKind::of(&failed), StatusKind::WebhookFailed);
        assert_eq!(failed_webhook(&said("admission webhook \"a.example\" denied the request")), None);
    }
}
