//! What admission says about an object that nobody stores.

use std::slice;

use http::header::{CONTENT_TYPE, WARNING};
use kube::client::Body;
use kube::core::Status;
use ocm_api::Manifest;
use ocm_core::Failure;
use ocm_core::admission::Objection;
use ocm_core::reconcile::FIELD_MANAGER;

use crate::Cluster;
use crate::middleware::warning_text;
use crate::untyped::{StatusKind, failed_webhook, is_distrust, objection};

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It would be stored; with these warnings.
    Admitted(Vec<Objection>),
    /// It was refused.
    Refused(Objection),
}

impl Answer {
    /// What was said with it: the warnings, or why it was refused.
    pub fn said(&self) -> &[Objection] {
        match self {
            Self::Admitted(warnings) => warnings,
            Self::Refused(why) => slice::from_ref(why),
        }
    }
}

/// Why nothing was said.
#[derive(Clone, Debug)]
pub enum NoAnswer {
    /// A webhook that has to answer did not.
    Webhook {
        /// The name of its entry in the configuration.
        name: String,
        /// Whether it was reached, and the API server did not believe who it is.
        is_distrusted: bool,
        /// What the API server says.
        failure: Failure,
    },
    /// Something else.
    Other(Failure),
}

impl NoAnswer {
    /// The failure of whoever needed an answer.
    pub fn failure(self) -> Failure {
        match self {
            Self::Webhook { failure, .. } | Self::Other(failure) => failure,
        }
    }
}

/// Tries to create or change a cluster-scoped object, by a server-side dry run.
///
/// # Errors
/// When the server gives no such answer.
pub async fn ask(cluster: &Cluster, manifest: &Manifest) -> Result<Answer, NoAnswer> {
    let what = format!("try {}", manifest.reference());
    let path = format!(
        "/apis/{}/{}/{}?dryRun=All&force=true&fieldManager={FIELD_MANAGER}",
        manifest.api_version(),
        manifest.plural(),
        manifest.name()
    );
    let cannot = |error| NoAnswer::Other(cluster.explain(&what, error));
    let request = http::Request::patch(path).header(CONTENT_TYPE, "application/apply-patch+yaml");
    let request = request.body(Body::from(manifest.body().to_string().into_bytes()));
    let request = request.map_err(|error| NoAnswer::Other(Failure::other(format!("cannot {what}")).because(error)))?;
    let answer = cluster.client.send(request).await.map_err(cannot)?;
    if answer.status().is_success() {
        let warnings = answer.headers().get_all(WARNING).into_iter();
        let warnings = warnings.filter_map(|header| header.to_str().ok().and_then(warning_text));
        return Ok(Answer::Admitted(warnings.map(|text| objection(&text)).collect()));
    }
    let code = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.map_err(cannot)?;
    let status = serde_json::from_slice::<Status>(&body).unwrap_or_else(|_| Status {
        code,
        message: String::from_utf8_lossy(&body).into_owned(),
        ..Status::default()
    });
    if StatusKind::of(&status) == StatusKind::Denied {
        let causes = status.details.into_iter().flat_map(|details| details.causes);
        let codes = causes.map(|cause| cause.reason).filter(|reason| !reason.is_empty()).collect();
        return Ok(Answer::Refused(Objection { codes, ..objection(&status.message) }));
    }
    let webhook = failed_webhook(&status).map(|name| (name.to_owned(), is_distrust(&status.message)));
    let failure = cluster.explain(&what, kube::Error::Api(Box::new(status)));
    Err(match webhook {
        Some((name, is_distrusted)) => NoAnswer::Webhook { name, is_distrusted, failure },
        None => NoAnswer::Other(failure),
    })
}
