//! The policy engine in pods: the image of the webhook as it is in the sources now.

use std::fs;

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
    let archive = linked("ocm-policy-webhook", IMAGE, &cli_tests::binary("ocm-policy-webhook")).expect("an archive");
    let file = cluster.dir().expect("a folder").join("image.tar");
    fs::write(&file, archive).expect("it is written");
    cluster.import_image(&file).expect("the node takes it");
    let _ = fs::remove_file(file);
}
