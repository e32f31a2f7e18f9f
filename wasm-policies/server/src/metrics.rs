//! What a scrape finds.

use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper ends of the buckets of decisions, in seconds: a decision takes microseconds.
const BUCKETS: [f64; 16] =
    [5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5, 1.0, 2.0];

/// Labels of decisions. Never the name of a cluster or of a requester: there are too many, and anybody makes them up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfDecision {
    pub(crate) policy: String,
    pub(crate) operation: &'static str,
    pub(crate) verdict: &'static str,
    pub(crate) mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfPolicy {
    pub(crate) policy: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfError {
    pub(crate) policy: String,
    pub(crate) error: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfReview {
    pub(crate) operation: &'static str,
    pub(crate) code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfModule {
    pub(crate) policy: String,
    pub(crate) version: String,
    pub(crate) sha256: String,
    pub(crate) mode: &'static str,
}

/// Counters of everything that was reviewed since the start.
pub struct Metrics {
    registry: Registry,
    pub(crate) decisions: Family<OfDecision, Counter>,
    pub(crate) seconds: Family<OfPolicy, Histogram, fn() -> Histogram>,
    pub(crate) errors: Family<OfError, Counter>,
    pub(crate) reviews: Family<OfReview, Counter>,
    pub(crate) policies: Family<OfModule, Gauge>,
    pub(crate) failed_policies: Gauge,
    pub(crate) in_flight: Gauge,
    pub(crate) lost_lines: Counter,
    pub(crate) certificate_ends: Gauge<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("ocm_policy");
        let new: fn() -> Histogram = || Histogram::new(BUCKETS);
        let metrics = Self {
            registry: Registry::default(),
            decisions: Family::default(),
            seconds: Family::new_with_constructor(new),
            errors: Family::default(),
            reviews: Family::default(),
            policies: Family::default(),
            failed_policies: Gauge::default(),
            in_flight: Gauge::default(),
            lost_lines: Counter::default(),
            certificate_ends: Gauge::default(),
        };
        registry.register("decisions", "Decisions of policies", metrics.decisions.clone());
        registry.register("decision_duration_seconds", "How long policies took", metrics.seconds.clone());
        registry.register("errors", "Decisions that policies failed to make", metrics.errors.clone());
        registry.register(
            "admission_requests",
            "Reviews by what they are about and HTTP or status code",
            metrics.reviews.clone(),
        );
        registry.register("policy_info", "Policies in force", metrics.policies.clone());
        registry.register(
            "policies_failed",
            "Policies whose newest version could not be put in force",
            metrics.failed_policies.clone(),
        );
        registry.register("admission_requests_in_flight", "Reviews that are being answered", metrics.in_flight.clone());
        registry.register("lost_log_lines", "Decisions that nobody read", metrics.lost_lines.clone());
        registry.register(
            "serving_certificate_expiry_seconds",
            "When the serving certificate ends, in seconds since 1970",
            metrics.certificate_ends.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts a review.
    pub(crate) fn count(&self, operation: &'static str, code: u16) {
        self.reviews.get_or_create(&OfReview { operation, code }).inc();
    }

    /// Notes when the serving certificate ends.
    pub fn serving_certificate(&self, ends: Option<Timestamp>) {
        #[expect(clippy::cast_precision_loss, reason = "seconds of our time are exact in a double")]
        self.certificate_ends.set(ends.map_or(0.0, |ends| ends.as_second() as f64));
    }

    /// Everything in the text format of OpenMetrics.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing into a string does not fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}
