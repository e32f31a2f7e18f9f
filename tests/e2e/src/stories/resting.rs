//! Connections to a webhook that are older than an API server keeps one that rests, and one that it has closed for that.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crate::accept_support::Who;
use crate::refusals::Sender;
use crate::service_support::{ask, hub};

/// How long a connection rests: longer than servers of HTTP keep one by default.
const RESTS: Duration = Duration::from_secs(35);
/// An API server closes connections that have rested for 90 seconds.
const CLOSED: Duration = Duration::from_secs(95);
/// Whoever passes connections on hears later than the webhook that it ends.
const HEARS: Duration = Duration::from_millis(500);

pub(super) fn a_webhook_that_ends_while_connections_are_old_or_closed_after_resting_costs_no_review() {
    scope(|scope| {
        scope.spawn(one_that_is_old_and_rests);
        scope.spawn(one_that_has_rested_for_long);
    });
}

/// The webhook ends while a connection to it rests, which is older than an API server keeps one that only rests.
fn one_that_is_old_and_rests() {
    let (hub, mut first, service) = hub("resting-old");
    let admin = Sender::new(hub.client(Who::Admin));
    let again = |what: &str| hub.wait(ask(&admin)).unwrap_or_else(|why| panic!("{what}: {why}"));
    again("at first");
    let (opened, begun) = (service.opened(), Instant::now());
    while begun.elapsed() + RESTS < CLOSED {
        sleep(RESTS);
        again("over a connection that rested");
        assert_eq!(service.opened(), opened, "it is the same connection");
    }
    sleep(RESTS);
    // The kernel ends it, and another one takes its place.
    let second = first.another(&hub.cluster, &[]);
    service.leads_to(&[&second]);
    first.kill();
    sleep(HEARS);
    for _ in 0..10 {
        again("after the first one had ended");
    }
    assert!(service.opened() > opened);
}

/// The webhook is asked again, and ends, when its connection has rested for so long that the API server has closed it.
fn one_that_has_rested_for_long() {
    let (hub, mut first, service) = hub("resting-closed");
    let admin = Sender::new(hub.client(Who::Admin));
    let again = |what: &str| hub.wait(ask(&admin)).unwrap_or_else(|why| panic!("{what}: {why}"));
    again("at first");
    let opened = service.opened();
    sleep(CLOSED);
    again("when the connection was closed");
    assert!(service.opened() > opened, "it is another connection");
    let second = first.another(&hub.cluster, &[]);
    service.leads_to(&[&second]);
    first.kill();
    sleep(HEARS);
    again("after the first one had ended");
}
