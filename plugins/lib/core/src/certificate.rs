//! X.509 certificates: what one says, as facts, and the two forms in which they travel.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry as oid;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;
use x509_parser::x509::AttributeTypeAndValue;

use crate::key::Key;
use crate::pin::Pin;

/// What a certificate says. Whether any of it is true is for whoever verifies its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Who it is of, as a distinguished name.
    pub subject: String,
    /// Who signed it, as a distinguished name.
    pub issuer: String,
    /// The DNS names and IP addresses that it is valid for, and other alternative names with their kind.
    pub names: Vec<String>,
    /// Since when it is valid.
    pub not_before: Timestamp,
    /// Until when it is valid.
    pub not_after: Timestamp,
    /// Whether it may sign other certificates.
    pub is_ca: bool,
    /// Algorithm and strength of its key.
    pub key: Key,
    /// Its key.
    pub pin: Pin,
    /// Its serial number as hex digits.
    pub serial: String,
    /// The common names of its subject.
    pub common_names: Vec<String>,
    /// The organizations of its subject.
    pub organizations: Vec<String>,
    /// What its key may be used for in TLS; none: the certificate does not say, so for everything.
    pub usage: Option<Usage>,
    /// What its key may be used for at all; none: the certificate does not say, so for everything.
    pub key_usage: Option<KeyUsage>,
    /// The algorithm of its signature.
    pub signature: SignatureAlgorithm,
}

/// What a key may be used for in TLS (the extended key usage).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// To be a server.
    pub server: bool,
    /// To be a client.
    pub client: bool,
    /// For everything, as not every verifier takes it.
    pub any: bool,
}

/// What a key may be used for (RFC 5280 section 4.2.1.3), as far as TLS asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    /// To sign handshakes.
    pub digital_signature: bool,
    /// To encipher keys, as TLS 1.2 does with RSA.
    pub key_encipherment: bool,
    /// To agree on keys.
    pub key_agreement: bool,
    /// To sign certificates.
    pub cert_sign: bool,
}

/// The algorithm of a certificate's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// One that nobody can forge.
    Strong,
    /// With MD2, MD5 or SHA-1, whose collisions can be computed; its name.
    Weak(&'static str),
}

impl Certificate {
    /// Reads a certificate in DER; none if it is something else.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = certificate.subject_alternative_name().ok().flatten();
        let constraints = certificate.basic_constraints().ok().flatten();
        let (spki, validity) = (certificate.public_key(), certificate.validity());
        Some(Self {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            names: names.iter().flat_map(|names| &names.value.general_names).map(name).collect(),
            not_before: time(&validity.not_before),
            not_after: time(&validity.not_after),
            is_ca: constraints.is_some_and(|constraints| constraints.value.ca),
            key: Key::of(spki),
            pin: Pin::of_key(spki.raw),
            serial: certificate.tbs_certificate.raw_serial().iter().map(|byte| format!("{byte:02x}")).collect(),
            common_names: words(certificate.subject().iter_common_name()),
            organizations: words(certificate.subject().iter_organization()),
            usage: certificate.extended_key_usage().ok().flatten().map(|usage| Usage {
                server: usage.value.server_auth,
                client: usage.value.client_auth,
                any: usage.value.any,
            }),
            key_usage: certificate.key_usage().ok().flatten().map(|usage| KeyUsage {
                digital_signature: usage.value.digital_signature(),
                key_encipherment: usage.value.key_encipherment(),
                key_agreement: usage.value.key_agreement(),
                cert_sign: usage.value.key_cert_sign(),
            }),
            signature: signature(&certificate.signature_algorithm.algorithm),
        })
    }

    /// Whether its issuer has the name of its subject, as the certificates of root authorities have.
    pub fn is_self_issued(&self) -> bool {
        self.subject == self.issuer
    }

    /// Whether it is valid at that time.
    pub fn is_valid(&self, at: Timestamp) -> bool {
        self.not_before <= at && at <= self.not_after
    }
}

impl Pin {
    /// The pin of a certificate in DER; none if that is no certificate.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        Certificate::read(certificate).map(|certificate| certificate.pin)
    }
}

/// The attributes of a name that are text.
fn words<'a>(attributes: impl Iterator<Item = &'a AttributeTypeAndValue<'a>>) -> Vec<String> {
    attributes.filter_map(|attribute| attribute.as_str().ok()).map(str::to_owned).collect()
}

