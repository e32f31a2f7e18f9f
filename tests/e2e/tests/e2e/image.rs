//! Archives of images on a real node: the container runtime takes them, and runs them with as few rights as there are.
//!
//! `cargo test -p e2e-tests --test e2e image::`; it needs root. `cargo xtask image --try` does the same with a real image.

use std::{env, fs};

use control_plane::binaries;
use xtask::image::{Image, Platform, archive, smoke};

#[test]
fn an_archive_runs_as_a_pod_without_any_rights() {
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
    fs::write(&file, archive(&image).expect("an archive").bytes).expect("it is written");
    let said = smoke(&file, &image.reference, &["version", "--client"]).expect("it runs");
    assert!(said.starts_with("Client Version: v1."), "{said}");
    // What the program says of wrong arguments is told, and that it failed.
    let error = smoke(&file, &image.reference, &["fly"]).expect_err("it fails");
    assert!(error.contains("the pod failed") && error.contains("unknown command"), "{error}");
}
