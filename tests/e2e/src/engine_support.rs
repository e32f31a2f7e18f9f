//! The policy engine in pods: the image of the webhook as it is in the sources now.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use control_plane::Cluster;
use xtask::image::linked;

/// The image that [`load_image`] puts on a node.
pub const IMAGE: &str = "registry.example.com/ocm-policy-webhook:test";

/// Puts the webhook on a node, with the libraries of this machine that it needs: linked with everything it takes minutes
/// to build.
///
/// # Panics
///
/// When it cannot be built or loaded.
pub fn load_image(cluster: &Cluster) {
    load_image_as(cluster, IMAGE);
}

/// The same by another name.
///
/// # Panics
///
/// When it cannot be built or loaded.
pub fn load_image_as(cluster: &Cluster, reference: &str) {
    let binary = cli_tests::binary("ocm-policy-webhook");
    let archive = linked("ocm-policy-webhook", reference, &binary).expect("an archive");
    let file = cluster.dir().expect("a folder").join("image.tar");
    fs::write(&file, archive).expect("it is written");
    cluster.import_image(&file).expect("the node takes it");
    let _ = fs::remove_file(file);
}

/// Kills whatever runs in pods of these names, without a word to anybody.
///
/// # Panics
///
/// When nothing runs in one of them.
pub fn kill_processes_of(pods: &[String]) {
    for pod in pods {
        let processes = processes_of(pod);
        assert!(!processes.is_empty(), "nothing runs in {pod}");
        for process in processes {
            // With the first one of a pod all others end.
            let _ = Command::new("kill").arg("-9").arg(process.file_name().expect("a number")).status();
        }
    }
}

/// The processes of a pod, by the host name that they were told. It is that of no other pod on this machine.
fn processes_of(pod: &str) -> Vec<PathBuf> {
    let told = format!("HOSTNAME={pod}");
    let is_told = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == told.as_bytes())
    };
    let all = fs::read_dir("/proc").expect("/proc can be read").flatten().map(|entry| entry.path());
    all.filter(is_told).collect()
}
