//! What this process let pass and the hub has not shown yet. Policies that count are shown it beside what the hub shows.
//!
//! What was let pass counts as it will be, and what it changes counts as it was, until the hub shows one of both: the API server
//! may still refuse it, and nobody may gain a place by what is refused afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::objects::{Key, Objects};
use crate::parsed;

/// How long what was let pass may come after its answer: the API server waits for all webhooks, for 30 seconds at most
/// (`timeoutSeconds` of a webhook), and stores it then.
const COMES: Duration = Duration::from_secs(30);
/// How long after a watch stands again what happened before may come by it.
const BEHIND: Duration = Duration::from_secs(2);
/// How long what has arrived is kept beside evidence that was made before.
const MADE_BEFORE: Duration = Duration::from_millis(200);
/// So many objects at most, and bytes of memory that they take.
const MOST: usize = 4096;
const MOST_BYTES: usize = 32 << 20;

/// What an API request writes.
pub(super) enum Write {
    /// A new object with this UID; without one it is not known yet.
    Create { uid: String },
    /// The object with this UID, which had this resource version.
    Update { uid: String, version: u64 },
}

/// The rows of an object that is written.
pub(super) struct Written {
    /// As it will be.
    pub(super) row: Value,
    /// As it was; none: it is new.
    pub(super) before: Option<Value>,
}

impl Written {
    fn bytes(&self) -> usize {
        let rows = [Some(&self.row), self.before.as_ref()];
        rows.into_iter().flatten().map(|row| parsed::size(row.to_string().as_bytes())).sum()
    }
}

/// Why it cannot be told what was let pass.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The evidence is from before this revision, which brought what is not kept any more.
    Before(u64),
    /// There was more than is kept.
    TooMuch,
}

/// One write that was let pass.
struct Passed {
    written: Arc<Written>,
    bytes: usize,
    write: Write,
    age: Age,
    /// The UID of another object that has the name.
    other: Option<String>,
    /// It is beside evidence of this revision and later ones; none: the name is another object's.
    from: Option<u64>,
    /// Evidence of this revision and later ones has it, or another object of its name.
    until: Option<u64>,
    /// When the hub showed what became of it.
    arrived: Option<Instant>,
}

/// How long ago something was let pass.
#[derive(Clone, Copy)]
struct Age {
    at: Instant,
    /// When the hub was first known to be followed at a time at which it would have been stored.
    told: Option<Instant>,
}

impl Age {
    fn of(at: Instant) -> Self {
        Self { at, told: None }
    }

    fn confirm(&mut self, now: Instant) {
        if now.saturating_duration_since(self.at) >= COMES {
            self.told.get_or_insert(now);
        }
    }

    /// Whether the hub would have shown it by now.
    fn is_over(self, now: Instant) -> bool {
        self.told.is_some_and(|told| now.saturating_duration_since(told) >= BEHIND)
    }
}

impl Passed {
    fn counts(&self, revision: u64) -> bool {
        self.from.is_some_and(|from| revision >= from) && self.until.is_none_or(|until| revision < until)
    }

    /// Whether the same is written, perhaps at another time.
    fn is_like(&self, write: &Write, written: &Written) -> bool {
        let is_same_write = match (&self.write, write) {
            (Write::Create { .. }, Write::Create { .. }) => true,
            (Write::Update { version, .. }, Write::Update { version: other, .. }) => version == other,
            _ => false,
        };
        // What counts beside evidence from before something arrived goes on doing so.
        is_same_write && self.until.is_none() && timeless(&self.written.row) == timeless(&written.row)
    }

    fn arrive(&mut self, revision: u64, now: Instant) {
        self.until.get_or_insert(revision);
        self.arrived.get_or_insert(now);
    }

    /// The hub shows an object of its name.
    fn see(&mut self, uid: &str, version: u64, revision: u64, now: Instant) {
        match &self.write {
            // Of two writes of one version one is stored, and every later version comes after that.
            Write::Update { version: before, .. } if version > *before || *before == 0 => self.arrive(revision, now),
            Write::Update { .. } => {}
            Write::Create { .. } if self.other.as_deref() == Some(uid) => {}
            Write::Create { uid: own } if own.is_empty() || own == uid => self.arrive(revision, now),
            Write::Create { .. } => {
                self.other = Some(uid.to_owned());
                if self.from.is_some() {
                    self.until.get_or_insert(revision);
                }
            }
        }
    }

    /// The hub shows an object of its name no more. Whether it counts again.
    fn miss(&mut self, uid: &str, revision: u64, now: Instant) -> bool {
        if self.arrived.is_some() {
            return false;
        }
        match &self.write {
            Write::Create { .. } if self.other.as_deref() == Some(uid) => {
                (self.other, self.from, self.until) = (None, Some(revision), None);
                return true;
            }
            // It was there, and is gone.
            Write::Create { uid: own } if own == uid => self.arrive(revision, now),
            // What is not there any more cannot be changed.
            Write::Update { uid: own, .. } if own == uid => self.arrive(revision, now),
            Write::Create { .. } | Write::Update { .. } => {}
        }
        false
    }
}

