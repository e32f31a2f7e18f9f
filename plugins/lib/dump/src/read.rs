//! From what was named to clusters that answer.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use jiff::SignedDuration;
use kube::Client;
use ocm_core::order;
use ocm_core::{Failure, Hint, Remedy, Role};
use ocm_kube::Cluster;
use ocm_net::Way;
use tar::{Archive, EntryType, PaxExtensions};

use crate::document::{Unread, documents};
use crate::layout::{Place, place};
use crate::open::{Content, Input, LARGEST, Side, too_large};
use crate::room::ROOM;
use crate::server::Server;
use crate::store::Store;
use crate::times::Seen;

/// The most that an archive may unpack to: bytes. Most of a must-gather are logs, which are passed over.
const UNPACKED: u64 = 8 << 30;
/// The most that is read of a folder or an archive: bytes of files with objects.
const READ: u64 = 256 << 20;
/// How many files a folder or an archive may have.
const FILES: usize = 500_000;
/// How deep folders may be.
const DEPTH: usize = 32;
/// How many objects a dump may have.
const OBJECTS: usize = 200_000;
/// How much is kept of the end of a log: bytes.
const LOG: usize = 4 << 10;
/// How much the name of a file in an archive may have: bytes.
const NAME: u64 = 64 << 10;
/// By how much two dumps may be apart before that is worth a word.
const APART: SignedDuration = SignedDuration::from_mins(10);

/// Dumps as clusters.
pub struct Dump {
    /// The hub.
    pub hub: Option<Cluster>,
    /// The managed cluster.
    pub managed: Option<Cluster>,
    /// The managed clusters that can be asked for by name, where these may not be all; empty: ask for all.
    pub clusters: Vec<String>,
    /// What tells the time of the dump.
    pub clock: String,
    /// What whoever reads the report has to know of how the dump was read.
    pub notes: Vec<Hint>,
}

/// Reads dumps. Several of one cluster are joined. To be called within a runtime, for clients need one.
///
/// # Errors
/// A usage failure: one cannot be read, is too large, shows neither side or two clusters, or shows no time.
pub fn read(inputs: Vec<Input>) -> Result<Dump, Failure> {
    let Sides { hub, managed, mut notes } = sides(inputs)?;
    let newest = |side: &Option<Named>| side.as_ref().and_then(|side| side.store.times.newest().cloned());
    let (of_hub, of_managed) = (newest(&hub), newest(&managed));
    if let (Some(hub), Some(managed)) = (&of_hub, &of_managed)
        && hub.time.duration_since(managed.time).abs() > APART
    {
        let note = format!(
            "the dumps are of different times, the hub's of {} and the managed cluster's of {}: what has changed between \
             them looks like a contradiction",
            hub.time, managed.time
        );
        notes.push(note.into());
    }
    // As where clusters are looked at, the hub's clock counts.
    let Some(Seen { time, place }) = of_hub.or(of_managed) else {
        return Err(Failure::usage("the dump shows no time, and how old anything is cannot be told")
            .hint("dump whole objects, as kubectl get -o yaml prints them"));
    };
    let clusters =
        hub.as_ref().map(|hub| hub.store.clusters()).map(|(names, is_whole)| if is_whole { Vec::new() } else { names });
    let serve = |side: Named, role: Role| {
        let server = Server { store: Arc::new(side.store), now: time };
        Cluster {
            client: Client::new(server, "default"),
            context: None,
            server: side.name,
            namespace: "default".to_owned(),
            ca: None,
            insecure: false,
            tls_server_name: None,
            proxy: None,
            way: Way::Direct,
            role,
        }
    };
    Ok(Dump {
        hub: hub.map(|side| serve(side, Role::Hub)),
        managed: managed.map(|side| serve(side, Role::Target)),
        clusters: clusters.unwrap_or_default(),
        clock: format!("{time}, the newest time that the dump shows: {place}"),
        notes,
    })
}

