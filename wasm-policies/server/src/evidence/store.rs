//! The objects of one source, as they are on the hub.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ocm_policy_abi::{EvidenceSource, Operation, Query, Request, Table};
use ocm_policy_engine::{Deadline, PolicyError};
use ocm_policy_rules::evidence::{self, Budget, Evidence};
use ocm_policy_rules::review;
use serde_json::Value;
use tokio::sync::watch;

use super::objects::{Key, Object, Objects, read_rows};
use super::passed::{Beside, PassedWrites, Unknown, Write, Written};
use super::source;
use crate::packed::Packer;
use crate::watch::{Change, Sink};

/// How long a question waits until the object that it is about has arrived here.
const ARRIVES: Duration = Duration::from_secs(1);
/// How often it looks.
const LOOKS: Duration = Duration::from_millis(5);
/// Evidence is made anew when the hub has changed, but for at most this part of the time: a hub on which everything
/// changes at once must not keep those busy who decide.
const SHARE: u32 = 10;
/// The longest that evidence from before a change may be used.
const LONGEST: Duration = Duration::from_millis(200);

/// The objects of one source.
pub(super) struct Store {
    source: EvidenceSource,
    state: Mutex<State>,
    /// What queries find that do not ask for the rows of a cluster, by their text.
    made: Mutex<HashMap<String, Arc<Made>>>,
    read: watch::Sender<bool>,
    packer: Packer,
}

#[derive(Default)]
struct State {
    objects: Objects,
    /// What the list that is being read has brought so far.
    coming: Option<BTreeMap<Key, Object>>,
    /// Which change made it what it is.
    revision: u64,
    /// The highest resource version that has arrived. The server tells changes of one kind in their order.
    version: u64,
    /// The same of a list that is being read.
    listed: u64,
    /// When it was last known to be what is on the hub.
    confirmed: Option<Instant>,
    /// Why it cannot be followed at present.
    lost: Option<String>,
    /// Whether the hub served no such objects the last time.
    unserved: bool,
    /// What was let pass and may not be among the objects yet.
    passed: PassedWrites,
}

/// What a question wants to know.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// Evidence that could not be followed for so long is none.
    pub(super) oldest: Duration,
    /// When those objects were created, in milliseconds since 1970, that count; none: all.
    pub(super) since: Option<i64>,
    /// Whether only the newest will do; otherwise it may be from before changes that have just arrived.
    pub(super) is_newest: bool,
    /// Whether what was let pass counts as well.
    pub(super) counts_passed: bool,
    /// Whether what the question is about was waited for already, by [`Store::arrive`].
    pub(super) has_waited: bool,
}

impl State {
    /// Whether the hub can be followed.
    fn is_fresh(&self, oldest: Duration) -> bool {
        self.lost.is_none() && self.confirmed.is_some_and(|confirmed| confirmed.elapsed() <= oldest)
    }
}

/// What a query found in one state.
struct Made {
    revision: u64,
    evidence: Evidence,
    until: Instant,
}

