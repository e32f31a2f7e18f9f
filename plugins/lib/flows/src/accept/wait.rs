//! Waiting for clusters that have not registered or asked yet: the hub is watched, not asked again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::runtime::watcher;
use ocm_api::ManagedCluster;
use ocm_api::names::labels;
use ocm_core::accept::{Decision, Found, Options, Refusal, decide, wrong};
use ocm_core::csr::{Code, Request};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy, bootstrap};
use ocm_kube::Cluster;
use ocm_kube::wait::{Check, until_triggered};
use tokio::time::{sleep_until, timeout_at};

use super::candidate::Candidate;
use super::carry_out::{LONGEST_PAUSE, answered_by, one, unanswered};
use super::rights::check_rights;
use super::rows::{Outcome, Row, row};
use super::survey::{refuse_unselected, survey, tell_unread};
use crate::observe::registration;
use crate::registry::{FEW, REQUESTS_PAGE, Scope, bound_accounts};
use crate::watch::{Changed, changes};

/// Time between two tries while the hub does not answer, at first.
const PAUSE: Duration = Duration::from_secs(1);

/// For so long changes are gathered that are then looked at together.
const GATHER: Duration = Duration::from_millis(300);

/// At least so long passes between two looks at the whole hub for one cluster. Whoever may register clusters may change
/// requests all the time.
const REST: Duration = Duration::from_millis(500);

