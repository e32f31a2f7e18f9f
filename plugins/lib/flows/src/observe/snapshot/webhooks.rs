//! Whom the API server of a hub asks before it stores something.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Api;
use kube::api::ListParams;
use ocm_api::names::{namespaces, secrets, webhooks};
use ocm_api::parts::{
    Endpoint, EndpointSlice, MutatingWebhookConfiguration, Rule, Service, ValidatingWebhookConfiguration, Webhook,
    WebhookClient,
};
use ocm_checks::snapshot::{AdmissionFacts, Observed, ServingFacts, Trouble, WebhookFacts};
use ocm_core::name::is_dns_label;
use ocm_core::order::Collect as _;
use ocm_core::redact::redact;
use ocm_core::{Reason, certificate, policy_engine};
use ocm_kube::Cluster;

use super::kinds::{Kind, SECRETS};
use super::listing::{AT_ONCE, list, trouble};

const MUTATING: Kind = Kind::new("admissionregistration.k8s.io", "mutatingwebhookconfigurations");
const VALIDATING: Kind = Kind::new("admissionregistration.k8s.io", "validatingwebhookconfigurations");
pub(super) const SLICES: Kind = Kind::new("discovery.k8s.io", "endpointslices");
/// The type of Services that stand for a name outside of the cluster.
const EXTERNAL_NAME: &str = "ExternalName";

/// The Secrets that the hub's webhooks serve with, and their Services.
const SERVING: [(&str, &str); 3] = [
    (secrets::REGISTRATION_WEBHOOK_CERT, webhooks::REGISTRATION_SERVICE),
    (secrets::WORK_WEBHOOK_CERT, webhooks::WORK_SERVICE),
    (secrets::ADDON_WEBHOOK_CERT, webhooks::ADDON_SERVICE),
];

/// In how many namespaces Services of others are looked at.
const NAMESPACES: usize = 8;
/// Of how many of them without an endpoint the type is read.
const SILENT: usize = 8;

/// What a registration has the API server store: group, resource, whether it is in a namespace, and the operations that count.
const STORED: [(&str, &str, bool, &[&str]); 4] = [
    ("cluster.open-cluster-management.io", "managedclusters", false, &["CREATE", "UPDATE"]),
    ("certificates.k8s.io", "certificatesigningrequests", false, &["CREATE"]),
    ("work.open-cluster-management.io", "manifestworks", true, &["CREATE", "UPDATE"]),
    ("coordination.k8s.io", "leases", true, &["CREATE", "UPDATE"]),
];

/// An entry of a webhook configuration.
struct Hook {
    client: WebhookClient,
    /// What happens to requests when it fails.
    failure: Option<String>,
    /// What of a registration it is asked about, whatever is in it.
    about: Vec<&'static str>,
}

impl Hook {
    fn of(hook: Webhook) -> Self {
        let service = hook.client_config.service.as_ref();
        let is_engines = service.is_some_and(|service| service.namespace == policy_engine::NAMESPACE);
        let has_conditions = hook.match_conditions.is_some_and(|all| !all.is_empty());
        // Whether those are met is known where somebody registers. Those of our own leave out what is no registration.
        let about = match (has_conditions && !is_engines) || hook.object_selector.as_ref().is_some_and(selects) {
            true => Vec::new(),
            false => {
                let selects_namespaces = hook.namespace_selector.as_ref().is_some_and(selects);
                asked_about(hook.rules.as_deref().unwrap_or_default(), selects_namespaces)
            }
        };
        Self { client: hook.client_config, failure: hook.failure_policy, about }
    }
}

/// Whether a selector leaves anything out.
fn selects(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_some_and(|labels| !labels.is_empty())
        || selector.match_expressions.as_ref().is_some_and(|expressions| !expressions.is_empty())
}

