//! Whether a certificate request asks for exactly what an agent needs.

use super::facts::{API_SIGNER, Content, Csr, GRPC_SIGNER, Key, Signature, Unreadable, texts};
use super::field::{LABELS, REQUEST, REQUESTER};
use super::violations::{addon_label_violation, no_addon_label_violation};
use crate::code::{Quoted, quoted};
use crate::identity::{self, GRPC_SERVER_USER, Identity, MANAGED_CLUSTERS_GROUP, OwnNames, PREFIX};
use crate::{Code, Violation, name};

/// A year in seconds: what agents ask for at most, and what signers give where nothing is asked for.
pub const YEAR: i64 = 31_536_000;

/// What may be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Users who may ask for a cluster's first certificate besides the hub's own bootstrap identities. Exact names.
    pub requesters: Vec<String>,
    /// Signers that add-ons may ask besides the API server's and the gRPC server's. None: any signer of their own.
    pub addon_signers: Vec<String>,
    /// Longest lifetime that may be asked for.
    pub max_lifetime_seconds: i64,
    /// The lifetime of a certificate for which none was asked.
    pub signer_default_seconds: i64,
    /// Shortest modulus of an RSA key.
    pub min_rsa_bits: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requesters: Vec::new(),
            addon_signers: Vec::new(),
            max_lifetime_seconds: YEAR,
            signer_default_seconds: YEAR,
            min_rsa_bits: 2048,
        }
    }
}

/// Longest modulus of an RSA key: longer ones are not verified, for that takes too long.
const MAX_RSA_BITS: u32 = 8192;

impl Key<'_> {
    fn is_strong(self, settings: &Settings) -> bool {
        match self {
            Self::P256 | Self::P384 | Self::P521 | Self::Ed25519 => true,
            Self::Rsa(bits) => (settings.min_rsa_bits..=MAX_RSA_BITS).contains(&bits),
            Self::Other(_) => false,
        }
    }
}

/// What sort of certificate is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An agent's first.
    First,
    /// An agent asks for its own again.
    Renewal,
    /// An add-on's.
    Addon,
}

/// What a request comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What sort of certificate is asked for.
    pub kind: Kind,
    /// Every rule that is broken.
    pub violations: Vec<Violation>,
}

/// What the hub has besides an add-on's request. None: nobody has looked, or not everything can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddonFacts {
    /// Whether it has the ManagedClusterAddOn that the request is for.
    pub is_enabled: Option<bool>,
    /// Whether a cluster has rights by the group that add-ons with [names of their own](Csr::own_names) ask for: the certificate
    /// would have the rights of its agents.
    pub group_is_a_clusters: Option<bool>,
}

/// Checks a request against every rule, whoever asks. `expected` is the cluster that it must be about, where that is
/// known; `addon` is about an add-on's request alone. None if the request has nothing to do with the hub.
pub fn judge<S: AsRef<str>>(
    csr: &Csr<'_, S>,
    expected: Option<&str>,
    settings: &Settings,
    addon: AddonFacts,
) -> Option<Judgement> {
    if expected.is_none() && !csr.concerns_hub() {
        return None;
    }
    let mut found = Vec::new();
    if csr.is_addons() {
        match csr.has_own_signer() {
            // The certificate is no identity on the hub: its signer decides about its form.
            true => csr.check_readable(&mut found),
            false => csr.check_form(settings, &mut found),
        }
        csr.check_addon(expected, settings, addon, &mut found);
        return Some(Judgement { kind: Kind::Addon, violations: found });
    }
    // By its common name: an agent is judged as one whatever the label says.
    let mut names = csr.common_names();
    let named = match (names.next().map(Identity::of), names.next()) {
        (Some(Identity::Agent { cluster, .. }), None) => Some(cluster),
        _ => None,
    };
    let cluster = expected.or(named).or(csr.cluster_label).unwrap_or_default();
    let kind = csr.kind();
    csr.check_agent(cluster, kind, settings, &mut found);
    Some(Judgement { kind, violations: found })
}

/// Checks a request against every rule for the first certificate of an agent of `cluster`, whoever asks. An empty
/// answer means that it asks for exactly that and nothing else.
pub fn first_certificate<S: AsRef<str>>(csr: &Csr<'_, S>, cluster: &str, settings: &Settings) -> Vec<Violation> {
    let mut found = Vec::new();
    csr.check_agent(cluster, Kind::First, settings, &mut found);
    found
}

