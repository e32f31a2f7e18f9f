//! Verdicts about chains, beside those of `openssl verify` and of Go's verifier on the same bytes.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use cli_tests::root;
use contract_tests::verifiers::{self, Asked, ask};
use jiff::Timestamp;
use ocm_checks::tls::{Client, Refusal, Use, Whose};
use ocm_core::certificate::from_pem;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, NameConstraints, SanType, date_time_ymd,
};

/// The moment of every question.
const NOW: &str = "2027-07-01T00:00:00Z";
/// The host that is dialled.
const HOST: &str = "hub.example";

/// One chain, and what each client is expected to say: nothing, or why it refuses.
struct Case {
    name: &'static str,
    chain: Vec<Vec<u8>>,
    roots: Vec<Vec<u8>>,
    dialled: &'static str,
    usage: Use,
    /// In the order of [`Client::ALL`].
    expected: [Vec<Refusal>; 3],
}

/// Somebody who signs.
struct Signer {
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

/// Parameters of this common name, valid now, for the host.
fn params(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![HOST.to_owned()]).expect("what the test makes is right");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.not_before, params.not_after) = (date_time_ymd(2027, 1, 1), date_time_ymd(2028, 1, 1));
    params.use_authority_key_identifier_extension = false;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

/// Parameters of an authority.
fn authority(common_name: &str) -> CertificateParams {
    let mut params = params(common_name);
    params.subject_alt_names.clear();
    params.extended_key_usages.clear();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// An authority that has signed itself.
fn root_of(params: CertificateParams) -> Signer {
    let key = KeyPair::generate().expect("what the test makes is right");
    let der = params.self_signed(&key).expect("what the test makes is right").der().to_vec();
    Signer { der, issuer: Issuer::new(params, key) }
}

/// An authority that another one has signed.
fn intermediate(params: CertificateParams, by: &Signer) -> Signer {
    let key = KeyPair::generate().expect("what the test makes is right");
    let der = params.signed_by(&key, &by.issuer).expect("what the test makes is right").der().to_vec();
    Signer { der, issuer: Issuer::new(params, key) }
}

/// A certificate that somebody has signed.
fn signed(params: &CertificateParams, by: &Signer) -> Vec<u8> {
    params
        .signed_by(&KeyPair::generate().expect("what the test makes is right"), &by.issuer)
        .expect("what the test makes is right")
        .der()
        .to_vec()
}

/// A change of the usual parameters.
fn with(mut params: CertificateParams, change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    change(&mut params);
    params
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().expect("what the test makes is right"))
}

/// A file of `tls_chains`: a certificate and its authority, of kinds that rcgen does not make.
fn stored(name: &str) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let pem =
        fs::read(root().join("tests/contract/tests/tls_chains").join(name)).expect("what the test makes is right");
    let mut chain = from_pem(&pem).expect("what the test makes is right");
    let authority = chain.pop().expect("what the test makes is right");
    (chain, vec![authority])
}

