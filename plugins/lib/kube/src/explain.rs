//! Errors of the API and of the way to it, translated once.

use std::error::Error as StdError;
use std::io;

use kube::client::UpgradeConnectionError;
use kube::core::Status;
use ocm_core::{Failure, Reason, Remedy};
use ocm_net::proxy::ProxyName;
use ocm_net::tls_failure;
use rustls::Error as TlsError;

use crate::dial::NotConnected;
use crate::middleware::TooSlow;
use crate::untyped::StatusKind;

/// Translates an error of the client. The message says what happened, not what was tried: callers put that in front.
pub fn explain(error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => api(status),
        // A server that refuses `exec` or `portforward` says so by its code alone: the client does not read its words.
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(status)) => {
            api(&Status::failure("", "").with_code(status.as_u16()))
        }
        kube::Error::SerdeError(error) => {
            Failure::other("the server's answer cannot be read").because(error).hint("is this a Kubernetes API server?")
        }
        other => connection(other),
    }
}

/// Whether a request that failed may have been carried out all the same. What a load balancer says, or a server that lost its
/// storage, tells nothing of what became of it, nor does a connection that broke or an answer that cannot be read.
pub fn may_be_done(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 502..=504),
        kube::Error::Auth(_) | kube::Error::BuildRequest(_) => false,
        _ => true,
    }
}

fn api(status: &Status) -> Failure {
    let message = status.message.trim();
    let said = |reason, sentence: &str| {
        let failure = Failure::new(reason, sentence);
        if message.is_empty() { failure } else { failure.because(message) }
    };
    match StatusKind::of(status) {
        StatusKind::Denied => return said(Reason::Admission, "admission on the cluster refused it"),
        StatusKind::WebhookFailed => {
            return said(Reason::Busy, "an admission webhook that must answer did not").hint(Remedy::SeeWebhooks);
        }
        StatusKind::KindNotServed => {
            return said(Reason::KindNotServed, "the cluster does not serve this kind of object");
        }
        StatusKind::Plain => {}
    }
    match status.code {
        401 => Failure::new(Reason::Unauthorized, "the cluster does not accept the credentials")
            .hint("they may have expired: log in again, or name another user or context"),
        // Rights are not what is missing: the namespace lifecycle admission says so of everybody.
        403 if is_leaving(status) => {
            said(Reason::Busy, "its namespace is being deleted, and nothing is created in it any more")
                .hint(Remedy::RunAgain)
        }
        403 => said(Reason::Forbidden, "permission denied")
            .hint("docs/reference/rbac.md lists a ClusterRole per command; ask an administrator to bind it"),
        404 => said(Reason::NotFound, "not found"),
        409 => said(Reason::Conflict, "somebody else changed it, or owns it"),
        400 | 422 => said(Reason::Invalid, "the cluster refuses the object as invalid"),
        429 | 500..=599 => said(Reason::Busy, "the cluster cannot answer now"),
        code => said(Reason::Other, &format!("the cluster answered with HTTP {code}")),
    }
}

