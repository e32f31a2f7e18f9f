//! The images of OCM: one image with one layer that holds every binary, under all the names that OCM asks for.
//!
//! Importing and unpacking half a gigabyte takes seconds, so it is done once, into a store in the cache that every
//! cluster is shown without copying it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use ring::digest::{Context, SHA256};
use rustix::mount::MountFlags;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::binaries::{OCM, go_architecture, minor_before};
use crate::cache::{cache, digest, hex, lock, remove_entries};
use crate::config;
use crate::error::{Error, Trying as _};
use crate::progress::{Observer, Progress};
use crate::run::{last_lines, run, tail};

/// The images that OCM asks for; they may be one and the same.
const NAMES: [&str; 5] = ["registration-operator", "registration", "work", "placement", "addon-manager"];

/// Releases of OCM hold a client-go whose informers do not stream lists (feature `WatchListClient`, on since 0.35). Ours holds
/// that of the pinned Kubernetes, and lists that come over gRPC, as `pkg/registration/register/grpc` has them, end without the
/// bookmark for which it would wait.
///
/// As to garbage see [`config::GARBAGE`].
const ENVIRONMENT: [&str; 3] = ["PATH=/", "KUBE_FEATURE_WatchListClient=false", "GOGC=400"];

/// One image to put into the store.
#[derive(Serialize, Deserialize)]
struct Image {
    names: Vec<String>,
    user: String,
    command: Vec<String>,
    /// Path in the image, and the file on this machine.
    files: Vec<(String, PathBuf)>,
}

/// What the verb `images` is asked for.
#[derive(Serialize, Deserialize)]
struct Wanted {
    root: PathBuf,
    images: Vec<Image>,
}

/// The names under which OCM of this version finds its images, and those of the minor release before, which are the same:
/// upgrades between two releases roll real pods although there are binaries of one.
pub(crate) fn names(version: &str) -> Vec<String> {
    let versions = [Some(version.to_owned()), minor_before(version)].into_iter().flatten();
    versions.flat_map(|version| NAMES.map(|name| format!("quay.io/open-cluster-management/{name}:{version}"))).collect()
}

/// The programs of upstream's base image (`ubi9/ubi-micro`) that our commands use.
const SHELL: [&str; 3] = ["bash", "cat", "sleep"];

/// This machine's shell and a few programs, with the libraries that they are linked to.
fn shell() -> Result<Vec<(String, PathBuf)>, Error> {
    let mut files = BTreeMap::new();
    for name in SHELL {
        let file = Path::new("/bin").join(name);
        let linked = run(Command::new("ldd").arg(&file))?;
        let libraries = linked.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
        files.extend(libraries.chain([file]).map(|file| (file.display().to_string().split_off(1), file)));
    }
    Ok(files.into_iter().collect())
}

/// The store that holds the pause image and, when a version is given, OCM; made when it is not in the cache yet.
pub(crate) fn store(
    tool: &Path,
    binaries: &BTreeMap<String, PathBuf>,
    version: Option<&str>,
    observe: Observer<'_>,
) -> Result<PathBuf, Error> {
    let file = |name: &str| {
        binaries.get(name).cloned().ok_or_else(|| Error::host(format!("the binary {name} is missing for the images")))
    };
    let mut images = vec![Image {
        names: vec![config::PAUSE.into()],
        user: "65535".into(),
        command: vec!["/pause".into()],
        files: vec![("pause".into(), file("pause")?)],
    }];
    if let Some(version) = version {
        let files = OCM.iter().map(|name| Ok(((*name).to_owned(), file(name)?))).collect::<Result<Vec<_>, Error>>()?;
        let files = files.into_iter().chain(shell()?).collect();
        images.push(Image { names: names(version), user: "10001".into(), command: Vec::new(), files });
    }
    let containerd = run(Command::new("containerd").arg("--version"))?;
    let mut key = format!("3 {containerd} {ENVIRONMENT:?}");
    for (_, file) in images.iter().flat_map(|image| &image.files) {
        let meta = fs::metadata(file).trying(|| format!("looking at {}", file.display()))?;
        key.push_str(&format!("{} {} {} {}\n", file.display(), meta.len(), meta.mtime(), meta.mtime_nsec()));
    }
    key.push_str(version.unwrap_or_default());
    let cache = cache()?;
    let done = cache.join(format!("images-{}", digest(&[key.as_bytes()])));
    if let Ok(used) = File::open(&done) {
        let _ = used.set_modified(SystemTime::now());
        return Ok(done);
    }
    let waiting = "waiting for another run that prepares the images of the test clusters";
    let _lock = lock(&cache.join("images.lock"), waiting, observe)?;
    if done.is_dir() {
        return Ok(done);
    }
    remove_entries(&cache, ".images-", Duration::ZERO);
    // Each is a gigabyte. One that a running cluster shows was used when that started.
    remove_entries(&cache, "images-", Duration::from_secs(14 * 24 * 3600));
    observe(Progress::Said("preparing the images of the test clusters (once for these binaries) …"));
    let begun = Instant::now();
    let work = tempfile::Builder::new().prefix(".images-").tempdir_in(&cache).trying(|| "making a directory".into())?;
    let root = work.path().join("root");
    let wanted =
        serde_json::to_string(&Wanted { root: root.clone(), images }).map_err(|e| Error::host(e.to_string()))?;
    run(Command::new("unshare")
        .args(["--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--"])
        .arg(tool)
        .args(["images", &wanted]))?;
    fs::rename(&root, &done).trying(|| format!("moving the images to {}", done.display()))?;
    observe(Progress::Said(&format!("prepared the images in {:.0} s", begun.elapsed().as_secs_f32())));
    Ok(done)
}