/// The resources of a registration that rules are about. `selects_namespaces`: whether some namespaces are left out.
fn asked_about(rules: &[Rule], selects_namespaces: bool) -> Vec<&'static str> {
    let has = |list: &Option<Vec<String>>, wanted: &[&str]| {
        list.iter().flatten().any(|one| one == "*" || wanted.contains(&one.as_str()))
    };
    let is_about = |rule: &Rule, group: &str, resource: &str, is_namespaced: bool, operations: &[&str]| {
        let reaches = match rule.scope.as_deref() {
            Some("Cluster") => !is_namespaced,
            Some("Namespaced") => is_namespaced,
            _ => true,
        };
        reaches
            && has(&rule.api_groups, &[group])
            && has(&rule.api_versions, &["v1"])
            && has(&rule.resources, &["*/*", resource])
            && has(&rule.operations, operations)
    };
    let stored = STORED.iter().filter(|(group, resource, is_namespaced, operations)| {
        !(*is_namespaced && selects_namespaces)
            && rules.iter().any(|rule| is_about(rule, group, resource, *is_namespaced, operations))
    });
    stored.map(|(_, resource, ..)| *resource).collect()
}

/// A webhook configuration: its name, and its entries.
type Configuration = (String, Vec<Hook>);

/// The webhook configurations that a hub has to have, if it is to have them, and those of others that are in the way of
/// registrations while nothing answers.
pub(super) async fn observe(
    hub: &Cluster,
    has_own: bool,
) -> (Observed<Vec<WebhookFacts>>, Observed<Vec<AdmissionFacts>>) {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(hub.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(hub.client.clone());
    let all = ListParams::default();
    let configuration = |name: Option<String>, hooks: Vec<Webhook>| {
        Some((name.unwrap_or_default(), hooks.into_iter().map(Hook::of).collect::<Vec<_>>()))
    };
    let (mutating, validating, slices) = futures::join!(
        list(hub, MUTATING, None, &mutating, all.clone(), |found| configuration(found.metadata.name, found.webhooks)),
        list(hub, VALIDATING, None, &validating, all, |found| configuration(found.metadata.name, found.webhooks)),
        async {
            match has_own {
                true => slices_of(hub, namespaces::HUB).await.map(Some),
                false => Ok(None),
            }
        },
    );
    let (mutating, validating) = match (mutating, validating) {
        (Ok(mutating), Ok(validating)) => (mutating, validating),
        (Err(trouble), _) | (_, Err(trouble)) => {
            return match has_own {
                true => (Observed::Trouble(trouble.clone()), Observed::Trouble(trouble)),
                // A dump of a hub without them is whole.
                false if trouble.reason == Reason::NotInDump => (Observed::NotAsked, Observed::NotAsked),
                false => (Observed::NotAsked, Observed::Trouble(trouble)),
            };
        }
    };
    let own = match slices {
        Ok(None) => Observed::NotAsked,
        Err(trouble) => Observed::Trouble(trouble),
        Ok(Some(slices)) => {
            let mut facts = own(webhooks::MUTATING, &mutating, &slices);
            facts.extend(own(webhooks::VALIDATING, &validating, &slices));
            Observed::Read(facts)
        }
    };
    (own, others(hub, in_the_way(mutating.iter().chain(&validating))).await.into())
}

/// The certificates that the hub's webhooks serve with: a request for each of their Secrets. What is missing has no pod that
/// would serve, and is not told here.
pub(super) async fn serving(hub: &Cluster, namespace: &str) -> Vec<ServingFacts> {
    let api: Api<Secret> = Api::namespaced(hub.client.clone(), namespace);
    let reading = SERVING.into_iter().map(async |(name, service)| {
        let certificate = match api.get_opt(name).await {
            Ok(found) => found.as_ref().and_then(first_certificate).map(Observed::Read),
            Err(error) => {
                let rule = SECRETS.rule("get", Some(namespace));
                Some(unread(trouble(hub, format_args!("read Secret {namespace}/{name}"), error, rule)))
            }
        };
        certificate.map(|certificate| ServingFacts {
            namespace: namespace.to_owned(),
            secret: name.to_owned(),
            service: service.to_owned(),
            certificate,
        })
    });
    futures::future::join_all(reading).await.into_iter().flatten().collect()
}

/// The first certificate in a Secret, and nothing else of it; none: there is none that can be read.
fn first_certificate(secret: &Secret) -> Option<ByteString> {
    let pem = secret.data.as_ref()?.get(secrets::TLS_CERT_KEY)?;
    let (chain, _) = certificate::readable(&pem.0);
    chain.into_iter().next().map(ByteString)
}

/// What a certificate is that could not be read. Nobody has to have the right, which is one to the private key, too; and a dump of
/// a hub is whole without.
fn unread(trouble: Trouble) -> Observed<ByteString> {
    match trouble.reason {
        Reason::Forbidden | Reason::NotInDump => Observed::NotAsked,
        _ => Observed::Trouble(trouble),
    }
}

async fn slices_of(hub: &Cluster, namespace: &str) -> Result<Vec<EndpointSlice>, Trouble> {
    let api: Api<EndpointSlice> = Api::namespaced(hub.client.clone(), namespace);
    list(hub, SLICES, Some(namespace), &api, ListParams::default(), Some).await
}

/// What is wanted of configurations, and how they are.
fn own(wanted: &[(&str, &str)], found: &[Configuration], slices: &[EndpointSlice]) -> Vec<WebhookFacts> {
    let facts = |(name, service): &(&str, &str)| {
        let hooks = found.iter().find(|(known, _)| known == name).map(|(_, hooks)| hooks);
        let clients: Vec<&WebhookClient> = hooks.into_iter().flatten().map(|hook| &hook.client).collect();
        WebhookFacts {
            name: (*name).to_owned(),
            service: format!("{}/{service}", namespaces::HUB),
            exists: hooks.is_some(),
            authorities: authorities(&clients),
            has_endpoint: answers(slices, service),
            fails_open: hooks.into_iter().flatten().any(|hook| hook.failure.as_deref() == Some("Ignore")),
            elsewhere: clients.iter().find_map(|client| elsewhere(client, service)),
        }
    };
    wanted.iter().map(facts).collect()
}

/// Whether a Service has a ready endpoint among those of its namespace.
pub(super) fn answers(slices: &[EndpointSlice], service: &str) -> bool {
    let labelled = |slice: &&EndpointSlice| {
        let labels = slice.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get("kubernetes.io/service-name")).is_some_and(|name| name == service)
    };
    let ready =
        |endpoint: &Endpoint| endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true);
    slices.iter().filter(labelled).flat_map(|slice| &slice.endpoints).any(ready)
}

