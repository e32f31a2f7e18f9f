//! Denying clusters: acceptance is withdrawn before anything is read that strangers can make long, then requests are denied.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use jiff::Timestamp;
use ocm_api::ManagedCluster;
use ocm_core::accept::{Found, Options, decide};
use ocm_core::csr::{Code, Request, State};
use ocm_core::order;
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::lacking;

use super::candidate::Candidate;
use super::carry_out::{TRIES, decide_request, in_order, live, set_accepted};
use super::reasons::DENIAL_REASON;
use super::rights::{DENY, missing_to_withdraw, require_to_deny_requests};
use super::rows::{Outcome, Row, failed, row};
use super::survey::waits_for_acceptance;
use crate::registry::{Scope, clusters, requests_of, some_clusters};

/// Clusters that are about to be denied. At first nothing but their objects is read: anybody with a token can plant any number
/// of certificate requests, and neither these nor whatever else an acceptance looks at may keep the hub from withdrawing.
#[derive(Debug)]
pub struct Denial {
    clusters: Vec<ToDeny>,
    /// Whether their requests are read.
    has_requests: bool,
}

/// One of them.
#[derive(Debug)]
struct ToDeny {
    candidate: Candidate,
    /// Why it is left as it is.
    left: Option<Failure>,
    /// What came of its acceptance, if it had any.
    withdrawn: Option<Result<(), Failure>>,
}

impl Denial {
    /// Reads the clusters of a scope, those that are named one by one, several at a time: one that cannot be read is no reason to
    /// leave the others accepted. Of [`Scope::All`] those are meant that wait for acceptance.
    ///
    /// # Errors
    /// When none of them can be read.
    pub async fn read(hub: &Cluster, scope: &Scope, options: &Options, at_once: usize) -> Result<Self, Failure> {
        let found = match scope {
            Scope::Names(names) => named(hub, names, at_once).await,
            Scope::Selector(selector) => listed(clusters(hub, Some(selector)).await?),
            Scope::All => {
                let all = clusters(hub, None).await?;
                listed(all.into_iter().filter(waits_for_acceptance).collect())
            }
        };
        let to_deny = |(name, found): (String, Result<Option<ManagedCluster>, Failure>)| {
            let (cluster, left) = match found {
                Ok(cluster) => (cluster, None),
                Err(failure) => (None, Some(failure)),
            };
            ToDeny { candidate: Candidate::alone(name, cluster, options), left, withdrawn: None }
        };
        let clusters: Vec<ToDeny> = found.into_iter().map(to_deny).collect();
        match clusters.iter().find_map(|one| one.left.clone()) {
            Some(failure) if clusters.iter().all(|one| one.left.is_some()) => Err(failure),
            _ => Ok(Self { clusters, has_requests: false }),
        }
    }

    /// Finds out of which clusters the user may not withdraw the acceptance: those are left as they are. What requests somebody
    /// may not deny is found out one by one. They are read here only where there is no acceptance to withdraw.
    ///
    /// # Errors
    /// [`Reason::Forbidden`] naming the rights that are missing, where nothing can be done without them; where there is no
    /// acceptance to withdraw, also when the requests cannot be read.
    pub async fn check_rights(&mut self, hub: &Cluster) -> Result<(), Failure> {
        let accepted = self.to_deny().map(|one| &one.candidate).filter(|candidate| candidate.is_accepted());
        let names: Vec<&str> = accepted.map(|candidate| candidate.name.as_str()).collect();
        if names.is_empty() {
            self.read_requests(hub).await?;
            let waits = self.clusters.iter().any(|one| one.candidate.waiting().next().is_some());
            return if waits { require_to_deny_requests(hub).await } else { Ok(()) };
        }
        // Where the hub does not say what the user may do, it judges each write all the same.
        let missing = missing_to_withdraw(hub, &names).await.unwrap_or_default();
        if missing.len() == self.clusters.len() {
            return Err(lacking(hub, DENY, &missing));
        }
        for right in missing {
            let mut clusters = self.clusters.iter_mut();
            if let Some(one) = clusters.find(|one| right.name.as_ref() == Some(&one.candidate.name)) {
                one.left = Some(lacking(hub, DENY, &[right]));
            }
        }
        Ok(())
    }

