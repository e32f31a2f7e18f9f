//! A request of the API server, within bounds.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use ocm_policy_abi::Stage;
use ocm_policy_engine::{Cancellation, Deadline};
use prometheus_client::metrics::gauge::Gauge;

use super::Server;
use super::budget::{Peer, Permit};
use crate::gate::{Review, Reviewed};
use crate::parsed;

/// Where reviews of the mutating and of the validating webhooks go.
pub(super) const MUTATE: &str = "/v1/mutate";
pub(super) const VALIDATE: &str = "/v1/validate";

/// Kept of the time that the API server waits, for the way back.
const WAY_BACK: Duration = Duration::from_millis(200);
/// The API server's own limits of that time, in seconds (`timeoutSeconds` of a webhook), and what holds without.
const SECONDS: std::ops::RangeInclusive<u64> = 1..=30;
const USUAL_SECONDS: u64 = 10;

/// How long a client may take to send a body.
const SENDING: Duration = Duration::from_secs(10);

/// Counts while it lives.
struct InFlight(Gauge);

impl InFlight {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A body that has come, until somebody begins to work on it.
#[derive(Clone)]
struct Unread(Arc<Mutex<Option<Vec<u8>>>>);

impl Unread {
    fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Ends the work on an answer when the request for it is gone: hyper drops what answers a connection that is closed. A body
/// that nobody has begun to work on goes with it, since its bytes are counted no more.
struct Waits {
    cancellation: Cancellation,
    body: Unread,
}

impl Waits {
    fn with(body: Vec<u8>) -> Self {
        Self { cancellation: Cancellation::default(), body: Unread(Arc::new(Mutex::new(Some(body)))) }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.cancellation.cancel();
        drop(self.body.take());
    }
}

impl Server {
    /// Answers one request.
    pub(super) async fn answer(self: Arc<Self>, request: Request<Incoming>, peer: Peer) -> Response<Full<Bytes>> {
        let server = self.clone();
        let mut response = self.review(request, peer).await;
        // Whoever comes back comes to another server.
        if server.draining.load(Ordering::Relaxed) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn review(self: Arc<Self>, request: Request<Incoming>, peer: Peer) -> Response<Full<Bytes>> {
        let stage = match request.uri().path() {
            MUTATE => Stage::Mutating,
            VALIDATE => Stage::Validating,
            _ => return said(StatusCode::NOT_FOUND, "there are /v1/mutate and /v1/validate\n"),
        };
        if request.method() != Method::POST {
            return said(StatusCode::METHOD_NOT_ALLOWED, "reviews are sent by POST\n");
        }
        if !self.judge.is_open() {
            return self
                .come_again(StatusCode::SERVICE_UNAVAILABLE, "the policies of the hub have not been read yet\n");
        }
        let told = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if told.is_some_and(|length| length > self.bounds.body) {
            return self.too_large();
        }
        let (arrived, time) = (Instant::now(), time(timeout(request.uri().query())));
        let room = self.bodies.open(peer);
        let bytes = match tokio::time::timeout(SENDING, self.read(request.into_body(), &room)).await {
            Ok(Ok(read)) => read,
            Ok(Err(answer)) => return *answer,
            Err(_) => return self.not_asked(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time\n"),
        };
        // What has come whole goes after what is still on its way.
        room.set_busy(true);
        let Some(place) = self.in_flight.take(peer, 1) else { return self.too_many() };
        // Of several the newest one is given up: the others are nearer to their answers.
        place.set_busy(true);
        let Some(values) = self.parsed.take(peer, parsed::size(&bytes).min(parsed::MOST)) else {
            return self.too_many();
        };
        values.set_busy(true);
        let held = Arc::new((room, place, values));
        let counted = InFlight::new(&self.metrics.in_flight);
        // Policies compute: the connections of this thread go on meanwhile.
        let (answer, answered) = tokio::sync::oneshot::channel();
        let (judge, server) = (self.judge.clone(), self.clone());
        let end = {
            let (judge, held) = (judge.clone(), held.clone());
            move |Reviewed { status, body, decided }| {
                let _ = answer.send((status, body));
                if let Some(decided) = &decided {
                    judge.note(decided, stage);
                }
                // The next instances are made when the answer is on its way. Whoever hangs up meanwhile frees nothing
                // earlier.
                drop((decided, held, counted));
            }
        };
        let waits = Waits::with(bytes);
        // The API server's time goes by while the body comes, and while others are answered.
        let deadline = Deadline::after(time.saturating_sub(arrived.elapsed())).or_cancelled(&waits.cancellation);
        let (body, metrics) = (waits.body.clone(), self.metrics.clone());
        self.deciders.give(Box::new(move || {
            let Some(bytes) = body.take() else { return metrics.gone() };
            match judge.review(&bytes, stage, &deadline) {
                Review::Answered(reviewed) => end(reviewed),
                Review::Waits(decide) => server.deciders.wait(Box::new(move || end(decide()))),
            }
        }));
        let (room, place, values) = &*held;
        let answered = tokio::select! {
            // What was decided is recorded, so it is also the answer.
            biased;
            answered = answered => answered,
            () = room.taken_back() => return self.too_many(),
            () = place.taken_back() => return self.too_many(),
            () = values.taken_back() => return self.too_many(),
        };
        drop(waits);
        let Ok((status, body)) = answered else {
            return self.not_asked(StatusCode::INTERNAL_SERVER_ERROR, "the review could not be answered\n");
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        if status == StatusCode::OK {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        response
    }

    /// Reads a body, and takes room for what has come, and for nothing that was only announced. Others give way to all of it, or
    /// to as much as it may come to where it does not say how much it is.
    async fn read(&self, mut body: Incoming, room: &Permit) -> Result<Vec<u8>, Box<Response<Full<Bytes>>>> {
        let mut bytes = Vec::new();
        let told = body.size_hint().upper().and_then(|length| usize::try_from(length).ok());
        let whole = told.unwrap_or(self.bounds.body);
        let no_room = || Box::new(self.come_again(StatusCode::TOO_MANY_REQUESTS, "too many bytes are being read\n"));
        loop {
            let frame = tokio::select! {
                biased;
                () = room.taken_back() => return Err(no_room()),
                frame = body.frame() => frame,
            };
            let Some(frame) = frame else { return Ok(bytes) };
            let frame = frame.map_err(|_| self.not_asked(StatusCode::BAD_REQUEST, "the body cannot be read\n"))?;
            let Ok(part) = frame.into_data() else { continue };
            if bytes.len() + part.len() > self.bounds.body {
                return Err(Box::new(self.too_large()));
            }
            if !room.more(part.len(), whole.saturating_sub(bytes.len())) {
                return Err(no_room());
            }
            bytes.extend_from_slice(&part);
        }
    }

    fn too_many(&self) -> Response<Full<Bytes>> {
        self.come_again(StatusCode::TOO_MANY_REQUESTS, "too many reviews are being answered\n")
    }

    /// The API server repeats what is answered so, within its deadline (`k8s.io/client-go/rest/with_retry.go`).
    fn come_again(&self, status: StatusCode, why: &'static str) -> Response<Full<Bytes>> {
        let mut response = self.not_asked(status, why);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }

    fn too_large(&self) -> Response<Full<Bytes>> {
        self.not_asked(StatusCode::PAYLOAD_TOO_LARGE, "the review is larger than any object may be\n")
    }

    /// What becomes of a review that no policy is asked about.
    fn not_asked(&self, status: StatusCode, why: &'static str) -> Response<Full<Bytes>> {
        self.metrics.count("not-asked", status.as_u16());
        said(status, why)
    }
}

/// What the API server says about how long it waits, in the query of the URL: `10s` for instance.
fn timeout(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix("timeout="))
}

/// How long the work on an answer may take.
fn time(timeout: Option<&str>) -> Duration {
    let seconds = timeout.and_then(|text| text.strip_suffix('s')?.parse::<u64>().ok()).unwrap_or(USUAL_SECONDS);
    Duration::from_secs(seconds.clamp(*SECONDS.start(), *SECONDS.end())).saturating_sub(WAY_BACK)
}

pub(super) fn said(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_comes_before_the_api_server_gives_up() {
        let millis = |said| time(said).as_millis();
        assert_eq!(
            [Some("3s"), Some("900s"), Some("0s"), Some("x"), None].map(millis),
            [2800, 29_800, 800, 9800, 9800]
        );
    }

    #[test]
    fn of_a_request_that_has_gone_nothing_is_kept_and_nothing_is_worked_on() {
        let waits = Waits::with(b"{}".to_vec());
        let (body, deadline) = (waits.body.clone(), Deadline::NONE.or_cancelled(&waits.cancellation));
        assert!(!deadline.is_cancelled());
        drop(waits);
        assert_eq!((body.take(), deadline.is_cancelled()), (None, true));
        // What somebody has begun to work on is theirs.
        let waits = Waits::with(b"{}".to_vec());
        let taken = waits.body.clone().take();
        drop(waits);
        assert_eq!(taken, Some(b"{}".to_vec()));
    }
}
