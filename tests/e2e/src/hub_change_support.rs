//! A cluster and two hubs, between which it goes.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::{Cluster, Spec};
use serde_json::{Value, json};

use crate::roles::user_with;
use crate::upgrade_support::AGENT;
use crate::{Said, all_settled, bundle, kubectl_ocm, object, run, unchanged, until_within};

/// The name of the cluster on both hubs.
pub const NAME: &str = "going";

/// What joining needs on a hub.
const JOINS: [&str; 2] = ["join-hub.yaml", "accept.yaml"];
/// What leaving it needs.
const LEAVES: [&str; 2] = ["detach.yaml", "leave-namespaces.yaml"];

/// A cluster, two hubs, and users with the documented rights and no others.
#[derive(Debug)]
pub struct Hubs {
    /// The hubs.
    pub hubs: [Cluster; 2],
    /// The cluster on which the agents run.
    pub cluster: Cluster,
    here: PathBuf,
    joining: [PathBuf; 2],
    leaving: [PathBuf; 2],
    flags: Vec<String>,
}

impl Hubs {
    /// Starts all of them, and has `install` make hubs of two. `flags` are those of every join, and `more` the roles that are needed
    /// besides, on the hubs and on the cluster.
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn start(install: fn(&Cluster), flags: &[&str], more: (&[&str], &[&str])) -> Self {
        let mut clusters = Cluster::start_all(&["one-hub", "other-hub", "going"].map(Spec::node)).expect("they start");
        let cluster = clusters.pop().expect("three were asked for");
        let hubs: [Cluster; 2] = clusters.try_into().expect("two are left");
        std::thread::scope(|scope| {
            for hub in &hubs {
                scope.spawn(move || install(hub));
            }
        });
        let here = user_with(&cluster, "goer", &[&["join.yaml", "join-former-hub.yaml"][..], more.1].concat());
        let joining = hubs.each_ref().map(|hub| user_with(hub, "joiner", &[&JOINS[..], more.0].concat()));
        let leaving = hubs.each_ref().map(|hub| user_with(hub, "leaver", &[&LEAVES[..], more.0].concat()));
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Self { hubs, cluster, here, joining, leaving, flags }
    }

    /// `kubectl ocm join` with access to a hub.
    #[must_use]
    pub fn to(&self, to: usize, flags: &[&str]) -> Command {
        let mut command = kubectl_ocm("join", &self.here);
        let hub = format!("--hub-kubeconfig={}", self.joining[to].display());
        command.args([NAME, &hub, "--timeout=8m", "--bundle-version", bundle()]).args(&self.flags).args(flags);
        command
    }

    /// The flag that names a hub as the former one, with access to it.
    #[must_use]
    pub fn former(&self, from: usize) -> String {
        format!("--former-hub-kubeconfig={}", self.leaving[from].display())
    }

    /// The hubs and the cluster.
    pub fn all(&self) -> [&Cluster; 3] {
        [&self.hubs[0], &self.hubs[1], &self.cluster]
    }

    /// A command of which nothing changes anywhere, and how it ends.
    ///
    /// # Panics
    ///
    /// When it ends otherwise, does not say these words, or something has changed.
    pub fn changes_nothing(&self, mut command: Command, code: i32, words: &[&str]) -> Said {
        let before = all_settled(self.all());
        let said = run(&mut command);
        assert_eq!(said.code, Some(code), "{said:?}");
        for word in words {
            assert!(said.stderr.contains(word), "no {word:?} in {said:?}");
        }
        for (cluster, before) in self.all().into_iter().zip(&before) {
            unchanged(cluster, before, &said);
        }
        said
    }

    /// It is available on this hub, all that its agent knows is of this hub, and nothing is written down of its way any more.
    ///
    /// # Panics
    ///
    /// When it is not so.
    pub fn is_at(&self, at: usize) {
        let (hub, managed) = (&self.hubs[at], format!("managedcluster/{NAME}"));
        let wait = ["wait", &managed, "--for=condition=ManagedClusterConditionAvailable", "--timeout=1s"];
        hub.kubectl(&wait).expect("the hub says that it is available");
        for secret in ["bootstrap-hub-kubeconfig", "hub-kubeconfig-secret"] {
            assert_eq!(address(&self.cluster, secret), hub.server(), "{secret}");
        }
        let klusterlet = object(&self.cluster, &["klusterlet", "klusterlet"]);
        let annotations = klusterlet["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        let of_its_way = ["kubectl-ocm/moves-", "kubectl-ocm/former-"];
        let is_left = |key: &&String| of_its_way.iter().any(|begin| key.starts_with(begin));
        let left: Vec<&String> = annotations.keys().filter(is_left).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Whether a hub has a managed cluster of its name.
    pub fn is_known(&self, to: usize) -> bool {
        self.hubs[to].kubectl(&["get", "managedcluster", NAME]).is_ok()
    }

    /// Waits until the agent has given up what works of other hubs than this one have applied.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn forgets_all_but(&self, at: usize, within: Duration) {
        let own = ocm_core::leave::works::hub_hash(self.hubs[at].server());
        let others = || {
            let list = object(&self.cluster, &["appliedmanifestworks"]);
            let all = list["items"].as_array().cloned().unwrap_or_default();
            let is_other = |record: &Value| record["spec"]["hubHash"] != own.as_str();
            all.into_iter().filter(is_other).map(|record| record["metadata"]["name"].to_string()).collect::<Vec<_>>()
        };
        let told = || format!("{:?} stay", others());
        until_within(within, "the records of the former hub go", told, || others().is_empty());
    }

    /// It leaves the hub that it is at, for good.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn leaves(&self, at: usize) {
        let hub = format!("--hub-kubeconfig={}", self.hubs[at].kubeconfig().display());
        let said = run(kubectl_ocm("unjoin", self.cluster.kubeconfig()).args([NAME, "--yes", &hub]));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}

/// Makes a hub of a cluster.
///
/// # Panics
///
/// When it does not become one.
pub fn install(hub: &Cluster) {
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", "--wait", "--bundle-version", bundle()]));
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// A file of values with which agents keep for so long what works of a former hub have applied, and the flag that names it.
///
/// # Panics
///
/// When it cannot be written.
#[must_use]
pub fn grace(time: impl fmt::Display) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let values = json!({"workConfiguration": {"appliedManifestWorkEvictionGracePeriod": time.to_string()}});
    std::fs::write(file.path(), values.to_string()).expect("written");
    let flag = format!("--values={}", file.path().display());
    (file, flag)
}

/// The address of the hub in a kubeconfig of the agent.
///
/// # Panics
///
/// When there is none.
pub fn address(cluster: &Cluster, secret: &str) -> String {
    let secret = object(cluster, &["secret", secret, "--namespace", AGENT]);
    let text = STANDARD.decode(secret["data"]["kubeconfig"].as_str().expect("a kubeconfig")).expect("base64");
    let kubeconfig = ocm_flows::hub::parse(&String::from_utf8(text).expect("text"));
    kubeconfig.expect("a kubeconfig").hub.server
}

/// The UID of a ConfigMap that a work has brought; none: it is not there.
pub fn brought(cluster: &Cluster, name: &str) -> Option<String> {
    let words = ["get", "configmap", name, "--namespace=default", "--output=jsonpath={.metadata.uid}"];
    cluster.kubectl(&words).ok()
}
