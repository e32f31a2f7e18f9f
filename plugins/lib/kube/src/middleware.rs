//! What every request of ours passes through: fresh credentials, a time limit that spares watches, pauses between watches that
//! end at once, an ear for `Warning:` headers, and answers that can be read.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, WARNING};
use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use ocm_core::{Event, Narrator};
use ocm_net::proxy::ProxyName;
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Layer, Service};

use crate::credentials::Credentials;
use crate::readable::Readable;

/// Authorizes a request, bounds it to the end of its answer, and tells the server's warnings, each once.
#[derive(Clone)]
pub(crate) struct Middleware {
    limit: Option<Duration>,
    proxy: Option<ProxyName>,
    credentials: Credentials,
    narrator: Arc<dyn Narrator>,
    told: Arc<Mutex<HashSet<String>>>,
    watches: Watches,
}

/// The request took longer than it may.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no answer within {}", ocm_core::duration::human(*.limit))]
pub(crate) struct TooSlow {
    limit: Duration,
    /// The proxy on the way.
    pub(crate) proxy: Option<ProxyName>,
}

impl Middleware {
    pub(crate) fn new(
        limit: Option<Duration>,
        proxy: Option<ProxyName>,
        credentials: Credentials,
        narrator: Arc<dyn Narrator>,
    ) -> Self {
        Self { limit, proxy, credentials, narrator, told: Arc::default(), watches: Watches::default() }
    }

    fn too_slow(&self, limit: Duration) -> TooSlow {
        TooSlow { limit, proxy: self.proxy.clone() }
    }

    fn tell_warnings<B>(&self, response: &Response<B>) {
        for header in response.headers().get_all(WARNING) {
            let Some(text) = header.to_str().ok().and_then(warning_text) else { continue };
            let new = self.told.lock().is_ok_and(|mut told| told.insert(text.clone()));
            if new {
                self.narrator.tell(Event::warning(text));
            }
        }
    }
}

impl<S> Layer<S> for Middleware {
    type Service = Wrapped<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { inner, middleware: self.clone() }
    }
}

#[derive(Clone)]
pub(crate) struct Wrapped<S> {
    inner: S,
    middleware: Middleware,
}

impl<S, In, Out> Service<Request<In>> for Wrapped<S>
where
    S: Service<Request<In>, Response = Response<Out>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    In: Send + 'static,
    Out: Send + 'static,
{
    type Response = Response<Readable<Bounded<Out>>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<In>) -> Self::Future {
        let middleware = self.middleware.clone();
        // A watch, and a log that is followed, end when nobody wants them any more.
        let is_endless = |pair| ["watch=true", "follow=true"].contains(&pair);
        let is_endless = request.uri().query().is_some_and(|query| query.split('&').any(is_endless));
        let watch = is_endless.then(|| Watch::of(request.uri()));
        // The one that is ready goes, and its clone stays.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        Box::pin(async move {
            if let Some(value) = middleware.credentials.authorization().await? {
                request.headers_mut().insert(AUTHORIZATION, value);
            }
            if let Some(next) = watch.as_ref().and_then(|watch| middleware.watches.next(watch)) {
                tokio::time::sleep_until(next).await;
            }
            // Longer than any clock goes is no limit.
            let limit = middleware.limit.filter(|_| !is_endless);
            let limit = limit.and_then(|limit| Some((limit, Instant::now().checked_add(limit)?)));
            let response = inner.call(request);
            let response = match limit {
                Some((limit, end)) => tokio::time::timeout_at(end, response)
                    .await
                    .map_err(|_| middleware.too_slow(limit))?
                    .map_err(Into::into)?,
                None => response.await.map_err(Into::into)?,
            };
            middleware.tell_warnings(&response);
            let limit = limit.map(|(limit, end)| (middleware.too_slow(limit), end));
            // Whoever asked waits by itself after an error.
            let watch = watch.filter(|_| response.status().is_success());
            let began = watch.map(|watch| (middleware.watches.clone(), watch, Instant::now()));
            let kind = response.headers().get(CONTENT_TYPE);
            let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
            Ok(response.map(|body| Readable::new(Bounded::new(body, limit, began), is_json)))
        })
    }
}

