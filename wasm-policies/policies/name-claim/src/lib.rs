//! A name belongs to the key that joined with it, also after the cluster is gone. The rules are those of `ocm-rules`.

mod evidence;

use ocm_policy_sdk::rules::claim;
use ocm_policy_sdk::rules::cluster::CREATOR;
use ocm_policy_sdk::rules::csr::{self, About, Kind, Settings};
use ocm_policy_sdk::rules::{Code, Violation};
use ocm_policy_sdk::{
    Answer, EditGrant, ManifestBuilder, Operation, Policy, Request, allow, deny, hold, hub, manifest, no_opinion,
};
use serde::Deserialize;

use evidence::Evidence;

/// The policy with its settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NameClaim {
    /// Whether a person decides where another key wants a joined name; otherwise it is refused.
    hold_taken: bool,
    /// Users who may ask for first certificates besides the hub's bootstrap identities.
    requesters: Vec<String>,
    /// Whether the token that registered a cluster is the only one that gets its first certificate.
    same_credential: bool,
    #[serde(skip)]
    rules: Settings,
}

/// What the rules may find.
const CODES: [Code; 20] = [
    Code::RequestMissing,
    Code::Unreadable,
    Code::ClusterLabel,
    Code::AddonLabel,
    Code::CommonNames,
    Code::CommonName,
    Code::GrpcClaim,
    Code::Requester,
    Code::Impersonated,
    Code::OtherAgent,
    Code::NoManagedCluster,
    Code::Detaching,
    Code::DeniedBefore,
    Code::NamespaceTaken,
    Code::NameTaken,
    Code::TwoKeys,
    Code::NameUsedBefore,
    Code::CredentialUnknown,
    Code::OtherCredential,
    Code::EvidenceIncomplete,
];

impl Policy for NameClaim {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        let builder = manifest(
            "name-claim",
            env!("CARGO_PKG_VERSION"),
            "Keeps the names of clusters for the keys that joined with them",
        )
        .judges([Operation::Create, Operation::Request, Operation::Approve, Operation::Join, Operation::Accept])
        .may_edit(EditGrant::Annotation { key: CREATOR.to_owned() });
        evidence::queries(builder).gives_codes(CODES).settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let rules = Settings { requesters: settings.requesters.clone(), ..Settings::default() };
        Ok(Self { rules, ..settings })
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        match request.operation() {
            Operation::Create => self.remember(request),
            Operation::Accept => self.accept(request),
            _ => self.judge(request),
        }
    }
}

impl NameClaim {
    /// Who registers a cluster with a token of its own leaves its mark.
    fn remember(&self, request: &Request<'_>) -> Answer {
        let requester = request.requester();
        match hub::token_id(requester) {
            Some(id) if self.same_credential && hub::bootstraps(requester, &self.requesters) => {
                allow().annotate(CREATOR, id)
            }
            _ => no_opinion(),
        }
    }

    /// With its acceptance a name gets its rights, and so do certificates that an earlier cluster of the name got.
    fn accept(&self, request: &Request<'_>) -> Answer {
        let name = match hub::cluster_name(request) {
            Err(violation) => return hub::violated(violation),
            Ok(Some(name)) => name,
            Ok(None) => return no_opinion(),
        };
        let evidence = Evidence::of(request, name);
        let Some(holder) = evidence.holder() else { return no_opinion() };
        let facts = evidence.facts(Some(holder));
        let claimants = evidence.claimants(&self.rules);
        let used = claim::used_before(&holder, &facts, claimants.iter().copied());
        // That nobody else had the name is no reason to let somebody in.
        if used.is_none() && evidence.missing().is_none() {
            return no_opinion();
        }
        self.answer(Kind::First, used.into_iter().collect(), &evidence)
    }

    fn judge(&self, request: &Request<'_>) -> Answer {
        let Some(csr) = request.csr() else {
            return deny(Code::RequestMissing.word(), "there is no certificate request");
        };
        let facts = hub::csr_facts(csr);
        // Others approve what add-ons ask for.
        if hub::is_denial(request) || facts.is_addons() {
            return no_opinion();
        }
        let name = match hub::cluster_name(request).and_then(|_| csr::about(&facts)) {
            Err(violation) => return hub::violated(violation),
            Ok(Some(About::Agent { cluster, .. })) => cluster,
            Ok(Some(About::Addon { .. })) => {
                let said = "it asks for the groups of a cluster's agent with the name of an add-on's";
                return deny(Code::CommonName.word(), said).at("spec.request");
            }
            Ok(None) if request.cluster().is_none() => return no_opinion(),
            Ok(None) => return deny(Code::ClusterLabel.word(), "no label names the cluster").at("metadata.labels"),
        };
        let kind = facts.kind();
        if let Some(violation) = facts.requester_violation(name, kind, &self.rules) {
            return hub::violated(violation);
        }
        let evidence = Evidence::of(request, name);
        let found = match kind {
            Kind::Renewal => claim::renewal(evidence.holder().as_ref()).into_iter().collect(),
            _ => self.first(&evidence, &csr.spki_sha256, hub::token_id(&csr.requester)),
        };
        self.answer(kind, found, &evidence)
    }

    /// What keeps a key from the first certificate for a name.
    fn first(&self, evidence: &Evidence<'_, '_>, key: &str, token: Option<&str>) -> Vec<Violation> {
        let holder = evidence.holder();
        let facts = evidence.facts(holder);
        let claimants = evidence.claimants(&self.rules);
        let mut found = claim::first_certificate(&facts, key, claimants.iter().copied());
        if let Some(holder) = holder.filter(|_| self.same_credential) {
            found.extend(claim::credential(&holder, evidence.registered_by(), token));
        }
        found
    }

    fn answer(&self, kind: Kind, found: Vec<Violation>, evidence: &Evidence<'_, '_>) -> Answer {
        // What a person or time may change is held, unless something else stands in the way.
        let passes = |violation: &Violation| match violation.code {
            Code::NoManagedCluster => kind == Kind::First,
            Code::NameTaken => self.hold_taken,
            // Of a request; the denial of the cluster itself stands.
            Code::DeniedBefore => violation.field == "spec.request",
            code => matches!(code, Code::TwoKeys | Code::NameUsedBefore | Code::CredentialUnknown),
        };
        let (held, denied): (Vec<_>, Vec<_>) = found.into_iter().partition(passes);
        let besides = |answer: Answer, Violation { code, field, detail }| answer.because(code.word(), detail).at(field);
        if let Some(denied) = hub::violated_by(denied) {
            return held.into_iter().fold(denied, besides);
        }
        if let Some(missing) = evidence.missing() {
            let said = format!("{missing} could not be read to the end");
            return hold(Code::EvidenceIncomplete.word(), said).again_in(60);
        }
        let mut held = held.into_iter();
        let Some(Violation { code, field, detail }) = held.next() else { return allow() };
        let first = hold(code.word(), detail).at(field);
        let first = if code == Code::NoManagedCluster { first.again_in(10) } else { first };
        held.fold(first, besides)
    }
}

ocm_policy_sdk::export!(NameClaim);
