//! The sections of a module: what its top level imports and exports, and the custom sections that matter here.

use ocm_policy_rules::PolicyError;
use wasm_encoder::{CustomSection, Section as _};
use wasmparser::{Encoding, Parser, Payload};

/// The custom section with the metadata of a Kubewarden policy, as JSON.
pub(crate) const KUBEWARDEN_METADATA: &str = "io.kubewarden.metadata";

/// A custom section with a manifest as JSON. It says for any kind of module what `describe` says for ours.
pub(crate) const MANIFEST: &str = "ocm-policy-manifest";

/// The custom section with the kind of a module, for one that does not say it itself: a word of [`crate::Kind`].
pub(crate) const KIND: &str = "ocm-policy-kind";

/// The custom section with the data document of a Rego bundle, as JSON.
pub(crate) const DATA: &str = "ocm-policy-data";

/// Adds a custom section to a module: a manifest (`ocm-policy-manifest`), the metadata of a Kubewarden policy
/// (`io.kubewarden.metadata`), or the data of a Rego policy (`ocm-policy-data`), each as JSON; or its kind
/// (`ocm-policy-kind`), one word.
pub fn annotate(module: &[u8], section: &str, content: &[u8]) -> Vec<u8> {
    let mut out = module.to_vec();
    CustomSection { name: section.into(), data: content.into() }.append_to(&mut out);
    out
}

/// What the top level of a module tells.
#[derive(Debug, Default)]
pub(crate) struct Anatomy<'m> {
    pub(crate) is_component: bool,
    /// Module and name of each import.
    pub(crate) imports: Vec<(&'m str, &'m str)>,
    pub(crate) exports: Vec<&'m str>,
    /// Custom sections that matter here.
    pub(crate) kind: Option<&'m [u8]>,
    pub(crate) manifest: Option<&'m [u8]>,
    pub(crate) kubewarden: Option<&'m [u8]>,
    pub(crate) data: Option<&'m [u8]>,
}

/// Looks at the top level of a module.
pub(crate) fn anatomy(module: &[u8]) -> Result<Anatomy<'_>, PolicyError> {
    let broken =
        |error: wasmparser::BinaryReaderError| PolicyError::Load(format!("this is no WebAssembly module: {error}"));
    let mut anatomy = Anatomy::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(broken)? {
            Payload::Version { encoding, .. } if depth == 0 => {
                anatomy.is_component = encoding == Encoding::Component;
                depth = 1;
            }
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ImportSection(imports) if depth == 1 => {
                for import in imports.into_imports() {
                    let import = import.map_err(broken)?;
                    anatomy.imports.push((import.module, import.name));
                }
            }
            Payload::ExportSection(exports) if depth == 1 => {
                for export in exports {
                    anatomy.exports.push(export.map_err(broken)?.name);
                }
            }
            Payload::ComponentImportSection(imports) if depth == 1 => {
                for import in imports {
                    anatomy.imports.push((import.map_err(broken)?.name.name, ""));
                }
            }
            Payload::ComponentExportSection(exports) if depth == 1 => {
                for export in exports {
                    anatomy.exports.push(export.map_err(broken)?.name.name);
                }
            }
            Payload::CustomSection(section) if depth == 1 => match section.name() {
                KIND => anatomy.kind = Some(section.data()),
                MANIFEST => anatomy.manifest = Some(section.data()),
                KUBEWARDEN_METADATA => anatomy.kubewarden = Some(section.data()),
                DATA => anatomy.data = Some(section.data()),
                _ => {}
            },
            _ => {}
        }
    }
    Ok(anatomy)
}

impl Anatomy<'_> {
    /// Whether it exports something of this name.
    pub(crate) fn has(&self, export: &str) -> bool {
        self.exports.contains(&export)
    }

    /// Its exports, for a message.
    pub(crate) fn list(&self) -> String {
        match self.exports.as_slice() {
            [] => "nothing".to_owned(),
            exports => exports.iter().take(8).copied().collect::<Vec<_>>().join(", "),
        }
    }
}

/// Whether making an instance runs code of the module. What cannot be read might.
pub(crate) fn starts_with_guest_code(module: &[u8]) -> bool {
    Parser::new(0).parse_all(module).any(|payload| {
        matches!(payload, Err(_) | Ok(Payload::StartSection { .. } | Payload::ComponentStartSection { .. }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_runs_at_the_start_is_seen_wherever_it_stands() {
        let starts = |text: &str| starts_with_guest_code(&wat::parse_str(text).unwrap());
        for quiet in ["(module (func))", "(component)", "(component (core module (func)))"] {
            assert!(!starts(quiet), "{quiet}");
        }
        for starting in [
            "(module (func) (start 0))",
            "(component (core module (func) (start 0)))",
            "(component (component (core module (func) (start 0))))",
            r#"(component (import "f" (func $f)) (start $f))"#,
        ] {
            assert!(starts(starting), "{starting}");
        }
        // Half of a module might start anything.
        assert!(starts_with_guest_code(b"\0asm\x01"));
    }
}
