//! Whom an API server asks before it stores something, and who converts between the versions of a kind.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

part_object! {
    /// Webhooks that may change what is stored.
    pub struct MutatingWebhookConfiguration {
        /// Its entries.
        "webhooks" => webhooks: Vec<Webhook>,
    }
    group "admissionregistration.k8s.io", version "v1", plural "mutatingwebhookconfigurations", scope ClusterResourceScope
}

part_object! {
    /// Webhooks that may refuse what is stored.
    pub struct ValidatingWebhookConfiguration {
        /// Its entries.
        "webhooks" => webhooks: Vec<Webhook>,
    }
    group "admissionregistration.k8s.io", version "v1", plural "validatingwebhookconfigurations", scope ClusterResourceScope
}

part! {
    /// An entry of a webhook configuration, of either kind.
    pub struct Webhook {
        /// Who is asked.
        "clientConfig" => client_config: WebhookClient,
        /// What happens to requests when it fails: `Fail` or `Ignore`.
        "failurePolicy" => failure_policy: Option<String>,
        /// About what it is asked.
        "rules" => rules: Option<Vec<Rule>>,
        /// About which of that it is asked besides.
        "matchConditions" => match_conditions: Option<Vec<MatchCondition>>,
        /// About objects with which labels.
        "objectSelector" => object_selector: Option<LabelSelector>,
        /// About objects of namespaces with which labels.
        "namespaceSelector" => namespace_selector: Option<LabelSelector>,
    }

    /// A condition on requests.
    pub struct MatchCondition {
        /// Its name.
        "name" => name: String,
    }

    /// How a webhook is called.
    pub struct WebhookClient {
        /// The certificates, as PEM, with which the API server verifies it.
        "caBundle" => ca_bundle: Option<ByteString>,
        /// The Service behind it.
        "service" => service: Option<ServiceReference>,
        /// Its address, where it is not a Service.
        "url" => url: Option<String>,
    }

    /// A Service behind a webhook.
    pub struct ServiceReference {
        /// Its namespace.
        "namespace" => namespace: String,
        /// Its name.
        "name" => name: String,
    }

    /// Operations on resources.
    pub struct Rule {
        /// API groups.
        "apiGroups" => api_groups: Option<Vec<String>>,
        /// Versions.
        "apiVersions" => api_versions: Option<Vec<String>>,
        /// What is done.
        "operations" => operations: Option<Vec<String>>,
        /// Plural names of kinds, also with a subresource.
        "resources" => resources: Option<Vec<String>>,
        /// `Cluster`, `Namespaced` or `*`.
        "scope" => scope: Option<String>,
    }
}

part_object! {
    /// A CustomResourceDefinition: who converts between its versions.
    pub struct CustomResourceDefinition {
        /// What is wanted.
        required "spec" => spec: DefinitionSpec,
    }
    group "apiextensions.k8s.io", version "v1", plural "customresourcedefinitions", scope ClusterResourceScope
}

