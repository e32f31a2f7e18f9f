//! From what is chosen and what there is to the objects of a policy engine.

use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use ocm_api::cert_manager::Issuer;
use ocm_api::{Manifest, crds};
use serde_json::{Value, json};

use super::api_servers::blocks;
use super::certificates::{Certificates, Pair, Trust, certificate, issuer};
use super::names::{
    AUTHORITY_SECRET, CERTIFICATES, CONTROLLER, ISSUED_SECRET, MARK, NAMESPACE, PULL_SECRET, SERVING_SECRET, WEBHOOK,
    meta, within,
};
use super::webhooks::{FailurePolicy, configurations};
use super::{policies, rbac, workload};
use crate::operator::PullCredentials;
use crate::plan::{Plan, Stage};

/// How many pods of the webhook there are unless somebody chose another number.
pub const REPLICAS: i32 = 2;
/// How many pods of the controller there are at most: one acts, and another one takes over.
const CONTROLLERS: i32 = 2;

/// What is chosen about a policy engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The image; none: the one that runs.
    pub image: Option<String>,
    /// Credentials to pull it with; none: as they are.
    pub pull_credentials: Option<PullCredentials>,
    /// How many pods of the webhook; none: as many as there are, two at first. The controller has as many, but two at most.
    pub replicas: Option<i32>,
    /// Refuse nothing: policies are evaluated, and their verdicts only recorded.
    pub audit: bool,
    /// Leave the HubPolicies alone.
    pub without_policies: bool,
    /// By which cert-manager issues the certificate; none: as it is, by an authority of our own at first.
    pub issuer: Option<Issuer>,
    /// Networks from which API servers connect to the webhook, and nobody else may; none: as it is, everybody at first.
    pub api_servers: Vec<IpNet>,
}

/// Why options cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionsError {
    /// None runs, and none was named.
    NoImage,
    /// Without a pod nothing answers.
    NoReplicas,
    /// None was named, and the one that runs is of a release that renews no certificates.
    FormerImage,
    /// The webhook serves a certificate of cert-manager, and nothing tells who issues it.
    NoIssuer,
}

/// What there is of a policy engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running<'a> {
    /// The Deployment of the webhook.
    pub deployment: Option<&'a Value>,
    /// Its ServiceAccount.
    pub account: Option<&'a Value>,
    /// Whether there is a CronJob that renews its certificates.
    pub renews: bool,
    /// What cert-manager is asked for.
    pub certificate: Option<&'a Value>,
    /// The NetworkPolicy of the webhook.
    pub network_policy: Option<&'a Value>,
}

impl Running<'_> {
    /// Whether the webhook serves what cert-manager has issued.
    pub fn is_issued(&self) -> bool {
        self.deployment.and_then(workload::serving_secret) == Some(ISSUED_SECRET)
    }

    /// Names of the Secrets with which its image is pulled.
    fn pull_secrets(&self) -> Vec<String> {
        let all = self.account.and_then(|account| account["imagePullSecrets"].as_array());
        all.into_iter().flatten().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
    }
}

/// What is to be applied, in this order.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Everything but the configurations.
    pub pods: Plan,
    /// How many pods of the webhook.
    pub replicas: i32,
    /// What the API server is to trust.
    pub trust: Trust,
}

