//! What is kept of the objects of one source, and which of them are about which cluster.

use std::collections::{BTreeMap, BTreeSet};

use ocm_policy_rules::evidence;
use serde_json::Value;

use crate::packed::Packed;

/// Namespace and name of the API's object.
pub(super) type Key = (String, String);
/// The rows of an object, a list, or why it has none. A ConfigMap is several rows.
pub(super) type Rows = Result<Packed, String>;

/// One object.
#[derive(Clone)]
pub(super) struct Object {
    pub(super) uid: String,
    /// Its resource version as the number that it is.
    pub(super) version: u64,
    /// Which change brought it.
    pub(super) revision: u64,
    pub(super) rows: Rows,
}

/// Objects by their names.
#[derive(Default)]
pub(super) struct Objects {
    all: BTreeMap<Key, Object>,
    /// Those that cannot be read.
    unreadable: BTreeSet<Key>,
    /// By the fields in which queries look for clusters: the objects of each cluster.
    of: BTreeMap<String, BTreeMap<String, Vec<Key>>>,
}

impl Objects {
    /// These and no others.
    pub(super) fn of(all: BTreeMap<Key, Object>) -> Self {
        let unreadable = all.iter().filter(|(_, object)| object.rows.is_err()).map(|(key, _)| key.clone()).collect();
        // Where clusters are looked for is found out when somebody asks.
        Self { all, unreadable, of: BTreeMap::new() }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Object> {
        self.all.get(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Object)> {
        self.all.iter()
    }

    /// Puts an object in its place.
    pub(super) fn insert(&mut self, key: Key, object: Object) {
        self.remove(&key);
        match &object.rows {
            Ok(rows) => {
                let rows = read_rows(rows);
                for (field, of) in &mut self.of {
                    note(of, field, &key, &rows);
                }
            }
            Err(_) => {
                self.unreadable.insert(key.clone());
            }
        }
        self.all.insert(key, object);
    }

    /// Notes a later version of an object that shows nothing new.
    pub(super) fn note_version(&mut self, key: &Key, version: u64) {
        self.all.get_mut(key).into_iter().for_each(|object| object.version = version);
    }

    pub(super) fn remove(&mut self, key: &Key) {
        let Some(Object { rows, .. }) = self.all.remove(key) else { return };
        self.unreadable.remove(key);
        let rows = rows.as_ref().map(read_rows).unwrap_or_default();
        for (field, of) in &mut self.of {
            for cluster in clusters(field, &rows) {
                if let Some(keys) = of.get_mut(cluster) {
                    keys.retain(|other| other != key);
                    if keys.is_empty() {
                        of.remove(cluster);
                    }
                }
            }
        }
    }

    /// The rows of all objects.
    ///
    /// # Errors
    /// Says which object cannot be read.
    pub(super) fn all(&self) -> Result<Vec<Packed>, String> {
        self.are_readable()?;
        Ok(self.all.values().filter_map(|object| object.rows.clone().ok()).collect())
    }

    fn are_readable(&self) -> Result<(), String> {
        let Some(key) = self.unreadable.first() else { return Ok(()) };
        let why = self.all.get(key).and_then(|object| object.rows.as_ref().err());
        let why = why.map(String::as_str).unwrap_or_default();
        Err(format!("cannot be read: {}: {why}", key.1))
    }

    /// The rows of the objects that name a cluster in a field, and perhaps more rows of those.
    ///
    /// # Errors
    /// Says which object cannot be read: it may be one of those.
    pub(super) fn of_cluster(&mut self, field: &str, cluster: Option<&str>) -> Result<Vec<Packed>, String> {
        self.are_readable()?;
        if !self.of.contains_key(field) {
            let mut of = BTreeMap::new();
            for (key, object) in &self.all {
                object.rows.iter().for_each(|rows| note(&mut of, field, key, &read_rows(rows)));
            }
            self.of.insert(field.to_owned(), of);
        }
        let keys = cluster.and_then(|cluster| self.of.get(field)?.get(cluster)).into_iter().flatten();
        Ok(keys.filter_map(|key| self.all.get(key)?.rows.clone().ok()).collect())
    }
}

/// The rows of an object.
pub(super) fn read_rows(rows: &Packed) -> Vec<Value> {
    match rows.read() {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    }
}

fn note(of: &mut BTreeMap<String, Vec<Key>>, field: &str, key: &Key, rows: &[Value]) {
    for cluster in clusters(field, rows) {
        // Of most clusters there is one.
        of.entry(cluster.to_owned()).or_insert_with(|| Vec::with_capacity(1)).push(key.clone());
    }
}

/// The clusters that rows are about. Queries were checked when their policies were loaded.
fn clusters<'r>(field: &str, rows: &'r [Value]) -> BTreeSet<&'r str> {
    rows.iter().flat_map(|row| evidence::clusters(field, row).unwrap_or_default()).collect()
}
