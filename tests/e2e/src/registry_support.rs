//! A real registry, CNCF Distribution, as a process of this machine.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What is built of it, and its version.
const PACKAGE: &str = "github.com/distribution/distribution/v3/cmd/registry";
const VERSION: &str = "v3.1.2";
/// How long it may take to listen.
const READY: Duration = Duration::from_secs(30);

/// The user whom a registry with passwords knows, and the password.
pub const USER: (&str, &str) = ("puller", "pull-secret");
/// The same as a line of htpasswd.
const PASSWORDS: &str = "puller:$2y$05$abcdefghijklmnopqrstuuiuhH7Ikupt0NZBlrLOsxuBkm7D98a7C\n";

/// A registry, which ends with this.
pub struct Registry {
    child: Child,
    /// Host and port.
    pub address: String,
    folder: PathBuf,
}

impl Registry {
    /// Starts one that keeps what it is given in a folder. With `passwords` it knows one user and nobody else.
    pub fn start(folder: &Path, passwords: bool) -> Self {
        Self::start_at("127.0.0.1", folder, passwords)
    }

    /// The same at another address of this machine.
    pub fn start_at(host: &str, folder: &Path, passwords: bool) -> Self {
        let program = control_plane::go_program(PACKAGE, VERSION).unwrap();
        fs::create_dir_all(folder).unwrap();
        let address = TcpListener::bind((host, 0)).unwrap().local_addr().unwrap().to_string();
        let mut config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: {address:?}}}\n",
            folder.display()
        );
        if passwords {
            let file = folder.join("htpasswd");
            fs::write(&file, PASSWORDS).unwrap();
            config += &format!("auth: {{htpasswd: {{realm: tests, path: {}}}}}\n", file.display());
        }
        let file = folder.join("config.yml");
        fs::write(&file, config).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let registry = Self { child: command.spawn().unwrap(), address, folder: folder.to_owned() };
        let begun = Instant::now();
        while TcpStream::connect(&registry.address).is_err() {
            assert!(begun.elapsed() < READY, "the registry does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        registry
    }

    /// Puts all that is in an archive, an OCI image layout, into a repository under a tag. What the registry calls it: the
    /// digest of its index.
    pub fn push(&self, archive: &Path, repository: &str, tag: &str) -> String {
        let layout = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(layout.path());
        assert!(tar.status().unwrap().success(), "{}", archive.display());
        let blob = |descriptor: &Value| {
            let (_, hex) = descriptor["digest"].as_str().unwrap().split_once(':').unwrap();
            layout.path().join("blobs/sha256").join(hex)
        };
        let top = document(&layout.path().join("index.json"));
        let index = &top["manifests"][0];
        for descriptor in items(&document(&blob(index))["manifests"]) {
            let manifest = document(&blob(descriptor));
            for part in items(&manifest["layers"]).iter().chain([&manifest["config"]]) {
                self.upload(&blob(part), repository, part["digest"].as_str().unwrap());
            }
            self.name(&blob(descriptor), repository, descriptor["digest"].as_str().unwrap(), descriptor);
        }
        self.name(&blob(index), repository, tag, index)
    }

    /// Puts a layer or a configuration into a repository.
    fn upload(&self, file: &Path, repository: &str, digest: &str) {
        let begin = format!("http://{}/v2/{repository}/blobs/uploads/", self.address);
        let answer = curl(&["--data", "", &begin]);
        let place = header(&answer, "location");
        curl(&["--upload-file", file.to_str().unwrap(), &format!("{place}&digest={digest}")]);
    }

    /// Puts a manifest into a repository under a tag, or only under its digest; returns its digest.
    fn name(&self, file: &Path, repository: &str, word: &str, descriptor: &Value) -> String {
        let media_type = format!("Content-Type: {}", descriptor["mediaType"].as_str().unwrap());
        let place = format!("http://{}/v2/{repository}/manifests/{word}", self.address);
        let answer = curl(&["--header", &media_type, "--upload-file", file.to_str().unwrap(), &place]);
        header(&answer, "docker-content-digest").to_owned()
    }

    /// Has it hand out other bytes for a blob, as somebody does who gets at its disk.
    pub fn tamper(&self, sha256: &str, bytes: &[u8]) {
        let blobs = self.folder.join("docker/registry/v2/blobs/sha256");
        let file = blobs.join(&sha256[..2]).join(sha256).join("data");
        assert!(file.is_file(), "{}", file.display());
        fs::write(file, bytes).unwrap();
    }

    /// Ends it.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a server answers, with its headers.
fn curl(arguments: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--include", "--noproxy", "*"]).args(arguments);
    let done = curl.output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// The value of a header.
fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let headers = answer.lines().filter_map(|line| line.split_once(": "));
    headers.filter(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value).next().unwrap()
}

fn document(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().unwrap()
}
