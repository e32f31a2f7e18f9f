//! What the processes of a cluster tell each other: one line of JSON each.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// How much of a cluster is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Size {
    /// etcd, API server and controller manager on the loopback address: certificates, RBAC, admission. No root.
    Api,
    /// A whole node that runs pods. Needs root.
    Node,
}

/// What the runner asks a new supervisor for.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) name: String,
    pub(crate) size: Size,
    pub(crate) schedulable: bool,
    /// Whether the API server notes every request in its log.
    pub(crate) audited: bool,
    pub(crate) binaries: BTreeMap<String, PathBuf>,
    /// The prepared image store; nodes only.
    pub(crate) images: Option<PathBuf>,
    /// Where the network plugins are; nodes only.
    pub(crate) cni: PathBuf,
}

/// What the supervisor asks the first process of the cluster for.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) order: Order,
    pub(crate) slot: u8,
    pub(crate) dir: PathBuf,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// The user of the daemons that need no rights, when we are root.
    pub(crate) user: Option<u32>,
}

impl Place {
    pub(crate) fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    pub(crate) fn server(&self) -> String {
        format!("https://{}", self.socket())
    }

    pub(crate) fn binary(&self, name: &str) -> &Path {
        self.order.binaries.get(name).map_or(Path::new("/nonexistent"), PathBuf::as_path)
    }

    pub(crate) fn log(&self, daemon: &str) -> PathBuf {
        self.dir.join("log").join(format!("{daemon}.log"))
    }
}

/// What the runner may ask of a running cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Stop(String),
    Start(String),
    Pause,
    Resume,
    /// Stops one daemon where it is.
    Hold(String),
    /// Lets that daemon go on.
    Release(String),
    Network(bool),
    /// Takes the images of an archive into the node's store.
    Import(PathBuf),
}

/// What a cluster tells its runner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// There is a place for it; it starts now.
    Placed { dir: PathBuf, server: String },
    /// It can be used.
    Ready,
    /// A request was carried out.
    Done,
    /// It did not start, or a request could not be carried out.
    Failed(String),
}

/// Tells the runner something. When nobody listens any more, the end of our input is how we learn it.
pub(crate) fn send(message: &Message) {
    if let Ok(mut line) = serde_json::to_string(message) {
        line.push('\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}
