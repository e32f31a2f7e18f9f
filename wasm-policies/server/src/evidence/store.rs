//! The objects of one source, as they are on the hub.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ocm_policy_abi::{EvidenceSource, Operation, Query, Request, Table};
use ocm_policy_engine::{Deadline, PolicyError};
use ocm_policy_rules::evidence::{self, Budget, Evidence};
use serde_json::Value;
use tokio::sync::watch;

/// How long a question waits until the object that it is about has arrived here.
const ARRIVES: Duration = Duration::from_secs(1);
/// How often it looks.
const LOOKS: Duration = Duration::from_millis(5);
/// Evidence is made anew when the hub has changed, but for at most this part of the time: a hub on which everything
/// changes at once must not keep those busy who decide.
const SHARE: u32 = 10;

/// The objects of one source.
pub(super) struct Store {
    source: EvidenceSource,
    state: Mutex<State>,
    /// What queries find, by their text.
    made: Mutex<HashMap<String, Arc<Made>>>,
    read: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// By namespace and name of the API's object; a ConfigMap is several rows.
    objects: BTreeMap<(String, String), Object>,
    /// What the list that is being read has brought so far.
    coming: Option<BTreeMap<(String, String), Object>>,
    /// Which change made it what it is.
    revision: u64,
    /// Since when it cannot be followed, and why.
    lost: Option<(Instant, String)>,
}

struct Object {
    uid: String,
    rows: Result<Vec<Value>, String>,
}

/// What a query found in one state.
struct Made {
    revision: u64,
    evidence: Evidence,
    until: Instant,
}

/// Something that happened to the objects of a source.
pub(super) enum Change {
    /// All of them are read anew.
    Begun,
    /// One of them.
    Listed(Value),
    /// That was all.
    Complete,
    /// One is new or has changed.
    Now(Value),
    /// One is gone.
    Gone(Value),
    /// From now on every change is told.
    Standing,
    /// Nothing more is told for the time being.
    Lost(String),
}

impl Store {
    pub(super) fn new(source: EvidenceSource) -> Self {
        Self { source, state: Mutex::default(), made: Mutex::default(), read: watch::Sender::new(false) }
    }

    pub(super) fn source(&self) -> &EvidenceSource {
        &self.source
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it cannot be followed at present.
    pub(super) fn lost(&self) -> Option<String> {
        self.state().lost.as_ref().map(|(_, why)| why.clone())
    }

    /// Ends when all objects were read once.
    pub(super) async fn first_read(&self) {
        // The sender is this store's own, so it cannot be gone.
        let _ = self.read.subscribe().wait_for(|read| *read).await;
    }

    /// Takes what happened.
    pub(super) fn take(&self, change: Change) {
        let mut state = self.state();
        match change {
            Change::Begun => state.coming = Some(BTreeMap::new()),
            Change::Listed(object) => {
                let (key, object) = self.object(object);
                state.coming.get_or_insert_default().insert(key, object);
            }
            Change::Complete => {
                state.objects = state.coming.take().unwrap_or_default();
                state.revision += 1;
                self.read.send_replace(true);
            }
            Change::Now(object) => {
                let (key, object) = self.object(object);
                state.objects.insert(key, object);
                state.revision += 1;
            }
            Change::Gone(object) => {
                state.objects.remove(&name_of(&object));
                state.revision += 1;
            }
            Change::Standing => state.lost = None,
            Change::Lost(why) => {
                let since = state.lost.take().map_or_else(Instant::now, |(since, _)| since);
                state.lost = Some((since, why));
            }
        }
    }

    fn object(&self, object: Value) -> ((String, String), Object) {
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = name_of(&object);
        let rows = match &self.source {
            EvidenceSource::Csrs => {
                evidence::certificate_request(&object).map(|read| vec![read]).map_err(|error| error.to_string())
            }
            EvidenceSource::ConfigMap { .. } => Ok(evidence::entries(&object)),
            _ => Ok(vec![object]),
        };
        (key, Object { uid, rows })
    }

    /// The table of a request.
    pub(super) fn table(
        &self,
        query: &Query,
        request: &Request<'_>,
        deadline: &Deadline,
        oldest: Duration,
    ) -> Result<Arc<Table<'static>>, PolicyError> {
        let unknown = |why: &str| PolicyError::Evidence(format!("the evidence {:?} {why}", query.name));
        if !*self.read.borrow() {
            return Err(unknown("has not been read yet"));
        }
        self.wait_for(request, deadline)?;
        if let Some((since, why)) = &self.state().lost
            && since.elapsed() > oldest
        {
            return Err(unknown(&format!("is of {} seconds ago: {why}", since.elapsed().as_secs())));
        }
        let made = self.made(query).map_err(|why| unknown(&why))?;
        Ok(Arc::new(made.evidence.table(request)))
    }

    /// Waits until what the question is about has arrived: deciding with evidence from before would be deciding without
    /// whatever came with it.
    fn wait_for(&self, request: &Request<'_>, deadline: &Deadline) -> Result<(), PolicyError> {
        let about = match (&self.source, request.operation) {
            (EvidenceSource::Csrs, Operation::Approve | Operation::Join) => {
                request.csr.as_ref().map(|csr| (csr.name.as_deref(), csr.uid.as_deref()))
            }
            (EvidenceSource::Clusters, Operation::Accept | Operation::Join) => {
                request.cluster.as_ref().map(|cluster| (Some(cluster.name.as_str()), cluster.uid.as_deref()))
            }
            _ => None,
        };
        let Some((Some(name), Some(uid))) = about else { return Ok(()) };
        let key = (String::new(), name.to_owned());
        let begun = Instant::now();
        while self.state().objects.get(&key).is_none_or(|object| object.uid != uid) {
            deadline.check()?;
            if begun.elapsed() > ARRIVES {
                let why = format!("{name} is not among what this server has read of the hub");
                return Err(PolicyError::Evidence(why));
            }
            std::thread::sleep(LOOKS);
        }
        Ok(())
    }

    /// What a query finds now, or found a moment ago.
    fn made(&self, query: &Query) -> Result<Arc<Made>, String> {
        let text = serde_json::to_string(query).map_err(|error| error.to_string())?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        if let Some(known) = made.get(&text)
            && (known.revision == state.revision || Instant::now() < known.until)
        {
            return Ok(known.clone());
        }
        let begun = Instant::now();
        let mut rows = Vec::with_capacity(state.objects.len());
        for ((_, name), object) in &state.objects {
            rows.extend(object.rows.as_ref().map_err(|why| format!("cannot be read: {name}: {why}"))?);
        }
        let revision = state.revision.to_string();
        let evidence = Evidence::new(query, rows, &revision, Budget::default()).map_err(|error| error.to_string())?;
        let until = Instant::now() + begun.elapsed() * SHARE;
        let new = Arc::new(Made { revision: state.revision, evidence, until });
        made.insert(text, new.clone());
        Ok(new)
    }
}

fn name_of(object: &Value) -> (String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/metadata/namespace"), text("/metadata/name"))
}