/// The verb `images`: fills an image store, in namespaces of its own, with a containerd that ends afterwards.
pub(crate) fn fill(wanted: &str) -> Result<(), Error> {
    let wanted: Wanted =
        serde_json::from_str(wanted).map_err(|e| Error::host(format!("reading what images are wanted failed: {e}")))?;
    rustix::mount::mount("tmpfs", "/run", "tmpfs", MountFlags::empty(), Some(c"mode=0755"))
        .trying(|| "mounting /run".into())?;
    let (settings, log) = (Path::new("/run/containerd.toml"), Path::new("/run/containerd.log"));
    let text = config::containerd(&wanted.root.display().to_string(), "/run/containerd", "/run/containerd.sock", None);
    fs::write(settings, text).trying(|| "writing the configuration of containerd".into())?;
    let output = File::create(log).trying(|| "creating the log of containerd".into())?;
    let mut containerd = Command::new("containerd")
        .arg("--config")
        .arg(settings)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .spawn()
        .trying(|| "starting containerd".into())?;
    let begun = Instant::now();
    while !fs::read_to_string(log).is_ok_and(|text| text.contains("containerd successfully booted")) {
        let ended = containerd.try_wait().trying(|| "waiting for containerd".into())?.is_some();
        if ended || begun.elapsed() > Duration::from_secs(30) {
            return Err(Error::host(format!("containerd does not start: {}", tail(log, 5))));
        }
        sleep(Duration::from_millis(10));
    }
    for image in &wanted.images {
        import(image)?;
        name_by_digest(image)?;
    }
    // Its databases are complete only after it has ended well.
    if let Some(pid) = Pid::from_raw(containerd.id().cast_signed()) {
        rustix::process::kill_process(pid, Signal::TERM).trying(|| "ending containerd".into())?;
    }
    containerd.wait().trying(|| "waiting for containerd".into())?;
    Ok(())
}

