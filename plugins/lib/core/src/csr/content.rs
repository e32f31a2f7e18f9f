//! What a certificate request asks for: a PKCS #10 request (RFC 2986), read once and in one way.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ocm_api::member::Member;
use ocm_rules::csr::{self as rules, Signature};
use serde::Serialize;
use x509_parser::asn1_rs::Tag;
use x509_parser::certification_request::{X509CertificationRequest, X509CertificationRequestInfo};
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::ParsedExtension;
use x509_parser::oid_registry as oid;
use x509_parser::prelude::FromDer;

use super::der;
use super::signature::signature;
use crate::key::Key;
use crate::pin::Pin;

/// Longer requests are not read: the largest keys and names that an agent has take a tenth of it, and whoever may
/// register clusters may create any number of them.
pub const LONGEST: usize = 16 << 10;

/// What a request asks for: everything that its own signature covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
pub struct Content {
    /// Every common name of the subject.
    pub common_names: Vec<String>,
    /// Every organisation of the subject: the holder's groups.
    pub organizations: Vec<String>,
    /// Dotted names of the subject's other attributes.
    pub other_attributes: Vec<String>,
    /// Subject alternative names.
    pub alternative_names: Vec<String>,
    /// Other extensions and attributes that were asked for.
    pub extensions: Vec<String>,
    /// The key.
    pub key: Key,
    /// SHA-256 over the key's `SubjectPublicKeyInfo`, lower-case hex: the request's fingerprint.
    pub spki_sha256: String,
    /// Whether the request is signed with its own key, by an algorithm that can be trusted.
    #[serde(with = "SignatureText")]
    pub signature: Signature,
}

/// How [`Signature`] is written down: the crate of the rules has no dependencies.
#[derive(Serialize, Member)]
#[serde(remote = "Signature")]
enum SignatureText {
    Valid,
    Invalid,
    Unverifiable,
}

impl From<SignatureText> for Signature {
    fn from(text: SignatureText) -> Self {
        match text {
            SignatureText::Valid => Self::Valid,
            SignatureText::Invalid => Self::Invalid,
            SignatureText::Unverifiable => Self::Unverifiable,
        }
    }
}

/// Whose a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
pub struct Names {
    /// Every common name of the subject.
    pub common_names: Vec<String>,
    /// Every organisation of the subject.
    pub organizations: Vec<String>,
}

/// Why the content of a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
pub enum Unreadable {
    /// Longer than [`LONGEST`].
    TooLong,
    /// Not exactly one PEM block of the right kind; with the names in the block that the API server reads.
    Pem(Names),
    /// Not a PKCS #10 request; the whole sentence.
    Der(String),
    /// A name that is no plain text.
    Text,
}

impl Unreadable {
    fn der(why: impl fmt::Display) -> Self {
        Self::Der(format!("it is not a PKCS #10 request: {why}"))
    }

    /// The reason as a sentence.
    pub fn as_str(&self) -> &str {
        match self {
            Self::TooLong => "it is longer than 16 KiB",
            Self::Pem(_) => "it is not exactly one PEM block CERTIFICATE REQUEST",
            Self::Der(sentence) => sentence,
            Self::Text => "its subject holds a value that is neither UTF-8 nor a printable string",
        }
    }

