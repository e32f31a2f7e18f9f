//! The flag of what modules are.

use clap::{Args, ValueEnum};

/// What the modules are, where they do not say it.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct KindArgs {
    /// Kind of the modules, where their content does not tell it: gatekeeper for templates of Gatekeeper
    // Told in docs/commands/policy.md.
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Option<ModuleKind>,
}

/// Kinds that a module can be declared to be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModuleKind {
    /// Rego whose entry point answers with violations
    Gatekeeper,
    /// Rego whose entry point allows, denies or holds
    Opa,
    /// A policy of Kubewarden, called through waPC or started as a WASI command
    Kubewarden,
    /// A WASI command of our contract
    WasiCommand,
}

impl ModuleKind {
    /// Its word in modules.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Gatekeeper => "gatekeeper",
            Self::Opa => "opa",
            Self::Kubewarden => "kubewarden",
            Self::WasiCommand => "wasi-command",
        }
    }
}
