//! Objects of one kind, as they are on the hub.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ocm_policy_server::watch::{Change, Sink};
use serde_json::Value;
use tokio::sync::watch;

/// What hears which object is another one now: its name, what it was and what it is.
type Touched<T> = Box<dyn Fn(&str, Option<&T>, Option<&T>) + Send + Sync>;

/// What makes of an object what is kept of it.
type Read<T> = Box<dyn Fn(Value) -> T + Send + Sync>;

/// What is kept of each object of a kind, by name.
pub(crate) struct Store<T> {
    read: Read<T>,
    touched: Touched<T>,
    wants_managed_fields: bool,
    inner: Mutex<Inner<T>>,
    is_read: watch::Sender<bool>,
}

struct Inner<T> {
    items: BTreeMap<String, T>,
    /// What the list that is being read has brought so far.
    coming: Option<BTreeMap<String, T>>,
    /// When it was last known to be what is on the hub.
    confirmed: Option<Instant>,
    lost: Option<String>,
}

impl<T: Clone + PartialEq> Store<T> {
    pub(crate) fn new(read: impl Fn(Value) -> T + Send + Sync + 'static, touched: Touched<T>) -> Self {
        let inner = Inner { items: BTreeMap::new(), coming: None, confirmed: None, lost: None };
        Self {
            read: Box::new(read),
            touched,
            wants_managed_fields: false,
            inner: Mutex::new(inner),
            is_read: watch::Sender::new(false),
        }
    }

    /// The same, of objects that tell which of their metadata was added later.
    pub(crate) fn with_managed_fields(self) -> Self {
        Self { wants_managed_fields: true, ..self }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when all objects were read once.
    pub(crate) async fn first_read(&self) {
        // The sender is this store's own, so it cannot be gone.
        let _ = self.is_read.subscribe().wait_for(|read| *read).await;
    }

    pub(crate) fn get(&self, name: &str) -> Option<T> {
        self.inner().items.get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.inner().items.keys().cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.inner().items.values().cloned().collect()
    }

    /// How long ago it was what is on the hub.
    pub(crate) fn age(&self) -> Duration {
        self.inner().confirmed.map_or(Duration::MAX, |at| at.elapsed())
    }

    /// Why it cannot be followed at present.
    pub(crate) fn lost(&self) -> Option<String> {
        self.inner().lost.clone()
    }

    fn replace(&self, items: BTreeMap<String, T>) {
        let former = {
            let mut inner = self.inner();
            inner.confirm();
            std::mem::replace(&mut inner.items, items.clone())
        };
        let names: BTreeSet<&String> = former.keys().chain(items.keys()).collect();
        for name in names {
            let (before, now) = (former.get(name), items.get(name));
            if before != now {
                (self.touched)(name, before, now);
            }
        }
    }
}

impl<T> Inner<T> {
    fn confirm(&mut self) {
        self.confirmed = Some(Instant::now());
        self.lost = None;
    }
}

impl<T: Clone + PartialEq + Send> Sink for Store<T> {
    fn wants_managed_fields(&self) -> bool {
        self.wants_managed_fields
    }

    fn take(&self, change: Change) {
        match change {
            Change::Begun => self.inner().coming = Some(BTreeMap::new()),
            Change::Listed(object) => {
                let (name, item) = (name_of(&object), (self.read)(object));
                let mut inner = self.inner();
                // While everything is read anew, what is as it was is kept once.
                let known = inner.items.get(&name).filter(|known| **known == item).cloned();
                inner.coming.get_or_insert_default().insert(name, known.unwrap_or(item));
            }
            Change::Complete(_) => {
                let items = self.inner().coming.take().unwrap_or_default();
                self.replace(items);
                self.is_read.send_replace(true);
            }
            Change::Now(object) => {
                let (name, item) = (name_of(&object), (self.read)(object));
                let before = {
                    let mut inner = self.inner();
                    inner.confirm();
                    inner.items.insert(name.clone(), item.clone())
                };
                if before.as_ref() != Some(&item) {
                    (self.touched)(&name, before.as_ref(), Some(&item));
                }
            }
            Change::Gone(object) => {
                let name = name_of(&object);
                let before = {
                    let mut inner = self.inner();
                    inner.confirm();
                    inner.items.remove(&name)
                };
                (self.touched)(&name, before.as_ref(), None);
            }
            Change::Confirmed => self.inner().confirm(),
            Change::Lost(why) => self.inner().lost = Some(why),
        }
    }
}

fn name_of(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn object(name: &str, version: &str) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": version}})
    }

    #[test]
    fn every_object_that_changed_is_told_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = told.clone();
        let touched = move |name: &str, _: Option<&Value>, now: Option<&Value>| {
            log.lock().unwrap().push(format!("{name}{}", if now.is_some() { "" } else { " gone" }));
        };
        let store = Store::new(|object| object, Box::new(touched));
        let said = || std::mem::take(&mut *told.lock().unwrap());
        store.take(Change::Begun);
        store.take(Change::Listed(object("a", "1")));
        store.take(Change::Listed(object("b", "1")));
        assert!(said().is_empty() && store.get("a").is_none() && store.age() == Duration::MAX, "half of a list");
        store.take(Change::Complete(None));
        assert_eq!(said(), ["a", "b"]);
        store.take(Change::Now(object("a", "2")));
        store.take(Change::Now(object("a", "2")));
        store.take(Change::Gone(object("b", "3")));
        assert_eq!(said(), ["a", "b gone"]);
        store.take(Change::Begun);
        store.take(Change::Listed(object("a", "2")));
        store.take(Change::Listed(object("c", "4")));
        store.take(Change::Complete(None));
        assert_eq!(said(), ["c"], "what is as it was is no news");
        assert!(store.age() < Duration::from_secs(60));
    }

    #[test]
    fn what_is_read_anew_as_it_was_is_kept_once() {
        let store: Store<Arc<Value>> = Store::new(Arc::new, Box::new(|_, _, _| {}));
        let list = |versions: [&str; 2]| {
            store.take(Change::Begun);
            for (name, version) in ["a", "b"].into_iter().zip(versions) {
                store.take(Change::Listed(object(name, version)));
            }
            store.take(Change::Complete(None));
            ["a", "b"].map(|name| store.get(name).unwrap())
        };
        let (before, after) = (list(["1", "1"]), list(["1", "2"]));
        assert!(Arc::ptr_eq(&before[0], &after[0]));
        assert_eq!(*after[1], object("b", "2"));
    }
}
