//! What is checked on both sides before anything is touched.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::names::labels;
use ocm_api::operator::RegistrationAuthType;
use ocm_api::registration::RegisteredKeys;
use ocm_core::csr::{Request, State};
use ocm_core::grpc::Server;
use ocm_core::join::Settings;
use ocm_core::join::agent::{self, Agent, Credential};
use ocm_core::join::choices::judge;
use ocm_core::join::handover::is_of_earlier;
use ocm_core::join::membership::Belonging;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::phase::{Phase, standing};
use ocm_core::{Event, Failure, Narrator, Plan, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right, require};
use ocm_kube::apply::FIELD_MANAGER;
use ocm_net::Endpoint;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::on_hub;
use super::session::{Access, HubSession};
use super::survey::Survey;
use crate::accept::to_accept;
use crate::observe::registration;
use crate::registry;

/// The namespace of the cluster's name on the hub.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HubNamespace {
    /// There is none, or none that may be seen.
    Free,
    /// It was made for a managed cluster of this name.
    Left,
    /// It is nobody's cluster's, and becomes this one's.
    Adopted,
}

/// What a cluster is checked against on the hub.
pub(super) struct Registrant<'a> {
    /// The name that it is to get.
    pub(super) name: &'a str,
    /// How it stands to this hub.
    pub(super) belongs: Belonging,
    /// Its agent, as far as it has written down who it is.
    pub(super) agent: &'a Agent,
    /// What the hub knows the requests of its agent by.
    pub(super) credential: Credential,
    /// Whether its way to the hub, or its driver, is changed now: what asked before is not what its agent asks for then.
    pub(super) changed: bool,
    /// Whether the kubeconfig that is there still serves.
    pub(super) serves: bool,
    /// Whether a namespace of its name that is somebody else's becomes its own.
    pub(super) adopt_namespace: bool,
}

/// What a check has shown.
#[derive(Default)]
pub(super) struct Checked {
    /// Whether a namespace is to be adopted.
    pub(super) adopts: bool,
    /// Keys that have asked in the cluster's name and are not its agent's, as far as requests may be listed.
    pub(super) strangers: Vec<String>,
    /// Whether the hub says that the cluster has joined, though perhaps of an earlier certificate.
    pub(super) has_joined: bool,
}

impl Registrant<'_> {
    /// Whether a request is not of what its agent asks for from now on.
    fn is_strangers(&self, request: &Request) -> bool {
        let may_have_asked = self.belongs != Belonging::Nobody && !self.changed;
        // What was issued to its agent, that one holds.
        let waits = matches!(request.state, State::Pending | State::Approved);
        !(may_have_asked && waits && self.agent.made(&self.credential, request) == Some(true))
    }
}