/// The plan of a policy engine, where there is so much of one.
///
/// # Errors
/// Options that cannot be used.
pub fn plan(options: &Options, there: &Running<'_>, certificates: &Certificates) -> Result<Engine, OptionsError> {
    let live = there.deployment;
    let running = live.and_then(workload::image);
    let image = options.image.as_deref().or(running).ok_or(OptionsError::NoImage)?;
    if options.image.is_none() && live.is_some() && !there.renews {
        return Err(OptionsError::FormerImage);
    }
    let replicas = options.replicas.or_else(|| live.and_then(workload::replicas)).unwrap_or(REPLICAS);
    if replicas < 1 {
        return Err(OptionsError::NoReplicas);
    }
    // All of them run one image.
    let pulls = match options.pull_credentials {
        Some(_) => vec![PULL_SECRET.to_owned()],
        None => there.pull_secrets(),
    };
    let mut accounts = Vec::from([WEBHOOK, CONTROLLER, CERTIFICATES].map(|name| service_account(name, &pulls)));
    accounts.push(workload::priority_class());
    accounts.extend(options.pull_credentials.as_ref().map(pull_secret));
    accounts.extend(rbac::webhook());
    accounts.extend(rbac::controller());
    accounts.extend(rbac::certificates());
    let issuer = options.issuer.clone().or_else(|| there.certificate.and_then(issuer));
    if issuer.is_none() && there.is_issued() {
        return Err(OptionsError::NoIssuer);
    }
    if issuer.is_none() {
        accounts.push(tls_secret(AUTHORITY_SECRET, &certificates.authority));
    }
    let network_policy = workload::network_policy(blocks(&options.api_servers), there.network_policy);
    let reviews_from = workload::reviews_from(&network_policy);
    let serving = if issuer.is_some() { ISSUED_SECRET } else { SERVING_SECRET };
    let policies = if options.without_policies { Vec::new() } else { policies::manifests(options.audit) };
    let pods = Plan::new([
        Stage::new("the namespace and the definitions of our kinds", definitions()),
        Stage::new("accounts, roles and the certificates' authority", accounts),
        Stage::new("policies", policies),
        Stage::new(
            "the webhook's certificate",
            vec![issuer.as_ref().map_or_else(|| tls_secret(SERVING_SECRET, &certificates.serving), certificate)],
        ),
        Stage::new(
            "the webhook",
            vec![
                workload::service(),
                network_policy,
                workload::disruption_budget(),
                workload::webhook(image, replicas, serving, reviews_from.as_deref()),
            ],
        ),
        Stage::new(
            "the controller",
            vec![workload::controller_network_policy(), workload::controller(image, replicas.min(CONTROLLERS))],
        ),
        Stage::new("what renews certificates", vec![workload::certificates(image)]),
    ]);
    let trust = if issuer.is_some() { Trust::Injected } else { Trust::Bundle(certificates.bundle.clone()) };
    Ok(Engine { pods, replicas, trust })
}

/// The objects without what only the hub and its certificates tell: to ask for rights on them, and to find them again.
pub fn outline(options: &Options) -> Plan {
    let nothing = || Pair { certificate: String::new(), key: String::new() };
    let certificates = Certificates { authority: nothing(), serving: nothing(), bundle: String::new() };
    let options = Options { image: Some(String::new()), replicas: None, ..options.clone() };
    plan(&options, &Running::default(), &certificates)
        .map(|engine| engine.whole(FailurePolicy::Ignore))
        .unwrap_or_default()
}

impl Engine {
    /// The same where somebody else looks after the certificates: their Secrets stay as they are, and what the API server trusts.
    #[must_use]
    pub fn with_others_certificates(mut self, bundle: &str) -> Self {
        let secrets = [AUTHORITY_SECRET, SERVING_SECRET];
        for stage in &mut self.pods.stages {
            stage.objects.retain(|one| one.kind() != "Secret" || !secrets.contains(&one.name()));
        }
        if let Trust::Bundle(ours) = &mut self.trust {
            bundle.clone_into(ours);
        }
        self
    }

    /// The policies of which a setting names users who register clusters.
    pub fn with_requesters(&self) -> impl Iterator<Item = &Manifest> {
        self.pods.objects().filter(|one| is_with_requesters(one))
    }

    /// The same where those of these policies that are about to be made know more users as ones who register clusters. Settings of a
    /// policy that is there are whoever's they are.
    #[must_use]
    pub fn knowing(mut self, users: &[String], new: &[String]) -> Self {
        for object in self.pods.stages.iter_mut().flat_map(|stage| &mut stage.objects) {
            if is_with_requesters(object) && new.iter().any(|name| name == object.name()) {
                policies::set_requesters(object, users);
            }
        }
        self
    }

    /// The pods' plan in two: what comes before the webhook, its certificate included, and the rest.
    pub fn halves(&self) -> [Plan; 2] {
        let is_pods = |stage: &Stage| stage.objects.iter().any(|one| one.kind() == "Deployment");
        let at = self.pods.stages.iter().position(is_pods).unwrap_or(self.pods.stages.len());
        let (first, rest) = self.pods.stages.split_at(at);
        [first, rest].map(|stages| Plan::new(stages.iter().cloned()))
    }

    /// What has the API server ask the webhook.
    pub fn configurations(&self, failure: FailurePolicy) -> Plan {
        configurations(&self.trust, failure)
    }

    /// Everything, with the configurations as they are in the end.
    pub fn whole(&self, failure: FailurePolicy) -> Plan {
        let mut stages = self.pods.stages.clone();
        stages.extend(self.configurations(failure).stages);
        Plan::new(stages)
    }
}

