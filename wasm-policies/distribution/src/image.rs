//! Manifests of images that hold a module, in both ways that are usual.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::MAX_MODULE;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind};
use crate::http::bounded;

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Which manifests are asked for: of indexes only to say what they are.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// How an image holds a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A Wasm OCI artifact, as the CNCF's working group on WebAssembly describes it.
    Wasm,
    /// As Kubewarden's tools write it.
    Kubewarden,
}

impl Layout {
    const ALL: [Self; 2] = [Self::Wasm, Self::Kubewarden];

    /// The media type of the layer that is the module.
    pub(crate) const fn layer(self) -> &'static str {
        match self {
            Self::Wasm => "application/wasm",
            Self::Kubewarden => "application/vnd.wasm.content.layer.v1+wasm",
        }
    }

    /// The media type of the configuration.
    pub(crate) const fn config(self) -> &'static str {
        match self {
            Self::Wasm => "application/vnd.wasm.config.v0+json",
            Self::Kubewarden => "application/vnd.wasm.config.v1+json",
        }
    }
}

/// One blob that a manifest names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    layers: Option<Vec<Descriptor>>,
    #[serde(default)]
    manifests: Option<Value>,
}

/// An image that holds a module: what its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// How it holds the module.
    pub layout: Layout,
    /// The digest of the module.
    pub module: Digest,
    /// The bytes of the module.
    pub size: usize,
}

impl Image {
    /// Reads a manifest; `name` is how the image is called in messages.
    ///
    /// # Errors
    /// When it is not that of one module, or the module is larger than [`MAX_MODULE`].
    pub fn read(manifest: &[u8], name: &str) -> Result<Self, Error> {
        let wrong =
            |why: String| Error::new(ErrorKind::NotAModule, format!("{name} holds no module of a policy: {why}"));
        let layers = layers(manifest).map_err(wrong)?;
        let is_module = |layer: &&Descriptor| Layout::ALL.iter().any(|layout| layout.layer() == layer.media_type);
        let modules: Vec<&Descriptor> = layers.iter().filter(is_module).collect();
        let [layer] = modules.as_slice() else {
            let types: Vec<&str> = layers.iter().map(|layer| layer.media_type.as_str()).collect();
            return Err(wrong(match modules.len() {
                0 => format!(
                    "its layers are of the media types {}, and one of application/wasm or \
                     application/vnd.wasm.content.layer.v1+wasm is wanted",
                    if types.is_empty() { "none".to_owned() } else { bounded(&types.join(", ")) }
                ),
                number => format!("{number} of its layers are modules, and one is wanted"),
            }));
        };
        let module = Digest::parse(&layer.digest).ok_or_else(|| wrong("its layer has no SHA-256 digest".to_owned()))?;
        let size = usize::try_from(layer.size).ok().filter(|size| *size <= MAX_MODULE).ok_or_else(|| {
            let why = format!("the module of {name} has {} bytes, and at most {MAX_MODULE} are fetched", layer.size);
            Error::new(ErrorKind::TooLarge, why)
        })?;
        let layout = if layer.media_type == Layout::Wasm.layer() { Layout::Wasm } else { Layout::Kubewarden };
        Ok(Self { layout, module, size })
    }
}

/// The layers of a manifest, or why it has none.
pub(crate) fn layers(manifest: &[u8]) -> Result<Vec<Descriptor>, String> {
    let read: Manifest = serde_json::from_slice(manifest)
        .map_err(|error| format!("its manifest cannot be read: {}", bounded(&error.to_string())))?;
    match read.media_type.as_deref() {
        None | Some(MANIFEST | DOCKER_MANIFEST) if read.manifests.is_none() => Ok(read.layers.unwrap_or_default()),
        None | Some(INDEX | DOCKER_INDEX) => {
            Err("it is an index of several images, so write the digest of one of them".to_owned())
        }
        Some(other) => Err(format!("its manifest is of the media type {}", bounded(other))),
    }
}

