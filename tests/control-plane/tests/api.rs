//! Clusters of the small size: they start quickly, do not disturb each other, sign certificates, and leave nothing.
//!
//! They need no root, but the binaries; the first run on a machine builds those.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::{Cluster, Spec};
use rcgen::{CertificateParams, DnType, KeyPair};

/// Waits for something, but not for ever.
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited 20 s for: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// Whether the command line of a process names one of these.
fn names(process: &Path, words: &[String]) -> bool {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    words.iter().any(|word| line.contains(word))
}

/// The processes whose command line names one of these. Others may later name it, too: those of another cluster that has got
/// the number.
fn processes(words: &[String]) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").expect("/proc can be read").flatten().map(|entry| entry.path());
    all.filter(|process| names(process, words)).collect()
}

/// A file in the directory of a cluster. The directory itself may be there again, as that of another cluster that has got its
/// number.
fn mark(dir: &Path) -> PathBuf {
    let file = dir.join("left-behind");
    fs::write(&file, "").expect("a file is written");
    file
}

#[test]
fn two_clusters_at_once_start_quickly_and_do_not_collide() {
    let begun = Instant::now();
    // The same name on purpose: what must differ is not the name.
    let clusters = Cluster::start_all(&[Spec::api("same"), Spec::api("same")]).expect("two clusters start");
    let took = begun.elapsed();
    let [one, two] = clusters.as_slice() else { panic!("two clusters") };
    assert!(took < Duration::from_secs(30), "starting took {took:?}");
    assert_ne!(one.server(), two.server());
    assert_ne!(one.ca_pem(), two.ca_pem());
    one.kubectl(&["create", "namespace", "only-here"]).expect("a namespace is created");
    let elsewhere = two.kubectl(&["get", "namespace", "only-here"]).expect_err("it is not in the other one");
    assert!(elsewhere.to_string().contains("NotFound"), "{elsewhere}");
    let mark = mark(one.dir().expect("it is ours"));
    drop(clusters);
    assert!(!mark.exists(), "the directory of a dropped cluster is gone");
}

#[test]
fn a_cluster_signs_certificates_and_knows_its_users() {
    let cluster = Cluster::start(&Spec::api("signer")).expect("a cluster starts");
    let key = KeyPair::generate().expect("a key is made");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "somebody");
    let request = params.serialize_request(&key).and_then(|request| request.pem()).expect("a request is made");
    let object = serde_json::json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "somebody"},
        "spec": {
            "request": STANDARD.encode(request), "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    });
    let file = tempfile::NamedTempFile::new().expect("a file is made");
    fs::write(file.path(), object.to_string()).expect("a file is written");
    let path = file.path().to_str().expect("a path is text");
    cluster.kubectl(&["create", "--filename", path]).expect("the request is created");
    cluster.kubectl(&["certificate", "approve", "somebody"]).expect("the request is approved");
    eventually("a certificate", || {
        let get = ["get", "csr", "somebody", "--output", "jsonpath={.status.certificate}"];
        cluster.kubectl(&get).is_ok_and(|certificate| !certificate.is_empty())
    });

    let user = cluster.user_kubeconfig("eva", &["readers", "writers"]).expect("a user is made");
    let who = cluster
        .kubectl_command()
        .args(["auth", "whoami", "--output", "json", "--kubeconfig"])
        .arg(user)
        .output()
        .expect("kubectl runs");
    let who: serde_json::Value = serde_json::from_slice(&who.stdout).expect("JSON");
    assert_eq!(who["status"]["userInfo"]["username"], "eva");
    let groups = serde_json::json!(["readers", "writers", "system:authenticated"]);
    assert_eq!(who["status"]["userInfo"]["groups"], groups);

    cluster.stop_api_server().expect("the API server stops");
    cluster.kubectl(&["get", "--raw", "/readyz"]).expect_err("nobody answers");
    cluster.start_api_server().expect("the API server starts again");
    cluster.kubectl(&["get", "csr", "somebody"]).expect("what was stored is still there");
}

#[test]
fn a_killed_runner_leaves_nothing() {
    let mut runner = Command::new(env!("CARGO_BIN_EXE_control-plane"))
        .args(["up", "--size", "api", "doomed"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut line = String::new();
    BufReader::new(runner.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says where it is");
    let kubeconfig = line.split("KUBECONFIG=").nth(1).and_then(|rest| rest.split('\t').next()).expect("a kubeconfig");
    let dir = Path::new(kubeconfig).parent().and_then(Path::to_str).expect("a directory").to_owned();
    let mark = mark(Path::new(&dir));
    let marks = [format!("{dir}/"), format!("\"dir\":\"{dir}\"")];
    let run = processes(&marks);
    assert!(run.len() >= 3, "etcd, API server and controller manager run: {run:?}");
    // Nobody in it is asked, and nobody can refuse.
    runner.kill().expect("the runner is killed");
    runner.wait().expect("the runner has ended");
    eventually("the end of every process", || !run.iter().any(|process| names(process, &marks)));
    eventually("the end of its directory", || !mark.exists());
}

#[test]
fn a_killed_supervisor_leaves_what_the_next_start_removes() {
    let cluster = Cluster::start(&Spec::api("orphan")).expect("a cluster starts");
    let dir = cluster.dir().and_then(Path::to_str).expect("it is ours").to_owned();
    let left_behind = mark(Path::new(&dir));
    let words = [format!("{dir}/")];
    let run = processes(&words);
    let supervisors = processes(&["\"name\":\"orphan\"".to_owned()]);
    let mut supervisors = supervisors.iter().filter(|process| names(process, &[" supervise ".to_owned()]));
    let supervisor = supervisors.next().and_then(|process| process.file_name()).expect("a supervisor");
    let killed = Command::new("kill").arg("-9").arg(supervisor).status().expect("kill runs");
    assert!(killed.success());
    eventually("the end of every process", || !run.iter().any(|process| names(process, &words)));
    let next = Cluster::start(&Spec::api("next")).expect("the next cluster starts");
    assert!(!left_behind.exists());
    drop(next);
    drop(cluster);
}

#[test]
fn a_name_that_cannot_be_a_host_name_is_refused_in_one_sentence() {
    let error = Cluster::start(&Spec::api("My Hub")).expect_err("it is refused").to_string();
    assert_eq!(
        error,
        "\"My Hub\" cannot be the name of a cluster; use up to 40 lower-case letters, digits and hyphens"
    );
}
