//! What servers and the standard library say in words alone. It is recognised here and nowhere else: everything above
//! matches on what is returned.

use std::io;

use kube::core::Status;

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

/// Whether a server told that it does not believe another one's certificate. Go names the package that found out.
pub(crate) fn is_distrust(text: &str) -> bool {
    text.contains("x509: ")
}

/// Whether a name was not resolved: the standard library has no kind for it.
pub(crate) fn is_lookup(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.to_string().contains("failed to lookup address")
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs as _;

    use super::*;

    #[test]
    fn a_name_that_does_not_resolve_is_recognised_as_the_library_says_it() {
        let error = ("name.invalid", 1).to_socket_addrs().unwrap_err();
        assert!(is_lookup(&error), "{error}");
        assert!(!is_lookup(&io::Error::from(io::ErrorKind::ConnectionRefused)));
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