impl Store {
    pub(super) fn new(source: EvidenceSource) -> Self {
        Self {
            source,
            state: Mutex::default(),
            made: Mutex::default(),
            read: watch::Sender::new(false),
            packer: Packer::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn source(&self) -> &EvidenceSource {
        &self.source
    }

    /// Another number for every change.
    pub(super) fn revision(&self) -> u64 {
        self.state().revision
    }

    /// The highest resource version of an object that has arrived.
    pub(super) fn version(&self) -> u64 {
        self.state().version
    }

    /// Why it cannot be followed at present.
    pub(super) fn lost(&self) -> Option<String> {
        self.state().lost.clone()
    }

    /// Why nothing of it can be told; none: it can, or it is still being read for the first time.
    pub(super) fn unread(&self, oldest: Duration) -> Option<String> {
        let state = self.state();
        let is_told = state.confirmed.is_some_and(|confirmed| confirmed.elapsed() <= oldest);
        if is_told { None } else { state.lost.clone() }
    }

    /// Whether the hub serves no such objects, which counts as that there are none.
    pub(super) fn is_unserved(&self) -> bool {
        self.state().unserved
    }

    /// Ends when all objects were read once.
    pub(super) async fn first_read(&self) {
        // The sender is this store's own, so it cannot be gone.
        let _ = self.read.subscribe().wait_for(|read| *read).await;
    }

    fn object(&self, object: Value) -> (Key, Object) {
        let (uid, version) = (uid_of(&object), version_of(&object));
        let key = name_of(&object);
        let rows = match &self.source {
            EvidenceSource::ConfigMap { .. } => Ok(evidence::entries(&object)),
            // One that cannot be read does not count.
            EvidenceSource::Approvals => Ok(evidence::approval(&object).into_iter().collect()),
            EvidenceSource::Registrations => Ok(vec![evidence::registration(&object)]),
            _ => self.row(object).map(|row| vec![row]),
        };
        (key, Object { uid, version, revision: 0, rows: rows.map(|rows| self.packer.pack(&rows)) })
    }

    /// The row of an object of which there is one.
    fn row(&self, object: Value) -> Result<Value, String> {
        match &self.source {
            EvidenceSource::Csrs => evidence::certificate_request(&object).map_err(|error| error.to_string()),
            _ => Ok(object),
        }
    }

    /// Notes that a request is let pass, where it writes an object of this source.
    pub(super) fn pass(&self, request: &Request<'_>) {
        let Some((key, write)) = self.write_of(request) else { return };
        let read = |object: &Value| self.row(without_managed_fields(object));
        let (row, before) = (request.object.as_ref().map(read), request.previous_object.as_ref().map(read));
        let mut state = self.state();
        let State { objects, passed, .. } = &mut *state;
        match (row, before.transpose()) {
            (Some(Ok(row)), Ok(before)) if !key.1.is_empty() => {
                let there = objects.get(&key);
                // The API server refuses what changes an earlier version.
                if let (Write::Update { version, .. }, Some(there)) = (&write, there)
                    && there.version > *version
                {
                    return;
                }
                passed.add(key, write, Written { row, before }, there.map(|object| &*object.uid), Instant::now());
            }
            // What nobody can recognise cannot be waited for.
            _ => passed.lose(Instant::now()),
        }
    }

    /// What a request writes of this source: the name of the object, and how.
    fn write_of(&self, request: &Request<'_>) -> Option<(Key, Write)> {
        let resource = request.resource.as_ref().filter(|resource| source::is_of(&self.source, resource))?;
        let object = request.object.as_ref()?;
        let write = match &*resource.operation {
            "CREATE" => Write::Create { uid: uid_of(object) },
            "UPDATE" => {
                let version = request.previous_object.as_ref().map(version_of).unwrap_or_default();
                Write::Update { uid: uid_of(object), version }
            }
            _ => return None,
        };
        Some((name_of(object), write))
    }

    /// The object of this name, where the hub has one and can be followed.
    pub(super) fn object_of(&self, name: &str, oldest: Duration) -> Option<Value> {
        let state = self.state();
        let object = state.objects.get(&(String::new(), name.to_owned())).filter(|_| state.is_fresh(oldest))?;
        read_rows(object.rows.as_ref().ok()?).into_iter().next()
    }

    /// The rows of the objects that name a cluster in a field.
    ///
    /// # Errors
    /// Says why they cannot be told.
    pub(super) fn rows_of(&self, field: &str, cluster: &str, oldest: Duration) -> Result<Vec<Value>, String> {
        let found = {
            let mut state = self.state();
            if !*self.read.borrow() || !state.is_fresh(oldest) {
                return Err("cannot be read at present".to_owned());
            }
            state.objects.of_cluster(field, Some(cluster))?
        };
        Ok(found.iter().flat_map(read_rows).collect())
    }

    /// The rows that are wanted, where the hub can be followed.
    pub(super) fn rows(&self, wanted: impl Fn(&Value) -> bool, oldest: Duration) -> Vec<Value> {
        let state = self.state();
        if !state.is_fresh(oldest) {
            return Vec::new();
        }
        let rows = state.objects.iter().filter_map(|(_, object)| object.rows.as_ref().ok()).flat_map(read_rows);
        rows.filter(wanted).collect()
    }

    /// The table of a request.
    pub(super) fn table(
        &self,
        query: &Query,
        request: &Request<'_>,
        deadline: &Deadline,
        reading: Reading,
    ) -> Result<Arc<Table<'static>>, PolicyError> {
        let unknown = |why: &str| PolicyError::Evidence(format!("the evidence {:?} {why}", query.name));
        if !*self.read.borrow() {
            return Err(unknown("has not been read yet"));
        }
        let longest = if reading.has_waited { Duration::ZERO } else { ARRIVES };
        let arrived = self.wait_for(request, deadline, longest)?;
        let least = if reading.is_newest { self.state().revision } else { arrived };
        let (confirmed, lost) = {
            let state = self.state();
            (state.confirmed, state.lost.clone())
        };
        let age = confirmed.map_or(Duration::MAX, |confirmed| confirmed.elapsed());
        if age > reading.oldest {
            let why = lost.unwrap_or_else(|| "the hub tells nothing".to_owned());
            return Err(unknown(&format!("is of {} seconds ago: {why}", age.as_secs())));
        }
        let table = match &query.cluster_field {
            Some(field) => self.of_cluster(query, field, request, reading),
            None => self.of_hub(query, request, least, reading),
        };
        table.map(Arc::new).map_err(|why| unknown(&why))
    }

    /// What a query finds about the cluster of a request, whose objects alone are looked at.
    fn of_cluster(
        &self,
        query: &Query,
        field: &str,
        request: &Request<'_>,
        reading: Reading,
    ) -> Result<Table<'static>, String> {
        let (found, revision, beside) = {
            let mut state = self.state();
            let revision = state.revision;
            let beside = if reading.counts_passed { Some(state.beside(revision).map_err(told)?) } else { None };
            (state.objects.of_cluster(field, review::cluster_of(request))?, revision, beside)
        };
        let rows = found.iter().flat_map(read_rows).filter(|row| counts(row, reading.since));
        let evidence = Evidence::new(query, rows, &revision.to_string(), Budget::default());
        let evidence = evidence.map_err(|bad| bad.to_string())?;
        with_passed(&evidence, query, request, revision, beside)
    }

