//! RegistrationApprovals: that whoever wrote one is who it says, and may approve.

use ocm_rules::Code;

use super::cel::text;
use super::policy::{Check, Policy, Rule};

/// Name of the policy, and of its binding: while both are there, approvals are their authors' own words.
pub const GUARD: &str = "registrationapprovals.baseline.kubectl-ocm.dev";

const GROUP: &str = "policy.kubectl-ocm.dev";

/// The virtual verb on registrations that it takes to approve one.
pub const APPROVE: &str = "approve";
/// The virtual verb on registrations that an approval with breakGlass takes.
pub const BREAK_GLASS: &str = "break-glass";

/// Nobody's approval counts for longer, in days.
pub const MAX_DAYS: u32 = 30;
/// None with breakGlass counts for longer, in hours.
pub const MAX_BREAK_GLASS_HOURS: u32 = 4;

/// The policy. It has no settings: what counts for others may not depend on what somebody chose here.
pub(super) fn policy() -> Policy {
    let may = |verb: &str| {
        format!(
            "authorizer.group({}).resource(\"registrations\").name(object.spec.cluster.name).check({}).allowed()",
            text(GROUP),
            text(verb)
        )
    };
    Policy {
        name: GUARD,
        rules: vec![Rule { group: GROUP, version: "*", resource: "registrationapprovals", operations: &["CREATE"] }],
        conditions: Vec::new(),
        variables: vec![
            ("breakGlass", "object.spec.?breakGlass.orValue(false)".to_owned()),
            // The API server's own time.
            ("created", "timestamp(object.metadata.creationTimestamp)".to_owned()),
            ("expires", "timestamp(object.spec.expiresAt)".to_owned()),
        ],
        checks: vec![
            Check::new(
                Code::Approver,
                "an approval has to name its author as the approver",
                "object.spec.approver == request.userInfo.username",
            ),
            Check::new(
                Code::ApproverGroups,
                "an approval may name only groups of its author",
                "object.spec.?groups.orValue([]).all(g, g in request.userInfo.?groups.orValue([]))",
            ),
            Check::new(
                Code::ApprovalRight,
                format!(
                    "to approve a registration takes the right to {APPROVE} registrations in the group {GROUP} of the \
                     name of its cluster"
                ),
                format!("variables.breakGlass || {}", may(APPROVE)),
            ),
            Check::new(
                Code::ApprovalRight,
                format!(
                    "an approval with breakGlass takes the right to {BREAK_GLASS} registrations in the group {GROUP} of \
                     the name of its cluster"
                ),
                format!("!variables.breakGlass || {}", may(BREAK_GLASS)),
            ),
            Check::new(
                Code::ApprovalExpiry,
                "an approval may not have ended when it is given",
                "variables.expires > variables.created",
            ),
            Check::new(
                Code::ApprovalExpiry,
                format!("an approval has to end within {MAX_DAYS} days"),
                format!("variables.expires <= variables.created + duration(\"{}h\")", MAX_DAYS * 24),
            ),
            Check::new(
                Code::ApprovalExpiry,
                format!("an approval with breakGlass has to end within {MAX_BREAK_GLASS_HOURS} hours"),
                format!(
                    "!variables.breakGlass || variables.expires <= variables.created + \
                     duration(\"{MAX_BREAK_GLASS_HOURS}h\")"
                ),
            ),
        ],
    }
}