fn signature(algorithm: &oid::Oid<'_>) -> SignatureAlgorithm {
    let weak = [
        (oid::OID_PKCS1_MD2WITHRSAENC, "MD2"),
        (oid::OID_PKCS1_MD5WITHRSAENC, "MD5"),
        (oid::OID_PKCS1_SHA1WITHRSA, "SHA-1"),
        (oid::OID_SHA1_WITH_RSA, "SHA-1"),
        (x509_parser::der_parser::oid!(1.2.840.10045.4.1), "SHA-1"),
    ];
    let found = weak.into_iter().find(|(known, _)| known == algorithm);
    found.map_or(SignatureAlgorithm::Strong, |(_, name)| SignatureAlgorithm::Weak(name))
}

fn name(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(|bytes| Ipv4Addr::from(bytes).to_string());
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(|bytes| Ipv6Addr::from(bytes).to_string()));
            address.unwrap_or_else(|_| name.to_string())
        }
        other => other.to_string(),
    }
}

/// Certificates without an end say the end of the year 9999 (RFC 5280 section 4.1.2.5), which is later than the latest
/// time that can be told.
fn time(time: &ASN1Time) -> Timestamp {
    Timestamp::from_second(time.timestamp()).unwrap_or(if time.timestamp() < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

/// Whether the key of the second certificate has signed the first one; both in DER.
pub fn is_signed_by(certificate: &[u8], issuer: &[u8]) -> bool {
    let (Ok((_, certificate)), Ok((_, issuer))) =
        (X509Certificate::from_der(certificate), X509Certificate::from_der(issuer))
    else {
        return false;
    };
    certificate.issuer() == issuer.subject() && certificate.verify_signature(Some(issuer.public_key())).is_ok()
}

/// Why something does not hold certificates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCertificates {
    /// No PEM block `CERTIFICATE` at all.
    #[error("it holds no PEM block CERTIFICATE")]
    None,
    /// A block that is broken, or holds no certificate.
    #[error("certificate {0} in it is broken")]
    Broken(usize),
    /// Not base64.
    #[error("it is not base64 of a certificate")]
    Base64,
}

/// The certificates of a PEM file, in DER and in their order. Other blocks, such as keys, are passed over.
///
/// # Errors
/// When there is no certificate, or one that cannot be read.
pub fn from_pem(pem: &[u8]) -> Result<Vec<Vec<u8>>, NotCertificates> {
    let mut certificates = Vec::new();
    for (index, block) in Pem::iter_from_buffer(pem).enumerate() {
        let block = block.map_err(|_| NotCertificates::Broken(index + 1))?;
        if block.label == "CERTIFICATE" {
            Certificate::read(&block.contents).ok_or(NotCertificates::Broken(index + 1))?;
            certificates.push(block.contents);
        }
    }
    if certificates.is_empty() { Err(NotCertificates::None) } else { Ok(certificates) }
}

/// The certificates of a PEM file that can be read, in DER and in their order, and how many blocks
/// cannot: programs in Go pass those over.
pub fn readable(pem: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let (mut certificates, mut unreadable) = (Vec::new(), 0);
    for block in Pem::iter_from_buffer(pem) {
        match block {
            Ok(block) if block.label != "CERTIFICATE" => {}
            Ok(block) if Certificate::read(&block.contents).is_some() => certificates.push(block.contents),
            Ok(_) | Err(_) => unreadable += 1,
        }
    }
    (certificates, unreadable)
}

/// Whether two lists hold the same certificates, in whichever order.
pub(crate) fn are_same(one: &[Vec<u8>], other: &[Vec<u8>]) -> bool {
    let within = |some: &[Vec<u8>], all: &[Vec<u8>]| some.iter().all(|certificate| all.contains(certificate));
    within(one, other) && within(other, one)
}

/// Certificates as a PEM file.
pub fn to_pem(certificates: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text += "-----BEGIN CERTIFICATE-----\n";
        for line in STANDARD.encode(certificate).as_bytes().chunks(64) {
            text.extend(line.iter().copied().map(char::from));
            text.push('\n');
        }
        text += "-----END CERTIFICATE-----\n";
    }
    text
}

/// Reads base64 of one certificate in DER, or of a whole PEM file, which is what kubeconfigs hold; in lines, too, as `base64`
/// writes it.
///
/// # Errors
/// When it is neither.
pub fn from_base64(text: &str) -> Result<Vec<Vec<u8>>, NotCertificates> {
    let text: String = text.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(text).map_err(|_| NotCertificates::Base64)?;
    if Certificate::read(&bytes).is_some() { Ok(vec![bytes]) } else { from_pem(&bytes) }
}

/// One certificate as an argument of a command: base64 of its DER.
pub fn to_base64(certificate: &[u8]) -> String {
    STANDARD.encode(certificate)
}

