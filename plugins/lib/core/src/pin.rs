//! Pins: the SHA-256 of a certificate authority's key, short enough to travel on a command line, and certificates in
//! the two forms in which they travel themselves.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::prelude::FromDer;

/// What a pin looks like.
const FORM: &str = "sha256: and 64 hex digits";

/// SHA-256 over a certificate's `SubjectPublicKeyInfo`, as kubeadm computes it.
///
/// It stays the same when an authority renews its certificate with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin([u8; 32]);

/// Why a text is no pin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a CA pin: that is {FORM}")]
pub struct NotAPin {
    text: String,
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

impl Pin {
    /// The pin of a certificate in DER; none if that is no certificate.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(certificate).ok()?;
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate.public_key().raw);
        digest.as_ref().try_into().ok().map(Self)
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Pin {
    type Err = NotAPin;

    fn from_str(text: &str) -> Result<Self, NotAPin> {
        let wrong = || NotAPin { text: text.to_owned() };
        let hex = text.trim().strip_prefix("sha256:").ok_or_else(wrong)?;
        if hex.len() != 64 || !hex.is_ascii() {
            return Err(wrong());
        }
        let mut pin = [0; 32];
        for (byte, digits) in pin.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(pin))
    }
}

/// The certificates of a PEM file, in DER and in their order. Other blocks, such as keys, are passed over.
///
/// # Errors
/// When there is no certificate, or one that cannot be read.
pub fn from_pem(pem: &[u8]) -> Result<Vec<Vec<u8>>, NotCertificates> {
    let mut certificates = Vec::new();
    for (index, block) in x509_parser::pem::Pem::iter_from_buffer(pem).enumerate() {
        let block = block.map_err(|_| NotCertificates::Broken(index + 1))?;
        if block.label == "CERTIFICATE" {
            Pin::of(&block.contents).ok_or(NotCertificates::Broken(index + 1))?;
            certificates.push(block.contents);
        }
    }
    if certificates.is_empty() { Err(NotCertificates::None) } else { Ok(certificates) }
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

/// Until when a certificate in DER is good.
pub fn not_after(certificate: &[u8]) -> Option<jiff::Timestamp> {
    let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(certificate).ok()?;
    jiff::Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

/// One certificate as the word of a command line: base64 of its DER.
pub fn to_word(certificate: &[u8]) -> String {
    STANDARD.encode(certificate)
}

/// Reads the word of a command line: base64 of one certificate in DER, or of a whole PEM file, which is what
/// kubeconfigs hold.
///
/// # Errors
/// When it is neither.
pub fn from_word(word: &str) -> Result<Vec<Vec<u8>>, NotCertificates> {
    let bytes = STANDARD.decode(word.trim()).map_err(|_| NotCertificates::Base64)?;
    if Pin::of(&bytes).is_some() { Ok(vec![bytes]) } else { from_pem(&bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate() -> Vec<u8> {
        rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap().cert.der().to_vec()
    }

    #[test]
    fn pins_are_written_as_they_are_read() {
        let pin = Pin::of(&certificate()).unwrap();
        assert_eq!(pin.to_string().parse(), Ok(pin));
        assert_eq!(pin.to_string().len(), 71);
        for wrong in ["", "sha256:", "sha256:zz", "md5:00", &pin.to_string()[1..], &pin.to_string()[..70]] {
            assert!(wrong.parse::<Pin>().is_err(), "{wrong}");
        }
        assert_eq!(pin.to_string().to_uppercase().replace("SHA256", "sha256").parse(), Ok(pin));
    }

    #[test]
    fn the_pin_is_that_of_the_key() {
        let key = rcgen::KeyPair::generate().unwrap();
        let make = |name: &str| {
            rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().der().to_vec()
        };
        let (old, renewed) = (make("a"), make("b"));
        assert_ne!(old, renewed);
        assert_eq!(Pin::of(&old), Pin::of(&renewed));
        assert_ne!(Pin::of(&old), Pin::of(&certificate()));
        assert_eq!(Pin::of(b"no certificate"), None);
    }

    #[test]
    fn certificates_come_through_pem_and_words() {
        let (a, b) = (certificate(), certificate());
        let pem = to_pem(&[a.clone(), b.clone()]);
        assert_eq!(from_pem(pem.as_bytes()), Ok(vec![a.clone(), b.clone()]));
        assert_eq!(from_word(&to_word(&a)), Ok(vec![a.clone()]));
        assert_eq!(from_word(&STANDARD.encode(&pem)), Ok(vec![a, b]));
        assert_eq!(from_pem(b"hello"), Err(NotCertificates::None));
        assert_eq!(from_word("%%%"), Err(NotCertificates::Base64));
        let broken = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        assert_eq!(from_pem(broken.as_bytes()), Err(NotCertificates::Broken(1)));
    }
}