/// Who is asked in place of a Service of the hub; none: that Service.
fn elsewhere(client: &WebhookClient, service: &str) -> Option<String> {
    match (&client.service, &client.url) {
        (Some(own), _) if own.name == service && own.namespace == namespaces::HUB => None,
        (Some(other), _) => Some(format!("Service {}/{}", other.namespace, other.name)),
        (None, Some(url)) => Some(redact(url)),
        (None, None) => None,
    }
}

/// The authorities that every webhook of a configuration has; none where one lacks them.
fn authorities(hooks: &[&WebhookClient]) -> Vec<ByteString> {
    let of = |hook: &WebhookClient| {
        let bundle = hook.ca_bundle.as_ref()?;
        certificate::from_pem(&bundle.0).ok()
    };
    let mut all = hooks.iter().map(|hook| of(hook).unwrap_or_default());
    let first = all.next().unwrap_or_default();
    let common = all.fold(first, |common, own| common.into_iter().filter(|der| own.contains(der)).collect());
    common.into_iter().map(ByteString).collect()
}

/// The webhooks of others, by configuration and Service, without which something of a registration is refused.
fn in_the_way<'c>(all: impl Iterator<Item = &'c Configuration>) -> Vec<AdmissionFacts> {
    let is_own = |name: &str| webhooks::MUTATING.iter().chain(webhooks::VALIDATING).any(|(own, _)| *own == name);
    let mut about: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for (name, hooks) in all.filter(|(name, _)| !is_own(name)) {
        for hook in hooks.iter().filter(|hook| !hook.about.is_empty() && hook.failure.as_deref() != Some("Ignore")) {
            let Some(service) = &hook.client.service else { continue };
            // There are no others, and these become parts of addresses.
            if is_dns_label(&service.namespace) && is_dns_label(&service.name) {
                let service = format!("{}/{}", service.namespace, service.name);
                about.entry((name.as_str(), service)).or_default().extend(&hook.about);
            }
        }
    }
    let facts = about.into_iter().map(|((configuration, service), about)| AdmissionFacts {
        configuration: configuration.to_owned(),
        service,
        about: about.into_iter().map(str::to_owned).collect(),
        has_endpoint: false,
        is_external: None,
    });
    facts.collect()
}