/// Certificates as kubeconfigs hold them: base64 of a PEM file.
pub fn to_pem_base64(certificates: &[Vec<u8>]) -> String {
    STANDARD.encode(to_pem(certificates))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
        date_time_ymd,
    };

    use super::*;

    fn certificate() -> Vec<u8> {
        rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap().cert.der().to_vec()
    }

    #[test]
    fn what_a_certificate_says_is_read() {
        let mut params = CertificateParams::new(vec!["hub.example".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::from([10, 0, 0, 1])));
        params.subject_alt_names.push(SanType::IpAddress("fd00::1".parse().unwrap()));
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "hub");
        params.distinguished_name.push(DnType::CommonName, "api");
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        let key = KeyPair::generate().unwrap();
        let read = |params: CertificateParams| {
            let der = params.self_signed(&key).unwrap().der().to_vec();
            (Certificate::read(&der).unwrap(), der)
        };
        let (leaf, der) = read(params.clone());
        assert_eq!((leaf.subject.as_str(), leaf.issuer.as_str()), ("O=hub, CN=api", "O=hub, CN=api"));
        assert_eq!(leaf.names, ["hub.example", "10.0.0.1", "fd00::1"]);
        assert_eq!((leaf.is_ca, &leaf.key, Some(leaf.pin)), (false, &Key::P256, Pin::of(&der)));
        for (time, is_valid) in [
            ("2025-12-31T23:59:59Z", false),
            ("2026-01-01T00:00:00Z", true),
            ("2027-01-01T00:00:00Z", true),
            ("2027-01-01T00:00:01Z", false),
        ] {
            assert_eq!(leaf.is_valid(time.parse().unwrap()), is_valid, "{time}");
        }
        assert_eq!((leaf.common_names, leaf.organizations), (vec!["api".to_owned()], vec!["hub".to_owned()]));
        assert_eq!((leaf.usage, leaf.key_usage, leaf.signature), (None, None, SignatureAlgorithm::Strong));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.subject_alt_names.clear();
        params.serial_number = Some(vec![0x0a, 0xbc].into());
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (authority, _) = read(params);
        assert!(authority.is_ca && authority.names.is_empty() && authority.is_self_issued());
        assert_eq!(authority.serial, "0abc");
        assert_eq!(authority.usage, Some(Usage { server: false, client: true, any: false }));
        let signs =
            KeyUsage { digital_signature: false, key_encipherment: false, key_agreement: false, cert_sign: true };
        assert_eq!(authority.key_usage, Some(signs));
        assert_eq!(Certificate::read(b"no certificate"), None);
    }

    #[test]
    fn a_certificate_without_an_end_is_valid() {
        let mut params = CertificateParams::new(vec!["hub".to_owned()]).unwrap();
        params.not_after = date_time_ymd(9999, 12, 31) + std::time::Duration::from_secs(86_399);
        let endless = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(Certificate::read(endless.der()).unwrap().not_after, Timestamp::MAX);
    }

    #[test]
    fn certificates_come_through_pem_and_base64() {
        let (a, b) = (certificate(), certificate());
        let pem = to_pem(&[a.clone(), b.clone()]);
        assert_eq!(from_pem(pem.as_bytes()), Ok(vec![a.clone(), b.clone()]));
        assert_eq!(from_base64(&to_base64(&a)), Ok(vec![a.clone()]));
        assert_eq!(from_base64(&to_pem_base64(&[a.clone(), b.clone()])), Ok(vec![a.clone(), b]));
        assert_eq!(from_pem(b"hello"), Err(NotCertificates::None));
        let lines = to_base64(&a).as_bytes().chunks(76).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
        assert_eq!(from_base64(&format!("{lines}\n")), Ok(vec![a.clone()]));
        assert_eq!(from_base64("%%%"), Err(NotCertificates::Base64));
        let broken = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        assert_eq!(from_pem(broken.as_bytes()), Err(NotCertificates::Broken(1)));
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_and_counted() {
        let (a, b) = (certificate(), certificate());
        let broken = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        let cut = "-----BEGIN CERTIFICATE-----\naGVs";
        let key = "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n";
        let (first, second) = (to_pem(std::slice::from_ref(&a)), to_pem(std::slice::from_ref(&b)));
        assert_eq!(readable(format!("{first}{broken}{key}{second}{cut}").as_bytes()), (vec![a, b], 2));
        assert_eq!((readable(b"hello"), readable(b"")), ((vec![], 0), (vec![], 0)));
    }

    #[test]
    fn the_pin_is_that_of_the_key() {
        let key = KeyPair::generate().unwrap();
        let make = |name: &str| {
            CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().der().to_vec()
        };
        let (old, renewed) = (make("a"), make("b"));
        assert_ne!(old, renewed);
        assert_eq!(Pin::of(&old), Pin::of(&renewed));
        assert_ne!(Pin::of(&old), Pin::of(&certificate()));
        assert_eq!(Pin::of(b"no certificate"), None);
    }
}
