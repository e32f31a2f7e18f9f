//! 1117: whoever else the hub's API server asks about registrations.

use std::collections::{BTreeMap, BTreeSet};

use ocm_core::policy_engine;
use ocm_core::workload::Health;

use super::{Category, Check, Input, Page, Rule};
use crate::facts::Facts;
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{AdmissionFacts, HubSide, Side};
use crate::text;

/// The check of others' webhooks.
pub(super) const CHECKS: &[Check] = &[Check {
    id: Id(1117),
    slug: "others-webhooks-answer",
    title: "every webhook that can refuse registrations has a server",
    category: Category::Hub,
    severity: Severity::Error,
    inputs: &[Input::Admission],
    after: &[],
    rule: Rule::Hub(others_answer),
    page: Page {
        means: "A webhook configuration that is none of Open Cluster Management has the hub's API server ask about managed clusters, \
                certificate requests, works or leases, refuses them without an answer (`failurePolicy: Fail`), and nothing is \
                behind the Service that it names. Whatever it is asked about ends with `failed calling webhook`: nobody can \
                register, be accepted or be brought works, and where it is about leases nobody is heard of.",
        happens: "A policy engine was removed, and its webhook configuration was left behind; its pods do not run; or it is asked about \
                  everything, and the nodes that it needs are down.",
        mend: "Bring the server up that the evidence names. If nobody needs it any more, delete the webhook configuration. That of this \
               project's policy engine is removed by `kubectl ocm uninstall policy-engine`, or opened for some time by `kubectl ocm \
               policy emergency --reason TEXT`. Behind a Service of type ExternalName is a server outside of the cluster, of which \
               nothing is seen; an API server with `--enable-aggregator-routing` does not dial it, and refuses all that its webhook has \
               to be asked about: `unsupported service type`. Webhooks that are limited by selectors or by conditions are not looked \
               at: whether those are asked, and answer, shows in the error alone.",
        mended: "`kubectl get endpointslices` of the Service's namespace lists a ready address, or the configuration is gone.",
    },
}];

/// What comes of it when a resource cannot be stored: the findings that such a webhook explains.
const EXPLAINED: [(&str, &[Id]); 3] = [
    ("managedclusters", &[Id(2201), Id(2205)]),
    ("certificatesigningrequests", &[Id(2202)]),
    ("leases", &[Id(1116), Id(3101)]),
];

/// How many Services a report tells of.
const SHOWN: usize = 5;

fn others_answer(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    // Of an engine whose pods are not ready yet another check tells.
    let engine = hub.policy_engine.read().map(Vec::as_slice).unwrap_or_default();
    let is_known = engine.iter().any(|workload| workload.health != Health::Ready || workload.replicas == 0);
    let mut silent: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    let mut outside: BTreeMap<&str, Option<bool>> = BTreeMap::new();
    for facts in hub.admission.read().into_iter().flatten() {
        let AdmissionFacts { configuration, service, about, has_endpoint, is_external } = facts;
        let is_engines = service.split_once('/').is_some_and(|(namespace, _)| namespace == policy_engine::NAMESPACE);
        // That of our own engine never stands for a name outside.
        let is_outside = *is_external == Some(true) && !is_engines;
        if !(*has_endpoint || is_outside || is_engines && is_known) {
            outside.insert(service, *is_external);
            let (configurations, kinds) = silent.entry(service).or_default();
            configurations.insert(configuration);
            kinds.extend(about.iter().map(String::as_str));
        }
    }
    let findings = silent.into_iter().take(SHOWN).map(|(service, (configurations, kinds))| {
        let (namespace, name) = service.split_once('/').unwrap_or(("", service));
        let other = EXPLAINED.iter().filter(|(resource, _)| !kinds.iter().any(|kind| kind == resource));
        let unrelated = other.flat_map(|(_, ids)| ids.iter().copied()).collect();
        let text =
            format!("nothing is behind Service {service}, whose webhook has to be asked about {}", text::list(kinds));
        let finding = Finding { unrelated, ..Finding::error(text) };
        let finding = finding.on(Side::Hub, "Service", Some(namespace), name);
        let finding = configurations
            .iter()
            .fold(finding, |finding, configuration| finding.on(Side::Hub, "WebhookConfiguration", None, configuration));
        let finding = match outside.get(service).copied().flatten() {
            None => finding.seen("its type was not read: one of type ExternalName has no endpoints by design"),
            Some(true) => finding.seen("its type is ExternalName, which that of the policy engine never is"),
            Some(false) => finding,
        };
        finding
            .seen("the API server refuses what it cannot ask about: failurePolicy is Fail")
            .because("its pods do not run, or the configuration was left behind when it was removed")
            .run(Side::Hub, "kubectl get deployments,pods,endpointslices -n {}", &[namespace])
            .run(Side::Hub, "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations", &[])
    });
    Outcome::of(findings.collect())
}
