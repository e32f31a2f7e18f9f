//! Archives of images on a real node and in a real registry: the container runtime takes them from either, and runs them with
//! as few rights as there are.
//!
//! `cargo test -p e2e-tests --test e2e image::`; it needs root. `cargo xtask image --try` does the same with a real image.

use std::{env, fs};

use control_plane::binaries;
use e2e_tests::registry_support::Registry;
use e2e_tests::webhook_support::own_address;
use xtask::image::{Image, Platform, archive, node, pod};

#[test]
fn an_archive_runs_as_a_pod_without_any_rights_and_a_registry_serves_it_by_its_digest() {
    let own = if env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
    let other = if own == "arm64" { "amd64" } else { "arm64" };
    // A program that needs no other file, and says what it is.
    let kubectl = fs::read(binaries().expect("the binaries of the clusters").kubectl()).expect("it is read");
    let image = Image {
        name: "kubectl",
        reference: "registry.example.com:5000/team/kubectl:1.2.3".to_owned(),
        labels: vec![("org.opencontainers.image.version", "1.2.3".to_owned())],
        // The node takes the one for itself.
        platforms: vec![
            Platform { architecture: other, binary: b"not for this machine".to_vec(), files: Vec::new() },
            Platform { architecture: own, binary: kubectl, files: Vec::new() },
        ],
        packed: true,
    };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("image.tar");
    let written = archive(&image).expect("an archive");
    fs::write(&file, &written.bytes).expect("it is written");
    let node = node().expect("a node");
    node.import_image(&file).expect("it is taken");
    let said = pod(&node, "right", &image.reference, "Never", &["version", "--client"]).expect("it runs");
    assert!(said.starts_with("Client Version: v1."), "{said}");
    // What the program says of wrong arguments is told, and that it failed.
    let error = pod(&node, "wrong", &image.reference, "Never", &["fly"]).expect_err("it fails");
    assert!(error.contains("the pod failed") && error.contains("unknown command"), "{error}");
    // A registry calls an image what `cargo xtask image` prints, and a node finds it there by that. It is one that the node has
    // no part of.
    let mut served = image.clone();
    served.packed = false;
    for platform in &mut served.platforms {
        platform.files.push(("share/served".to_owned(), b"by a registry".to_vec()));
    }
    let written = archive(&served).expect("an archive");
    fs::write(&file, &written.bytes).expect("it is written");
    let registry = Registry::start_at(&own_address(&node), &folder.path().join("registry"), false);
    assert_eq!(registry.push(&file, "team/kubectl", "1.2.3"), written.digest);
    node.speak_http_to(&registry.address).expect("it is told");
    let pinned = format!("{}/team/kubectl@{}", registry.address, written.digest);
    let said = pod(&node, "served", &pinned, "Always", &["version", "--client"]).expect("it runs");
    assert!(said.starts_with("Client Version: v1."), "{said}");
}
