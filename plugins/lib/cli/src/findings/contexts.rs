//! Findings with what to do next, in the contexts of both clusters.

use ocm_checks::finding::{Finding, Next};
use ocm_checks::registry::check;
use ocm_checks::snapshot::Side;
use serde_json::Value;

use crate::remedy::within;

/// The contexts of both clusters, for commands to paste.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    /// Of the hub.
    pub hub: Option<String>,
    /// Of the managed cluster.
    pub managed: Option<String>,
}

impl Contexts {
    /// What to do next, as it is typed: with the context of its cluster.
    pub fn line(&self, next: &Next) -> String {
        let (side, line) = match next {
            Next::Text(text) => return text.clone(),
            Next::Command { side, line } => (side, line),
        };
        within(line, self.of(*side))
    }

    /// The context of a side.
    pub fn of(&self, side: Side) -> Option<&str> {
        match side {
            Side::Hub => self.hub.as_deref(),
            Side::Managed => self.managed.as_deref(),
        }
    }

    /// A finding as machines read it: with its title, and its commands ready to be pasted.
    pub fn document(&self, finding: &Finding) -> Value {
        let mut value = serde_json::to_value(finding).unwrap_or_default();
        value["next"] = finding.next.iter().map(|next| self.line(next)).collect();
        value["title"] = check(finding.id).map_or("", |check| check.title).into();
        value
    }
}
