//! Modules that were fetched, as the hub keeps them: ConfigMaps of the policy engine's namespace, each named by the digest
//! of what it holds. Nothing in them is believed but by that digest, and by the key that the HubPolicy names.
//!
//! ```text
//! ocm-policy-image-DIGEST     manifest and signatures of an image
//! ocm-policy-module-SHA256-N  the N-th part of a module, packed (gzip)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use ocm_api::policy::OciSource;
use ocm_core::policy_engine::NAMESPACE;
use ocm_kube::explain;
use ocm_policy_distribution::{Digest, Fetched, MAX_MODULE, MAX_SIGNATURES, Reference, Signature, judge, sha256};

use super::source::Source;

/// Marks what is kept for this purpose, and by nobody but the policy controller.
pub const LABEL: (&str, &str) = ("policy.kubectl-ocm.dev/store", "modules");

/// Bytes of one part: in base64 and with all that stands around it, less than etcd takes in one object.
const PART: usize = 512 << 10;
/// How many parts a module may have.
const PARTS: usize = 32;

const MANIFEST: &str = "manifest";
const SIGNED: &str = "signatures";
const CONTENT: &str = "part";
const NUMBER: &str = "parts";

/// Why a module cannot be taken from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// It is not there, or is not signed by the key that is wanted now.
    Missing,
    /// What is there is something else.
    Damaged(String),
    /// It cannot be read.
    Unread(String),
}

/// What the store holds of a module that may be used.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The module.
    pub module: Vec<u8>,
    /// The objects that hold it.
    pub objects: Objects,
}

/// Names and resource versions of objects.
pub type Objects = BTreeMap<String, String>;

/// Takes the module of a source from the store.
///
/// # Errors
/// Why it cannot be had, or may not be used.
pub async fn take(client: &Client, source: &Source) -> Result<Kept, Lack> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    match source {
        Source::Oci(image) => {
            let name = image_name(image).ok_or(Lack::Missing)?;
            let map = get(&api, &name).await?;
            let (manifest, signatures) = contents(&map);
            // Without the signature that is wanted now, it is as if it were not there: it may be in the registry.
            let image = judge(image, &manifest, &signatures).map_err(|_| Lack::Missing)?;
            let mut kept = module(&api, image.module.hex()).await?;
            kept.objects.insert(name, version(&map));
            Ok(kept)
        }
        Source::Url(file) => {
            let digest = Digest::from_hex(&file.sha256).ok_or(Lack::Missing)?;
            module(&api, digest.hex()).await
        }
        _ => Err(Lack::Missing),
    }
}

async fn get(api: &Api<ConfigMap>, name: &str) -> Result<ConfigMap, Lack> {
    let found = api.get_opt(name).await.map_err(|error| Lack::Unread(explain(&error).to_string()))?;
    found.ok_or(Lack::Missing)
}

async fn module(api: &Api<ConfigMap>, wanted: &str) -> Result<Kept, Lack> {
    let first = get(api, &part_name(wanted, 0)).await?;
    let number = first.data.as_ref().and_then(|data| data.get(NUMBER)?.parse::<usize>().ok());
    let damaged = || Lack::Damaged(format!("ConfigMaps {NAMESPACE}/ocm-policy-module-{wanted}-* do not hold it"));
    let number = number.filter(|number| (1..=PARTS).contains(number)).ok_or_else(damaged)?;
    let mut objects = Objects::from([(part_name(wanted, 0), version(&first))]);
    let mut packed = part(first).ok_or_else(damaged)?;
    for index in 1..number {
        let map = get(api, &part_name(wanted, index)).await?;
        objects.insert(part_name(wanted, index), version(&map));
        packed.extend(part(map).ok_or_else(damaged)?);
    }
    let digest = wanted.to_owned();
    // Whoever waits has more to do than this.
    let unpacked =
        tokio::task::spawn_blocking(move || unpacked(&packed).filter(|module| sha256(module) == digest)).await;
    Ok(Kept { module: unpacked.ok().flatten().ok_or_else(damaged)?, objects })
}

/// The resource version of an object.
pub fn version(map: &ConfigMap) -> String {
    map.metadata.resource_version.clone().unwrap_or_default()
}