/// What one of the sides shows.
struct Named {
    name: String,
    store: Store,
}

impl Named {
    /// Takes another dump of the same side.
    fn join(self, other: Self) -> Result<Self, Failure> {
        let (one, two) = (&self.name, &other.name);
        let two_clusters =
            |why: String| Failure::usage(format!("{one} and {two} show two clusters: {why}")).hint(Remedy::NameSides);
        let mut store = self.store;
        let name = format!("{one}, {two}");
        store.merge(other.store).map_err(two_clusters)?;
        Ok(Self { name, store })
    }
}

#[derive(Default)]
struct Sides {
    hub: Option<Named>,
    managed: Option<Named>,
    notes: Vec<Hint>,
}

impl Sides {
    fn add(&mut self, side: Side, dump: Named) -> Result<(), Failure> {
        let slot = match side {
            Side::Hub => &mut self.hub,
            Side::Managed => &mut self.managed,
        };
        *slot = Some(match slot.take() {
            Some(known) => known.join(dump)?,
            None => dump,
        });
        Ok(())
    }
}

/// Which side each dump shows: what was said, or what its objects tell. Those that tell nothing belong to the others.
fn sides(inputs: Vec<Input>) -> Result<Sides, Failure> {
    let mut sides = Sides::default();
    let mut open = Vec::new();
    let mut kept = 0;
    for input in inputs {
        let given = input.side;
        let dump = load(input, kept, &mut sides.notes)?;
        kept += dump.store.room();
        let side = match (given, dump.store.is_hub(), dump.store.is_managed()) {
            (Some(side), ..) => Some(side),
            // A hub may manage itself, or other clusters for which it runs agents.
            (None, true, is_managed) => {
                if is_managed {
                    let note = format!("{} shows a hub that has a Klusterlet, too: it was read as a hub", dump.name);
                    sides.notes.extend([Hint::from(note), Remedy::ReadAsManaged(dump.name.clone()).into()]);
                }
                Some(Side::Hub)
            }
            (None, false, true) => Some(Side::Managed),
            (None, false, false) => None,
        };
        match side {
            Some(side) => sides.add(side, dump)?,
            None => open.push(dump),
        }
    }
    for dump in open {
        let name = &dump.name;
        let hint = Remedy::NameSide(name.clone());
        let side = match (&sides.hub, &sides.managed) {
            (Some(_), None) => Side::Hub,
            (None, Some(_)) => Side::Managed,
            (None, None) => {
                return Err(Failure::usage(format!("{name} shows neither a hub nor a managed cluster")).hint(hint));
            }
            (Some(_), Some(_)) => {
                return Err(
                    Failure::usage(format!("{name} does not show of which of the two clusters it is")).hint(hint)
                );
            }
        };
        sides.add(side, dump)?;
    }
    let objects = [&sides.hub, &sides.managed].into_iter().flatten().map(|side| side.store.len()).sum::<usize>();
    if objects > OBJECTS {
        return Err(Failure::usage(format!("the dump has {objects} objects, and at most {OBJECTS} are read")));
    }
    Ok(sides)
}

/// Reads one dump, beside others that take so many bytes of memory.
fn load(input: Input, others: usize, notes: &mut Vec<Hint>) -> Result<Named, Failure> {
    let Input { name, content, .. } = input;
    let mut tree = Tree { name: name.clone(), kept: others, ..Tree::default() };
    match content {
        Content::Text(text) => {
            let mut store = Store::default();
            let found = documents(&text, tree.left()).map(|documents| {
                documents.into_iter().map(|document| store.add(document, &Place::Plain)).sum::<usize>()
            });
            let why = match found {
                Ok(0) if store.len() == 0 && !store.is_hub() => "there is no object in it".to_owned(),
                Ok(_) => return Ok(Named { name, store }),
                Err(why @ Unread::NoRoom) => return Err(tree.failure(why)),
                Err(Unread::Form(why)) => why,
            };
            return Err(Failure::usage(format!(
                "{name} is neither a bundle of kubectl ocm troubleshoot nor a dump of objects"
            ))
            .because(why)
            .hint(Remedy::WriteBundle)
            .hint(Remedy::DumpObjects));
        }
        Content::Folder(folder) => tree.folder(&folder, &mut Vec::new())?,
        Content::Archive(reader) => tree.archive(reader)?,
    }
    tree.end(notes)
}

