//! A certificate request asks for exactly what an agent needs.

use ocm_policy_sdk::{
    Answer, Csr, Decision, Manifest, Operation, Policy, Request, Signature, allow, deny, hub, manifest, no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CsrHygiene {
    /// Longest lifetime that may be asked for.
    max_lifetime_seconds: i64,
    /// Shortest modulus of an RSA key.
    min_rsa_bits: u32,
    /// Users who may ask for first certificates besides the hub's bootstrap identities.
    requesters: Vec<String>,
    /// Signers that add-ons may ask, besides the one of the API server.
    addon_signers: Vec<String>,
}

impl Default for CsrHygiene {
    fn default() -> Self {
        // A year is what agents ask for.
        Self { max_lifetime_seconds: 31_536_000, min_rsa_bits: 2048, requesters: Vec::new(), addon_signers: Vec::new() }
    }
}

const API_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const GRPC_SIGNER: &str = "open-cluster-management.io/grpc";

impl Policy for CsrHygiene {
    type Settings = Self;

    fn manifest() -> impl Into<Manifest> {
        manifest("csr-hygiene", env!("CARGO_PKG_VERSION"), "Lets certificate requests ask for what an agent needs")
            .judges([Operation::Approve, Operation::Join])
            .gives("request-missing", "There is no certificate request to look at")
            .gives("unreadable", "The request cannot be read")
            .gives("cluster-label", "The label names no cluster, or another than the one that this is about")
            .gives("common-name", "There is not exactly one common name, or it is not that of an agent of the cluster")
            .gives("organizations", "The organisations are not exactly those of the cluster")
            .gives("subject-attributes", "The subject says more than common name and organisations")
            .gives("alternative-names", "Subject alternative names are asked for")
            .gives("extensions", "Other extensions are asked for")
            .gives("signer", "Another signer is asked than the one for this requester")
            .gives("usages", "Other usages are asked for than those of a client")
            .gives("lifetime", "A longer lifetime is asked for than allowed")
            .gives("weak-key", "The key is too weak or of a kind that cannot be verified")
            .gives("signature", "The request is not signed with its own key")
            .gives("grpc-claim", "It claims to come from the hub's gRPC server, or that server does not say who asks")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let mut wrong = Vec::new();
        if settings.max_lifetime_seconds < 600 {
            wrong.push("maxLifetimeSeconds is less than 600, the least that a signer gives".to_owned());
        }
        if settings.min_rsa_bits < 2048 {
            wrong.push("minRsaBits is less than 2048".to_owned());
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> impl Into<Decision> {
        self.judge(request)
    }
}

/// Rules that are broken: code, what was found, field.
type Breaches = Vec<(&'static str, String, &'static str)>;

impl CsrHygiene {
    fn judge(&self, request: &Request<'_>) -> Answer {
        let Some(csr) = &request.csr else { return deny("request-missing", "there is no certificate request") };
        if hub::is_denial(request) || (request.operation != Operation::Join && !is_ours(csr)) {
            return no_opinion();
        }
        let mut breaches = Breaches::new();
        self.check_form(csr, &mut breaches);
        let vouched = match is_addons(csr) {
            true => self.check_addon(request, csr, &mut breaches),
            false => self.check_agent(request, csr, &mut breaches),
        };
        let mut breaches = breaches.into_iter();
        let Some((code, message, field)) = breaches.next() else {
            // That the form is right does not make a stranger somebody who may ask.
            return if vouched { allow() } else { no_opinion() };
        };
        let first = deny(code, message).at(field);
        breaches.fold(first, |answer, (code, message, field)| answer.because(code, message).at(field))
    }

    /// What holds for agents and add-ons alike.
    fn check_form(&self, csr: &Csr<'_>, breaches: &mut Breaches) {
        let mut breach = |code, message: &str, field| breaches.push((code, message.to_owned(), field));
        if csr.unreadable.is_some() {
            breach("unreadable", "the request cannot be read", "spec.request");
        } else {
            if !csr.other_attributes.is_empty() {
                breach("subject-attributes", "the subject has other attributes", "spec.request");
            }
            if !csr.alternative_names.is_empty() {
                breach("alternative-names", "alternative names are asked for", "spec.request");
            }
            if !csr.extensions.is_empty() {
                breach("extensions", "extensions are asked for", "spec.request");
            }
            let strong = match &*csr.key.algorithm {
                "ECDSA" => matches!(csr.key.bits, 256 | 384 | 521),
                "Ed25519" => true,
                "RSA" => csr.key.bits >= self.min_rsa_bits,
                _ => false,
            };
            if !strong {
                breach("weak-key", "the key is too weak, or of an unknown kind", "spec.request");
            }
            if csr.signature != Signature::Valid {
                breach("signature", "the request is not signed with its own key", "spec.request");
            }
        }
        if csr.lifetime_seconds.is_some_and(|seconds| seconds <= 0 || seconds > self.max_lifetime_seconds) {
            let most = self.max_lifetime_seconds;
            breach("lifetime", &format!("at most {most} seconds may be asked for"), "spec.expirationSeconds");
        }
        let has = |usage: &str| csr.usages.iter().any(|known| known == usage);
        let known = |usage: &str| matches!(usage, "digital signature" | "key encipherment" | "client auth");
        if !has("digital signature") || !has("client auth") || !csr.usages.iter().all(|usage| known(usage)) {
            breach("usages", "the usages are not those of a client", "spec.usages");
        }
    }

    /// Whether somebody asks who may ask for an agent's certificate.
    fn check_agent(&self, request: &Request<'_>, csr: &Csr<'_>, breaches: &mut Breaches) -> bool {
        let mut breach = |code, message: &str, field| breaches.push((code, message.to_owned(), field));
        let label = csr.labels.get(hub::CLUSTER_NAME).map_or("", |label| label);
        let joined = request.cluster.as_ref().map(|cluster| &*cluster.name);
        if label.is_empty() || joined.is_some_and(|name| name != label) {
            breach("cluster-label", "the label does not name the cluster", "metadata.labels");
        }
        if csr.unreadable.is_none() {
            let cluster = match &csr.common_names[..] {
                [name] => hub::agent(name).map(|(cluster, _)| cluster),
                _ => None,
            };
            if cluster.is_none_or(|cluster| cluster != label) {
                breach("common-name", "the common name is not that of one agent of the cluster", "spec.request");
            }
            let own = |group: &str| group.strip_prefix(hub::PREFIX) == Some(label);
            let known = |group: &str| group == hub::ALL_AGENTS || own(group);
            if !csr.organizations.iter().any(|group| own(group)) || !csr.organizations.iter().all(|group| known(group))
            {
                breach("organizations", "the organisations are not those of the cluster", "spec.request");
            }
        }
        let claim = csr.annotations.get(hub::CSR_USER);
        let by_grpc = hub::is_grpc_server(&csr.requester);
        if !by_grpc && (claim.is_some() || csr.signer == GRPC_SIGNER) {
            breach(
                "grpc-claim",
                "only the hub's gRPC server may say who asks, and ask its signer",
                "metadata.annotations",
            );
        } else if by_grpc && claim.is_none_or(|user| user.is_empty()) {
            breach("grpc-claim", "the hub's gRPC server does not say who asks", "metadata.annotations");
        } else if csr.signer != if by_grpc { GRPC_SIGNER } else { API_SIGNER } {
            breach("signer", "this signer is not the one for this requester", "spec.signerName");
        }
        let user = hub::asking_user(request);
        let first = match by_grpc {
            true => {
                user == hub::BOOTSTRAP_USER
                    || hub::is_bootstrap_token(user)
                    || self.requesters.iter().any(|known| known == user)
            }
            false => hub::bootstraps(&csr.requester, &self.requesters) && hub::lacks(&csr.requester).is_none(),
        };
        first || hub::is_renewal(request)
    }

    /// Whether the cluster's own agent, or the add-on's, asks.
    fn check_addon(&self, request: &Request<'_>, csr: &Csr<'_>, breaches: &mut Breaches) -> bool {
        let mut breach = |code, message: &str, field| breaches.push((code, message.to_owned(), field));
        let label = |key: &str| csr.labels.get(key).map_or("", |label| label);
        let (cluster, addon) = (label(hub::CLUSTER_NAME), label(hub::ADDON_NAME));
        if cluster.is_empty() || addon.is_empty() {
            breach("cluster-label", "the labels do not name cluster and add-on", "metadata.labels");
        }
        let [of_cluster, of_all] = addon_groups(cluster, addon);
        let below = |text: &str| text.strip_prefix(&*of_cluster).is_some_and(|rest| rest.starts_with(":agent:"));
        if csr.unreadable.is_none() {
            if !matches!(&csr.common_names[..], [name] if below(name)) {
                breach("common-name", "the common name is not that of this add-on's agent", "spec.request");
            }
            let known =
                |group: &str| group == "system:authenticated" || group == of_all || group == of_cluster || below(group);
            if !csr.organizations.iter().all(|group| known(group)) {
                breach("organizations", "the organisations are not those of this add-on", "spec.request");
            }
        }
        let grpc = csr.signer == GRPC_SIGNER || csr.annotations.contains(hub::CSR_USER);
        if grpc && !hub::is_grpc_server(&csr.requester) {
            breach("grpc-claim", "only the hub's gRPC server may say who asks", "metadata.annotations");
        } else if csr.signer != API_SIGNER
            && csr.signer != GRPC_SIGNER
            && !self.addon_signers.iter().any(|known| csr.signer == known.as_str())
        {
            breach("signer", "add-ons may not ask this signer", "spec.signerName");
        }
        let user = hub::asking_user(request);
        hub::agent(user).is_some_and(|(of, _)| of == cluster) || below(user)
    }
}

/// The groups of an add-on: of its agent on one cluster, and of all its agents.
fn addon_groups(cluster: &str, addon: &str) -> [String; 2] {
    [format!("{}cluster:{cluster}:addon:{addon}", hub::PREFIX), format!("{}addon:{addon}", hub::PREFIX)]
}

/// Whether the request has to do with the hub at all: by label, by what it asks for, or by who asks. Who registers
/// clusters, and agents, have nothing else to ask for.
fn is_ours(csr: &Csr<'_>) -> bool {
    let user = &*csr.requester.username;
    user == hub::GRPC_SERVER
        || user.starts_with(hub::PREFIX)
        || hub::bootstraps(&csr.requester, &[])
        || csr.labels.contains(hub::CLUSTER_NAME)
        || csr.labels.contains(hub::ADDON_NAME)
        || csr.annotations.contains(hub::CSR_USER)
        || csr.signer == GRPC_SIGNER
        || csr.common_names.iter().chain(&csr.organizations).any(|name| name.starts_with(hub::PREFIX))
}

/// A label alone hides nothing: whoever asks for the name or the groups of an agent is judged as one.
fn is_addons(csr: &Csr<'_>) -> bool {
    let is_agents_group = |group: &str| group.strip_prefix(hub::PREFIX).is_some_and(|rest| !rest.contains(':'));
    let any_agents = csr.common_names.iter().any(|name| hub::agent(name).is_some())
        || csr.organizations.iter().any(|group| is_agents_group(group));
    csr.labels.contains(hub::ADDON_NAME) && !any_agents
}

ocm_policy_sdk::export!(CsrHygiene);
