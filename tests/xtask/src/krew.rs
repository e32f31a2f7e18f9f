//! Installs what was packed with the real krew, and uses it as a person would.

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, thread};

use flate2::Compression;

use crate::archive;

/// Packs binaries, installs them from an index and from an archive, runs every verb through kubectl, and uninstalls them.
///
/// # Errors
/// What did not go as it must.
pub fn smoke(binaries: &Path, kubectl: &Path) -> Result<(), String> {
    let room =
        tempfile::Builder::new().prefix("ocm-krew-").tempdir().map_err(|error| format!("a directory: {error}"))?;
    let packages = room.path().join("packages");
    let archive = archive::archive(binaries, &packages, Compression::fast())?;
    let first = fs::read(&archive).map_err(|error| error.to_string())?;
    if fs::read(archive::archive(binaries, &packages, Compression::fast())?).map_err(|error| error.to_string())?
        != first
    {
        return Err("packing the same binaries twice gives two different archives".to_owned());
    }
    let repository = serve(first).map_err(|error| format!("serving the archive: {error}"))?;
    let index = room.path().join("index");
    let plugins = index.join("plugins");
    // As in this repository: folders of crates beside the manifest.
    fs::create_dir_all(plugins.join("kubectl-ocm")).map_err(|error| error.to_string())?;
    let manifest = plugins.join("ocm.yaml");
    fs::write(&manifest, archive::manifest(&packages, &repository)?).map_err(|error| error.to_string())?;
    let git = |words: &[&str]| {
        let author = ["-c", "user.name=ocm", "-c", "user.email=ocm@example.com"];
        run(Command::new("git").arg("-C").arg(&index).args(author).args(words)).map(drop)
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "index"])?;

    let krew = Krew { program: build(room.path())?, root: room.path().join("root"), kubectl };
    krew.krew(&["index", "add", "ocm", &index.display().to_string()])?;
    krew.krew(&["install", "--no-update-index", "ocm/ocm"])?;
    krew.verbs()?;
    krew.krew(&["uninstall", "ocm"])?;
    krew.is_gone()?;
    let manifest = format!("--manifest={}", manifest.display());
    krew.krew(&["install", &manifest, &format!("--archive={}", archive.display())])?;
    krew.verbs()?;
    krew.krew(&["uninstall", "ocm"])?;
    krew.is_gone()
}

/// Where git and what else krew runs is.
const SYSTEM: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"];

/// Whether the table of `kubectl ocm version` has a binary of this name below a folder. A note may stand behind its path.
fn names(versions: &str, folder: &Path, file: &str) -> bool {
    let words = versions.lines().flat_map(str::split_whitespace).map(Path::new);
    words.into_iter().any(|path| path.starts_with(folder) && path.file_name().is_some_and(|name| name == file))
}

/// An empty krew of its own.
struct Krew<'a> {
    program: PathBuf,
    root: PathBuf,
    kubectl: &'a Path,
}