/// What was let pass of the objects of one source.
#[derive(Default)]
pub(super) struct PassedWrites {
    by_name: BTreeMap<Key, Vec<Passed>>,
    number: usize,
    bytes: usize,
    /// When something was let pass that is not kept.
    lost: Option<Age>,
    /// Evidence from before this revision lacks what is not kept any more.
    forgotten: u64,
    /// Another number whenever something else may count.
    changes: u64,
}

/// What counts beside evidence of a revision.
pub(super) struct Beside {
    pub(super) written: Vec<Arc<Written>>,
    /// Which of its states this is.
    pub(super) change: u64,
}

impl PassedWrites {
    /// Notes what is let pass. `there`: the UID of the object that has the name.
    pub(super) fn add(&mut self, key: Key, write: Write, written: Written, there: Option<&str>, now: Instant) {
        self.tidy(now);
        self.changes += 1;
        let is_new = matches!(write, Write::Create { .. });
        let from = (!is_new || there.is_none()).then_some(0);
        // Whoever comes again takes no second place, and what the API server refuses as there already takes none.
        self.remove_where(&key, |known| known.is_like(&write, &written) || from.is_none() && known.from.is_none());
        let bytes = written.bytes();
        if self.number >= MOST || self.bytes.saturating_add(bytes) > MOST_BYTES {
            return self.lose(now);
        }
        self.number += 1;
        self.bytes += bytes;
        let other = there.filter(|_| is_new).map(str::to_owned);
        let (written, age) = (Arc::new(written), Age::of(now));
        let passed = Passed { written, bytes, write, age, other, from, until: None, arrived: None };
        self.by_name.entry(key).or_default().push(passed);
    }

    /// Notes that something is let pass that is not kept.
    pub(super) fn lose(&mut self, now: Instant) {
        self.lost = Some(Age::of(now));
    }

    /// The hub shows an object, from this revision on.
    pub(super) fn see(&mut self, key: &Key, uid: &str, version: u64, revision: u64, now: Instant) {
        for passed in self.by_name.get_mut(key).into_iter().flatten() {
            passed.see(uid, version, revision, now);
            self.changes += 1;
        }
    }

    /// The hub shows an object no more, from this revision on.
    pub(super) fn miss(&mut self, key: &Key, uid: &str, revision: u64, now: Instant) {
        let mut counts_again = false;
        for passed in self.by_name.get_mut(key).into_iter().flatten() {
            counts_again |= passed.miss(uid, revision, now);
            self.changes += 1;
        }
        if counts_again {
            self.forgotten = self.forgotten.max(revision);
        }
    }

    /// The hub shows these objects and no others, from this revision on.
    pub(super) fn see_all(&mut self, objects: &Objects, revision: u64, now: Instant) {
        self.changes += 1;
        let mut counts_again = false;
        for (key, all) in &mut self.by_name {
            match objects.get(key) {
                Some(object) => {
                    all.iter_mut().for_each(|passed| passed.see(&object.uid, object.version, revision, now))
                }
                // A list may be older than what was let pass: it tells of others alone.
                None => {
                    for passed in all {
                        let Some(other) = passed.other.clone() else { continue };
                        counts_again |= passed.miss(&other, revision, now);
                    }
                }
            }
        }
        if counts_again {
            self.forgotten = self.forgotten.max(revision);
        }
    }

    /// The hub is followed at this time.
    pub(super) fn confirm(&mut self, now: Instant) {
        let ages = self.by_name.values_mut().flatten().map(|passed| &mut passed.age);
        ages.chain(&mut self.lost).for_each(|age| age.confirm(now));
    }

