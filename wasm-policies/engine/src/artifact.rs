//! Machine code together with what the policy says of itself.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use ocm_policy_abi::Manifest;
use ocm_policy_rules::{PolicyError, check_manifest};
use serde::{Deserialize, Serialize};

use crate::engine::config;
use crate::module::{Kind, WORLD};

/// What an artifact is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The kind of the module.
    pub kind: Kind,
    /// What the policy says of itself.
    pub manifest: Manifest,
    /// SHA-256 over the module, lower-case hex.
    pub module_digest: String,
    /// SHA-256 over the settings, lower-case hex.
    pub settings_digest: String,
    /// The settings byte by byte as they were given.
    pub settings: String,
    /// What instances are given of the settings; none where they are part of the code already.
    pub settings_for_instances: Option<String>,
    /// For which engine the code is.
    pub compatibility: String,
}

/// Machine code and what it is of. Whoever runs one trusts where it came from: it must be the answer of a
/// [`Compiler`](crate::Compiler) or of a [`crate::Cache`].
#[derive(Clone)]
pub struct Artifact {
    header: Header,
    bytes: Vec<u8>,
    code: usize,
}

/// No artifact has more bytes of machine code.
pub(crate) const MOST_CODE: usize = 64 << 20;

/// Why a module with too much machine code is refused.
pub(crate) fn too_much_code() -> PolicyError {
    PolicyError::Load(format!("it cannot be compiled: its machine code is larger than {} MiB", MOST_CODE >> 20))
}

const MAGIC: &[u8; 8] = b"ocmpol02";

impl Artifact {
    pub(crate) fn new(header: Header, code: &[u8]) -> Result<Self, PolicyError> {
        check_manifest(&header.manifest)?;
        if code.len() > MOST_CODE {
            return Err(too_much_code());
        }
        let json = serde_json::to_vec(&header)
            .map_err(|error| PolicyError::Load(format!("its manifest cannot be kept: {error}")))?;
        let mut bytes = Vec::with_capacity(MAGIC.len() + 4 + json.len() + code.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&json);
        let at = bytes.len();
        bytes.extend_from_slice(code);
        Ok(Self { header, bytes, code: at })
    }

    /// What [`Artifact::bytes`] gave. `None` when it is anything else, or its manifest is more than manifests may be: whoever
    /// compiled it may have been taken over by the module, or have been a version with other bounds.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let header: Header = serde_json::from_slice(rest.get(..length)?).ok()?;
        let code = MAGIC.len() + 4 + length;
        let is_usable = header.compatibility == compatibility() && check_manifest(&header.manifest).is_ok();
        is_usable.then_some(Self { header, bytes, code })
    }

    /// What it is of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All of it, as its owner.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The machine code, for shards to run.
    pub(crate) fn code(&self) -> &[u8] {
        &self.bytes[self.code..]
    }
}

/// What modules are refused for before they are compiled: one more whenever that changes, so that nothing stays in a cache that
/// would not come into it.
const CHECKS: u32 = 1;

/// Tells engines and versions of this crate apart whose code is not interchangeable.
pub(crate) fn compatibility() -> String {
    let mut hasher = DefaultHasher::new();
    // Core modules become components of the contract when they are compiled.
    WORLD.hash(&mut hasher);
    CHECKS.hash(&mut hasher);
    if let Ok(engine) = wasmtime::Engine::new(&config()) {
        engine.precompile_compatibility_hash().hash(&mut hasher);
    }
    format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str) -> Header {
        Header {
            kind: Kind::Component,
            manifest: Manifest { name: name.to_owned(), ..Manifest::default() },
            module_digest: String::new(),
            settings_digest: String::new(),
            settings: "{}".to_owned(),
            settings_for_instances: None,
            compatibility: compatibility(),
        }
    }

    #[test]
    fn too_much_machine_code_is_refused() {
        let header = || header("p");
        // Zeros take no memory until somebody writes to them.
        let code = vec![0_u8; MOST_CODE + 1];
        assert_eq!(Artifact::new(header(), &code).err(), Some(too_much_code()));
        assert!(Artifact::new(header(), &code[..MOST_CODE]).is_ok());
    }

    #[test]
    fn an_artifact_whose_manifest_is_too_large_is_neither_made_nor_read() {
        let most = "n".repeat(253);
        let made = Artifact::new(header(&most), b"code").unwrap().into_bytes();
        assert_eq!(Artifact::from_bytes(made.clone()).unwrap().header(), &header(&most));
        let longer = most.clone() + "n";
        assert!(
            matches!(Artifact::new(header(&longer), b"code").err(), Some(PolicyError::Load(why)) if why.contains("254"))
        );
        // As a compiler writes it that checks nothing.
        let json = serde_json::to_vec(&header(&longer)).unwrap();
        let length = u32::try_from(json.len()).unwrap().to_le_bytes();
        assert!(Artifact::from_bytes([&MAGIC[..], &length, &json, b"code"].concat()).is_none());
    }
}