impl Krew<'_> {
    fn krew(&self, words: &[&str]) -> Result<String, String> {
        println!("$ kubectl krew {}", words.join(" "));
        let mut command = Command::new(&self.program);
        command.args(words).env("KREW_ROOT", &self.root).env("KREW_NO_UPGRADE_CHECK", "1").env("PATH", self.path());
        run(&mut command)
    }

    fn ocm(&self, words: &[&str]) -> Result<String, String> {
        run(Command::new(self.kubectl).arg("ocm").args(words).env("PATH", self.path()))
    }

    /// Nothing is left of the package where krew has put it. What kubectl says would not tell: every mistake is an error there.
    fn is_gone(&self) -> Result<(), String> {
        let left = [self.root.join("bin/kubectl-ocm"), self.root.join("store/ocm")]
            .into_iter()
            .find(|path| path.symlink_metadata().is_ok());
        left.map_or(Ok(()), |left| Err(format!("{} is still there after krew uninstall", left.display())))
    }

    /// PATH as krew tells people to set it, of the system's folders alone: a kubectl ocm that this machine has is not meant.
    fn path(&self) -> OsString {
        let own = [Some(self.root.join("bin")), self.kubectl.parent().map(Path::to_path_buf)];
        env::join_paths(own.into_iter().flatten().chain(SYSTEM.map(PathBuf::from))).unwrap_or_default()
    }

    /// Every verb answers, from the place to which krew has brought it.
    fn verbs(&self) -> Result<(), String> {
        let versions = self.ocm(&["version"])?;
        // As the dispatcher tells it: symbolic links resolved.
        let store = self.root.join("store").canonicalize().map_err(|error| format!("the store of krew: {error}"))?;
        for name in cli_tests::binaries() {
            let file = cli_tests::file_name(&name);
            if !names(&versions, &store, &file) {
                return Err(format!("kubectl ocm version does not name {file} in the store:\n{versions}"));
            }
            let Some(verb) = name.strip_prefix("kubectl-ocm-") else { continue };
            let help = self.ocm(&[verb, "--help"])?;
            if !help.contains(&format!("kubectl ocm {verb}")) {
                return Err(format!("kubectl ocm {verb} --help does not show how it is called:\n{help}"));
            }
            println!("$ kubectl ocm {verb} --help: ok");
        }
        self.completes()
    }

    /// kubectl's own completion finds the words, by a link as the caveats of the package tell people to make it.
    fn completes(&self) -> Result<(), String> {
        let link = self.root.join("bin").join(archive::COMPLETER);
        std::os::unix::fs::symlink("kubectl-ocm", &link).map_err(|error| format!("{}: {error}", link.display()))?;
        for (words, expected) in [
            (&["tok"][..], "token\t"),
            (&["get", "clus"][..], "clusters\t"),
            (&["get", "clusters", "--wat"][..], "--watch\t"),
        ] {
            let mut command = Command::new(self.kubectl);
            let answer = run(command.args(["__complete", "ocm"]).args(words).env("PATH", self.path()))?;
            if !answer.lines().any(|line| line.starts_with(expected)) {
                return Err(format!("kubectl does not complete {}: {answer}", words.join(" ")));
            }
            println!("$ kubectl __complete ocm {}: ok", words.join(" "));
        }
        fs::remove_file(&link).map_err(|error| format!("{}: {error}", link.display()))
    }
}

/// krew of the pinned version.
fn build(room: &Path) -> Result<PathBuf, String> {
    let program = room.join("krew");
    let mut command = control_plane::go_tool().map_err(|error| error.to_string())?;
    command.arg("build").args(control_plane::GO_FLAGS).args(["-mod=readonly", "-ldflags", "-s -w", "-o"]).arg(&program);
    command.arg("sigs.k8s.io/krew/cmd/krew").current_dir(cli_tests::root().join("krew"));
    run(&mut command)?;
    Ok(program)
}

/// Answers every request with the archive, for as long as this process lives; returns the address of the server.
fn serve(archive: Vec<u8>) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The request fits into one segment; which file it names does not matter.
            let mut request = [0; 4096];
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", archive.len());
            let _ = stream
                .read(&mut request)
                .and_then(|_| stream.write_all(head.as_bytes()))
                .and_then(|()| stream.write_all(&archive));
        }
    });
    Ok(format!("http://{address}/kubectl-ocm"))
}

/// Runs a command; returns its stdout, or what went wrong.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {}: {error}", command.get_program().display()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    Err(format!(
        "{} {} failed ({}): {said}{}",
        command.get_program().display(),
        words.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_not_taken_for_another_whose_name_begins_alike() {
        let store = Path::new("/krew/store");
        let table = "VERB  VERSION  BINARY\nget  1  /krew/store/ocm/v1/kubectl-ocm-get\nocm  1  /usr/bin/kubectl-ocm (another version)\n";
        assert!(names(table, store, "kubectl-ocm-get"));
        assert!(!names(table, store, "kubectl-ocm"));
    }

    #[test]
    fn what_is_left_after_an_uninstall_is_found() {
        let room = tempfile::tempdir().expect("a directory");
        let krew = Krew { program: PathBuf::new(), root: room.path().to_owned(), kubectl: Path::new("kubectl") };
        assert_eq!(krew.is_gone(), Ok(()));
        fs::create_dir_all(room.path().join("bin")).expect("a directory");
        // krew leaves a link: it may point nowhere.
        std::os::unix::fs::symlink("nowhere", room.path().join("bin/kubectl-ocm")).expect("a link");
        assert!(krew.is_gone().is_err_and(|why| why.contains("bin/kubectl-ocm")));
    }
}