fn cases() -> Vec<Case> {
    use Refusal::{Algorithm, Constrained, Expired, IsAuthority, MayNotSign, Name, NotYetValid, UnknownIssuer, Usage};
    let mut cases: Vec<Case> = Vec::new();
    let mut add = |name, chain: Vec<Vec<u8>>, roots: &[&Signer], expected: [Vec<Refusal>; 3]| {
        let roots = roots.iter().map(|signer| signer.der.clone()).collect();
        cases.push(Case { name, chain, roots, dialled: HOST, usage: Use::Server, expected });
    };
    let all = |refusal: Refusal| [vec![refusal.clone()], vec![refusal.clone()], vec![refusal]];
    let ok = || [vec![], vec![], vec![]];
    let name = || Name(HOST.to_owned());

    let root = root_of(authority("root"));
    let leaf = || params("hub");
    add("right", vec![signed(&leaf(), &root)], &[&root], ok());
    let expired = with(leaf(), |it| it.not_after = date_time_ymd(2027, 6, 1));
    add("expired", vec![signed(&expired, &root)], &[&root], all(Expired(Whose::Own)));
    let early = with(leaf(), |it| it.not_before = date_time_ymd(2027, 8, 1));
    add("not yet valid", vec![signed(&early, &root)], &[&root], all(NotYetValid(Whose::Own)));
    let other = with(leaf(), |it| it.subject_alt_names = vec![dns("other.example")]);
    add("wrong host", vec![signed(&other, &root)], &[&root], all(name()));
    let stranger = root_of(authority("stranger"));
    let two = || vec![Expired(Whose::Own), UnknownIssuer];
    add("expired, and of an unknown authority", vec![signed(&expired, &stranger)], &[&root], [two(), two(), two()]);
    add("of an unknown authority", vec![signed(&leaf(), &stranger)], &[&root], all(UnknownIssuer));
    let replaced = root_of(authority("root"));
    add(
        "of an authority with the same name and another key",
        vec![signed(&leaf(), &replaced)],
        &[&root],
        all(UnknownIssuer),
    );

    let own = root_of(leaf());
    add("self-signed and not trusted", vec![own.der.clone()], &[&root], all(UnknownIssuer));
    add("self-signed and trusted", vec![own.der.clone()], &[&own], ok());
    let own = root_of(with(leaf(), |it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)));
    add("an authority that is a server", vec![own.der.clone()], &[&own], [vec![IsAuthority], vec![], vec![]]);
    let issued = with(leaf(), |it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    add(
        "an authority that is a server, of another one",
        vec![signed(&issued, &root)],
        &[&root],
        [vec![IsAuthority], vec![], vec![]],
    );

    let middle = intermediate(authority("middle"), &root);
    let by_middle = signed(&leaf(), &middle);
    add("with an intermediate", vec![by_middle.clone(), middle.der.clone()], &[&root], ok());
    add("without its intermediate", vec![by_middle.clone()], &[&root], all(UnknownIssuer));
    add("with the root in the chain", vec![by_middle.clone(), root.der.clone(), middle.der.clone()], &[&root], ok());
    add("the intermediate is what is trusted", vec![by_middle], &[&middle], [vec![], vec![], vec![UnknownIssuer]]);
    let old = intermediate(with(authority("old"), |it| it.not_after = date_time_ymd(2027, 6, 1)), &root);
    add(
        "an intermediate has expired",
        vec![signed(&leaf(), &old), old.der.clone()],
        &[&root],
        all(Expired(Whose::Issuer)),
    );
    add(
        "an authority that is a server, of an intermediate that has expired",
        vec![signed(&issued, &old), old.der.clone()],
        &[&root],
        [vec![IsAuthority], vec![Expired(Whose::Issuer)], vec![Expired(Whose::Issuer)]],
    );
    let plain = intermediate(with(authority("plain"), |it| (it.is_ca, it.key_usages) = (IsCa::NoCa, vec![])), &root);
    add("an intermediate is no authority", vec![signed(&leaf(), &plain), plain.der.clone()], &[&root], all(MayNotSign));
    let silent = intermediate(with(authority("silent"), |it| it.key_usages = vec![KeyUsagePurpose::CrlSign]), &root);
    add(
        "an intermediate may not sign",
        vec![signed(&leaf(), &silent), silent.der.clone()],
        &[&root],
        [vec![], vec![MayNotSign], vec![MayNotSign]],
    );
    let short = root_of(with(authority("short"), |it| it.is_ca = IsCa::Ca(BasicConstraints::Constrained(0))));
    let (first, second) = {
        let first =
            intermediate(with(authority("first"), |it| it.is_ca = IsCa::Ca(BasicConstraints::Constrained(0))), &short);
        let second = intermediate(authority("second"), &first);
        (first, second)
    };
    add(
        "a path that is too long",
        vec![signed(&leaf(), &second), second.der.clone(), first.der.clone()],
        &[&short],
        all(MayNotSign),
    );

    let gone = root_of(with(authority("gone"), |it| it.not_after = date_time_ymd(2027, 6, 1)));
    add(
        "the authority has expired",
        vec![signed(&leaf(), &gone)],
        &[&gone],
        [vec![], vec![Expired(Whose::Issuer)], vec![Expired(Whose::Issuer)]],
    );
    let none = root_of(with(authority("none"), |it| (it.is_ca, it.key_usages) = (IsCa::ExplicitNoCa, vec![])));
    add("the authority is none", vec![signed(&leaf(), &none)], &[&none], [vec![], vec![MayNotSign], vec![MayNotSign]]);
    let mute = root_of(with(authority("mute"), |it| it.key_usages = vec![KeyUsagePurpose::CrlSign]));
    add(
        "the authority may not sign",
        vec![signed(&leaf(), &mute)],
        &[&mute],
        [vec![], vec![MayNotSign], vec![MayNotSign]],
    );
    let narrow =
        root_of(with(authority("narrow"), |it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]));
    let issuers = || vec![Usage(Whose::Issuer)];
    add("the authority is for clients", vec![signed(&leaf(), &narrow)], &[&narrow], [vec![], issuers(), issuers()]);

    let client = with(leaf(), |it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    add("a client's certificate", vec![signed(&client, &root)], &[&root], all(Usage(Whose::Own)));
    let free = with(leaf(), |it| it.extended_key_usages.clear());
    add("without an extended key usage", vec![signed(&free, &root)], &[&root], ok());
    let any = with(leaf(), |it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any]);
    let owns = || vec![Usage(Whose::Own)];
    add("for any extended key usage", vec![signed(&any, &root)], &[&root], [owns(), vec![], owns()]);
    let data = with(leaf(), |it| it.key_usages = vec![KeyUsagePurpose::DataEncipherment]);
    add("a key that takes part in no handshake", vec![signed(&data, &root)], &[&root], [vec![], vec![], owns()]);

    let common = with(params(HOST), |it| it.subject_alt_names.clear());
    add(
        "the name is the common name only",
        vec![signed(&common, &root)],
        &[&root],
        [vec![name()], vec![name()], vec![]],
    );
    let wild = with(leaf(), |it| it.subject_alt_names = vec![dns("*.example")]);
    add("a wildcard before one label", vec![signed(&wild, &root)], &[&root], [vec![name()], vec![], vec![name()]]);
    let unknown = with(leaf(), |it| {
        let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999, 1], vec![5, 0]);
        extension.set_criticality(true);
        it.custom_extensions.push(extension);
    });
    let unsupported = || vec![Refusal::Other("UnsupportedCriticalExtension".to_owned())];
    add(
        "a critical extension that nobody knows",
        vec![signed(&unknown, &root)],
        &[&root],
        [unsupported(), unsupported(), unsupported()],
    );

    let limited = |subtree: &str| {
        let permitted_subtrees = vec![GeneralSubtree::DnsName(subtree.to_owned())];
        let constraints = NameConstraints { permitted_subtrees, excluded_subtrees: vec![] };
        root_of(with(authority(subtree), |it| it.name_constraints = Some(constraints)))
    };
    let (inside, outside) = (limited("example"), limited("other"));
    add("within name constraints", vec![signed(&leaf(), &inside)], &[&inside], ok());
    add("outside of name constraints", vec![signed(&leaf(), &outside)], &[&outside], all(Constrained));

    for (name, dialled, names, expected) in [
        ("a wildcard", "api.hub.example", vec![dns("*.hub.example")], [false, false, false]),
        ("a wildcard for two labels", "a.b.hub.example", vec![dns("*.hub.example")], [true, true, true]),
        ("a wildcard in a label", "api.hub.example", vec![dns("a*.hub.example")], [true, true, false]),
        ("an address", "10.0.0.1", vec![SanType::IpAddress([10, 0, 0, 1].into())], [false, false, false]),
        ("an address as a DNS name", "10.0.0.1", vec![dns("10.0.0.1")], [true, true, true]),
    ] {
        let chain = vec![signed(&with(leaf(), |it| it.subject_alt_names = names), &root)];
        let expected = expected.map(|wrong| if wrong { vec![Name(dialled.to_owned())] } else { vec![] });
        cases.push(Case { name, chain, roots: vec![root.der.clone()], dialled, usage: Use::Server, expected });
    }
    for (name, params, expected) in
        [("a client", client, ok()), ("a server as a client", leaf(), all(Usage(Whose::Own)))]
    {
        let chain = vec![signed(&params, &root)];
        cases.push(Case { name, chain, roots: vec![root.der.clone()], dialled: "", usage: Use::Client, expected });
    }
    for (name, file, expected) in [
        ("an authority with RSA of 1024 bits", "rsa1024.pem", [vec![Algorithm], vec![], vec![Algorithm]]),
        ("signed with SHA-1", "sha1.pem", all(Algorithm)),
        ("an authority on P-521", "p521.pem", [vec![Algorithm], vec![], vec![]]),
    ] {
        let (chain, roots) = stored(file);
        cases.push(Case { name, chain, roots, dialled: HOST, usage: Use::Server, expected });
    }
    cases
}

