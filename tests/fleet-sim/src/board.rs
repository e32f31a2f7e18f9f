//! What the hub tells of clusters and certificate requests, and since when.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use tokio::sync::watch;

/// What is known of a certificate request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// When it was first seen to be approved.
    pub(crate) approved: Option<Instant>,
    /// The certificate, and when it was first seen.
    pub(crate) certificate: Option<(Instant, Vec<u8>)>,
}

/// How many kinds were read once, and why one could not be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    pub(crate) kinds: usize,
    pub(crate) failed: Option<String>,
}

/// A value for each name, for which tasks can wait.
struct Keyed<T>(Mutex<HashMap<String, watch::Sender<T>>>);

impl<T: Clone + Default> Keyed<T> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, name: &str) -> watch::Receiver<T> {
        self.all().entry(name.to_owned()).or_insert_with(|| watch::Sender::new(T::default())).subscribe()
    }

    fn note(&self, name: &str, change: impl FnOnce(&mut T)) {
        self.all().entry(name.to_owned()).or_insert_with(|| watch::Sender::new(T::default())).send_modify(change);
    }

    fn get(&self, name: &str) -> T {
        self.all().get(name).map(|sender| sender.borrow().clone()).unwrap_or_default()
    }

    /// Waits for something about a name. It ends when that is so; the sender lives as long as this.
    async fn wait<V>(&self, name: &str, found: impl Fn(&T) -> Option<V>) -> Option<V> {
        let mut values = self.follow(name);
        let value = values.wait_for(|value| found(value).is_some()).await.ok()?;
        found(&value)
    }
}

/// What the hub tells.
pub(crate) struct Board {
    clusters: Keyed<Option<Instant>>,
    requests: Keyed<Request>,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self { clusters: Keyed::new(), requests: Keyed::new() }
    }

    /// Follows the hub for as long as it is polled.
    pub(crate) async fn watch(&self, client: &Client, read: &watch::Sender<Read>) {
        let clusters: Api<ManagedCluster> = Api::all(client.clone());
        let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
        let config = watcher::Config::default;
        futures::join!(
            follow(watcher(clusters, config()).default_backoff(), read, |cluster| self.cluster(&cluster)),
            follow(watcher(requests, config()).default_backoff(), read, |request| self.request(request)),
        );
    }

    fn cluster(&self, cluster: &ManagedCluster) {
        let (Some(name), Some(true)) = (&cluster.metadata.name, cluster.spec.hub_accepts_client) else { return };
        self.clusters.note(name, |accepted| *accepted = accepted.or_else(|| Some(Instant::now())));
    }

    fn request(&self, request: CertificateSigningRequest) {
        let (Some(name), Some(status)) = (request.metadata.name, request.status) else { return };
        let approved = status.conditions.unwrap_or_default().iter().any(|condition| condition.type_ == "Approved");
        self.requests.note(&name, |known| {
            let now = Instant::now();
            known.approved = known.approved.or_else(|| approved.then_some(now));
            known.certificate = known.certificate.take().or_else(|| Some((now, status.certificate?.0)));
        });
    }

    /// When a cluster was seen to be accepted; none: it was not.
    pub(crate) fn accepted(&self, cluster: &str) -> Option<Instant> {
        self.clusters.get(cluster)
    }

    /// Whether a request was seen to be approved.
    pub(crate) fn approved(&self, request: &str) -> bool {
        self.requests.get(request).approved.is_some()
    }

    /// Waits until a cluster is accepted, and tells when that was.
    pub(crate) async fn until_accepted(&self, cluster: &str) -> Option<Instant> {
        self.clusters.wait(cluster, |accepted| *accepted).await
    }

    /// Waits for the certificate of a request, and tells when it came.
    pub(crate) async fn until_signed(&self, request: &str) -> Option<(Instant, Vec<u8>)> {
        self.requests.wait(request, |request| request.certificate.clone()).await
    }
}

/// Hands over every object as it is and as it becomes, for as long as it is polled.
async fn follow<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    read: &watch::Sender<Read>,
    each: impl Fn(K),
) {
    let mut events = std::pin::pin!(events);
    let mut first = true;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => each(object),
            Ok(Event::InitDone) if first => {
                first = false;
                read.send_modify(|read| read.kinds += 1);
            }
            Ok(Event::Init | Event::InitDone | Event::Delete(_)) => {}
            // It goes on by itself; only who has not begun yet has to hear of it.
            Err(error) if first => read.send_modify(|read| read.failed = Some(error.to_string())),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_seen_first_counts_and_whoever_waits_hears_of_it() {
        let board = Board::new();
        let mut cluster = ManagedCluster::new("c1", ocm_api::cluster::ManagedClusterSpec::default());
        board.cluster(&cluster);
        assert!(board.accepted("c1").is_none());
        cluster.spec.hub_accepts_client = Some(true);
        let (accepted, ()) = futures::join!(board.until_accepted("c1"), async { board.cluster(&cluster) });
        board.cluster(&cluster);
        assert!(accepted.is_some() && accepted == board.accepted("c1"));

        let request = |status: serde_json::Value| {
            let object = serde_json::json!({
                "metadata": {"name": "r1"}, "status": status,
                "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client"},
            });
            board.request(serde_json::from_value(object).unwrap());
        };
        request(serde_json::json!({"conditions": [{"type": "Denied", "status": "True"}]}));
        assert!(!board.approved("r1"));
        request(serde_json::json!({"conditions": [{"type": "Approved", "status": "True"}], "certificate": "eA=="}));
        assert!(board.approved("r1"));
        assert_eq!(board.until_signed("r1").await.map(|(_, pem)| pem), Some(b"x".to_vec()));
    }
}
