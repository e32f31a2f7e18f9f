//! What the fixture makes is what it says, by another reader's judgement.

use csr_fixtures::{Fixture, Hash, Key, Kind, Text, oid, pem};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

fn read(der: &[u8]) -> X509CertificationRequest<'_> {
    X509CertificationRequest::from_der(der).expect("a request").1
}

#[test]
fn signatures_of_every_kind_of_key_are_right_unless_they_are_meant_to_be_wrong() {
    for kind in [Kind::P256, Kind::P384, Kind::Ed25519, Kind::Rsa(2048)] {
        let der = Fixture::agent("c1", "a1").kind(kind).der();
        assert!(read(&der).verify_signature().is_ok(), "{kind:?}");
    }
    let der = Fixture::agent("c1", "a1").kind(Kind::P384).hash(Hash::Sha256).der();
    assert!(read(&der).verify_signature().is_ok());
    let der = Fixture::agent("c1", "a1").signed_by(&Key::new(Kind::P256)).der();
    assert!(read(&der).verify_signature().is_err());
    let der = Fixture::agent("c1", "a1").sign_now().organization("more").der();
    assert!(read(&der).verify_signature().is_err());
}

#[test]
fn names_are_laid_out_as_asked() {
    let der = Fixture::agent("c1", "a1").subject(oid::COUNTRY, Text::Printable, "NZ").der();
    let request = read(&der);
    let subject = &request.certification_request_info.subject;
    let sizes: Vec<usize> = subject.iter_rdn().map(|set| set.iter().count()).collect();
    assert_eq!(sizes, [2, 1, 1], "{subject}");
    assert!(pem("X", b"abc").starts_with("-----BEGIN X-----\nYWJj\n-----END X-----"));
}
