//! The archive: an OCI image layout with an index of one manifest for each processor, and one layer in each.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use flate2::{Compression, GzBuilder};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

/// The user and group of the process: a number, so that Kubernetes sees that it is not root.
pub const USER: u32 = 65532;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// An image of one binary.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// Name of the binary, which is the entry point.
    pub name: &'a str,
    /// Registry, repository and tag.
    pub reference: String,
    /// What the image says of itself.
    pub labels: Vec<(&'static str, String)>,
    /// One for each processor.
    pub platforms: Vec<Platform>,
    /// Whether layers are packed, which takes longer than most images of tests live.
    pub packed: bool,
}

/// The image for one processor.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Name of the processor in images.
    pub architecture: &'static str,
    /// The binary.
    pub binary: Vec<u8>,
    /// Other files that it needs, by their paths: none, where it is linked with everything.
    pub files: Vec<(String, Vec<u8>)>,
}

/// An archive of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// What a registry that has the image calls it: `sha256:` and the digest of the index of its processors.
    pub digest: String,
}

/// Writes the archive. It depends on nothing but the image.
///
/// # Errors
/// When a name does not fit into an archive.
pub fn archive(image: &Image<'_>) -> io::Result<Archive> {
    let mut blobs = Blobs::default();
    let mut manifests = Vec::new();
    for platform in &image.platforms {
        let mut descriptor = manifest(image, platform, &mut blobs)?;
        descriptor["platform"] = json!({ "architecture": platform.architecture, "os": "linux" });
        manifests.push(descriptor);
    }
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests }).to_string().into_bytes();
    let digest = format!("sha256:{}", hex(&index));
    let mut named = blobs.add(INDEX, index);
    let tag = image.reference.rsplit(':').next().unwrap_or_default();
    named["annotations"] = json!({
        "org.opencontainers.image.ref.name": tag,
        // The one that containerd names the image after.
        "io.containerd.image.name": image.reference,
    });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [named] });
    let layout = json!({ "imageLayoutVersion": "1.0.0" });

    let mut out = Builder::new(Vec::new());
    folder(&mut out, "blobs/", 0o755)?;
    folder(&mut out, "blobs/sha256/", 0o755)?;
    for (name, bytes) in &blobs.0 {
        file(&mut out, &format!("blobs/sha256/{name}"), 0o644, bytes)?;
    }
    file(&mut out, "index.json", 0o644, index.to_string().as_bytes())?;
    file(&mut out, "oci-layout", 0o644, layout.to_string().as_bytes())?;
    Ok(Archive { bytes: out.into_inner()?, digest })
}

/// The parts of an image by their digests.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Keeps one, and describes it.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let name = hex(&bytes);
        let descriptor = json!({ "mediaType": media_type, "digest": format!("sha256:{name}"), "size": bytes.len() });
        self.0.insert(name, bytes);
        descriptor
    }
}

fn manifest(image: &Image<'_>, platform: &Platform, blobs: &mut Blobs) -> io::Result<Value> {
    let mut layer = Builder::new(Vec::new());
    file(&mut layer, image.name, 0o755, &platform.binary)?;
    // For what has no volume of its own there; where the file system is read-only, one is mounted.
    folder(&mut layer, "tmp/", 0o1777)?;
    for (path, bytes) in &platform.files {
        file(&mut layer, path, 0o755, bytes)?;
    }
    let layer = layer.into_inner()?;
    let labels: BTreeMap<_, _> = image.labels.iter().cloned().collect();
    let config = json!({
        "architecture": platform.architecture,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [format!("/{}", image.name)],
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", hex(&layer))] },
        "history": [{ "created_by": "cargo xtask image" }],
    });
    let level = if image.packed { Compression::best() } else { Compression::none() };
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), level);
    packed.write_all(&layer)?;
    let layer = blobs.add(LAYER, packed.finish()?);
    let config = blobs.add(CONFIG, config.to_string().into_bytes());
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
    Ok(blobs.add(MANIFEST, manifest.to_string().into_bytes()))
}

fn file(out: &mut Builder<Vec<u8>>, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    entry(out, name, EntryType::Regular, mode, bytes)
}

fn folder(out: &mut Builder<Vec<u8>>, name: &str, mode: u32) -> io::Result<()> {
    entry(out, name, EntryType::Directory, mode, &[])
}

