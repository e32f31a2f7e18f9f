//! Bundles as `opa build --target wasm` writes them: an archive with a module and its data.

use std::io::{self, Read as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ocm_policy_engine::annotate;
use serde_json::{Map, Value};

use crate::files::MOST;

const MODULE: &str = "policy.wasm";
const DATA: &str = "data.json";

/// What lies beside the module and is of no use here. What the manifest says stands in the module as well; signatures
/// are for those who fetch bundles from servers, and whoever names a file vouches for it.
const BESIDE: [&str; 2] = [".manifest", ".signatures.json"];

/// Whether a file is packed as bundles are.
pub(crate) fn is_bundle(file: &[u8]) -> bool {
    file.starts_with(&[0x1f, 0x8b])
}

/// The module of a bundle. It carries the data of the bundle, where there is any.
///
/// # Errors
/// What is wrong with the bundle, in one sentence.
pub(crate) fn module(bundle: &[u8]) -> Result<Vec<u8>, String> {
    let mut archive = Vec::new();
    let unpacked = MultiGzDecoder::new(bundle).take(MOST + 1).read_to_end(&mut archive);
    unpacked.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    if archive.len() as u64 > MOST {
        return Err(format!("unpacked it is larger than {} MiB", MOST >> 20));
    }
    let broken = |error: io::Error| format!("it is no archive of files: {error}");
    let (mut modules, mut data) = (Vec::new(), None);
    for entry in tar::Archive::new(archive.as_slice()).entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path_bytes();
        let path = String::from_utf8_lossy(&path).into_owned();
        // OPA writes /policy.wasm; who packs a folder gets ./policy.wasm.
        let name = path.trim_start_matches("./").trim_start_matches('/');
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        // A sparse file says itself how long it is, and is zeros that nobody has packed.
        if !kind.is_file() {
            return Err(format!("{path} in it is no ordinary file"));
        }
        let mut content = || {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map(|_| bytes).map_err(broken)
        };
        if Path::new(name).file_name().is_some_and(|last| last == MODULE) {
            modules.push((path.clone(), content()?));
        } else if name == DATA {
            if data.replace(content()?).is_some() {
                return Err(format!("it holds {DATA} twice"));
            }
        } else if !BESIDE.contains(&name) && !name.ends_with(".rego") {
            return Err(format!("{path} is in it, which opa build --target wasm does not write"));
        }
    }
    let module = match modules.as_slice() {
        [(_, module)] => module,
        [] => return Err(format!("it holds no {MODULE}")),
        several => {
            let paths: Vec<&str> = several.iter().map(|(path, _)| path.as_str()).collect();
            return Err(format!("it holds several modules, and only one can be asked: {}", paths.join(", ")));
        }
    };
    let Some(data) = data else { return Ok(module.clone()) };
    let members: Map<String, Value> =
        serde_json::from_slice(&data).map_err(|error| format!("its {DATA} must be a JSON object: {error}"))?;
    // A module that carries nothing is the same, and has the same digest, with and without its bundle.
    Ok(if members.is_empty() { module.clone() } else { annotate(module, "ocm-policy-data", &data) })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, EntryType, Header};

    use super::*;

    const EMPTY: &[u8] = b"\0asm\x01\0\0\0";

    fn pack(archive: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(archive).unwrap();
        packed.finish().unwrap()
    }

    fn member(archive: &mut Builder<Vec<u8>>, path: &str, kind: EntryType, content: &[u8]) {
        let mut header = Header::new_gnu();
        // As OPA does; the library would not write paths that begin with a slash.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        if kind == EntryType::GNUSparse {
            // A gigabyte, of which nothing is packed.
            let gnu = header.as_gnu_mut().unwrap();
            gnu.set_real_size(1 << 30);
            gnu.sparse[0].set_offset(1 << 30);
            gnu.sparse[0].set_length(0);
        }
        header.set_cksum();
        archive.append(&header, content).unwrap();
    }

    fn bundle(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (path, content) in members {
            member(&mut archive, path, EntryType::Regular, content);
        }
        pack(&archive.into_inner().unwrap())
    }

    #[test]
    fn a_bundle_is_its_module_with_its_data() {
        let plain = bundle(&[
            ("/data.json", b"{}\n"),
            ("/src/policy.rego", b"package p"),
            ("/policy.wasm", EMPTY),
            ("/.manifest", b"{}"),
        ]);
        assert!(is_bundle(&plain) && !is_bundle(EMPTY));
        assert_eq!(module(&plain).as_deref(), Ok(EMPTY));
        let data = br#"{"a": 1}"#;
        let with_data = bundle(&[("./policy.wasm", EMPTY), ("./data.json", data)]);
        assert_eq!(module(&with_data), Ok(annotate(EMPTY, "ocm-policy-data", data)));
    }

    #[test]
    fn a_bundle_that_would_fill_the_memory_is_refused() {
        let bomb = pack(&vec![0; usize::try_from(MOST).unwrap() + 1]);
        assert!((bomb.len() as u64) < MOST / 100, "{} bytes", bomb.len());
        assert_eq!(module(&bomb), Err("unpacked it is larger than 64 MiB".to_owned()));
    }

    #[test]
    fn a_bundle_holds_one_module() {
        assert_eq!(module(&bundle(&[("/data.json", b"{}")])), Err("it holds no policy.wasm".to_owned()));
        let two = bundle(&[("/policy.wasm", EMPTY), ("/other/policy.wasm", EMPTY)]);
        let why = "it holds several modules, and only one can be asked: /policy.wasm, /other/policy.wasm";
        assert_eq!(module(&two), Err(why.to_owned()));
    }

    #[test]
    fn whatever_opa_does_not_write_is_refused() {
        let with = |path, content: &[u8]| module(&bundle(&[("/policy.wasm", EMPTY), (path, content)])).unwrap_err();
        for path in ["/other.wasm", "/nested/data.json", "/patch.json", "/etc/passwd"] {
            assert_eq!(with(path, b"{}"), format!("{path} is in it, which opa build --target wasm does not write"));
        }
        assert!(with("/data.json", b"[]").starts_with("its data.json must be a JSON object: "));
        let twice = bundle(&[("/data.json", b"{}"), ("/policy.wasm", EMPTY), ("data.json", b"{}")]);
        assert_eq!(module(&twice), Err("it holds data.json twice".to_owned()));
        for kind in [EntryType::Symlink, EntryType::Link, EntryType::GNUSparse, EntryType::Fifo] {
            let mut archive = Builder::new(Vec::new());
            member(&mut archive, "/policy.wasm", kind, b"");
            let why = module(&pack(&archive.into_inner().unwrap())).unwrap_err();
            assert_eq!(why, "/policy.wasm in it is no ordinary file", "{kind:?}");
        }
    }

    #[test]
    fn damage_is_told() {
        let whole = bundle(&[("/policy.wasm", EMPTY)]);
        let why = module(&whole[..whole.len() - 9]).unwrap_err();
        assert!(why.starts_with("it cannot be unpacked: "), "{why}");
        let why = module(&pack(&[b'x'; 1024])).unwrap_err();
        assert!(why.starts_with("it is no archive of files: "), "{why}");
    }
}
