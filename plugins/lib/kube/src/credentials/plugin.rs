//! Credential plugins: programs that a kubeconfig names and that print a token or a certificate.
//!
//! The client would run a plugin twice, once for a certificate and once for a token, and would put what it printed into
//! its errors. Here it runs once, and nothing that it prints on stdout is ever shown.

use std::io::IsTerminal as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use ocm_core::{Failure, Reason, yaml};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::header::bearer;

/// A token that ends, and the plugin that prints the next one.
#[derive(Clone)]
pub(crate) struct Refreshed {
    plugin: Arc<Plugin>,
    now: Arc<Mutex<(SecretString, Timestamp)>>,
}

/// A plugin, with what it is told.
struct Plugin {
    exec: ExecConfig,
    information: String,
    interactive: bool,
}

/// What a plugin prints (`client.authentication.k8s.io`).
#[derive(Deserialize)]
struct Credential {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// What a plugin printed, for as long as that lasts.
pub(super) enum Printed {
    /// A token that ends.
    Refreshed(Refreshed),
    /// A token.
    Token(SecretString),
    /// A certificate and its key, in PEM, alone.
    Nothing,
}

/// Runs a plugin. A certificate that it prints takes the place of the user's.
pub(super) async fn run(exec: ExecConfig, user: &mut AuthInfo, cluster: &ExecAuthCluster) -> Result<Printed, Failure> {
    let plugin = Arc::new(Plugin::new(exec, cluster)?);
    let status = plugin.clone().run_beside().await?;
    if let (Some(certificate), Some(key)) = (&status.client_certificate_data, &status.client_key_data) {
        user.client_certificate_data = Some(STANDARD.encode(certificate));
        user.client_key_data = Some(STANDARD.encode(key).into());
        (user.client_certificate, user.client_key) = (None, None);
    }
    let token = status.token.filter(|token| !token.is_empty());
    Ok(match (token.map(SecretString::from), status.expiration_timestamp) {
        (Some(token), Some(expires)) => {
            Printed::Refreshed(Refreshed { plugin, now: Arc::new(Mutex::new((token, expires))) })
        }
        (Some(token), None) => Printed::Token(token),
        (None, _) => Printed::Nothing,
    })
}

impl Refreshed {
    /// The header with a token that is valid for some time yet. Requests that are made while the plugin runs for a new one wait
    /// for it, too.
    pub(super) async fn authorization(&self) -> Result<HeaderValue, Failure> {
        let mut now = self.now.lock().await;
        if Timestamp::now() + SignedDuration::from_secs(60) >= now.1 {
            let status = self.plugin.clone().run_beside().await?;
            let token = status.token.map(SecretString::from).ok_or_else(|| self.plugin.failure("printed no token"))?;
            *now = (token, status.expiration_timestamp.unwrap_or(Timestamp::MAX));
        }
        bearer(&now.0).ok_or_else(|| self.plugin.failure("printed a token that cannot be sent"))
    }
}

impl Plugin {
    fn new(exec: ExecConfig, cluster: &ExecAuthCluster) -> Result<Self, Failure> {
        let interactive = match exec.interactive_mode {
            Some(ExecInteractiveMode::Never) => false,
            _ => std::io::stdin().is_terminal(),
        };
        let information = json!({
            "apiVersion": exec.api_version,
            "kind": "ExecCredential",
            "spec": {
                "interactive": interactive,
                "cluster": exec.provide_cluster_info.then_some(cluster),
            },
        })
        .to_string();
        let plugin = Self { exec, information, interactive };
        match plugin.exec.interactive_mode {
            Some(ExecInteractiveMode::Always) if !interactive => {
                Err(plugin.failure("needs a terminal, and stdin is not one"))
            }
            _ => Ok(plugin),
        }
    }

    /// Runs it on a thread beside: it may open a browser and wait for the user, and Ctrl-C must still work.
    async fn run_beside(self: Arc<Self>) -> Result<Status, Failure> {
        let plugin = self.clone();
        let status = tokio::task::spawn_blocking(move || plugin.run()).await;
        status.map_err(|error| self.failure("does not end").because(error))?
    }

    fn run(&self) -> Result<Status, Failure> {
        let Some(program) = &self.exec.command else { return Err(self.failure("has no command")) };
        let mut command = Command::new(program);
        command.args(self.exec.args.iter().flatten());
        for variable in self.exec.env.iter().flatten() {
            if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
                command.env(name, value);
            }
        }
        command.env("KUBERNETES_EXEC_INFO", &self.information).stderr(Stdio::inherit());
        command.stdin(if self.interactive { Stdio::inherit() } else { Stdio::null() });
        let output = command.output().map_err(|error| {
            let failure = self.failure("cannot be started").because(error);
            match &self.exec.install_hint {
                Some(hint) => failure.hint(hint.trim()),
                None => failure,
            }
        })?;
        if !output.status.success() {
            return Err(self.failure("failed").because(output.status).hint("run it by hand, or log in again"));
        }
        // As a document first: a number is no token, though YAML would take it for a text.
        let read = std::str::from_utf8(&output.stdout).ok().and_then(|text| yaml::from_str::<Value>(text).ok());
        let read: Option<Credential> = read.and_then(|document| serde_json::from_value(document).ok());
        let status = read.and_then(|credential| credential.status);
        let is_complete = |status: &Status| {
            status.token.as_ref().is_some_and(|token| !token.is_empty())
                || (status.client_certificate_data.is_some() && status.client_key_data.is_some())
        };
        status
            .filter(is_complete)
            .ok_or_else(|| self.failure("printed no credentials (an ExecCredential with a status)"))
    }

    /// A failure that names the plugin, without its arguments: they may hold secrets.
    fn failure(&self, what: &str) -> Failure {
        let name = self.exec.command.as_deref().unwrap_or_default();
        Failure::new(Reason::Unauthorized, format!("the credential plugin {name:?} {what}"))
    }
}
