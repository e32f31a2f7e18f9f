//! The add-on cluster-proxy: proxy servers on the hub, which agents of managed clusters dial, and what keeps a cluster from
//! being reached through them. Upstream: open-cluster-management-io/cluster-proxy.

use jiff::Timestamp;
use ocm_api::conditions;
use ocm_api::{Condition, ManagedCluster, ManagedClusterAddOn};
use serde_json::{Value, json};

use crate::phase::{Phase, standing};
use crate::{Failure, Hint, Reason, Remedy, delivery};

/// Name of the add-on and of its ManagedProxyConfiguration. Upstream: `common.AddonName`, `ManagedClusterConfigurationName`.
pub const ADDON: &str = "cluster-proxy";
/// Label of the pods of proxy servers. Upstream: `common.LabelKeyComponentName`, `common.ComponentNameProxyServer`.
pub const SERVERS: &str = "proxy.open-cluster-management.io/component-name=proxy-server";
/// Label of the pods of agents on managed clusters.
pub const AGENTS: &str = "proxy.open-cluster-management.io/component-name=proxy-agent";
/// Port at which proxy servers serve clients. Upstream: `newProxyService`.
pub const PORT: u16 = 8090;
/// Secret with the CA of the proxy servers, in `ca.crt`. Upstream: `signerSecretName`.
pub const CA_SECRET: &str = "proxy-server-ca";

/// Conditions of a ManagedProxyConfiguration, in the order in which one needs the other.
const CONDITIONS: [&str; 3] = ["ProxyServerSecretSigned", "AgentServerSecretSigned", "ProxyServerDeployed"];
/// A name that the certificates of API servers are valid for, wherever they run.
const API_SERVER: &str = "kubernetes.default.svc";

/// What a ManagedProxyConfiguration says. Upstream: `proxy/v1alpha1.ManagedProxyConfigurationSpec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Namespace of the proxy servers.
    pub namespace: String,
    /// How agents reach them, for people.
    pub entrypoint: String,
    /// Secret with the certificate and the key that clients show.
    pub client_secret: String,
    /// What its conditions say that keeps them from serving; none if nothing.
    pub why: Option<String>,
}

impl Servers {
    /// Reads a ManagedProxyConfiguration.
    pub fn of(config: &Value) -> Self {
        let text = |pointer: &str, default: &str| {
            let text = config.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.unwrap_or(default).to_owned()
        };
        Self {
            namespace: text("/spec/proxyServer/namespace", "open-cluster-management-cluster-proxy"),
            entrypoint: entrypoint(&config["spec"]["proxyServer"]["entrypoint"]),
            client_secret: text("/spec/authentication/dump/secrets/signingProxyClientSecretName", "proxy-client"),
            why: unmet(&config["status"]["conditions"]),
        }
    }
}

fn entrypoint(entrypoint: &Value) -> String {
    let port = entrypoint["port"].as_i64().unwrap_or(8091);
    let text = |pointer: &str| entrypoint.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/type") {
        "Hostname" => format!("{}:{port}", text("/hostname/value")),
        "LoadBalancerService" => format!("the address of the load balancer, port {port}"),
        "PortForward" => "the hub's API server".to_owned(),
        _ => format!("the Service of the proxy servers, port {port}"),
    }
}

/// The first condition that does not hold.
fn unmet(all: &Value) -> Option<String> {
    let all: Vec<Condition> = serde_json::from_value(all.clone()).unwrap_or_default();
    if all.is_empty() {
        return Some("the add-on's manager has not looked at ManagedProxyConfiguration cluster-proxy yet".to_owned());
    }
    let mut known = CONDITIONS.iter().filter_map(|kind| delivery::find(&all, kind));
    let unmet = known.find(|condition| condition.status != conditions::TRUE);
    unmet.map(|condition| format!("{}: {}", condition.type_, delivery::told(condition)))
}

/// What became of the try to reach a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Nobody has tried.
    NotTried,
    /// Its API server was reached, in so many milliseconds.
    Reached(u64),
    /// It was not, for this reason.
    Failed(String),
}