fn is_with_requesters(object: &Manifest) -> bool {
    object.kind() == "HubPolicy" && policies::WITH_REQUESTERS.contains(&object.name())
}

/// The Secret with the webhook's serving certificate: renewed alone, when the API server trusts who signed it.
pub fn serving_secret(certificates: &Certificates) -> Manifest {
    tls_secret(SERVING_SECRET, &certificates.serving)
}

/// Pods here get no rights on their nodes.
fn namespace() -> Manifest {
    let mut metadata = meta(NAMESPACE);
    let levels = ["enforce", "audit", "warn"];
    let labels = levels.map(|level| (format!("pod-security.kubernetes.io/{level}"), "restricted".to_owned()));
    metadata.labels.get_or_insert_default().extend(labels);
    Manifest::with::<Namespace>(&metadata, Value::Null)
}

fn definitions() -> Vec<Manifest> {
    let (key, value) = MARK;
    let marked = |mut definition: Manifest| {
        definition.body_mut()["metadata"]["labels"] = json!({ key: value });
        definition
    };
    vec![namespace(), marked(crds::hub_policy_manifest()), marked(crds::registration_manifest())]
}

fn service_account(name: &str, pulls: &[String]) -> Manifest {
    let secrets: Vec<Value> = pulls.iter().map(|name| json!({ "name": name })).collect();
    let pulls = if pulls.is_empty() { Value::Null } else { json!({ "imagePullSecrets": secrets }) };
    Manifest::with::<ServiceAccount>(&within(name), pulls)
}

fn pull_secret(credentials: &PullCredentials) -> Manifest {
    let secret = crate::operator::pull_secret(Some(credentials));
    Manifest::of(&Secret { metadata: within(PULL_SECRET), ..secret })
}

fn tls_secret(name: &str, pair: &Pair) -> Manifest {
    Manifest::with::<Secret>(&within(name), json!({"type": "kubernetes.io/tls", "data": pair.to_data()}))
}

#[cfg(test)]
mod tests {
    use super::super::certificates::{SERVER_NAME, read_issuer};
    use super::super::webhooks;
    use super::*;

    fn certificates() -> Certificates {
        let pair = || Pair { certificate: "c".to_owned(), key: "k".to_owned() };
        Certificates { authority: pair(), serving: pair(), bundle: "b".to_owned() }
    }

    #[test]
    fn what_runs_the_same_image_pulls_it_by_the_same_credentials() {
        let account = json!({"imagePullSecrets": [{"name": "own"}]});
        let there = Running { account: Some(&account), ..Running::default() };
        let options = Options { image: Some("i".to_owned()), ..Options::default() };
        let engine = plan(&options, &there, &certificates()).unwrap();
        let accounts: Vec<&Manifest> = engine.pods.objects().filter(|one| one.kind() == "ServiceAccount").collect();
        assert_eq!(accounts.len(), 3);
        for account in accounts {
            assert_eq!(account.body()["imagePullSecrets"], json!([{"name": "own"}]), "{}", account.name());
        }
    }

    #[test]
    fn policies_that_are_made_know_who_registers_clusters_and_those_that_are_there_stay() {
        let options = Options { image: Some("i".to_owned()), ..Options::default() };
        let engine = plan(&options, &Running::default(), &certificates()).unwrap();
        let names: Vec<&str> = engine.with_requesters().map(Manifest::name).collect();
        assert_eq!(names, ["cluster-hygiene", "csr-hygiene", "name-claim"]);
        let users = ["system:serviceaccount:a:b".to_owned()];
        let engine = engine.clone().knowing(&users, &["name-claim", "agent-self-edit"].map(str::to_owned));
        for policy in engine.pods.objects().filter(|one| one.kind() == "HubPolicy") {
            let expected = if policy.name() == "name-claim" { json!({ "requesters": users }) } else { Value::Null };
            assert_eq!(policy.body()["spec"]["settings"], expected, "{}", policy.name());
        }
    }