    /// What counts beside evidence of a revision.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub(super) fn beside(&mut self, revision: u64, now: Instant) -> Result<Beside, Unknown> {
        self.tidy(now);
        if self.lost.is_some() {
            return Err(Unknown::TooMuch);
        }
        if revision < self.forgotten {
            return Err(Unknown::Before(self.forgotten));
        }
        let counting = self.by_name.values().flatten().filter(|passed| passed.counts(revision));
        Ok(Beside { written: counting.map(|passed| passed.written.clone()).collect(), change: self.changes })
    }

    /// Forgets what the hub has shown for a while, and what it would have shown by now.
    fn tidy(&mut self, now: Instant) {
        if self.lost.is_some_and(|age| age.is_over(now)) {
            self.lost = None;
        }
        let is_shown = |passed: &Passed| {
            passed.arrived.is_some_and(|arrived| now.saturating_duration_since(arrived) >= MADE_BEFORE)
        };
        let (number, bytes, forgotten, changes) =
            (&mut self.number, &mut self.bytes, &mut self.forgotten, &mut self.changes);
        self.by_name.retain(|_, all| {
            all.retain(|passed| {
                if is_shown(passed) {
                    *forgotten = (*forgotten).max(passed.until.unwrap_or_default());
                } else if !passed.age.is_over(now) {
                    return true;
                }
                *number -= 1;
                *bytes -= passed.bytes;
                *changes += 1;
                false
            });
            !all.is_empty()
        });
    }

    fn remove_where(&mut self, key: &Key, is_removed: impl Fn(&Passed) -> bool) {
        let Some(all) = self.by_name.get_mut(key) else { return };
        let (number, bytes) = (&mut self.number, &mut self.bytes);
        all.retain(|passed| {
            let stays = !is_removed(passed);
            if !stays {
                *number -= 1;
                *bytes -= passed.bytes;
            }
            stays
        });
        if all.is_empty() {
            self.by_name.remove(key);
        }
    }
}