impl HubSession {
    /// Checks what can be checked on the hub before anything is touched: that it is one, that the token registers
    /// clusters, and that the name is free. Says who used the name before.
    ///
    /// # Errors
    /// A refusal or what the hub said.
    pub(super) async fn check(&self, who: &Registrant<'_>, narrator: &dyn Narrator) -> Result<Checked, Failure> {
        let Registrant { name, belongs, serves, adopt_namespace, .. } = *who;
        let (cluster, rights, namespace, requests, noted) = futures::join!(
            self.cluster(name),
            self.rights(serves),
            self.namespace_is_free(name, adopt_namespace),
            self.requests(name),
            self.noted(name),
        );
        let cluster = cluster?;
        rights?;
        let namespace = namespace?;
        let adopts = namespace == HubNamespace::Adopted;
        let uid = cluster.as_ref().and_then(|cluster| cluster.metadata.uid.as_deref());
        let now = Timestamp::now().as_millisecond();
        let noted = noted?.and_then(|noted| registry::noted(&noted.status).of_another_until(uid, Some(now)));
        if noted.is_some() || (namespace == HubNamespace::Left && cluster.is_none()) {
            let until = noted.and_then(|until| Timestamp::from_millisecond(until).ok());
            let until = until.map_or_else(|| "until they expire".to_owned(), |until| format!("until {until} at most"));
            narrator.tell(Event::note(format!(
                "the name {name:?} was used on the hub before: certificates of its earlier agents stay valid {until}, and \
                 get their rights back with the name"
            )));
        }
        if adopts {
            let right = Right::new("patch", "", "namespaces").on(name);
            require(self.client(), "give the cluster a namespace that is there", &[right]).await?;
            narrator.tell(Event::note(format!(
                "on the hub the namespace {name:?} is there already and becomes the cluster's: its agent gets rights in it"
            )));
        }
        let foreign = |request: &&Request| {
            let own = who.agent.made(&who.credential, request) == Some(true);
            request.state == State::Pending && !request.is_addons() && !own
        };
        let requests = requests?;
        let strangers = agent::describe(requests.iter().filter(foreign));
        if !strangers.is_empty() {
            narrator.tell(Event::warning(format!(
                "on the hub somebody else asks for a certificate in the name of {name:?} already: {strangers}"
            )));
        }
        let keys = requests.iter().filter(|request| !request.is_addons() && who.is_strangers(request));
        let strangers = keys.filter_map(Request::fingerprint).collect();
        let checked = Checked { adopts, strangers, has_joined: false };
        let Some(cluster) = cluster else { return Ok(checked) };
        let standing = standing(&cluster);
        if belongs == Belonging::Nobody
            && let Some(since) = &cluster.metadata.creation_timestamp
        {
            narrator.tell(Event::warning(format!(
                "the hub has had a managed cluster {name:?} since {}, which this cluster did not register",
                since.0
            )));
        }
        match standing.phase {
            Phase::Detaching => Err(detaching(name, standing.message)),
            Phase::Denied => Err(denied(name)),
            // A join that was begun goes on, and one that waits for acceptance may be anybody's.
            Phase::Pending | Phase::Accepted => Ok(checked),
            Phase::Joined | Phase::Available | Phase::Unavailable | Phase::Unknown if belongs != Belonging::Nobody => {
                Ok(Checked { has_joined: true, ..checked })
            }
            phase => Err(taken(name, &format!("it is {}", phase.to_string().to_ascii_lowercase()))),
        }
    }

    /// Marks the namespace of the cluster's name as its own, as the hub does with those that it makes.
    ///
    /// # Errors
    /// What the hub said.
    pub(super) async fn adopt_namespace(&self, name: &str) -> Result<(), Failure> {
        let hub = self.client();
        let api: Api<Namespace> = Api::all(hub.client.clone());
        let patch = json!({"metadata": {"labels": {labels::CLUSTER_NAME: name}}});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patched = api.patch_metadata(name, &params, &Patch::Merge(patch)).await;
        patched.map_err(|error| hub.explain(format_args!("label namespace {name:?}"), error))?;
        Ok(())
    }

    /// Checks that the hub still knows a cluster that has joined it, and says how it stands there. `issued` is when the
    /// certificate of its agent was issued, if it holds one.
    ///
    /// # Errors
    /// A refusal that says which side forgot the other, or that the hub's managed cluster is a later one of the same name.
    pub(super) async fn remembers(&self, name: &str, label: &str, issued: Option<Timestamp>) -> Result<Phase, Failure> {
        let Some(cluster) = self.cluster(name).await? else {
            return Err(Failure::refused(format!(
                "{label} has joined the hub at {} as {name:?}, but the hub has no managed cluster of this name: it was \
                 removed there; nothing was changed",
                self.address.server
            ))
            .hint(Remedy::Unjoin(name.to_owned())));
        };
        let standing = standing(&cluster);
        let registered = cluster.metadata.creation_timestamp.map(|created| created.0);
        match standing.phase {
            Phase::Detaching => Err(detaching(name, standing.message)),
            Phase::Denied => Err(denied(name)),
            // Where an agent has joined, the hub hears from one; it may be ours, which is let in again with its certificate.
            phase @ (Phase::Pending | Phase::Accepted) => match issued.zip(registered) {
                Some((issued, registered)) if is_of_earlier(issued, registered) => {
                    Err(registered_anew(name, label, &self.address.server, registered))
                }
                _ => Ok(phase),
            },
            phase => Ok(phase),
        }
    }

