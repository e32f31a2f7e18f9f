//! A hub as clusters reach it: clients of whoever asks, what it tells, and how many requests are on their way at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::Semaphore;

use crate::board::Board;
use crate::error::Error;
use crate::objects::Who;

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(15);
/// The first pause before something is asked again, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(3)];

/// A hub as clusters reach it.
pub(crate) struct Hub {
    pub(crate) clients: BTreeMap<Who, Client>,
    /// Who approves renewals where the hub's own controllers do not run.
    pub(crate) approver: Option<Client>,
    /// Its address and its authority, and nobody's credentials.
    config: Config,
    pub(crate) board: Board,
    calls: Semaphore,
    repeated: Mutex<BTreeMap<String, usize>>,
}

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) struct Failed {
    /// In the words of the hub, or of the connection.
    pub(crate) why: String,
    /// Whether the hub said no, so that to ask again changes nothing.
    pub(crate) is_refusal: bool,
    /// Whether there is such an object already.
    pub(crate) exists: bool,
    /// Whether there is no such object.
    pub(crate) is_missing: bool,
}

impl From<kube::Error> for Failed {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self {
                is_refusal: (400..500).contains(&status.code) && status.code != 409 && status.code != 429,
                exists: status.code == 409 && status.reason == "AlreadyExists",
                is_missing: status.code == 404,
                why: status.message.clone(),
            },
            error => Self::of(error.to_string()),
        }
    }
}

impl Failed {
    /// The hub has not answered.
    pub(crate) fn of(why: String) -> Self {
        Self { why, is_refusal: false, exists: false, is_missing: false }
    }
}

impl Hub {
    /// Reads who asks from their kubeconfigs. Must be called on the runtime that is to drive the clients.
    pub(crate) async fn open(
        bootstrap: &Path,
        others: &BTreeMap<Who, PathBuf>,
        approver: Option<&Path>,
        at_once: usize,
    ) -> Result<Self, Error> {
        let mut config = read(bootstrap).await?;
        let mut clients = BTreeMap::from([(Who::Bootstrap, client(bootstrap, config.clone())?)]);
        for (who, file) in others {
            clients.insert(*who, client(file, read(file).await?)?);
        }
        let approver = match approver {
            Some(file) => Some(client(file, read(file).await?)?),
            None => None,
        };
        config.auth_info = AuthInfo::default();
        let calls = Semaphore::new(at_once.max(1));
        Ok(Self { clients, approver, config, board: Board::new(), calls, repeated: Mutex::default() })
    }

    /// A client that identifies itself by a certificate, with connections of its own.
    pub(crate) fn client_of(&self, certificate: &[u8], key: &str) -> Result<Client, Failed> {
        let auth_info = AuthInfo {
            client_certificate_data: Some(STANDARD.encode(certificate)),
            client_key_data: Some(STANDARD.encode(key).into()),
            ..AuthInfo::default()
        };
        let mut config = self.config.clone();
        config.auth_info = auth_info;
        Ok(Client::try_from(config)?)
    }

    /// Sends one request as soon as there is room for it.
    pub(crate) async fn call<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
        // The semaphore is never closed.
        let _room = self.calls.acquire().await;
        match tokio::time::timeout(ANSWER, request).await {
            Ok(answer) => answer.map_err(Failed::from),
            Err(_) => Err(Failed::of(format!("no answer within {} seconds", ANSWER.as_secs()))),
        }
    }

    /// Sends a request until it succeeds, or until `is_over` finds that to repeat it is no use.
    pub(crate) async fn insist<T, F: Future<Output = kube::Result<T>>>(
        &self,
        random: &mut Rng,
        request: impl Fn() -> F,
        is_over: impl Fn(&Failed) -> bool,
    ) -> Result<T, Failed> {
        let mut pause = PAUSES[0];
        loop {
            let failed = match self.call(request()).await {
                Err(failed) if !is_over(&failed) => failed,
                answer => return answer,
            };
            self.note(&failed);
            tokio::time::sleep(pause.mul_f64(0.5 + random.f64())).await;
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    fn note(&self, failed: &Failed) {
        let mut repeated = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
        *repeated.entry(failed.why.clone()).or_default() += 1;
    }

    /// Why requests had to be repeated, and how often.
    pub(crate) fn repeated(&self) -> BTreeMap<String, usize> {
        self.repeated.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn read(file: &Path) -> Result<Config, Error> {
    let wrong = |why: String| Error::Kubeconfig { file: file.display().to_string(), why };
    let kubeconfig = Kubeconfig::read_from(file).map_err(|error| wrong(error.to_string()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|error| wrong(error.to_string()))?;
    // What is repeated is counted here.
    config.default_retry = false;
    Ok(config)
}

fn client(file: &Path, config: Config) -> Result<Client, Error> {
    Client::try_from(config)
        .map_err(|error| Error::Kubeconfig { file: file.display().to_string(), why: error.to_string() })
}