impl<S: AsRef<str>> Csr<'_, S> {
    /// What sort of certificate is asked for. Whoever has a name that the hub gave asks for no first certificate.
    pub fn kind(&self) -> Kind {
        match Identity::of(self.asked_by()).is_hub_given() {
            _ if self.is_addons() => Kind::Addon,
            true => Kind::Renewal,
            false => Kind::First,
        }
    }

    /// Whether somebody asks who may not ask for a certificate of this sort for an agent of `cluster`.
    pub fn requester_violation(&self, cluster: &str, kind: Kind, settings: &Settings) -> Option<Violation> {
        let violation = |code, field, detail| Some(Violation::new(code, field, detail));
        let user = self.requester.user;
        let by_grpc = user == GRPC_SERVER_USER;
        if !by_grpc && (self.grpc_user.is_some() || self.signer == GRPC_SIGNER) {
            let detail = format!("it claims the hub's gRPC server, but was created by {}", Quoted(user));
            return violation(Code::GrpcClaim, "metadata.annotations", detail);
        }
        if let Some(lack) = self.requester.lack() {
            return violation(Code::Impersonated, REQUESTER, format!("{} {lack}", Quoted(user)));
        }
        if by_grpc && self.grpc_user.is_none_or(str::is_empty) {
            let detail = "the hub's gRPC server does not say who asked".to_owned();
            return violation(Code::GrpcClaim, "metadata.annotations", detail);
        }
        let asked_by = self.asked_by();
        let own = self.is_renewal(cluster);
        if Identity::of(asked_by).is_hub_given() && !own {
            let detail = format!("{} may only ask for its own name again", Quoted(asked_by));
            return violation(Code::OtherAgent, REQUESTER, detail);
        }
        // What stands behind the gRPC server is known by name only; its groups are not recorded.
        let entitled = match (kind, by_grpc) {
            (Kind::Renewal, _) => own,
            (_, true) => identity::bootstraps_by_name(asked_by, &settings.requesters),
            (_, false) => self.requester.bootstraps(&settings.requesters),
        };
        match entitled {
            true => None,
            false => violation(Code::Requester, REQUESTER, format!("{} may not register clusters", Quoted(asked_by))),
        }
    }

    /// Everything that holds for an agent's request.
    fn check_agent(&self, cluster: &str, kind: Kind, settings: &Settings, found: &mut Vec<Violation>) {
        if self.cluster_label != Some(cluster) || cluster.is_empty() {
            found.push(self.cluster_label_violation());
        }
        if let Some(label) = self.addon_label {
            found.push(addon_label_violation(label));
        }
        found.extend(self.requester_violation(cluster, kind, settings));
        let expected = match self.requester.user == GRPC_SERVER_USER {
            true => GRPC_SIGNER,
            false => API_SIGNER,
        };
        if self.signer != expected {
            let detail = format!("signer {} instead of {expected}", Quoted(self.signer));
            found.push(Violation::new(Code::Signer, "spec.signerName", detail));
        }
        self.check_form(settings, found);
        let Ok(content) = &self.content else { return };
        match content.common_names {
            [name] => match Identity::of(name.as_ref()) {
                Identity::Agent { cluster: of, .. } if of == cluster && !name::is_reserved(cluster) => {}
                Identity::Agent { cluster: of, .. } if of == cluster => {
                    found.extend(name::check(cluster, &[]));
                }
                _ => {
                    let detail = format!("common name {} is no agent of {}", Quoted(name.as_ref()), Quoted(cluster));
                    found.push(Violation::new(Code::CommonName, REQUEST, detail));
                }
            },
            _ => found.push(content.common_names_violation()),
        }
        let own = |group: &&str| identity::is_group_of(group, cluster);
        let foreign = |group: &&str| !own(group) && *group != MANAGED_CLUSTERS_GROUP;
        content.check_organizations(foreign, found);
        if !texts(content.organizations).any(|group| own(&group)) {
            let detail = format!("organization {:?} is missing", format!("{PREFIX}{cluster}"));
            found.push(Violation::new(Code::MissingOrganization, REQUEST, detail));
        }
    }

    /// What holds for agents and add-ons alike: usages, lifetime, and the form of the content.
    fn check_form(&self, settings: &Settings, found: &mut Vec<Violation>) {
        let has = |usage: &str| texts(self.usages).any(|known| known == usage);
        let known = |usage: &str| matches!(usage, "digital signature" | "key encipherment" | "client auth");
        if !has("digital signature") || !has("client auth") || !texts(self.usages).all(known) {
            let detail = format!("usages {}", quoted(texts(self.usages)));
            found.push(Violation::new(Code::Usages, "spec.usages", detail));
        }
        let most = settings.max_lifetime_seconds;
        let wrong = match self.lifetime_seconds {
            Some(seconds) => (seconds <= 0 || seconds > most).then(|| format!("{seconds}s asked for, {most}s allowed")),
            None => (settings.signer_default_seconds > most).then(|| {
                let default = settings.signer_default_seconds;
                format!("no lifetime asked for, for which signers give up to {default}s, {most}s allowed")
            }),
        };
        if let Some(detail) = wrong {
            found.push(Violation::new(Code::Lifetime, "spec.expirationSeconds", detail));
        }
        self.check_readable(found);
        if let Ok(content) = &self.content {
            content.check_form(settings, self.addons_dns_name().as_deref(), found);
        }
    }

    /// The name that the agent gives the certificate of an add-on beside its common name, as alternative names are told. API
    /// servers take nobody for that name. Upstream: `NewCSRDriverForAddOn`.
    fn addons_dns_name(&self) -> Option<String> {
        let addon = self.addon_label.filter(|_| self.is_addons())?;
        Some(format!("DNSName({addon}.addon.open-cluster-management.io)"))
    }

    /// What cannot be read may name anybody.
    fn check_readable(&self, found: &mut Vec<Violation>) {
        found.extend(self.content.as_ref().err().map(Unreadable::violation));
    }

    /// What the names for an add-on's own signer may not be: those of another cluster, with either prefix.
    fn check_other_clusters(&self, cluster: &str, addon: &str, found: &mut Vec<Violation>) {
        let Ok(content) = &self.content else { return };
        let foreign = |name: &str| match name.strip_prefix(PREFIX) {
            Some(rest) => Identity::of(name).cluster() != Some(cluster) && rest.strip_prefix("addon:") != Some(addon),
            // Add-ons name groups after themselves in the same way: `open-cluster-management:cluster-proxy`.
            None => identity::cluster_of_group(name).is_some_and(|of| of != cluster && of != addon),
        };
        if let Some(name) = texts(content.common_names).find(|name| foreign(name)) {
            let detail = format!("common name {} is not one of {}", Quoted(name), Quoted(cluster));
            found.push(Violation::new(Code::CommonName, REQUEST, detail));
        }
        content.check_organizations(|group| foreign(group), found);
    }

    /// Everything that holds for an add-on's request besides its form.
    fn check_addon(&self, expected: Option<&str>, settings: &Settings, facts: AddonFacts, found: &mut Vec<Violation>) {
        let (cluster, addon) = (self.cluster_label.unwrap_or_default(), self.addon_label.unwrap_or_default());
        if cluster.is_empty() || expected.is_some_and(|expected| expected != cluster) {
            found.push(self.cluster_label_violation());
        }
        if addon.is_empty() {
            found.push(no_addon_label_violation());
        }
        // `…:cluster:<cluster>:addon:<addon>` and what stands below it.
        let below = |name: &str| {
            matches!(Identity::of(name), Identity::AddonAgent { cluster: c, addon: a, agent: Some(_) }
                if c == cluster && a == addon)
        };
        if self.has_own_signer() {
            self.check_other_clusters(cluster, addon, found);
        } else if let Some(names) = self.own_names() {
            found.extend(group_violation(names, facts.group_is_a_clusters));
        } else if let Ok(content) = &self.content {
            match content.common_names {
                [name] if below(name.as_ref()) => {}
                [name] => {
                    let detail = format!("common name {} is not that of this add-on's agent", Quoted(name.as_ref()));
                    found.push(Violation::new(Code::CommonName, REQUEST, detail));
                }
                _ => found.push(content.common_names_violation()),
            }
            let known = |group: &str| {
                group == "system:authenticated"
                    || group.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix("addon:")) == Some(addon)
                    || matches!(Identity::of(group), Identity::AddonAgent { cluster: c, addon: a, .. }
                        if c == cluster && a == addon)
            };
            content.check_organizations(|group| !known(group), found);
        }
        let any_own = self.has_own_signer() && settings.addon_signers.is_empty();
        let may_sign = self.is_for_hub() || any_own || settings.addon_signers.iter().any(|known| known == self.signer);
        if (self.signer == GRPC_SIGNER || self.grpc_user.is_some()) && !self.requester.is_grpc_server() {
            let detail = format!("it claims the hub's gRPC server, but was created by {}", Quoted(self.requester.user));
            found.push(Violation::new(Code::GrpcClaim, "metadata.annotations", detail));
        } else if !may_sign {
            let detail = format!("add-ons may not ask the signer {}", Quoted(self.signer));
            found.push(Violation::new(Code::Signer, "spec.signerName", detail));
        }
        let asked_by = self.asked_by();
        // Of whom the gRPC server names no groups are known, so nobody behind it is known by an AWS identity.
        let entitled = matches!(Identity::of(asked_by), Identity::Agent { cluster: of, .. } if of == cluster)
            || below(asked_by)
            || self.requester.is_aws_agent_of(cluster);
        if !entitled {
            let detail = format!("{} may not ask for this add-on", Quoted(asked_by));
            found.push(Violation::new(Code::Requester, REQUESTER, detail));
        }
        match facts.is_enabled {
            Some(true) => {}
            Some(false) => {
                let detail = format!("the hub has no add-on {} for {}", Quoted(addon), Quoted(cluster));
                found.push(Violation::new(Code::AddonNotEnabled, LABELS, detail));
            }
            None => {
                let detail = "whether the add-on is enabled is not known";
                found.push(Violation::new(Code::EvidenceIncomplete, LABELS, detail));
            }
        }
    }
}

