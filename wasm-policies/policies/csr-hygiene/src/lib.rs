//! A certificate request asks for exactly what an agent needs, and somebody asks who may. The rules are those of
//! `ocm-rules`.

use ocm_policy_sdk::rules::csr::{self, About, AddonFacts, Settings};
use ocm_policy_sdk::rules::identity::OWN_NAMES;
use ocm_policy_sdk::rules::{Code, Violation};
use ocm_policy_sdk::{
    Answer, EvidenceSource, ManifestBuilder, Operation, Policy, Query, Request, allow, deny, hold, hub, manifest,
    no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CsrHygiene {
    /// Longest lifetime that may be asked for.
    max_lifetime_seconds: Option<i64>,
    /// Lifetime of a certificate for which none was asked.
    signer_default_seconds: Option<i64>,
    /// Shortest modulus of an RSA key.
    min_rsa_bits: Option<u32>,
    /// Users who may ask for first certificates besides the hub's bootstrap identities.
    requesters: Vec<String>,
    /// Signers that add-ons may ask, besides the ones of the hub. None: any signer of their own.
    addon_signers: Vec<String>,
    #[serde(skip)]
    rules: Settings,
}

/// The add-ons that are enabled for the cluster.
const ADDONS: &str = "addons";
/// The roles of clusters that have the group of an add-on with names of its own.
const ROLES: &str = "roles";

/// What the rules may find.
const CODES: [Code; 22] = [
    Code::RequestMissing,
    Code::Unreadable,
    Code::ClusterLabel,
    Code::AddonLabel,
    Code::CommonNames,
    Code::CommonName,
    Code::NameReserved,
    Code::ForeignOrganization,
    Code::MissingOrganization,
    Code::SubjectAttributes,
    Code::Signer,
    Code::Usages,
    Code::GrpcClaim,
    Code::AlternativeNames,
    Code::Extensions,
    Code::Lifetime,
    Code::WeakKey,
    Code::Signature,
    Code::Requester,
    Code::Impersonated,
    Code::OtherAgent,
    Code::AddonNotEnabled,
];

impl Policy for CsrHygiene {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        let addons = EvidenceSource::Objects {
            api_version: "addon.open-cluster-management.io/v1alpha1".to_owned(),
            resource: "managedclusteraddons".to_owned(),
            namespace: None,
        };
        let roles = EvidenceSource::Objects {
            api_version: "rbac.authorization.k8s.io/v1".to_owned(),
            resource: "clusterroles".to_owned(),
            namespace: None,
        };
        let clusters: Vec<&str> = OWN_NAMES.iter().map(|names| names.cluster).collect();
        let selector = Some(format!("{} in ({})", hub::CLUSTER_NAME, clusters.join(", ")));
        // One is enough.
        let roles = Query { selector, limit: Some(1), ..Query::new(ROLES, roles, [""; 0]) };
        manifest("csr-hygiene", env!("CARGO_PKG_VERSION"), "Lets certificate requests ask for what an agent needs")
            .judges([Operation::Request, Operation::Approve, Operation::Join])
            .needs_of_cluster(ADDONS, addons, "/metadata/namespace", &[])
            .needs_query(roles)
            .gives_codes(CODES)
            .gives_codes([Code::EvidenceIncomplete])
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let usual = Settings::default();
        let rules = Settings {
            requesters: settings.requesters.clone(),
            addon_signers: settings.addon_signers.clone(),
            max_lifetime_seconds: settings.max_lifetime_seconds.unwrap_or(usual.max_lifetime_seconds),
            signer_default_seconds: settings.signer_default_seconds.unwrap_or(usual.signer_default_seconds),
            min_rsa_bits: settings.min_rsa_bits.unwrap_or(usual.min_rsa_bits),
        };
        let mut wrong = Vec::new();
        if rules.max_lifetime_seconds < 600 {
            wrong.push("maxLifetimeSeconds is less than 600, the least that a signer gives".to_owned());
        }
        if rules.signer_default_seconds < 600 {
            wrong.push("signerDefaultSeconds is less than 600, the least that a signer gives".to_owned());
        }
        if rules.min_rsa_bits < 2048 {
            wrong.push("minRsaBits is less than 2048".to_owned());
        }
        if wrong.is_empty() { Ok(Self { rules, ..settings }) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request)
    }
}

impl CsrHygiene {
    fn judge(&self, request: &Request<'_>) -> Answer {
        let Some(csr) = request.csr() else {
            return deny(Code::RequestMissing.word(), "there is no certificate request");
        };
        if hub::is_denial(request) {
            return no_opinion();
        }
        let facts = hub::csr_facts(csr);
        let expected = request.cluster().map(|cluster| &*cluster.name);
        let addon = match csr::about(&facts) {
            Ok(Some(About::Addon { addon, .. })) => AddonFacts {
                is_enabled: is_there(request, ADDONS, Some(addon)),
                group_is_a_clusters: facts.own_names().and_then(|_| is_there(request, ROLES, None)),
            },
            _ => AddonFacts::default(),
        };
        let Some(judgement) = csr::judge(&facts, expected, &self.rules, addon) else { return no_opinion() };
        let is_unknown = |violation: &Violation| violation.code == Code::EvidenceIncomplete;
        let (unknown, found): (Vec<_>, Vec<_>) = judgement.violations.into_iter().partition(is_unknown);
        match (hub::violated_by(found), unknown.into_iter().next()) {
            (Some(denied), _) => denied,
            // Last, because it may be asked again, and what is wrong stays wrong.
            (None, Some(Violation { code, detail, .. })) => hold(code.word(), detail).again_in(60),
            (None, None) => allow(),
        }
    }
}

/// Whether the hub has an object of this name, or any; none where that is not known.
fn is_there(request: &Request<'_>, query: &str, name: Option<&str>) -> Option<bool> {
    let table = request.evidence(query)?;
    let there = table.rows.iter().any(|row| name.is_none_or(|name| row.name == name));
    // With the table cut off, one that is not in it may still be there.
    (there || table.complete).then_some(there)
}

ocm_policy_sdk::export!(CsrHygiene);
