//! The policy engine in pods: the image of the webhook as it is in the sources now, and what is asked of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use control_plane::Cluster;
use xtask::image::{Image, Platform, archive};

/// The image that [`load_image`] puts on a node.
pub const IMAGE: &str = "registry.example.com/ocm-policy-webhook:test";

/// Puts the webhook on a node, with the libraries of this machine that it needs: linked with everything it takes minutes
/// to build.
///
/// # Panics
///
/// When it cannot be built or loaded.
pub fn load_image(cluster: &Cluster) {
    let binary = cli_tests::binary("ocm-policy-webhook");
    let image = Image {
        name: "ocm-policy-webhook",
        reference: IMAGE.to_owned(),
        labels: Vec::new(),
        platforms: vec![Platform {
            architecture: if env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" },
            binary: fs::read(&binary).expect("the webhook is read"),
            files: libraries(&binary).into_iter().map(|file| entry(&file)).collect(),
        }],
        packed: false,
    };
    let file = cluster.dir().expect("a folder").join("image.tar");
    fs::write(&file, archive(&image).expect("an archive")).expect("it is written");
    cluster.import_image(&file).expect("the node takes it");
    let _ = fs::remove_file(file);
}

/// The files that the dynamic linker loads for a program, itself among them.
fn libraries(binary: &Path) -> Vec<PathBuf> {
    let said = Command::new("ldd").arg(binary).output().expect("ldd runs").stdout;
    let said = String::from_utf8(said).expect("paths are text");
    said.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

fn entry(file: &Path) -> (String, Vec<u8>) {
    let path = file.to_str().expect("a path is text").trim_start_matches('/').to_owned();
    (path, fs::read(file).expect("a library is read"))
}
