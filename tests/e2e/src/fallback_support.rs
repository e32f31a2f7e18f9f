//! A cluster with two hubs, whose agent turns from the one to the other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use control_plane::{Cluster, Spec};
use serde_json::Value;

use crate::roles::user_with;
use crate::{Said, bundle, kubectl_ocm, run, until_within};

/// The name of the cluster on both hubs.
pub const NAME: &str = "turning";

/// How long the agent may take to turn to another hub: it waits for three minutes at least, looks once a minute, and starts anew.
const TURN: Duration = Duration::from_secs(480);

/// How long it may take to report there, once it is let in.
const REPORT: Duration = Duration::from_secs(240);

/// Two hubs, a cluster, and users with the documented rights.
#[derive(Debug)]
pub struct Turning {
    /// The hub that it joins.
    pub first: Cluster,
    /// The hub that it turns to.
    pub second: Cluster,
    /// The cluster.
    pub cluster: Cluster,
    /// Who joins it.
    pub here: PathBuf,
    on_first: PathBuf,
    on_second: PathBuf,
}

/// The context of a kubeconfig.
fn context(cluster: &Cluster) -> String {
    let context = cluster.kubectl(&["config", "current-context"]).expect("there is one");
    context.trim().to_owned()
}

/// The flags that name a further hub, as the user of this kubeconfig.
fn further(hub: &Cluster, kubeconfig: &Path) -> [String; 2] {
    [format!("--fallback-hub-context={}", context(hub)), format!("--fallback-hub-kubeconfig={}", kubeconfig.display())]
}

/// What `get klusterlet-info` tells of one hub: its address, and whether the agent is at it.
pub type Told = (Option<String>, Option<bool>);

impl Turning {
    /// Starts all of them, and makes hubs of two.
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn start() -> Self {
        let specs = ["first-hub", "second-hub", "turning"].map(Spec::node);
        let mut clusters = Cluster::start_all(&specs).expect("the clusters start").into_iter();
        let mut next = || clusters.next().expect("three were asked for");
        let (first, second, cluster) = (next(), next(), next());
        std::thread::scope(|scope| {
            for hub in [&first, &second] {
                scope.spawn(move || {
                    let words = ["hub", "--wait", "--bundle-version", bundle()];
                    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(words));
                    assert_eq!(said.code, Some(0), "{said:?}");
                });
            }
        });
        let here = user_with(&cluster, "turner", &["join.yaml", "unjoin.yaml", "leave-namespaces.yaml"]);
        let on_first = user_with(&first, "turner", &["join-hub.yaml", "accept.yaml"]);
        let on_second = user_with(&second, "turner", &["join-hub.yaml", "accept.yaml", "join-hub-fallback.yaml"]);
        Self { first, second, cluster, here, on_first, on_second }
    }

    /// Runs `join` with access to the first hub.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn join(&self, flags: &[&str]) -> Said {
        let hub = format!("--hub-kubeconfig={}", self.on_first.display());
        let bundle = format!("--bundle-version={}", bundle());
        run(kubectl_ocm("join", &self.here).args([NAME, &bundle, &hub]).args(flags))
    }

    /// The flags that name the second hub as a further one.
    pub fn further(&self) -> [String; 2] {
        further(&self.second, &self.on_second)
    }

    /// The flags that name the first hub once more.
    pub fn first_again(&self) -> [String; 2] {
        further(&self.first, &self.on_first)
    }

    /// It joins the first hub, may turn to the second one, and is available.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn joins(&self) {
        let [context, kubeconfig] = self.further();
        let said = self.join(&[&context, &kubeconfig, "--hub-connection-timeout=3m", "--accept", "--wait"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stdout.ends_with("/turning available\n"), "{said:?}");
        assert!(said.stderr.contains("after 180 seconds without an answer"), "{said:?}");
        assert_eq!(self.hubs(), [(Some(self.first.server().to_owned()), Some(true)), self.is_at_second(false)]);
        // It may come there, and need not be looked at again.
        let accepts = ["get", "managedcluster", NAME, "--output=jsonpath={.spec.hubAcceptsClient}"];
        assert_eq!(self.second.kubectl(&accepts).expect("it is there"), "true");
    }

    /// The second hub, as `get klusterlet-info` tells of it.
    pub fn is_at_second(&self, is: bool) -> Told {
        (Some(self.second.server().to_owned()), Some(is))
    }

    /// The hubs that `get klusterlet-info` tells of, in their order.
    ///
    /// # Panics
    ///
    /// When it tells none, or something secret.
    pub fn hubs(&self) -> Vec<Told> {
        let said = run(kubectl_ocm("get", self.cluster.kubeconfig()).args(["klusterlet-info", "--output=json"]));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(!said.stdout.contains("eyJ"), "{}", said.stdout);
        let info: Value = serde_json::from_str(&said.stdout).expect("get -o json prints JSON");
        let hubs = info["items"][0]["hubs"].as_array().cloned().unwrap_or_default();
        hubs.iter().map(|hub| (hub["server"].as_str().map(str::to_owned), hub["current"].as_bool())).collect()
    }

    /// Its agent turns to the second hub, is let in there, and reports.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn turns_to_second(&self) {
        let label = format!("--selector=open-cluster-management.io/cluster-name={NAME}");
        let logs = || {
            let words =
                ["logs", "deployment/klusterlet-registration-agent", "--namespace=open-cluster-management-agent"];
            self.cluster.kubectl(&[&words[..], &["--tail=20"]].concat()).unwrap_or_default()
        };
        until_within(TURN, "its agent asks the second hub for a certificate", logs, || {
            let asked = self.second.kubectl(&["get", "certificatesigningrequests", &label, "--output=name"]);
            asked.is_ok_and(|names| !names.trim().is_empty())
        });
        let said = run(kubectl_ocm("accept", &self.on_second).args([NAME, "--yes"]));
        assert_eq!(said.code, Some(0), "{said:?}");
        let available = r#"jsonpath={.status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status}"#;
        until_within(REPORT, "the cluster is available on the second hub", logs, || {
            let status = self.second.kubectl(&["get", "managedcluster", NAME, "--output", available]);
            status.is_ok_and(|status| status == "True")
        });
        assert_eq!(self.hubs(), [(Some(self.first.server().to_owned()), Some(false)), self.is_at_second(true)]);
    }

    /// Leaves both hubs. As long as the first one has heard of it only just now, that is refused.
    ///
    /// # Panics
    ///
    /// When it is not done in time.
    pub fn leaves(&self) {
        let hub = format!("--hub-kubeconfig={}", self.second.kubeconfig().display());
        let [context, kubeconfig] = further(&self.first, self.first.kubeconfig());
        let mut last = String::new();
        for _ in 0..30 {
            let said = run(kubectl_ocm("unjoin", &self.here).args([NAME, "--yes", &hub, &context, &kubeconfig]));
            if said.code == Some(0) {
                assert!(!said.stderr.contains("could turn to"), "{said:?}");
                return;
            }
            assert!(said.code == Some(3) && said.stderr.contains("is heard of on"), "{said:?}");
            last = said.stderr;
            std::thread::sleep(Duration::from_secs(5));
        }
        panic!("it does not leave: {last}");
    }
}