/// Streams an image into containerd; an archive on disk would be the third copy of half a gigabyte.
fn import(image: &Image) -> Result<(), Error> {
    let mut counted = Counted { size: 0, digest: Context::new(&SHA256) };
    write_layer(image, &mut counted).trying(|| "reading the files of an image".into())?;
    let layer = hex(counted.digest.finish().as_ref());
    let config = json!({
        "architecture": go_architecture(), "os": "linux",
        "config": {"User": image.user, "Env": ENVIRONMENT, "Cmd": image.command, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created_by": "kubectl-ocm test clusters"}],
    })
    .to_string();
    let name = hex(ring::digest::digest(&SHA256, config.as_bytes()).as_ref());
    let manifest = json!([{
        "Config": format!("{name}.json"), "RepoTags": image.names, "Layers": [format!("{layer}/layer.tar")],
    }])
    .to_string();
    let mut ctr = images_of_containerd()
        .args(["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .trying(|| "starting ctr".into())?;
    let written = ctr.stdin.take().map(|pipe| {
        let mut out = io::BufWriter::with_capacity(1 << 20, pipe);
        for (entry, text) in [(format!("{name}.json"), &config), ("manifest.json".into(), &manifest)] {
            entry_head(&mut out, &entry, 0o644, text.len() as u64, b'0')?;
            out.write_all(text.as_bytes())?;
            pad(&mut out, text.len() as u64)?;
        }
        entry_head(&mut out, &format!("{layer}/layer.tar"), 0o644, counted.size, b'0')?;
        write_layer(image, &mut out)?;
        pad(&mut out, counted.size)?;
        out.write_all(&[0; 1024])?;
        out.flush()
    });
    let done = ctr.wait_with_output().trying(|| "waiting for ctr".into())?;
    if !done.status.success() {
        let why = last_lines(&String::from_utf8_lossy(&done.stderr), 5);
        return Err(Error::host(format!("containerd does not take the images: {why}")));
    }
    written.transpose().trying(|| "writing the images".into())?;
    Ok(())
}

/// Gives an image names with its digest, too: pods that pin it find it without a registry.
fn name_by_digest(image: &Image) -> Result<(), Error> {
    let Some(first) = image.names.first() else { return Ok(()) };
    let listed = run(images_of_containerd().args(["ls", &format!("name=={first}")]))?;
    let digest = listed.split_whitespace().find(|word| word.starts_with("sha256:"));
    let digest = digest.ok_or_else(|| Error::host(format!("containerd tells no digest of {first}: {listed}")))?;
    let repositories: BTreeSet<&str> =
        image.names.iter().filter_map(|name| name.rsplit_once(':')).map(|(repository, _)| repository).collect();
    for repository in repositories {
        run(images_of_containerd().args(["tag", first, &format!("{repository}@{digest}")]))?;
    }
    Ok(())
}

/// The command that works on the images of the containerd of this store.
fn images_of_containerd() -> Command {
    let mut ctr = Command::new("ctr");
    ctr.args(["-a", "/run/containerd.sock", "-n", "k8s.io", "images"]);
    ctr
}

/// Measures what is written.
struct Counted {
    size: u64,
    digest: Context,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.size += bytes.len() as u64;
        self.digest.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_layer(image: &Image, out: &mut impl Write) -> io::Result<()> {
    entry_head(out, "tmp/", 0o1777, 0, b'5')?;
    entry_head(out, "etc/", 0o755, 0, b'5')?;
    let users = "root:x:0:0::/:/\nnonroot:x:10001:10001::/tmp:/\n";
    entry_head(out, "etc/passwd", 0o644, users.len() as u64, b'0')?;
    out.write_all(users.as_bytes())?;
    pad(out, users.len() as u64)?;
    for (path, file) in &image.files {
        let mut source = File::open(file)?;
        let size = source.metadata()?.len();
        entry_head(out, path, 0o755, size, b'0')?;
        let copied = io::copy(&mut source, out)?;
        if copied != size {
            return Err(io::Error::other(format!("{} changed while it was read", file.display())));
        }
        pad(out, size)?;
    }
    out.write_all(&[0; 1024])
}

/// The header of one entry of a tar archive; everything belongs to root and to no point in time, so that the same
/// files give the same image.
fn entry_head(out: &mut impl Write, name: &str, mode: u32, size: u64, kind: u8) -> io::Result<()> {
    let mut head = [0_u8; 512];
    let mut put = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
    if name.len() > 99 {
        return Err(io::Error::other(format!("the name {name} is too long for an archive")));
    }
    put(0, name);
    put(100, &format!("{mode:07o}"));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, "00000000000");
    put(148, "        ");
    put(257, "ustar\u{0}00");
    head[156] = kind;
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\u{0} ").as_bytes());
    out.write_all(&head)
}

/// Entries begin at multiples of 512 bytes.
fn pad(out: &mut impl Write, size: u64) -> io::Result<()> {
    let rest = (512 - (size % 512) as usize) % 512;
    out.write_all(&[0_u8; 512][..rest])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_the_names_of_two_releases() {
        let names = names("v1.2.0");
        assert_eq!(names.len(), 10);
        assert!(names.contains(&"quay.io/open-cluster-management/work:v1.2.0".to_owned()));
        assert!(names.contains(&"quay.io/open-cluster-management/work:v1.1.0".to_owned()));
        assert_eq!(minor_before("v1.10.3-rc.1").as_deref(), Some("v1.9.0"));
        assert_eq!((minor_before("v1.0.1"), minor_before("main")), (None, None));
    }
}
