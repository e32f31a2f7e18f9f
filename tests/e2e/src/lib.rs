//! Stories on real clusters: what they share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::Cluster;
use ocm_core::certificate::from_pem;
use serde_json::Value;

pub mod accept_support;
pub mod approval_support;
pub mod attacks;
pub mod cert_manager;
pub mod controller_support;
pub mod engine_support;
pub mod fallback_support;
pub mod faults;
pub mod grpc_hub;
pub mod grpc_support;
pub mod join_support;
pub mod manifests;
pub mod refusals;
pub mod registry_support;
pub mod residue;
pub mod roles;
pub mod service_support;
pub mod stories;
pub mod storm_support;
pub mod trouble_support;
pub mod upgrade_support;
pub mod webhook_support;

/// What an address answers over plain HTTP, head and body; empty: nothing listens there.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut answer = String::new();
    let Ok(mut stream) = TcpStream::connect(address) else { return answer };
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// The memory that a process has, and the most that it had, in bytes; zero: there is no such process.
pub(crate) fn memory(process: u32) -> [u64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    ["VmRSS:", "VmHWM:"].map(|key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() * 1024
    })
}

/// The release of OCM whose images the clusters hold, without the `v`.
///
/// # Panics
///
/// When nothing says which release the given binaries are.
pub fn bundle() -> &'static str {
    static BUNDLE: LazyLock<String> = LazyLock::new(|| {
        let version = control_plane::ocm_version().unwrap_or_else(|error| panic!("{error}"));
        version.trim_start_matches('v').to_owned()
    });
    &BUNDLE
}

/// The release before [`bundle`], without the `v`, under whose name the clusters hold the same images.
///
/// # Panics
///
/// When there is none, or nothing says which release the given binaries are.
pub fn earlier_bundle() -> &'static str {
    static EARLIER: LazyLock<String> = LazyLock::new(|| {
        let version = control_plane::earlier_ocm_version().unwrap_or_else(|error| panic!("{error}"));
        version.expect("there is an earlier release").trim_start_matches('v').to_owned()
    });
    &EARLIER
}

/// The command `kubectl ocm VERB` as it is in the sources now, against a cluster.
///
/// # Panics
///
/// When it cannot be built.
pub fn kubectl_ocm(verb: &str, kubeconfig: &Path) -> Command {
    let mut command = Command::new(cli_tests::binary(&format!("kubectl-ocm-{verb}")));
    command.env("KUBECONFIG", kubeconfig).env("KUBECTL_OCM_PROGRESS", "never").stdin(Stdio::null());
    command
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Data.
    pub stdout: String,
    /// Narration.
    pub stderr: String,
}

/// Runs a command to its end.
///
/// # Panics
///
/// When it cannot be started.
pub fn run(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

impl Said {
    /// How it ended and its last words, for snapshots: what it told on the way depends on how quick everything was.
    pub fn ending(&self) -> String {
        let error = self.stderr.find("error: ").map_or(&*self.stderr, |at| &self.stderr[at..]);
        let code = self.code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string());
        format!("exit: {code}\n--- stdout\n{}--- stderr\n{error}", self.stdout)
    }
}

/// How long something may take that follows at once.
pub const SOON: Duration = Duration::from_secs(30);

/// Waits for what has to follow at once.
///
/// # Panics
///
/// When it does not.
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    until_within(SOON, what, String::new, holds);
}

/// Waits for what has to follow within some time; `said` tells what there is in its place.
///
/// # Panics
///
/// When it does not.
pub fn until_within(time: Duration, what: &str, said: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        if holds() {
            return;
        }
        assert!(begun.elapsed() < time, "not within {} seconds: {what} {}", time.as_secs(), said());
        pause_after(looked);
    }
}

/// Pauses after a look at what has to follow that began then: for several times as long as the look took, so that whoever
/// waits leaves the processors to what is waited for.
pub fn pause_after(looked: Instant) {
    thread::sleep((looked.elapsed() * 4).clamp(Duration::from_millis(50), Duration::from_secs(2)));
}

/// What differs between runs and releases in the ending of a command, and what stands there instead.
pub const VARYING: [(&str, &str); 5] = [
    (r"https://\d+\.\d+\.\d+\.\d+:\d+", "https://[SERVER]"),
    (r"\b(cluster-manager|klusterlet)-[a-z0-9]{6,10}-[a-z0-9]{5}\b", "[POD]"),
    (r"after \d+s\b", "after [TIME]"),
    // The words of the scheduler and of the container runtime.
    (r"nodes are available: .*", "nodes are available: [WHY]"),
    (r"cannot be pulled: .*", "cannot be pulled: [WHY]"),
];

/// Compares the ending of a command with its snapshot. Who uses it depends on `insta`.
#[macro_export]
macro_rules! ends_as {
    ($name:expr, $said:expr) => {
        insta::with_settings!({ filters => $crate::VARYING, omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name.to_string(), $said.ending());
        })
    };
}

/// Kinds of which the commands of the suite create objects.
const KINDS: &str = "namespaces,customresourcedefinitions,serviceaccounts,secrets,configmaps,services,deployments,\
                     clusterroles,clusterrolebindings,roles,rolebindings,mutatingwebhookconfigurations,\
                     validatingwebhookconfigurations";

