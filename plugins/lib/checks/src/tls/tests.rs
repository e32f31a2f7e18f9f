//! Every check of certificates with something that it finds and something that it does not.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::names::namespaces;
use ocm_core::certificate::Certificate;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};

use super::expiry::expiries;
use super::*;
use crate::finding::{Finding, Id, Severity};
use crate::registry::{check, of_certificates};
use crate::snapshot::Side;

const NOW: &str = "2026-07-01T00:00:00Z";

/// An authority, and what it signs.
struct Ca {
    der: ByteString,
    issuer: Issuer<'static, KeyPair>,
}

fn params(common_name: &str, names: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.not_before, params.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2027, 1, 1));
    params
}

impl Ca {
    fn new(name: &str) -> Self {
        Self::of(params(name, &[]))
    }

    fn of(mut params: CertificateParams) -> Self {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let der = ByteString(params.self_signed(&key).unwrap().der().to_vec());
        Self { der, issuer: Issuer::new(params, key) }
    }

    fn sign(&self, params: &CertificateParams) -> ByteString {
        ByteString(params.signed_by(&KeyPair::generate().unwrap(), &self.issuer).unwrap().der().to_vec())
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A server that is as it should be.
fn right(ca: &Ca) -> Relation {
    relation(ca, ca.sign(&params("hub", &["hub.example"])))
}

fn relation(ca: &Ca, own: ByteString) -> Relation {
    Relation {
        purpose: Purpose::HubApi,
        cluster: Some("c1".to_owned()),
        presenter: "the hub's API server".to_owned(),
        verifier: "the agent of c1".to_owned(),
        client: Some(Client::Go),
        place: Place::Address("https://hub.example:6443".to_owned()),
        usage: Use::Server,
        chain: vec![own],
        trust: Trust::Authorities(vec![ca.der.clone()]),
        names: vec!["hub.example".to_owned()],
        identity: None,
        holds_key: None,
        renewal: Renewal::Unknown,
        handshake: None,
        clock_ahead_seconds: 0,
    }
}

fn inventory() -> Inventory {
    Inventory::new(at(NOW))
}

fn of(relations: Vec<Relation>) -> Inventory {
    Inventory { relations, ..inventory() }
}

fn found(inventory: &Inventory) -> Vec<Finding> {
    judge(inventory, Profile::Intermediate, None, &[]).findings
}

/// The ids and severities of what is found.
fn ids(inventory: &Inventory) -> Vec<(u16, Severity)> {
    found(inventory).iter().map(|finding| (finding.id.0, finding.severity)).collect()
}

fn copy(what: Copied, authorities: &[&Ca]) -> Copy {
    Copy {
        what,
        cluster: None,
        place: Place::Object {
            side: Side::Hub,
            kind: ObjectKind::Secret,
            namespace: Some(namespaces::HUB.to_owned()),
            name: format!("{what:?}"),
            key: None,
        },
        authorities: authorities.iter().map(|ca| ca.der.clone()).collect(),
        unreadable: 0,
        server: None,
        proxy: None,
        vouches: None,
    }
}

const ERROR: Severity = Severity::Error;
const WARNING: Severity = Severity::Warning;

/// An agent's certificate with this common name and this organization.
fn agent(ca: &Ca, name: &str, group: &str) -> Relation {
    let mut params = params(name, &[]);
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Relation {
        purpose: Purpose::Agent,
        usage: Use::Client,
        names: vec![],
        identity: Some(Identity { cluster: "c1".to_owned(), agent: Some("a1".to_owned()), add_on: None }),
        ..relation(ca, ca.sign(&params))
    }
}

/// Inventories, and what is to be found in them.
fn table() -> Vec<(Inventory, Vec<(u16, Severity)>)> {
    let (ca, other) = (Ca::new("ca"), Ca::new("other"));
    let mut table: Vec<(Inventory, Vec<(u16, Severity)>)> = Vec::new();
    let mut relations =
        |relation: Relation, expected: &[(u16, Severity)]| table.push((of(vec![relation]), expected.to_vec()));
    relations(right(&ca), &[]);
    relations(Relation { trust: Trust::Authorities(vec![other.der.clone()]), ..right(&ca) }, &[(4001, ERROR)]);
    relations(Relation { trust: Trust::System { refusal: Some("no".to_owned()) }, ..right(&ca) }, &[(4001, ERROR)]);
    relations(Relation { trust: Trust::Unknown, ..right(&ca) }, &[]);
    relations(Relation { trust: Trust::Nobody, ..right(&other) }, &[(4001, WARNING)]);
    relations(Relation { trust: Trust::Authorities(vec![]), ..right(&ca) }, &[(4001, ERROR)]);
    let mut late = params("hub", &["hub.example"]);
    late.not_after = date_time_ymd(2026, 6, 1);
    relations(relation(&ca, ca.sign(&late)), &[(4002, ERROR)]);
    // Thirty days are less than the verifier's clock is behind.
    let slow = Relation { clock_ahead_seconds: -40 * 86_400, ..relation(&ca, ca.sign(&late)) };
    relations(slow, &[]);
    let mut early = params("hub", &["hub.example"]);
    early.not_before = date_time_ymd(2026, 8, 1);
    relations(relation(&ca, ca.sign(&early)), &[(4003, ERROR)]);
    relations(Relation { names: vec!["10.0.0.1".to_owned()], ..right(&ca) }, &[(4004, ERROR)]);
    let mut client = params("hub", &["hub.example"]);
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    relations(relation(&ca, ca.sign(&client)), &[(4005, ERROR)]);
    let mut old = params("old", &[]);
    old.not_after = date_time_ymd(2026, 6, 1);
    let old = Ca::of(old);
    // Only rustls trusts an authority that has expired.
    relations(right(&old), &[(4002, ERROR)]);
    relations(Relation { client: None, ..right(&old) }, &[(4002, WARNING)]);
    let own = Ca::of(params("hub", &["hub.example"]));
    // Only rustls refuses an authority as a server.
    relations(relation(&own, own.der.clone()), &[(4007, WARNING)]);
    relations(Relation { client: None, ..relation(&own, own.der.clone()) }, &[(4007, ERROR)]);
    relations(relation(&ca, ByteString(b"no certificate".to_vec())), &[(4012, ERROR)]);
    relations(Relation { holds_key: Some(false), ..right(&ca) }, &[(4011, ERROR)]);
    relations(Relation { holds_key: Some(true), ..right(&ca) }, &[]);
    // Half of its life is over.
    relations(Relation { renewal: Renewal::AtPercent(40), ..right(&ca) }, &[(4008, WARNING)]);
    relations(Relation { renewal: Renewal::AtPercent(80), ..right(&ca) }, &[]);

    let group = "system:open-cluster-management:c1";
    relations(agent(&ca, "system:open-cluster-management:c1:a1", group), &[]);
    relations(agent(&ca, "system:open-cluster-management:c2:a1", group), &[(4010, ERROR)]);
    relations(agent(&ca, "system:open-cluster-management:c1:a2", group), &[(4010, ERROR)]);
    relations(agent(&ca, "system:open-cluster-management:c1:a1", "system:masters"), &[(4010, ERROR)]);

    let add_on = |common_name: &str| {
        let identity = Identity { cluster: "c1".to_owned(), agent: None, add_on: Some("hello".to_owned()) };
        Relation { purpose: Purpose::AddOn, identity: Some(identity), ..agent(&ca, common_name, "hello") }
    };
    relations(add_on("system:open-cluster-management:cluster:c1:addon:hello:agent:a1"), &[]);
    relations(add_on("system:open-cluster-management:cluster:c2:addon:hello:agent:a1"), &[(4010, ERROR)]);
    relations(add_on("system:open-cluster-management:cluster:c1:addon:other:agent:a1"), &[(4010, ERROR)]);
    // It asks for a name of its own.
    relations(add_on("hello-user"), &[]);

    let handshake = |version: Version| Handshake {
        address: "https://hub.example:6443".to_owned(),
        proxy: None,
        version: Some(Version::Tls13),
        cipher: None,
        older_cipher: None,
        accepted: vec![version, Version::Tls13],
        suites: vec![],
    };
    relations(Relation { handshake: Some(handshake(Version::Tls12)), ..right(&ca) }, &[]);
    relations(Relation { handshake: Some(handshake(Version::Tls11)), ..right(&ca) }, &[(4030, WARNING)]);

    let mut copies = |list: Vec<Copy>, expected: &[(u16, Severity)]| {
        table.push((Inventory { copies: list, ..inventory() }, expected.to_vec()));
    };
    use Copied::{Accepted, Bootstrap, Bundle, GrpcBundle, HostedApi, OwnApi, Reported, Signer, WebhookBundle};
    let signer = || copy(Signer, &[&ca]);
    copies(vec![signer(), copy(Bundle, &[&other, &ca]), copy(WebhookBundle, &[&ca, &other])], &[]);
    copies(vec![signer(), copy(Bundle, &[&other])], &[(4020, ERROR)]);
    copies(vec![signer(), copy(Bundle, &[&other, &ca]), copy(WebhookBundle, &[&other])], &[(4021, ERROR)]);
    copies(vec![signer(), copy(Bundle, &[&other, &ca]), copy(WebhookBundle, &[&ca])], &[(4021, WARNING)]);
    copies(vec![copy(Bundle, &[&ca, &ca])], &[(4022, WARNING)]);
    copies(vec![copy(Bundle, &[&ca, &old])], &[(4022, WARNING)]);
    copies(vec![Copy { unreadable: 1, ..copy(Bundle, &[&ca]) }], &[(4022, WARNING)]);
    copies(vec![signer(), copy(GrpcBundle, &[&other])], &[(4025, WARNING)]);
    copies(vec![signer(), copy(GrpcBundle, &[&other, &ca])], &[]);
    copies(vec![copy(Reported, &[&ca, &other]), copy(OwnApi, &[&ca])], &[]);
    copies(vec![copy(Reported, &[&other]), copy(OwnApi, &[&ca])], &[(4026, WARNING)]);
    // A load balancer in front of it has a certificate of its own, or not.
    let answered = |vouches: bool| Copy { vouches: Some(vouches), ..copy(Reported, &[&other]) };
    copies(vec![answered(true), copy(OwnApi, &[&ca])], &[]);
    copies(vec![answered(false), copy(OwnApi, &[&ca])], &[(4026, WARNING)]);
    // Nothing is known of another cluster, and none that is named is the system's.
    let of_c2 = Copy { cluster: Some("c2".to_owned()), ..copy(OwnApi, &[&ca]) };
    copies(vec![copy(Reported, &[&other]), of_c2], &[]);
    copies(vec![copy(Reported, &[]), copy(OwnApi, &[&ca])], &[]);
    copies(vec![copy(HostedApi, &[&ca]), copy(HostedApi, &[&ca])], &[]);
    copies(vec![copy(HostedApi, &[&ca]), copy(HostedApi, &[&other])], &[(4027, WARNING)]);
    let hosted_for = |cluster: &str, ca: &Ca| Copy { cluster: Some(cluster.to_owned()), ..copy(HostedApi, &[ca]) };
    copies(vec![hosted_for("c1", &ca), hosted_for("c2", &other)], &[]);
    let with = |copy: Copy, server: &str, proxy: Option<&str>| Copy {
        server: Some(server.to_owned()),
        proxy: proxy.map(str::to_owned),
        ..copy
    };
    let (before, after) = (|| copy(Bootstrap, &[&ca]), || copy(Accepted, &[&ca]));
    copies(vec![with(before(), "https://hub:443", None), with(after(), "https://HUB/", None)], &[]);
    copies(vec![with(before(), "https://hub", None), with(after(), "https://hub2", None)], &[(4024, WARNING)]);
    copies(vec![with(before(), "https://hub", Some("p:1")), with(after(), "https://hub", None)], &[(4024, WARNING)]);
    let changed = copy(Accepted, &[&other]);
    copies(vec![with(before(), "https://hub", None), with(changed, "https://hub", None)], &[(4023, WARNING)]);

    let setting = |is_read: bool, version: &str| {
        let settings = TlsSettings { min_tls_version: Some(version.to_owned()), cipher_suites: None };
        let place = copy(Bundle, &[]).place;
        Inventory { settings: vec![Setting { place, is_read, settings }], ..inventory() }
    };
    table.push((setting(true, "VersionTLS13"), vec![]));
    table.push((setting(true, "1.3"), vec![(4031, WARNING)]));
    table.push((setting(false, "VersionTLS13"), vec![(4032, WARNING)]));

    let named = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    let agreed = |purpose: Purpose, cipher: &str| {
        let handshake = Handshake { older_cipher: Some(cipher.to_owned()), ..handshake(Version::Tls12) };
        let settings = TlsSettings { min_tls_version: None, cipher_suites: Some(named.to_owned()) };
        let place = copy(Bundle, &[]).place;
        let relation = Relation { purpose, handshake: Some(handshake), ..right(&ca) };
        Inventory { settings: vec![Setting { place, is_read: true, settings }], ..of(vec![relation]) }
    };
    table.push((agreed(Purpose::Grpc, named), vec![]));
    table.push((agreed(Purpose::Grpc, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"), vec![(4033, WARNING)]));
    // The settings are not for API servers.
    table.push((agreed(Purpose::HubApi, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"), vec![]));
    let accepting = |suites: &[&str]| {
        let suites = suites.iter().map(|suite| (*suite).to_owned()).collect();
        of(vec![Relation { handshake: Some(Handshake { suites, ..handshake(Version::Tls12) }), ..right(&ca) }])
    };
    table.push((accepting(&[named, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"]), vec![]));
    table.push((accepting(&[named, "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_NULL_SHA"]), vec![(4033, WARNING)]));

    table.push((with_token(token(Some("2027-01-01T00:00:00Z"), Renewal::AtPercent(80))), vec![]));
    table.push((with_token(token(Some("2027-01-01T00:00:00Z"), Renewal::AtPercent(40))), vec![(4008, WARNING)]));
    table.push((with_token(token(Some("2027-01-01T00:00:00Z"), Renewal::Unknown)), vec![]));
    table.push((with_token(token(Some("2026-06-01T00:00:00Z"), Renewal::Unknown)), vec![(4013, ERROR)]));
    table.push((with_token(token(None, Renewal::AtPercent(80))), vec![]));
    // A day after it has ended by our clock, and a day before by the hub's.
    let ended = |purpose: Purpose| {
        let clients = Clients { clock_ahead_seconds: -2 * 86_400, ..Clients::default() };
        let token = Token { purpose, ..token(Some("2026-06-30T00:00:00Z"), Renewal::Unknown) };
        Inventory { clients: Some(clients), ..with_token(token) }
    };
    table.push((ended(Purpose::AddOn), vec![]));
    table.push((ended(Purpose::Hosted), vec![(4013, ERROR)]));
    table
}

/// A token of this year with which a hosted agent comes to its cluster.
fn token(expires: Option<&str>, renewal: Renewal) -> Token {
    Token {
        purpose: Purpose::Hosted,
        cluster: Some("c1".to_owned()),
        presenter: "the hosted agent of c1".to_owned(),
        verifier: "the API server of c1".to_owned(),
        place: copy(Copied::HostedApi, &[]).place,
        subject: Some("system:serviceaccount:a:b".to_owned()),
        issued: Some(Time(at("2026-01-01T00:00:00Z"))),
        expires: expires.map(|text| Time(at(text))),
        renewal,
    }
}

fn with_token(token: Token) -> Inventory {
    Inventory { tokens: vec![token], ..inventory() }
}

#[test]
fn each_check_finds_its_own_and_nothing_else() {
    for (index, (inventory, expected)) in table().into_iter().enumerate() {
        assert_eq!(ids(&inventory), expected, "row {index}: {:#?}", found(&inventory));
    }
}

/// A certificate with a signature by SHA-1, which rcgen does not make, and its authority.
const SHA1: &str = include_str!("../../../../../tests/contract/tests/tls_chains/sha1.pem");

#[test]
fn signatures_that_can_be_forged_are_told_of() {
    let chain = ocm_core::certificate::from_pem(SHA1.as_bytes()).unwrap();
    let own = Relation { trust: Trust::Unknown, ..relation(&Ca::new("ca"), ByteString(chain[0].clone())) };
    let authority = Relation { chain: vec![ByteString(chain[1].clone())], usage: Use::Authority, ..own.clone() };
    let later = |relation| Inventory { relations: vec![relation], ..Inventory::new(at("2027-07-01T00:00:00Z")) };
    assert_eq!(ids(&later(own)), [(4006, WARNING)]);
    assert_eq!(ids(&later(authority)), []);
}

/// What the table cannot have: keys that rcgen does not make, and a question of the user's.
const ELSEWHERE: [Id; 2] = [Id(4006), LASTS];

#[test]
fn every_check_has_its_two_fixtures() {
    let rows = table();
    let mut found: BTreeSet<Id> = rows.iter().flat_map(|(_, expected)| expected).map(|(id, _)| Id(*id)).collect();
    found.extend(ELSEWHERE);
    let known: BTreeSet<Id> = of_certificates().map(|check| check.id).collect();
    assert_eq!(found, known, "the registry and the table");
    // Beside what is found there is the same kind of thing that is right.
    let right: Vec<&Inventory> = rows.iter().filter(|(_, expected)| expected.is_empty()).map(|(it, _)| it).collect();
    let has = |is: &dyn Fn(&Inventory) -> bool| right.iter().any(|inventory| is(inventory));
    let relation = |is: fn(&Relation) -> bool| has(&|inventory| inventory.relations.iter().any(is));
    for what in
        [Copied::Signer, Copied::Bundle, Copied::WebhookBundle, Copied::GrpcBundle, Copied::Accepted, Copied::Reported]
    {
        assert!(has(&|inventory| inventory.copies.iter().any(|copy| copy.what == what)), "{what:?}");
    }
    assert!(relation(|it| it.trust != Trust::Unknown && !it.names.is_empty() && it.usage == Use::Server));
    assert!(relation(|it| it.identity.is_some() && it.usage == Use::Client) && relation(|it| it.holds_key.is_some()));
    assert!(relation(|it| it.renewal != Renewal::Unknown) && relation(|it| it.handshake.is_some()));
    assert!(has(&|inventory| inventory.settings.iter().any(|setting| setting.is_read)));
}

#[test]
fn findings_say_what_to_do_and_are_no_worse_than_the_registry_says() {
    for finding in table().iter().flat_map(|(inventory, _)| found(inventory)) {
        assert!(!finding.next.is_empty(), "{finding:#?}");
        let at_most = check(finding.id).map(|check| check.severity);
        assert!(at_most >= Some(finding.severity), "{finding:#?}");
    }
}

#[test]
fn what_somebody_knows_of_is_left_out() {
    let (ca, other) = (Ca::new("ca"), Ca::new("other"));
    let wrong = of(vec![Relation { trust: Trust::Authorities(vec![other.der.clone()]), ..right(&ca) }]);
    let report = |suppression: &str| judge(&wrong, Profile::Intermediate, None, &[suppression.parse().unwrap()]);
    let known = report("OCM4001:c1=2026-07-02,it is being replaced");
    assert_eq!((known.findings.len(), known.suppressed.len()), (0, 1));
    for other in ["OCM4001:c2=2026-07-02,x", "OCM4002:c1=2026-07-02,x", "OCM4001:c1=2026-06-29,x"] {
        assert_eq!((report(other).findings.len(), report(other).suppressed.len()), (1, 0), "{other}");
    }
}

#[test]
fn an_authority_that_nothing_depends_on_may_expire() {
    let mut soon = params("soon", &[]);
    soon.not_after = date_time_ymd(2026, 7, 10);
    let (ca, soon) = (Ca::new("ca"), Ca::of(soon));
    let trust = Trust::Authorities(vec![ca.der.clone(), soon.der.clone()]);
    let of_both = of(vec![Relation { trust: trust.clone(), ..right(&ca) }]);
    let count = |inventory: &Inventory| {
        judge(inventory, Profile::Intermediate, Some("30d".parse().unwrap()), &[]).findings.len()
    };
    assert_eq!(count(&of_both), 0);
    assert_eq!(count(&of(vec![Relation { trust, ..right(&soon) }])), 1);
}

#[test]
fn names_of_strangers_are_made_short() {
    let ca = Ca::new("ca");
    let mut long = params(&"n".repeat(5000), &[]);
    long.subject_alt_names =
        (0..2000).map(|n| rcgen::SanType::DnsName(format!("h{n}.example").try_into().unwrap())).collect();
    let inventory = of(vec![relation(&ca, ca.sign(&long))]);
    let found = found(&inventory).remove(0);
    let told = serde_json::to_string(&found).unwrap();
    assert!(told.len() < 4000 && told.contains("and 1990 more"), "{} {told}", told.len());
    assert!(expiries(&inventory).iter().all(|expiry| expiry.subject.chars().count() <= 201));
}

#[test]
fn an_intermediate_that_has_expired_is_found_whoever_is_trusted() {
    let ca = Ca::new("ca");
    let middle = |until: (i32, u8, u8)| {
        let mut params = params("middle", &[]);
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let der = ByteString(params.signed_by(&key, &ca.issuer).unwrap().der().to_vec());
        Ca { der, issuer: Issuer::new(params, key) }
    };
    for (until, expected) in [((2027, 1, 1), vec![]), ((2026, 6, 1), vec![(4002, ERROR)])] {
        let middle = middle(until);
        // A server, and one that is an authority itself, which Go accepts.
        let mut authority = params("hub", &["hub.example"]);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        for own in [middle.sign(&params("hub", &["hub.example"])), middle.sign(&authority)] {
            let chain = vec![own, middle.der.clone()];
            for trust in [Trust::Unknown, Trust::Authorities(vec![ca.der.clone()])] {
                let found = ids(&of(vec![Relation { chain: chain.clone(), trust, ..right(&ca) }]));
                let errors: Vec<_> = found.into_iter().filter(|(_, severity)| *severity == ERROR).collect();
                assert_eq!(errors, expected);
            }
        }
    }
}

#[test]
fn what_expires_within_the_time_that_was_asked_about_is_found() {
    let inventory = of(vec![right(&Ca::new("ca"))]);
    let of = |within: &str| judge(&inventory, Profile::Intermediate, Some(within.parse().unwrap()), &[]).findings;
    assert_eq!(of("30d"), []);
    // Authority and server end together.
    let found: Vec<Id> = of("200d").iter().map(|finding| finding.id).collect();
    assert_eq!(found, [LASTS, LASTS]);
    assert_eq!(of("49%"), []);
    assert_eq!(of("51%").len(), 2);
}

#[test]
fn a_server_follows_the_stricter_of_profile_and_settings() {
    let ca = Ca::new("ca");
    let handshake = Handshake {
        address: "https://grpc:8090".to_owned(),
        proxy: None,
        version: Some(Version::Tls13),
        cipher: None,
        older_cipher: None,
        accepted: vec![Version::Tls12, Version::Tls13],
        suites: vec![],
    };
    let server = |purpose: Purpose| {
        let presenter = purpose.word().to_owned();
        Relation { purpose, presenter, handshake: Some(handshake.clone()), ..right(&ca) }
    };
    let settings = TlsSettings { min_tls_version: Some("VersionTLS13".to_owned()), cipher_suites: None };
    let place = Place::Input("x".to_owned());
    let inventory = Inventory {
        settings: vec![Setting { place, is_read: true, settings }],
        ..of(vec![server(Purpose::Grpc), server(Purpose::HubApi)])
    };
    // The settings are the hub's own servers', the profile is everybody's.
    let count = |profile| judge(&inventory, profile, None, &[]).findings.len();
    assert_eq!((count(Profile::Intermediate), count(Profile::Modern)), (1, 2));
}

#[test]
fn all_that_a_server_accepts_is_judged_by_the_profile() {
    let ca = Ca::new("ca");
    let told = |profile: Profile, version: Version, suites: &[&str]| {
        let handshake = Handshake {
            address: "https://hub.example:6443".to_owned(),
            proxy: None,
            version: Some(version),
            cipher: None,
            older_cipher: None,
            accepted: vec![Version::Tls12],
            suites: suites.iter().map(|suite| (*suite).to_owned()).collect(),
        };
        let inventory = of(vec![Relation { handshake: Some(handshake), ..right(&ca) }]);
        let found = judge(&inventory, profile, None, &[]).findings;
        found.into_iter().map(|finding| (finding.id.0, finding.summary)).collect::<Vec<_>>()
    };
    let (strong, cbc) = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA");
    let (rsa, broken) = ("TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA");
    let all = [strong, cbc, rsa, broken];
    for (profile, foreign) in [
        (Profile::Intermediate, vec![cbc, rsa, broken]),
        (Profile::Kubernetes, vec![rsa, broken]),
        (Profile::Ocm, vec![rsa, broken]),
        (Profile::Old, vec![broken]),
    ] {
        let found = told(profile, Version::Tls12, &all);
        let [(4033, words)] = found.as_slice() else { panic!("{profile:?}: {found:?}") };
        let wanted = format!("accepts {}, which the profile {} ", foreign.join(", "), profile.word());
        assert!(words.contains(&wanted), "{wanted}: {words}");
    }
    assert_eq!(told(Profile::Intermediate, Version::Tls13, &[strong]), []);
    // One thing is told of once.
    assert_eq!(told(Profile::Modern, Version::Tls12, &all).iter().map(|(id, _)| *id).collect::<Vec<_>>(), [4030]);
}

#[test]
fn settings_have_a_suite_for_the_certificates_of_their_servers() {
    let ca = Ca::new("ca");
    let of = |purpose: Purpose, suites: &str| Inventory {
        settings: vec![Setting {
            place: Place::Input("x".to_owned()),
            is_read: true,
            settings: TlsSettings { min_tls_version: None, cipher_suites: Some(suites.to_owned()) },
        }],
        // It is one with ECDSA.
        ..of(vec![Relation { purpose, ..right(&ca) }])
    };
    let (rsa, ecdsa) = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
    assert_eq!(ids(&of(Purpose::Webhook, ecdsa)), []);
    assert_eq!(ids(&of(Purpose::Webhook, rsa)), [(4031, WARNING)]);
    assert_eq!(ids(&of(Purpose::HubApi, rsa)), [], "which does not follow them");
}

#[test]
fn the_hub_decides_about_agents_where_it_is_looked_at() {
    let (ca, other) = (Ca::new("ca"), Ca::new("other"));
    let agent = agent(&ca, "system:open-cluster-management:c1:a1", "system:open-cluster-management:c1");
    let of = |authority: &Ca| Inventory {
        clients: Some(Clients { authorities: vec![authority.der.clone()], ..Clients::default() }),
        ..of(vec![Relation { trust: Trust::HubClients, ..agent.clone() }])
    };
    assert_eq!(ids(&of(&ca)), []);
    assert_eq!(ids(&of(&other)), [(4001, ERROR)]);
}

#[test]
fn an_agent_of_another_hub_is_not_judged_by_the_one_that_was_looked_at() {
    let (ca, other, api) = (Ca::new("ca"), Ca::new("other"), Ca::new("api"));
    let agent = Relation {
        trust: Trust::HubClients,
        cluster: Some("c1".to_owned()),
        ..agent(&ca, "system:open-cluster-management:c1:a1", "system:open-cluster-management:c1")
    };
    let add_on = Relation { cluster: None, ..agent.clone() };
    let found = |server: &str, authority: &Ca| {
        let accepted = Copy {
            cluster: Some("c1".to_owned()),
            server: Some(server.to_owned()),
            ..copy(Copied::Accepted, &[authority])
        };
        let clients = Clients {
            server: "https://hub:6443".to_owned(),
            server_authorities: vec![api.der.clone()],
            authorities: vec![other.der.clone()],
            ..Clients::default()
        };
        let inventory = of(vec![agent.clone(), add_on.clone()]);
        ids(&Inventory { clients: Some(clients), copies: vec![accepted], ..inventory }).len()
    };
    assert_eq!(found("https://hub:6443", &api), 2);
    assert_eq!(found("https://hub:6443", &ca), 2, "its CA was replaced");
    assert_eq!(found("https://lb:6443", &api), 2, "another way to it");
    assert_eq!(found("https://other:6443", &ca), 0);
}

#[test]
fn the_cause_is_told_where_it_shows() {
    let ca = Ca::new("ca");
    let cause = |relation: Relation| found(&of(vec![relation]))[0].cause.clone();
    let of = |other: &Ca| cause(Relation { trust: Trust::Authorities(vec![other.der.clone()]), ..right(&ca) });
    assert!(of(&Ca::new("ca")).contains("it was replaced"));
    assert!(of(&Ca::new("other")).contains("intermediate certificate is missing"));
    let own = ca.sign(&params("hub.example", &[]));
    assert!(cause(relation(&ca, own)).contains("common name only"));
}

#[test]
fn where_clients_differ_each_is_named() {
    let mut old = params("old", &[]);
    old.not_after = date_time_ymd(2026, 6, 1);
    let finding = found(&of(vec![Relation { client: None, ..right(&Ca::of(old)) }])).remove(0);
    assert!(finding.summary.contains("Go (agents, API servers, kubectl) and OpenSSL would not"), "{}", finding.summary);
    assert!(finding.evidence.iter().any(|line| line == "rustls (kubectl ocm): trusts it"), "{finding:#?}");
}

#[test]
fn the_time_line_begins_with_what_ends_first() {
    let ca = Ca::new("ca");
    let mut soon = params("soon", &["hub.example"]);
    soon.not_after = date_time_ymd(2026, 8, 1);
    let inventory = of(vec![right(&ca), relation(&ca, ca.sign(&soon))]);
    let line = expiries(&inventory);
    let subjects: Vec<(&str, Part)> = line.iter().map(|expiry| (expiry.subject.as_str(), expiry.part)).collect();
    assert_eq!(subjects, [("CN=soon", Part::Own), ("CN=ca", Part::Trusted), ("CN=hub", Part::Own)]);
    let left = Certificate::read(&ca.der.0).map(|_| line[1].left_percent);
    assert_eq!(left, Some(50));
}

#[test]
fn a_certificate_that_a_server_presents_stands_rightly_in_a_bundle() {
    let ca = Ca::new("ca");
    let own = params("hub", &["hub.example"]).self_signed(&KeyPair::generate().unwrap()).unwrap();
    let own = ByteString(own.der().to_vec());
    let with = |relation: Relation| {
        let bundle = Copy { authorities: vec![own.clone()], ..copy(Copied::Accepted, &[]) };
        Inventory { copies: vec![bundle], ..of(vec![relation]) }
    };
    let presented = || Relation { trust: Trust::Authorities(vec![own.clone()]), ..relation(&ca, own.clone()) };
    assert_eq!(ids(&with(presented())), []);
    // Where no server presents it, one that was not looked at may, so that it is not simply taken out.
    for other in [right(&ca), Relation { usage: Use::Client, names: vec![], ..presented() }] {
        let found = found(&with(other));
        let [finding] = found.as_slice() else { panic!("{found:#?}") };
        assert_eq!((finding.id, finding.severity), (Id(4022), WARNING));
        let advice = format!("{:?}", finding.next);
        assert!(advice.contains("only then") && !advice.contains("count without it"), "{advice}");
    }
}

#[test]
fn the_copies_of_one_hub_are_not_compared_with_those_of_another() {
    use Copied::{Bundle, GrpcBundle, HostedHub, Signer, WebhookBundle};
    let (here, hosted) = (Ca::new("here"), Ca::new("hosted"));
    let of_hosted = |what: Copied, ca: &Ca| {
        let place = Place::Object {
            side: Side::Hub,
            kind: ObjectKind::Secret,
            namespace: Some("hub1".to_owned()),
            name: format!("{what:?}"),
            key: None,
        };
        Copy { place, ..copy(what, &[ca]) }
    };
    let with = |copies: Vec<Copy>| ids(&Inventory { copies, ..inventory() });
    let both = || {
        let own = [copy(Signer, &[&here]), copy(Bundle, &[&here]), copy(WebhookBundle, &[&here])];
        [of_hosted(Signer, &hosted), of_hosted(Bundle, &hosted), of_hosted(HostedHub, &hosted)].into_iter().chain(own)
    };
    let and = |more: Copy| with(both().chain([more]).collect());
    assert_eq!(with(both().collect()), []);
    assert_eq!(and(copy(HostedHub, &[&here])), [], "of a hub in another namespace");
    assert_eq!(and(of_hosted(HostedHub, &here)), [(4027, WARNING)]);
    // An agent is of one of them.
    assert_eq!(and(copy(GrpcBundle, &[&hosted])), []);
    assert_eq!(and(copy(GrpcBundle, &[&here])), []);
    assert_eq!(and(copy(GrpcBundle, &[&Ca::new("stranger")])), [(4025, WARNING)]);
    let wrong = vec![of_hosted(Signer, &hosted), of_hosted(Bundle, &here), copy(Signer, &[&here])];
    assert_eq!(with(wrong), [(4020, ERROR)]);
}

#[test]
fn a_cluster_beside_a_hub_is_judged_with_what_the_hub_knows_of_it_and_nothing_is_told_twice() {
    use Copied::{Bundle, GrpcBundle, OwnApi, Reported, Signer};
    let (ca, api, other) = (Ca::new("ca"), Ca::new("api"), Ca::new("other"));
    let of_cluster = |copy: Copy, name: &str| Copy { cluster: Some(name.to_owned()), ..copy };
    let settings = TlsSettings { min_tls_version: Some("1.3".to_owned()), cipher_suites: None };
    let hub = Inventory {
        copies: vec![
            copy(Signer, &[&ca]),
            copy(Bundle, &[&other]),
            of_cluster(copy(Reported, &[&other, &other]), "c1"),
            of_cluster(copy(Reported, &[&other]), "c2"),
        ],
        settings: vec![Setting { place: Place::Input("x".to_owned()), is_read: true, settings }],
        clients: Some(Clients { authorities: vec![other.der.clone()], ..Clients::default() }),
        ..of(vec![Relation { purpose: Purpose::Signer, cluster: None, ..right(&ca) }])
    };
    let group = "system:open-cluster-management:c1";
    let agent = agent(&ca, "system:open-cluster-management:c1:a1", group);
    let own = Inventory {
        copies: vec![of_cluster(copy(OwnApi, &[&api]), "c1"), of_cluster(copy(GrpcBundle, &[&other]), "c1")],
        ..of(vec![Relation { trust: Trust::HubClients, cluster: Some("c1".to_owned()), ..agent }])
    };
    let numbers = |report: &Report| report.findings.iter().map(|finding| finding.id.0).collect::<Vec<_>>();
    let of_hub = judge(&hub, Profile::Kubernetes, None, &[]);
    assert_eq!(numbers(&of_hub), [4020, 4022, 4031]);
    let whole = beside(&own, &hub);
    let report = judge_beside(&whole, &own, &of_hub, Profile::Kubernetes, None, &[]);
    // Whom the hub lets in, which signer it has, and what it has of this cluster.
    assert_eq!(numbers(&report), [4001, 4025, 4026]);
    assert_eq!(report.expiries, expiries(&own));
    // Alone, nothing is known of all that.
    assert_eq!(ids(&own), []);
    // Another hub has a signer of its own.
    let second = Inventory { copies: vec![copy(Signer, &[&other]), copy(Bundle, &[&other])], ..inventory() };
    let whole = beside(&second, &hub);
    assert_eq!(numbers(&judge_beside(&whole, &second, &of_hub, Profile::Kubernetes, None, &[])), [0_u16; 0]);
    assert_eq!(whole.settings, []);
}

#[test]
fn an_inventory_comes_back_from_its_file() {
    let inventory =
        Inventory { copies: vec![copy(Copied::Bundle, &[&Ca::new("ca")])], ..of(vec![right(&Ca::new("ca"))]) };
    let text = serde_json::to_string(&inventory).unwrap();
    assert_eq!(serde_json::from_str::<Inventory>(&text).unwrap(), inventory);
}

#[test]
fn copies_and_tokens_are_part_of_the_time_line() {
    let (ca, other) = (Ca::new("ca"), Ca::new("other"));
    let proxy = Relation { purpose: Purpose::Proxy, cluster: None, trust: Trust::Unknown, ..right(&ca) };
    let inventory = Inventory {
        copies: vec![copy(Copied::Proxy, &[&ca, &other])],
        tokens: vec![token(Some("2026-08-01T00:00:00Z"), Renewal::Unknown), token(None, Renewal::Unknown)],
        ..of(vec![proxy])
    };
    let line = expiries(&inventory);
    let rows: Vec<_> =
        line.iter().map(|expiry| (expiry.subject.as_str(), expiry.purpose, expiry.part, expiry.in_use)).collect();
    assert_eq!(
        rows,
        [
            ("system:serviceaccount:a:b", Purpose::Hosted, Part::Token, true),
            ("CN=ca", Purpose::Proxy, Part::Trusted, true),
            ("CN=hub", Purpose::Proxy, Part::Own, true),
            ("CN=other", Purpose::Proxy, Part::Trusted, false),
        ]
    );
    // Of 212 days 31 are left.
    assert_eq!((line[0].left_percent, line[0].serial.as_str(), line[0].pin.as_str()), (14, "", ""));
    let soon = |within: &str| judge(&inventory, Profile::Intermediate, Some(within.parse().unwrap()), &[]).findings;
    assert_eq!((soon("30d").len(), soon("32d").len()), (0, 1), "the token");
}

#[test]
fn the_hubs_profile_is_everybodys_where_it_is_asked_for() {
    let ca = Ca::new("ca");
    let handshake = Handshake {
        address: "https://hub.example:6443".to_owned(),
        proxy: None,
        version: Some(Version::Tls12),
        cipher: Some("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".to_owned()),
        older_cipher: None,
        accepted: vec![Version::Tls12],
        suites: vec![],
    };
    let of = |version: &str, suites: &str| Inventory {
        settings: vec![Setting {
            place: Place::Input("x".to_owned()),
            is_read: true,
            settings: TlsSettings { min_tls_version: Some(version.to_owned()), cipher_suites: Some(suites.to_owned()) },
        }],
        ..of(vec![Relation { handshake: Some(handshake.clone()), ..right(&ca) }])
    };
    let ids = |inventory: &Inventory, profile| -> Vec<u16> {
        judge(inventory, profile, None, &[]).findings.iter().map(|finding| finding.id.0).collect()
    };
    let strict = of("VersionTLS13", "");
    assert_eq!((ids(&strict, Profile::Intermediate), ids(&strict, Profile::Ocm)), (vec![], vec![4030]));
    let other = of("VersionTLS12", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    assert_eq!((ids(&other, Profile::Intermediate), ids(&other, Profile::Ocm)), (vec![], vec![4033]));
    // Without a ConfigMap it is what servers have by default.
    let none = Inventory { settings: vec![], ..strict };
    assert_eq!(ids(&none, Profile::Ocm), [0_u16; 0]);
}
