//! Pins: the SHA-256 of a certificate authority's key, short enough to travel on a command line.

use std::fmt;
use std::str::FromStr;

/// What a pin looks like.
const FORM: &str = "sha256: and 64 hex digits";
/// What stands before the digits.
const PREFIX: &str = "sha256:";

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

impl Pin {
    /// The pin of a `SubjectPublicKeyInfo` in DER.
    pub fn of_key(spki: &[u8]) -> Self {
        let mut pin = [0; 32];
        pin.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, spki).as_ref());
        Self(pin)
    }

    /// The digest as lower-case hex digits.
    pub(crate) fn hex(self) -> String {
        self.to_string().split_off(PREFIX.len())
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Pin {
    type Err = NotAPin;

    fn from_str(text: &str) -> Result<Self, NotAPin> {
        let wrong = || NotAPin { text: text.to_owned() };
        let hex = text.trim().strip_prefix(PREFIX).ok_or_else(wrong)?;
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
}
