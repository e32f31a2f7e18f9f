//! What is known of the hub, and what is followed for it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kube::Client;
use ocm_policy_abi::{EvidenceSource, Query, Request, Table};
use ocm_policy_engine::{Deadline, EvidenceReader, PolicyError};
use tokio::task::AbortHandle;

use super::store::{Reading, Store};
use super::{guard, source};
use crate::watch;

/// Evidence that could not be followed for so long is none.
pub(super) const OLDEST: Duration = Duration::from_secs(60);

/// What is known of the hub. Each kind of objects that a policy asks for is read once and followed from then on.
pub struct Knowledge {
    client: Client,
    stores: RwLock<BTreeMap<String, Followed>>,
}

struct Followed {
    store: Arc<Store>,
    task: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Knowledge {
    /// Knows nothing yet.
    pub fn new(client: Client) -> Self {
        Self { client, stores: RwLock::default() }
    }

    /// Follows what these queries ask for, and waits until all of it was read once, or for so long.
    ///
    /// # Errors
    /// Says what could not be read in time.
    pub async fn follow(&self, queries: &[Query], wait: Duration) -> Result<(), PolicyError> {
        let until = tokio::time::Instant::now() + wait;
        // All are asked for before any is waited for.
        let wanted = queries.iter().flat_map(|query| guard::with(&query.source).map(move |source| (query, source)));
        let stores: Vec<(&Query, Arc<Store>)> = wanted.map(|(query, source)| (query, self.store(&source))).collect();
        for (query, store) in stores {
            let read = tokio::time::timeout_at(until, store.first_read());
            if read.await.is_err() {
                let why = store.lost().unwrap_or_else(|| "the hub has not answered yet".to_owned());
                return Err(PolicyError::Evidence(format!("{:?} cannot be read: {why}", query.name)));
            }
        }
        Ok(())
    }

    /// Begins to follow what these queries ask for.
    pub(crate) fn begin(&self, queries: &[Query]) {
        for source in queries.iter().flat_map(|query| guard::with(&query.source)) {
            self.store(&source);
        }
    }

    /// Follows nothing any more but what these queries ask for.
    pub fn keep(&self, queries: &[Query]) {
        let sources = queries.iter().flat_map(|query| guard::with(&query.source));
        let wanted: Vec<String> = sources.map(|source| key(&source)).collect();
        self.stores.write().unwrap_or_else(PoisonError::into_inner).retain(|key, _| wanted.contains(key));
    }

    /// Reads everything anew that is followed, and waits until that was done, or for so long: what was read before others
    /// changed the hub tells nothing of it.
    ///
    /// # Errors
    /// Says what could not be read in time.
    pub async fn read_anew(&self, wait: Duration) -> Result<(), PolicyError> {
        let queries: Vec<Query> = {
            let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
            let former = std::mem::take(&mut *stores);
            former.values().map(|followed| Query::new("", followed.store.source().clone(), [""; 0])).collect()
        };
        self.follow(&queries, wait).await
    }

    /// Another number as soon as something that policies ask for has changed.
    pub fn revision(&self) -> u64 {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        stores.values().fold(0, |sum, followed| sum.wrapping_add(followed.store.revision()))
    }

    /// Whether what the hub held in this resource version of a source, or later, is what policies are shown. So it is
    /// where nobody asks for it.
    pub fn has_seen(&self, source: &EvidenceSource, version: u64) -> bool {
        self.find(source).is_none_or(|store| store.version() >= version)
    }

    /// What cannot be followed at present, with the reason.
    pub fn lost(&self) -> Vec<String> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        stores.iter().filter_map(|(key, followed)| Some(format!("{key}: {}", followed.store.lost()?))).collect()
    }

    /// What of these queries cannot be told, each with the reason: who asks for it gets an error, or no approval that counts.
    pub(crate) fn unread(&self, queries: &[Query]) -> Vec<String> {
        let why = |source: &EvidenceSource| self.find(source)?.unread(OLDEST);
        let of = |query: &Query| {
            let (source, why) = guard::with(&query.source).find_map(|source| Some((key(&source), why(&source)?)))?;
            Some(format!("{} ({source}): {why}", query.name))
        };
        queries.iter().filter_map(of).collect()
    }

