//! The certificates of a cluster: one authority of its own, valid for a month.

use std::fs;
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::error::{Error, Trying as _};

/// A certificate with its private key, as PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The authority of a cluster.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

fn failed(error: rcgen::Error) -> Error {
    Error::host(format!("making a certificate failed: {error}"))
}

/// Backdated by a minute, because the clocks of a container and of its host may differ by a little.
fn validity(params: &mut CertificateParams) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::minutes(1);
    params.not_after = now + Duration::days(30);
}

fn authority_params(cluster: &str) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("{cluster}-ca"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    validity(&mut params);
    Ok(params)
}

impl Authority {
    /// Makes a new authority and writes `ca.crt` and `ca.key`.
    pub(crate) fn create(cluster: &str, dir: &Path) -> Result<Self, Error> {
        let key = KeyPair::generate().map_err(failed)?;
        let params = authority_params(cluster)?;
        let certificate = params.self_signed(&key).map_err(failed)?.pem();
        write(&dir.join("ca.crt"), &certificate, false)?;
        write(&dir.join("ca.key"), &key.serialize_pem(), true)?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The authority that `create` left in a directory.
    pub(crate) fn open(cluster: &str, dir: &Path) -> Result<Self, Error> {
        let read = |name: &str| {
            let file = dir.join(name);
            fs::read_to_string(&file).trying(|| format!("reading {}", file.display()))
        };
        let key = KeyPair::from_pem(&read("ca.key")?).map_err(failed)?;
        Ok(Self { certificate: read("ca.crt")?, issuer: Issuer::new(authority_params(cluster)?, key) })
    }

    /// Signs a certificate for a server, a client, or both.
    pub(crate) fn sign(&self, user: &str, groups: &[&str], names: &[&str], ips: &[IpAddr]) -> Result<Pair, Error> {
        let mut params =
            CertificateParams::new(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()).map_err(failed)?;
        params.subject_alt_names.extend(ips.iter().map(|ip| SanType::IpAddress(*ip)));
        validity(&mut params);
        self.issue(params, user, groups)
    }

    /// Signs a certificate for a client that begins and ends so many days from now.
    pub(crate) fn sign_for(&self, days: &Range<i64>, user: &str, groups: &[&str]) -> Result<Pair, Error> {
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        let now = OffsetDateTime::now_utc();
        (params.not_before, params.not_after) = (now + Duration::days(days.start), now + Duration::days(days.end));
        self.issue(params, user, groups)
    }

    fn issue(&self, mut params: CertificateParams, user: &str, groups: &[&str]) -> Result<Pair, Error> {
        params.distinguished_name = DistinguishedName::new();
        // The library keeps one value for each type of name, but lets us name the type of an organisation, which is
        // how Kubernetes spells a group, in a second way.
        let kinds = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
        if groups.len() > kinds.len() {
            return Err(Error::host(format!(
                "a certificate of {user} can carry two groups, not {}; bind the rights of the test to fewer groups",
                groups.len()
            )));
        }
        for (kind, group) in kinds.into_iter().zip(groups) {
            params.distinguished_name.push(kind, *group);
        }
        params.distinguished_name.push(DnType::CommonName, user);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

impl Pair {
    /// Writes `NAME.crt` and `NAME.key`.
    pub(crate) fn write(&self, dir: &Path, name: &str) -> Result<(), Error> {
        write(&dir.join(format!("{name}.crt")), &self.certificate, false)?;
        write(&dir.join(format!("{name}.key")), &self.key, true)
    }

    /// A kubeconfig with one context, named as the cluster.
    pub(crate) fn kubeconfig(&self, cluster: &str, user: &str, server: &str, ca: &str) -> String {
        let encode = |text: &str| STANDARD.encode(text);
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {cluster}\nclusters:\n- name: {cluster}\n  cluster:\n    \
             server: {server}\n    certificate-authority-data: {ca}\nusers:\n- name: {user}\n  user:\n    \
             client-certificate-data: {certificate}\n    client-key-data: {key}\ncontexts:\n- name: {cluster}\n  \
             context:\n    cluster: {cluster}\n    user: {user}\n",
            user = quoted(user),
            cluster = quoted(cluster),
            ca = encode(ca),
            certificate = encode(&self.certificate),
            key = encode(&self.key),
        )
    }
}

/// Makes the key pair that signs the tokens of service accounts.
pub(crate) fn service_account_keys(dir: &Path) -> Result<(), Error> {
    let key = KeyPair::generate().map_err(failed)?;
    write(&dir.join("sa.pub"), &key.public_key_pem(), false)?;
    write(&dir.join("sa.key"), &key.serialize_pem(), true)
}

/// Writes a file that only its owner may read when it is secret.
pub(crate) fn write(file: &Path, text: &str, secret: bool) -> Result<(), Error> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mode = if secret { 0o600 } else { 0o644 };
    fs::File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(mode)
        .open(file)
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .trying(|| format!("writing {}", file.display()))
}