/// What is known about a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The cluster.
    pub cluster: &'a ManagedCluster,
    /// Its add-on; none if it has none.
    pub addon: Option<&'a ManagedClusterAddOn>,
    /// The placements by which the hub installs the add-on, `NAMESPACE/NAME`; none: people enable it.
    pub placements: &'a [String],
    /// What keeps the proxy servers from serving.
    pub servers: Option<&'a str>,
    /// How agents reach them.
    pub entrypoint: &'a str,
    /// What became of the try to reach it.
    pub probe: &'a Probe,
}

/// What keeps a cluster from being reached, and what to do next; none if it is reached, or nothing is known against it.
pub fn obstacle(facts: &Facts<'_>) -> Option<(String, Hint)> {
    let Facts { cluster, addon, placements, servers, entrypoint, probe } = *facts;
    let name = cluster.metadata.name.clone().unwrap_or_default();
    if matches!(probe, Probe::Reached(_)) {
        return None;
    }
    let standing = standing(cluster);
    match standing.phase {
        Phase::Pending | Phase::Denied => {
            return Some((format!("the hub has not accepted it: {}", standing.message), Remedy::Accept(name).into()));
        }
        Phase::Detaching => {
            return Some((standing.message, Remedy::SeeCluster(name).into()));
        }
        Phase::Accepted | Phase::Joined | Phase::Available | Phase::Unavailable | Phase::Unknown => {}
    }
    let Some(addon) = addon else {
        let hint = match placements.first().and_then(|placement| placement.split_once('/')) {
            None => Remedy::EnableAddOn { name: ADDON.to_owned(), cluster: name },
            Some((namespace, name)) => {
                Remedy::ExplainPlacement { namespace: namespace.to_owned(), name: name.to_owned() }
            }
        };
        let why = match placements {
            [] => "it does not have the add-on".to_owned(),
            all => format!("it does not have the add-on: the hub installs it by {}", all.join(", ")),
        };
        return Some((why, hint.into()));
    };
    let namespace = addon.status.as_ref().and_then(|status| status.namespace.clone());
    let agents = Remedy::SeeProxyAgents(namespace);
    if standing.phase != Phase::Available {
        let why = format!("it is {}: {}", standing.phase, standing.message);
        return Some((why, Remedy::FindCause.into()));
    }
    if let Some(why) = servers {
        return Some((format!("proxy servers: {why}"), Remedy::SeeProxyServers.into()));
    }
    if let Some(why) = delivery::addon(addon) {
        return Some((why, agents.into()));
    }
    match probe {
        Probe::Failed(why) => {
            Some((format!("{why}; its agents reach the proxy servers by {entrypoint}"), agents.into()))
        }
        Probe::NotTried | Probe::Reached(_) => None,
    }
}

/// A ManagedServiceAccount, whose token the agent of its cluster keeps on the hub. Upstream:
/// `authentication/v1beta1.ManagedServiceAccount`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// The Secret with its token and the CA of its cluster, in the same namespace.
    pub secret: String,
}

/// The ManagedServiceAccount of a cluster that is named, or else the only one whose token is there.
///
/// # Errors
/// [`Reason::NotFound`] for one that is not there; a refusal, if there is none with a token that is valid, or several.
pub fn account(all: &[Value], name: Option<&str>, cluster: &str, now: Timestamp) -> Result<Account, Failure> {
    let name_of = |account: &Value| account["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if let Some(name) = name {
        let Some(found) = all.iter().find(|account| name_of(account) == name) else {
            let sentence = format!("cluster {cluster:?} has no ManagedServiceAccount {name:?}");
            let known: Vec<String> = all.iter().map(name_of).collect();
            return Err(Failure::new(Reason::NotFound, sentence).hint(match known.is_empty() {
                true => "see how to make one: kubectl explain managedserviceaccount.spec".to_owned(),
                false => format!("there are: {}", known.join(", ")),
            }));
        };
        return usable(found, now).map_err(|why| {
            Failure::refused(format!("ManagedServiceAccount {name:?} of cluster {cluster:?}: {why}"))
                .hint(Remedy::SeeAccount { name: name.to_owned(), cluster: cluster.to_owned() })
        });
    }
    let mut valid: Vec<Account> = all.iter().filter_map(|account| usable(account, now).ok()).collect();
    match (valid.pop(), valid.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            let known: Vec<String> = valid.into_iter().chain([last]).map(|account| account.name).collect();
            let sentence = format!("cluster {cluster:?} has several ManagedServiceAccounts: {}", known.join(", "));
            Err(Failure::refused(sentence).hint(Remedy::NameAccount))
        }
        (None, _) => {
            Err(Failure::refused(format!("cluster {cluster:?} has no ManagedServiceAccount with a valid token"))
                .hint(Remedy::SeeAccounts(cluster.to_owned())))
        }
    }
}