    /// The NetworkPolicy of the webhook where there is this one, and the annotations of the pods.
    fn reviews(networks: &[&str], live: Option<&Value>) -> (Value, Option<Value>) {
        let api_servers = networks.iter().map(|text| text.parse().unwrap()).collect();
        let options = Options { image: Some("i".to_owned()), api_servers, ..Options::default() };
        let there = Running { network_policy: live, ..Running::default() };
        let engine = plan(&options, &there, &certificates()).unwrap();
        let of = |kind: &str| engine.pods.objects().filter(|one| one.kind() == kind).collect::<Vec<&Manifest>>();
        let (policies, deployments) = (of("NetworkPolicy"), of("Deployment"));
        for all in [&policies, &deployments] {
            assert_eq!(all.iter().map(|one| one.name()).collect::<Vec<_>>(), [WEBHOOK, CONTROLLER]);
        }
        let annotations =
            |deployment: &Manifest| deployment.body()["spec"]["template"]["metadata"].get("annotations").cloned();
        assert_eq!(annotations(deployments[1]), None);
        (policies[0].body().clone(), annotations(deployments[0]))
    }

    #[test]
    fn who_may_send_reviews_stays_as_somebody_has_narrowed_it() {
        let policy = |networks: &[&str], live: Option<&Value>| reviews(networks, live).0;
        let port = |number: u16| json!({"port": number, "protocol": "TCP"});
        let open = policy(&[], None);
        assert_eq!(open["spec"]["ingress"], json!([{"ports": [port(9443), port(8080)]}]));
        assert_eq!(policy(&[], Some(&open)), open);
        let narrow = policy(&["10.0.0.0/28"], Some(&open));
        let from = json!([{"ipBlock": {"cidr": "10.0.0.0/28"}}]);
        assert_eq!(
            narrow["spec"]["ingress"],
            json!([{"ports": [port(9443)], "from": from}, {"ports": [port(8080)]}]),
            "probes come from the nodes"
        );
        assert_eq!(policy(&[], Some(&narrow)), narrow);
        assert_ne!(policy(&["0.0.0.0/0"], Some(&narrow)), narrow);
        // What goes out is somebody else's to say, and what is not ours in what comes in is put right.
        let types = json!(["Ingress", "Egress"]);
        for (live, wanted) in [(&open, &open), (&narrow, &narrow)] {
            let mut live = live.clone();
            live["spec"]["policyTypes"] = types.clone();
            let kept = policy(&[], Some(&live));
            assert_eq!((&kept["spec"]["policyTypes"], &kept["spec"]["ingress"]), (&types, &wanted["spec"]["ingress"]));
            assert_eq!(policy(&["10.0.0.0/8"], Some(&live))["spec"]["policyTypes"], types);
            live["spec"]["policyTypes"] = json!(["Egress"]);
            live["spec"]["podSelector"] = json!({});
            assert_eq!(policy(&[], Some(&live)), *wanted);
        }
    }

    #[test]
    fn what_somebody_has_written_by_hand_is_not_opened() {
        let (open, narrow) = (reviews(&[], None).0, reviews(&["10.0.0.0/28"], None).0);
        let port = |port: Value| json!({"port": port, "protocol": "TCP"});
        let (from, other) = (json!([{"ipBlock": {"cidr": "10.0.0.1/32"}}]), json!([{"namespaceSelector": {}}]));
        let probes = json!({"ports": [port(json!(8080))]});
        for ingress in [
            json!([{"ports": [port(json!(9443)), port(json!(8080))], "from": other}]),
            json!([{"ports": [port(json!(9443)), port(json!(8080))], "from": []}]),
            json!([{"ports": [port(json!("reviews"))], "from": from}, probes]),
            json!([{"ports": [{"port": 9000, "endPort": 9999, "protocol": "TCP"}], "from": from}, probes]),
            json!([{"ports": [port(json!(9443))], "from": from}, {"ports": [port(json!(9443))], "from": other}, probes]),
            json!([{"ports": [port(json!(9443))], "from": from}]),
            json!([{"from": from}]),
            json!([]),
        ] {
            let mut live = open.clone();
            live["spec"]["ingress"] = ingress;
            live["spec"]["policyTypes"] = json!(["Ingress", "Egress"]);
            let (kept, annotations) = reviews(&[], Some(&live));
            assert_eq!(kept["spec"], live["spec"]);
            assert!(annotations.is_some());
            // Whoever names networks has them.
            let (named, _) = reviews(&["10.0.0.0/28"], Some(&live));
            assert_eq!(named["spec"]["ingress"], narrow["spec"]["ingress"]);
        }
        // What lets in nobody is stored without a rule.
        let mut nobody = open;
        nobody["spec"].as_object_mut().unwrap().remove("ingress");
        assert_eq!(reviews(&[], Some(&nobody)).0["spec"], nobody["spec"]);
    }