    /// Checks what registering needs of the hub's side.
    ///
    /// # Errors
    /// The rights that are missing.
    pub(super) async fn rights(&self, serves: bool) -> Result<(), Failure> {
        match &self.access {
            Access::Admin(admin) => {
                let mut rights = vec![Right::new("get", "cluster.open-cluster-management.io", "managedclusters")];
                if !serves {
                    let mint = Right::new("create", "", "serviceaccounts/token");
                    let mint = mint.within(ocm_api::names::namespaces::OPERATOR);
                    rights.push(mint.on(ocm_api::names::bootstrap::SERVICE_ACCOUNT));
                }
                require(admin, "register clusters on the hub", &rights).await
            }
            Access::Token { token, client } => may_register(client, token.expose_secret()).await,
        }
    }

    /// The requests in the cluster's name. Who may not list them finds out nothing.
    async fn requests(&self, name: &str) -> Result<Vec<Request>, Failure> {
        match registration::requests(self.client(), name).await {
            Err(failure) if failure.reason == Reason::Forbidden => Ok(Vec::new()),
            requests => requests,
        }
    }

    /// What the policy controller has noted of the name. Who may not read it finds out nothing.
    async fn noted(&self, name: &str) -> Result<Option<RegisteredKeys>, Failure> {
        let (found, _) = registry::noted_of(self.client(), &[name.to_owned()]).await?;
        Ok(found.into_iter().next())
    }

    /// Whether the policy controller has noted other keys than `key`, `sha256:` and its digits, of the managed cluster of this
    /// UID. Who may not read that finds out nothing.
    ///
    /// # Errors
    /// What the hub said.
    pub(super) async fn noted_others(&self, name: &str, uid: &str, key: &str) -> Result<bool, Failure> {
        let noted = self.noted(name).await?.map(|noted| noted.status).unwrap_or_default();
        let is_other = |digest: &str| key.strip_prefix("sha256:") != Some(digest);
        Ok(noted.cluster_uid.as_deref() == Some(uid) && noted.keys.iter().any(|noted| is_other(&noted.spki_sha256)))
    }

    /// What the hub has under the cluster's name. A namespace that is going away, or is somebody
    /// else's, is in the way.
    async fn namespace_is_free(&self, name: &str, adopt: bool) -> Result<HubNamespace, Failure> {
        let hub = self.client();
        let api: Api<Namespace> = Api::all(hub.client.clone());
        let found = match api.get_metadata_opt(name).await {
            Ok(found) => found,
            Err(error) => {
                let failure = hub.explain(format_args!("read namespace {name:?}"), error);
                // Who may not look finds out from the hub's controllers.
                return if failure.reason == Reason::Forbidden { Ok(HubNamespace::Free) } else { Err(failure) };
            }
        };
        let Some(namespace) = found else { return Ok(HubNamespace::Free) };
        if namespace.metadata.deletion_timestamp.is_some() {
            return Err(Failure::refused(format!(
                "on the hub the namespace {name:?} of an earlier cluster is still going away"
            ))
            .hint("wait until it is gone, then run this again"));
        }
        let owner = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER_NAME));
        match owner.map(String::as_str) {
            Some(owner) if owner == name => Ok(HubNamespace::Left),
            _ if adopt => Ok(HubNamespace::Adopted),
            _ => Err(Failure::refused(format!(
                "on the hub a namespace {name:?} exists that is not a managed cluster's, and the cluster's agent would get \
                 rights in it; nothing was changed"
            ))
            .hint("choose another name")
            .hint(Remedy::AdoptNamespace)),
        }
    }
}

/// What finding the agent's request over gRPC needs: its log names it.
pub(super) fn log_rights(survey: &Survey) -> [Right; 2] {
    [("list", "pods"), ("get", "pods/log")]
        .map(|(verb, resource)| Right::new(verb, "", resource).within(&survey.names.namespace))
}