/// Does something that only reads, and tries until `deadline`, if any, while the hub does not answer. That it does not is
/// told once.
///
/// # Errors
/// The failure of the work; [`Reason::TimedOut`].
pub async fn patiently<T>(
    deadline: Option<Instant>,
    narrator: &dyn Narrator,
    mut work: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(deadline) = deadline else { return work().await };
    let mut pause = PAUSE;
    loop {
        let Ok(done) = timeout_at(deadline.into(), work()).await else {
            return Err(unanswered());
        };
        match done {
            Err(failure) if failure.reason.is_transient() && Instant::now() + pause < deadline => {
                if pause == PAUSE {
                    narrator.tell(Event::warning(format!("{failure}; trying again")));
                }
            }
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What comes before `end`. Where something always comes at once, that is no reason to go on for ever.
async fn before<T>(end: Instant, work: impl Future<Output = T>) -> Option<T> {
    if Instant::now() >= end {
        return None;
    }
    timeout_at(end.into(), work).await.ok()
}

/// Looks at the clusters of a scope as [`survey`] does, and tries until `deadline`, if any, while the hub does not answer.
///
/// # Errors
/// When the hub cannot be read; [`Reason::TimedOut`].
pub async fn inspect(
    hub: &Cluster,
    scope: &Scope,
    options: &Options,
    deadline: Option<Instant>,
    narrator: &dyn Narrator,
) -> Result<Vec<Candidate>, Failure> {
    patiently(deadline, narrator, async || survey(hub, scope, options).await).await
}

/// Whether a later request may change the decision: the agent may register, or ask, and whoever asked wrongly was not
/// the agent.
pub fn still_waits(decision: &Decision) -> bool {
    let Decision::Refused(refusal) = decision else { return not_yet(decision) };
    let wrongly_asked = matches!(refusal.code.rule(), "R1" | "R2" | "R3" | "R4" | "R5")
        || matches!(refusal.code, Code::Requester | Code::Impersonated | Code::OtherAgent | Code::NoSuchKey);
    (wrongly_asked && !refusal.is_decided) || not_yet(decision)
}

/// Whether nothing is there yet to decide about.
fn not_yet(decision: &Decision) -> bool {
    match decision {
        Decision::NoRequest => true,
        Decision::Refused(refusal) => refusal.code == Code::NoManagedCluster,
        _ => false,
    }
}

/// Clusters that are waited for, and what the hub shows of them.
///
/// Two watches tell what changes. What they tell is judged as it is, once for all that comes together; the hub is read
/// again only for a cluster that need not be waited for any longer, for what was read once is not what an approval may
/// stand on. Whoever may register clusters may create any number of requests that break a rule: of each kind of them the
/// first is told, and how many there were at the end.
pub struct Watch<'a> {
    hub: &'a Cluster,
    /// With the selector that has chosen the clusters, if one has.
    options: Options,
    changes: BoxStream<'a, Result<Changed<Seen, Gone>, Failure>>,
    /// Lists that have not been read for the first time.
    unlisted: usize,
    clusters: BTreeMap<String, ManagedCluster>,
    /// By cluster, then by name.
    requests: BTreeMap<String, BTreeMap<String, Request>>,
    /// The clusters as they were last looked at.
    waiting: BTreeMap<String, Candidate>,
    /// What was decided about each by what the watches told, when the hub was last read for it.
    judged: BTreeMap<String, Judged>,
    /// The clusters of which something changed.
    changed: BTreeSet<String>,
    /// Users besides the usual ones whom the hub lets register clusters, as they were read last.
    bound_accounts: Vec<String>,
    /// A request by a user who was not among them.
    unbound: Option<Request>,
    /// The rules of which it was told that requests for a cluster break them.
    told: BTreeSet<(String, Code)>,
}

/// A decision, and what it is about: the same word about another registration, or another request, is another one.
#[derive(PartialEq)]
struct Judged {
    decision: Decision,
    /// UIDs of the cluster and of the request.
    about: [Option<String>; 2],
}

impl Judged {
    fn of(candidate: &Candidate) -> Self {
        let uid = candidate.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.clone());
        let request = candidate.request().and_then(|request| request.uid.clone());
        Self { decision: candidate.decision.clone(), about: [uid, request] }
    }

    fn by(found: &Found<'_>, decision: Decision) -> Self {
        let uid = found.cluster.and_then(|cluster| cluster.metadata.uid.clone());
        let request = match &decision {
            Decision::Act { stands_on: Some(index), .. } => found.requests.get(*index),
            _ => None,
        };
        Self { about: [uid, request.and_then(|request| request.uid.clone())], decision }
    }
}

/// What the watches show.
enum Seen {
    Cluster(Box<ManagedCluster>),
    Request(Box<Request>),
}

/// What is gone, by the names that it is kept by.
#[derive(Clone)]
enum Gone {
    Cluster(String),
    Request { cluster: String, name: String },
}

impl<'a> Watch<'a> {
    /// Begins to watch for clusters that were looked at and still wait.
    pub fn begin(hub: &'a Cluster, options: &Options, waiting: Vec<Candidate>, narrator: &dyn Narrator) -> Self {
        let names: Vec<&str> = waiting.iter().map(|candidate| candidate.name.as_str()).collect();
        let (mut clusters, mut requests) = (watcher::Config::default(), labels::CLUSTER_NAME.to_owned());
        if let [name] = names.as_slice() {
            clusters = clusters.fields(&format!("metadata.name={name}"));
        }
        if names.len() <= FEW {
            requests = format!("{requests} in ({})", names.join(","));
        }
        let requests = watcher::Config::default().labels(&requests).page_size(REQUESTS_PAGE);
        let name = |object: &ManagedCluster| Gone::Cluster(object.metadata.name.clone().unwrap_or_default());
        let clusters = changes(hub, clusters, |object: ManagedCluster| Seen::Cluster(Box::new(object)), name);
        let name = |object: &CertificateSigningRequest| {
            let cluster = object.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER_NAME));
            let name = object.metadata.name.clone().unwrap_or_default();
            Gone::Request { cluster: cluster.cloned().unwrap_or_default(), name }
        };
        let read = |object: CertificateSigningRequest| Seen::Request(Box::new(Request::read(&object)));
        let requests = changes(hub, requests, read, name);
        // A list that is read again says nothing of the other one.
        fn once(
            changes: impl Stream<Item = Result<Changed<Seen, Gone>, Failure>>,
        ) -> impl Stream<Item = Result<Changed<Seen, Gone>, Failure>> {
            let mut is_listed = false;
            changes.filter(move |change| {
                let again = matches!(change, Ok(Changed::Listed)) && std::mem::replace(&mut is_listed, true);
                std::future::ready(!again)
            })
        }
        Self::follow(hub, options, waiting, stream::select(once(clusters), once(requests)).boxed(), narrator)
    }

    fn follow(
        hub: &'a Cluster,
        options: &Options,
        waiting: Vec<Candidate>,
        changes: BoxStream<'a, Result<Changed<Seen, Gone>, Failure>>,
        narrator: &dyn Narrator,
    ) -> Self {
        let bound_accounts = waiting.first().map(|candidate| candidate.bound_accounts.clone()).unwrap_or_default();
        let selector = waiting.first().and_then(|candidate| candidate.options.selector.clone());
        let options = Options { selector, ..options.clone() };
        let mut watch = Self {
            hub,
            options,
            changes,
            unlisted: 2,
            clusters: BTreeMap::new(),
            requests: BTreeMap::new(),
            judged: BTreeMap::new(),
            waiting: BTreeMap::new(),
            changed: BTreeSet::new(),
            bound_accounts,
            unbound: None,
            told: BTreeSet::new(),
        };
        for mut candidate in waiting {
            watch.judged.insert(candidate.name.clone(), Judged::of(&candidate));
            watch.tell_wrong(&candidate.name, &candidate.decision, narrator);
            // The watch tells of them, too.
            candidate.requests = Vec::new();
            watch.waiting.insert(candidate.name.clone(), candidate);
        }
        watch
    }

    /// The next clusters that need not be waited for any longer; none when `deadline` has passed.
    ///
    /// # Errors
    /// When the hub cannot be read or watched, for a reason that does not pass by itself.
    pub async fn next(&mut self, deadline: Instant, narrator: &dyn Narrator) -> Result<Vec<Candidate>, Failure> {
        loop {
            let names: Vec<&str> = self.waiting.keys().map(String::as_str).collect();
            if names.is_empty() {
                return Ok(Vec::new());
            }
            narrator.tell(Event::now(format!("waiting for the certificate requests of {}", some(&names))));
            let changes = self.changes.try_next();
            match before(deadline, changes).await {
                Some(change) => self.take(change?.ok_or_else(ended)?, narrator),
                None => return Ok(Vec::new()),
            }
            if self.unlisted > 0 || self.changed.is_empty() {
                continue;
            }
            // What comes together is looked at together.
            let end = (Instant::now() + GATHER).min(deadline);
            while let Some(change) = before(end, self.changes.try_next()).await {
                self.take(change?.ok_or_else(ended)?, narrator);
            }
            let ready = self.inspect(deadline, narrator).await?;
            if !ready.is_empty() {
                return Ok(ready);
            }
        }
    }

    /// The clusters that are still waited for, as the watches show them.
    pub fn into_waiting(mut self, narrator: &dyn Narrator) -> Vec<Candidate> {
        let waiting = std::mem::take(&mut self.waiting);
        let shown = |(name, mut candidate): (String, Candidate)| {
            self.tell_count(&name, narrator);
            let decision = self.judge(&name);
            if self.unlisted == 0 && still_waits(&decision) {
                candidate.decision = decision;
                candidate.cluster = self.clusters.remove(&name);
                candidate.requests = self.requests.remove(&name).unwrap_or_default().into_values().collect();
            }
            candidate
        };
        waiting.into_iter().map(shown).collect()
    }

    fn take(&mut self, change: Changed<Seen, Gone>, narrator: &dyn Narrator) {
        match change {
            Changed::Now(Seen::Cluster(cluster)) => {
                let name = cluster.metadata.name.clone().unwrap_or_default();
                if self.waiting.contains_key(&name) {
                    self.clusters.insert(name.clone(), *cluster);
                    self.changed.insert(name);
                }
            }
            Changed::Gone(Gone::Cluster(name)) => {
                if self.clusters.remove(&name).is_some() {
                    self.changed.insert(name);
                }
            }
            Changed::Now(Seen::Request(request)) => {
                let name = request.cluster_label.clone().unwrap_or_default();
                if self.waiting.contains_key(&name) {
                    let user = request.asked_by();
                    if bootstrap::needs_binding(&request) && !self.bound_accounts.iter().any(|bound| bound == user) {
                        self.unbound = Some((*request).clone());
                    }
                    self.requests.entry(name.clone()).or_default().insert(request.name.clone(), *request);
                    self.changed.insert(name);
                }
            }
            Changed::Gone(Gone::Request { cluster, name }) => {
                if let Some(requests) = self.requests.get_mut(&cluster)
                    && requests.remove(&name).is_some()
                {
                    self.changed.insert(cluster);
                }
            }
            Changed::Listed if self.unlisted > 0 => {
                self.unlisted -= 1;
                if self.unlisted == 0 {
                    // What was there before the watch began, or has gone since.
                    self.changed.extend(self.waiting.keys().cloned());
                }
            }
            Changed::Lost(failure) => narrator.tell(Event::warning(format!("{failure}; trying again"))),
            Changed::Back => narrator.tell(Event::note("the hub answers again")),
            Changed::Listed => {}
        }
    }

    /// What the watches show of a cluster, for `judge`.
    fn found<T>(&self, name: &str, judge: impl FnOnce(&Found<'_>) -> T) -> T {
        let requests: Vec<&Request> = self.requests.get(name).into_iter().flat_map(BTreeMap::values).collect();
        let found = Found {
            cluster: self.clusters.get(name),
            requests: &requests,
            bound_accounts: &self.bound_accounts,
            now: Some(Timestamp::now()),
            ..Found::default()
        };
        judge(&found)
    }

    fn judge(&self, name: &str) -> Decision {
        self.found(name, |found| decide(name, found, &self.options))
    }

    /// Judges the clusters of which something changed, reads those from the hub that need not be waited for by that, and
    /// returns those that need not.
    async fn inspect(&mut self, deadline: Instant, narrator: &dyn Narrator) -> Result<Vec<Candidate>, Failure> {
        if let Some(request) = self.unbound.take() {
            let read = async || bound_accounts(self.hub, [&request]).await;
            match patiently(Some(deadline), narrator, read).await {
                Err(failure) if failure.reason == Reason::TimedOut => return Ok(Vec::new()),
                bound => self.bound_accounts = bound?,
            }
        }
        let mut names = Vec::new();
        for name in std::mem::take(&mut self.changed) {
            let decision = self.judge(&name);
            if still_waits(&decision) {
                self.tell_wrong(&name, &decision, narrator);
            }
            let judged = self.found(&name, |found| Judged::by(found, decision));
            if !still_waits(&judged.decision) {
                // The hub has shown more of it, and still it has to wait.
                if self.judged.get(&name) == Some(&judged) {
                    continue;
                }
                names.push(name.clone());
            }
            self.judged.insert(name, judged);
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let scope = Scope::Names(names);
        let read = async || {
            let mut found = survey(self.hub, &scope, &self.options).await?;
            refuse_unselected(self.hub, &mut found).await?;
            Ok(found)
        };
        let found = match patiently(Some(deadline), narrator, read).await {
            Err(failure) if failure.reason == Reason::TimedOut => return Ok(Vec::new()),
            found => found?,
        };
        let (waiting, ready): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|candidate| still_waits(&candidate.decision));
        for candidate in waiting {
            self.tell_wrong(&candidate.name, &candidate.decision, narrator);
            self.waiting.insert(candidate.name.clone(), candidate);
        }
        for candidate in &ready {
            self.tell_count(&candidate.name, narrator);
            self.waiting.remove(&candidate.name);
            self.judged.remove(&candidate.name);
            self.clusters.remove(&candidate.name);
            self.requests.remove(&candidate.name);
        }
        Ok(ready)
    }

    /// Tells of a request that is not the one that is waited for: of each rule that is broken, once for a cluster.
    fn tell_wrong(&mut self, name: &str, decision: &Decision, narrator: &dyn Narrator) {
        if let Decision::Refused(Refusal { code, detail, .. }) = decision
            && !not_yet(decision)
            && self.told.insert((name.to_owned(), *code))
        {
            narrator.tell(Event::warning(format!("{name}: {code}, {detail}; waiting for another request")));
        }
    }

    /// Tells how many requests for a cluster break a rule, if it was not told of each.
    fn tell_count(&self, name: &str, narrator: &dyn Narrator) {
        let count = self.found(name, |found| wrong(name, found, &self.options));
        let all: usize = count.values().sum();
        let told = self.told.iter().filter(|(cluster, _)| cluster == name).count();
        if all > told {
            let each: Vec<String> = count.iter().map(|(code, count)| format!("{code} {count}")).collect();
            let each = each.join(", ");
            narrator.tell(Event::warning(format!("{name}: {all} requests break a rule and were left alone: {each}")));
        }
    }
}