impl Case {
    fn asked(&self) -> Asked<'_> {
        let at: Timestamp = NOW.parse().expect("what the test makes is right");
        Asked { chain: &self.chain, roots: &self.roots, dialled: self.dialled, usage: self.usage, at }
    }
}

#[test]
fn every_client_gives_the_verdict_that_is_expected() {
    let mut wrong = String::new();
    for case in cases() {
        for (client, expected) in Client::ALL.into_iter().zip(&case.expected) {
            let found = ask(&case.asked(), client);
            if found != *expected {
                let _ = writeln!(wrong, "{}, {client:?}: {found:?} instead of {expected:?}", case.name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// One name and one key, so that each has signed each: what a server sends to keep its clients busy.
#[test]
fn certificates_that_all_sign_each_other_take_no_time() {
    let key = KeyPair::generate().expect("what the test makes is right");
    let chain: Vec<Vec<u8>> = (1..=60u8)
        .map(|serial| {
            let params = with(authority("same"), |it| it.serial_number = Some(vec![serial].into()));
            params.self_signed(&key).expect("what the test makes is right").der().to_vec()
        })
        .collect();
    let roots = vec![root_of(authority("root")).der];
    let case = Case { name: "", chain, roots, dialled: HOST, usage: Use::Client, expected: [vec![], vec![], vec![]] };
    let begin = Instant::now();
    for client in Client::ALL {
        assert!(!ask(&case.asked(), client).is_empty(), "{client:?}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// The cases in which what we say of a client is not what its program says.
fn differences(client: Client, program: fn(&[Asked<'_>]) -> Option<Vec<String>>) -> Vec<String> {
    let cases = cases();
    let asked: Vec<Asked<'_>> = cases.iter().map(Case::asked).collect();
    // Both programs come with most machines of developers, and with those of CI.
    let Some(says) = program(&asked) else { return Vec::new() };
    let compared = cases.iter().zip(says).filter_map(|(case, says)| {
        let ours = ask(&case.asked(), client);
        (ours.is_empty() != says.is_empty()).then(|| format!("{}: we say {ours:?}, it says {says:?}", case.name))
    });
    compared.collect()
}

#[test]
fn openssl_verify_says_the_same() {
    assert_eq!(differences(Client::OpenSsl, verifiers::openssl), [""; 0]);
}

#[test]
fn go_says_the_same() {
    assert_eq!(differences(Client::Go, verifiers::go), [""; 0]);
}
