//! What a scrape finds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use ocm_policy_abi::Decision;
use ocm_policy_engine::{EngineLoad, Final};
use ocm_policy_rules::PolicyError;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::tally::{Durations, Tallies};

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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfCandidate {
    pub(crate) policy: String,
    pub(crate) differs: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfJoin {
    pub(crate) outcome: &'static str,
}

/// Counters of everything that was reviewed since the start.
pub struct Metrics {
    registry: Registry,
    /// What is counted at every review, until it is added to the next five.
    tallies: Tallies,
    decisions: Family<OfDecision, Counter>,
    seconds: Family<OfPolicy, Durations>,
    fuel: Family<OfPolicy, Counter>,
    errors: Family<OfError, Counter>,
    reviews: Family<OfReview, Counter>,
    pub(crate) policies: Family<OfModule, Gauge>,
    pub(crate) failed_policies: Gauge,
    pub(crate) comparisons: Family<OfCandidate, Counter>,
    pub(crate) in_flight: Gauge,
    pub(crate) lost_lines: Counter,
    pub(crate) connections_given_up: Counter,
    pub(crate) connections_turned_away: Counter,
    pub(crate) break_glass_admissions: Counter,
    pub(crate) certificate_ends: Gauge<f64, AtomicU64>,
    joins: Family<OfJoin, Counter>,
    leader: Gauge,
    waiting: Gauge,
    enforcing: Gauge,
    hub_webhooks: Gauge,
    break_glass: Gauge,
    queued: Gauge,
    refused: Counter,
    ready_instances: Gauge,
    free_permits: Gauge,
    preparing: Family<OfPolicy, Gauge<f64, AtomicU64>>,
    unserved: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("ocm_policy");
        let metrics = Self {
            registry: Registry::default(),
            tallies: Tallies::default(),
            decisions: Family::default(),
            seconds: Family::default(),
            fuel: Family::default(),
            errors: Family::default(),
            reviews: Family::default(),
            policies: Family::default(),
            failed_policies: Gauge::default(),
            comparisons: Family::default(),
            in_flight: Gauge::default(),
            lost_lines: Counter::default(),
            connections_given_up: Counter::default(),
            connections_turned_away: Counter::default(),
            certificate_ends: Gauge::default(),
            joins: Family::default(),
            leader: Gauge::default(),
            waiting: Gauge::default(),
            enforcing: Gauge::default(),
            hub_webhooks: Gauge::default(),
            break_glass_admissions: Counter::default(),
            break_glass: Gauge::default(),
            queued: Gauge::default(),
            refused: Counter::default(),
            ready_instances: Gauge::default(),
            free_permits: Gauge::default(),
            preparing: Family::default(),
            unserved: Gauge::default(),
        };
        registry.register("decisions", "Decisions of policies", metrics.decisions.clone());
        registry.register("decision_duration_seconds", "How long policies took", metrics.seconds.clone());
        registry.register(
            "fuel",
            "Fuel that policies used, with that of their conditions and of what they are asked to change",
            metrics.fuel.clone(),
        );
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
        registry.register(
            "candidate_comparisons",
            "Decisions of candidates beside policies in force, by whether they differ",
            metrics.comparisons.clone(),
        );
        registry.register("admission_requests_in_flight", "Reviews that are being answered", metrics.in_flight.clone());
        registry.register("lost_log_lines", "Decisions that nobody read", metrics.lost_lines.clone());
        registry.register(
            "connections_given_up",
            "Connections of reviews that were closed because others needed their places",
            metrics.connections_given_up.clone(),
        );
        registry.register(
            "connections_turned_away",
            "Connections of reviews for which there was no place",
            metrics.connections_turned_away.clone(),
        );
        registry.register(
            "serving_certificate_expiry_seconds",
            "When the serving certificate ends, in seconds since 1970",
            metrics.certificate_ends.clone(),
        );
        registry.register(
            "joins",
            "Registrations that the controller looked at, by what came of it",
            metrics.joins.clone(),
        );
        registry.register("leader", "Whether this controller is the one that acts", metrics.leader.clone());
        registry.register("waiting_registrations", "Registrations that wait", metrics.waiting.clone());
        registry.register(
            "enforcing",
            "Whether the controller that acts saw the API server ask the webhook and wait for it, and all its entries are whole",
            metrics.enforcing.clone(),
        );
        registry.register(
            "hub_webhooks_present",
            "Whether the controller that acts saw Open Cluster Management's webhook configurations, and their webhooks answer",
            metrics.hub_webhooks.clone(),
        );
        registry.register(
            "break_glass_admissions",
            "Approvals and acceptances that passed over policies by an approval with breakGlass",
            metrics.break_glass_admissions.clone(),
        );
        registry.register(
            "break_glass_approvals",
            "Approvals with breakGlass that count, as the controller that acts knows them",
            metrics.break_glass.clone(),
        );
        registry.register("queued_decisions", "Decisions that wait for others to end", metrics.queued.clone());
        registry.register(
            "refused_decisions",
            "Decisions that were not made because too many others waited",
            metrics.refused.clone(),
        );
        registry.register(
            "ready_instances",
            "Instances of policies that wait for their request",
            metrics.ready_instances.clone(),
        );
        registry.register(
            "free_permits",
            "How many more decisions of policies that are not known to be quick could be made at once",
            metrics.free_permits.clone(),
        );
        registry.register(
            "instance_preparation_seconds",
            "How long making the last instance took of policies that run code of their own for it",
            metrics.preparing.clone(),
        );
        registry.register(
            "evidence_not_served",
            "Kinds of objects that policies ask for and the hub does not serve: policies find none of them",
            metrics.unserved.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts a review.
    pub(crate) fn count(&self, operation: &'static str, code: u16) {
        self.tallies.own().review(operation, code);
    }

    /// Counts a review that was not decided because nobody waited for the answer any more.
    pub(crate) fn gone(&self) {
        self.count("gone", 499);
    }

    /// Counts what was decided.
    pub fn measure(&self, made: &Final) {
        let operation = made.request().operation.word();
        let mut tally = self.tallies.own();
        for one in made.asked() {
            let (result, mode) = (&one.outcome().result, one.enforcement().mode.word());
            tally.policy(one.place(), |of| {
                of.decided(operation, word(result), mode, one.micros());
                if let Err(error) = result {
                    of.failed(error.code());
                }
            });
        }
        made.fuel().for_each(|(place, fuel)| tally.policy(place, |of| of.spent(fuel)));
    }

    /// Counts fuel that the policy of a place used.
    pub(crate) fn spend(&self, place: &str, fuel: u64) {
        self.tallies.own().policy(place, |of| of.spent(fuel));
    }

    /// Adds what threads have counted to what a scrape finds.
    fn add_up(&self) {
        for tally in self.tallies.take() {
            for ((operation, code), count) in tally.reviews {
                self.reviews.get_or_create(&OfReview { operation, code }).inc_by(count);
            }
            for (policy, of) in tally.policies {
                for ([operation, verdict, mode], count) in of.decisions {
                    let labels = OfDecision { policy: policy.clone(), operation, verdict, mode };
                    self.decisions.get_or_create(&labels).inc_by(count);
                }
                for (error, count) in of.errors {
                    self.errors.get_or_create(&OfError { policy: policy.clone(), error }).inc_by(count);
                }
                let labels = OfPolicy { policy };
                if !of.took.is_empty() {
                    self.seconds.get_or_create(&labels).add(&of.took);
                }
                self.fuel.get_or_create(&labels).inc_by(of.fuel);
            }
        }
    }

    /// Counts what came of a registration that the controller looked at.
    pub fn join(&self, outcome: &'static str) {
        self.joins.get_or_create(&OfJoin { outcome }).inc();
    }

    /// Notes whether this controller is the one that acts, and how many registrations wait.
    pub fn leading(&self, leads: bool, waiting: usize) {
        self.leader.set(leads.into());
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    /// Notes whether the API server asks the webhook and waits for it, and whether the hub's own webhooks are there and answer.
    pub fn enforcing(&self, enforcing: bool, hub_webhooks: bool) {
        self.enforcing.set(enforcing.into());
        self.hub_webhooks.set(hub_webhooks.into());
    }

    /// Notes how many approvals with breakGlass count.
    pub fn approvals_with_break_glass(&self, count: usize) {
        self.break_glass.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Notes when the serving certificate ends.
    pub fn serving_certificate(&self, ends: Option<Timestamp>) {
        #[expect(clippy::cast_precision_loss, reason = "seconds of our time are exact in a double")]
        self.certificate_ends.set(ends.map_or(0.0, |ends| ends.as_second() as f64));
    }

    /// Notes what the engine does now, and how long making the last instance took of each policy that runs code of its own
    /// for that.
    pub(crate) fn engine(&self, load: EngineLoad, prepared: impl IntoIterator<Item = (String, Duration)>) {
        let EngineLoad { queued, refused, ready_instances, free_permits } = load;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.queued.set(number(queued));
        self.refused.inner().store(refused, Ordering::Relaxed);
        self.ready_instances.set(number(ready_instances));
        self.free_permits.set(number(free_permits));
        self.preparing.clear();
        for (policy, took) in prepared {
            self.preparing.get_or_create(&OfPolicy { policy }).set(took.as_secs_f64());
        }
    }

    /// Notes of how many kinds that policies ask for the hub serves none.
    pub(crate) fn unserved(&self, count: usize) {
        self.unserved.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Everything in the text format of OpenMetrics.
    pub fn text(&self) -> String {
        self.add_up();
        let mut out = String::new();
        // Writing into a string does not fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

pub(crate) fn word(result: &Result<Decision, PolicyError>) -> &'static str {
    result.as_ref().map_or("error", |decision| decision.verdict.word())
}
