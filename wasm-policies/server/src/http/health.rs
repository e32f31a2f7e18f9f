//! Probes and scrapes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;

use super::review::said;
use crate::evidence::Knowledge;
use crate::metrics::Metrics;
use crate::policies::Policies;

/// The format that a scrape is answered in.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// When nobody could tell for so long which policies the hub wants, administrators should know.
const OLD: Duration = Duration::from_secs(60);

/// Tells whether the server answers, and by what.
pub struct Health {
    policies: Arc<Policies>,
    knowledge: Arc<Knowledge>,
    metrics: Arc<Metrics>,
    answers: AtomicBool,
    /// Held for a scrape: another one would find what it has taken away to write it anew.
    scraping: Mutex<()>,
}

impl Health {
    /// Of these parts. It is not ready before [`Health::answers`].
    pub fn new(policies: Arc<Policies>, knowledge: Arc<Knowledge>, metrics: Arc<Metrics>) -> Self {
        Self { policies, knowledge, metrics, answers: AtomicBool::new(false), scraping: Mutex::default() }
    }

    /// The server has answered itself.
    pub fn answers(&self) {
        self.answers.store(true, Ordering::Relaxed);
    }

    /// What keeps it from being ready. A policy that cannot be loaded does not, nor does evidence that cannot be read or never was:
    /// such a policy answers with its error, and another server would do the same; those beside it have to go on.
    pub fn not_ready(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.policies.is_complete() {
            missing.push("the policies of the hub have not been read yet".to_owned());
        }
        if !self.answers.load(Ordering::Relaxed) {
            missing.push("it has not answered a request of its own yet".to_owned());
        }
        missing
    }

    pub(super) fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/healthz" => said(StatusCode::OK, "ok\n"),
            "/readyz" => match self.not_ready().as_slice() {
                [] => said(StatusCode::OK, self.details()),
                missing => said(StatusCode::SERVICE_UNAVAILABLE, missing.join("\n") + "\n"),
            },
            "/metrics" => {
                let mut response = said(StatusCode::OK, self.scrape());
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPENMETRICS));
                response
            }
            _ => said(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n"),
        }
    }

    /// What there is to measure, measured now.
    fn scrape(&self) -> String {
        let _alone = self.scraping.lock().unwrap_or_else(PoisonError::into_inner);
        self.policies.measure_engine();
        self.metrics.unserved(self.knowledge.unserved().len());
        self.metrics.text()
    }

    /// What is wrong although it is ready.
    fn details(&self) -> String {
        // Anybody may ask, and the reason may quote settings: it stands in the status of the policy.
        let failed = self.policies.failed_in_short().into_iter().map(|(name, why)| format!("policy {name}: {why}\n"));
        let lost = self.knowledge.lost().into_iter().map(|why| format!("evidence: {why}\n"));
        let unserved = self.knowledge.unserved().into_iter();
        let unserved =
            unserved.map(|key| format!("evidence: {key}: the hub does not serve this kind, so policies find none\n"));
        let age = self.policies.age().filter(|age| *age > OLD).map(|age| age.as_secs());
        let old = age.map(|age| format!("policies: those of the hub were last read {age} seconds ago\n"));
        std::iter::once("ok\n".to_owned()).chain(old).chain(failed).chain(lost).chain(unserved).collect()
    }
}