/// The configuration and the manifest of an image of one module.
pub(crate) fn packed(module: &[u8], layout: Layout, title: &str) -> (Vec<u8>, Vec<u8>) {
    let layer = Digest::of(module).to_string();
    let config = match layout {
        Layout::Wasm => {
            json!({"created": "1970-01-01T00:00:00Z", "architecture": "wasm", "os": os(module), "layerDigests": [layer]})
        }
        Layout::Kubewarden => json!({}),
    };
    let config = config.to_string().into_bytes();
    let annotations =
        std::collections::BTreeMap::from([("org.opencontainers.image.title".to_owned(), title.to_owned())]);
    let describe = |media_type: &str, bytes: &[u8], annotations| Descriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(bytes).to_string(),
        size: bytes.len() as u64,
        annotations,
    };
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": describe(layout.config(), &config, None),
        "layers": [describe(layout.layer(), module, Some(annotations))],
    });
    (config, manifest.to_string().into_bytes())
}

/// A component speaks WASI 0.2 or nothing, a core module the first WASI or nothing.
fn os(module: &[u8]) -> &'static str {
    // Behind the magic number stands the version, and behind that whether it is a component.
    if module.get(6) == Some(&1) { "wasip2" } else { "wasip1" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(layers: &[(&str, u64)]) -> Value {
        let layers: Vec<Value> = layers
            .iter()
            .map(|(media_type, size)| json!({"mediaType": media_type, "digest": Digest::of(b"m").to_string(), "size": size}))
            .collect();
        json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": {}, "layers": layers})
    }

    fn read(manifest: &Value) -> Result<Image, Error> {
        Image::read(manifest.to_string().as_bytes(), "r.example/p")
    }

    #[test]
    fn both_layouts_are_read_and_written() {
        for layout in Layout::ALL {
            let (config, manifest) = packed(b"\0asm\x0d\0\x01\0", layout, "p.wasm");
            let image = Image::read(&manifest, "r.example/p").unwrap();
            assert_eq!(image, Image { layout, module: Digest::of(b"\0asm\x0d\0\x01\0"), size: 8 });
            let written: Value = serde_json::from_slice(&manifest).unwrap();
            assert_eq!(written["config"]["digest"], Digest::of(&config).to_string());
            assert_eq!(
                (written["config"]["mediaType"].as_str(), written["layers"][0]["size"].as_u64()),
                (Some(layout.config()), Some(8))
            );
        }
        let (config, _) = packed(b"\0asm\x0d\0\x01\0", Layout::Wasm, "p.wasm");
        assert!(String::from_utf8(config).unwrap().contains("\"os\":\"wasip2\""));
        // Others' layers beside it, such as a list of what it was made of, are no module.
        let beside = manifest(&[("application/spdx+json", 3), ("application/wasm", 7)]);
        assert_eq!(read(&beside).map(|image| image.size), Ok(7));
        // Docker's tools write another type, and some write none.
        let mut other = manifest(&[("application/wasm", 7)]);
        other["mediaType"] = json!(DOCKER_MANIFEST);
        assert!(read(&other).is_ok());
        other.as_object_mut().unwrap().remove("mediaType");
        assert!(read(&other).is_ok());
    }

    #[test]
    fn other_images_are_told_from_modules() {
        let said = |manifest: &Value| read(manifest).map_err(|error| (error.kind, error.to_string())).unwrap_err();
        let container = manifest(&[("application/vnd.oci.image.layer.v1.tar+gzip", 9)]);
        let (kind, message) = said(&container);
        assert!(kind == ErrorKind::NotAModule && message.contains("layer.v1.tar+gzip"), "{message}");
        assert!(said(&manifest(&[])).1.contains("media types none"));
        assert!(said(&manifest(&[("application/wasm", 1), ("application/wasm", 1)])).1.contains("2 of its layers"));
        assert_eq!(said(&manifest(&[("application/wasm", MAX_MODULE as u64 + 1)])).0, ErrorKind::TooLarge);
        assert!(said(&json!({"mediaType": INDEX, "manifests": []})).1.contains("write the digest of one of them"));
        assert!(said(&json!({"manifests": [], "layers": []})).1.contains("write the digest of one of them"));
        assert!(said(&json!({"mediaType": "text/plain"})).1.contains("text/plain"));
        let long = "x".repeat(9000);
        for endless in [json!({"mediaType": long}), manifest(&[(&long, 1)])] {
            assert!(said(&endless).1.len() < 500, "{endless}");
        }
        let mut short = manifest(&[("application/wasm", 1)]);
        short["layers"][0]["digest"] = json!("sha256:../../x");
        assert!(said(&short).1.contains("no SHA-256 digest"));
        assert_eq!(Image::read(b"no", "n").unwrap_err().kind, ErrorKind::NotAModule);
    }
}
