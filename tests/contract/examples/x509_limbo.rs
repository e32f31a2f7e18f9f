//! The cases of [x509-limbo](https://x509-limbo.com): what we say of each client beside its program and beside what the case
//! expects: `cargo run --package contract-tests --example x509_limbo -- limbo.json`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "who asks for the comparison sees its result")]

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use contract_tests::verifiers::{self, Asked, ask};
use jiff::Timestamp;
use ocm_checks::tls::{Client, Use};
use ocm_core::certificate::readable;
use serde::Deserialize;

/// Cases that ask for what no verifier of ours has a setting for.
const OTHERS: [&str; 2] = ["has-crl", "max-chain-depth"];

/// What both programs do.
const BOTH: &[Client] = &[Client::Go, Client::OpenSsl];
/// What Go does.
const GO: &[Client] = &[Client::Go];
/// What OpenSSL does.
const OPENSSL: &[Client] = &[Client::OpenSsl];

/// Where what we say of a client is not what its program says, and why: whom it is about, and the cases.
const EXPLAINED: &[(&str, &[Client], &[&str])] = &[
    (
        "name constraints for e-mail addresses: the library that decides for us lets nothing pass under them",
        BOTH,
        &[
            "rfc5280::nc::nc-permits-email-domain",
            "rfc5280::nc::nc-permits-email-exact",
            "rfc5280::nc::nc-permits-email-literal-asterisk-exact-match",
            "rfc5280::nc::nc-permits-email-literal-double-asterisk",
            "rfc5280::nc::nc-permits-email-literal-mid-asterisk",
        ],
    ),
    (
        "the same, and other names under constraints that cannot be read or are directory names",
        OPENSSL,
        &[
            "rfc5280::nc::nc-permits-invalid-email-san",
            "rfc5280::nc::nc-permits-invalid-dns-san",
            "rfc5280::nc::permitted-dn-match",
        ],
    ),
    (
        "critical extensions of an authority that clients do not know, or that may not be critical: we do not look at them",
        BOTH,
        &["rfc5280::aki::critical-aki", "rfc5280::ski::critical-ski", "rfc5280::unknown-critical-extension-root"],
    ),
    (
        "what Go's parser refuses, and others pass over",
        GO,
        &[
            "rfc5280::nc::nc-forbids-othername-noop",
            "rfc5280::serial::negative",
            "webpki::forbidden-p192-leaf",
            "webpki::malformed-aia",
            "webpki::nc::intermediate-permitted-excluded-subtrees-both-empty-sequences",
            "webpki::nc::intermediate-permitted-excluded-subtrees-both-null",
        ],
    ),
    (
        "what Go takes as it is: an empty extended key usage, a key usage that contradicts the basic constraints, fractions of a \
         second, more names than the library compares",
        GO,
        &[
            "pathological::nc-dos-1",
            "pathological::nc-dos-2",
            "rfc5280::eku::ee-eku-empty",
            "rfc5280::root-inconsistent-ca-extensions",
            "rfc5280::validity::notafter-fractional",
        ],
    ),
    (
        "OpenSSL finds the issuer by the key identifiers, too, and takes another one only if these fit",
        OPENSSL,
        &[
            "webpki::aki::root-with-aki-all-fields",
            "webpki::aki::root-with-aki-authoritycertissuer",
            "webpki::aki::root-with-aki-authoritycertserialnumber",
            "webpki::aki::root-with-aki-ski-mismatch",
        ],
    ),
    (
        "OpenSSL looks at one path only, and does not count or constrain certificates that name themselves as issuers",
        OPENSSL,
        &[
            "pathlen::self-issued-certs-pathlen",
            "rfc5280::nc::nc-forbids-alternate-chain-ica",
            "rfc5280::nc::nc-forbids-same-chain-ica",
            "rfc5280::nc::permitted-self-issued",
        ],
    ),
    (
        "OpenSSL compares a wildcard with excluded names as text, and counts fewer names",
        OPENSSL,
        &["cve::cve-2025-61727", "pathological::nc-dos-3", "rfc5280::nc::nc-forbids-dnsname-wildcard-san"],
    ),
    (
        "OpenSSL takes version 1, DSA and no basic constraints in what it trusts",
        OPENSSL,
        &["rfc5280::root-missing-basic-constraints", "webpki::forbidden-dsa-root", "webpki::v1-cert"],
    ),
    (
        "OpenSSL refuses a weak key of a server, and the very second at which a certificate ends; we warn of the key",
        OPENSSL,
        &["rfc5280::validity::notafter-exact", "webpki::forbidden-p192-leaf", "webpki::forbidden-weak-rsa-in-leaf"],
    ),
];