/// Which of these objects hold the module of a source; `about` is the one about its image, if it is there.
pub fn held<'a>(source: &Source, about: Option<&ConfigMap>, names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let (image, module) = match source {
        Source::Oci(image) => {
            // Whoever has signed it matters to those who load it.
            let unsigned = OciSource { signature: None, ..(**image).clone() };
            let judged = about.and_then(|about| judge(&unsigned, &contents(about).0, &[]).ok());
            (image_name(image), judged.map(|image| image.module))
        }
        Source::Url(file) => (None, Digest::from_hex(&file.sha256)),
        _ => (None, None),
    };
    let parts = module.map(|module| format!("ocm-policy-module-{}-", module.hex()));
    names
        .filter(|name| {
            image.as_deref() == Some(*name) || parts.as_ref().is_some_and(|parts| name.starts_with(parts.as_str()))
        })
        .collect()
}

fn part(mut map: ConfigMap) -> Option<Vec<u8>> {
    map.binary_data.as_mut()?.remove(CONTENT).map(|part| part.0)
}

fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let mut module = Vec::new();
    GzDecoder::new(packed).take(MAX_MODULE as u64 + 1).read_to_end(&mut module).ok()?;
    (module.len() <= MAX_MODULE).then_some(module)
}

/// The manifest and the signatures that an object holds, whatever they are worth.
fn contents(map: &ConfigMap) -> (Vec<u8>, Vec<Signature>) {
    let manifest = map.binary_data.as_ref().and_then(|data| data.get(MANIFEST)).map(|manifest| manifest.0.clone());
    let signatures = map.data.as_ref().and_then(|data| serde_json::from_str(data.get(SIGNED)?).ok());
    (manifest.unwrap_or_default(), signatures.unwrap_or_default())
}

/// The name of the object about an image.
pub fn image_name(image: &OciSource) -> Option<String> {
    let digest = Reference::parse(&image.image).ok()?.digest?;
    Some(format!("ocm-policy-image-{}", digest.hex()))
}

fn part_name(sha256: &str, index: usize) -> String {
    format!("ocm-policy-module-{sha256}-{index}")
}

/// The objects that hold a module: they never change.
///
/// # Errors
/// When it is too large to be kept.
pub fn parts(module: &[u8]) -> Result<Vec<ConfigMap>, String> {
    let sha256 = sha256(module);
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(module).and_then(|()| packer.finish()).map_err(|error| error.to_string())?;
    let number = packed.len().div_ceil(PART);
    if number > PARTS {
        let (bytes, most) = (packed.len(), PARTS * PART);
        return Err(format!("the module has {bytes} bytes after it was packed, and at most {most} are kept on a hub"));
    }
    let one = |(index, part): (usize, &[u8])| ConfigMap {
        immutable: Some(true),
        binary_data: Some([(CONTENT.to_owned(), ByteString(part.to_vec()))].into()),
        data: Some([(NUMBER.to_owned(), number.to_string())].into()),
        ..named(part_name(&sha256, index))
    };
    Ok(packed.chunks(PART).enumerate().map(one).collect())
}

/// The object about an image: its manifest, and the signatures that were known before and are now.
pub fn about(name: &str, before: Option<&ConfigMap>, fetched: &Fetched) -> ConfigMap {
    let mut signatures = fetched.signatures.clone();
    let known = before.map(contents).unwrap_or_default().1;
    signatures.extend(known.into_iter().filter(|known| !fetched.signatures.contains(known)));
    signatures.truncate(MAX_SIGNATURES);
    let signatures = serde_json::to_string(&signatures).unwrap_or_default();
    let mut map = ConfigMap {
        binary_data: Some([(MANIFEST.to_owned(), ByteString(fetched.manifest.clone()))].into()),
        data: Some([(SIGNED.to_owned(), signatures)].into()),
        ..named(name.to_owned())
    };
    map.metadata.resource_version = before.and_then(|before| before.metadata.resource_version.clone());
    map
}

