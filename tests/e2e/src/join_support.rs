//! A hub and what its clusters join with.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use control_plane::{Cluster, Spec, shared};
use serde_json::{Value, json};

use crate::{Said, bundle, kubectl_ocm, run};

/// Keeps other tests of this process off the shared hub for as long as it is held: who compares everything that a hub
/// holds before and after must be alone with it.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed says so itself.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hub that all tests of this process share, installed by our own command.
///
/// # Panics
///
/// When it cannot be started or installed.
pub fn hub() -> &'static Cluster {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    let hub = shared(&Spec::node("hub"));
    INSTALLED.get_or_init(|| {
        let bundle = format!("--bundle-version={}", bundle());
        let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", "--wait", &bundle]));
        assert_eq!(said.code, Some(0), "{said:?}");
    });
    hub
}

/// What `kubectl ocm token create` on the hub hands out, as flags of `join`.
#[derive(Clone, Debug)]
pub struct JoinCommand {
    /// The token.
    pub token: String,
    /// The hub's address.
    pub server: String,
    /// The pin of its CA.
    pub pin: String,
    /// Its CA, if the line carries it.
    pub ca: Option<String>,
}

impl JoinCommand {
    /// Makes a token on the hub.
    ///
    /// # Panics
    ///
    /// When none is made.
    pub fn create(hub: &Cluster, flags: &[&str]) -> Self {
        let said = run(kubectl_ocm("token", hub.kubeconfig()).args(["create", "--output=json"]).args(flags));
        assert_eq!(said.code, Some(0), "{said:?}");
        Self::read(&said.stdout)
    }

    /// Reads what `token create --output=json` prints.
    ///
    /// # Panics
    ///
    /// When it is something else.
    pub fn read(document: &str) -> Self {
        let value: Value = serde_json::from_str(document).expect("JSON");
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        Self {
            token: text("hub-token").expect("a token"),
            server: text("hub-apiserver").expect("an address"),
            pin: text("hub-ca-pin").expect("a pin"),
            ca: text("hub-ca-data"),
        }
    }

    /// The flags of the line.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--hub-token={}", self.token),
            format!("--hub-apiserver={}", self.server),
            format!("--hub-ca-pin={}", self.pin),
        ];
        flags.extend(self.ca.as_ref().map(|ca| format!("--hub-ca-data={ca}")));
        flags
    }
}

/// Runs `kubectl ocm join` against a cluster, with the release that the images are of.
pub fn join<S: AsRef<std::ffi::OsStr>>(cluster: &Cluster, name: &str, flags: &[S]) -> Said {
    let bundle = format!("--bundle-version={}", bundle());
    run(kubectl_ocm("join", cluster.kubeconfig()).args([name, &bundle]).args(flags))
}

/// The flag that names the hub's kubeconfig.
pub fn hub_access(hub: &Cluster) -> String {
    format!("--hub-kubeconfig={}", hub.kubeconfig().display())
}

/// Has a work put a ConfigMap of its name into the namespace `default` of a cluster, and waits until its agent says that it has.
///
/// # Panics
///
/// When it does not.
pub fn bring(hub: &Cluster, cluster: &str, name: &str) {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": cluster}, "spec": {"workload": {"manifests": [manifest]}}});
    let file = hub.dir().expect("a folder").join(format!("{cluster}-{name}.json"));
    std::fs::write(&file, work.to_string()).expect("written");
    hub.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("it is stored");
    let (work, of) = (format!("manifestwork/{name}"), format!("--namespace={cluster}"));
    let applied = ["wait", &work, &of, "--for=condition=Applied", "--timeout=120s"];
    hub.kubectl(&applied).expect("the agent applies it");
}