/// A folder or an archive while it is read.
#[derive(Default)]
struct Tree {
    name: String,
    /// By the folder that the layout of a must-gather begins in: there is one for each image that gathered.
    stores: BTreeMap<String, Store>,
    files: usize,
    read: u64,
    /// How many objects are kept.
    objects: usize,
    /// How much memory these take, and those of the other dumps: bytes.
    kept: usize,
    links: usize,
    unreadable: usize,
    /// Which was the first that could not be read, and why.
    first: Option<String>,
}

impl Tree {
    fn failure(&self, why: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("cannot read {}", self.name)).because(why)
    }

    /// How much memory what is read next may take: bytes.
    fn left(&self) -> usize {
        ROOM.saturating_sub(self.kept)
    }

    /// Counts a file.
    fn count(&mut self) -> Result<(), Failure> {
        self.files += 1;
        if self.files > FILES {
            return Err(self.failure(format!("it has more than {FILES} files")));
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Path, parts: &mut Vec<String>) -> Result<(), Failure> {
        if parts.len() >= DEPTH {
            return Err(self.failure(format!("its folders are more than {DEPTH} deep")));
        }
        let mut entries = fs::read_dir(folder)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map_err(|error| self.failure(format!("{}: {error}", folder.display())))?;
        order::sort_by_key(&mut entries, fs::DirEntry::file_name);
        for entry in entries {
            self.count()?;
            let path = entry.path();
            // Of the entry itself: links are not followed.
            let kind = entry.file_type().map_err(|error| self.failure(format!("{}: {error}", path.display())))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            parts.push(name);
            if kind.is_dir() {
                self.folder(&path, parts)?;
            } else if kind.is_symlink() {
                self.links += 1;
            } else if kind.is_file() {
                let names: Vec<&str> = parts.iter().map(String::as_str).collect();
                if let Some(found) = place(&names) {
                    let mut file =
                        fs::File::open(&path).map_err(|error| self.failure(format!("{}: {error}", path.display())))?;
                    self.file(&names, found, &mut file)?;
                }
            }
            parts.pop();
        }
        Ok(())
    }

    fn archive(&mut self, reader: Box<dyn Read + Send>) -> Result<(), Failure> {
        let mut archive = Archive::new(Bounded { reader, left: UNPACKED });
        let name = self.name.clone();
        let failed = move |error: io::Error| Failure::usage(format!("cannot read {name}")).because(error);
        // Long names come in entries of their own, which the library would read however long they are.
        let entries = archive.entries().map_err(&failed)?.raw(true);
        let mut long: Option<Vec<u8>> = None;
        for entry in entries {
            let mut entry = entry.map_err(&failed)?;
            self.count()?;
            match entry.header().entry_type() {
                EntryType::GNULongName => {
                    let mut name = self.short(&mut entry)?;
                    while name.last() == Some(&0) {
                        name.pop();
                    }
                    long = Some(name);
                }
                EntryType::XHeader => {
                    let head = self.short(&mut entry)?;
                    let path = PaxExtensions::new(&head).flatten().find(|one| one.key_bytes() == b"path");
                    long = path.map(|path| path.value_bytes().to_vec()).or(long);
                }
                EntryType::Regular | EntryType::Continuous => {
                    let path = long.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                    let path = String::from_utf8_lossy(&path).into_owned();
                    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
                    if parts.contains(&"..") {
                        return Err(self.failure("one of its files has a name that leads out of it"));
                    }
                    if let Some(found) = place(&parts) {
                        self.file(&parts, found, &mut entry)?;
                    }
                }
                kind => {
                    long = None;
                    self.links += usize::from(kind.is_symlink() || kind.is_hard_link());
                }
            }
        }
        Ok(())
    }

    /// An entry that tells about the next one.
    fn short(&self, entry: &mut impl Read) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        entry.take(NAME + 1).read_to_end(&mut bytes).map_err(|error| self.failure(error))?;
        match bytes.len() as u64 > NAME {
            true => Err(self.failure(format!("one of its files has a name of more than {} KiB", NAME >> 10))),
            false => Ok(bytes),
        }
    }

    /// Takes a file that is read.
    fn file(&mut self, parts: &[&str], (place, root): (Place, usize), reader: &mut dyn Read) -> Result<(), Failure> {
        let path = parts.join("/");
        let root = parts[..root].join("/");
        if let Place::Log(name) = place {
            let text = end(reader).map_err(|error| self.failure(format!("{path}: {error}")))?;
            self.takes(path.len() + text.len())?;
            self.store(root).add_log(name, text);
            return Ok(());
        }
        let mut text = Vec::new();
        reader.take(LARGEST + 1).read_to_end(&mut text).map_err(|error| self.failure(format!("{path}: {error}")))?;
        if text.len() as u64 > LARGEST {
            self.unread(&path, &too_large());
            return Ok(());
        }
        // Where objects stand is kept, too.
        self.takes(path.len() + text.len())?;
        if place == Place::Timestamp {
            self.store(root).times.take_timestamp(&String::from_utf8_lossy(&text));
            return Ok(());
        }
        match documents(&text, self.left()) {
            Ok(documents) => {
                let store = self.store(root);
                let (objects, room) = (store.len(), store.room());
                for document in documents {
                    store.add(document, &place);
                }
                let (more, now) = (store.len().saturating_sub(objects), store.room());
                self.objects += more;
                self.kept = (self.kept + now).saturating_sub(room);
            }
            Err(why @ Unread::NoRoom) => return Err(self.failure(format!("{path}: {why}"))),
            Err(Unread::Form(why)) => self.unread(&path, &why),
        }
        if self.objects > OBJECTS {
            return Err(self.failure(format!("it has more than {OBJECTS} objects")));
        }
        Ok(())
    }

    /// Counts what is kept of files.
    fn takes(&mut self, bytes: usize) -> Result<(), Failure> {
        self.read += bytes as u64;
        match self.read > READ {
            true => {
                Err(self
                    .failure(format!("its objects and logs are more than {} MiB, the most that is read", READ >> 20)))
            }
            false => Ok(()),
        }
    }

    fn store(&mut self, root: String) -> &mut Store {
        self.stores.entry(root).or_default()
    }

    fn unread(&mut self, path: &str, why: &str) {
        self.unreadable += 1;
        self.first.get_or_insert_with(|| format!("{path}: {why}"));
    }

    /// All of it, as one cluster.
    fn end(self, notes: &mut Vec<Hint>) -> Result<Named, Failure> {
        let Self { name, stores, links, unreadable, first, .. } = self;
        if links > 0 {
            notes.push(format!("{links} of the files of {name} are links, which are not followed").into());
        }
        if let Some(first) = first {
            let note = format!("{unreadable} of the files of {name} cannot be read, of which the first is {first}");
            notes.push(note.into());
        }
        let mut joined = Store::default();
        for (_, mut store) in stores {
            store.finish();
            joined
                .merge(store)
                .map_err(|why| Failure::usage(format!("{name} shows two clusters: {why}")).hint(Remedy::NameFolders))?;
        }
        if joined.len() == 0 {
            return Err(Failure::usage(format!("{name} is no must-gather: there is no object in it that is read"))
                .hint("its layout has the directories cluster-scoped-resources and namespaces"));
        }
        Ok(Named { name, store: joined })
    }
}

