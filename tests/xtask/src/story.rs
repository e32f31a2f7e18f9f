//! The story that the demo tells and the benchmark measures: every step is a command that a person could type, run by a
//! real kubectl that finds our binaries on PATH.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use control_plane::Cluster;
use serde_json::{Value, json};

/// A cluster to be joined: its name on the hub and its context.
#[derive(Clone, Debug)]
pub struct Managed {
    /// The name on the hub.
    pub name: String,
    /// The context in the kubeconfig.
    pub context: String,
}

/// Where the story is played.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The kubeconfig; none: the user's own.
    pub kubeconfig: Option<PathBuf>,
    /// The folder of our binaries.
    pub commands: PathBuf,
    /// The real kubectl.
    pub kubectl: PathBuf,
    /// The hub's context.
    pub hub: String,
    /// The release of Open Cluster Management that is installed; none: the commands' own default.
    pub bundle: Option<String>,
    /// Whether commands are shown before they run, and what they say.
    pub loud: bool,
}

/// What a hub hands out to those who join.
#[derive(Clone, Debug)]
pub struct JoinCommand(Value);

/// Who holds a token of the hub may join with some names, and nobody has to type anything.
const POLICY: &str = "\
apiVersion: policy.kubectl-ocm.dev/v1alpha1
kind: HubPolicy
metadata:
  name: known-clusters
spec:
  module:
    builtin: allowed-identities
  autoApprove: true
  settings:
    rules:
    - operations: [join]
      serviceAccounts: [open-cluster-management/agent-registration-bootstrap]
      names: [c3, shop-*]
";

