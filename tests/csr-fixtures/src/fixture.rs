//! A request in the making.

use der::asn1::{Any, BitString, Ia5String, ObjectIdentifier, OctetString, SetOfVec};
use der::{Decode as _, Encode as _};
use x509_cert::attr::{Attribute, AttributeTypeAndValue};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::{Name, RdnSequence, RelativeDistinguishedName};
use x509_cert::request::{CertReq, CertReqInfo, Version};

use crate::key::{Hash, Key, Kind};
use crate::oid;
use crate::pem::pem;
use crate::text::Text;

/// Start of the names of agents and groups.
const PREFIX: &str = "system:open-cluster-management:";

/// A request in the making.
#[derive(Clone, Debug)]
pub struct Fixture {
    names: Vec<Vec<(ObjectIdentifier, Any)>>,
    key: Key,
    signer: Option<Key>,
    hash: Hash,
    /// What is signed instead, when the signature is to be another request's.
    signed_names: Option<Vec<Vec<(ObjectIdentifier, Any)>>>,
    alternatives: Option<Vec<GeneralName>>,
    extensions: Option<Vec<Extension>>,
    attributes: Vec<Attribute>,
}

impl Fixture {
    /// A request for nothing, with a new P-256 key.
    pub fn empty() -> Self {
        Self {
            names: Vec::new(),
            key: Key::new(Kind::P256),
            signer: None,
            hash: Hash::Usual,
            signed_names: None,
            alternatives: None,
            extensions: None,
            attributes: Vec::new(),
        }
    }

    /// The request of an agent, byte for byte as Go lays it out: both organisations in one set, then the common name.
    pub fn agent(cluster: &str, agent: &str) -> Self {
        let groups = [format!("{PREFIX}{cluster}"), format!("{PREFIX}managed-clusters")];
        Self::empty()
            .one_set(&[(oid::ORGANIZATION, &groups[0]), (oid::ORGANIZATION, &groups[1])])
            .common_name(&format!("{PREFIX}{cluster}:{agent}"))
    }

    /// The request of an add-on's agent.
    pub fn addon(cluster: &str, addon: &str) -> Self {
        let user = format!("{PREFIX}cluster:{cluster}:addon:{addon}");
        Self::empty()
            .one_set(&[(oid::ORGANIZATION, &user), (oid::ORGANIZATION, &format!("{PREFIX}addon:{addon}"))])
            .common_name(&format!("{user}:agent:{addon}-agent"))
            .dns(&format!("{addon}.addon.open-cluster-management.io"))
    }

    /// Adds a common name.
    pub fn common_name(self, text: &str) -> Self {
        self.subject(oid::COMMON_NAME, Text::Utf8, text)
    }

    /// Adds an organisation.
    pub fn organization(self, text: &str) -> Self {
        self.subject(oid::ORGANIZATION, Text::Utf8, text)
    }

    /// Adds an attribute to the subject, as a set of its own.
    pub fn subject(mut self, kind: ObjectIdentifier, text: Text, value: &str) -> Self {
        self.names.push(vec![(kind, text.value(value))]);
        self
    }

    /// Adds several attributes to the subject as one set, a multi-valued relative distinguished name.
    pub fn one_set(mut self, attributes: &[(ObjectIdentifier, &str)]) -> Self {
        self.names.push(attributes.iter().map(|(kind, value)| (*kind, Text::Utf8.value(value))).collect());
        self
    }

    /// Removes every common name.
    pub fn without_common_names(self) -> Self {
        self.without(oid::COMMON_NAME)
    }

    /// Removes every organisation.
    pub fn without_organizations(self) -> Self {
        self.without(oid::ORGANIZATION)
    }

    fn without(mut self, kind: ObjectIdentifier) -> Self {
        for set in &mut self.names {
            set.retain(|(known, _)| *known != kind);
        }
        self.names.retain(|set| !set.is_empty());
        self
    }

    /// Takes this key.
    pub fn key(mut self, key: &Key) -> Self {
        self.key = key.clone();
        self
    }

    /// Takes a new key of this kind.
    pub fn kind(self, kind: Kind) -> Self {
        self.key(&Key::new(kind))
    }

    /// Signs with this digest.
    pub fn hash(mut self, hash: Hash) -> Self {
        self.hash = hash;
        self
    }

    /// Signs with another key than the one that is asked for.
    pub fn signed_by(mut self, key: &Key) -> Self {
        self.signer = Some(key.clone());
        self
    }