/// The last lines of a log.
fn end(reader: &mut dyn Read) -> io::Result<String> {
    let (mut kept, mut buffer, mut is_cut) = (Vec::new(), vec![0; 64 << 10], false);
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        kept.extend_from_slice(&buffer[..read]);
        if kept.len() > LOG {
            kept.drain(..kept.len() - LOG);
            is_cut = true;
        }
    }
    let text = String::from_utf8_lossy(&kept);
    // Half a credential is not recognised any more: a line that was cut is left out.
    let whole = if is_cut { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
    Ok(whole.to_owned())
}

/// A reader that fails where an archive unpacks to more than is read.
struct Bounded<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other(format!("it unpacks to more than {} GiB, the most that is read", UNPACKED >> 30))
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::kind::{CLUSTERS, KLUSTERLETS, LEASES};
    use crate::layout::LogName;
    use crate::open::open;

    const HUB: &str = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: cluster.open-cluster-management.io/v1\n  kind: \
                       ManagedCluster\n  metadata: {name: c1, creationTimestamp: '2026-03-01T12:00:00Z'}\n";
    const MANAGED: &str =
        "apiVersion: operator.open-cluster-management.io/v1\nkind: Klusterlet\nmetadata: {name: klusterlet}\n";
    const LEASE: &str = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: l, namespace: ns}\n";

    struct Files(tempfile::TempDir);

    impl Files {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(folder)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn sides(&self, named: &[(Option<Side>, &str)]) -> Result<Sides, Failure> {
            sides(named.iter().map(|(side, name)| open(*side, &self.path(name)).unwrap()).collect())
        }
    }

    fn why(sides: Result<Sides, Failure>) -> String {
        sides.err().map(|failure| failure.to_string()).unwrap_or_default()
    }

    #[test]
    fn objects_tell_which_side_a_dump_shows() {
        let files = Files::new(&[("hub", HUB), ("managed", MANAGED), ("other", LEASE)]);
        let sides = files.sides(&[(None, "managed"), (None, "hub")]).unwrap();
        assert!(sides.hub.unwrap().store.knows(&CLUSTERS, None));
        assert!(sides.managed.unwrap().store.get(&KLUSTERLETS, None, "klusterlet").unwrap().is_some());
        // What tells nothing belongs to what does.
        let sides = files.sides(&[(None, "other"), (None, "hub")]).unwrap();
        assert!(sides.managed.is_none() && sides.hub.unwrap().store.get(&LEASES, Some("ns"), "l").unwrap().is_some());
        assert!(why(files.sides(&[(None, "other")])).ends_with("shows neither a hub nor a managed cluster"));
        let all = [(None, "hub"), (None, "managed"), (None, "other")];
        assert!(why(files.sides(&all)).ends_with("does not show of which of the two clusters it is"));
        let told = [(None, "hub"), (None, "managed"), (Some(Side::Managed), "other")];
        assert!(files.sides(&told).unwrap().managed.unwrap().store.get(&LEASES, Some("ns"), "l").unwrap().is_some());
        let both = Files::new(&[("both", &format!("{HUB}---\n{MANAGED}"))]);
        let sides = both.sides(&[(None, "both")]).unwrap();
        assert!(sides.hub.is_some() && sides.managed.is_none());
        assert_eq!(sides.notes[1..], [Hint::from(Remedy::ReadAsManaged(both.path("both").display().to_string()))]);
    }

    #[test]
    fn what_is_no_dump_is_said_so() {
        let files =
            Files::new(&[("text", "canary"), ("empty", "{\"kind\": \"List\"}"), ("bad", "a: [canary"), ("f/x", "")]);
        for (name, said) in [
            ("text", "there is no object in it"),
            ("empty", "there is no object in it"),
            ("bad", "it is not YAML as kubectl writes it"),
            ("f", "is no must-gather: there is no object in it that is read"),
        ] {
            let why = why(files.sides(&[(None, name)]));
            assert!(why.contains(said) && !why.contains("canary"), "{name}: {why}");
        }
    }

    const CLUSTER: &str =
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: c1, uid: '1'}\n";
    const OF_CLUSTER: &str = "cluster-scoped-resources/cluster.open-cluster-management.io/managedclusters/c1.yaml";

    #[test]
    fn folders_of_several_images_are_one_cluster_and_links_are_not_followed() {
        let files = Files::new(&[
            (&format!("mg/image-sha256-1/{OF_CLUSTER}"), CLUSTER),
            ("mg/image-sha256-2/namespaces/ns/coordination.k8s.io/leases.yaml", LEASE),
            ("mg/image-sha256-2/timestamp", "2026-03-01 12:00:00 +0000 UTC m=+0\n"),
            ("mg/image-sha256-2/namespaces/ns/core/secrets.yaml", "a: [canary"),
            ("elsewhere.yaml", MANAGED),
        ]);
        std::os::unix::fs::symlink(files.path("elsewhere.yaml"), files.path("mg/link.yaml")).unwrap();
        let sides = files.sides(&[(None, "mg")]).unwrap();
        let store = sides.hub.unwrap().store;
        assert!(store.knows(&CLUSTERS, None) && !store.is_managed());
        assert!(store.get(&LEASES, Some("ns"), "l").unwrap().is_some());
        assert_eq!(store.times.newest().unwrap().place, "the file timestamp");
        let notes = format!("{:?}", sides.notes);
        assert!(notes.contains("1 of the files of") && notes.contains("links, which are not followed"), "{notes}");
        assert!(notes.contains("secrets.yaml: it is not YAML") && !notes.contains("canary"), "{notes}");
        // Two clusters in one folder.
        let other = CLUSTER.replace("'1'", "'2'");
        let files = Files::new(&[(&format!("mg/a/{OF_CLUSTER}"), CLUSTER), (&format!("mg/b/{OF_CLUSTER}"), &other)]);
        assert!(why(files.sides(&[(None, "mg")])).contains("shows two clusters: ManagedCluster c1 has another UID"));
    }

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o600);
            if name.len() < 100 {
                // As it is: the library would refuse names that lead out.
                header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
                header.set_cksum();
                builder.append(&header, text.as_bytes()).unwrap();
            } else {
                builder.append_data(&mut header, name, text.as_bytes()).unwrap();
            }
        }
        builder.into_inner().unwrap()
    }

    fn of_archive(bytes: &[u8]) -> Result<Sides, Failure> {
        let files = Files::new(&[]);
        fs::write(files.path("mg.tar"), bytes).unwrap();
        files.sides(&[(None, "mg.tar")])
    }

    #[test]
    fn archives_are_read_as_folders_are_also_compressed_and_with_long_names() {
        let long = format!("must-gather/{}/{OF_CLUSTER}", "sha256-".repeat(30));
        let log = "must-gather/namespaces/n/pods/p/c/c/logs/current.log";
        let bytes = archive(&[(&long, CLUSTER), (log, "2026-03-01T12:00:00Z x\n"), ("must-gather/other.bin", "\0")]);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, &bytes).unwrap();
        for bytes in [bytes, gzip.finish().unwrap()] {
            let store = of_archive(&bytes).unwrap().hub.unwrap().store;
            assert!(store.knows(&CLUSTERS, None));
            assert_eq!(store.times.newest().unwrap().place, "the log of n/p");
        }
    }

    #[test]
    fn all_files_of_all_dumps_share_one_bound_of_memory() {
        let files = Files::new(&[("hub", HUB), ("mg/hub.yaml", HUB), ("mg/more.yaml", &HUB.replace("c1", "c2"))]);
        let load = |name: &str, others: usize| load(open(None, &files.path(name)).unwrap(), others, &mut Vec::new());
        let kept = load("mg", 0).unwrap().store.room();
        assert!(kept > 0 && load("hub", 0).unwrap().store.room() < kept);
        // Reading a list takes more than is kept of it.
        assert!(load("mg", ROOM - 2 * kept).is_ok());
        for name in ["mg", "hub"] {
            let why = load(name, ROOM - kept / 2).err().unwrap();
            assert!(why.causes.concat().contains("take more than 1 GiB of memory together"), "{name}: {why}");
        }
        let mut tree = Tree::default();
        for (number, text) in [HUB, &HUB.replace("c1", "c2"), HUB].into_iter().enumerate() {
            tree.file(&[&format!("{number}.yaml")], (Place::Plain, 0), &mut text.as_bytes()).unwrap();
        }
        assert_eq!((tree.kept, tree.objects), (kept, 2), "what replaces another takes its place");
        // Names of folders are kept as long as what is in them.
        let mut tree = Tree { read: READ - 100, ..Tree::default() };
        let long = "x".repeat(100);
        assert!(tree.file(&[&long, "a.yaml"], (Place::Plain, 1), &mut &b""[..]).is_err());
    }

    #[test]
    fn hostile_archives_are_refused_with_a_sentence() {
        let outside = archive(&[("../../etc/hosts.yaml", CLUSTER)]);
        assert!(why(of_archive(&outside)).ends_with("one of its files has a name that leads out of it"));
        let name = "x".repeat(usize::try_from(NAME).unwrap() + 2);
        let long = archive(&[(&format!("{name}/a.yaml"), CLUSTER)]);
        assert!(why(of_archive(&long)).ends_with("one of its files has a name of more than 64 KiB"));
        let mut cut = archive(&[(OF_CLUSTER, CLUSTER)]);
        cut.truncate(600);
        assert!(why(of_archive(&cut)).contains("cannot read"));
        let mut bounded = Bounded { reader: io::repeat(0), left: 10 };
        let mut buffer = [0; 8];
        assert_eq!(bounded.read(&mut buffer).unwrap(), 8);
        assert!(bounded.read(&mut buffer).unwrap_err().to_string().starts_with("it unpacks to more than 8 GiB"));
        let mut tree = Tree { files: FILES, ..Tree::default() };
        assert!(tree.count().unwrap_err().to_string().contains("it has more than 500000 files"));
        let mut tree = Tree { read: READ, ..Tree::default() };
        let place = || (Place::Plain, 0);
        assert!(tree.file(&["a.yaml"], place(), &mut CLUSTER.as_bytes()).unwrap_err().to_string().contains("256 MiB"));
        let mut tree = Tree { read: READ, ..Tree::default() };
        let log =
            LogName { namespace: "n".to_owned(), pod: "p".to_owned(), container: "c".to_owned(), is_previous: false };
        let whole = tree.file(&["current.log"], (Place::Log(log), 0), &mut &b"a line\n"[..]);
        assert!(whole.unwrap_err().to_string().contains("256 MiB"), "logs are kept, too");
        let mut tree = Tree { objects: OBJECTS, ..Tree::default() };
        assert!(
            tree.file(&["a.yaml"], place(), &mut CLUSTER.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("200000 objects")
        );
        let mut tree = Tree::default();
        tree.file(&["a.yaml"], place(), &mut io::repeat(b' ').take(LARGEST + 1)).unwrap();
        assert!(tree.first.unwrap().contains("larger than 64 MiB"));
    }

    #[test]
    fn of_a_log_whole_lines_are_kept() {
        let line = "2026-03-01T12:00:00Z a word\n";
        let text = line.repeat(1000);
        let kept = end(&mut text.as_bytes()).unwrap();
        assert!(kept.len() < LOG && kept.starts_with("2026") && kept.ends_with("word\n"));
        assert_eq!(end(&mut "x".repeat(LOG * 2).as_bytes()).unwrap(), "");
        assert_eq!(end(&mut line.as_bytes()).unwrap(), line);
    }
}