    /// What the hub does not serve, which counts as that there is none of it.
    pub(crate) fn unserved(&self) -> Vec<String> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        stores.iter().filter(|(_, followed)| followed.store.is_unserved()).map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn find(&self, source: &EvidenceSource) -> Option<Arc<Store>> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        stores.get(&key(source)).map(|followed| followed.store.clone())
    }

    fn store(&self, source: &EvidenceSource) -> Arc<Store> {
        if let Some(store) = self.find(source) {
            return store;
        }
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        let followed = stores.entry(key(source)).or_insert_with(|| {
            let store = Arc::new(Store::new(source.clone()));
            let (api, fields) = source::api(self.client.clone(), source);
            let sink = store.clone();
            let unserved = source::unserved(source);
            let task = tokio::spawn(async move { watch::follow(api, fields, unserved, &*sink).await }).abort_handle();
            Followed { store, task }
        });
        followed.store.clone()
    }
}

impl Knowledge {
    /// The table of a request.
    fn read(
        &self,
        query: &Query,
        request: &Request<'_>,
        deadline: &Deadline,
        shown: &Shown<'_>,
        counts_passed: bool,
    ) -> Result<Arc<Table<'static>>, PolicyError> {
        let missing = || PolicyError::Evidence(format!("the evidence {:?} is not followed", query.name));
        let store = self.find(&query.source).ok_or_else(missing)?;
        let since = match query.source {
            EvidenceSource::Approvals => match guard::proves_since(|source| self.find(source), OLDEST) {
                Some(since) => Some(since),
                // Whoever may create them could have written them in anybody's name.
                None => return Ok(Arc::new(guard::nothing(&store))),
            },
            _ => None,
        };
        let Shown { is_newest, has_waited, .. } = *shown;
        store.table(query, request, deadline, Reading { oldest: OLDEST, since, is_newest, counts_passed, has_waited })
    }

    /// Waits until what a request is about has arrived wherever evidence would wait for it. Where it does not, that is what the
    /// evidence says.
    pub(crate) fn arrive(&self, request: &Request<'_>, deadline: &Deadline) {
        let stores: Vec<Arc<Store>> = {
            let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
            stores.values().map(|followed| followed.store.clone()).collect()
        };
        // Where it has not arrived at one of them in time, the answer is an error.
        let _ = stores.iter().try_for_each(|store| store.arrive(request, deadline));
    }

    /// What has to be noted of a request if it is let pass, for those who count objects of these sources; none: nothing.
    pub(crate) fn passing<'s>(
        &self,
        sources: impl IntoIterator<Item = &'s EvidenceSource>,
        request: &Request<'_>,
    ) -> Option<Passing> {
        let resource = request.resource.as_ref()?;
        let of = sources.into_iter().filter(|source| source::is_of(source, resource));
        let mut stores: Vec<Arc<Store>> = Vec::new();
        for store in of.filter_map(|source| self.find(source)) {
            if !stores.iter().any(|known| Arc::ptr_eq(known, &store)) {
                stores.push(store);
            }
        }
        (!stores.is_empty()).then(|| Passing { stores, request: request.clone().into_owned() })
    }
}

/// A request that may be let pass.
pub(crate) struct Passing {
    stores: Vec<Arc<Store>>,
    request: Request<'static>,
}

impl Passing {
    /// It is: from now on it counts, until the hub shows what became of it.
    pub(crate) fn pass(self) {
        self.stores.iter().for_each(|store| store.pass(&self.request));
    }
}

/// What is known of the hub, as policies are shown it.
pub(crate) struct Shown<'a> {
    pub(crate) knowledge: &'a Knowledge,
    /// The places of those who count: they are shown what was let pass as well.
    pub(crate) counting: &'a [String],
    /// Whether nothing may be from before a change that has arrived: whoever decides about one after the other judges each by what
    /// came of the one before, and whoever is asked about again because of a change is judged by that change.
    pub(crate) is_newest: bool,
    /// Whether what the question is about was waited for already: [`Knowledge::arrive`].
    pub(crate) has_waited: bool,
}

impl EvidenceReader for Shown<'_> {
    fn table(
        &self,
        policy: &str,
        query: &Query,
        request: &Request<'_>,
        deadline: &Deadline,
    ) -> Result<Arc<Table<'static>>, PolicyError> {
        let counts_passed = self.counting.iter().any(|place| place == policy);
        self.knowledge.read(query, request, deadline, self, counts_passed)
    }
}

/// A source in one word.
fn key(source: &EvidenceSource) -> String {
    serde_json::to_string(source).unwrap_or_default()
}
