//! Which of several controllers acts: the one that holds a Lease.
//!
//! Whoever could not renew it for 10 seconds acts no more, and nobody else takes it before it has stood for 15: by the
//! monotonic clock of each, so that no clock that is set matters.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client, Error};
use ocm_core::{Event, Narrator, Reason};
use ocm_kube::explain;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a lease stands that nobody renews.
const STANDS: Duration = Duration::from_secs(15);
/// How long after its last renewal began the holder acts.
const ACTS: Duration = Duration::from_secs(10);
/// How often it is renewed, or looked at.
const RENEWS: Duration = Duration::from_secs(2);
/// How long the hub may take to answer.
const ANSWER: Duration = Duration::from_secs(4);

/// Where the lease is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Who wants the lease: a text that no other process has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder(pub String);

/// Until when this process may act, as others see it.
#[derive(Clone)]
pub(crate) struct Leadership(watch::Receiver<Option<Instant>>);

impl Leadership {
    /// How long it may act from now on; none: it may not.
    pub(crate) fn left(&self) -> Option<Duration> {
        let left = self.0.borrow().as_ref()?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Ends when it may act.
    pub(crate) async fn gained(&mut self) {
        while self.left().is_none() {
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ends when it may act no more.
    pub(crate) async fn lost(&mut self) {
        while let Some(left) = self.left() {
            // A renewal makes it longer, and a loss ends it at once.
            let _ = tokio::time::timeout(left, self.0.changed()).await;
        }
    }

    #[cfg(test)]
    fn until(until: Option<Instant>) -> (watch::Sender<Option<Instant>>, Self) {
        let (sender, receiver) = watch::channel(until);
        (sender, Self(receiver))
    }
}

/// Wants a lease, keeps it, and gives it back.
pub(crate) struct Candidate {
    api: Api<Lease>,
    name: String,
    holder: String,
    leads: watch::Sender<Option<Instant>>,
    /// The lease as it was seen, and since when it is so.
    seen: Option<(String, Instant)>,
}

impl Candidate {
    pub(crate) fn new(client: Client, lease: &LeaseName, holder: &Holder) -> Self {
        Self {
            api: Api::namespaced(client, &lease.namespace),
            name: lease.name.clone(),
            holder: holder.0.clone(),
            leads: watch::Sender::new(None),
            seen: None,
        }
    }

    pub(crate) fn leadership(&self) -> Leadership {
        Leadership(self.leads.subscribe())
    }

    /// Wants it until it is dropped. Tells why it cannot be had, once for each reason; `looked` hears that the hub has
    /// answered.
    pub(crate) async fn run(&mut self, narrator: &dyn Narrator, looked: &dyn Fn()) {
        let mut told = String::new();
        loop {
            let begun = Instant::now();
            match tokio::time::timeout(ANSWER, self.hold()).await {
                Ok(Ok(holds)) => {
                    looked();
                    told.clear();
                    self.leads.send_replace(holds.then(|| begun + ACTS));
                }
                failed => {
                    // It may stand: until its time is over, nobody else has it.
                    let why = match failed {
                        Ok(Err(error)) => explain(&error).to_string(),
                        _ => format!("the hub has not answered within {} seconds", ANSWER.as_secs()),
                    };
                    if why != told {
                        narrator.tell(Event::warning(format!("the lease {} cannot be renewed: {why}", self.name)));
                        told = why;
                    }
                }
            }
            tokio::time::sleep_until(begun + RENEWS).await;
        }
    }

    /// Takes or renews it; whether this process has it.
    async fn hold(&mut self) -> Result<bool, Error> {
        let Some(mut lease) = self.api.get_opt(&self.name).await? else {
            let mut lease = Lease::default();
            lease.metadata.name = Some(self.name.clone());
            lease.spec = Some(self.held(None));
            return won(self.api.create(&PostParams::default(), &lease).await);
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != version) {
            self.seen = Some((version, Instant::now()));
        }
        let since = self.seen.as_ref().map_or_else(Instant::now, |(_, since)| *since);
        if !is_free(lease.spec.as_ref(), &self.holder, since.elapsed()) {
            return Ok(false);
        }
        lease.spec = Some(self.held(lease.spec.as_ref()));
        // With the resource version: of two who take it at once, one does.
        won(self.api.replace(&self.name, &PostParams::default(), &lease).await)
    }

    fn held(&self, former: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let mine = former.filter(|former| former.holder_identity.as_ref() == Some(&self.holder));
        let transitions = former.and_then(|former| former.lease_transitions).unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: i32::try_from(STANDS.as_secs()).ok(),
            acquire_time: mine.and_then(|mine| mine.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if mine.is_some() || former.is_none() { transitions } else { transitions + 1 }),
            ..LeaseSpec::default()
        }
    }

    /// Gives it back, so that nobody waits for its end.
    pub(crate) async fn release(&mut self) {
        let led = self.leads.send_replace(None).is_some();
        if !led {
            return;
        }
        let free = async {
            let Some(mut lease) = self.api.get_opt(&self.name).await? else { return Ok::<_, Error>(()) };
            let Some(spec) = lease.spec.as_mut() else { return Ok(()) };
            if spec.holder_identity.as_ref() == Some(&self.holder) {
                spec.holder_identity = None;
                self.api.replace(&self.name, &PostParams::default(), &lease).await?;
            }
            Ok(())
        };
        // Whoever waits for it takes it in any case, a little later.
        let _ = tokio::time::timeout(ANSWER, free).await;
    }
}

/// Whether this holder may take or renew a lease that has stood as it is for so long.
fn is_free(spec: Option<&LeaseSpec>, holder: &str, stood: Duration) -> bool {
    let Some(spec) = spec else { return true };
    let current = spec.holder_identity.as_deref().filter(|current| !current.is_empty());
    let stands = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    current.is_none_or(|current| current == holder) || stood > stands.unwrap_or(STANDS)
}

fn won(answer: Result<Lease, Error>) -> Result<bool, Error> {
    match answer {
        Ok(_) => Ok(true),
        // Somebody else was faster. What admission refuses with the same code is no such answer.
        Err(error) if explain(&error).reason == Reason::Conflict => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_from_nobody_before_it_has_ended() {
        let spec = |holder: Option<&str>| LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        };
        let free = |holder, seconds| is_free(Some(&spec(holder)), "me", Duration::from_secs(seconds));
        assert!(free(Some("me"), 0) && free(None, 0) && free(Some(""), 0) && is_free(None, "me", Duration::ZERO));
        assert!(!free(Some("other"), 15) && free(Some("other"), 16));
    }

    #[test]
    fn only_who_was_slower_has_not_won() {
        let answer = |code, message: &str| {
            let status = kube::core::Status::failure(message, "Conflict").with_code(code);
            won(Err(Error::Api(status.boxed())))
        };
        assert!(answer(409, "leases \"l\" already exists").is_ok_and(|won| !won));
        assert!(answer(409, "admission webhook \"w\" denied the request: no").is_err());
        assert!(answer(500, "no").is_err());
    }

    #[tokio::test]
    async fn whoever_does_not_hear_of_a_renewal_stops() {
        let (first, more) = (Duration::from_millis(100), Duration::from_millis(300));
        let begun = Instant::now();
        let (sender, mut leadership) = Leadership::until(Some(begun + first));
        leadership.gained().await;
        assert!(leadership.left().is_some_and(|left| left <= first));
        sender.send_replace(Some(begun + more));
        leadership.lost().await;
        assert!(begun.elapsed() >= more && leadership.left().is_none(), "{:?}", begun.elapsed());
        sender.send_replace(Some(Instant::now() + ACTS));
        sender.send_replace(None);
        tokio::time::timeout(first, leadership.lost()).await.expect("another one acts");
    }
}
