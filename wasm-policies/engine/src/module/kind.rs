//! What sort of module a file holds, told from its content.

use ocm_policy_abi::INTERFACE;
use ocm_policy_rules::PolicyError;
use serde::{Deserialize, Serialize};

use crate::module::sections::Anatomy;

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

    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Component,
        Self::Core,
        Self::KubewardenWapc,
        Self::KubewardenWasi,
        Self::Opa,
        Self::Gatekeeper,
        Self::WasiCommand,
    ];

    /// What sort of module it is: what it is declared to be, or else what its content tells.
    pub(crate) fn of(anatomy: &Anatomy<'_>) -> Result<Kind, PolicyError> {
        let Some(declared) = anatomy.declared_kind()? else { return Self::told(anatomy) };
        let (fits, needs) = match declared {
            Self::Component | Self::Core => (Self::told(anatomy)? == declared, INTERFACE),
            Self::KubewardenWapc => (anatomy.has("__guest_call"), "__guest_call"),
            Self::Opa | Self::Gatekeeper => (anatomy.has("opa_eval_ctx_new"), "opa_eval_ctx_new"),
            Self::KubewardenWasi | Self::WasiCommand => (anatomy.has("_start"), "_start"),
        };
        match fits && anatomy.is_component == (declared == Self::Component) {
            true => Ok(declared),
            false => Err(PolicyError::Load(format!(
                "it is declared to be of the kind {}, and does not export {needs} as such modules do; it exports {}",
                declared.word(),
                anatomy.list()
            ))),
        }
    }

    /// What the content of a module tells.
    fn told(anatomy: &Anatomy<'_>) -> Result<Kind, PolicyError> {
        if anatomy.is_component {
            if !anatomy.has(INTERFACE) {
                return Err(PolicyError::Load(format!(
                    "this component does not export {INTERFACE}; it exports {}",
                    anatomy.list()
                )));
            }
            return Ok(Kind::Component);
        }
        if anatomy.has(&format!("{INTERFACE}#decide")) {
            return Ok(Kind::Core);
        }
        let mode = anatomy.kubewarden.and_then(|json| serde_json::from_slice::<serde_json::Value>(json).ok());
        match mode.as_ref().map(|metadata| metadata["executionMode"].as_str().unwrap_or("kubewarden-wapc")) {
            Some("kubewarden-wapc") => return Ok(Kind::KubewardenWapc),
            Some("wasi") => return Ok(Kind::KubewardenWasi),
            Some("opa") => return Ok(Kind::Opa),
            Some("gatekeeper") => return Ok(Kind::Gatekeeper),
            Some(other) => {
                return Err(PolicyError::Load(format!(
                    "this Kubewarden policy has the execution mode {other:?}, which is not supported"
                )));
            }
            None => {}
        }
        if anatomy.has("__guest_call") {
            return Ok(Kind::KubewardenWapc);
        }
        if anatomy.has("opa_eval_ctx_new") {
            return Ok(Kind::Opa);
        }
        if anatomy.has("_start") && anatomy.imports.iter().all(|(module, _)| *module == "wasi_snapshot_preview1") {
            return Ok(Kind::WasiCommand);
        }
        Err(PolicyError::Load(format!(
            "unsupported module type: it exports neither {INTERFACE} nor __guest_call, opa_eval_ctx_new or _start; \
             it exports {}",
            anatomy.list()
        )))
    }
}

impl Anatomy<'_> {
    /// Whether its kind is declared, by a section, its manifest or the metadata of Kubewarden.
    pub(crate) fn declares_kind(&self) -> Result<bool, PolicyError> {
        Ok(self.kubewarden.is_some() || self.declared_kind()?.is_some())
    }

    /// The kind that a section or the member `kind` of the manifest declares. `kubewarden` is either of its two.
    fn declared_kind(&self) -> Result<Option<Kind>, PolicyError> {
        #[derive(Deserialize)]
        struct Named {
            #[serde(default)]
            kind: Option<String>,
        }
        let unreadable = |error: serde_json::Error| PolicyError::Load(format!("its manifest cannot be read: {error}"));
        let section = self.kind.map(|word| String::from_utf8_lossy(word).into_owned());
        let manifest = self.manifest.map(serde_json::from_slice::<Named>).transpose().map_err(unreadable)?;
        let manifest = manifest.and_then(|named| named.kind);
        let word = match (section, manifest) {
            (Some(section), Some(manifest)) if section != manifest => {
                return Err(PolicyError::Load(format!(
                    "it is declared to be of the kinds {section:?} and {manifest:?}"
                )));
            }
            (Some(word), _) | (None, Some(word)) => word,
            (None, None) => return Ok(None),
        };
        if word == "kubewarden" {
            return Ok(Some(if self.has("__guest_call") { Kind::KubewardenWapc } else { Kind::KubewardenWasi }));
        }
        let known = Kind::ALL.into_iter().find(|kind| kind.word() == word);
        known.map(Some).ok_or_else(|| {
            let words = Kind::ALL.map(Kind::word).join(", ");
            PolicyError::Load(format!("it is declared to be of the kind {word:?}; kinds are {words} and kubewarden"))
        })
    }
}