/// The same, with whether something is behind them: a request for each of their namespaces.
async fn others(hub: &Cluster, facts: Vec<AdmissionFacts>) -> Result<Vec<AdmissionFacts>, Trouble> {
    let parts =
        |service: &str| service.split_once('/').map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    let namespaces: BTreeSet<String> = facts.iter().filter_map(|one| Some(parts(&one.service)?.0)).collect_set();
    let reading: Vec<_> = namespaces
        .into_iter()
        .take(NAMESPACES)
        .map(async |namespace| slices_of(hub, &namespace).await.map(|slices| (namespace, slices)))
        .collect();
    let slices: BTreeMap<String, Vec<EndpointSlice>> =
        futures::stream::iter(reading).buffered(AT_ONCE).try_collect().await?;
    let judged = facts.into_iter().filter_map(|facts| {
        let (namespace, name) = parts(&facts.service)?;
        // Of more than that nothing is said.
        let has_endpoint = answers(slices.get(&namespace)?, &name);
        Some(AdmissionFacts { has_endpoint, ..facts })
    });
    let judged: Vec<AdmissionFacts> = judged.collect();
    let silent: BTreeSet<&str> =
        judged.iter().filter(|one| !one.has_endpoint).map(|one| one.service.as_str()).collect_set();
    let reading: Vec<_> = silent
        .into_iter()
        .take(SILENT)
        .map(async |service| {
            let is_external = match service.split_once('/') {
                Some((namespace, name)) => has_external_name(hub, namespace, name).await,
                None => None,
            };
            (service.to_owned(), is_external)
        })
        .collect();
    let external: BTreeMap<String, Option<bool>> = futures::stream::iter(reading).buffered(AT_ONCE).collect().await;
    let told = |facts: AdmissionFacts| {
        let is_external = external.get(&facts.service).copied().flatten();
        AdmissionFacts { is_external, ..facts }
    };
    Ok(judged.into_iter().map(told).collect())
}

