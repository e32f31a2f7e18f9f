//! What both roles consist of.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ocm_cli::Ui;
use ocm_core::{Event, Failure, Narrator};
use ocm_kube::{ClientArgs, Cluster};
use ocm_policy_engine::{Cache, Engine, EngineSettings};
use ocm_policy_server::{DecisionLog, Health, Knowledge, Metrics, Policies, follow};
use tokio::net::TcpListener;
use tokio::task::JoinHandle as Task;

use crate::args::ModulesArgs;
use crate::compile;

/// Lines of the decision log that wait for a reader of stdout.
const LOG: usize = 4096;
/// How long the rest of the log may take at the end.
const WRITTEN: Duration = Duration::from_secs(5);

/// Policies, and what they know of the hub.
pub(crate) struct Parts {
    pub(crate) hub: Cluster,
    pub(crate) policies: Arc<Policies>,
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
}

impl Parts {
    /// Puts them together; nothing is followed yet.
    pub(crate) async fn new(client: &ClientArgs, modules: ModulesArgs, ui: &Arc<Ui>) -> Result<Self, Failure> {
        let ModulesArgs { cache_dir, module_dir } = modules;
        let hub = ocm_kube::connect(&client.connection()?, ui.clone()).await?;
        let cannot = |error: &dyn std::fmt::Display| Failure::other("policies cannot be run here").because(error);
        let engine = Engine::new(&EngineSettings::default()).map_err(|error| cannot(&error))?;
        let cache = match cache_dir {
            Some(folder) => Some(Cache::open(folder).map_err(|error| cannot(&error))?),
            None => None,
        };
        let metrics = Arc::new(Metrics::default());
        let knowledge = Arc::new(Knowledge::new(hub.client.clone()));
        let policies =
            Policies::new(hub.client.clone(), engine, compile::compiler()?, cache, knowledge.clone(), metrics.clone());
        let policies = Arc::new(policies.with_modules_of(module_dir));
        let health = Arc::new(Health::new(policies.clone(), knowledge.clone(), metrics.clone()));
        Ok(Self { hub, policies, knowledge, metrics, health })
    }

    /// Follows the policies of the hub.
    pub(crate) fn follow(&self, ui: &Arc<Ui>) -> Task<()> {
        let told = ui.clone();
        let tell = move |why| told.tell(Event::warning(why));
        tokio::spawn(follow(self.hub.client.clone(), self.policies.clone(), tell))
    }
}

/// Listens at an address.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Failure::other(format!("cannot listen on {address}")).because(error))
}

/// The decision log on stdout.
pub(crate) struct Log {
    pub(crate) log: Arc<DecisionLog>,
    writer: JoinHandle<()>,
}

impl Log {
    /// Writes what comes.
    pub(crate) fn start() -> Result<Self, Failure> {
        let log = Arc::new(DecisionLog::new(LOG));
        let lines = log.clone();
        let writer = std::thread::Builder::new().name("decision-log".to_owned()).spawn(move || lines.write(write));
        let cannot = |error: std::io::Error| {
            Failure::other("no thread can be started that writes the decision log").because(error)
        };
        Ok(Self { log, writer: writer.map_err(cannot)? })
    }

    /// What waits is written, within a while, and then nothing comes.
    pub(crate) async fn end(self) {
        self.log.close();
        let written = tokio::task::spawn_blocking(move || self.writer.join());
        let _ = tokio::time::timeout(WRITTEN, written).await;
    }
}

/// Writes lines of the decision log.
fn write(lines: &VecDeque<String>) {
    let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        text += line;
        text.push('\n');
    }
    // Whoever closes stdout wants no log; that stops nobody.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