impl Scene {
    /// Runs a command line; its first word is `kubectl`.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(&self, words: &[&str]) -> Result<(), String> {
        self.play(words, &[], false).map(drop)
    }

    /// Runs a command line and returns its stdout.
    ///
    /// # Errors
    /// When it fails.
    pub fn read(&self, words: &[&str], secrets: &[&str]) -> Result<String, String> {
        self.play(words, secrets, true)
    }

    fn play(&self, words: &[&str], secrets: &[&str], capture: bool) -> Result<String, String> {
        let shown = shown(words, secrets);
        if self.loud {
            println!("\n$ {shown}");
        }
        let mut command = self.command();
        command.args(words.iter().skip(1));
        if capture || !self.loud {
            command.stdout(Stdio::piped());
        }
        if !self.loud {
            command.stderr(Stdio::piped());
        }
        let done = command.spawn().and_then(|child| child.wait_with_output());
        let done = done.map_err(|error| format!("cannot start kubectl: {error}"))?;
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            let code = done.status.code().map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            return Err(format!("`{shown}` ended with {code}{}{why}", if why.is_empty() { "" } else { ": " }));
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// The real kubectl, with our binaries on PATH.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("PATH", self.path()).stdin(Stdio::null());
        if let Some(file) = &self.kubeconfig {
            command.env("KUBECONFIG", file);
        }
        command
    }

    /// PATH with our binaries and kubectl in front.
    pub fn path(&self) -> OsString {
        let own = [Some(self.commands.as_path()), self.kubectl.parent()];
        let own = own.into_iter().flatten().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_path_buf);
        let path = env::var_os("PATH").unwrap_or_default();
        let folders: Vec<_> = own.chain(env::split_paths(&path)).collect();
        env::join_paths(folders).unwrap_or(path)
    }

    /// The flag that names the release; none: the commands' own default.
    fn release(&self) -> Vec<&str> {
        self.bundle.as_deref().map_or_else(Vec::new, |bundle| vec!["--bundle-version", bundle])
    }

    /// Makes the hub.
    ///
    /// # Errors
    /// When the command fails.
    pub fn install(&self) -> Result<(), String> {
        let mut words = vec!["kubectl", "ocm", "install", "hub", "--context", &self.hub];
        words.extend(self.release());
        words.push("--wait");
        self.run(&words)
    }

    /// Asks the hub for a token.
    ///
    /// # Errors
    /// When the command fails, or does not answer with a document.
    pub fn join_command(&self) -> Result<JoinCommand, String> {
        let text = self.read(&["kubectl", "ocm", "token", "create", "--context", &self.hub, "-o", "json"], &[])?;
        let join_command: Value =
            serde_json::from_str(&text).map_err(|error| format!("what token create said: {error}"))?;
        if self.loud {
            println!("(a token for {}; not shown)", join_command["hub-apiserver"].as_str().unwrap_or("the hub"));
        }
        Ok(JoinCommand(join_command))
    }

    /// Joins a cluster with what the hub handed out: what somebody does who has no access to the hub.
    ///
    /// # Errors
    /// When the command fails, or the document lacks something.
    pub fn join(&self, managed: &Managed, join_command: &JoinCommand) -> Result<(), String> {
        let value = |key: &str| join_command.0[key].as_str().filter(|value| !value.is_empty());
        let needed = |key: &str| value(key).ok_or_else(|| format!("token create -o json has no {key:?}"));
        let (token, server) = (needed("hub-token")?, needed("hub-apiserver")?);
        let mut words = vec!["kubectl", "ocm", "join", &managed.name, "--context", &managed.context];
        words.extend(["--hub-token", token, "--hub-apiserver", server]);
        // The CA itself works with every hub; a pin only where the hub presents or publishes its CA; and a hub that the
        // system's own authorities vouch for has neither.
        match (value("hub-ca-data"), value("hub-ca-pin")) {
            (Some(data), _) => words.extend(["--hub-ca-data", data]),
            (None, Some(pin)) => words.extend(["--hub-ca-pin", pin]),
            (None, None) => {}
        }
        words.extend(self.release());
        words.push("--wait");
        self.play(&words, &[token], false).map(drop)
    }

    /// Lets a cluster in.
    ///
    /// # Errors
    /// When the command fails.
    pub fn accept(&self, managed: &Managed) -> Result<(), String> {
        let words = ["kubectl", "ocm", "accept", &managed.name, "--context", &self.hub, "--wait", "--yes"];
        self.run(&words)
    }

    /// Joins and accepts in one, with access to both clusters.
    ///
    /// # Errors
    /// When the command fails.
    pub fn join_with_both_kubeconfigs(&self, managed: &Managed) -> Result<(), String> {
        let mut words = vec!["kubectl", "ocm", "join", &managed.name, "--context", &managed.context];
        words.extend(["--hub-context", &self.hub, "--accept"]);
        words.extend(self.release());
        words.push("--wait");
        self.run(&words)
    }

    /// Shows where all clusters of the hub stand.
    ///
    /// # Errors
    /// When the command fails.
    pub fn clusters(&self) -> Result<(), String> {
        self.run(&["kubectl", "ocm", "get", "clusters", "--context", &self.hub])
    }

    /// Has the hub decide by policies.
    ///
    /// # Errors
    /// When the command fails.
    pub fn install_policy_engine(&self, image: &str) -> Result<(), String> {
        self.run(&["kubectl", "ocm", "install", "policy-engine", "--context", &self.hub, "--image", image, "--wait"])
    }

    /// Writes a policy that lets clusters of some names in, and applies it.
    ///
    /// # Errors
    /// When the file cannot be written, or the command fails.
    pub fn apply_policy(&self, folder: &Path) -> Result<(), String> {
        let file = folder.join("known-clusters.yaml");
        fs::write(&file, POLICY).map_err(|error| format!("{}: {error}", file.display()))?;
        if self.loud {
            println!("\n$ cat known-clusters.yaml\n{}", POLICY.trim_end());
        }
        let file = file.display().to_string();
        self.run(&["kubectl", "ocm", "policy", "apply", "-f", &file, "--context", &self.hub, "--wait"])
    }

    /// What somebody tries who got hold of the token: to be accepted at once, which the hub refuses, and to register a
    /// cluster that no policy names, which waits for a person.
    ///
    /// # Errors
    /// When the hub does anything else.
    pub fn attack(&self, join_command: &JoinCommand, folder: &Path) -> Result<(), String> {
        let value = |key: &str| join_command.0[key].as_str().unwrap_or_default();
        let stranger = folder.join("stranger.kubeconfig");
        let authority = folder.join("stranger-ca.crt");
        let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", value("hub-ca-data"));
        fs::write(&authority, pem).map_err(|error| format!("{}: {error}", authority.display()))?;
        let view = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "hub",
            "clusters": [{ "name": "hub", "cluster": {
                "server": value("hub-apiserver"), "certificate-authority": authority.display().to_string(),
            }}],
            "users": [{ "name": "stranger", "user": { "token": value("hub-token") } }],
            "contexts": [{ "name": "hub", "context": { "cluster": "hub", "user": "stranger" } }],
        });
        write_private(&stranger, &view.to_string()).map_err(|error| format!("{}: {error}", stranger.display()))?;
        let accepted = self.create_as(&stranger, folder, "c4", true)?;
        let waiting = self.create_as(&stranger, folder, "payments", false)?;
        let _ = fs::remove_file(&stranger);
        let _ = fs::remove_file(&authority);
        if accepted || !waiting {
            return Err("the hub does not tell a stranger's registrations apart".to_owned());
        }
        self.run(&["kubectl", "ocm", "policy", "explain", "payments", "--context", &self.hub])
    }

    /// Whether the hub lets somebody register a cluster. Whatever else keeps it from being registered is an error.
    fn create_as(&self, who: &Path, folder: &Path, name: &str, accepted: bool) -> Result<bool, String> {
        let file = folder.join(format!("{name}.yaml"));
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": { "name": name }, "spec": { "hubAcceptsClient": accepted },
        });
        fs::write(&file, cluster.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
        let (text, who) = (file.display().to_string(), who.display().to_string());
        let words = ["kubectl", "create", "-f", &text, "--kubeconfig", &who];
        let done =
            self.command().args(&words[1..]).output().map_err(|error| format!("cannot start kubectl: {error}"))?;
        let _ = fs::remove_file(&file);
        let (said, why) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        if self.loud {
            print!("\n$ {}\n{said}{why}", words.join(" "));
        }
        match done.status.success() {
            true => Ok(true),
            false if why.contains("(Forbidden)") => Ok(false),
            false => Err(format!("{name} cannot be registered: {}", why.trim())),
        }
    }

    /// Waits until the hub sees clusters as available.
    ///
    /// # Errors
    /// When they do not become so in two minutes.
    pub fn available(&self, managed: &[Managed]) -> Result<(), String> {
        let names: Vec<String> = managed.iter().map(|managed| format!("managedcluster/{}", managed.name)).collect();
        let mut words = vec!["kubectl", "wait"];
        words.extend(names.iter().map(String::as_str));
        words.extend(["--for=condition=ManagedClusterConditionAvailable", "--timeout=120s", "--context", &self.hub]);
        self.run(&words)
    }
}