/// The agent has a certificate of a managed cluster that the hub has no more, and another one has its name.
fn registered_anew(name: &str, label: &str, server: &str, registered: Timestamp) -> Failure {
    Failure::refused(format!(
        "{label} has joined the hub at {server} as {name:?}, but that managed cluster was removed there and registered anew \
         since; nothing was changed"
    ))
    .because(format!(
        "the hub has managed cluster {name:?} since {registered}, and the certificate that the agent holds is older: somebody \
         else may have got the name"
    ))
    .hint(Remedy::SeeRequests(name.to_owned()))
    .hint(Remedy::UnjoinAlone(name.to_owned()))
}

fn detaching(name: &str, why: String) -> Failure {
    Failure::refused(format!("the hub is removing managed cluster {name:?}"))
        .because(why)
        .hint("wait until it is gone, then run this again")
}

fn denied(name: &str) -> Failure {
    Failure::refused(format!("the hub has denied {name:?}; nothing was changed"))
        .hint(Remedy::AcceptDenied(name.to_owned()))
}

/// Whether the holder of the token may do what an agent does to register.
async fn may_register(hub: &Cluster, token: &str) -> Result<(), Failure> {
    let asked = [
        ("create", "cluster.open-cluster-management.io", "managedclusters"),
        ("create", "certificates.k8s.io", "certificatesigningrequests"),
        ("list", "certificates.k8s.io", "certificatesigningrequests"),
    ]
    .map(async |(verb, group, resource)| {
        let answer = access::may(&hub.client, &Right::new(verb, group, resource)).await;
        if !answer.map_err(|error| on_hub::said(hub, token, &error))? {
            return Err(Failure::new(
                Reason::Forbidden,
                format!("the hub at {} knows the token, but its holder may not register clusters", hub.server),
            )
            .because(format!("may not {verb} {resource}.{group}"))
            .hint(Remedy::RestoreRegistering));
        }
        Ok(())
    });
    futures::future::try_join_all(asked).await?;
    Ok(())
}

/// A refusal because the hub has the name already.
pub(super) fn taken(wanted: &str, why: &str) -> Failure {
    Failure::new(
        Reason::Refused,
        format!("the hub has a managed cluster {wanted:?} already, and {why}; nothing was changed"),
    )
    .hint(format!(
        "choose another name; or, if that cluster is this one and was rebuilt, detach it on the hub first: \
         kubectl delete managedcluster {wanted}"
    ))
}

/// What the plan needs, object by object, and what clearing leases needs where there are some to clear.
pub(super) fn rights(plan: &Plan, survey: &Survey) -> Vec<Right> {
    let mut rights = access::to_apply(plan);
    let mut need = |right: Right| {
        if !rights.contains(&right) {
            rights.push(right);
        }
    };
    lease_rights(survey).for_each(&mut need);
    // Nobody can grant what they do not hold, unless they may escalate; the operator holds a great deal.
    for verb in ["escalate", "bind"] {
        need(Right::new(verb, "rbac.authorization.k8s.io", "clusterroles"));
    }
    rights
}

/// Checks what was typed for the pods, and says where those of the operator do not get it.
///
/// # Errors
/// A PriorityClass that the cluster does not have; the failure of the request.
pub(super) async fn pods(
    managed: &Cluster,
    settings: &Settings,
    survey: &Survey,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let typed = settings.scheduling.priority_class.as_deref();
    if let Some(class) = typed.or(settings.values.priority_class()) {
        has_priority_class(managed, class).await?;
    }
    if survey.live.is_shared && settings.is_about_operator() {
        narrator.tell(Event::note(format!(
            "the operator on {} serves other clusters, too, and stays as it is: only the agent gets what was typed for pods",
            managed.label()
        )));
    }
    Ok(())
}

/// Judges what was chosen of the Klusterlet of an agent that dials this hub, and says what of it has no effect.
///
/// # Errors
/// A refusal of what the agent cannot have.
pub(super) fn choices(
    settings: &Settings,
    survey: &Survey,
    hub: &HubAddress,
    grpc: Option<&Server>,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let mut warnings = judge(settings, &survey.live)?;
    if let Some(alias) = &settings.host_alias {
        let host = Endpoint::parse(&hub.server, None).ok().map(|endpoint| endpoint.host);
        let mut dialled = host.into_iter().chain(grpc.map(|server| server.address.host.clone()));
        if !dialled.any(|host| host.eq_ignore_ascii_case(&alias.hostname)) {
            warnings.push(format!(
                "the agent does not look for {}, of which an address was given: it dials {}",
                alias.hostname, hub.server
            ));
        }
    }
    warnings.iter().for_each(|warning| narrator.tell(Event::warning(warning)));
    Ok(())
}