    /// What is known all the same, as facts for the rules.
    pub(super) fn facts(&self) -> rules::Unreadable<'_, String> {
        let nothing = rules::Unreadable::of(self.as_str());
        match self {
            Self::Pem(Names { common_names, organizations }) => {
                rules::Unreadable { common_names, organizations, ..nothing }
            }
            _ => nothing,
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Unreadable {}

impl Content {
    /// Reads a PEM-encoded PKCS #10 request (RFC 2986), as `spec.request` holds it.
    ///
    /// # Errors
    /// Says what kept it from being read.
    pub fn read(pem: &[u8]) -> Result<Self, Unreadable> {
        if pem.len() > LONGEST {
            return Err(Unreadable::TooLong);
        }
        let der = only_pem_block(pem).ok_or_else(|| Unreadable::Pem(Names::in_first_pem_block(pem)))?;
        let request = request(&der)?;
        let info = &request.certification_request_info;
        let (Names { common_names, organizations }, other_attributes) = subject(info)?;
        let mut content = Self {
            common_names,
            organizations,
            other_attributes,
            alternative_names: Vec::new(),
            extensions: Vec::new(),
            key: Key::of(&info.subject_pki),
            spki_sha256: Pin::of_key(info.subject_pki.raw).hex(),
            signature: Signature::Unverifiable,
        };
        for attribute in info.iter_attributes() {
            match attribute.parsed_attribute() {
                ParsedCriAttribute::ExtensionRequest(requested) => {
                    // What asks for nothing is nothing that an agent sends, and readers differ about a second value.
                    if requested.extensions.is_empty() {
                        content.extensions.push(attribute.oid.to_id_string());
                    }
                    for extension in &requested.extensions {
                        match extension.parsed_extension() {
                            ParsedExtension::SubjectAlternativeName(names) => content
                                .alternative_names
                                .extend(names.general_names.iter().map(|name| format!("{name}"))),
                            _ => content.extensions.push(extension.oid.to_id_string()),
                        }
                        // An empty list of names, or one that cannot be read, is still an extension that was asked for.
                        if extension.oid == oid::OID_X509_EXT_SUBJECT_ALT_NAME && content.alternative_names.is_empty() {
                            content.alternative_names.push("unreadable".to_owned());
                        }
                    }
                }
                _ => content.extensions.push(attribute.oid.to_id_string()),
            }
        }
        content.signature = signature(&request, &content.key);
        Ok(content)
    }

    /// The facts that the rules judge.
    pub(super) fn facts(&self) -> rules::Content<'_, String> {
        rules::Content {
            common_names: &self.common_names,
            organizations: &self.organizations,
            other_attributes: &self.other_attributes,
            alternative_names: &self.alternative_names,
            extensions: &self.extensions,
            key: self.key.facts(),
            signature: self.signature,
        }
    }
}

impl Names {
    /// Those that the API server reads where there is more than one block, or something around it; none where nobody can tell
    /// what it reads.
    fn in_first_pem_block(pem: &[u8]) -> Self {
        let der = first_pem_block(pem).unwrap_or_default();
        let names = request(&der).and_then(|request| subject(&request.certification_request_info));
        names.map(|(names, _)| names).unwrap_or_default()
    }
}

/// A request in its one encoding, with nothing behind it.
fn request(der: &[u8]) -> Result<X509CertificationRequest<'_>, Unreadable> {
    if !der::is_request(der) {
        return Err(Unreadable::der("it is not laid out and encoded as one"));
    }
    let (rest, request) = X509CertificationRequest::from_der(der).map_err(Unreadable::der)?;
    if rest.is_empty() { Ok(request) } else { Err(Unreadable::der("something follows it")) }
}

/// The names of the subject, and the dotted names of its other attributes.
fn subject(info: &X509CertificationRequestInfo<'_>) -> Result<(Names, Vec<String>), Unreadable> {
    let (mut names, mut others) = (Names::default(), Vec::new());
    for attribute in info.subject.iter_attributes() {
        let kind = attribute.attr_type();
        if *kind == oid::OID_X509_COMMON_NAME || *kind == oid::OID_X509_ORGANIZATION_NAME {
            // Readers differ about the others.
            if !matches!(attribute.attr_value().tag(), Tag::Utf8String | Tag::PrintableString) {
                return Err(Unreadable::Text);
            }
            let value = attribute.as_str().map_err(|_| Unreadable::Text)?.to_owned();
            match *kind == oid::OID_X509_COMMON_NAME {
                true => names.common_names.push(value),
                false => names.organizations.push(value),
            }
        } else {
            others.push(kind.to_id_string());
        }
    }
    Ok((names, others))
}

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// The contents of exactly one PEM block `CERTIFICATE REQUEST` with nothing but blanks around it and base64 in it.
///
/// Signers take the first block that they can read, wherever it begins and whatever headers it has. With one block and
/// nothing else there is nothing to choose.
fn only_pem_block(pem: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem.trim_ascii()).ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim_ascii_end).collect();
    let [BEGIN, body @ .., END] = lines.as_slice() else { return None };
    STANDARD.decode(body.concat()).ok()
}

/// The contents of the first PEM block as the API server finds it, whatever stands before it, in its headers and behind it. The
/// API server refuses a request whose first block is of another kind.
///
/// Upstream: `pem.Decode` of Go, whose releases differ about a block with dashes before it or in it: none of those is read.
fn first_pem_block(pem: &[u8]) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = pem.split(|byte| *byte == b'\n').map(without_end_of_line).collect();
    let has_dashes = |line: &&[u8]| line.windows(5).any(|part| part == b"-----");
    let begin = lines.iter().position(has_dashes)?;
    let block = &lines[begin + 1..];
    let end = block.iter().position(has_dashes)?;
    if lines[begin] != BEGIN.as_bytes() || block[end] != END.as_bytes() {
        return None;
    }
    let body = block[..end].iter().skip_while(|line| line.contains(&b':'));
    let base64 = body.copied().flatten().copied().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    STANDARD.decode(base64.collect::<Vec<u8>>()).ok()
}

/// A line without the blanks at its end that Go leaves out.
fn without_end_of_line(line: &[u8]) -> &[u8] {
    let mut line = line.strip_suffix(b"\r").unwrap_or(line);
    while let [rest @ .., b' ' | b'\t'] = line {
        line = rest;
    }
    line
}
