//! What `kubectl ocm troubleshoot` finds where a wait has given up. Its binary is run, which lies beside this one: the
//! checks are in that one alone.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ocm_core::shell::shell;
use ocm_core::{Event, Failure, Named, Narrator, Reason};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::clean;

/// The file name of the binary.
const BINARY: &str = "kubectl-ocm-troubleshoot";

/// How long it may take: whoever waited in vain is not to wait for long again.
const LONGEST: Duration = Duration::from_secs(30);

/// How much of its report is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// How many findings are told, and how many clusters are asked about.
const SHOWN: usize = 3;

/// A look at clusters, by the same connections as the command's own.
#[derive(Clone, Debug)]
pub struct Troubleshoot {
    /// The flags that connect; none where they hold a credential, which is not written into another command line.
    connection: Option<Vec<OsString>>,
}

/// What was found, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Where the clusters stand, and what is wrong otherwise.
    pub lines: Vec<String>,
    /// What to do next.
    pub next: Vec<String>,
}

#[derive(Deserialize)]
struct Report {
    clusters: Vec<Standing>,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Standing {
    name: String,
    headline: String,
}

#[derive(Deserialize)]
struct Finding {
    id: String,
    cluster: Option<String>,
    severity: String,
    summary: String,
    #[serde(default)]
    objects: Vec<Object>,
    next: Vec<String>,
}

/// An object that shows a finding.
#[derive(Deserialize)]
struct Object {
    kind: String,
    namespace: Option<String>,
    name: String,
}

impl Object {
    fn is(&self, named: &Named) -> bool {
        let Named { kind, namespace, name } = named;
        (&self.kind, &self.namespace, &self.name) == (kind, namespace, name)
    }
}

impl Troubleshoot {
    /// With the flags of a command, as they are typed.
    pub fn new(connection: Option<Vec<OsString>>) -> Self {
        Self { connection }
    }

    /// A failure as it was or, if it says that a wait gave up, with what is found of these clusters.
    pub async fn explain(&self, failure: Failure, clusters: &[String], narrator: &dyn Narrator) -> Failure {
        if failure.reason != Reason::TimedOut {
            return failure;
        }
        // A wait that tells which object it waits for knows as much of it.
        let found = self.inspect_further(clusters, failure.about.as_deref(), narrator).await;
        let failure = found.lines.into_iter().fold(failure, Failure::because);
        found.next.into_iter().fold(failure, |failure, next| {
            let known = failure.hints.iter().any(|hint| crate::words(hint) == next);
            if known { failure } else { failure.hint(next) }
        })
    }

    /// What is found of clusters, or of what the connection leads to where none is named. Where nothing can be found out
    /// that is no failure of its own: what to type is said all the same.
    pub async fn inspect(&self, clusters: &[String], narrator: &dyn Narrator) -> Found {
        self.inspect_further(clusters, None, narrator).await
    }

    /// The same, where something is known of an object already.
    async fn inspect_further(&self, clusters: &[String], known: Option<&Named>, narrator: &dyn Narrator) -> Found {
        let clusters: Vec<&String> = clusters.iter().take(SHOWN).collect();
        let Some(connection) = &self.connection else {
            let names: String = clusters.iter().map(|name| format!(" {name}")).collect();
            return Found {
                next: vec![format!("kubectl ocm troubleshoot{names} looks for the cause")],
                ..Found::default()
            };
        };
        let mut line = "kubectl ocm troubleshoot".to_owned();
        let words = clusters.iter().map(|name| OsString::from(name.as_str())).chain(connection.iter().cloned());
        let words: Vec<OsString> = words.collect();
        words.iter().for_each(|word| line += &format!(" {}", shell(&word.to_string_lossy())));
        narrator.tell(Event::now("looking for the cause"));
        match tokio::time::timeout(LONGEST, report(&words)).await.unwrap_or_default() {
            None => Found { next: vec![format!("{line} looks for the cause")], ..Found::default() },
            Some(report) => told(report, !clusters.is_empty(), known, &line),
        }
    }
}

/// Runs the binary; none where it is not there, cannot say anything or says what cannot be read.
async fn report(words: &[OsString]) -> Option<Report> {
    let mut command = Command::new(binary()?);
    command.args(words).arg("--output=json").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().ok()?;
    let mut text = Vec::new();
    child.stdout.take()?.take(LARGEST).read_to_end(&mut text).await.ok()?;
    serde_json::from_slice(&text).ok()
}

/// Only beside this binary: what else is on PATH may be anybody's.
fn binary() -> Option<PathBuf> {
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    let binary = own.parent()?.join(format!("{BINARY}{}", std::env::consts::EXE_SUFFIX));
    binary.is_file().then_some(binary)
}

/// What of a report is told: of clusters only if some were asked about, for a hub may have any number of others. Of the object
/// that is known, only what to do next.
fn told(report: Report, of_clusters: bool, known: Option<&Named>, line: &str) -> Found {
    let mut found = Found::default();
    if of_clusters {
        let standings = report.clusters.iter().take(SHOWN);
        found.lines.extend(standings.map(|standing| clean(&format!("{}: {}", standing.name, standing.headline))));
    }
    let counts = |finding: &&Finding| finding.severity == "error" && (of_clusters || finding.cluster.is_none());
    for Finding { id, summary, objects, next, .. } in report.findings.iter().filter(counts).take(SHOWN) {
        // The cause of where a cluster stands is in the sentence about it.
        let is_told = found.lines.iter().any(|line| line.ends_with(summary.as_str()));
        let is_known = known.is_some_and(|known| matches!(objects.as_slice(), [only] if only.is(known)));
        if !is_told && !is_known {
            found.lines.push(clean(&format!("{id}: {summary}")));
        }
        found.next.extend(next.iter().map(|next| clean(next)));
    }
    found.next.push(format!("{line} shows the evidence"));
    found
}

#[cfg(test)]
mod tests {
    use ocm_core::Silent;

