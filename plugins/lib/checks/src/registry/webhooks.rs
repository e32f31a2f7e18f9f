//! 1118: whether the certificates that the hub's webhooks serve with are valid.

use jiff::SignedDuration;
use ocm_api::names::{namespaces, webhooks};
use ocm_core::certificate::Certificate;
use ocm_core::duration::human;

use super::next::{RESTART, hub_operator};
use super::{Category, Check, Input, Page, Rule};
use crate::facts::Facts;
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{HubSide, Observed, ServingFacts, Side};
use crate::text;

/// How much later than the time of a look a certificate may begin: the look goes on for a while, and the operator makes
/// certificates that began a second ago.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(1);

/// Why nothing is said where nothing is wrong with what was read.
const UNREAD: &str = "the certificates of the hub's webhooks are in Secrets with their private keys, and not all of those were \
                      read: whoever may read them is told, also by `kubectl ocm tls-check`";

/// The check of the webhooks' certificates.
pub(super) const CHECKS: &[Check] = &[Check {
    id: Id(1118),
    slug: "webhook-certificates-valid",
    title: "the certificates of the hub's webhooks are valid",
    category: Category::Hub,
    severity: Severity::Error,
    inputs: &[Input::WebhookCertificates],
    after: &[Id(1102), Id(1103), Id(1104), Id(1110), Id(1111), Id(1115), Id(1116)],
    rule: Rule::Hub(certificates_valid),
    page: Page {
        means: "The certificate that a webhook of Open Cluster Management serves with has expired, or is not valid yet: the API server \
                refuses whatever it has to ask it about with `failed calling webhook … x509: certificate has expired or is not yet \
                valid`. Of managed clusters nothing can be created or changed, of works neither, so that agents do not take them up \
                and nothing that is deleted goes; of add-ons the other version cannot be read. Certificates live for 30 days and are \
                renewed when a fifth of that is left: one with less than a tenth is a warning.",
        happens: "The hub's operator, which renews them, did not run for six days or more, or may not write the Secret; or a hub was \
                  restored from an old backup. Of one that is not valid yet: the operator's clock is ahead of the API server's.",
        mend: "Bring the operator up, or restart it: it makes a new certificate at once, and the webhook reads it within minutes. If it \
               does not, delete the Secret that the evidence names: the operator writes a new one. One that is not valid yet the operator \
               takes for good: set the clock right on the nodes that it runs on, and delete the Secret. Then look at the rest by \
               `kubectl ocm tls-check`.",
        mended: "`kubectl ocm tls-check` shows a later end, and `kubectl annotate managedcluster NAME a=b --dry-run=server` is not refused.",
    },
}];

/// What the API server asks webhooks about, by their Services: in words, and the findings that it explains if it cannot ask.
const ASKED: [(&str, &str, &[Id]); 3] = [
    (
        webhooks::REGISTRATION_SERVICE,
        "create and update of managedclusters and managedclustersetbindings",
        &[Id(2201), Id(2205), Id(3110), Id(6101)],
    ),
    (webhooks::WORK_SERVICE, "create and update of manifestworks", &[Id(5102), Id(5103)]),
    (webhooks::ADDON_SERVICE, "conversion of managedclusteraddons and clustermanagementaddons to another version", &[]),
];

/// The findings that works may explain, and a webhook of theirs does not.
const OTHERS: [Id; 1] = [Id(5101)];

fn certificates_valid(facts: &Facts<'_>, hub: &HubSide) -> Outcome {
    let serving = hub.serving.read().map(Vec::as_slice).unwrap_or_default();
    let findings: Vec<Finding> = serving.iter().filter_map(|serving| not_valid(facts, hub, serving)).collect();
    let trouble = serving.iter().find_map(|serving| match &serving.certificate {
        Observed::Trouble(trouble) => Some(trouble),
        Observed::Read(_) | Observed::NotAsked => None,
    });
    match trouble {
        _ if !findings.is_empty() => Outcome::Found(findings),
        // Those that were not read may be another matter.
        Some(trouble) => Outcome::Unknown(trouble.clone()),
        None if serving.iter().any(|serving| serving.certificate.read().is_none()) => Outcome::skip(UNREAD),
        None => Outcome::Pass,
    }
}

/// What is wrong with the certificate of a webhook, as a finding.
fn not_valid(facts: &Facts<'_>, hub: &HubSide, serving: &ServingFacts) -> Option<Finding> {
    let ServingFacts { namespace, secret, service, certificate } = serving;
    let Certificate { not_before, not_after, .. } = Certificate::read(&certificate.read()?.0)?;
    let life = not_after.duration_since(not_before);
    let left = not_after.duration_since(facts.now);
    let is_early = not_before.duration_since(facts.now) > TOLERANCE;
    let (finding, cause) = if left < SignedDuration::ZERO {
        let ago = facts.ago(Some(not_after));
        let text = format!("the certificate of webhook {service} expired {ago} ago");
        (Finding::error(text), "the hub's operator, which renews it, did not run, or may not write the Secret")
    } else if is_early {
        let text = format!("the certificate of webhook {service} is not valid before {not_before}");
        (Finding::error(text), "the clock of the hub's operator, which made it, is ahead of the API server's")
    } else if left <= life / 10 {
        let ends = human(left.try_into().unwrap_or_default());
        let text = format!("the certificate of webhook {service} ends in {ends} and has not been renewed");
        (Finding::warning(text), "the hub's operator, which renews it, does not run, or may not write the Secret")
    } else {
        return None;
    };
    let is_asked = |(known, ..): &&(&str, &str, &[Id])| known == service;
    let (_, what, explained) = ASKED.iter().find(is_asked).copied().unwrap_or_default();
    let others = ASKED.iter().flat_map(|(.., ids)| ids.iter()).chain(&OTHERS).copied();
    let unrelated = others.filter(|id| !explained.contains(id)).collect();
    let finding = Finding { unrelated, ..finding }
        .on(Side::Hub, "Secret", Some(namespace), secret)
        .seen(format!("Secret {namespace}/{secret}: valid from {not_before} until {not_after}"));
    let finding = match finding.severity {
        Severity::Error => finding.seen(format!(
            "this ends with `failed calling webhook … x509: certificate has expired or is not yet valid`: {what}"
        )),
        // As yet it is asked, and answers.
        Severity::Warning => finding.seen(format!("the webhook has to be asked about {what}")).apart(),
    };
    // What is let through is not refused, and that is a finding of its own.
    let own = format!("{}/{service}", namespaces::HUB);
    let open = hub.webhooks.read().into_iter().flatten().filter(|webhook| webhook.fails_open && webhook.service == own);
    let open: Vec<&str> = open.map(|webhook| webhook.name.as_str()).collect();
    let finding = match open.is_empty() {
        true => finding,
        false => finding.seen(format!("but not where failurePolicy is Ignore: {}", text::list(open))),
    };
    let finding = finding.because(cause);
    let finding = match is_early {
        // The operator renews what ends soon, is of another authority or for other names, and nothing else.
        true => finding
            .advise("set the clock right on the nodes of the hub's operator, and delete the Secret: it is recreated")
            .run(Side::Hub, "kubectl delete secret/{} -n {}", &[secret, namespace]),
        false => finding.run(Side::Hub, RESTART, &[hub_operator(hub)]),
    };
    Some(finding.run(Side::Hub, "kubectl ocm tls-check", &[]))
}
