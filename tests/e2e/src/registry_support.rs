//! A real registry, CNCF Distribution, as a process of this machine.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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
        let program = control_plane::go_program(PACKAGE, VERSION).unwrap();
        fs::create_dir_all(folder).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
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