/// The account, if its token is there and has not expired.
fn usable(account: &Value, now: Timestamp) -> Result<Account, String> {
    let text = |pointer: &str| account.pointer(pointer).and_then(Value::as_str);
    let secret = text("/status/tokenSecretRef/name").ok_or("its token is not there yet")?;
    let expires = text("/status/expirationTimestamp").and_then(|time| time.parse::<Timestamp>().ok());
    if let Some(expired) = expires.filter(|expires| *expires <= now) {
        return Err(format!("its token has expired ({expired})"));
    }
    Ok(Account { name: text("/metadata/name").unwrap_or_default().to_owned(), secret: secret.to_owned() })
}

/// A kubeconfig for a managed cluster that is reached at a port of this machine, as whom a token names. Its API server is
/// verified by the CA (PEM in base64) of its own cluster.
pub fn kubeconfig(cluster: &str, port: u16, ca: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "tls-server-name": API_SERVER,
            "certificate-authority-data": ca,
        }}],
        "users": [{"name": cluster, "user": {"token": token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &str, status: &str) -> Value {
        json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn defaults_are_those_of_the_schema() {
        let read = Servers::of(&json!({"spec": {"proxyServer": {}}}));
        assert_eq!(
            (read.namespace.as_str(), read.client_secret.as_str()),
            ("open-cluster-management-cluster-proxy", "proxy-client")
        );
        assert!(read.why.unwrap().contains("has not looked"));
        let told =
            |entrypoint: Value| Servers::of(&json!({"spec": {"proxyServer": {"entrypoint": entrypoint}}})).entrypoint;
        assert_eq!(
            told(json!({"type": "Hostname", "hostname": {"value": "hub.example"}, "port": 443})),
            "hub.example:443"
        );
        assert_eq!(told(json!({"type": "PortForward"})), "the hub's API server");
    }

    #[test]
    fn what_is_signed_first_is_told_first() {
        let why = |conditions: Value| Servers::of(&json!({"status": {"conditions": conditions}})).why;
        let all = json!([condition("ProxyServerDeployed", "False"), condition("AgentServerSecretSigned", "False")]);
        assert_eq!(why(all).unwrap(), "AgentServerSecretSigned: R: m");
        assert_eq!(why(json!([condition("ProxyServerDeployed", "True")])), None);
    }

    struct Case {
        cluster: ManagedCluster,
        addon: Option<ManagedClusterAddOn>,
        placements: Vec<String>,
        servers: Option<&'static str>,
        probe: Probe,
    }

    fn well() -> Case {
        let joined = ["HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"];
        let conditions: Vec<Value> = joined.iter().map(|kind| condition(kind, "True")).collect();
        let cluster = json!({"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": true}, "status": {"conditions": conditions}});
        let addon = json!({"metadata": {"name": ADDON, "namespace": "c1"}, "spec": {},
            "status": {"namespace": "ns", "conditions": [condition("Available", "True")]}});
        Case {
            cluster: serde_json::from_value(cluster).unwrap(),
            addon: Some(serde_json::from_value(addon).unwrap()),
            placements: Vec::new(),
            servers: None,
            probe: Probe::NotTried,
        }
    }

    fn told(case: &Case) -> Option<(String, Hint)> {
        obstacle(&Facts {
            cluster: &case.cluster,
            addon: case.addon.as_ref(),
            placements: &case.placements,
            servers: case.servers,
            entrypoint: "hub.example:8091",
            probe: &case.probe,
        })
    }

    #[test]
    fn whoever_is_reached_is_well_whatever_is_said() {
        assert_eq!(told(&well()), None);
        let reached = Case { addon: None, servers: Some("none"), probe: Probe::Reached(3), ..well() };
        assert_eq!(told(&reached), None);
    }

    #[test]
    fn what_is_needed_first_is_told_first() {
        let failed = Case { probe: Probe::Failed("no agent".to_owned()), ..well() };
        let (why, hint) = told(&failed).unwrap();
        assert_eq!(why, "no agent; its agents reach the proxy servers by hub.example:8091");
        assert_eq!(hint, Hint::from(Remedy::SeeProxyAgents(Some("ns".to_owned()))));

        let mut unwell = Case { probe: Probe::Failed("no agent".to_owned()), ..well() };
        unwell.addon.as_mut().unwrap().status.as_mut().unwrap().conditions[0].status = "False".to_owned();
        assert_eq!(told(&unwell).unwrap().0, "Available: R: m");

        let servers = Case { servers: Some("0 of 1 pods are ready"), ..unwell };
        assert_eq!(told(&servers).unwrap().0, "proxy servers: 0 of 1 pods are ready");

        let mut silent = Case { servers: Some("x"), ..well() };
        silent.cluster.status.as_mut().unwrap().conditions[2].status = "Unknown".to_owned();
        assert_eq!(told(&silent).unwrap(), ("it is Unknown: m".to_owned(), Hint::from(Remedy::FindCause)));

        let without = Case { addon: None, ..well() };
        let enable = Remedy::EnableAddOn { name: ADDON.to_owned(), cluster: "c1".to_owned() };
        assert_eq!(told(&without).unwrap(), ("it does not have the add-on".to_owned(), Hint::from(enable)));
        let placed = Case { placements: vec!["n/p".to_owned()], ..without };
        let explain = Remedy::ExplainPlacement { namespace: "n".to_owned(), name: "p".to_owned() };
        assert_eq!(told(&placed).unwrap().1, Hint::from(explain));

        let mut pending = placed;
        pending.cluster.spec.hub_accepts_client = Some(false);
        pending.cluster.status = None;
        assert_eq!(told(&pending).unwrap().1, Hint::from(Remedy::Accept("c1".to_owned())));
    }

    fn an_account(name: &str, status: Value) -> Value {
        json!({"metadata": {"name": name}, "status": status})
    }

    #[test]
    fn the_only_account_with_a_valid_token_is_taken() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let token = |name: &str, expires: &str| {
            an_account(
                name,
                json!({"tokenSecretRef": {"name": format!("{name}-token")}, "expirationTimestamp": expires}),
            )
        };
        let (good, old) = (token("good", "2026-07-01T00:00:00Z"), token("old", "2026-05-01T00:00:00Z"));
        let pending = an_account("pending", json!({}));
        let expected = Account { name: "good".to_owned(), secret: "good-token".to_owned() };
        assert_eq!(account(&[old.clone(), pending.clone(), good.clone()], None, "c1", now), Ok(expected.clone()));
        assert_eq!(account(std::slice::from_ref(&good), Some("good"), "c1", now), Ok(expected));
        let other = token("other", "2026-07-01T00:00:00Z");
        let several = account(&[good.clone(), other], None, "c1", now).unwrap_err();
        assert!(
            several.message.ends_with("good, other") && several.hints == [Hint::from(Remedy::NameAccount)],
            "{several:?}"
        );
        let refused = |name: Option<&str>| account(&[old.clone(), pending.clone()], name, "c1", now).unwrap_err();
        assert!(refused(Some("old")).message.ends_with("its token has expired (2026-05-01T00:00:00Z)"));
        assert!(refused(Some("pending")).message.ends_with("its token is not there yet"));
        assert_eq!((refused(None).reason, refused(Some("x")).reason), (Reason::Refused, Reason::NotFound));
    }

    #[test]
    fn the_api_server_is_verified_by_a_name_that_it_has() {
        let config = kubeconfig("c1", 4711, "Q0E=", "t");
        let cluster = &config["clusters"][0]["cluster"];
        assert_eq!(
            (&cluster["server"], &cluster["tls-server-name"]),
            (&json!("https://127.0.0.1:4711"), &json!(API_SERVER))
        );
        assert_eq!(cluster.get("insecure-skip-tls-verify"), None);
    }
}