    /// What a query finds among all objects, in a state that this revision or a later one has brought.
    fn of_hub(
        &self,
        query: &Query,
        request: &Request<'_>,
        mut least: u64,
        reading: Reading,
    ) -> Result<Table<'static>, String> {
        loop {
            let made = self.made(query, least, reading.since)?;
            if !reading.counts_passed {
                return Ok(made.evidence.table(request));
            }
            let beside = self.state().beside(made.revision);
            match beside {
                // What was let pass has arrived since, and is not kept any more.
                Err(Unknown::Before(revision)) => least = revision,
                beside => {
                    return with_passed(&made.evidence, query, request, made.revision, Some(beside.map_err(told)?));
                }
            }
        }
    }

    /// Waits until what a question is about has arrived, where its evidence would wait for that.
    ///
    /// # Errors
    /// When it has not.
    pub(super) fn arrive(&self, request: &Request<'_>, deadline: &Deadline) -> Result<(), PolicyError> {
        self.wait_for(request, deadline, ARRIVES).map(drop)
    }

    /// Waits until what the question is about has arrived: deciding with evidence from before would be deciding without
    /// whatever came before it. The revision that brought it, which is the least that counts.
    fn wait_for(&self, request: &Request<'_>, deadline: &Deadline, longest: Duration) -> Result<u64, PolicyError> {
        let about = match (&self.source, request.operation) {
            (EvidenceSource::Csrs, Operation::Approve | Operation::Join) => {
                request.csr.as_ref().map(|csr| (csr.name.as_deref(), csr.uid.as_deref()))
            }
            (EvidenceSource::Clusters, Operation::Accept | Operation::Join) => {
                request.cluster.as_ref().map(|cluster| (Some(cluster.name.as_str()), cluster.uid.as_deref()))
            }
            _ => None,
        };
        let Some((Some(name), Some(uid))) = about else { return Ok(0) };
        let key = (String::new(), name.to_owned());
        let begun = Instant::now();
        loop {
            let there = self.state().objects.get(&key).filter(|object| object.uid == uid).map(|object| object.revision);
            if let Some(revision) = there {
                return Ok(revision);
            }
            deadline.check()?;
            if begun.elapsed() >= longest {
                let why = format!("{name} is not among what this server has read of the hub");
                return Err(PolicyError::Evidence(why));
            }
            std::thread::sleep(LOOKS);
        }
    }

    /// What a query finds now, or found a moment ago, but not before this revision.
    fn made(&self, query: &Query, least: u64, since: Option<i64>) -> Result<Arc<Made>, String> {
        let text = serde_json::to_string(&(query, since)).map_err(|error| error.to_string())?;
        // One at a time makes it, and the others take what it made. Changes go on arriving meanwhile.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made.get(&text).filter(|known| {
            let now = self.state().revision;
            known.revision == now || (known.revision >= least && Instant::now() < known.until)
        });
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let begun = Instant::now();
        let labelled = evidence::labelled(query).map_err(|bad| bad.to_string())?;
        let (objects, revision) = {
            let mut state = self.state();
            let objects = match &labelled {
                // A few of many are looked up.
                Some((field, texts)) => {
                    let found = texts.iter().map(|text| state.objects.of_cluster(field, Some(text.as_str())));
                    found.collect::<Result<Vec<_>, _>>()?.concat()
                }
                None => state.objects.all()?,
            };
            (objects, state.revision)
        };
        let rows = objects.iter().flat_map(read_rows).filter(|row| counts(row, since));
        let evidence = Evidence::new(query, rows, &revision.to_string(), Budget::default());
        let evidence = evidence.map_err(|error| error.to_string())?;
        let until = Instant::now() + (begun.elapsed() * SHARE).min(LONGEST);
        let new = Arc::new(Made { revision, evidence, until });
        // Those of queries that nobody has any more go, too.
        made.retain(|_, known| known.revision == revision || Instant::now() < known.until);
        made.insert(text, new.clone());
        Ok(new)
    }
}

/// Whether a row is of an object that was created since then.
fn counts(row: &Value, since: Option<i64>) -> bool {
    since.is_none_or(|since| row["created"].as_i64().is_some_and(|at| at > since))
}

/// What a query finds with what was let pass. What a write changes stands beside what it makes of it, where a query can tell
/// them apart.
fn with_passed(
    evidence: &Evidence,
    query: &Query,
    request: &Request<'_>,
    revision: u64,
    beside: Option<Beside>,
) -> Result<Table<'static>, String> {
    let Some(Beside { written, change }) = beside.filter(|beside| !beside.written.is_empty()) else {
        return Ok(evidence.table(request));
    };
    let differs = |written: &&Arc<Written>| {
        let before = written.before.as_ref();
        !before.is_some_and(|before| evidence::finds_the_same(query, before, &written.row).unwrap_or_default())
    };
    let rows = written.iter().filter(differs).map(|written| &written.row);
    let more = Evidence::new(query, rows, &format!("{revision}+{change}"), Budget::default());
    Ok(evidence.table_with(&more.map_err(|bad| bad.to_string())?, request))
}

/// What is told where nobody knows what was let pass.
fn told(_: Unknown) -> String {
    "cannot be told: more was let pass than is kept until the hub shows it".to_owned()
}