    #[test]
    fn pods_are_replaced_where_others_may_send_them_reviews() {
        let (open, told) = reviews(&[], None);
        assert_eq!(told, None);
        assert_eq!(reviews(&[], Some(&open)).1, None);
        let (narrow, told) = reviews(&["10.0.0.0/28"], Some(&open));
        assert!(
            told.as_ref().unwrap()["policy.kubectl-ocm.dev/reviews-from"].as_str().unwrap().contains("10.0.0.0/28")
        );
        assert_eq!(reviews(&[], Some(&narrow)).1, told);
        assert_eq!(reviews(&["10.0.0.0/28"], Some(&narrow)).1, told);
        let (_, others) = reviews(&["10.0.0.0/24"], Some(&narrow));
        assert!(others.is_some() && others != told);
    }

    #[test]
    fn an_image_that_renews_no_certificates_is_not_taken_on() {
        let live = workload::webhook("former", 2, SERVING_SECRET, None);
        let there = |renews| Running { deployment: Some(live.body()), renews, ..Running::default() };
        let of = |image: Option<&str>, renews| {
            let options = Options { image: image.map(str::to_owned), ..Options::default() };
            plan(&options, &there(renews), &certificates()).map(|engine| engine.replicas)
        };
        assert_eq!(of(None, false), Err(OptionsError::FormerImage));
        assert_eq!((of(None, true), of(Some("new"), false)), (Ok(2), Ok(2)));
    }

    #[test]
    fn what_cert_manager_looks_after_is_asked_for_and_stays_with_it() {
        let issuer = read_issuer("ClusterIssuer/internal");
        let options = Options { image: Some("i".to_owned()), issuer: issuer.clone(), ..Options::default() };
        let engine = plan(&options, &Running::default(), &certificates()).unwrap();
        let whole = engine.whole(FailurePolicy::Fail);
        assert!(!whole.objects().any(|one| one.kind() == "Secret"), "keys are cert-manager's");
        let asked = whole.objects().find(|one| one.kind() == "Certificate").unwrap();
        assert_eq!(asked.body()["spec"]["issuerRef"], json!({"kind": "ClusterIssuer", "name": "internal"}));
        assert_eq!((&asked.body()["spec"]["dnsNames"], asked.namespace()), (&json!([SERVER_NAME]), Some(NAMESPACE)));
        for configuration in whole.objects().filter(|one| one.kind().ends_with("WebhookConfiguration")) {
            let body = configuration.body();
            assert_eq!(
                body["metadata"]["annotations"]["cert-manager.io/inject-ca-from"],
                "ocm-policy-engine/ocm-policy-webhook"
            );
            for entry in body["webhooks"].as_array().unwrap() {
                assert_eq!(entry["clientConfig"].get("caBundle"), None, "nobody else writes it");
            }
        }
        let [first, rest] = engine.halves();
        assert!(first.objects().any(|one| one.kind() == "Certificate"));
        let deployment = rest.objects().find(|one| one.kind() == "Deployment").unwrap();
        let again = Options { issuer: None, ..options };
        let running = Running { deployment: Some(deployment.body()), renews: true, ..Running::default() };
        assert!(running.is_issued());
        let unknown = plan(&again, &running, &certificates()).map(|engine| engine.replicas);
        assert_eq!(unknown, Err(OptionsError::NoIssuer), "our own would be served before anybody trusts it");
        let there = Running { certificate: Some(asked.body()), ..running };
        assert_eq!(plan(&again, &there, &certificates()).unwrap().trust, Trust::Injected);
        assert_eq!(plan(&again, &Running::default(), &certificates()).unwrap().trust, Trust::Bundle("b".to_owned()));
    }

    #[test]
    fn certificates_of_others_stay() {
        let options = Options { image: Some("i".to_owned()), ..Options::default() };
        let engine = plan(&options, &Running::default(), &certificates()).unwrap().with_others_certificates("theirs");
        let whole = engine.whole(FailurePolicy::Fail);
        assert!(!whole.objects().any(|one| one.kind() == "Secret"));
        let configuration = whole.objects().find(|one| one.kind() == "ValidatingWebhookConfiguration").unwrap();
        assert_eq!(webhooks::bundles(configuration.body())[0], b"theirs");
    }
}
