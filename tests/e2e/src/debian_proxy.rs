//! A real proxy, Debian's Apache, as processes of this machine: of it only the configuration is ours.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// Where Debian keeps the modules of Apache.
const MODULES: &str = "/usr/lib/apache2/modules";
/// Those that a proxy for CONNECT needs.
const MODULE_NAMES: [&str; 9] = [
    "mpm_event",
    "authn_core",
    "authn_file",
    "authz_core",
    "authz_user",
    "auth_basic",
    "proxy",
    "proxy_connect",
    "ssl",
];
/// What it calls itself, at each port: it would ask a resolver for its names otherwise.
const NAME: &str = "proxy.example";
/// `cli_tests::proxy::CREDENTIALS`, as a line of htpasswd.
const PASSWORDS: &str = "me:{SHA}fdelIxnoA+u5XvroexGn/fpQrno=\n";
/// How long it may take to listen; on an idle machine it takes a thirtieth of a second.
const READY: Duration = Duration::from_secs(30);
/// How often it is started: somebody else may take a port between the look and the start.
const STARTS: u32 = 5;

/// A port at which the proxy listens, and what it asks of clients there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// HTTP, for everybody.
    Plain,
    /// HTTP over TLS, for everybody.
    Tls,
    /// HTTP, for whoever shows the password.
    Password,
    /// HTTP over TLS, for whoever shows the password.
    TlsPassword,
}

impl Listener {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Tls, Self::Password, Self::TlsPassword];

    /// Whether clients open TLS.
    pub fn has_tls(self) -> bool {
        matches!(self, Self::Tls | Self::TlsPassword)
    }

    /// Whether clients have to show a user name and a password.
    pub fn wants_password(self) -> bool {
        matches!(self, Self::Password | Self::TlsPassword)
    }
}

/// The proxy, which ends with this, and its logs with it.
#[derive(Debug)]
pub struct DebianProxy {
    child: Child,
    folder: TempDir,
    /// Host and port, of each listener.
    addresses: Vec<(Listener, String)>,
    authority: String,
}

impl DebianProxy {
    /// Starts it at an address of this machine. The package is installed where it is missing.
    pub fn start(address: Ipv4Addr) -> Self {
        let program = control_plane::proxy_program(&control_plane::print).unwrap();
        let folder = tempfile::tempdir().unwrap();
        // Started by root it works as another user, who reads the passwords.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
        let passwords = folder.path().join("passwords");
        fs::write(&passwords, PASSWORDS).unwrap();
        fs::set_permissions(&passwords, Permissions::from_mode(0o644)).unwrap();
        let authority = write_certificate(address, folder.path());
        for _ in 0..STARTS {
            let addresses = free(address);
            fs::write(folder.path().join("apache2.conf"), configuration(folder.path(), &addresses)).unwrap();
            let mut child = launch(&program, folder.path());
            if is_ready(&mut child, folder.path()) {
                return Self { child, folder, addresses, authority };
            }
        }
        let said = ["output", "error.log"].map(|log| fs::read_to_string(folder.path().join(log)).unwrap_or_default());
        panic!("the proxy does not start: {}", said.concat());
    }

    /// Host and port of a listener.
    pub fn address(&self, listener: Listener) -> &str {
        self.addresses.iter().find(|(one, _)| *one == listener).map(|(_, address)| address.as_str()).unwrap()
    }

    /// The URL of a listener, with these credentials: `USER:PASSWORD@`, or none.
    pub fn url(&self, listener: Listener, credentials: &str) -> String {
        let scheme = if listener.has_tls() { "https" } else { "http" };
        format!("{scheme}://{credentials}{}", self.address(listener))
    }

