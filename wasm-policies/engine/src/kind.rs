//! What sort of module a file holds, told from its content.

use ocm_policy_abi::INTERFACE;
use serde::{Deserialize, Serialize};
use wasm_encoder::{CustomSection, Section as _};
use wasmparser::{Encoding, Parser, Payload};

use ocm_policy_rules::outcome::Fault;

use crate::program::opa::DATA;

/// The kinds of modules that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A component of our contract.
    Component,
    /// A core module that exports the functions of our contract; it is made a component when it is loaded.
    Core,
    /// A Kubewarden policy that is called through waPC.
    KubewardenWapc,
    /// A Kubewarden policy that is a WASI command.
    KubewardenWasi,
    /// Rego, compiled by OPA; entry points answer as their authors chose.
    Opa,
    /// Rego, compiled by OPA, in the style of Gatekeeper: an entry point that yields violations.
    Gatekeeper,
    /// A WASI command that reads our request from stdin and prints our decision.
    WasiCommand,
}

impl Kind {
    /// Its word in JSON, tables and records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Core => "core",
            Self::KubewardenWapc => "kubewarden-wapc",
            Self::KubewardenWasi => "kubewarden-wasi",
            Self::Opa => "opa",
            Self::Gatekeeper => "gatekeeper",
            Self::WasiCommand => "wasi-command",
        }
    }
}

/// The custom section with the metadata of a Kubewarden policy, as JSON.
pub(crate) const KUBEWARDEN_METADATA: &str = "io.kubewarden.metadata";

/// A custom section with a manifest as JSON. It says for any kind of module what `describe` says for ours.
pub(crate) const MANIFEST: &str = "ocm-policy-manifest";

/// Adds a custom section to a module: a manifest (`ocm-policy-manifest`), the metadata of a Kubewarden policy
/// (`io.kubewarden.metadata`), or the data of a Rego policy (`ocm-policy-data`), each as JSON.
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
    pub(crate) manifest: Option<&'m [u8]>,
    pub(crate) kubewarden: Option<&'m [u8]>,
    pub(crate) data: Option<&'m [u8]>,
}

/// Looks at the top level of a module.
pub(crate) fn anatomy(module: &[u8]) -> Result<Anatomy<'_>, Fault> {
    let broken = |error: wasmparser::BinaryReaderError| Fault::Load(format!("this is no WebAssembly module: {error}"));
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
    fn has(&self, export: &str) -> bool {
        self.exports.contains(&export)
    }

    /// What sort of module it is.
    pub(crate) fn kind(&self) -> Result<Kind, Fault> {
        if self.is_component {
            if !self.has(INTERFACE) {
                return Err(Fault::Load(format!(
                    "this component does not export {INTERFACE}; it exports {}",
                    self.list()
                )));
            }
            return Ok(Kind::Component);
        }
        if self.has(&format!("{INTERFACE}#decide")) {
            return Ok(Kind::Core);
        }
        let mode = self.kubewarden.and_then(|json| serde_json::from_slice::<serde_json::Value>(json).ok());
        match mode.as_ref().map(|metadata| metadata["executionMode"].as_str().unwrap_or("kubewarden-wapc")) {
            Some("kubewarden-wapc") => return Ok(Kind::KubewardenWapc),
            Some("wasi") => return Ok(Kind::KubewardenWasi),
            Some("opa") => return Ok(Kind::Opa),
            Some("gatekeeper") => return Ok(Kind::Gatekeeper),
            Some(other) => {
                return Err(Fault::Load(format!(
                    "this Kubewarden policy has the execution mode {other:?}, which is not supported"
                )));
            }
            None => {}
        }
        if self.has("__guest_call") {
            return Ok(Kind::KubewardenWapc);
        }
        if self.has("opa_eval_ctx_new") {
            return Ok(Kind::Opa);
        }
        if self.has("_start") && self.imports.iter().all(|(module, _)| *module == "wasi_snapshot_preview1") {
            return Ok(Kind::WasiCommand);
        }
        Err(Fault::Load(format!(
            "this module is of no kind that decides: it exports neither {INTERFACE} nor __guest_call, opa_eval_ctx_new or _start; \
             it exports {}",
            self.list()
        )))
    }

    fn list(&self) -> String {
        match self.exports.as_slice() {
            [] => "nothing".to_owned(),
            exports => exports.iter().take(8).copied().collect::<Vec<_>>().join(", "),
        }
    }
}