impl Sink for Store {
    fn take(&self, change: Change) {
        let version = match &change {
            Change::Listed(object) | Change::Now(object) | Change::Gone(object) => version_of(object),
            _ => 0,
        };
        // Reading an object takes longer than putting it in its place.
        let read = match &change {
            Change::Listed(object) | Change::Now(object) => Some(self.object(object.clone())),
            _ => None,
        };
        let mut state = self.state();
        if matches!(change, Change::Now(_) | Change::Gone(_)) {
            state.version = state.version.max(version);
        } else {
            state.listed = state.listed.max(version);
        }
        match (change, read) {
            (Change::Begun, _) => {
                state.coming = Some(BTreeMap::new());
                state.listed = 0;
            }
            (Change::Listed(_), Some((key, mut object))) => {
                // While everything is read anew, what is as it was is kept once.
                if let Some(known) = state.objects.get(&key).filter(|known| known.rows == object.rows) {
                    object.rows = known.rows.clone();
                }
                state.coming.get_or_insert_default().insert(key, object);
            }
            (Change::Complete(at), _) => {
                // What was removed meanwhile is not in the list. After a hub was set back to an earlier state its versions are lower.
                state.version = at.as_deref().and_then(number).unwrap_or(state.listed);
                state.unserved = at.is_none();
                let mut objects = state.coming.take().unwrap_or_default();
                // A kind that the hub does not serve is read again and again.
                if state.confirmed.is_none() || !objects.is_empty() || !state.objects.is_empty() {
                    state.revision += 1;
                    let revision = state.revision;
                    objects.values_mut().for_each(|object| object.revision = revision);
                    state.objects = Objects::of(objects);
                }
                let State { objects, passed, revision, .. } = &mut *state;
                passed.see_all(objects, *revision, Instant::now());
                state.confirm();
                self.read.send_replace(true);
            }
            (Change::Now(_), Some((key, object))) => {
                // Of some objects most of what changes is nothing that policies are shown.
                let is_same = |known: &Object| known.uid == object.uid && known.rows == object.rows;
                let is_news = !state.objects.get(&key).is_some_and(is_same);
                state.revision += u64::from(is_news);
                let revision = state.revision;
                state.passed.see(&key, &object.uid, version, revision, Instant::now());
                if is_news {
                    state.objects.insert(key, Object { revision, ..object });
                } else {
                    state.objects.note_version(&key, version);
                }
                state.confirm();
            }
            (Change::Gone(object), _) => {
                let key = name_of(&object);
                state.objects.remove(&key);
                state.revision += 1;
                let revision = state.revision;
                state.passed.miss(&key, &uid_of(&object), revision, Instant::now());
                state.confirm();
            }
            (Change::Confirmed, _) => state.confirm(),
            (Change::Lost(why), _) => state.lost = Some(why),
            (Change::Listed(_) | Change::Now(_), None) => {}
        }
    }
}

impl State {
    /// It is what is on the hub.
    fn confirm(&mut self) {
        let now = Instant::now();
        self.confirmed = Some(now);
        self.lost = None;
        self.passed.confirm(now);
    }

    /// What was let pass and counts beside what was made of a revision.
    fn beside(&mut self, revision: u64) -> Result<Beside, Unknown> {
        self.passed.beside(revision, Instant::now())
    }
}