/// Whether something was to be created in a namespace that is being deleted. Upstream: `NamespaceTerminatingCause` of
/// `k8s.io/api/core/v1`.
fn is_leaving(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

fn connection(error: &(dyn StdError + 'static)) -> Failure {
    let chain = chain(error);
    for link in &chain {
        if let Some(failure) = link.downcast_ref::<Failure>() {
            return failure.clone();
        }
        if let Some(slow) = link.downcast_ref::<TooSlow>() {
            return unanswered("the cluster does not answer", slow.proxy.as_ref())
                .because(slow)
                .hint("check the address and the way to it, or give requests more time");
        }
        if let Some(tls) = link.downcast_ref::<TlsError>() {
            return tls_failure("the server", tls);
        }
        if let Some(late) = link.downcast_ref::<NotConnected>() {
            return unanswered("the cluster's address does not answer", late.proxy.as_ref())
                .because(late)
                .hint("check network, VPN and proxy");
        }
    }
    // What kept a connection from being opened is a failure already. This one was there, and broke.
    let text = chain.last().map(ToString::to_string).unwrap_or_default();
    Failure::new(Reason::Unreachable, "the connection to the cluster failed").because(text)
}

/// Nothing came from the cluster, and the way to it leads through a proxy or not.
fn unanswered(what: &str, proxy: Option<&ProxyName>) -> Failure {
    let way = proxy.map(|proxy| format!(" through {proxy} ({})", proxy.origin)).unwrap_or_default();
    Failure::new(Reason::Unreachable, format!("{what}{way}"))
}

/// The error and everything behind it. An [`io::Error`] hides what it wraps from `source`, so it is opened here.
fn chain<'e>(error: &'e (dyn StdError + 'static)) -> Vec<&'e (dyn StdError + 'static)> {
    let mut links: Vec<&'e (dyn StdError + 'static)> = vec![error];
    while let Some(last) = links.last().copied() {
        let inner = last.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inner.map(|inner| inner as &(dyn StdError + 'static)).or_else(|| last.source()) {
            Some(next) => links.push(next),
            None => break,
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reason_of(code: u16, message: &str) -> Reason {
        explain(&kube::Error::Api(Status::failure(message, "").with_code(code).boxed())).reason
    }

    #[test]
    fn statuses_become_reasons() {
        assert_eq!(reason_of(401, "Unauthorized"), Reason::Unauthorized);
        assert_eq!(reason_of(403, "x is forbidden: User \"u\" cannot list"), Reason::Forbidden);
        assert_eq!(reason_of(404, "404 page not found\n"), Reason::KindNotServed);
        assert_eq!(reason_of(404, "managedclusters \"c\" not found"), Reason::NotFound);
        assert_eq!(reason_of(403, "admission webhook \"w\" denied the request: no"), Reason::Admission);
        let by_policy = "x is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no";
        assert_eq!(reason_of(403, by_policy), Reason::Admission);
        let of_policy = "Operation cannot be fulfilled on ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\"";
        assert_eq!(reason_of(409, of_policy), Reason::Conflict);
        assert_eq!(reason_of(500, "failed calling webhook \"w\": connection refused"), Reason::Busy);
        assert_eq!(reason_of(503, ""), Reason::Busy);
    }

    #[test]
    fn who_creates_in_a_namespace_that_is_being_deleted_lacks_no_rights() {
        let status = |cause: &str| -> Status {
            serde_json::from_value(json!({
                "status": "Failure", "code": 403, "reason": "Forbidden",
                "message": "secrets \"s\" is forbidden: unable to create new content in namespace n because it is being terminated",
                "details": {"name": "s", "kind": "secrets", "causes": [{"reason": cause, "field": "metadata.namespace"}]},
            }))
            .unwrap()
        };
        let of = |cause| explain(&kube::Error::Api(Box::new(status(cause))));
        let leaving = of("NamespaceTerminating");
        assert_eq!((leaving.reason, leaving.hints.len()), (Reason::Busy, 1), "{leaving}");
        assert_eq!(of("Other").reason, Reason::Forbidden);
    }

    #[test]
    fn a_connection_that_is_not_passed_on_says_why() {
        let refused = |code| {
            let error = UpgradeConnectionError::ProtocolSwitch(http::StatusCode::from_u16(code).unwrap());
            explain(&kube::Error::UpgradeConnection(error)).reason
        };
        assert_eq!([403, 404, 500].map(refused), [Reason::Forbidden, Reason::NotFound, Reason::Busy]);
    }

    #[test]
    fn a_tls_error_is_found_inside_io_errors() {
        let tls = TlsError::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls));
        let failure = explain(&kube::Error::Service(Box::new(wrapped)));
        assert_eq!(failure.reason, Reason::Tls);
        assert!(failure.message.contains("the trusted CA did not sign"), "{failure}");
    }

    #[test]
    fn what_a_server_itself_refuses_is_not_done() {
        let status = |code| kube::Error::Api(Status::failure("", "").with_code(code).boxed());
        assert!([502, 503, 504].iter().all(|code| may_be_done(&status(*code))));
        assert!([400, 403, 409, 422, 429, 500].iter().all(|code| !may_be_done(&status(*code))));
        assert!(may_be_done(&kube::Error::Service(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)))));
    }

    #[test]
    fn a_connection_that_broke_is_told_from_one_that_was_not_opened() {
        let broken = explain(&kube::Error::Service(Box::new(io::Error::from(io::ErrorKind::ConnectionReset))));
        assert_eq!(broken.reason, Reason::Unreachable);
        assert_eq!(broken.message, "the connection to the cluster failed");
        let unopened = Failure::new(Reason::Unreachable, "x cannot be reached").hint("y");
        let wrapped = io::Error::other(io::Error::other(unopened.clone()));
        assert_eq!(explain(&kube::Error::Service(Box::new(wrapped))), unopened);
    }
}