fn ended() -> Failure {
    Failure::other("the watch of the hub ended")
}

/// Names in a sentence: a few, and how many more.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}

/// Accepts one cluster as soon as it has asked, waiting until `deadline`; for callers that already know that they
/// mean it, like a join with access to both clusters.
///
/// # Errors
/// [`Reason::Refused`] with the rule, [`Reason::TimedOut`], or what the hub said.
pub async fn when_asked(
    hub: &Cluster,
    name: &str,
    options: &Options,
    deadline: Instant,
    narrator: Arc<dyn Narrator>,
) -> Result<Row, Failure> {
    let scope = Scope::Names(vec![name.to_owned()]);
    let doing = format!("waiting for the certificate request of {name}");
    let triggers = registration::asking_triggers(hub, name);
    let mut earliest = Instant::now();
    let candidate = until_triggered(&doing, deadline, PAUSE, triggers, narrator.as_ref(), async || {
        // The last look before the end is not put off.
        sleep_until(earliest.min(deadline - REST).into()).await;
        let found = survey(hub, &scope, options).await;
        earliest = Instant::now() + REST;
        let found = found?.into_iter().next();
        Ok(match found {
            Some(candidate) if !may_come(&candidate.decision) => Check::Ready(candidate),
            Some(candidate) => Check::NotYet(row(&candidate).detail),
            None => Check::NotYet(String::new()),
        })
    })
    .await?;
    tell_unread(std::slice::from_ref(&candidate), narrator.as_ref());
    let check = async || check_rights(hub, std::slice::from_ref(&candidate)).await;
    patiently(answered_by(Some(deadline)), narrator.as_ref(), check).await?;
    let row = one(hub, candidate, DryRun::No, Some(deadline), narrator.as_ref()).await;
    match row.outcome {
        Outcome::Refused(_) | Outcome::NoRequest => {
            Err(Failure::refused(format!("{name} is not accepted: {}", row.outcome.code()))
                .because(row.detail)
                .hint(Remedy::ExplainAcceptance(name.to_owned(), options.fingerprint.clone())))
        }
        Outcome::Failed(failure) => Err(not_accepted(name, failure, row.detail)),
        _ => Ok(row),
    }
}