/// Whether a Service stands for a name outside of the cluster: the API server dials that one. None: it could not be read.
async fn has_external_name(hub: &Cluster, namespace: &str, name: &str) -> Option<bool> {
    let api: Api<Service> = Api::namespaced(hub.client.clone(), namespace);
    let service = api.get_opt(name).await.ok()?;
    let kind = service.and_then(|service| service.spec.type_);
    Some(kind.as_deref() == Some(EXTERNAL_NAME))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What of a configuration with one such entry is in the way.
    fn facts(name: &str, entry: Value) -> Vec<AdmissionFacts> {
        let mut entry = entry;
        let service = entry.as_object_mut().unwrap().remove("service").unwrap_or(json!("kyverno/kyverno-svc"));
        let (namespace, service) = service.as_str().unwrap().split_once('/').unwrap();
        entry["clientConfig"] = json!({"service": {"namespace": namespace, "name": service}});
        let configuration: ValidatingWebhookConfiguration =
            serde_json::from_value(json!({"webhooks": [entry]})).unwrap();
        let hooks = configuration.webhooks.into_iter().map(Hook::of).collect();
        in_the_way([(name.to_owned(), hooks)].iter())
    }

    fn rules(group: &str, resource: &str, operation: &str) -> Value {
        json!([{"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": [operation]}])
    }

    #[test]
    fn of_what_a_webhook_serves_with_its_own_certificate_is_kept_and_no_key() {
        let made = ["own", "authority"].map(|name| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap());
        let [own, authority] = made.map(|made| made.cert);
        let mut secret = Secret::default();
        assert_eq!(first_certificate(&secret), None);
        let chain = format!("{}{}", own.pem(), authority.pem());
        let values = [("tls.crt", chain.as_str()), ("tls.key", "canary")];
        secret.data = Some(values.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec()))).into());
        assert_eq!(first_certificate(&secret), Some(ByteString(own.der().to_vec())));
        secret.data = Some([("tls.crt".to_owned(), ByteString(b"none".to_vec()))].into());
        assert_eq!(first_certificate(&secret), None);
    }

    #[test]
    fn nobody_needs_the_right_to_the_private_keys_of_webhooks() {
        let of = |reason: Reason| {
            let trouble = Trouble { reason, message: "words".to_owned(), rule: None, behind: String::new() };
            (unread(trouble.clone()), Observed::<ByteString>::Trouble(trouble))
        };
        for reason in [Reason::Forbidden, Reason::NotInDump] {
            assert_eq!(of(reason).0, Observed::NotAsked);
        }
        let (unread, trouble) = of(Reason::Unreachable);
        assert_eq!(unread, trouble);
    }

    #[test]
    fn a_webhook_is_in_the_way_of_what_it_is_asked_about_without_fail() {
        let about = |entry: Value| facts("others", entry).pop().map(|one| one.about.join(" ")).unwrap_or_default();
        let everything = "certificatesigningrequests leases managedclusters manifestworks";
        assert_eq!(about(json!({"rules": rules("*", "*", "*")})), everything, "Fail is the default");
        assert_eq!(about(json!({"rules": rules("*", "*/*", "CREATE"), "failurePolicy": "Fail"})), everything);
        let clusters = rules("cluster.open-cluster-management.io", "managedclusters", "UPDATE");
        assert_eq!(about(json!({"rules": clusters})), "managedclusters");
        // Whoever leaves out namespaces leaves out nothing of what is in none.
        let some = json!({"matchLabels": {"a": "b"}});
        let without = "certificatesigningrequests managedclusters";
        assert_eq!(about(json!({"rules": rules("*", "*", "*"), "namespaceSelector": some})), without);
        let mut scoped = rules("*", "*", "*");
        scoped[0]["scope"] = "Cluster".into();
        assert_eq!(about(json!({"rules": scoped})), without);
        for nothing in [
            json!({"rules": rules("*", "*", "*"), "failurePolicy": "Ignore"}),
            json!({"rules": rules("*", "*", "*"), "objectSelector": some}),
            json!({"rules": rules("*", "*", "*"), "matchConditions": [{"name": "n", "expression": "false"}]}),
            json!({"rules": rules("", "pods", "*")}),
            json!({"rules": rules("cluster.open-cluster-management.io", "managedclusters/status", "*")}),
            json!({"rules": rules("certificates.k8s.io", "certificatesigningrequests", "UPDATE")}),
            json!({"rules": rules("*", "*", "*"), "service": "no such/name"}),
            json!({}),
        ] {
            assert_eq!(about(nothing.clone()), "", "{nothing}");
        }
        // Conditions of the policy engine leave out what is no registration.
        let own = json!({"rules": clusters, "service": "ocm-policy-engine/ocm-policy-webhook",
            "matchConditions": [{"name": "n", "expression": "true"}]});
        assert_eq!(about(own), "managedclusters");
        // Those of the hub have checks of their own.
        let hubs = webhooks::MANAGED_CLUSTER_VALIDATOR;
        assert_eq!(facts(hubs, json!({"rules": clusters})), []);
    }
}