/// What a watch is of: the address, without what differs between two watches of the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watch(String);

impl Watch {
    fn of(uri: &Uri) -> Self {
        let differs = |pair: &&str| pair.starts_with("resourceVersion=") || pair.starts_with("timeoutSeconds=");
        let same = uri.query().unwrap_or_default().split('&').filter(|pair| !differs(pair));
        Self(same.fold(uri.path().to_owned(), |whole, pair| whole + "&" + pair))
    }
}

/// Watches that the server ended soon after they began: how often in a row, and when the next one may begin. Who watches begins
/// again at once when a watch ends without an error, and the server may end each at once.
#[derive(Clone, Default)]
struct Watches(Arc<Mutex<HashMap<Watch, (u32, Instant)>>>);

/// A watch that goes on for so long is none of these; API servers end watches after minutes (`--min-request-timeout`).
const LASTING: Duration = Duration::from_secs(5);
/// The first pause, and how often it doubles: 12.8 s at most.
const PAUSE: Duration = Duration::from_millis(100);
const DOUBLED: u32 = 7;

impl Watches {
    fn all(&self) -> MutexGuard<'_, HashMap<Watch, (u32, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, watch: &Watch) -> Option<Instant> {
        self.all().get(watch).map(|(_, next)| *next)
    }

    /// The server has ended a watch that began then.
    fn ended(&self, watch: Watch, began: Instant, now: Instant) {
        let mut all = self.all();
        if now.saturating_duration_since(began) >= LASTING {
            all.remove(&watch);
            return;
        }
        let (times, next) = all.entry(watch).or_insert((0, now));
        *next = now + PAUSE * 2u32.pow((*times).min(DOUBLED));
        *times = times.saturating_add(1);
    }
}

/// A body that must have come whole at a moment.
pub(crate) struct Bounded<B> {
    body: Pin<Box<B>>,
    limit: Option<(TooSlow, Pin<Box<Sleep>>)>,
    /// Of a watch: where its end is noted, and when it began.
    watch: Option<(Watches, Watch, Instant)>,
}

impl<B> Bounded<B> {
    fn new(body: B, limit: Option<(TooSlow, Instant)>, watch: Option<(Watches, Watch, Instant)>) -> Self {
        let limit = limit.map(|(late, end)| (late, Box::pin(tokio::time::sleep_until(end))));
        Self { body: Box::pin(body), limit, watch }
    }
}

impl<B> Body for Bounded<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if let Some((late, sleep)) = &mut self.limit
            && sleep.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(late.clone().into())));
        }
        let frame = ready!(self.body.as_mut().poll_frame(cx));
        if frame.is_none()
            && let Some((watches, watch, began)) = self.watch.take()
        {
            watches.ended(watch, began, Instant::now());
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The text of a `Warning:` header as Kubernetes writes it: `299 - "text"` (RFC 7234 section 5.5).
pub(crate) fn warning_text(header: &str) -> Option<String> {
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

    #[test]
    fn watches_that_end_at_once_begin_more_and_more_seldom() {
        let watch = |query: &str| Watch::of(&format!("/api/v1/pods?{query}").parse().unwrap());
        let (one, again) = (watch("watch=true&resourceVersion=1"), watch("watch=true&resourceVersion=9"));
        assert!(one == again && one != watch("watch=true&fieldSelector=a"));
        let (watches, now) = (Watches::default(), Instant::now());
        assert_eq!(watches.next(&one), None);
        let pause = || {
            watches.ended(one.clone(), now, now);
            watches.next(&again).unwrap().duration_since(now).as_millis()
        };
        let pauses: Vec<u128> = std::iter::repeat_with(pause).take(9).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 12800, 12800]);
        watches.ended(one.clone(), now, now + LASTING);
        assert_eq!(watches.next(&one), None);
    }
}