/// That a cluster is not accepted, with what was found and done before; what would help is the same.
fn not_accepted(name: &str, failure: Failure, detail: String) -> Failure {
    Failure { message: format!("{name} is not accepted"), causes: vec![detail], ..failure }
}

/// Whether the one request that is meant may still come.
fn may_come(decision: &Decision) -> bool {
    not_yet(decision) || matches!(decision, Decision::Refused(refusal) if refusal.code == Code::NoSuchKey)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Mutex, PoisonError};

    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::super::test_hub::{hub, hub_at};
    use super::*;

    /// Listens.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Narrator for Told {
        fn tell(&self, event: Event) {
            if let Event::Warning(text) = event {
                self.0.lock().unwrap().push(text);
            }
        }
    }

    #[test]
    fn whoever_asked_wrongly_was_not_the_agent_and_whom_somebody_has_approved_asks_no_more() {
        let refused =
            |code, is_decided| Decision::Refused(Refusal { code, detail: String::new(), help: None, is_decided });
        // Any agent, and whoever has a token, may send these in the name of another cluster.
        for code in
            [Code::OtherAgent, Code::Requester, Code::Impersonated, Code::NoSuchKey, Code::Lifetime, Code::GrpcClaim]
        {
            assert!(still_waits(&refused(code, false)), "{code}");
            assert!(!still_waits(&refused(code, true)), "{code}");
        }
        for code in [Code::NameTaken, Code::TwoKeys, Code::RequestDenied, Code::NameUsedBefore, Code::ClusterSet] {
            assert!(!still_waits(&refused(code, false)), "{code}");
        }
        assert!(still_waits(&Decision::NoRequest) && still_waits(&refused(Code::NoManagedCluster, false)));
    }

    #[test]
    fn whoever_waits_for_an_acceptance_that_fails_is_told_what_would_help() {
        let failure = Failure::new(Reason::Forbidden, "cannot accept").because("no").hint("bind the role");
        let told = not_accepted("c1", failure, "cannot accept: no; its request r was approved before that".to_owned());
        let sentence = "c1 is not accepted: cannot accept: no; its request r was approved before that";
        assert_eq!((told.to_string().as_str(), told.reason), (sentence, Reason::Forbidden));
        assert_eq!(told.hints, ["bind the role"]);
    }

    #[test]
    fn the_same_word_about_another_request_is_another_one() {
        let act = Decision::Act { approve: Some(0), stands_on: Some(0), accept: true };
        let request = |uid: &str| {
            let spec = json!({"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "username": "eva"});
            let object = json!({"metadata": {"name": "r", "uid": uid}, "spec": spec});
            Request::read(&serde_json::from_value(object).unwrap())
        };
        let judged = |uid: &str| {
            let request = request(uid);
            Judged::by(&Found { requests: &[&request], ..Found::default() }, act.clone())
        };
        assert!(judged("1") == judged("1"));
        assert!(judged("1") != judged("2"));
    }

    /// Nobody listens there: what is asked of the hub fails, and is told.
    fn nobodys_hub() -> Cluster {
        hub_at("http://127.0.0.1:1")
    }

    /// Answers what is asked on one connection as a hub that has nothing, and notes it. A watch stands and tells nothing, or
    /// one of requests all the time that one has changed.
    fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>, is_busy: bool) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let (mut first, mut line) = (String::new(), String::new());
            if reader.read_line(&mut first)? == 0 {
                return Ok(());
            }
            while reader.read_line(&mut line)? > "\r\n".len() {
                line.clear();
            }
            asked.lock().unwrap_or_else(PoisonError::into_inner).push(first.clone());
            if first.contains("watch=true") {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes())?;
                while is_busy && first.contains("/certificatesigningrequests?") {
                    let object = json!({
                        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "r"},
                    });
                    let event = json!({"type": "MODIFIED", "object": object}).to_string() + "\n";
                    stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
                    std::thread::sleep(Duration::from_millis(20));
                }
                continue;
            }
            let (status, body) = if first.contains("/certificatesigningrequests?") {
                let list = "CertificateSigningRequestList";
                ("200 OK", json!({"kind": list, "apiVersion": "certificates.k8s.io/v1", "metadata": {}, "items": []}))
            } else {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound",
                    "message": "not found", "code": 404, "details": {"name": "c1", "kind": "things"},
                });
                ("404 Not Found", status)
            };
            let (body, kind) = (body.to_string(), "content-type: application/json");
            let answer = format!("HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes())?;
        }
    }

    /// Waits on a hub for a cluster that never asks. What the hub was asked meanwhile.
    async fn asked_within(time: Duration, is_busy: bool) -> Vec<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let hub = hub_at(&format!("http://{}", listener.local_addr().unwrap()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = noted.clone();
                std::thread::spawn(move || answer(stream, &noted, is_busy));
            }
        });
        let deadline = Instant::now() + time;
        let late = when_asked(&hub, "c1", &Options::default(), deadline, Arc::new(Told::default())).await;
        assert_eq!(late.unwrap_err().reason, Reason::TimedOut);
        asked.lock().unwrap().clone()
    }

    /// How many of the lines have all of these words.
    fn count(asked: &[String], words: &[&str]) -> usize {
        asked.iter().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }

    #[tokio::test]
    async fn a_hub_that_tells_every_change_is_asked_little_while_nothing_changes() {
        // In pauses of a second it would be asked some fifteen times.
        let asked = asked_within(PAUSE * 15, false).await;
        assert!(count(&asked, &["watch=true", "/certificatesigningrequests?", "cluster-name"]) >= 1, "{asked:#?}");
        assert!(count(&asked, &["watch=true", "/managedclusters?", "metadata.name"]) >= 1, "{asked:#?}");
        let looks = count(&asked, &["/managedclusters/c1"]);
        assert!((1..=8).contains(&looks), "{looks}: {asked:#?}");
    }

    #[tokio::test]
    async fn whoever_changes_requests_all_the_time_does_not_have_the_hub_read_all_the_time() {
        let asked = asked_within(REST * 10, true).await;
        // One after each rest, and the last one before the end. The watch is made anew only where it has ended: it tells.
        let looks = count(&asked, &["/managedclusters/c1"]);
        assert!((2..=12).contains(&looks), "{looks}: {asked:#?}");
        let watches = count(&asked, &["watch=true", "/certificatesigningrequests?", "cluster-name"]);
        assert!((1..=2).contains(&watches), "{watches}: {asked:#?}");
    }

    #[tokio::test]
    async fn whoever_never_stops_to_ask_does_not_make_it_wait_for_ever() {
        let hub = nobodys_hub();
        let request = |_| {
            let spec = json!({"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "username": "eva"});
            let metadata = json!({"name": "r", "labels": {"open-cluster-management.io/cluster-name": "c1"}});
            let object = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
            Ok(Changed::Now(Seen::Request(Box::new(Request::read(&object)))))
        };
        let listed = stream::iter([Changed::Listed, Changed::Listed].map(Ok));
        let changes = listed.chain(stream::repeat(()).map(request)).boxed();
        let (options, told) = (Options::default(), Told::default());
        let mut watch = Watch::follow(&hub, &options, vec![Candidate::unknown("c1")], changes, &told);
        let begun = Instant::now();
        let ready = tokio::task::unconstrained(watch.next(begun + GATHER * 2, &told)).await.unwrap();
        assert!(ready.is_empty());
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn whom_the_selector_has_lost_before_it_asks_is_refused() {
        let shown = || {
            json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": "c1", "uid": "u1", "resourceVersion": "1"}, "spec": {},
            })
        };
        let (hub, _) = hub(move |asked| match () {
            () if asked.line.contains("/managedclusters/c1") => (200, shown()),
            () if asked.line.contains('?') => {
                (200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}))
            }
            () => (
                404,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}),
            ),
        });
        // So that it need not ask.
        let options = Options { without_request: true, ..Options::default() };
        let first = async |selector: Option<&str>| {
            let mut candidate = Candidate::unknown("c1");
            candidate.options = Options { selector: selector.map(str::to_owned), ..options.clone() };
            let cluster = Changed::Now(Seen::Cluster(Box::new(serde_json::from_value(shown()).unwrap())));
            let changes = stream::iter([cluster, Changed::Listed, Changed::Listed].map(Ok)).chain(stream::pending());
            let told = Told::default();
            let mut watch = Watch::follow(&hub, &options, vec![candidate], changes.boxed(), &told);
            let ready = watch.next(Instant::now() + Duration::from_mins(1), &told).await.unwrap();
            ready.into_iter().next().map(|candidate| candidate.decision)
        };
        assert!(matches!(first(None).await, Some(Decision::Act { accept: true, .. })));
        let refused = first(Some("env=prod")).await;
        assert!(
            matches!(&refused, Some(Decision::Refused(refusal)) if refusal.code == Code::NotSelected),
            "{refused:?}"
        );
    }

    #[tokio::test]
    async fn thousands_of_wrong_requests_take_little_and_are_told_in_few_lines() {
        const COUNT: usize = 5000;
        let hub = nobodys_hub();
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "system:open-cluster-management:c1:a1");
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "platform-admins");
        let key = rcgen::KeyPair::generate().unwrap();
        let greedy = params.serialize_request(&key).unwrap().pem().unwrap();
        let request = move |index: usize| {
            let mut object: CertificateSigningRequest = serde_json::from_value(json!({
                "metadata": {"name": format!("r{index}"), "labels": {"open-cluster-management.io/cluster-name": "c1"},
                    "annotations": {"open-cluster-management.io/csr-user": "x".repeat(100_000)}},
                "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "username": "eva"},
            }))
            .unwrap();
            let padding = if index.is_multiple_of(2) { "\n".repeat(100_000) } else { String::new() };
            object.spec.request = ByteString(format!("{greedy}{padding}").into_bytes());
            Ok(Changed::Now(Seen::Request(Box::new(Request::read(&object)))))
        };
        let cluster = serde_json::from_value(json!({"metadata": {"name": "c1"}, "spec": {}})).unwrap();
        let cluster = Changed::Now(Seen::Cluster(Box::new(cluster)));
        let begin = stream::iter([cluster, Changed::Listed, Changed::Listed].map(Ok));
        let changes = begin.chain(stream::iter(0..COUNT).map(request)).chain(stream::pending()).boxed();
        let (options, told) = (Options::default(), Told::default());
        let mut watch = Watch::follow(&hub, &options, vec![Candidate::unknown("c1")], changes, &told);
        let begun = Instant::now();
        while watch.requests.get("c1").is_none_or(|kept| kept.len() < COUNT) {
            let ready = watch.next(Instant::now() + GATHER * 2, &told).await.unwrap();
            assert!(ready.is_empty());
            // To judge all of them for each one that comes takes minutes.
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
        let kept = &watch.requests["c1"];
        assert!(kept.values().all(|request| format!("{request:?}").len() < 4096));
        let late = watch.into_waiting(&told);
        assert!(matches!(&late[0].decision, Decision::Refused(refusal) if refusal.code == Code::GrpcClaim));
        let told = told.0.into_inner().unwrap();
        let last = "c1: 5000 requests break a rule and were left alone: GrpcClaim 5000";
        assert_eq!(told.last().map(String::as_str), Some(last));
        assert_eq!(told.len(), 2, "{told:#?}");
    }
}
