//! The command line of `ocm-policy-webhook`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ocm_kube::ClientArgs;

/// What the program is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("ocm-policy-webhook")
        .about("Judge registrations of clusters by the policies of the hub")
        .long_about(
            "Judge registrations of clusters by the policies of the hub.\n\n\
             It follows the HubPolicies of the hub, loads their WebAssembly modules, and asks them. Each decision is a \
             line of JSON on stdout. /healthz, /readyz and /metrics are served without TLS at an address of their own.",
        )
        .after_help("Exit codes: 0 it was told to end, or everything is renewed, 1 it cannot go on, 2 usage, 130 a run was told to end.")
        .subcommand_required(true)
        .arg_required_else_help(true)
}

const WEBHOOK: &str = "Examples:
  # In a pod, with the certificate of its Service
  ocm-policy-webhook webhook --tls-cert-file /tls/tls.crt --tls-private-key-file /tls/tls.key

  # Beside a hub, with a kubeconfig
  ocm-policy-webhook webhook --context hub --listen 127.0.0.1:9443 --tls-cert-file tls.crt --tls-private-key-file tls.key";

const CONTROLLER: &str = "Examples:
  # In a pod
  ocm-policy-webhook controller

  # Beside a hub, with a kubeconfig; the namespace is that of the Lease
  ocm-policy-webhook controller --context hub --namespace default --health-listen 127.0.0.1:8080";

const CERTIFICATES: &str = "Examples:
  # In a pod, several times a day
  ocm-policy-webhook certificates

  # Now, with a kubeconfig
  ocm-policy-webhook certificates --context hub";

/// Arguments of `ocm-policy-webhook`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProgramArgs {
    #[command(subcommand)]
    pub(crate) role: Role,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What it does.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Role {
    /// Answer the API server's admission reviews at /v1/mutate and /v1/validate
    ///
    /// The certificate and its key are read again when the files change. SIGTERM ends it without losing a review: it goes
    /// on answering for as long as API servers may still have its address.
    #[command(after_help = WEBHOOK)]
    Webhook(WebhookArgs),
    /// Approve and accept the joins that policies with autoApprove allow
    ///
    /// Of several that run, the one that holds the Lease acts. What became of each registration stands in its
    /// Registration: `kubectl get registrations` lists them, and what those that wait are waiting for.
    #[command(after_help = CONTROLLER)]
    Controller(ControllerArgs),
    /// Renew the webhook's certificates, and have the API server trust them
    ///
    /// One run: what is two thirds old is replaced, in the Secrets of the policy engine and the bundles of its webhook
    /// configurations. A new authority signs nothing before every API server trusts it. What a run that was killed has left,
    /// the next one does. It creates nothing, and leaves certificates alone that somebody else has made.
    #[command(after_help = CERTIFICATES)]
    Certificates,
}

/// Arguments of `ocm-policy-webhook webhook`.
#[derive(Args, Clone, Debug)]
pub(crate) struct WebhookArgs {
    /// Address and port that the API server's reviews are answered at
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9443")]
    pub(crate) listen: SocketAddr,
    /// Address and port of /healthz, /readyz and /metrics, without TLS
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub(crate) health_listen: SocketAddr,
    /// File of the serving certificate (PEM), with those between it and its CA
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: PathBuf,
    /// File of its private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: PathBuf,
    /// File of a CA (PEM): serve only clients with a certificate of it, as an API server shows one that is configured to
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) modules: ModulesArgs,
    /// Reviews that are answered at once; one more is told to come again
    #[arg(long, value_name = "NUMBER", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_in_flight: u16,
    /// How long new connections are taken after SIGTERM, e.g. 12s
    #[arg(long, value_name = "DURATION", default_value = "12s")]
    pub(crate) drain: String,
    /// A policy controller acts on this hub, and carries out the obligations that policies answer with, such as
    /// expire-acceptance; without it such an answer is an error
    #[arg(long)]
    pub(crate) with_controller: bool,
}

/// Arguments of `ocm-policy-webhook controller`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ControllerArgs {
    /// Namespace of the Lease
    #[arg(short = 'n', long, value_name = "NAME", default_value = "ocm-policy-engine")]
    pub(crate) namespace: String,
    /// Name of the Lease: of several controllers, the one that holds it acts
    #[arg(long, value_name = "NAME", default_value = "ocm-policy-controller")]
    pub(crate) lease_name: String,
    /// Address and port of /healthz, /readyz and /metrics, without TLS
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub(crate) health_listen: SocketAddr,
    #[command(flatten)]
    pub(crate) modules: ModulesArgs,
}

/// Directories of modules.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModulesArgs {
    /// Directory for compiled modules, so that a restart does not compile them again
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Directory with the modules of policies that name a file (spec.module.path)
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) module_dir: Option<PathBuf>,
}
