//! The policies of a hub.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::conditions::hub_policy::{DEGRADED, ENFORCING, LOADED};
use ocm_api::conditions::{TRUE, find};
use ocm_api::policy::{HubPolicy, Module};
use ocm_cli::Ui;
use ocm_cli::list::{NONE, View, age, follow, show};
use ocm_core::hub_policy::{condition, disabled};
use ocm_core::{Exit, Failure};
use ocm_flows::policies::{PolicyRow, policies, watch_policies};
use ocm_kube::connect;
use serde_json::Value;

use crate::args::hub::PolicyListArgs;

pub(crate) async fn run(args: PolicyListArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PolicyListArgs { list, client } = args;
    let hub = connect(&client.connection()?, ui.clone()).await?;
    let selector = list.selector.as_deref();
    if list.watch {
        let changes = watch_policies(&hub, &list.names, selector);
        return follow::<Policies>(&ui, &list, changes, |_| true).await;
    }
    show::<Policies>(&ui, &list, policies(&hub, &list.names, selector).await?)
}

/// HubPolicies with whether they are in force.
struct Policies;

impl View for Policies {
    type Row = PolicyRow;

    const HEADINGS: &'static [&'static str] = &[
        "NAME",
        "MODULE",
        "MODE",
        "LOADED",
        "ENFORCING",
        "DIGEST",
        "AUTO-APPROVE",
        "AGE",
        "ON ERROR",
        "KIND",
        "DEGRADED",
    ];
    const NARROW: usize = 8;
    const NOTHING: &'static str = "the hub has no policies";
    const NO_MATCH: &'static str = "no policy matches";
    const COLUMNS: &'static [&'static str] = &["name", "module", "mode", "loaded", "enforcing", "auto-approve", "age"];

    fn cells(row: &PolicyRow, now: Timestamp) -> Vec<String> {
        let policy = &row.object;
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or(NONE).to_owned();
        let status = policy.status.as_ref();
        let degraded = status.and_then(|status| find(&status.conditions, DEGRADED));
        vec![
            row.name().to_owned(),
            text(module(policy)),
            mode(policy),
            text(condition(policy, LOADED)),
            text(condition(policy, ENFORCING)),
            text(status.and_then(|status| status.digest.as_deref())),
            if policy.spec.auto_approve { "True" } else { "False" }.to_owned(),
            age(now, row.created()),
            policy.spec.on_error.to_string(),
            text(status.and_then(|status| status.kind.as_deref())),
            text(degraded.filter(|degraded| degraded.status == TRUE).map(|degraded| degraded.message.as_str())),
        ]
    }

    fn reference(row: &PolicyRow) -> String {
        reference(row.name())
    }

    fn document(row: &PolicyRow) -> Value {
        Self::object(row)
    }

    fn object(row: &PolicyRow) -> Value {
        serde_json::to_value(&row.object).unwrap_or_default()
    }

    fn created(row: &PolicyRow) -> Option<Timestamp> {
        row.created()
    }
}

/// What kubectl calls a policy.
pub(crate) fn reference(name: &str) -> String {
    format!("hubpolicy.policy.kubectl-ocm.dev/{name}")
}

/// The mode, and whether it is that only for the time being.
pub(crate) fn mode(policy: &HubPolicy) -> String {
    let note = if disabled(policy).is_some() { " (disabled)" } else { "" };
    format!("{}{note}", policy.spec.mode)
}

/// Name of the builtin module, of the object that holds the module, or of the image or the URL that it is.
fn module(policy: &HubPolicy) -> Option<&str> {
    match policy.spec.module.module()? {
        Module::Builtin(name) => Some(name),
        Module::ConfigMap(entry) | Module::Secret(entry) => Some(&entry.name),
        Module::Oci(image) => Some(&image.image),
        Module::Url(file) => Some(&file.url),
        Module::Path(path) => Some(path),
        _ => None,
    }
}