/// Checks that the cluster has the PriorityClass of the pods: none would be made without it. Who may not look finds out then.
async fn has_priority_class(managed: &Cluster, name: &str) -> Result<(), Failure> {
    let classes: Api<PriorityClass> = Api::all(managed.client.clone());
    match classes.get_metadata_opt(name).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let sentence = format!("{} has no PriorityClass {name:?}; nothing was changed", managed.label());
            Err(Failure::new(Reason::NotFound, sentence).hint("see which it has: kubectl get priorityclasses"))
        }
        Err(error) => {
            let failure = managed.explain(format_args!("read PriorityClass {name:?}"), error);
            if failure.reason == Reason::Forbidden { Ok(()) } else { Err(failure) }
        }
    }
}

/// What clearing leases needs where there are some to clear.
pub(super) fn lease_rights(survey: &Survey) -> impl Iterator<Item = Right> {
    survey.stale.iter().map(|stale| Right::new("delete", "coordination.k8s.io", "leases").within(&stale.namespace))
}

/// What accepting needs of a cluster of this name whose agent registers by this driver.
pub(super) fn rights_to_accept(name: &str, driver: &RegistrationAuthType) -> Vec<Right> {
    use ocm_api::names::signers;
    let signer = match driver {
        RegistrationAuthType::Grpc => signers::GRPC,
        _ => signers::KUBE_APISERVER_CLIENT,
    };
    let mut rights = vec![
        Right::new("list", "certificates.k8s.io", "certificatesigningrequests"),
        Right::new("update", "certificates.k8s.io", "certificatesigningrequests/approval"),
        Right::new("approve", "certificates.k8s.io", "signers").on(signer),
    ];
    rights.extend(to_accept().map(|right| right.on(name)));
    rights
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::accept::test_hub::hub;
    use crate::join::hub_access::TrustedBy;

    /// A hub whose managed cluster `c1` was created then and stands so.
    fn session(created: &str, accepted: bool, conditions: Value) -> HubSession {
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c1", "uid": "u2", "creationTimestamp": created},
            "spec": {"hubAcceptsClient": accepted}, "status": {"conditions": conditions},
        });
        let (client, _) = hub(move |_| (200, cluster.clone()));
        let address = HubAddress { server: "https://hub:6443".to_owned(), ..HubAddress::default() };
        HubSession { address, trusted_by: TrustedBy::Kubeconfig, access: Access::Admin(client) }
    }

    #[tokio::test]
    async fn a_cluster_that_was_removed_and_registered_anew_is_not_the_one_that_has_joined() {
        let issued: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let joined = json!([{
            "type": "ManagedClusterJoined", "status": "True", "reason": "r", "message": "",
            "lastTransitionTime": "2026-01-01T12:00:00Z",
        }]);
        let (before, after) = ("2026-01-01T11:59:00Z", "2026-01-01T12:01:00Z");
        let ask = async |session: HubSession, issued: Option<Timestamp>| session.remembers("c1", "it", issued).await;
        for accepted in [false, true] {
            let refused = ask(session(after, accepted, json!([])), Some(issued)).await.unwrap_err();
            assert_eq!(refused.reason, Reason::Refused);
            assert!(refused.message.contains("removed there and registered anew since"), "{refused}");
            assert!(refused.hints.contains(&Remedy::UnjoinAlone("c1".to_owned()).into()), "{:?}", refused.hints);
            let phase = if accepted { Phase::Accepted } else { Phase::Pending };
            assert_eq!(ask(session(before, accepted, json!([])), Some(issued)).await.unwrap(), phase);
            // Of an agent without a certificate nothing is known.
            assert_eq!(ask(session(after, accepted, json!([])), None).await.unwrap(), phase);
        }
        assert_eq!(ask(session(after, true, joined), Some(issued)).await.unwrap(), Phase::Joined);
    }
}
