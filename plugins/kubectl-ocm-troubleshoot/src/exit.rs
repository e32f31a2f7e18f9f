//! How the command ends, by what a report says.

use ocm_checks::judge::{Report, Unknown};
use ocm_core::{Exit, Reason};

use crate::args::FailOn;

/// Whether nothing is left to wait for: rights do not come by themselves.
pub(crate) fn waits_in_vain(report: &Report, exit: Exit) -> bool {
    let forbidden = |unknown: &Unknown| unknown.trouble.reason == Reason::Forbidden;
    exit == Exit::Inconclusive && report.unknown.iter().all(forbidden)
}

/// How the command ends.
pub(crate) fn exit(report: &Report, fail_on: FailOn) -> Exit {
    let Some(severity) = fail_on.least() else { return Exit::Ok };
    match report.at_least(severity).next() {
        Some(_) => Exit::Findings,
        None if !report.unknown.is_empty() => Exit::Inconclusive,
        None => Exit::Ok,
    }
}