    /// The certificate, as PEM, of the authority that vouches for it.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The servers to which it has been asked to connect by those whom it lets in, from its log of errors: that tells of a
    /// connection when it begins.
    pub fn connected(&self, listener: Listener) -> Vec<String> {
        let begin = format!("{} AH01019: connecting ", self.address(listener));
        let lines = self.lines("error.log", &begin);
        lines.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    /// Status and request of every connection that has ended, from its log of accesses: `200 CONNECT HOST:PORT HTTP/1.1`.
    pub fn answers(&self, listener: Listener) -> Vec<String> {
        self.lines("access.log", &format!("{} ", self.address(listener)))
    }

    /// The lines of a log that begin so, without the beginning.
    fn lines(&self, log: &str, begin: &str) -> Vec<String> {
        let text = fs::read(self.folder.path().join(log)).unwrap();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter_map(|line| line.strip_prefix(begin)).map(str::to_owned).collect()
    }
}

impl Drop for DebianProxy {
    fn drop(&mut self) {
        // The whole group: the processes that serve are children of the one that was started.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of this address for each listener, all of them free.
fn free(address: Ipv4Addr) -> Vec<(Listener, String)> {
    // Held together, so that no two are the same.
    let held = Listener::ALL.map(|listener| (listener, TcpListener::bind((address, 0)).unwrap()));
    held.iter().map(|(listener, port)| (*listener, port.local_addr().unwrap().to_string())).collect()
}

/// Writes a certificate for the address, and returns that of the authority that has signed it.
fn write_certificate(address: Ipv4Addr, folder: &Path) -> String {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "Debian's proxy");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![address.to_string()]).unwrap().signed_by(&key, &issuer).unwrap();
    fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    authority
}

/// What Apache reads.
fn configuration(folder: &Path, addresses: &[(Listener, String)]) -> String {
    let folder = folder.display();
    let modules = MODULE_NAMES.map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"));
    // A thread serves one connection; those of agents stay open, and may be silent for long.
    let mut text = modules.concat()
        + &format!(
            "ServerRoot {folder}\n\
             ServerName {NAME}\n\
             PidFile {folder}/pid\n\
             Mutex file:{folder}\n\
             User www-data\n\
             Group www-data\n\
             ServerLimit 1\n\
             StartServers 1\n\
             ThreadsPerChild 64\n\
             MaxRequestWorkers 64\n\
             Timeout 600\n\
             ErrorLog {folder}/error.log\n\
             LogLevel warn proxy_connect:debug\n\
             ErrorLogFormat \"%A %M\"\n\
             CustomLog {folder}/access.log \"%A:%{{local}}p %>s %r\"\n"
        );
    for (listener, address) in addresses {
        text += &format!("Listen {address}\n<VirtualHost {address}>\nServerName {NAME}\n");
        text += "ProxyRequests On\nAllowCONNECT 1-65535\n";
        if listener.has_tls() {
            text +=
                &format!("SSLEngine on\nSSLCertificateFile {folder}/tls.crt\nSSLCertificateKeyFile {folder}/tls.key\n");
        }
        let clients = if listener.wants_password() {
            let provider = "AuthType Basic\nAuthName proxy\nAuthBasicProvider file\n";
            format!("{provider}AuthUserFile {folder}/passwords\nRequire valid-user\n")
        } else {
            "Require all granted\n".to_owned()
        };
        text += &format!("<Proxy *>\n{clients}</Proxy>\n</VirtualHost>\n");
    }
    text
}

/// Starts Apache in a group of its own. It ends when the thread of the test does, however that ends.
fn launch(program: &Path, folder: &Path) -> Child {
    let output = File::create(folder.join("output")).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(program).args(["-D", "FOREGROUND", "-f"]);
    command.arg(folder.join("apache2.conf")).process_group(0).stdin(Stdio::null());
    command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap()
}

/// Whether it listens; if not, it has ended. It listens at every port before it writes the file with its number.
fn is_ready(child: &mut Child, folder: &Path) -> bool {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if folder.join("pid").exists() {
            return true;
        }
        assert!(begun.elapsed() < READY, "the proxy does not listen");
        sleep(Duration::from_millis(20));
    }
    false
}
