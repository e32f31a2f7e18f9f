//! What every request of ours passes through: a time limit that spares watches, and an ear for `Warning:` headers.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use ocm_core::{Event, Narrator};
use tower::{BoxError, Layer, Service};

/// Bounds a request until its response head arrives and tells the server's warnings, each once.
#[derive(Clone)]
pub(crate) struct Manners {
    pub(crate) limit: Option<Duration>,
    pub(crate) narrator: Arc<dyn Narrator>,
    pub(crate) told: Arc<Mutex<HashSet<String>>>,
}

/// The request took longer than `--request-timeout`.
#[derive(Debug)]
pub(crate) struct TooSlow(pub(crate) Duration);

impl std::fmt::Display for TooSlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no answer within {}", ocm_core::duration::human(self.0))
    }
}

impl std::error::Error for TooSlow {}

impl<S> Layer<S> for Manners {
    type Service = Mannered<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Mannered { inner, manners: self.clone() }
    }
}

#[derive(Clone)]
pub(crate) struct Mannered<S> {
    inner: S,
    manners: Manners,
}

impl<S, In, Out> Service<Request<In>> for Mannered<S>
where
    S: Service<Request<In>, Response = Response<Out>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Out>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        let manners = self.manners.clone();
        let watches = request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = match manners.limit {
                Some(limit) if !watches => {
                    tokio::time::timeout(limit, response).await.map_err(|_| TooSlow(limit))?.map_err(Into::into)?
                }
                _ => response.await.map_err(Into::into)?,
            };
            for header in response.headers().get_all(http::header::WARNING) {
                let Some(text) = header.to_str().ok().and_then(warning_text) else { continue };
                let new = manners.told.lock().is_ok_and(|mut told| told.insert(text.clone()));
                if new {
                    manners.narrator.tell(Event::warning(text));
                }
            }
            Ok(response)
        })
    }
}

/// The text of a `Warning:` header as Kubernetes writes it: `299 - "text"` (RFC 7234 section 5.5).
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.strip_prefix("299 ")?.split_once(' ')?.1;
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    Some(inner.replace("\\\"", "\"").replace("\\\\", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_warnings_of_an_api_server() {
        assert_eq!(warning_text(r#"299 - "v1beta1 is \"old\"""#).as_deref(), Some(r#"v1beta1 is "old""#));
        assert_eq!(warning_text("110 - stale"), None);
    }
}
