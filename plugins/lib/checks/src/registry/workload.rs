//! What is wrong with a Deployment.

use ocm_core::workload::Health;

use crate::causes;
use crate::finding::{Finding, Severity};
use crate::snapshot::{Side, Workload};

/// With how to see more of a Deployment.
fn described(finding: Finding, side: Side, namespace: &str, name: &str) -> Finding {
    finding.run(side, "kubectl describe deployment/{} -n {}", &[name, namespace])
}

/// What is wrong with a Deployment, as a finding.
pub(super) fn unwell(side: Side, workload: &Workload) -> Option<Finding> {
    let Workload { namespace, name, health, replicas, .. } = workload;
    let finding = |text: String| Finding::error(text).on(side, "Deployment", Some(namespace), name);
    if *replicas == 0 {
        return Some(
            finding(format!("Deployment {namespace}/{name} is scaled to 0"))
                .because("somebody has scaled it down, or what scales it up does not run")
                .run(side, "kubectl scale deployment/{} -n {} --replicas=1", &[name, namespace]),
        );
    }
    let lack = health.lack()?;
    // What is on its way may only need time.
    let is_coming = matches!(health, Health::NotYet(_));
    let severity = if is_coming { Severity::Warning } else { Severity::Error };
    let found = finding(format!("Deployment {namespace}/{name} is not ready: {}", lack.because));
    let found = Finding { severity, is_coming, ..found };
    let found = match causes::pods(lack) {
        Some(cause) => found.because(cause),
        None => found,
    };
    let found = lack.count.iter().chain(&lack.log).fold(found, Finding::seen);
    Some(described(found, side, namespace, name))
}