/// A row without what the API server writes anew each time that the same is created.
fn timeless(row: &Value) -> Value {
    let mut row = row.clone();
    // Rows that are no objects of the API have these as facts.
    let is_fact = row.get("apiVersion").is_none();
    if let Some(facts) = row.as_object_mut().filter(|_| is_fact) {
        ["uid", "created"].iter().for_each(|name| drop(facts.remove(*name)));
    }
    if let Some(metadata) = row.get_mut("metadata").and_then(Value::as_object_mut) {
        ["uid", "creationTimestamp", "resourceVersion", "generation"]
            .iter()
            .for_each(|name| drop(metadata.remove(*name)));
    }
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(name: &str) -> Key {
        (String::new(), name.to_owned())
    }

    fn row(name: &str, set: &str, uid: &str) -> Value {
        json!({"apiVersion": "v1", "metadata": {"name": name, "uid": uid, "creationTimestamp": uid, "labels": {"set": set}}})
    }

    /// Notes that an object is created.
    fn create(passed: &mut PassedWrites, name: &str, set: &str, uid: &str, there: Option<&str>, now: Instant) {
        let written = Written { row: row(name, set, uid), before: None };
        passed.add(key(name), Write::Create { uid: uid.to_owned() }, written, there, now);
    }

    /// Notes that an object is moved to another set.
    fn update(passed: &mut PassedWrites, name: &str, set: &str, version: u64, now: Instant) {
        let written = Written { row: row(name, set, "u"), before: Some(row(name, "before", "u")) };
        passed.add(key(name), Write::Update { uid: "u".to_owned(), version }, written, Some("u"), now);
    }

    /// The names and sets that count beside evidence of a revision.
    fn beside(passed: &mut PassedWrites, revision: u64, now: Instant) -> Vec<String> {
        let text = |row: &Value, pointer: &str| row.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let name = |row: &Value| format!("{}/{}", text(row, "/metadata/name"), text(row, "/metadata/labels/set"));
        let beside = passed.beside(revision, now).unwrap();
        beside.written.iter().map(|written| name(&written.row)).collect()
    }

    #[test]
    fn what_was_let_pass_counts_until_it_arrives_and_longer_beside_what_was_made_before() {
        let (mut passed, now) = (PassedWrites::default(), Instant::now());
        create(&mut passed, "a", "s", "1", None, now);
        assert_eq!(beside(&mut passed, 7, now), ["a/s"]);
        passed.see(&key("b"), "9", 20, 8, now);
        assert_eq!(beside(&mut passed, 8, now), ["a/s"]);
        passed.see(&key("a"), "1", 21, 9, now);
        assert_eq!(beside(&mut passed, 9, now), Vec::<String>::new());
        assert_eq!(beside(&mut passed, 8, now), ["a/s"]);
        // Once it is forgotten, nothing that was made before may be used.
        let later = now + MADE_BEFORE;
        assert_eq!(passed.beside(8, later).err(), Some(Unknown::Before(9)));
        assert_eq!((beside(&mut passed, 9, later).len(), passed.number, passed.bytes), (0, 0, 0));
    }

    #[test]
    fn what_never_arrives_counts_until_it_would_have() {
        let (mut passed, now) = (PassedWrites::default(), Instant::now());
        create(&mut passed, "a", "s", "1", None, now);
        // That time goes by says nothing while the hub cannot be followed.
        let lost = now + 10 * COMES;
        assert_eq!(beside(&mut passed, 7, lost), ["a/s"]);
        passed.confirm(now + COMES.saturating_sub(SECOND));
        assert_eq!(beside(&mut passed, 7, lost), ["a/s"]);
        passed.confirm(lost);
        // A watch that stands again tells what happened before.
        assert_eq!(beside(&mut passed, 7, lost + SECOND), ["a/s"]);
        assert_eq!(beside(&mut passed, 7, lost + BEHIND), Vec::<String>::new());
        assert_eq!((passed.number, passed.bytes), (0, 0));
    }

    #[test]
    fn whoever_comes_again_takes_no_second_place() {
        let (mut passed, now) = (PassedWrites::default(), Instant::now());
        create(&mut passed, "a", "s", "1", None, now);
        create(&mut passed, "a", "s", "2", None, now + SECOND);
        assert_eq!((beside(&mut passed, 7, now), passed.number), (vec!["a/s".to_owned()], 1));
        // Whichever is stored: something else takes nothing away from what was let pass before.
        create(&mut passed, "a", "t", "3", None, now);
        assert_eq!(beside(&mut passed, 7, now), ["a/s", "a/t"]);
        passed.see(&key("a"), "1", 20, 8, now);
        assert_eq!(beside(&mut passed, 8, now), Vec::<String>::new());
        assert_eq!(beside(&mut passed, 7, now), ["a/s", "a/t"]);
        // Somebody else has the name by now, and evidence that was made before does not know.
        create(&mut passed, "c", "s", "1", None, now);
        passed.see(&key("c"), "9", 21, 9, now);
        create(&mut passed, "c", "s", "2", Some("9"), now);
        assert_eq!((beside(&mut passed, 8, now), beside(&mut passed, 9, now).len()), (vec!["c/s".to_owned()], 0));
        for version in [20, 20, 21] {
            update(&mut passed, "b", "s", version, now);
        }
        assert_eq!(beside(&mut passed, 9, now), ["b/s", "b/s"]);
    }

    #[test]
    fn what_is_there_already_is_not_created_until_it_is_gone() {
        let (mut passed, now) = (PassedWrites::default(), Instant::now());
        create(&mut passed, "a", "s", "1", Some("0"), now);
        create(&mut passed, "a", "t", "2", Some("0"), now);
        assert_eq!((beside(&mut passed, 7, now).len(), passed.number), (0, 1));
        // The one that is there changes, and goes.
        passed.see(&key("a"), "0", 20, 8, now);
        passed.miss(&key("a"), "0", 9, now);
        assert_eq!(beside(&mut passed, 9, now), ["a/t"]);
        assert_eq!(passed.beside(8, now).err(), Some(Unknown::Before(9)));
        passed.see(&key("a"), "2", 22, 10, now);
        assert_eq!(beside(&mut passed, 10, now), Vec::<String>::new());
        // Of a list the same is read.
        create(&mut passed, "b", "s", "1", Some("0"), now);
        passed.see_all(&Objects::default(), 11, now);
        assert_eq!(beside(&mut passed, 11, now), ["b/s"]);
        passed.see_all(&Objects::default(), 12, now);
        assert_eq!(beside(&mut passed, 12, now), ["b/s"], "a list may be older than what was let pass");
    }

    #[test]
    fn a_change_counts_until_a_later_version_arrives_or_the_object_is_gone() {
        let (mut passed, now) = (PassedWrites::default(), Instant::now());
        update(&mut passed, "a", "s", 20, now);
        passed.see(&key("a"), "u", 20, 8, now);
        assert_eq!(beside(&mut passed, 8, now), ["a/s"]);
        passed.see(&key("a"), "u", 21, 9, now);
        assert_eq!(beside(&mut passed, 9, now), Vec::<String>::new());
        update(&mut passed, "b", "s", 20, now);
        // One that had the name before is gone.
        passed.miss(&key("b"), "former", 10, now);
        assert_eq!(beside(&mut passed, 10, now), ["b/s"]);
        passed.miss(&key("b"), "u", 10, now);
        assert_eq!(beside(&mut passed, 10, now), Vec::<String>::new());
    }

    #[test]
    fn where_more_is_let_pass_than_is_kept_nobody_can_tell_until_it_has_arrived() {
        let (mut passed, now) = (PassedWrites::default(), Instant::now());
        for number in 0..MOST {
            create(&mut passed, &format!("a{number}"), "s", "1", None, now);
        }
        assert_eq!(beside(&mut passed, 7, now).len(), MOST);
        create(&mut passed, "more", "s", "1", None, now);
        assert_eq!(passed.beside(7, now).err(), Some(Unknown::TooMuch));
        passed.confirm(now + COMES);
        assert_eq!(beside(&mut passed, 7, now + COMES + BEHIND), Vec::<String>::new());
        // By their size, too.
        let large = json!({"metadata": {"name": "large"}, "text": "x".repeat(MOST_BYTES / 2)});
        for name in ["l1", "l2"] {
            passed.add(
                key(name),
                Write::Create { uid: String::new() },
                Written { row: large.clone(), before: None },
                None,
                now,
            );
        }
        assert_eq!(passed.beside(7, now).err(), Some(Unknown::TooMuch));
    }
}