/// A command line as a person would type it, without its secrets.
fn shown(words: &[&str], secrets: &[&str]) -> String {
    let word = |word: &&str| match secrets.contains(word) {
        true => "…".to_owned(),
        false if word.len() > 100 => format!("{}…", &word[..word.floor_char_boundary(40)]),
        false => (*word).to_owned(),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Writes one kubeconfig for several clusters, each with its name as context; the first is the current one.
///
/// # Errors
/// When one of theirs cannot be read, or the file cannot be written.
pub fn kubeconfig(clusters: &[Cluster], file: &Path) -> Result<(), String> {
    let (mut entries, mut users, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
    for cluster in clusters {
        let text = cluster.kubectl(&["config", "view", "--raw", "--minify", "--flatten", "-o", "json"]);
        let text = text.map_err(|error| error.to_string())?;
        let view: Value = serde_json::from_str(&text).map_err(|error| format!("a kubeconfig: {error}"))?;
        let name = cluster.name();
        entries.push(json!({ "name": name, "cluster": view["clusters"][0]["cluster"] }));
        users.push(json!({ "name": name, "user": view["users"][0]["user"] }));
        contexts.push(json!({ "name": name, "context": { "cluster": name, "user": name } }));
    }
    let whole = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": clusters.first().map(Cluster::name),
        "clusters": entries, "users": users, "contexts": contexts,
    });
    write_private(file, &format!("{whole:#}\n")).map_err(|error| format!("{}: {error}", file.display()))
}

/// Writes a file that only its owner can read, also while it is being written.
fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::File::options().create_new(true).write(true).mode(0o600).open(file)?.write_all(text.as_bytes())
}

/// Runs a step and says how long it took.
///
/// # Errors
/// What the step says.
pub fn timed<T>(step: impl FnOnce() -> Result<T, String>) -> Result<(T, Duration), String> {
    let begun = Instant::now();
    step().map(|value| (value, begun.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(shown(&["kubectl", "--hub-token", "s3cret"], &["s3cret"]), "kubectl --hub-token …");
        assert!(shown(&["kubectl", &"a".repeat(200)], &[]).len() < 60);
    }
}