/// Every object that has to do with OCM and its resource version, by kind, namespace and name.
///
/// # Panics
///
/// When the cluster cannot be read.
pub fn resource_versions(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut kinds = vec![KINDS];
    let served =
        cluster.kubectl(&["api-resources", "--output=name", "--api-group=operator.open-cluster-management.io"]);
    let served = served.expect("the cluster tells its kinds").trim().replace('\n', ",");
    if !served.is_empty() {
        kinds.push(&served);
    }
    for kinds in kinds {
        let all = ["get", kinds, "--all-namespaces", "--output=json", "--show-managed-fields"];
        let list = cluster.kubectl(&all).expect("the objects are listed");
        let list: Value = serde_json::from_str(&list).expect("kubectl prints JSON");
        for object in list["items"].as_array().into_iter().flatten() {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            if namespace.starts_with("open-cluster-management")
                || name.contains("open-cluster-management")
                || name.contains("cluster-manager")
            {
                let version = match text("/kind").as_str() {
                    "ClusterManager" | "Deployment" | "Klusterlet" => without_status(object),
                    _ => text("/metadata/resourceVersion"),
                };
                found.insert(format!("{} {namespace}/{name}", text("/kind")), version);
            }
        }
    }
    found
}

/// The same of a cluster that has come to rest: controllers still write for a moment, longer on a busy machine.
///
/// # Panics
///
/// When it does not come to rest, or cannot be read.
pub fn settled(cluster: &Cluster) -> BTreeMap<String, String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut last = resource_versions(cluster);
    loop {
        thread::sleep(Duration::from_secs(3));
        let now = resource_versions(cluster);
        if now == last {
            return now;
        }
        assert!(Instant::now() < deadline, "the cluster does not come to rest");
        last = now;
    }
}

/// Of the objects that have to do with OCM, nobody has written any since.
///
/// # Panics
///
/// When one was, with the objects that differ, or when the cluster cannot be read.
#[track_caller]
pub fn unchanged(cluster: &Cluster, before: &BTreeMap<String, String>, what: impl fmt::Debug) {
    let now = resource_versions(cluster);
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differ = names.into_iter().filter(|name| before.get(*name) != now.get(*name));
    let differ: Vec<_> = differ.map(|name| (name, before.get(name), now.get(name))).collect();
    assert!(differ.is_empty(), "{differ:#?} differ after {what:?}");
}

/// An object as far as anybody but its controller writes it. On a busy machine a pod may miss a probe at any time, and
/// the status that tells so raises the resource version of its Deployment and of what the Deployment belongs to.
fn without_status(object: &Value) -> String {
    let mut object = object.clone();
    object["status"].take();
    // The operator gives the work agent its pod some time after the cluster has its certificate, and writes on its Deployment
    // after that. No command of ours writes there. Upstream: `runtimeReconcile.reconcile`.
    if object["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-work-agent")) {
        return object["metadata"]["uid"].to_string();
    }
    let metadata = &mut object["metadata"];
    metadata["resourceVersion"].take();
    if let Some(fields) = metadata["managedFields"].as_array_mut() {
        fields.retain(|fields| fields["subresource"] != "status");
    }
    let mut hash = DefaultHasher::new();
    object.to_string().hash(&mut hash);
    format!("generation {}, {:016x}", object["metadata"]["generation"], hash.finish())
}

/// An object as JSON.
///
/// # Panics
///
/// When it is not there.
pub fn object(cluster: &Cluster, words: &[&str]) -> Value {
    let text = cluster.kubectl(&[&["get", "--output=json"], words].concat()).expect("the object is there");
    serde_json::from_str(&text).expect("kubectl prints JSON")
}

/// Values that only the Secrets of a cluster hold: tokens, passwords and the lines of private keys.
///
/// # Panics
///
/// When they cannot be read.
pub fn canaries(cluster: &Cluster) -> Vec<String> {
    let secrets = object(cluster, &["secrets", "--all-namespaces"]);
    let mut found = Vec::new();
    for secret in secrets["items"].as_array().into_iter().flatten() {
        let values = || secret["data"].as_object().into_iter().flatten();
        let beside = values().filter_map(|(_, value)| from_pem(&STANDARD.decode(value.as_str()?).ok()?).ok());
        let certificates: Vec<Vec<u8>> = beside.flatten().collect();
        // Whole lines of a private key may hold nothing but the public one, which is in its certificate, too.
        let is_public = |line: &str| {
            let bytes = STANDARD.decode(line).unwrap_or_default();
            !bytes.is_empty()
                && certificates.iter().any(|der| der.windows(bytes.len()).any(|part| part == bytes.as_slice()))
        };
        for (key, value) in values() {
            let value = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
            let Ok(text) = String::from_utf8(value) else { continue };
            match key.as_str() {
                "token" | "token-secret" | ".dockerconfigjson" => found.push(text),
                "kubeconfig" => {
                    let token = text.lines().find_map(|line| line.trim().strip_prefix("token: "));
                    found.extend(token.map(|token| token.trim_matches('"').to_owned()));
                }
                key if key.ends_with(".key") => {
                    let lines = text.lines().filter(|line| !line.starts_with("---") && !is_public(line));
                    found.extend(lines.map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    found.retain(|word| word.len() >= 8);
    found
}

/// Lines of all container logs of a node that contain some words.
pub fn log_lines(cluster: &Cluster, words: &str) -> Vec<String> {
    fn walk(folder: &Path, words: &str, lines: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, words, lines);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                lines.extend(text.lines().filter(|line| line.contains(words)).map(str::to_owned));
            }
        }
    }
    let mut lines = Vec::new();
    walk(&cluster.pod_logs(), words, &mut lines);
    lines
}