    /// Whether there is no cluster.
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }

    /// The clusters that are about to be denied.
    pub fn names(&self) -> Vec<&str> {
        self.to_deny().map(|one| one.candidate.name.as_str()).collect()
    }

    /// The clusters that are left as they are, and why.
    pub fn left(&self) -> impl Iterator<Item = (&str, &Failure)> {
        self.clusters.iter().filter_map(|one| Some((one.candidate.name.as_str(), one.left.as_ref()?)))
    }

    fn to_deny(&self) -> impl Iterator<Item = &ToDeny> {
        self.clusters.iter().filter(|one| one.left.is_none())
    }

    /// Denies, several clusters at a time: every one that is accepted loses its acceptance, and then every request that waits
    /// gets a denial with `reason`. Hands over each row in the order of the clusters.
    pub async fn carry_out(
        mut self,
        hub: &Cluster,
        reason: &str,
        dry_run: DryRun,
        at_once: usize,
        narrator: &dyn Narrator,
        mut each: impl FnMut(&Row),
    ) -> Vec<Row> {
        self.withdraw(hub, dry_run, at_once, narrator).await;
        let unread = self.read_requests(hub).await.err();
        let unread = unread.as_ref();
        let deny = async |one: ToDeny| one.deny(hub, unread, reason, dry_run, narrator).await;
        in_order(self.clusters, at_once, deny, |row, _| each(row)).await
    }

    /// Withdraws all acceptances: with its own an agent loses its rights, whatever becomes of the requests.
    async fn withdraw(&mut self, hub: &Cluster, dry_run: DryRun, at_once: usize, narrator: &dyn Narrator) {
        let accepted = self.clusters.iter_mut().filter(|one| one.left.is_none() && one.candidate.is_accepted());
        let withdrawn = futures::stream::iter(accepted).for_each_concurrent(at_once.max(1), |one| async move {
            let done = match &one.candidate.cluster {
                Some(cluster) if dry_run != DryRun::Client => set_accepted(hub, cluster, false, dry_run).await,
                _ => Ok(()),
            };
            if done.is_ok() && dry_run == DryRun::No {
                narrator.tell(Event::done(format!("withdrew the acceptance of {}", one.candidate.name)));
            }
            one.withdrawn = Some(done);
        });
        withdrawn.await;
    }

    /// Reads the requests of the clusters that are about to be denied, once.
    async fn read_requests(&mut self, hub: &Cluster) -> Result<(), Failure> {
        let names = self.names();
        if self.has_requests || names.is_empty() {
            return Ok(());
        }
        let mut requests: BTreeMap<String, Vec<Request>> = BTreeMap::new();
        for request in requests_of(hub, &names).await? {
            let name = request.cluster_label.clone().unwrap_or_default();
            requests.entry(name).or_default().push(request);
        }
        for ToDeny { candidate, .. } in self.clusters.iter_mut().filter(|one| one.left.is_none()) {
            candidate.requests = requests.remove(&candidate.name).unwrap_or_default();
            let requests: Vec<&Request> = candidate.requests.iter().collect();
            let found = Found {
                cluster: candidate.cluster.as_ref(),
                requests: &requests,
                now: Some(Timestamp::now()),
                ..Found::default()
            };
            // It says which of them the row shows, and nothing else.
            candidate.decision = decide(&candidate.name, &found, &candidate.options);
        }
        self.has_requests = true;
        Ok(())
    }
}

/// Named clusters, each as far as the hub has it.
type Each = Vec<(String, Result<Option<ManagedCluster>, Failure>)>;

async fn named(hub: &Cluster, names: &[String], at_once: usize) -> Each {
    let read = |name: &String| {
        let name = name.clone();
        async move {
            let found = some_clusters(hub, std::slice::from_ref(&name)).await;
            (name, found.map(|mut found| found.pop()))
        }
    };
    futures::stream::iter(names).map(read).buffered(at_once.max(1)).collect().await
}

fn listed(clusters: Vec<ManagedCluster>) -> Each {
    let named = |cluster: ManagedCluster| Some((cluster.metadata.name.clone()?, Ok(Some(cluster))));
    let mut all: Each = clusters.into_iter().filter_map(named).collect();
    order::sort_by(&mut all, |(one, _), (other, _)| one.cmp(other));
    all
}

