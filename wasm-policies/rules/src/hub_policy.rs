//! What a HubPolicy says, in the words of those who ask and count its policy.

use ocm_api::policy::{BreakGlass, HubPolicySpec, OnError as Said, PolicyGrants, PolicyLimits, PolicyMode};
use ocm_policy_abi::{EditGrant, LimitsAsked};
use serde_json::{Map, Value, json};

use crate::enforcement::{Enforcement, Mode, OnError};

impl From<&HubPolicySpec> for Enforcement {
    /// Words of a newer release are taken for the strictest that this one knows.
    fn from(spec: &HubPolicySpec) -> Self {
        Self {
            mode: match spec.mode {
                PolicyMode::Warn => Mode::Warn,
                PolicyMode::Audit => Mode::Audit,
                PolicyMode::Enforce | PolicyMode::Other(_) => Mode::Enforce,
            },
            on_error: match spec.on_error {
                Said::Hold => OnError::Hold,
                Said::Deny | Said::Other(_) => OnError::Deny,
            },
            auto_approve: spec.auto_approve,
            break_glass: spec.break_glass == BreakGlass::Allowed,
        }
    }
}

/// What a policy may change. What a newer release grants that this one does not know is not granted.
pub fn granted(grants: &PolicyGrants) -> Vec<EditGrant> {
    grants.edits.iter().filter_map(|grant| serde_json::from_value(json!(grant)).ok()).collect()
}

/// The most that one decision of a policy may use; none: as much as every policy.
pub fn limits(limits: &PolicyLimits) -> LimitsAsked {
    LimitsAsked { fuel: limits.fuel, memory_bytes: limits.memory_bytes }
}

/// The settings of a policy as it gets them.
pub fn settings(said: Option<&Map<String, Value>>) -> String {
    said.map_or_else(|| "{}".to_owned(), |settings| json!(settings).to_string())
}