part! {
    /// What of a definition tells who converts.
    pub struct DefinitionSpec {
        /// How versions are converted.
        "conversion" => conversion: Option<Conversion>,
    }

    /// How versions are converted.
    pub struct Conversion {
        /// The webhook, if there is one.
        "webhook" => webhook: Option<ConversionWebhook>,
    }

    /// A webhook that converts.
    pub struct ConversionWebhook {
        /// How it is called.
        "clientConfig" => client_config: Option<WebhookClient>,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1 as whole;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
    use serde_json::{Value, json};

    use super::super::tests::{both, damaged, refused};
    use super::*;

    fn configuration(kind: &str) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "managedclustervalidators", "uid": "u", "annotations": {"a": "b"}, "generation": 3},
            "webhooks": [
                {
                    "name": "managedclustervalidators.admission.cluster.open-cluster-management.io",
                    "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 10, "matchPolicy": "Equivalent",
                    "clientConfig": {"caBundle": "LS0tLS1CRUdJTg==", "service": {
                        "name": "cluster-manager-registration-webhook", "namespace": "open-cluster-management-hub", "path": "/p", "port": 443}},
                    "failurePolicy": "Fail", "namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["v"]}]},
                    "objectSelector": {"matchLabels": {"a": "b"}}, "matchConditions": [{"name": "n", "expression": "true"}],
                    "rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                        "resources": ["managedclusters"], "scope": "*"}],
                },
                {"name": "b", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {"url": "https://example"},
                    "rules": null},
            ],
        })
    }

    macro_rules! same_configuration {
        ($kind:ident) => {
            let (part, whole): ($kind, whole::$kind) = both(configuration(stringify!($kind)));
            assert_eq!(part.metadata, whole.metadata);
            let hooks = whole.webhooks.unwrap();
            assert_eq!(part.webhooks.len(), hooks.len());
            for (part, whole) in part.webhooks.into_iter().zip(hooks) {
                assert_eq!(part.failure_policy, whole.failure_policy);
                assert_eq!(part.object_selector, whole.object_selector);
                assert_eq!(part.namespace_selector, whole.namespace_selector);
                assert_eq!(part.match_conditions.map(|all| all.len()), whole.match_conditions.map(|all| all.len()));
                let (client, config) = (part.client_config, whole.client_config);
                assert_eq!((client.ca_bundle, client.url), (config.ca_bundle, config.url));
                let of_whole = config.service.map(|service| (service.namespace, service.name));
                assert_eq!(client.service.map(|service| (service.namespace, service.name)), of_whole);
                let rules = |rule: whole::RuleWithOperations| {
                    let (api_groups, api_versions) = (rule.api_groups, rule.api_versions);
                    Rule { api_groups, api_versions, operations: rule.operations, resources: rule.resources, scope: rule.scope }
                };
                let of_whole: Option<Vec<Rule>> = whole.rules.map(|all| all.into_iter().map(rules).collect());
                assert_eq!(part.rules, of_whole);
            }
            let (part, _): ($kind, whole::$kind) = both(json!({"metadata": {"name": "n"}, "webhooks": null}));
            assert_eq!(part.webhooks, []);
            for wrong in [
                json!({"kind": "Other"}),
                json!({"webhooks": [null]}),
                json!({"webhooks": [{"clientConfig": {"caBundle": "?"}}]}),
                json!({"webhooks": [{"failurePolicy": 1}]}),
                json!({"webhooks": [{"rules": [{"operations": "CREATE"}]}]}),
            ] {
                refused::<$kind, whole::$kind>(wrong);
            }
        };
    }

    #[test]
    fn of_webhook_configurations_of_either_kind_the_same_is_read() {
        same_configuration!(MutatingWebhookConfiguration);
        same_configuration!(ValidatingWebhookConfiguration);
    }

    #[test]
    fn of_a_definition_it_is_read_who_converts() {
        let spec = |conversion: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"},
                "spec": {"group": "b", "scope": "Namespaced", "names": {"kind": "A", "plural": "a"}, "conversion": conversion,
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]},
                "status": {"conditions": [], "storedVersions": ["v1"]}})
        };
        let webhook = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
            "caBundle": "AAE=", "service": {"namespace": "n", "name": "s", "path": "/convert", "port": 9443}}}});
        for conversion in [webhook, json!({"strategy": "None"}), Value::Null] {
            let (part, whole): (CustomResourceDefinition, extensions::CustomResourceDefinition) =
                both(spec(conversion));
            assert_eq!(part.metadata, whole.metadata);
            let part = part.spec.conversion.and_then(|conversion| conversion.webhook?.client_config);
            let whole = whole.spec.conversion.and_then(|conversion| conversion.webhook?.client_config);
            let service = whole.as_ref().and_then(|client| client.service.as_ref());
            let service = service.map(|service| (service.namespace.as_str(), service.name.as_str()));
            let of_part = part.as_ref().and_then(|client| client.service.as_ref());
            assert_eq!(of_part.map(|service| (service.namespace.as_str(), service.name.as_str())), service);
            assert_eq!(part.and_then(|client| client.ca_bundle), whole.and_then(|client| client.ca_bundle));
        }
        damaged::<CustomResourceDefinition>();
        for wrong in [json!({"spec": {"conversion": 1}}), json!({"spec": []})] {
            refused::<CustomResourceDefinition, extensions::CustomResourceDefinition>(wrong);
        }
    }
}
