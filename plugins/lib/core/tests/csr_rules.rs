//! Every rule for a certificate request with right and wrong input, and a matrix of what can be wrong with one.

mod common;

use common::*;
use csr_fixtures::{Fixture, Hash, Key, Kind, Text, oid};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_core::csr::{Code, Content, LONGEST, Names, Request, Settings, State, Unreadable};
use ocm_rules::csr::AddonFacts;

fn agent() -> Fixture {
    Fixture::agent(CLUSTER, "a1")
}

fn forged(fixture: &Fixture) -> CertificateSigningRequest {
    object("forged", 10, &fixture.pem())
}

/// Changes the right object and says what is wrong with it now.
fn changed(change: impl FnOnce(&mut CertificateSigningRequest)) -> Vec<Code> {
    let mut object = right();
    change(&mut object);
    codes(&object)
}

fn relabelled(key: &str, value: &str) -> impl FnOnce(&mut CertificateSigningRequest) {
    move |object| {
        object.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}

fn annotate(object: &mut CertificateSigningRequest, user: &str) {
    object.metadata.annotations.get_or_insert_default().insert(CSR_USER.to_owned(), user.to_owned());
}

fn by_grpc(object: &mut CertificateSigningRequest, user: Option<&str>) {
    ask_as_service_account(object, "open-cluster-management-hub", "grpc-server-sa");
    object.spec.signer_name = GRPC_SIGNER.to_owned();
    if let Some(user) = user {
        annotate(object, user);
    }
}

#[test]
fn right_requests_break_no_rule() {
    let own = "system:open-cluster-management:c1";
    let fixtures = [
        ("as an agent asks", agent()),
        ("a name of 70 characters", Fixture::agent(CLUSTER, "3891282a-ae41-4537-991c-73e3e046fd56")),
        ("an organisation twice", agent().organization(own)),
        ("each name in a set of its own", Fixture::empty().organization(own).common_name(&format!("{own}:a1"))),
        (
            "all names in one set",
            Fixture::empty().one_set(&[(oid::ORGANIZATION, own), (oid::COMMON_NAME, &format!("{own}:a1"))]),
        ),
        (
            "printable strings",
            Fixture::empty().subject(oid::ORGANIZATION, Text::Printable, own).subject(
                oid::COMMON_NAME,
                Text::Printable,
                &format!("{own}:a1"),
            ),
        ),
        ("P-384", agent().kind(Kind::P384)),
        ("P-384 with SHA-256", agent().kind(Kind::P384).hash(Hash::Sha256)),
        ("P-521", agent().kind(Kind::P521)),
        ("Ed25519", agent().kind(Kind::Ed25519)),
        ("RSA 2048", agent().kind(Kind::Rsa(2048))),
        ("RSA 3072 with SHA-512", agent().kind(Kind::Rsa(3072)).hash(Hash::Sha512)),
    ];
    for (what, fixture) in fixtures {
        assert_eq!(codes(&forged(&fixture)), [], "{what}");
    }
    let name = "system:open-cluster-management:c1:3891282a-ae41-4537-991c-73e3e046fd56";
    assert!(name.len() > 64, "the long name is longer than X.520 allows");

    assert_eq!(changed(|object| object.spec.expiration_seconds = Some(31_536_000)), []);
    let two = ["digital signature", "client auth"];
    assert_eq!(changed(|object| object.spec.usages = Some(two.map(str::to_owned).to_vec())), []);
    assert_eq!(changed(|object| object.spec.request.0.extend(b"\n \r\n\t")), []);
    let groups = ["system:bootstrappers", "system:bootstrappers:managedcluster", "system:authenticated"];
    assert_eq!(changed(|object| ask_as(object, "system:bootstrap:abcdef", &groups, None)), []);
    assert_eq!(changed(|object| by_grpc(object, Some(BOOTSTRAP))), []);
    assert_eq!(changed(|object| by_grpc(object, Some("system:bootstrap:abcdef"))), []);
    let settings = Settings { requesters: vec!["eva".to_owned()], ..Settings::default() };
    let mut by_eva = right();
    ask_as(&mut by_eva, "eva", &["system:authenticated"], Some("X509SHA256=2df758"));
    assert_eq!(codes_with(&by_eva, &settings), []);
}

/// One change each of a right request, and the rule that it breaks. Every rule occurs.
fn wrong_contents() -> Vec<(&'static str, Fixture, Code)> {
    let own = "system:open-cluster-management:c1";
    let all = "system:open-cluster-management:managed-clusters";
    let named = |name: &str| agent().without_common_names().common_name(name);
    let grouped = |groups: &[&str]| {
        groups.iter().fold(agent().without_organizations(), |fixture, group| fixture.organization(group))
    };
    vec![
        ("no common name", agent().without_common_names(), Code::CommonNames),
        ("two common names", agent().common_name("system:open-cluster-management:c2:a1"), Code::CommonNames),
        ("the same common name twice", agent().common_name(&format!("{own}:a1")), Code::CommonNames),
        (
            "two common names in one set",
            agent()
                .without_common_names()
                .one_set(&[(oid::COMMON_NAME, &format!("{own}:a1")), (oid::COMMON_NAME, "x")]),
            Code::CommonNames,
        ),
        ("another cluster's name", named("system:open-cluster-management:c2:a1"), Code::CommonName),
        ("a longer cluster's name", named("system:open-cluster-management:c10:a1"), Code::CommonName),
        ("a shorter cluster's name", named("system:open-cluster-management:c:a1"), Code::CommonName),
        ("no agent", named(own), Code::CommonName),
        ("an empty agent", named(&format!("{own}:")), Code::CommonName),
        ("three parts", named(&format!("{own}:a1:x")), Code::CommonName),
        ("an add-on's name", named("system:open-cluster-management:cluster:c1:addon:x:agent:y"), Code::CommonName),
        ("something before the name", named(&format!("x{own}:a1")), Code::CommonName),
        ("capitals", named("system:open-cluster-management:C1:a1"), Code::CommonName),
        ("capitals in front", named("System:open-cluster-management:c1:a1"), Code::CommonName),
        ("a blank behind", named(&format!("{own}:a1 ")), Code::CommonName),
        ("a blank agent", named(&format!("{own}: ")), Code::CommonName),
        ("a NUL", named(&format!("{own}:a1\0")), Code::CommonName),
        ("a NUL in the cluster's name", named("system:open-cluster-management:c1\0:a1"), Code::CommonName),
        ("a line break", named(&format!("{own}:a\n1")), Code::CommonName),
        ("a look-alike", named("system:open-cluster-management:с1:a1"), Code::CommonName),
        ("a look-alike agent", named(&format!("{own}:а1")), Code::CommonName),
        ("a full-width colon", named("system:open-cluster-management:c1：a1"), Code::CommonName),
        ("text that runs backwards", named(&format!("{own}:\u{202e}a1")), Code::CommonName),
        ("an empty name", named(""), Code::CommonName),
        ("a masters' name", named("system:admin"), Code::CommonName),
        ("masters", agent().organization("system:masters"), Code::ForeignOrganization),
        (
            "masters in the same set",
            agent().one_set(&[(oid::ORGANIZATION, "system:masters")]),
            Code::ForeignOrganization,
        ),
        (
            "another cluster's group too",
            agent().organization("system:open-cluster-management:c2"),
            Code::ForeignOrganization,
        ),
        (
            "another cluster's group of an AWS identity too",
            agent().organization("open-cluster-management:c2"),
            Code::ForeignOrganization,
        ),
        (
            "its own cluster's group of an AWS identity too",
            agent().organization("open-cluster-management:c1"),
            Code::ForeignOrganization,
        ),
        ("a longer group too", agent().organization(&format!("{own}0")), Code::ForeignOrganization),
        ("the group with a blank", agent().organization(&format!("{own} ")), Code::ForeignOrganization),
        ("the group in capitals", agent().organization("system:open-cluster-management:C1"), Code::ForeignOrganization),
        ("a longer common group", agent().organization(&format!("{all}x")), Code::ForeignOrganization),
        ("an empty organisation", agent().organization(""), Code::ForeignOrganization),
        (
            "an add-on's group too",
            agent().organization("system:open-cluster-management:addon:x"),
            Code::ForeignOrganization,
        ),
        ("the common group only", grouped(&[all]), Code::MissingOrganization),
        ("no organisation", grouped(&[]), Code::MissingOrganization),
        ("a country", agent().subject(oid::COUNTRY, Text::Printable, "NZ"), Code::SubjectAttributes),
        ("a unit", agent().subject(oid::ORGANIZATIONAL_UNIT, Text::Utf8, "x"), Code::SubjectAttributes),
        ("a serial number", agent().subject(oid::SERIAL_NUMBER, Text::Printable, "1"), Code::SubjectAttributes),
        ("a UID", agent().subject(oid::KUBERNETES_UID, Text::Utf8, "1"), Code::SubjectAttributes),
        (
            "a unit in the set of the name",
            agent()
                .without_common_names()
                .one_set(&[(oid::COMMON_NAME, &format!("{own}:a1")), (oid::ORGANIZATIONAL_UNIT, "x")]),
            Code::SubjectAttributes,
        ),
        ("a DNS name", agent().dns("kubernetes.default"), Code::AlternativeNames),
        ("an address", agent().ip([127, 0, 0, 1]), Code::AlternativeNames),
        ("an email address", agent().email("a@example.com"), Code::AlternativeNames),
        ("a URI", agent().uri("spiffe://x/y"), Code::AlternativeNames),
        ("alternative names without any", agent().no_alternatives(), Code::AlternativeNames),
        ("to be an authority", agent().extension(oid::BASIC_CONSTRAINTS, b"\x30\x03\x01\x01\xff"), Code::Extensions),
        (
            "another usage",
            agent().extension(oid::EXTENDED_KEY_USAGE, b"\x30\x0a\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01"),
            Code::Extensions,
        ),
        ("no extension, in so many words", agent().no_extensions(), Code::Extensions),
        ("a challenge password", agent().challenge_password("x"), Code::Extensions),
        ("RSA 1024", agent().kind(Kind::Rsa(1024)), Code::WeakKey),
        ("RSA of one bit less", agent().kind(Kind::Rsa(2047)), Code::WeakKey),
        ("another curve", agent().kind(Kind::Secp256k1), Code::WeakKey),
        ("another's signature", agent().signed_by(&Key::new(Kind::P256)), Code::Signature),
        ("another's signature, P-521", agent().kind(Kind::P521).signed_by(&Key::new(Kind::P521)), Code::Signature),
        (
            "another's signature, Ed25519",
            agent().kind(Kind::Ed25519).signed_by(&Key::new(Kind::Ed25519)),
            Code::Signature,
        ),
        (
            "a changed subject",
            Fixture::empty().sign_now().organization(own).common_name(&format!("{own}:a1")),
            Code::Signature,
        ),
        ("SHA-1 with ECDSA", agent().hash(Hash::Sha1), Code::Signature),
        ("SHA-1 with RSA", agent().kind(Kind::Rsa(2048)).hash(Hash::Sha1), Code::Signature),
        (
            "a name in BMP",
            agent().without_common_names().subject(oid::COMMON_NAME, Text::Bmp, &format!("{own}:a1")),
            Code::Unreadable,
        ),
        ("a group in BMP", agent().subject(oid::ORGANIZATION, Text::Bmp, "system:masters"), Code::Unreadable),
        ("a group in Teletex", agent().subject(oid::ORGANIZATION, Text::Teletex, own), Code::Unreadable),
        ("a group in IA5", agent().subject(oid::ORGANIZATION, Text::Ia5, own), Code::Unreadable),
    ]
}

#[test]
fn one_wrong_thing_in_a_request_breaks_exactly_its_rule() {
    for (what, fixture, code) in wrong_contents() {
        let found = codes(&forged(&fixture));
        assert_eq!(found, [code], "{what}");
    }
}

/// A change of an object.
type Change = Box<dyn Fn(&mut CertificateSigningRequest)>;

/// One change each of a right object, and the rule that it breaks.
fn wrong_objects() -> Vec<(&'static str, Change, Code)> {
    let usages = |usages: &'static [&'static str]| -> Change {
        Box::new(move |object| object.spec.usages = Some(usages.iter().map(|usage| (*usage).to_owned()).collect()))
    };
    let lifetime = |seconds| -> Change { Box::new(move |object| object.spec.expiration_seconds = Some(seconds)) };
    let signer = |name: &'static str| -> Change { Box::new(move |object| object.spec.signer_name = name.to_owned()) };
    let user = |user: &'static str, groups: &'static [&'static str], id: Option<&'static str>| -> Change {
        Box::new(move |object| ask_as(object, user, groups, id))
    };
    let label = |value: &'static str| -> Change { Box::new(move |object| relabelled(LABEL, value)(object)) };
    let grpc = |user: Option<&'static str>| -> Change { Box::new(move |object| by_grpc(object, user)) };
    let everybody: &[&str] = &["system:authenticated"];
    let bootstrappers: &[&str] = &["system:bootstrappers", "system:bootstrappers:managedcluster"];
    let accounts: &[&str] = &["system:serviceaccounts", "system:serviceaccounts:open-cluster-management"];
    vec![
        ("another cluster's label", label("c2"), Code::ClusterLabel),
        ("a longer label", label("c10"), Code::ClusterLabel),
        ("a label in capitals", label("C1"), Code::ClusterLabel),
        ("an empty label", label(""), Code::ClusterLabel),
        ("no label", Box::new(|object| object.metadata.labels = None), Code::ClusterLabel),
        ("no usages", Box::new(|object| object.spec.usages = None), Code::Usages),
        ("server auth", usages(&["digital signature", "server auth"]), Code::Usages),
        ("server auth too", usages(&["digital signature", "client auth", "server auth"]), Code::Usages),
        ("to sign certificates", usages(&["digital signature", "client auth", "cert sign"]), Code::Usages),
        ("any usage", usages(&["digital signature", "client auth", "any"]), Code::Usages),
        ("client auth only", usages(&["client auth"]), Code::Usages),
        ("the usage in capitals", usages(&["digital signature", "Client Auth"]), Code::Usages),
        ("a second too long", lifetime(31_536_001), Code::Lifetime),
        ("ten years", lifetime(315_360_000), Code::Lifetime),
        ("no time", lifetime(0), Code::Lifetime),
        ("less than no time", lifetime(-1), Code::Lifetime),
        ("the kubelets' signer", signer("kubernetes.io/kube-apiserver-client-kubelet"), Code::Signer),
        ("the serving signer", signer("kubernetes.io/kubelet-serving"), Code::Signer),
        ("an own signer", signer("example.com/signer"), Code::Signer),
        ("the signer with a slash more", signer("kubernetes.io/kube-apiserver-client/x"), Code::Signer),
        ("no signer", signer(""), Code::Signer),
        ("somebody", user("eva", everybody, None), Code::Requester),
        ("nobody", user("", &[], None), Code::Requester),
        ("an administrator", user("kubernetes-admin", &["system:masters"], None), Code::Requester),
        ("the group without the token", user("eva", bootstrappers, None), Code::Requester),
        ("another cluster's agent", user("system:open-cluster-management:c2:a1", everybody, None), Code::OtherAgent),
        (
            "a bootstrap token without the group",
            user("system:bootstrap:abcdef", &["system:bootstrappers"], None),
            Code::Requester,
        ),
        ("a longer token", user("system:bootstrap:abcdefg", bootstrappers, None), Code::Requester),
        ("a token in capitals", user("system:bootstrap:ABCDEF", bootstrappers, None), Code::Requester),
        ("no token", user("system:bootstrap:", bootstrappers, None), Code::Requester),
        (
            "a token's name by a certificate",
            user("system:bootstrap:abcdef", bootstrappers, Some("X509SHA256=2df7")),
            Code::Impersonated,
        ),
        ("a service account's name only", user(BOOTSTRAP, accounts, None), Code::Impersonated),
        (
            "a service account's name by a certificate",
            user(BOOTSTRAP, accounts, Some("X509SHA256=2df7")),
            Code::Impersonated,
        ),
        (
            "a service account's UID by a certificate",
            Box::new(|object| {
                object.spec.extra = Some([(CREDENTIAL_ID.to_owned(), vec!["X509SHA256=2df7".to_owned()])].into());
            }),
            Code::Impersonated,
        ),
        ("an empty UID", Box::new(|object| object.spec.uid = Some(String::new())), Code::Impersonated),
        ("a service account without its groups", Box::new(|object| object.spec.groups = None), Code::Impersonated),
        (
            "another service account",
            Box::new(|object| ask_as_service_account(object, "default", "agent-registration-bootstrap")),
            Code::Requester,
        ),
        (
            "a longer service account",
            Box::new(|object| {
                ask_as_service_account(object, "open-cluster-management", "agent-registration-bootstrap-x")
            }),
            Code::Requester,
        ),
        ("a forged annotation", Box::new(|object| annotate(object, BOOTSTRAP)), Code::GrpcClaim),
        ("an empty annotation", Box::new(|object| annotate(object, "")), Code::GrpcClaim),
        ("gRPC without a user", grpc(None), Code::GrpcClaim),
        ("gRPC for somebody", grpc(Some("eva")), Code::Requester),
        ("gRPC for another cluster's agent", grpc(Some("system:open-cluster-management:c2:a1")), Code::OtherAgent),
        (
            "gRPC with the API server's signer",
            Box::new(|object| {
                by_grpc(object, Some(BOOTSTRAP));
                object.spec.signer_name = "kubernetes.io/kube-apiserver-client".to_owned();
            }),
            Code::Signer,
        ),
        (
            "gRPC's server by name only",
            Box::new(|object| {
                by_grpc(object, Some(BOOTSTRAP));
                object.spec.uid = None;
            }),
            Code::Impersonated,
        ),
        (
            "an add-on's label",
            Box::new(|object| {
                object.metadata.labels.get_or_insert_default().insert(ADDON_LABEL.to_owned(), "x".to_owned());
            }),
            Code::AddonLabel,
        ),
        ("garbage", Box::new(|object| object.spec.request = ByteString(b"garbage".to_vec())), Code::Unreadable),
    ]
}

#[test]
fn one_wrong_thing_about_an_object_breaks_exactly_its_rule() {
    for (what, change, code) in wrong_objects() {
        assert_eq!(changed(change), [code], "{what}");
    }
    // The claim of the gRPC path alone is enough, whichever way it is made.
    let both = changed(|object| object.spec.signer_name = GRPC_SIGNER.to_owned());
    assert_eq!(both, [Code::GrpcClaim, Code::Signer]);
}

#[test]
fn every_rule_can_be_broken() {
    let mut broken: Vec<Code> = wrong_contents().into_iter().map(|(_, _, code)| code).collect();
    broken.extend(wrong_objects().into_iter().map(|(_, _, code)| code));
    // Those of a request alone; R7 is about renewals, and two codes are about what else the hub holds.
    let of_requests = Code::ALL.iter().filter(|code| matches!(code.rule(), "R1" | "R2" | "R3" | "R4" | "R5"));
    for code in of_requests.filter(|code| **code != Code::AddonNotEnabled) {
        assert!(broken.contains(code), "{code}");
    }
    assert!(broken.contains(&Code::Requester) && broken.contains(&Code::Impersonated));
}

#[test]
fn two_wrong_things_do_not_make_a_right_one() {
    let contents = wrong_contents();
    let objects = wrong_objects();
    for (what, fixture, code) in &contents {
        let mut object = forged(fixture);
        for (which, change, other) in &objects {
            let request = object.spec.request.clone();
            let mut both = object.clone();
            change(&mut both);
            let found = codes(&both);
            assert!(found.contains(other), "{what} and {which}: {found:?}");
            assert!(found.contains(code) || both.spec.request != request, "{what} and {which}: {found:?}");
        }
        object.metadata.name = None;
    }
}

#[test]
fn only_one_block_and_nothing_else_is_read() {
    let pem = agent().pem();
    let der = agent().der();
    let lines: Vec<&str> = pem.lines().collect();
    let with_header = format!("{}\nX: y\n\n{}", lines[0], lines[1..].join("\n"));
    let wrong = [
        ("nothing", String::new()),
        ("another kind of block", csr_fixtures::pem("CERTIFICATE", &der)),
        ("an old kind of block", csr_fixtures::pem("NEW CERTIFICATE REQUEST", &der)),
        ("two blocks", format!("{pem}{pem}")),
        ("another one first", format!("{}{pem}", Fixture::agent("c2", "a1").pem())),
        ("text in front", format!("hello\n{pem}")),
        ("text behind", format!("{pem}hello")),
        ("a header", with_header),
        ("a block in a block", format!("{}\n{pem}{}", lines[0], lines[lines.len() - 1])),
        ("half a block", lines[..lines.len() - 1].join("\n")),
        ("no line breaks", pem.replace('\n', "")),
        ("blanks that are no blanks", format!("\u{a0}{pem}")),
        ("a form feed", pem.replacen('\n', "\n\u{c}", 1)),
        ("stars in the base64", pem.replacen("MI", "M*I", 1)),
    ];
    for (what, pem) in wrong {
        assert!(matches!(Content::read(pem.as_bytes()), Err(Unreadable::Pem(_))), "{what}");
    }
    assert_eq!(Content::read(b"\xff\xfe"), Err(Unreadable::Pem(Names::default())));
    let padded = |length: usize| format!("{pem}{}", "\n".repeat(length - pem.len()));
    assert_eq!(Content::read(padded(LONGEST).as_bytes()), Content::read(pem.as_bytes()));
    assert_eq!(Content::read(padded(LONGEST + 1).as_bytes()), Err(Unreadable::TooLong));
    let windows = pem.replace('\n', "\r\n");
    assert_eq!(Content::read(windows.as_bytes()), Content::read(pem.as_bytes()));
}

#[test]
fn the_names_of_the_first_block_are_known_as_the_api_server_reads_it() {
    let pem = agent().pem();
    let other = Fixture::agent("c2", "a1").pem();
    let lines: Vec<&str> = pem.lines().collect();
    let (begin, end) = (lines[0], lines[lines.len() - 1]);
    let body = lines[1..lines.len() - 1].join("\n");
    let names = |pem: &[u8]| match Content::read(pem) {
        Err(Unreadable::Pem(names)) => names,
        read => panic!("{read:?}"),
    };
    let own = Names {
        common_names: vec!["system:open-cluster-management:c1:a1".to_owned()],
        organizations: Content::read(pem.as_bytes()).expect("it is right").organizations,
    };
    for (what, pem) in [
        ("two blocks", format!("{pem}{other}")),
        ("two blocks and a blank line between them", format!("{pem}\n{}", other.trim_end())),
        ("text in front", format!("Certificate Request:\n    Subject: CN = eva\n{pem}")),
        ("text behind", format!("{pem}hello")),
        ("a block of another kind behind", format!("{pem}{}", csr_fixtures::pem("CERTIFICATE", &agent().der()))),
        ("half a block behind", format!("{pem}{begin}\nMI")),
        ("headers", format!("{begin}\nProc-Type: 4\nX: y\n\n{body}\n{end}\n")),
        ("blanks in it", format!("{begin}\n \t{}\n{end} \t\n", body.replacen("MI", "M\tI ", 1))),
        ("the line breaks of Windows, and text", format!("x\n{pem}").replace('\n', "\r\n")),
    ] {
        assert_eq!(names(pem.as_bytes()), own, "{what}");
    }
    let bytes_in_front = [b"\xff\xfe\n", pem.as_bytes()].concat();
    assert_eq!(names(&bytes_in_front), own);
    // It reads nothing here, or its releases differ.
    for (what, pem) in [
        ("nothing", String::new()),
        ("another kind of block in front", format!("{}{pem}", csr_fixtures::pem("CERTIFICATE", &agent().der()))),
        ("half a block in front", format!("{begin}\nMI\n{pem}")),
        ("the end of a block in front", format!("{end}\n{pem}")),
        ("no base64 in front", format!("{begin}\n?\n{end}\n{pem}")),
        ("no beginning of a line", format!("x {pem}")),
        ("more in the first line", pem.replacen(begin, &format!("{begin} x"), 1)),
        ("more in the last line", pem.replacen(end, &format!("{end} x"), 1)),
        ("a form feed in the first line", pem.replacen(begin, &format!("{begin}\u{c}"), 1) + &other),
        ("the end of another kind", pem.replacen(end, "-----END CERTIFICATE-----", 1) + &other),
        ("a block in a header", format!("{begin}\nX: {begin}\n\n{body}\n{end}\n{other}")),
        ("a header behind the content", format!("{begin}\n{body}\nX: y\n{end}\n{other}")),
        ("no request in the block", format!("x\n{}", csr_fixtures::pem("CERTIFICATE REQUEST", b"\x30\x00"))),
        ("a group in BMP", format!("x\n{}", agent().subject(oid::ORGANIZATION, Text::Bmp, "system:masters").pem())),
    ] {
        assert_eq!(names(pem.as_bytes()), Names::default(), "{what}");
    }
}

#[test]
fn a_request_that_the_api_server_reads_and_we_do_not_breaks_a_rule_whatever_it_says_of_itself() {
    let by_eve = |pem: &str| {
        let mut object = object("hidden", 10, pem);
        object.metadata.labels = None;
        ask_as(&mut object, "eve", &["system:authenticated"], None);
        object
    };
    let judged = |object: &CertificateSigningRequest| {
        let request = Request::read(object);
        let judged = ocm_rules::csr::judge(&request.facts(), None, &Settings::default(), AddonFacts::default());
        judged.map(|judged| judged.violations.into_iter().map(|violation| violation.code).collect::<Vec<_>>())
    };
    let plain = Fixture::empty().common_name("jane").organization("dev").pem();
    let agents = agent().pem();
    let long = format!("{agents}{}", "\n".repeat(LONGEST));
    for pem in [&format!("{agents}{agents}"), &format!("hello\n{agents}"), &long, "garbage"] {
        let found = judged(&by_eve(pem));
        assert!(found.as_ref().is_some_and(|found| found.contains(&Code::Unreadable)), "{pem}: {found:?}");
        for signer in ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet", "example.com/s"]
        {
            let mut elsewhere = by_eve(pem);
            elsewhere.spec.signer_name = signer.to_owned();
            assert_eq!(judged(&elsewhere), None, "{signer}: {pem}");
        }
    }
    for pem in [&plain, &format!("Certificate Request:\n{plain}"), &format!("{plain}{agents}")] {
        assert_eq!(judged(&by_eve(pem)), None, "{pem}");
    }
}

#[test]
fn what_is_no_request_is_not_read() {
    let der = agent().der();
    let mut followed = der.clone();
    followed.push(0);
    let mut indefinite = der.clone();
    indefinite[1] = 0x80;
    for (what, der) in [
        ("nothing", Vec::new()),
        ("bytes behind it", followed),
        ("half of it", der[..der.len() / 2].to_vec()),
        ("no definite length", indefinite),
        ("a number", vec![2, 1, 1]),
    ] {
        let read = Content::read(csr_fixtures::pem("CERTIFICATE REQUEST", &der).as_bytes());
        assert!(matches!(read, Err(Unreadable::Der(_))), "{what}: {read:?}");
    }
    // No byte of a request can be changed without its being seen: all of it is signed, is the signature, or is how long
    // these are.
    let right = codes(&forged(&agent()));
    assert_eq!(right, []);
    for index in 0..der.len() {
        for bit in (0..8).map(|bit| 1u8 << bit) {
            let mut other = der.clone();
            other[index] ^= bit;
            let other = object("forged", 10, &csr_fixtures::pem("CERTIFICATE REQUEST", &other));
            assert_ne!(
                codes(&other),
                [],
                "byte {index} changed by {bit:#x}: {:x?}",
                &der[index.saturating_sub(12)..(index + 12).min(der.len())]
            );
        }
    }
}

#[test]
fn the_fingerprint_is_the_keys() {
    let key = Key::new(Kind::P256);
    let one = Request::read(&forged(&agent().key(&key)));
    let two = Request::read(&forged(&Fixture::agent("c2", "a2").key(&key)));
    let other = Request::read(&forged(&agent()));
    assert_eq!(one.fingerprint(), Some(key.fingerprint()));
    assert_eq!(one.fingerprint(), two.fingerprint());
    assert_ne!(one.fingerprint(), other.fingerprint());
}

#[test]
fn a_decision_about_a_request_is_read_and_denial_wins() {
    let state = |conditions: &[&str], certificate: Option<&[u8]>| {
        let mut object = right();
        for kind in conditions {
            conclude(&mut object, kind);
        }
        object.status.get_or_insert_default().certificate = certificate.map(|bytes| ByteString(bytes.to_vec()));
        Request::read(&object).state
    };
    assert_eq!(state(&[], None), State::Pending);
    assert_eq!(state(&["Approved"], None), State::Approved);
    assert_eq!(state(&["Approved"], Some(b"")), State::Approved);
    assert_eq!(state(&["Approved"], Some(b"pem")), State::Issued);
    assert_eq!(state(&["Approved", "Failed"], None), State::Failed);
    assert_eq!(state(&["Denied"], None), State::Denied);
    assert_eq!(state(&["Approved", "Denied"], Some(b"pem")), State::Denied);
}

#[test]
fn a_label_does_not_make_a_request_an_addons() {
    let labelled = |fixture: &Fixture, addon: &str| {
        let mut object = forged(fixture);
        relabelled(ADDON_LABEL, addon)(&mut object);
        Request::read(&object).is_addons()
    };
    let with_label = |fixture: &Fixture| labelled(fixture, "x");
    let plain = |fixture: &Fixture| Request::read(&forged(fixture)).is_addons();
    assert!(plain(&Fixture::addon(CLUSTER, "x")) && with_label(&Fixture::addon(CLUSTER, "x")));
    assert!(with_label(&Fixture::empty().common_name("what an add-on's own signer knows")));
    assert!(!plain(&agent()) && !with_label(&agent()));
    let hidden = Fixture::addon(CLUSTER, "x").organization("system:open-cluster-management:c1");
    assert!(!plain(&hidden) && !with_label(&hidden));
    assert!(!plain(&Fixture::addon(CLUSTER, "x").common_name("system:open-cluster-management:c1:a1")));
    // A cluster may be called `cluster`.
    assert!(!plain(&Fixture::agent("cluster", "a1")));
    // Names of its own on the hub are one add-on's and nobody else's.
    let own = || {
        let name = "open-cluster-management:cluster-proxy";
        Fixture::empty().organization(name).common_name(&format!("{name}:addon-agent"))
    };
    assert!(labelled(&own(), "cluster-proxy") && !labelled(&own(), "x") && !plain(&own()));
    assert!(!labelled(&own().organization("platform-admins"), "cluster-proxy"));
}

#[test]
fn only_an_agents_request_for_its_own_name_is_a_renewal() {
    let renewal = |user: &str, fixture: &Fixture| {
        let mut object = forged(fixture);
        ask_as(&mut object, user, &["system:open-cluster-management:c1"], Some("X509SHA256=2df7"));
        Request::read(&object).is_renewal(CLUSTER)
    };
    assert!(renewal("system:open-cluster-management:c1:a1", &agent()));
    assert!(!renewal("system:open-cluster-management:c1:a2", &agent()));
    assert!(!renewal("system:open-cluster-management:c2:a1", &agent()));
    assert!(!renewal("system:open-cluster-management:c10:a1", &agent()));
    assert!(!renewal("system:open-cluster-management:c2:a1", &Fixture::agent("c2", "a1")));
    assert!(!renewal("eva", &agent()));
}

fn recorded(name: &str) -> CertificateSigningRequest {
    let path = format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "the recordings are files; the rules themselves read none")]
    let text = std::fs::read_to_string(&path).expect("a recording");
    let review: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let review = review.get("request").unwrap_or(&review).clone();
    let object = if review["object"].is_null() { &review["oldObject"] } else { &review["object"] };
    serde_json::from_value(object.clone()).expect("a request")
}