impl ToDeny {
    /// Denies the requests that wait, and tells how the cluster came out.
    async fn deny(
        self,
        hub: &Cluster,
        unread: Option<&Failure>,
        reason: &str,
        dry_run: DryRun,
        narrator: &dyn Narrator,
    ) -> Row {
        let Self { candidate, left, withdrawn } = self;
        if let Some(failure) = left {
            return failed(&candidate, failure);
        }
        let name = &candidate.name;
        if let (Some(Ok(())), Some(unread)) = (&withdrawn, unread) {
            let (is, could) = match dry_run {
                DryRun::No => ("is not", "could not"),
                DryRun::Client | DryRun::Server => ("would not be", "cannot"),
            };
            let sentence = format!("{name} {is} accepted any more, but its requests {could} be read");
            return failed(&candidate, unread.clone().context(sentence));
        }
        let waiting: Vec<&Request> = candidate.waiting().collect();
        let row = row(&candidate);
        if waiting.is_empty() && withdrawn.is_none() && unread.is_none() {
            if let Some(failure) = let_in_meanwhile(hub, &candidate).await {
                return failed(&candidate, failure);
            }
            let (outcome, detail) = match candidate.cluster {
                Some(_) => (Outcome::AlreadyDenied, "nothing waits for approval"),
                None => (Outcome::Refused(Code::NoManagedCluster), "the hub has no managed cluster of this name"),
            };
            return Row { outcome, detail: detail.to_owned(), help: None, stray: Vec::new(), ..row };
        }
        let is_withdrawn = matches!(withdrawn, Some(Ok(())));
        let mut failures: Vec<Failure> = withdrawn.and_then(Result::err).into_iter().collect();
        failures
            .extend(unread.map(|unread| unread.clone().context(format!("the requests of {name} could not be read"))));
        let mut denied = Vec::new();
        for request in waiting {
            let result = match dry_run {
                DryRun::Client => Ok(true),
                _ => deny_request(hub, request, reason, dry_run).await,
            };
            match result {
                Ok(true) => {
                    if dry_run == DryRun::No {
                        narrator.tell(Event::done(format!("denied request {}", request.name)));
                    }
                    denied.push(request.name.as_str());
                }
                Ok(false) => {}
                Err(failure) => failures.push(failure),
            }
        }
        let detail = match (is_withdrawn, denied.as_slice()) {
            (true, []) => "it is no longer accepted".to_owned(),
            (true, names) => format!("it is no longer accepted, and {} denied", names.join(", ")),
            (false, []) if failures.is_empty() => {
                "its requests were denied or deleted by somebody else meanwhile".to_owned()
            }
            (false, []) => "nothing was changed".to_owned(),
            (false, names) => format!("{} denied", names.join(", ")),
        };
        let request = denied.last().map(|name| (*name).to_owned());
        let all: Vec<String> = failures.iter().map(ToString::to_string).collect();
        let (outcome, detail) = match failures.into_iter().reduce(with_hints_of) {
            None => (Outcome::Denied, detail),
            Some(failure) => (Outcome::Failed(failure), format!("{detail}; {}", all.join("; "))),
        };
        Row { outcome, detail, help: None, stray: Vec::new(), request, ..row }
    }
}

/// That a cluster was accepted since it was looked at, by somebody else, who may have approved its requests as well; or that it
/// cannot be told.
async fn let_in_meanwhile(hub: &Cluster, candidate: &Candidate) -> Option<Failure> {
    let name = &candidate.name;
    let found = match some_clusters(hub, std::slice::from_ref(name)).await {
        Ok(mut found) => found.pop()?,
        Err(failure) => return Some(failure),
    };
    found.spec.hub_accepts_client.unwrap_or_default().then(|| {
        let sentence = format!("{name} was accepted in the meantime: it was not denied");
        Failure::new(Reason::Conflict, sentence).hint(Remedy::RunAgain)
    })
}

/// The first of two failures with what would help against either.
fn with_hints_of(first: Failure, other: Failure) -> Failure {
    let hints: Vec<_> = other.hints.into_iter().filter(|hint| !first.hints.contains(hint)).collect();
    hints.into_iter().fold(first, Failure::hint)
}