    use super::*;

    fn of(text: &str) -> Found {
        told(serde_json::from_str(text).unwrap(), true, None, "kubectl ocm troubleshoot c1")
    }

    #[test]
    fn of_a_hub_only_what_is_its_own_is_told() {
        let report = r#"{"clusters": [{"name": "c1", "headline": "stopped"}], "findings": [
            {"id": "OCM2205", "cluster": "c1", "severity": "error", "summary": "waits", "next": ["x"]},
            {"id": "OCM1102", "severity": "error", "summary": "no operator", "next": ["y"]}]}"#;
        let found = told(serde_json::from_str(report).unwrap(), false, None, "z");
        assert_eq!(
            (found.lines, found.next),
            (vec!["OCM1102: no operator".to_owned()], vec!["y".to_owned(), "z shows the evidence".to_owned()])
        );
    }

    #[test]
    fn the_headline_is_told_and_errors_that_it_does_not_name() {
        let found = of(
            r#"{"verdict": "findings", "clusters": [{"name": "c1", "way": "done", "headline": "stopped at step 5 of 9: waits"}],
            "findings": [
                {"id": "OCM2205", "severity": "error", "summary": "waits", "next": ["kubectl ocm accept c1"]},
                {"id": "OCM1102", "severity": "error", "summary": "no\u001b[2Joperator", "next": []},
                {"id": "OCM7102", "severity": "warning", "summary": "old", "next": ["upgrade"]}
            ]}"#,
        );
        assert_eq!(found.lines.len(), 2, "{found:?}");
        assert_eq!(found.lines[0], "c1: stopped at step 5 of 9: waits");
        assert!(found.lines[1].starts_with("OCM1102: no") && !found.lines[1].contains('\u{1b}'), "{found:?}");
        assert_eq!(found.next, ["kubectl ocm accept c1", "kubectl ocm troubleshoot c1 shows the evidence"]);
    }

    #[test]
    fn of_an_object_that_the_wait_has_told_of_only_what_to_do_is_told() {
        let report = r#"{"clusters": [], "findings": [
            {"id": "OCM1102", "severity": "error", "summary": "Deployment a/b is not ready", "next": ["x"],
             "objects": [{"side": "hub", "kind": "Deployment", "namespace": "a", "name": "b"}]}]}"#;
        let of = |name: &str| {
            let known = Named { kind: "Deployment".to_owned(), namespace: Some("a".to_owned()), name: name.to_owned() };
            told(serde_json::from_str(report).unwrap(), false, Some(&known), "z")
        };
        assert_eq!((of("b").lines, of("b").next[0].as_str()), (Vec::new(), "x"));
        assert_eq!(of("bc").lines, ["OCM1102: Deployment a/b is not ready"]);
    }

    #[tokio::test]
    async fn a_credential_is_written_into_no_other_command_line() {
        let failure = Failure::new(Reason::TimedOut, "gave up");
        let failure = Troubleshoot::new(None).explain(failure, &["c1".to_owned()], &Silent).await;
        assert_eq!(failure.hints.len(), 1);
        assert_eq!(crate::words(&failure.hints[0]), "kubectl ocm troubleshoot c1 looks for the cause");
        let other = Failure::other("x");
        assert_eq!(Troubleshoot::new(None).explain(other.clone(), &[], &Silent).await, other);
    }
}