#[test]
fn requests_of_real_agents_and_attackers_are_told_apart() {
    let judge = |name: &str| {
        let request = Request::read(&recorded(name));
        let cluster = request.cluster_label.clone().unwrap_or_default();
        let codes: Vec<Code> =
            request.violations(&cluster, &Settings::default()).iter().map(|violation| violation.code).collect();
        (request, cluster, codes)
    };
    for right in [
        "csr-create-by-bootstrap",
        "csr-create-by-bootstrap-token",
        "csr-create-by-grpc-server",
        "csr-approval-by-admin",
        "csr-approval-by-registration-controller",
        "csr-status-signed-by-kube-controller-manager",
        // Right by itself: that the name is taken only the hub can tell.
        "csr-create-takeover-by-bootstrap",
    ] {
        assert_eq!(judge(right).2, [], "{right}");
    }
    assert_eq!(judge("csr-create-two-common-names").2, [Code::CommonNames]);
    assert_eq!(judge("csr-create-weak-rsa").2, [Code::WeakKey]);
    assert_eq!(judge("csr-create-foreign-cluster-by-agent").2, [Code::OtherAgent]);
    assert_eq!(
        judge("csr-approval-denied-by-admin").2,
        [Code::CommonName, Code::ForeignOrganization, Code::MissingOrganization]
    );
    assert_eq!(judge("csr-delete-by-admin").2, [Code::CommonName]);
    assert_eq!(judge("csr-status-signed-by-registration-controller-grpc").2, [Code::GrpcClaim, Code::Signer]);
    let (renewal, cluster, codes) = judge("csr-create-renewal-by-agent");
    assert!(renewal.is_renewal(&cluster) && codes == [Code::Requester]);
    for addon in ["csr-create-addon-by-own-agent", "csr-approval-by-addon-manager"] {
        assert!(judge(addon).0.is_addons(), "{addon}");
    }
    let before = judge("csr-create-by-bootstrap-before-mutation");
    assert_eq!(before.2, [Code::Requester], "nobody has written the requester yet");
}

#[test]
fn every_strong_digest_goes_with_every_curve() {
    // Made by OpenSSL: openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-521 -sha256 …
    for (what, pem) in [
        ("P-256 with SHA-384", include_str!("requests/P-256-sha384.pem")),
        ("P-256 with SHA-512", include_str!("requests/P-256-sha512.pem")),
        ("P-384 with SHA-512", include_str!("requests/P-384-sha512.pem")),
        ("P-521 with SHA-256", include_str!("requests/P-521-sha256.pem")),
        ("P-521 with SHA-384", include_str!("requests/P-521-sha384.pem")),
    ] {
        assert_eq!(codes(&object("right", 10, pem)), [], "{what}");
        // The last byte of the signature.
        let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        let mut der = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, body).expect("base64");
        *der.last_mut().expect("bytes") ^= 1;
        let forged = csr_fixtures::pem("CERTIFICATE REQUEST", &der);
        assert_eq!(codes(&object("forged", 10, &forged)), [Code::Signature], "{what}");
    }
}
