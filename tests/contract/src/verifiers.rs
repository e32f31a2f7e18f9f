//! Programs that verify certificates, and what we say of them.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use cli_tests::root;
use jiff::Timestamp;
use ocm_checks::tls::{Client, Question, Refusal, Use, verdict};
use ocm_core::certificate::{to_base64, to_pem};
use serde_json::{Value, json};

/// A question.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The certificates in DER, the own one first.
    pub chain: &'a [Vec<u8>],
    /// Whom the verifier trusts.
    pub roots: &'a [Vec<u8>],
    /// The host that is dialled; empty: none.
    pub dialled: &'a str,
    /// Who shows it.
    pub usage: Use,
    /// The time of the verifier.
    pub at: Timestamp,
}

/// What we say of a client.
pub fn ask(asked: &Asked<'_>, client: Client) -> Vec<Refusal> {
    let Asked { chain, roots, dialled, usage, at } = *asked;
    let [chain, roots] = [chain, roots].map(|list| list.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>());
    let names = if dialled.is_empty() { vec![] } else { vec![dialled.to_owned()] };
    verdict(client, &Question { chain: &chain, authorities: Some(&roots), names: &names, usage, at })
}

/// Whether a program is there.
fn is_there(program: &str, argument: &str) -> bool {
    let found = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// What `openssl verify` says of each; empty: it trusts it. None: the program is not there.
///
/// # Panics
/// When it cannot be run.
pub fn openssl(questions: &[Asked<'_>]) -> Option<Vec<String>> {
    if !is_there("openssl", "version") {
        return None;
    }
    let folder = tempfile::tempdir().expect("what the test makes is right");
    let write = |name: &str, chain: &[Vec<u8>]| {
        let path = folder.path().join(name);
        fs::write(&path, to_pem(chain)).expect("what the test makes is right");
        path
    };
    let says = questions.iter().map(|asked| {
        let mut command = Command::new("openssl");
        command.args(["verify", "-no-CApath", "-no-CAstore", "-auth_level", "2", "-attime"]);
        command.arg(asked.at.as_second().to_string());
        command.args(["-purpose", if asked.usage == Use::Client { "sslclient" } else { "sslserver" }]);
        command.arg("-CAfile").arg(write("roots.pem", asked.roots));
        if asked.chain.len() > 1 {
            command.arg("-untrusted").arg(write("chain.pem", &asked.chain[1..]));
        }
        match asked.dialled.parse::<IpAddr>() {
            _ if asked.dialled.is_empty() => {}
            Ok(_) => drop(command.args(["-verify_ip", asked.dialled])),
            Err(_) => drop(command.args(["-verify_hostname", asked.dialled])),
        }
        let done = command.arg(write("leaf.pem", &asked.chain[..1])).output().expect("what the test makes is right");
        if done.status.success() { String::new() } else { String::from_utf8_lossy(&done.stderr).into_owned() }
    });
    Some(says.collect())
}

/// What Go's verifier says of each; empty: it trusts it. None: there is no Go.
///
/// # Panics
/// When it cannot be run.
pub fn go(questions: &[Asked<'_>]) -> Option<Vec<String>> {
    if !is_there("go", "version") {
        return None;
    }
    let encoded = |chain: &[Vec<u8>]| chain.iter().map(|der| to_base64(der)).collect::<Vec<_>>();
    let questions: Vec<Value> = questions
        .iter()
        .map(|asked| {
            json!({
                "chain": encoded(asked.chain), "roots": encoded(asked.roots), "name": asked.dialled,
                "client": asked.usage == Use::Client, "at": asked.at.as_second(),
            })
        })
        .collect();
    let says = run(&json!(questions).to_string());
    Some(serde_json::from_str(&says).unwrap_or_else(|error| panic!("{error}: {says}")))
}

/// What our program in Go answers.
fn run(input: &str) -> String {
    let cache = tempfile::tempdir().expect("what the test makes is right");
    let mut command = Command::new("go");
    command.arg("run").arg(root().join("tests/contract/verifier/main.go"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Whoever has no home has no cache either.
    if std::env::var_os("HOME").is_none() {
        command.env("GOCACHE", cache.path());
    }
    let mut running = command.spawn().expect("what the test makes is right");
    running
        .stdin
        .take()
        .expect("what the test makes is right")
        .write_all(input.as_bytes())
        .expect("what the test makes is right");
    let done = running.wait_with_output().expect("what the test makes is right");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("what the test makes is right")
}
