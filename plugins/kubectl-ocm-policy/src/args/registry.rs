//! The command line of the verbs that are about modules in registries.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ocm_cli::Described;

use super::kind::KindArgs;

const PUSH: &str = "\
What is printed is the image with its digest, as spec.module.oci.image of a HubPolicy names it. A registry on \
this machine is spoken to without TLS, unless --ca-file is given. Credentials are those of docker login.

Examples:
  kubectl ocm policy push only-prod.wasm registry.example/policies/only-prod:v1

  # Signed with a key of one's own; the public key goes into the HubPolicy
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
  openssl pkey -in key.pem -pubout -out key.pub
  kubectl ocm policy push only-prod.wasm registry.example/policies/only-prod:v1 --sign-key key.pem

Exit codes: 0 pushed, 1 the registry failed or refused it, 2 usage, 130 interrupted.";

const PULL: &str = "\
Where the reference has a digest, nothing else is taken. With --key nothing is taken that the key has not signed.

Examples:
  kubectl ocm policy pull registry.example/policies/only-prod:v1
  kubectl ocm policy pull registry.example/policies/only-prod:v1 --key key.pub -o only-prod.wasm

Exit codes: 0 pulled, 1 it cannot be had, is no module or is not signed, 2 usage, 130 interrupted.";

const VERIFY: &str = "\
Signatures are those of cosign sign --key (its classic form, the tag sha256-DIGEST.sig) and of policy push \
--sign-key. They are verified on this machine, and no transparency log is asked. What is printed is the image \
with its digest.

Examples:
  kubectl ocm policy verify registry.example/policies/only-prod:v1 --key cosign.pub

Exit codes: 0 it is signed by this key, 1 it is not or cannot be had, 2 usage, 130 interrupted.";

/// What is done with modules in registries.
#[derive(Subcommand, Clone, Debug)]
#[command(defer = true)]
pub(crate) enum InRegistry {
    /// Put a module into a registry, signed if wanted
    #[command(after_help = PUSH)]
    Push(Described<PushArgs>),
    /// Take a module out of a registry
    #[command(after_help = PULL)]
    Pull(Described<PullArgs>),
    /// See whether a module in a registry is signed by a key
    #[command(after_help = VERIFY)]
    Verify(Described<VerifyArgs>),
}

/// How registries are reached.
#[derive(Args, Clone, Debug)]
pub(crate) struct RegistryArgs {
    /// File of the CA certificates to trust the registry by (PEM) (default: those of the system)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
}

/// How an image holds a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutArg {
    /// Wasm OCI artifact, as most tools write and read it
    #[default]
    Wasm,
    /// As Kubewarden's tools write and read it
    Kubewarden,
}

/// Arguments of `kubectl ocm policy push`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PushArgs {
    /// The module
    #[arg(value_name = "FILE")]
    pub(crate) module: PathBuf,
    /// Where it goes: REGISTRY/REPOSITORY:TAG
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// How the image holds the module
    #[arg(long, value_enum, value_name = "LAYOUT", default_value_t)]
    pub(crate) layout: LayoutArg,
    /// File of a private key to sign the image with (PEM, PKCS #8, ECDSA P-256, without a password)
    #[arg(long, value_name = "FILE")]
    pub(crate) sign_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// Arguments of `kubectl ocm policy pull`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PullArgs {
    /// The image: REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    /// Where the module is written; a file that is there is replaced (default: the end of the repository's name, with
    /// .wasm, in this directory, unless such a file is there)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    /// File of the public key that must have signed the image (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// Arguments of `kubectl ocm policy verify`.
#[derive(Args, Clone, Debug)]
pub(crate) struct VerifyArgs {
    /// The image: REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    /// File of the public key that must have signed it (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}