fn uid_of(object: &Value) -> String {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// An object as it is followed.
fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// The resource version of an object as the number that it is.
fn version_of(object: &Value) -> u64 {
    let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.and_then(number).unwrap_or_default()
}

fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

fn name_of(object: &Value) -> Key {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/metadata/namespace"), text("/metadata/name"))
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{Cluster, Requester};
    use serde_json::json;

    use super::*;

    const OLDEST: Duration = Duration::from_secs(60);
    const PLAIN: Reading =
        Reading { oldest: OLDEST, since: None, is_newest: false, counts_passed: false, has_waited: false };

    fn cluster(name: &str, uid: &str) -> Value {
        json!({"metadata": {"name": name, "uid": uid, "labels": {"env": "prod"}}})
    }

    fn read(objects: &[Value]) -> Store {
        let store = Store::new(EvidenceSource::Clusters);
        list(&store, objects);
        store
    }

    fn list(store: &Store, objects: &[Value]) {
        store.take(Change::Begun);
        objects.iter().for_each(|object| store.take(Change::Listed(object.clone())));
        store.take(Change::Complete(None));
    }

    fn asked(operation: Operation, name: &str, uid: &str) -> Request<'static> {
        let mut request = Request::new(operation, Requester::default());
        request.cluster =
            Some(Cluster { name: name.to_owned().into(), uid: Some(uid.to_owned().into()), ..Cluster::default() });
        request
    }

    /// The names that a policy would see, or why it sees none.
    fn names(store: &Store, request: &Request<'_>, oldest: Duration) -> Result<Vec<String>, String> {
        names_of(store, request, oldest, false)
    }

    fn names_of(
        store: &Store,
        request: &Request<'_>,
        oldest: Duration,
        is_newest: bool,
    ) -> Result<Vec<String>, String> {
        let query = Query::new("clusters", EvidenceSource::Clusters, ["/metadata/labels/env"]);
        let table = store.table(&query, request, &Deadline::NONE, Reading { oldest, is_newest, ..PLAIN });
        let table = table.map_err(|error| error.to_string())?;
        Ok(table.rows.iter().map(|row| row.name.to_string()).collect())
    }

    #[test]
    fn nothing_is_known_before_everything_was_read() {
        let store = Store::new(EvidenceSource::Clusters);
        let request = asked(Operation::Create, "c", "");
        assert!(names(&store, &request, OLDEST).is_err_and(|why| why.contains("has not been read yet")));
        store.take(Change::Begun);
        store.take(Change::Listed(cluster("c1", "1")));
        assert!(names(&store, &request, OLDEST).is_err(), "half of a list is none");
        store.take(Change::Complete(None));
        assert_eq!(names(&store, &request, OLDEST), Ok(vec!["c1".to_owned()]));
    }

    #[test]
    fn every_change_counts_and_a_list_replaces_all() {
        let store = read(&[cluster("c1", "1"), cluster("c2", "2")]);
        let request = asked(Operation::Create, "c", "");
        let see = |store: &Store| {
            // What was made a moment ago may be given a moment longer.
            std::thread::sleep(LONGEST);
            names(store, &request, OLDEST).unwrap().join(" ")
        };
        assert_eq!(see(&store), "c1 c2");
        store.take(Change::Now(cluster("c3", "3")));
        store.take(Change::Gone(cluster("c1", "1")));
        assert_eq!(see(&store), "c2 c3");
        // While everything is read anew, what was known stands; then only what was read.
        store.take(Change::Begun);
        store.take(Change::Listed(cluster("c9", "9")));
        assert_eq!(see(&store), "c2 c3");
        store.take(Change::Complete(None));
        assert_eq!(see(&store), "c9");
    }

    #[test]
    fn a_version_has_arrived_when_what_came_before_it_has() {
        let object = |version: &str| json!({"metadata": {"name": "c", "uid": "1", "resourceVersion": version}});
        let store = Store::new(EvidenceSource::Clusters);
        store.take(Change::Begun);
        store.take(Change::Listed(object("7")));
        assert_eq!(store.version(), 0, "half of a list is none");
        store.take(Change::Complete(None));
        assert_eq!(store.version(), 7);
        store.take(Change::Now(object("12")));
        store.take(Change::Confirmed);
        assert_eq!(store.version(), 12);
        // What was written last is gone again: the list tells of its time.
        store.take(Change::Begun);
        store.take(Change::Listed(object("5")));
        store.take(Change::Complete(Some("20".to_owned())));
        assert_eq!(store.version(), 20);
        // A hub that was set back to an earlier state goes on from there.
        store.take(Change::Begun);
        store.take(Change::Listed(object("5")));
        store.take(Change::Complete(Some("6".to_owned())));
        assert_eq!(store.version(), 6);
    }

    #[test]
    fn a_kind_that_the_hub_does_not_serve_is_told_apart_from_one_without_objects() {
        let store = Store::new(EvidenceSource::Registrations);
        assert!(!store.is_unserved(), "nobody knows yet");
        for (version, unserved) in [(None, true), (Some("3".to_owned()), false)] {
            store.take(Change::Begun);
            store.take(Change::Complete(version));
            assert_eq!(store.is_unserved(), unserved);
        }
    }

    #[test]
    fn what_could_not_be_followed_for_long_is_no_evidence() {
        let store = read(&[cluster("c1", "1")]);
        let request = asked(Operation::Create, "c", "");
        let short = Duration::from_millis(100);
        std::thread::sleep(short);
        assert!(names(&store, &request, OLDEST).is_ok(), "for a moment it is");
        // Also when nobody knows yet that it is lost.
        let why = names(&store, &request, short).unwrap_err();
        assert!(why.contains("the hub tells nothing"), "{why}");
        store.take(Change::Lost("nobody answers".to_owned()));
        let why = names(&store, &request, short).unwrap_err();
        assert!(why.contains("nobody answers"), "{why}");
        store.take(Change::Confirmed);
        assert!(names(&store, &request, short).is_ok());
    }

    #[test]
    fn what_was_never_read_is_told_with_the_reason_and_what_is_lost_when_it_is_evidence_no_more() {
        let store = Store::new(EvidenceSource::Clusters);
        assert_eq!(store.unread(OLDEST), None, "it is being read");
        store.take(Change::Lost("permission denied".to_owned()));
        store.take(Change::Begun);
        assert_eq!(store.unread(OLDEST).as_deref(), Some("permission denied"));
        list(&store, &[cluster("c1", "1")]);
        assert_eq!(store.unread(OLDEST), None);
        store.take(Change::Lost("nobody answers".to_owned()));
        assert_eq!(store.unread(OLDEST), None, "for a while what was read stands");
        let short = Duration::from_millis(20);
        std::thread::sleep(short * 2);
        assert_eq!(store.unread(short).as_deref(), Some("nobody answers"));
        store.take(Change::Confirmed);
        assert_eq!(store.unread(OLDEST), None);
    }

    #[test]
    fn a_question_waits_for_what_it_is_about() {
        let store = Arc::new(read(&[cluster("c1", "old")]));
        let accept = asked(Operation::Accept, "c1", "new");
        // A cluster of the same name that was there before is another one.
        let why = names(&store, &accept, OLDEST).unwrap_err();
        assert!(why.contains("c1 is not among what this server has read"), "{why}");
        let later = store.clone();
        let coming = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            later.take(Change::Now(cluster("c1", "new")));
        });
        assert!(names(&store, &accept, OLDEST).is_ok());
        coming.join().unwrap();
        assert!(
            names(&store, &asked(Operation::Create, "c7", "7"), OLDEST).is_ok(),
            "what is created is not there yet"
        );
    }

    /// As if making what is there had taken long: others may be given it for a moment after a change.
    fn stands_long(store: &Store) {
        for known in store.made.lock().unwrap().values_mut() {
            let until = Instant::now() + OLDEST;
            *known = Arc::new(Made { revision: known.revision, evidence: known.evidence.clone(), until });
        }
    }

    #[test]
    fn a_question_about_an_object_sees_what_came_before_it() {
        let store = read(&[cluster("c1", "1")]);
        let request = asked(Operation::Create, "c", "");
        assert_eq!(names(&store, &request, OLDEST), Ok(vec!["c1".to_owned()]));
        stands_long(&store);
        store.take(Change::Now(cluster("c2", "2")));
        store.take(Change::Now(cluster("c3", "3")));
        assert_eq!(names(&store, &request, OLDEST), Ok(vec!["c1".to_owned()]));
        let seen = names(&store, &asked(Operation::Accept, "c3", "3"), OLDEST).unwrap();
        assert_eq!(seen, ["c1", "c2", "c3"]);
    }

    #[test]
    fn whoever_decides_one_after_the_other_sees_every_change_that_has_arrived() {
        let store = read(&[cluster("c1", "1"), cluster("c2", "2")]);
        // It was there before the one that went; what was made before that may stand for a moment, however long making it took.
        let join = asked(Operation::Join, "c2", "2");
        assert_eq!(names(&store, &join, OLDEST), Ok(vec!["c1".to_owned(), "c2".to_owned()]));
        stands_long(&store);
        store.take(Change::Gone(cluster("c1", "1")));
        assert_eq!(names(&store, &join, OLDEST), Ok(vec!["c1".to_owned(), "c2".to_owned()]));
        assert_eq!(names_of(&store, &join, OLDEST, true), Ok(vec!["c2".to_owned()]));
    }

    #[test]
    fn a_query_about_a_cluster_finds_what_a_look_at_all_objects_would() {
        let query = Query {
            cluster_field: Some("/about".to_owned()),
            selector: Some("env=prod".to_owned()),
            ..Query::new("q", EvidenceSource::Clusters, ["/metadata/uid"])
        };
        let object = |name: &str, uid: &str, about: Value| json!({"metadata": {"name": name, "uid": uid, "labels": {"env": "prod"}}, "about": about});
        let store = Store::new(EvidenceSource::Clusters);
        let mut all =
            BTreeMap::from([("a", object("a", "1", json!("c1"))), ("b", object("b", "1", json!(["c1", "c2"])))]);
        list(&store, &all.values().cloned().collect::<Vec<_>>());
        let agree = |all: &BTreeMap<&str, Value>| {
            let mut rows = Vec::new();
            for name in ["c1", "c2", "c3", ""] {
                let request = asked(Operation::Create, name, "");
                let table = store.table(&query, &request, &Deadline::NONE, PLAIN).unwrap();
                let expected = evidence::table(&query, all.values(), &request, &table.revision, Budget::default());
                assert_eq!(*table, expected.unwrap(), "{name}");
                rows.push(table.rows.len());
            }
            rows
        };
        assert_eq!(agree(&all), [2, 1, 0, 0]);
        let changes = [object("c", "1", json!(["c1"])), object("a", "2", json!("c2")), object("b", "2", Value::Null)];
        for (name, change) in ["c", "a", "b"].into_iter().zip(changes) {
            store.take(Change::Now(change.clone()));
            all.insert(name, change);
            agree(&all);
        }
        assert_eq!(agree(&all), [1, 1, 0, 0]);
        store.take(Change::Gone(all.remove("a").unwrap()));
        assert_eq!(agree(&all), [1, 0, 0, 0]);
        all = BTreeMap::from([("d", object("d", "1", json!("c3")))]);
        list(&store, &all.values().cloned().collect::<Vec<_>>());
        assert_eq!(agree(&all), [0, 0, 1, 0]);
    }

    #[test]
    fn a_query_for_a_label_finds_what_a_look_at_all_objects_would() {
        let object = |name: &str, env: &str| json!({"metadata": {"name": name, "uid": name, "labels": {"env": env}}});
        let mut all = BTreeMap::from([("a", object("a", "prod")), ("b", object("b", "dev"))]);
        let store = read(&all.values().cloned().collect::<Vec<_>>());
        let request = asked(Operation::Create, "c", "");
        let agree = |all: &BTreeMap<&str, Value>| {
            ["env=prod", "env in (prod, test, prod)", "env notin (prod)", "env", "env=prod,other=x"].map(|selector| {
                let query = Query::new("q", EvidenceSource::Clusters, ["/metadata/uid"]);
                let query = Query { selector: Some(selector.to_owned()), ..query };
                let reading = Reading { is_newest: true, ..PLAIN };
                let table = store.table(&query, &request, &Deadline::NONE, reading).unwrap();
                let expected = evidence::table(&query, all.values(), &request, &table.revision, Budget::default());
                assert_eq!(*table, expected.unwrap(), "{selector}");
                table.rows.len()
            })
        };
        assert_eq!(agree(&all), [1, 1, 1, 2, 0]);
        let changed = object("b", "test");
        store.take(Change::Now(changed.clone()));
        all.insert("b", changed);
        assert_eq!(agree(&all), [1, 2, 1, 2, 0]);
        store.take(Change::Gone(all.remove("a").unwrap()));
        assert_eq!(agree(&all), [0, 1, 1, 1, 0]);
    }

    #[test]
    fn of_registrations_what_policies_are_not_shown_is_neither_kept_nor_news() {
        let registration = |version: &str, waiting: &str, until: &str| {
            json!({
                "metadata": {"name": "c1", "uid": "1", "resourceVersion": version},
                "status": {"clusterUid": "u", "waitingFor": waiting, "keys": [{"spkiSha256": "aa", "until": until}],
                    "decision": {"at": "1970-01-01T00:00:00Z", "record": waiting.repeat(60_000)}},
            })
        };
        let store = Store::new(EvidenceSource::Registrations);
        list(&store, &[registration("1", "a", "1970-01-01T00:00:01Z")]);
        let query = Query {
            cluster_field: Some("/cluster".to_owned()),
            ..Query::new("q", EvidenceSource::Registrations, ["/clusterUid", "/until"])
        };
        let values = |name: &str| {
            let table = store.table(&query, &asked(Operation::Create, name, ""), &Deadline::NONE, PLAIN).unwrap();
            assert!(table.complete);
            table.rows.first().map(|row| row.values.clone())
        };
        assert_eq!((values("c1"), values("c2")), (Some(vec![json!("u"), json!(1000)]), None));
        let kept = store.state().objects.iter().map(|(_, object)| object.rows.as_ref().unwrap().size()).sum::<usize>();
        assert!(kept < 200, "{kept}");
        let revision = store.revision();
        store.take(Change::Now(registration("2", "b", "1970-01-01T00:00:01Z")));
        assert_eq!((store.revision(), store.version()), (revision, 2));
        store.take(Change::Now(registration("3", "b", "1970-01-01T00:00:02Z")));
        assert_eq!((store.revision(), store.version()), (revision + 1, 3));
        assert_eq!(values("c1"), Some(vec![json!("u"), json!(2000)]));
        // Where the kind is gone there are none, and that is no news a second time.
        list(&store, &[]);
        list(&store, &[]);
        assert_eq!((store.revision(), values("c1")), (revision + 2, None));
    }

    #[test]
    fn of_certificate_requests_what_policies_are_not_shown_is_not_kept() {
        let store = Store::new(EvidenceSource::Csrs);
        let annotations = json!({"example.com/a": "x".repeat(250 << 10)});
        let request = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "r1", "uid": "1", "annotations": annotations},
            "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client"},
        });
        list(&store, &[request]);
        let kept = store.state().objects.iter().map(|(_, object)| object.rows.as_ref().unwrap().size()).sum::<usize>();
        assert!(kept < 1000, "{kept}");
    }

    #[test]
    fn what_cannot_be_read_hides_nothing() {
        let store = Store::new(EvidenceSource::Csrs);
        list(&store, &[json!({"metadata": {"name": "r1", "uid": "1"}, "spec": 7})]);
        let all = Query::new("csrs", EvidenceSource::Csrs, ["/cluster"]);
        let of_cluster = Query { cluster_field: Some("/clusters".to_owned()), ..all.clone() };
        let labelled = Query { selector: Some("a=b".to_owned()), ..all.clone() };
        let request = asked(Operation::Create, "c", "");
        for query in [&all, &of_cluster, &labelled] {
            let why = store.table(query, &request, &Deadline::NONE, PLAIN).unwrap_err().to_string();
            assert!(why.contains("cannot be read: r1"), "{why}");
        }
        store.take(Change::Gone(json!({"metadata": {"name": "r1", "uid": "1"}})));
        for query in [all, of_cluster, labelled] {
            assert!(store.table(&query, &request, &Deadline::NONE, PLAIN).is_ok());
        }
    }

    /// A review of a cluster that is created, or changed from another one.
    fn writes(object: Value, previous: Option<Value>) -> Request<'static> {
        let verb = if previous.is_some() { "UPDATE" } else { "CREATE" };
        let mut request = Request::new(Operation::Create, Requester::default());
        request.resource = Some(ocm_policy_abi::Resource {
            group: "cluster.open-cluster-management.io".into(),
            version: "v1".into(),
            resource: "managedclusters".into(),
            operation: verb.into(),
            ..ocm_policy_abi::Resource::default()
        });
        (request.object, request.previous_object) = (Some(object), previous);
        request
    }

    fn in_set(name: &str, version: &str, set: &str) -> Value {
        json!({"metadata": {"name": name, "uid": name, "resourceVersion": version, "labels": {"set": set}}})
    }

    /// How many clusters are in sets `a` and `b`, as whoever counts what was let pass is told.
    fn sets(store: &Store, counts_passed: bool) -> [u64; 2] {
        let query = Query { count: true, ..Query::new("sets", EvidenceSource::Clusters, ["/metadata/labels/set"]) };
        let reading = Reading { counts_passed, ..PLAIN };
        let table = store.table(&query, &asked(Operation::Create, "c", ""), &Deadline::NONE, reading).unwrap();
        assert!(table.complete);
        ["a", "b"].map(|set| {
            let row = table.rows.iter().find(|row| row.values[0] == set);
            row.map_or(0, |row| row.values[1].as_u64().unwrap())
        })
    }

    /// A cluster with much that nobody has asked for so far.
    fn joined(number: usize) -> Value {
        let condition = json!({
            "type": "ManagedClusterJoined", "status": "True", "reason": "R", "message": "a cluster reports",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let claims: Vec<Value> =
            (0..20).map(|claim| json!({"name": format!("claim-{claim}.example.com"), "value": "v"})).collect();
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {
                "name": format!("c{number}"), "uid": format!("00000000-0000-4000-8000-{number:012x}"),
                "resourceVersion": (number + 1).to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"env": "prod"}, "annotations": {"example.com/a": number.to_string()},
                "finalizers": ["example.com/f"],
            },
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
            "status": {"conditions": [condition], "clusterClaims": claims, "version": {"kubernetes": "v1.35.0"}},
        })
    }

    #[test]
    fn of_an_object_every_field_can_be_asked_for() {
        let clusters: Vec<Value> = (0..50).map(joined).collect();
        let store = read(&clusters);
        let request = asked(Operation::Create, "c7", "");
        let found = |query: &Query| store.table(query, &request, &Deadline::NONE, PLAIN).unwrap();
        let fields =
            ["", "/metadata/annotations/example.com~1a", "/status/clusterClaims/19/name", "/metadata/finalizers"];
        let hub = Query::new("hub", EvidenceSource::Clusters, fields);
        let own = Query { cluster_field: Some("/metadata/name".to_owned()), ..hub.clone() };
        for query in [hub, own] {
            let table = found(&query);
            let expected = evidence::table(&query, &clusters, &request, &table.revision, Budget::default()).unwrap();
            assert_eq!(*table, expected);
            assert!(table.rows.iter().any(|row| row.values[0] == clusters[7]));
        }
    }

    #[test]
    fn thousands_of_clusters_take_a_small_part_of_their_text() {
        let clusters: Vec<Value> = (0..2000).map(joined).collect();
        let store = read(&clusters);
        let state = store.state();
        let kept: usize = state.objects.iter().map(|(_, object)| object.rows.as_ref().unwrap().kept()).sum();
        let text: usize = clusters.iter().map(|cluster| cluster.to_string().len()).sum();
        assert!(kept * 8 < text, "{kept} bytes of {text}");
    }

    #[test]
    fn what_is_read_anew_as_it_was_is_kept_once() {
        let store = read(&[cluster("c1", "1"), cluster("c2", "2")]);
        let rows = |name: &str| {
            let state = store.state();
            state.objects.get(&(String::new(), name.to_owned())).unwrap().rows.clone().unwrap()
        };
        let before = [rows("c1"), rows("c2")];
        list(&store, &[cluster("c1", "1"), cluster("c2", "other")]);
        assert!(rows("c1").is_shared_with(&before[0]));
        assert!(!rows("c2").is_shared_with(&before[1]));
        assert_eq!(rows("c2").read()[0]["metadata"]["uid"], "other");
    }

    #[test]
    fn what_was_let_pass_counts_for_those_who_count_and_is_no_sign_of_life() {
        let store = read(&[in_set("c1", "1", "a")]);
        store.pass(&writes(in_set("c2", "", "a"), None));
        assert_eq!((sets(&store, true), sets(&store, false)), ([2, 0], [1, 0]));
        // Beside evidence that was made before it arrived as well.
        stands_long(&store);
        store.take(Change::Now(in_set("c2", "2", "a")));
        assert_eq!(sets(&store, true), [2, 0]);
        std::thread::sleep(LONGEST);
        assert_eq!((sets(&store, true), sets(&store, false)), ([2, 0], [2, 0]));
        let short = Duration::from_millis(50);
        std::thread::sleep(short);
        store.pass(&writes(in_set("c3", "", "a"), None));
        let reading = Reading { oldest: short, counts_passed: true, ..PLAIN };
        let query = Query::new("clusters", EvidenceSource::Clusters, [""; 0]);
        let stale = store.table(&query, &asked(Operation::Create, "c", ""), &Deadline::NONE, reading).unwrap_err();
        assert!(stale.to_string().contains("the hub tells nothing"), "{stale}");
    }

    #[test]
    fn a_move_counts_in_both_sets_until_it_arrives_and_other_changes_in_one() {
        let store = read(&[in_set("c1", "5", "a")]);
        let mut labelled = in_set("c1", "5", "a");
        labelled["metadata"]["labels"]["other"] = json!("x");
        store.pass(&writes(labelled, Some(in_set("c1", "5", "a"))));
        assert_eq!(sets(&store, true), [1, 0]);
        store.pass(&writes(in_set("c1", "5", "b"), Some(in_set("c1", "5", "a"))));
        assert_eq!(sets(&store, true), [1, 1]);
        // The same about the cluster of the request.
        let query = Query {
            cluster_field: Some("/metadata/name".to_owned()),
            ..Query::new("q", EvidenceSource::Clusters, ["/metadata/labels/set"])
        };
        let reading = Reading { counts_passed: true, ..PLAIN };
        let table = store.table(&query, &asked(Operation::Create, "c1", ""), &Deadline::NONE, reading).unwrap();
        assert_eq!(table.rows.iter().map(|row| row.values[0].clone()).collect::<Vec<_>>(), ["a", "b"]);
        store.take(Change::Now(in_set("c1", "6", "b")));
        std::thread::sleep(LONGEST);
        assert_eq!(sets(&store, true), [0, 1]);
        // What changes an earlier version is refused by the API server.
        store.pass(&writes(in_set("c1", "5", "a"), Some(in_set("c1", "5", "a"))));
        assert_eq!(sets(&store, true), [0, 1]);
        // What is there already is not created.
        store.pass(&writes(in_set("c1", "", "a"), None));
        assert_eq!(sets(&store, true), [0, 1]);
    }

    #[test]
    fn what_cannot_be_recognised_is_no_evidence_for_those_who_count() {
        let store = read(&[]);
        store.pass(&writes(json!({"metadata": {"labels": {"set": "a"}}}), None));
        let query = Query::new("clusters", EvidenceSource::Clusters, [""; 0]);
        let request = asked(Operation::Create, "c", "");
        let why = store.table(&query, &request, &Deadline::NONE, Reading { counts_passed: true, ..PLAIN }).unwrap_err();
        assert!(why.to_string().contains("more was let pass than is kept"), "{why}");
        assert!(store.table(&query, &request, &Deadline::NONE, PLAIN).is_ok());
        // What deletes, or is of another kind, makes nothing.
        let store = read(&[]);
        let mut other = writes(in_set("c1", "", "a"), None);
        other.resource.as_mut().unwrap().resource = "managedclustersets".into();
        let mut deletes = writes(in_set("c1", "", "a"), None);
        deletes.resource.as_mut().unwrap().operation = "DELETE".into();
        [other, deletes].iter().for_each(|request| store.pass(request));
        assert_eq!(sets(&store, true), [0, 0]);
    }
}
