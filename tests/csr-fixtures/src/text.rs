//! The texts of names.

use der::Tag;
use der::asn1::Any;

/// The string types of ASN.1 that a name may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// UTF8String.
    Utf8,
    /// PrintableString; what it holds is not checked.
    Printable,
    /// IA5String.
    Ia5,
    /// TeletexString, also called T61String.
    Teletex,
    /// BMPString: two bytes per character.
    Bmp,
}

impl Text {
    pub(crate) fn value(self, text: &str) -> Any {
        let (tag, bytes) = match self {
            Self::Utf8 => (Tag::Utf8String, text.as_bytes().to_vec()),
            Self::Printable => (Tag::PrintableString, text.as_bytes().to_vec()),
            Self::Ia5 => (Tag::Ia5String, text.as_bytes().to_vec()),
            Self::Teletex => (Tag::TeletexString, text.as_bytes().to_vec()),
            Self::Bmp => (Tag::BmpString, text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        };
        Any::new(tag, bytes).unwrap()
    }
}