/// What is against the group of an add-on with names of its own: nobody is to get the rights of a cluster's agents by it.
fn group_violation(names: &OwnNames, is_a_clusters: Option<bool>) -> Option<Violation> {
    let group = Quoted(names.group);
    let (code, detail) = match is_a_clusters {
        Some(false) => return None,
        Some(true) => (Code::ForeignOrganization, format!("a cluster of the hub has the group {group}, too")),
        None => (Code::EvidenceIncomplete, format!("whether a cluster of the hub has the group {group} is not known")),
    };
    Some(Violation::new(code, REQUEST, detail))
}

impl<S: AsRef<str>> Content<'_, S> {
    fn check_organizations(&self, foreign: impl Fn(&&str) -> bool, found: &mut Vec<Violation>) {
        if texts(self.organizations).any(|group| foreign(&group)) {
            let detail = format!("organizations {}", quoted(texts(self.organizations).filter(foreign)));
            found.push(Violation::new(Code::ForeignOrganization, REQUEST, detail));
        }
    }

    fn check_form(&self, settings: &Settings, own_name: Option<&str>, found: &mut Vec<Violation>) {
        let others: Vec<&str> = texts(self.alternative_names).filter(|name| Some(*name) != own_name).collect();
        if !others.is_empty() {
            let detail = format!("alternative names {}", quoted(others));
            found.push(Violation::new(Code::AlternativeNames, REQUEST, detail));
        }
        let mut none_of = |code, what: &str, texts_: &[S]| {
            if !texts_.is_empty() {
                found.push(Violation::new(code, REQUEST, format!("{what} {}", quoted(texts(texts_)))));
            }
        };
        none_of(Code::SubjectAttributes, "subject attributes", self.other_attributes);
        none_of(Code::Extensions, "extensions", self.extensions);
        let strong = self.key.is_strong(settings);
        if !strong {
            found.push(Violation::new(Code::WeakKey, REQUEST, format!("key {}", self.key)));
        }
        match self.signature {
            Signature::Valid => {}
            // The weak key says it all: such keys are not even tried.
            _ if !strong => {}
            Signature::Invalid => {
                found.push(Violation::new(Code::Signature, REQUEST, "it is not signed with its own key"));
            }
            Signature::Unverifiable => {
                let detail = "its signature algorithm cannot be verified";
                found.push(Violation::new(Code::Signature, REQUEST, detail));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{ADDON, CLUSTER_PROXY, CLUSTER_PROXY_OF_HUB, FIRST, OTHER, RENEWAL, Sample, by, named};
    use super::*;

    /// Of a hub on which no cluster has the group of an add-on.
    const fn facts(is_enabled: Option<bool>) -> AddonFacts {
        AddonFacts { is_enabled, group_is_a_clusters: Some(false) }
    }

    fn codes(request: &Sample, addon_enabled: Option<bool>) -> Vec<Code> {
        codes_with(request, facts(addon_enabled))
    }

    fn codes_with(request: &Sample, addon: AddonFacts) -> Vec<Code> {
        let judgement = judge(request, None, &Settings::default(), addon).unwrap();
        judgement.violations.into_iter().map(|violation| violation.code).collect()
    }

    #[test]
    fn right_requests_break_no_rule() {
        for (request, kind) in [(FIRST, Kind::First), (RENEWAL, Kind::Renewal), (ADDON, Kind::Addon)] {
            let judgement = judge(&request, None, &Settings::default(), facts(Some(true)));
            assert_eq!(judgement, Some(Judgement { kind, violations: Vec::new() }));
            assert_eq!(request.kind(), kind);
        }
        assert_eq!(judge(&OTHER, None, &Settings::default(), facts(None)), None);
        // What cannot be read may ask for anything.
        let unreadable = Csr { content: Err(Unreadable::of("no PEM")), ..OTHER };
        assert!(codes(&unreadable, None).contains(&Code::Unreadable));
        // A policy that answered without words would decide nothing.
        let unexplained = Csr { content: Err(Unreadable::of("")), ..FIRST };
        let judged = judge(&unexplained, None, &Settings::default(), facts(None)).unwrap();
        assert!(judged.violations.iter().all(|violation| !violation.detail.is_empty()), "{judged:?}");
        // Whoever expects a cluster's request gets an answer whatever the request is.
        assert!(judge(&OTHER, Some("c1"), &Settings::default(), facts(None)).is_some());
    }

    #[test]
    fn an_addons_groups_need_the_addon() {
        assert_eq!(codes(&ADDON, Some(true)), []);
        assert_eq!(codes(&ADDON, Some(false)), [Code::AddonNotEnabled]);
        assert_eq!(codes(&ADDON, None), [Code::EvidenceIncomplete]);
        // An add-on of its own asks for its own groups, not for another's.
        let of_another = Csr { addon_label: Some("other"), ..ADDON };
        let all = [Code::AlternativeNames, Code::CommonName, Code::ForeignOrganization];
        assert_eq!(codes(&of_another, Some(true)), all);
        // For an agent's certificate it does not matter what add-ons there are.
        assert_eq!(codes(&FIRST, Some(false)), []);
    }

    #[test]
    fn an_addon_has_its_own_dns_name_and_no_other() {
        const NAMES: [&[&str]; 3] = [
            &["DNSName(y.addon.open-cluster-management.io)"],
            &["DNSName(x.addon.open-cluster-management.io)", "DNSName(kubernetes.default.svc)"],
            &["URI(x.addon.open-cluster-management.io)"],
        ];
        let with = |names: &'static [&'static str], request: Sample| {
            let content = request.content.map(|content| Content { alternative_names: names, ..content });
            codes(&Csr { content, ..request }, Some(true))
        };
        assert_eq!(with(&[], ADDON), []);
        for names in NAMES {
            assert_eq!(with(names, ADDON), [Code::AlternativeNames], "{names:?}");
        }
        // That of an add-on is none of an agent.
        let own: &[&str] = &["DNSName(x.addon.open-cluster-management.io)"];
        assert_eq!(with(own, FIRST), [Code::AlternativeNames]);
    }

    #[test]
    fn an_addons_own_signer_decides_about_names_and_form() {
        assert_eq!(codes(&CLUSTER_PROXY, Some(true)), []);
        let other_form = Csr { usages: &["server auth"], lifetime_seconds: Some(2 * YEAR), ..CLUSTER_PROXY };
        assert_eq!(codes(&other_form, Some(true)), []);
        // Who asks, for which cluster, and for an add-on that is enabled there, it does not decide.
        assert_eq!(codes(&CLUSTER_PROXY, Some(false)), [Code::AddonNotEnabled]);
        assert_eq!(codes(&CLUSTER_PROXY, None), [Code::EvidenceIncomplete]);
        for user in ["eva", "system:open-cluster-management:c2:a1", "system:open-cluster-management:c10:a1"] {
            let request = Csr { requester: by(user), ..CLUSTER_PROXY };
            assert_eq!(codes(&request, Some(true)), [Code::Requester], "{user}");
        }
        let unlabelled = Csr { cluster_label: None, ..CLUSTER_PROXY };
        assert_eq!(codes(&unlabelled, Some(true)), [Code::ClusterLabel, Code::Requester]);
        let claim = Csr { grpc_user: Some("eva"), ..CLUSTER_PROXY };
        assert_eq!(codes(&claim, Some(true)), [Code::GrpcClaim]);
        assert_eq!(
            codes(&Csr { content: Err(Unreadable::of("no PEM")), ..CLUSTER_PROXY }, Some(true)),
            [Code::Unreadable]
        );
        // An agent's name is judged as one, whoever signs.
        let signer = CLUSTER_PROXY.signer;
        assert_eq!(codes(&Csr { signer, addon_label: Some("x"), ..FIRST }, None), [Code::AddonLabel, Code::Signer]);
    }

    #[test]
    fn an_addon_with_names_of_its_own_on_the_hub_asks_for_these_and_nothing_else() {
        const RIGHT: Sample = CLUSTER_PROXY_OF_HUB;
        const USER: &str = "open-cluster-management:cluster-proxy:addon-agent";
        const GROUP: &str = "open-cluster-management:cluster-proxy";
        assert_eq!((codes(&RIGHT, Some(true)), RIGHT.kind()), (vec![], Kind::Addon));
        assert_eq!(codes(&RIGHT, Some(false)), [Code::AddonNotEnabled]);
        assert_eq!(codes(&RIGHT, None), [Code::EvidenceIncomplete]);
        let content = RIGHT.content.unwrap();
        let dns = &["DNSName(kubernetes.default.svc)"];
        for (request, expected) in [
            (Csr { requester: by("eva"), ..RIGHT }, Code::Requester),
            (Csr { requester: by("system:open-cluster-management:c2:a1"), ..RIGHT }, Code::Requester),
            // The agent of the cluster asks for it again, and not whoever holds it.
            (Csr { requester: identity::Requester { groups: &[GROUP], ..by(USER) }, ..RIGHT }, Code::Requester),
            (Csr { grpc_user: Some("system:open-cluster-management:c1:a1"), ..RIGHT }, Code::GrpcClaim),
            (Csr { usages: &["server auth"], ..RIGHT }, Code::Usages),
            (Csr { lifetime_seconds: Some(2 * YEAR), ..RIGHT }, Code::Lifetime),
            (Csr { content: Ok(Content { alternative_names: dns, ..content }), ..RIGHT }, Code::AlternativeNames),
            (
                Csr { content: Ok(Content { other_attributes: &["2.5.4.11"], ..content }), ..RIGHT },
                Code::SubjectAttributes,
            ),
            (Csr { content: Ok(Content { key: Key::Rsa(1024), ..content }), ..RIGHT }, Code::WeakKey),
        ] {
            assert_eq!(codes(&request, Some(true)), [expected], "{request:?}");
        }
        // Whoever asks for anything else asks for a cluster's rights.
        let asks = |common_names: &'static [&'static str], organizations: &'static [&'static str]| Csr {
            content: Ok(Content { common_names, organizations, ..content }),
            ..RIGHT
        };
        for hidden in [
            asks(&[USER], &[]),
            asks(&[USER], &[GROUP, GROUP]),
            asks(&[USER], &[GROUP, "platform-admins"]),
            asks(&[USER], &["open-cluster-management:c2"]),
            asks(&[USER, USER], &[GROUP]),
            asks(&["open-cluster-management:cluster-proxy:proxy-agent"], &[GROUP]),
            asks(&["eva"], &[GROUP]),
            Csr { signer: GRPC_SIGNER, ..RIGHT },
            Csr { addon_label: Some("x"), ..RIGHT },
            Csr { addon_label: None, ..RIGHT },
            Csr { cluster_label: Some("cluster-proxy"), ..RIGHT },
            Csr { content: Err(Unreadable { why: "no PEM", common_names: &[USER], organizations: &[GROUP] }), ..RIGHT },
        ] {
            assert!(!hidden.is_addons() && super::super::about(&hidden).is_err(), "{hidden:?}");
            assert!(!codes(&hidden, Some(true)).is_empty(), "{hidden:?}");
        }
    }

    #[test]
    fn no_cluster_of_the_hub_has_the_group_of_an_addon_with_names_of_its_own() {
        let found = |group_is_a_clusters| {
            codes_with(&CLUSTER_PROXY_OF_HUB, AddonFacts { is_enabled: Some(true), group_is_a_clusters })
        };
        assert_eq!(found(Some(false)), []);
        assert_eq!(found(Some(true)), [Code::ForeignOrganization]);
        assert_eq!(found(None), [Code::EvidenceIncomplete]);
        assert_eq!(codes_with(&CLUSTER_PROXY_OF_HUB, AddonFacts::default()), [Code::EvidenceIncomplete; 2]);
        // Of no other request does anybody have to know it.
        let unknown = AddonFacts { is_enabled: Some(true), group_is_a_clusters: None };
        for other in [ADDON, CLUSTER_PROXY, FIRST, RENEWAL] {
            assert_eq!(codes_with(&other, unknown), [], "{other:?}");
        }
    }

    #[test]
    fn the_agent_of_a_cluster_with_an_aws_identity_asks_for_the_certificates_of_its_addons_alone() {
        let by_aws = |user, groups| identity::Requester { user, uid: None, groups, credential_ids: &[] };
        const OWN: &[&str] = &["system:authenticated", "open-cluster-management:c1"];
        const TWO: &[&str] = &["open-cluster-management:c1", "open-cluster-management:c2"];
        for addon in [ADDON, CLUSTER_PROXY, CLUSTER_PROXY_OF_HUB] {
            let asks = |user, groups| codes(&Csr { requester: by_aws(user, groups), ..addon }, Some(true));
            assert_eq!(asks("c1", OWN), [], "{addon:?}");
            for (user, groups) in [("c10", OWN), ("eva", OWN), ("c1", TWO), ("c1", &[]), ("c2", TWO)] {
                assert_eq!(asks(user, groups), [Code::Requester], "{user} {groups:?} {addon:?}");
            }
            let not_enabled = Csr { requester: by_aws("c1", OWN), ..addon };
            assert_eq!(codes(&not_enabled, Some(false)), [Code::AddonNotEnabled]);
        }
        const SERVER: &[&str] = &[
            "system:serviceaccounts",
            "system:serviceaccounts:open-cluster-management-hub",
            "open-cluster-management:c1",
        ];
        let server = identity::Requester { uid: Some("u"), ..by_aws(GRPC_SERVER_USER, SERVER) };
        let over_grpc = Csr { requester: server, grpc_user: Some("c1"), ..ADDON };
        assert_eq!(codes(&over_grpc, Some(true)), [Code::Requester]);
        // It registers without a certificate of its own.
        assert_eq!(codes(&Csr { requester: by_aws("c1", OWN), ..FIRST }, None), [Code::Requester]);
    }

    #[test]
    fn names_for_an_addons_own_signer_are_no_other_clusters() {
        let asks = |common_names: &'static [&'static str], organizations: &'static [&'static str]| {
            let content = Content { common_names, organizations, ..CLUSTER_PROXY.content.unwrap() };
            codes(&Csr { content: Ok(content), ..CLUSTER_PROXY }, Some(true))
        };
        const OWN_NAMES: [&[&str]; 3] =
            [&["system:open-cluster-management:cluster:c1:addon:cluster-proxy:agent:a1"], &["x", "y"], &[]];
        const OWN_GROUPS: &[&str] = &[
            "system:open-cluster-management:cluster:c1:addon:cluster-proxy",
            "system:open-cluster-management:addon:cluster-proxy",
            "open-cluster-management:c1",
            "system:authenticated",
        ];
        for names in OWN_NAMES {
            assert_eq!(asks(names, OWN_GROUPS), [], "{names:?}");
        }
        for names in [
            &["system:open-cluster-management:cluster:c2:addon:cluster-proxy:agent:a1"],
            &["system:open-cluster-management:c2"],
            &["open-cluster-management:c2"],
        ] {
            assert_eq!(asks(names, &[]), [Code::CommonName], "{names:?}");
        }
        for groups in [
            &["system:open-cluster-management:cluster:c2:addon:cluster-proxy"],
            &["system:open-cluster-management:addon:other"],
            &["open-cluster-management:c2"],
        ] {
            assert_eq!(asks(&["x"], groups), [Code::ForeignOrganization], "{groups:?}");
        }
        // Whoever asks for the group of a cluster's agents is judged as one.
        assert!(asks(&["x"], &["system:open-cluster-management:c1"]).contains(&Code::Signer));
    }

    #[test]
    fn signers_of_the_hub_and_of_kubernetes_are_no_addons_own() {
        let names = [Code::CommonName, Code::ForeignOrganization];
        let form = [Code::SubjectAttributes];
        // The group has the rights of the agents of a cluster that is called so.
        let by_hub = codes(&Csr { signer: API_SIGNER, ..CLUSTER_PROXY }, Some(true));
        assert!(names.iter().chain(&form).chain(&[Code::AddonLabel]).all(|code| by_hub.contains(code)), "{by_hub:?}");
        for signer in ["kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/x", ""] {
            let request = Csr { signer, ..CLUSTER_PROXY };
            assert_eq!(codes(&request, Some(true)), [&form[..], &names, &[Code::Signer]].concat(), "{signer}");
        }
    }

    #[test]
    fn named_signers_are_all_that_addons_may_ask() {
        let found = |signers: &[&str]| {
            let addon_signers = signers.iter().map(|signer| (*signer).to_owned()).collect();
            let settings = Settings { addon_signers, ..Settings::default() };
            judge(&CLUSTER_PROXY, None, &settings, facts(Some(true))).unwrap().violations
        };
        assert_eq!(found(&["example.com/s", CLUSTER_PROXY.signer]), []);
        let codes: Vec<Code> = found(&["example.com/s"]).into_iter().map(|violation| violation.code).collect();
        assert_eq!(codes, [Code::Signer]);
    }

    #[test]
    fn the_group_of_an_aws_identity_is_a_clusters_too() {
        let asks = |common_names: &'static [&'static str], organizations: &'static [&'static str]| {
            let content = Content { common_names, organizations, ..OTHER.content.unwrap() };
            Csr { content: Ok(content), ..OTHER }
        };
        let expected = [
            Code::ClusterLabel,
            Code::Requester,
            Code::CommonName,
            Code::ForeignOrganization,
            Code::MissingOrganization,
        ];
        for organization in [&["system:open-cluster-management:c2"], &["open-cluster-management:c2"]] {
            assert_eq!(codes(&asks(&["eva"], organization), None), expected, "{organization:?}");
        }
        assert_eq!(codes(&asks(&["open-cluster-management:c2"], &["devs"]), None), expected);
        // No agent asks for it: not even for the one of its own cluster.
        let organizations = &["system:open-cluster-management:c1", "open-cluster-management:c1"];
        let both = Csr { content: Ok(Content { organizations, ..FIRST.content.unwrap() }), ..FIRST };
        assert_eq!(codes(&both, None), [Code::ForeignOrganization]);
        // The label of an add-on does not hide it.
        let organizations = &["open-cluster-management:c2"];
        let hidden = Csr { content: Ok(Content { organizations, ..ADDON.content.unwrap() }), ..ADDON };
        let found = codes(&hidden, Some(true));
        assert!(found.contains(&Code::AddonLabel) && found.contains(&Code::ForeignOrganization), "{found:?}");
    }

    #[test]
    fn the_label_of_an_addon_hides_nothing() {
        assert_eq!(codes(&Csr { addon_label: Some("x"), ..FIRST }, Some(true)), [Code::AddonLabel]);
        let groups =
            Csr { addon_label: Some("x"), ..named(&["system:open-cluster-management:cluster:c1:addon:x:agent:y"]) };
        assert_eq!(codes(&groups, Some(true)), [Code::AddonLabel, Code::CommonName], "it asks for an agent's groups");
    }

    #[test]
    fn what_is_an_addons_says_the_content() {
        let content = |common_names: &'static [&'static str], organizations: &'static [&'static str]| Csr {
            content: Ok(Content { common_names, organizations, ..ADDON.content.unwrap() }),
            ..ADDON
        };
        let unread = |common_names: &'static [&'static str], organizations: &'static [&'static str]| Csr {
            content: Err(Unreadable { why: "no PEM", common_names, organizations }),
            ..ADDON
        };
        const ADDON_NAMES: &[&str] = &["system:open-cluster-management:cluster:c1:addon:x:agent:y"];
        const ADDON_GROUPS: &[&str] = &["system:open-cluster-management:addon:x", "system:authenticated"];
        let unlabelled = |request: Sample| Csr { addon_label: None, ..request };
        for addon in [
            ADDON,
            unlabelled(ADDON),
            content(ADDON_NAMES, ADDON_GROUPS),
            content(&["a name of its own"], &["a group of its own"]),
            unread(ADDON_NAMES, ADDON_GROUPS),
            unlabelled(unread(ADDON_NAMES, ADDON_GROUPS)),
            CLUSTER_PROXY,
            Csr { content: Err(Unreadable::of("no PEM")), ..CLUSTER_PROXY },
        ] {
            assert!(addon.is_addons(), "{addon:?}");
        }
        for hidden in [
            unread(&[], &[]),
            unread(&["system:open-cluster-management:c1:a1"], &[]),
            unread(ADDON_NAMES, &["system:open-cluster-management:c1"]),
            content(&["eva"], &["open-cluster-management:c2"]),
            content(&["eva"], &["system:open-cluster-management:c2"]),
            content(&["system:open-cluster-management:c1"], &[]),
            content(&["open-cluster-management:c1"], &[]),
            content(&["eva"], &["system:open-cluster-management:c1:x"]),
            Csr { signer: API_SIGNER, ..CLUSTER_PROXY },
        ] {
            assert!(!hidden.is_addons() && super::super::about(&hidden).is_err(), "{hidden:?}");
        }
        assert_eq!(codes(&unread(ADDON_NAMES, ADDON_GROUPS), Some(true)), [Code::Unreadable]);
    }

    #[test]
    fn agents_ask_for_their_own_names_only() {
        for user in [
            "system:open-cluster-management:c1:a2",
            "system:open-cluster-management:c2:a1",
            "system:open-cluster-management:cluster:c1:addon:x",
            "system:open-cluster-management:c1",
        ] {
            let request = Csr { requester: by(user), ..FIRST };
            assert_eq!(codes(&request, None), [Code::OtherAgent], "{user}");
            let first = first_certificate(&request, "c1", &Settings::default());
            assert_eq!(first.first().map(|violation| violation.code), Some(Code::OtherAgent), "{user}");
        }
        let named =
            Settings { requesters: vec!["system:open-cluster-management:c2:a1".to_owned()], ..Settings::default() };
        let other = Csr { requester: by("system:open-cluster-management:c2:a1"), ..FIRST };
        assert_eq!(first_certificate(&other, "c1", &named).len(), 1, "nobody can make an agent a requester");
        // Its own name it has already: that is no first certificate.
        let again = first_certificate(&RENEWAL, "c1", &Settings::default());
        assert_eq!(again.first().map(|violation| violation.code), Some(Code::Requester));
        assert_eq!(codes(&Csr { requester: by("bob"), ..FIRST }, None), [Code::Requester]);
    }
}