    /// From here on changes of the subject come after the signature, which no longer fits then.
    pub fn sign_now(mut self) -> Self {
        self.signed_names = Some(self.names.clone());
        self
    }

    /// Adds a DNS name to the subject's alternative names.
    pub fn dns(self, name: &str) -> Self {
        self.alternative(GeneralName::DnsName(Ia5String::new(name).unwrap()))
    }

    /// Adds an email address to the subject's alternative names.
    pub fn email(self, address: &str) -> Self {
        self.alternative(GeneralName::Rfc822Name(Ia5String::new(address).unwrap()))
    }

    /// Adds a URI to the subject's alternative names.
    pub fn uri(self, uri: &str) -> Self {
        self.alternative(GeneralName::UniformResourceIdentifier(Ia5String::new(uri).unwrap()))
    }

    /// Adds an address of IPv4 to the subject's alternative names.
    pub fn ip(self, address: [u8; 4]) -> Self {
        self.alternative(GeneralName::IpAddress(OctetString::new(address.as_slice()).unwrap()))
    }

    fn alternative(mut self, name: GeneralName) -> Self {
        self.alternatives.get_or_insert_default().push(name);
        self
    }

    /// Asks for the extension of alternative names without any name in it.
    pub fn no_alternatives(mut self) -> Self {
        self.alternatives = Some(Vec::new());
        self
    }

    /// Asks for an extension; `value` is its content.
    pub fn extension(mut self, id: ObjectIdentifier, value: &[u8]) -> Self {
        let extn_value = OctetString::new(value).unwrap();
        self.extensions.get_or_insert_default().push(Extension { extn_id: id, critical: false, extn_value });
        self
    }

    /// Asks for no extension, but in so many words.
    pub fn no_extensions(mut self) -> Self {
        self.extensions = Some(Vec::new());
        self
    }

    /// Adds a challenge password (RFC 2985).
    pub fn challenge_password(self, password: &str) -> Self {
        self.attribute(oid::CHALLENGE_PASSWORD, Text::Utf8.value(password))
    }

    /// Adds an attribute to the request itself.
    pub fn attribute(mut self, kind: ObjectIdentifier, value: Any) -> Self {
        let values = SetOfVec::try_from(vec![value]).unwrap();
        self.attributes.push(Attribute { oid: kind, values });
        self
    }

    /// The finished request as DER.
    pub fn der(&self) -> Vec<u8> {
        let signed = self.info(self.signed_names.as_ref().unwrap_or(&self.names));
        let signer = self.signer.as_ref().unwrap_or(&self.key);
        let (algorithm, signature) = signer.sign(self.hash, &signed.to_der().unwrap());
        let signature = BitString::from_bytes(&signature).unwrap();
        CertReq { info: self.info(&self.names), algorithm, signature }.to_der().unwrap()
    }

    /// The finished request as PEM.
    pub fn pem(&self) -> String {
        pem("CERTIFICATE REQUEST", &self.der())
    }

    fn info(&self, names: &[Vec<(ObjectIdentifier, Any)>]) -> CertReqInfo {
        let mut subject = RdnSequence::default();
        for set in names {
            let set: Vec<AttributeTypeAndValue> =
                set.iter().map(|(oid, value)| AttributeTypeAndValue { oid: *oid, value: value.clone() }).collect();
            subject.push(RelativeDistinguishedName::try_from(set).unwrap());
        }
        let mut extensions = self.extensions.clone();
        if let Some(names) = &self.alternatives {
            let extn_value = OctetString::new(SubjectAltName(names.clone()).to_der().unwrap()).unwrap();
            let extension = Extension { extn_id: oid::SUBJECT_ALT_NAME, critical: false, extn_value };
            extensions.get_or_insert_default().push(extension);
        }
        let mut attributes = self.attributes.clone();
        if let Some(extensions) = extensions {
            let value = Any::from_der(&extensions.to_der().unwrap()).unwrap();
            let values = SetOfVec::try_from(vec![value]).unwrap();
            attributes.push(Attribute { oid: oid::EXTENSION_REQUEST, values });
        }
        CertReqInfo {
            version: Version::V1,
            subject: Name::hazmat_from_rdn_sequence(subject),
            public_key: self.key.spki(),
            attributes: SetOfVec::try_from(attributes).unwrap(),
        }
    }
}