/// An entry that belongs to root and to no point in time.
fn entry(out: &mut Builder<Vec<u8>>, name: &str, kind: EntryType, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    out.append_data(&mut header, name, bytes)
}

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn image(binary: &str) -> Image<'static> {
        let platform = |architecture| Platform {
            architecture,
            binary: format!("{binary} {architecture}").into_bytes(),
            files: vec![("lib/a.so".to_owned(), b"library".to_vec())],
        };
        Image {
            name: "program",
            reference: "example.com:5000/team/program:1.2.3".to_owned(),
            labels: vec![("org.opencontainers.image.version", "1.2.3".to_owned())],
            platforms: vec![platform("amd64"), platform("arm64")],
            packed: true,
        }
    }

    fn entries(archive: &[u8]) -> BTreeMap<String, (Header, Vec<u8>)> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().expect("an archive").map(|entry| {
            let mut entry = entry.expect("an entry");
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("contents");
            let name = entry.path().expect("a path").display().to_string();
            (name, (entry.header().clone(), bytes))
        });
        entries.collect()
    }

    /// The blob that a descriptor names, which it describes rightly.
    fn blob(all: &BTreeMap<String, (Header, Vec<u8>)>, descriptor: &Value) -> Vec<u8> {
        let name = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:")).expect("a digest");
        let bytes = all[&format!("blobs/sha256/{name}")].1.clone();
        assert_eq!((hex(&bytes).as_str(), json!(bytes.len())), (name, descriptor["size"].clone()));
        bytes
    }

    fn document(all: &BTreeMap<String, (Header, Vec<u8>)>, descriptor: &Value) -> Value {
        let document: Value = serde_json::from_slice(&blob(all, descriptor)).expect("JSON");
        let media_type = document.get("mediaType").unwrap_or(&descriptor["mediaType"]);
        assert_eq!(media_type, &descriptor["mediaType"]);
        document
    }

    #[test]
    fn the_same_image_is_the_same_archive_and_another_is_not() {
        let first = archive(&image("a")).expect("an archive");
        assert_eq!(first, archive(&image("a")).expect("an archive"));
        assert_ne!(first, archive(&image("b")).expect("an archive"));
        for (name, (header, _)) in entries(&first.bytes) {
            let owner =
                (header.uid().expect("a user"), header.gid().expect("a group"), header.mtime().expect("a time"));
            assert_eq!(owner, (0, 0, 0), "{name}");
        }
    }

    #[test]
    fn the_archive_is_a_layout_in_which_everything_can_be_found() {
        let archive = archive(&image("binary")).expect("an archive");
        let all = entries(&archive.bytes);
        let layout: Value = serde_json::from_slice(&all["oci-layout"].1).expect("JSON");
        assert_eq!(layout, json!({ "imageLayoutVersion": "1.0.0" }));
        let top: Value = serde_json::from_slice(&all["index.json"].1).expect("JSON");
        assert_eq!(top["manifests"].as_array().map(Vec::len), Some(1));
        let named = &top["manifests"][0];
        assert_eq!(named["digest"], archive.digest);
        assert_eq!(named["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
        assert_eq!(named["annotations"]["io.containerd.image.name"], "example.com:5000/team/program:1.2.3");
        let index = document(&all, named);
        let manifests = index["manifests"].as_array().expect("manifests");
        assert_eq!(manifests.len(), 2);
        for (descriptor, architecture) in manifests.iter().zip(["amd64", "arm64"]) {
            assert_eq!(descriptor["platform"], json!({ "architecture": architecture, "os": "linux" }));
            let manifest = document(&all, descriptor);
            let config = document(&all, &manifest["config"]);
            assert_eq!((&config["architecture"], &config["os"]), (&json!(architecture), &json!("linux")));
            assert_eq!(config["config"]["User"], "65532:65532");
            assert_eq!(config["config"]["Entrypoint"], json!(["/program"]));
            assert_eq!(config["config"]["Labels"]["org.opencontainers.image.version"], "1.2.3");
            assert!(config.get("created").is_none(), "{config}");
            assert_eq!(manifest["layers"].as_array().map(Vec::len), Some(1));
            let packed = blob(&all, &manifest["layers"][0]);
            let mut layer = Vec::new();
            flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut layer).expect("gzip");
            assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", hex(&layer))]));
            let files = entries(&layer);
            assert_eq!(files.keys().collect::<Vec<_>>(), ["lib/a.so", "program", "tmp/"]);
            assert_eq!(files["lib/a.so"].1, b"library");
            assert_eq!(files["program"].1, format!("binary {architecture}").into_bytes());
            assert_eq!(files["program"].0.mode().expect("a mode"), 0o755);
        }
        // Two folders, two documents, the inner index, and three blobs for each processor.
        assert_eq!(all.len(), 2 + 2 + 1 + 2 * 3);
    }
}