/// Denies a request as it is now. Whether it did: one that is gone or decided needs no denial.
async fn deny_request(hub: &Cluster, request: &Request, reason: &str, dry_run: DryRun) -> Result<bool, Failure> {
    let name = &request.name;
    for attempt in 1.. {
        let object = match live(hub, name).await? {
            Some(object) if object.metadata.uid == request.uid => object,
            Some(_) => {
                let sentence = format!("request {name} was deleted and another one of that name made in the meantime");
                return Err(Failure::new(Reason::Conflict, sentence));
            }
            None => return Ok(false),
        };
        match Request::read(&object).state {
            State::Pending => {}
            State::Denied | State::Failed => return Ok(false),
            State::Approved | State::Issued => {
                return Err(Failure::new(Reason::Conflict, format!("request {name} was approved in the meantime")));
            }
        }
        let failure = match decide_request(hub, object, "Denied", DENIAL_REASON, reason, dry_run).await {
            Ok(()) => return Ok(true),
            Err(failure) => failure,
        };
        match failure.reason {
            Reason::NotFound => return Ok(false),
            Reason::Conflict if attempt < TRIES => {}
            _ => return Err(failure),
        }
    }
    unreachable!("the loop returns within its tries")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    use ocm_core::Silent;
    use serde_json::{Value, json};

    use super::super::test_hub::{Asked, hub};
    use super::*;

    /// What a hub does for these tests besides to be one.
    #[derive(Clone, Debug, Default)]
    struct Ways {
        /// With what status the list of requests fails.
        list: Option<u16>,
        /// The cluster whose acceptance may not be withdrawn; none: all may be. An empty name: that of none may be.
        lacks: Option<&'static str>,
        /// The cluster that cannot be read.
        broken: Option<&'static str>,
    }

    fn status(code: u16) -> (u16, Value) {
        let reason = match code {
            403 => "Forbidden",
            404 => "NotFound",
            410 => "Expired",
            _ => "InternalError",
        };
        let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": reason,
            "message": reason, "code": code, "details": {"name": "c", "kind": "things"}});
        (code, status)
    }

    fn request() -> Value {
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "r1", "uid": "r1", "labels": {"open-cluster-management.io/cluster-name": "c1"}},
            "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "username": "eva"},
        })
    }

    /// A hub with `c1`, `c2` and a request for `c1`; of these clusters it accepts some.
    fn start(accepted: &[&'static str], ways: &Arc<Mutex<Ways>>) -> (Cluster, Arc<Mutex<Vec<Asked>>>) {
        let accepted: Mutex<BTreeSet<String>> = Mutex::new(accepted.iter().map(|&name| name.to_owned()).collect());
        let ways = ways.clone();
        hub(move |Asked { line, body }| {
            let ways = ways.lock().unwrap().clone();
            let path = line.split([' ', '?']).nth(1).unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            if path.ends_with("/selfsubjectaccessreviews") {
                let review: Value = serde_json::from_str(body).unwrap();
                let about = review["spec"]["resourceAttributes"]["name"].as_str();
                let allowed = match (ways.lacks, about) {
                    (None, _) => true,
                    (Some(lacks), Some(name)) => !lacks.is_empty() && name != lacks,
                    (Some(_), None) => false,
                };
                let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                    "spec": {}, "status": {"allowed": allowed}});
                return (201, review);
            }
            if path.contains("/managedclusters/") {
                if ways.broken == Some(name) {
                    return status(500);
                }
                if line.starts_with("PATCH ") {
                    accepted.lock().unwrap().remove(name);
                }
                let cluster = json!({
                    "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                    "metadata": {"name": name, "uid": format!("uid-{name}")},
                    "spec": {"hubAcceptsClient": accepted.lock().unwrap().contains(name)},
                });
                return (200, cluster);
            }
            if path.ends_with("/certificatesigningrequests") {
                return ways.list.map_or_else(
                    || {
                        let list = json!({"apiVersion": "certificates.k8s.io/v1", "metadata": {}, "items": [request()],
                            "kind": "CertificateSigningRequestList"});
                        (200, list)
                    },
                    status,
                );
            }
            if path.contains("/certificatesigningrequests/") { (200, request()) } else { status(404) }
        })
    }

    /// Denies clusters by their names. What was asked of the hub goes by its method and the last parts of the path.
    async fn deny(hub: &Cluster, names: &[&str]) -> Result<Vec<Row>, Failure> {
        let scope = Scope::Names(names.iter().map(|&name| name.to_owned()).collect());
        let mut denial = Denial::read(hub, &scope, &Options::default(), 4).await?;
        denial.check_rights(hub).await?;
        Ok(denial.carry_out(hub, "no", DryRun::No, 4, &Silent, |_| ()).await)
    }

    /// Where in what was asked a request with these words comes first.
    fn first(asked: &Mutex<Vec<Asked>>, words: &[&str]) -> Option<usize> {
        asked.lock().unwrap().iter().position(|asked| words.iter().all(|word| asked.line.contains(word)))
    }

    #[tokio::test]
    async fn acceptance_is_withdrawn_before_anything_is_read_that_strangers_can_make_fail() {
        for (code, reason) in [(403, Reason::Forbidden), (410, Reason::Other), (500, Reason::Busy)] {
            let ways = Arc::new(Mutex::new(Ways { list: Some(code), ..Ways::default() }));
            let (hub, asked) = start(&["c1", "c2"], &ways);
            let rows = deny(&hub, &["c1", "c2"]).await.unwrap();
            for row in &rows {
                let told = format!("{} is not accepted any more, but its requests could not be read: ", row.name);
                assert!(row.detail.starts_with(&told), "{row:?}");
                let failure = row.failure().expect("it failed");
                assert_eq!((failure.reason, &failure.to_string()), (reason, &row.detail), "{row:?}");
            }
            assert_eq!(rows.len(), 2);
            let mut patches: Vec<Asked> =
                asked.lock().unwrap().iter().filter(|asked| asked.line.starts_with("PATCH ")).cloned().collect();
            assert_eq!(patches.len(), 2, "{patches:?}");
            patches.sort_by(|one, other| one.line.cmp(&other.line));
            for (patch, name) in patches.iter().zip(["c1", "c2"]) {
                let body: Value = serde_json::from_str(&patch.body).unwrap();
                let pinned = json!({"metadata": {"uid": format!("uid-{name}")}, "spec": {"hubAcceptsClient": false}});
                assert_eq!(body, pinned, "{patches:?}");
            }
            assert!(first(&asked, &["/certificatesigningrequests"]) > first(&asked, &["PATCH ", "/c2"]));
            for nothing in ["/namespaces", "/clusterroles", "/registrations", "PUT "] {
                assert_eq!(first(&asked, &[nothing]), None, "{nothing}");
            }

            // Whoever runs it again, when the requests can be read, has them denied.
            ways.lock().unwrap().list = None;
            let rows = deny(&hub, &["c1", "c2"]).await.unwrap();
            let came_out: Vec<&Outcome> = rows.iter().map(|row| &row.outcome).collect();
            assert_eq!(came_out, [&Outcome::Denied, &Outcome::AlreadyDenied], "{rows:?}");
            assert_eq!(rows[0].request.as_deref(), Some("r1"));
        }
    }

    #[tokio::test]
    async fn where_there_is_no_acceptance_to_withdraw_that_requests_cannot_be_read_is_what_failed() {
        let ways = Arc::new(Mutex::new(Ways { list: Some(403), ..Ways::default() }));
        let (hub, _) = start(&[], &ways);
        assert_eq!(deny(&hub, &["c1"]).await.unwrap_err().reason, Reason::Forbidden);
        // Beside others it is told of each.
        let (hub, _) = start(&["c2"], &ways);
        let rows = deny(&hub, &["c1", "c2"]).await.unwrap();
        assert!(rows[0].detail.starts_with("nothing was changed; the requests of c1 could not be read: "), "{rows:?}");
        assert!(rows[1].detail.starts_with("c2 is not accepted any more"), "{rows:?}");
    }

    #[tokio::test]
    async fn every_cluster_is_denied_for_which_the_right_is_there() {
        let ways = Arc::new(Mutex::new(Ways { lacks: Some("c2"), ..Ways::default() }));
        let (hub, asked) = start(&["c1", "c2"], &ways);
        let rows = deny(&hub, &["c2", "c1"]).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["c2", "c1"]);
        let failure = rows[0].failure().expect("it failed");
        assert_eq!((failure.reason, failure.hints.len()), (Reason::Forbidden, 1));
        assert!(rows[0].detail.ends_with(r#"may not patch managedclusters.cluster.open-cluster-management.io "c2""#));
        assert_eq!(rows[1].outcome, Outcome::Denied, "{rows:?}");
        assert!(first(&asked, &["PATCH ", "/c1"]).is_some() && first(&asked, &["PATCH ", "/c2"]).is_none());

        // Nothing can be done without it.
        ways.lock().unwrap().lacks = Some("");
        let (hub, asked) = start(&["c1", "c2"], &ways);
        let failure = deny(&hub, &["c1", "c2"]).await.unwrap_err();
        assert_eq!((failure.reason, failure.causes.len()), (Reason::Forbidden, 2));
        assert_eq!(first(&asked, &["PATCH "]), None);
    }

    #[tokio::test]
    async fn one_cluster_that_cannot_be_read_leaves_none_of_the_others_accepted() {
        let ways = Arc::new(Mutex::new(Ways { broken: Some("c2"), ..Ways::default() }));
        let (hub, _) = start(&["c1", "c2"], &ways);
        let rows = deny(&hub, &["c1", "c2"]).await.unwrap();
        assert_eq!(rows[0].outcome, Outcome::Denied, "{rows:?}");
        assert!(rows[1].failure().is_some(), "{rows:?}");
        assert!(deny(&hub, &["c2"]).await.is_err());
    }

    #[test]
    fn what_helps_against_any_of_several_failures_is_kept_once() {
        let failure = |hint: &str| Failure::new(Reason::Forbidden, "no").hint("bind the role").hint(hint);
        let both = with_hints_of(failure("one"), failure("other"));
        assert_eq!(both.hints, ["bind the role", "one", "other"]);
    }
}