fn named(name: String) -> ConfigMap {
    let labels = [("app.kubernetes.io/part-of", "kubectl-ocm"), LABEL];
    let labels: BTreeMap<String, String> = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name);
    map.metadata.namespace = Some(NAMESPACE.to_owned());
    map.metadata.labels = Some(labels);
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that do not become shorter.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1u64;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        };
        (0..bytes).map(next).collect()
    }

    #[test]
    fn a_module_is_kept_in_parts_that_never_change_and_fit_into_etcd() {
        for (module, number) in [(b"\0asm".to_vec(), 1), (vec![0; 3 << 20], 1), (noise(2 * PART), 3)] {
            let maps = parts(&module).unwrap();
            assert_eq!(maps.len(), number);
            let packed: Vec<u8> = maps.iter().flat_map(|map| part(map.clone()).unwrap()).collect();
            assert_eq!(unpacked(&packed), Some(module.clone()));
            for (index, map) in maps.iter().enumerate() {
                assert_eq!(map.metadata.name, Some(part_name(&sha256(&module), index)));
                assert_eq!(
                    (map.immutable, map.data.as_ref().unwrap()[NUMBER].as_str()),
                    (Some(true), number.to_string().as_str())
                );
                assert_eq!(map.metadata.labels.as_ref().unwrap()[LABEL.0], LABEL.1);
                assert!(serde_json::to_vec(map).unwrap().len() < 1 << 20);
            }
        }
        let error = parts(&noise(PARTS * PART + 1)).unwrap_err();
        assert!(error.contains("at most 16777216"), "{error}");
    }

    #[test]
    fn what_becomes_too_large_is_not_unpacked() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&vec![0; MAX_MODULE + 1]).unwrap();
        assert_eq!(unpacked(&packer.finish().unwrap()), None);
        assert_eq!(unpacked(b"no"), None);
    }

    #[test]
    fn what_holds_the_module_of_a_source_is_found_without_reading_it() {
        let digest = sha256(b"module");
        let manifest =
            format!(r#"{{"layers":[{{"mediaType":"application/wasm","digest":"sha256:{digest}","size":6}}]}}"#);
        let fetched = Fetched { manifest: manifest.clone().into_bytes(), signatures: Vec::new(), module: Vec::new() };
        let image =
            OciSource { image: format!("r.example/p@sha256:{}", sha256(manifest.as_bytes())), ..OciSource::default() };
        let name = image_name(&image).unwrap();
        let map = about(&name, None, &fetched);
        let changed = about(&name, None, &Fetched { manifest: b"{}".to_vec(), ..fetched });
        let (first, other) = (part_name(&digest, 0), part_name(&sha256(b"other"), 0));
        let of = |source: &Source, about| held(source, about, [name.as_str(), &first, &other].into_iter());
        let oci = Source::Oci(Box::new(image));
        assert_eq!(of(&oci, Some(&map)), [name.as_str(), &first].into());
        // What says something else about the image is not believed.
        assert_eq!(of(&oci, Some(&changed)), [name.as_str()].into());
        assert_eq!(of(&oci, None), [name.as_str()].into());
        let url = ocm_api::policy::UrlSource {
            url: "https://r.example/p".to_owned(),
            sha256: digest.clone(),
            ca_certificates: None,
        };
        assert_eq!(of(&Source::Url(url), None), [first.as_str()].into());
        assert_eq!(of(&Source::Builtin("p".to_owned()), None), BTreeSet::new());
    }

    #[test]
    fn signatures_that_were_known_stay_and_their_number_is_bounded() {
        let signature = |text: String| Signature::new(text.as_bytes(), "");
        let fetched = |numbers: std::ops::Range<usize>| Fetched {
            manifest: b"m".to_vec(),
            signatures: numbers.map(|number| signature(number.to_string())).collect(),
            module: Vec::new(),
        };
        let mut first = about("n", None, &fetched(0..2));
        first.metadata.resource_version = Some("7".to_owned());
        let second = about("n", Some(&first), &fetched(1..3));
        let expected: Vec<Signature> = ["1", "2", "0"].map(|text| signature(text.to_owned())).into();
        assert_eq!(contents(&second), (b"m".to_vec(), expected));
        assert_eq!(second.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(contents(&about("n", Some(&second), &fetched(10..60))).1.len(), MAX_SIGNATURES);
        assert_eq!(contents(&ConfigMap::default()), (Vec::new(), Vec::new()));
    }
}
