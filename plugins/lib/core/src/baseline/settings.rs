//! What is chosen about the baseline.

use ocm_rules::{cluster, csr};

/// What becomes of a request that breaks a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enforcement {
    /// It is refused, and the audit log says why.
    #[default]
    Deny,
    /// It is let through; its sender gets a warning, and the audit log says why.
    Audit,
}

/// What is chosen about the baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of a request that breaks a rule.
    pub enforcement: Enforcement,
    /// What those who register clusters may bring.
    pub clusters: cluster::Settings,
    /// What agents may change of their own cluster.
    pub agents: cluster::AgentSettings,
    /// What may be asked for in a certificate request, and who registers clusters besides the hub's own bootstrap
    /// identities.
    pub requests: csr::Settings,
}
