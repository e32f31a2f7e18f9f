//! A Secret without its secrets.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::member::Member;
use serde::Serialize;

use super::observed::Version;

/// A Secret without its secrets: which keys it has, how large they are, and what of their content is public.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which object it was, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Its type.
    pub type_: String,
    /// Its keys.
    pub keys: BTreeMap<String, KeyFacts>,
    /// The certificates in its keys: DER, in their order.
    pub certificates: BTreeMap<String, Vec<ByteString>>,
    /// Whether the key in `tls.key` belongs to the certificate in `tls.crt`; none: one of them is missing or cannot be read.
    pub holds_key: Option<bool>,
    /// What its key `config.yaml` says of the hub's gRPC server; none: there is no such key, or it names no server.
    pub grpc: Option<GrpcFacts>,
    /// What its key `kubeconfig` says; none: there is no such key, or it is no kubeconfig.
    pub kubeconfig: Option<KubeconfigFacts>,
    /// The cluster that an agent noted.
    pub cluster: Option<String>,
    /// The name that an agent noted of itself.
    pub agent: Option<String>,
    /// The annotations that checks read.
    pub annotations: BTreeMap<String, String>,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct KeyFacts {
    /// How many bytes it has.
    pub bytes: usize,
    /// HMAC-SHA256 of it, in hex, by a key that was made for this observation and is not kept: values of one snapshot can be
    /// compared, and nobody can try what a short password may be.
    pub digest: String,
}

/// A kubeconfig with one hub, without its credentials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeconfigFacts {
    /// The address of the hub.
    pub server: String,
    /// The authorities that vouch for it: DER. Empty: the system's.
    pub authorities: Vec<ByteString>,
    /// The proxy on the way, to be shown: its URL without credentials, or that it cannot be read.
    pub proxy: Option<String>,
    /// What its token says of itself.
    pub token: Option<TokenFacts>,
}

/// The hub's gRPC server as an agent dials it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcFacts {
    /// Host and port.
    pub server: String,
    /// The authorities that vouch for it: DER. Empty: the system's.
    pub authorities: Vec<ByteString>,
    /// What its token says of itself; none: there is none, as in what an agent was let in with.
    pub token: Option<TokenFacts>,
}

/// What a token says of itself; nothing of it is verified.
#[derive(Clone, Debug, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum TokenFacts {
    /// A service account's token.
    #[serde(rename_all = "camelCase")]
    ServiceAccount {
        /// Who it is for.
        subject: Option<String>,
        /// Until when it is valid.
        expires: Option<Time>,
        /// Its own id.
        id: Option<String>,
    },
    /// A bootstrap token.
    Bootstrap {
        /// Its public half.
        id: String,
    },
    /// Some other word.
    Opaque,
}