#[derive(Deserialize)]
struct File {
    testcases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    features: Vec<String>,
    validation_kind: String,
    trusted_certs: Vec<String>,
    untrusted_intermediates: Vec<String>,
    peer_certificate: String,
    validation_time: Option<Timestamp>,
    expected_result: String,
    expected_peer_name: Option<Name>,
}

#[derive(Deserialize)]
struct Name {
    value: String,
}

impl Case {
    fn chain(&self) -> Vec<Vec<u8>> {
        std::iter::once(&self.peer_certificate).chain(&self.untrusted_intermediates).map(|pem| der(pem)).collect()
    }

    /// As an inventory has them: what cannot be read is passed over.
    fn roots(&self) -> Vec<Vec<u8>> {
        readable(self.trusted_certs.concat().as_bytes()).0
    }

    fn usage(&self) -> Use {
        if self.validation_kind == "CLIENT" { Use::Client } else { Use::Server }
    }
}

/// A block of PEM, whatever it holds.
fn der(pem: &str) -> Vec<u8> {
    let lines: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(lines).expect("the file holds PEM")
}

fn main() -> ExitCode {
    match env::args_os().nth(1).ok_or("which file? Give the path of limbo.json.".to_owned()).and_then(compare) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Compares all cases of a file. An error names the differences that nobody explains, or what is in the way.
fn compare(file: OsString) -> Result<(), String> {
    let read = |error: &dyn Error| format!("{} is no file of x509-limbo: {error}", file.display());
    let text = fs::read_to_string(&file).map_err(|error| read(&error))?;
    let File { mut testcases } = serde_json::from_str(&text).map_err(|error| read(&error))?;
    testcases.retain(|case| !case.features.iter().any(|feature| OTHERS.contains(&feature.as_str())));
    let certificates: Vec<[Vec<Vec<u8>>; 2]> = testcases.iter().map(|case| [case.chain(), case.roots()]).collect();
    let asked: Vec<Asked<'_>> = testcases
        .iter()
        .zip(&certificates)
        .map(|(case, [chain, roots])| Asked {
            chain,
            roots,
            dialled: case.expected_peer_name.as_ref().map_or("", |name| &name.value),
            usage: case.usage(),
            at: case.validation_time.unwrap_or_else(Timestamp::now),
        })
        .collect();
    let mut differ: BTreeMap<(Client, &str), String> = BTreeMap::new();
    let mut otherwise: BTreeMap<Client, usize> = BTreeMap::new();
    for (client, says) in [
        (Client::Rustls, None),
        (Client::Go, Some(verifiers::go(&asked).ok_or("there is no Go")?)),
        (Client::OpenSsl, Some(verifiers::openssl(&asked).ok_or("there is no OpenSSL")?)),
    ] {
        for (index, case) in testcases.iter().enumerate() {
            let ours = ask(&asked[index], client);
            *otherwise.entry(client).or_default() +=
                usize::from(ours.is_empty() != (case.expected_result == "SUCCESS"));
            let Some(says) = says.as_ref().map(|says| &says[index]) else { continue };
            if ours.is_empty() != says.is_empty() {
                differ.insert((client, &case.id), format!("we say {ours:?}, it says {says:?}"));
            }
        }
    }
    println!("{} cases; so many would each client decide otherwise than the case expects: {otherwise:?}", asked.len());
    println!("{} verdicts of programs, {} differ from ours", 2 * asked.len(), differ.len());
    let mut wrong = Vec::new();
    for (why, clients, cases) in EXPLAINED {
        for (client, case) in clients.iter().flat_map(|client| cases.iter().map(move |case| (*client, *case))) {
            if differ.remove(&(client, case)).is_none() {
                wrong.push(format!("{client:?} {case} is as we say, or is not in the file: {why}"));
            }
        }
    }
    wrong.extend(differ.iter().map(|((client, case), differ)| format!("{client:?} {case}: {differ}")));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
