//! Proxies of an add-on's agents: what an AddOnDeploymentConfig says of them.

use std::net::IpAddr;

use ocm_api::addon::AddOnConfig;
use ocm_api::{AddOnDeploymentConfig, Manifest};
use serde_json::{Value, json};

use super::places::ours;
use crate::certificate;
use crate::join::proxy::ProxyUrl;
use crate::leave::meta;

/// Name of the AddOnDeploymentConfig where none is said.
pub const CONFIG_NAME: &str = "addon-proxy-settings";

const GROUP: &str = "addon.open-cluster-management.io";
const RESOURCE: &str = "addondeploymentconfigs";

/// The member with the certificates that vouch for an https proxy.
const CA: &str = "caBundle";

/// Domains of the cluster's own Services: no proxy leads to these.
const OWN: [&str; 2] = [".cluster.local", ".svc"];

/// A setting that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting<T> {
    /// It is this.
    Is(T),
    /// It is taken away.
    Without,
}

/// What is said of proxies; what is not stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyOptions {
    /// The proxy of HTTP requests.
    pub http: Option<Setting<ProxyUrl>>,
    /// The proxy of HTTPS requests.
    pub https: Option<Setting<ProxyUrl>>,
    /// Hosts, domains, addresses and networks to which no proxy leads; the domains of the cluster's own Services are added.
    pub no_proxy: Option<Setting<Vec<String>>>,
    /// Certificates (DER) that vouch for an https proxy.
    pub ca: Option<Vec<Vec<u8>>>,
    /// Addresses and networks of the cluster's Services: no proxy leads to these either.
    pub services: Vec<String>,
}

impl ProxyOptions {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something is taken away, and nothing is set.
    pub fn only_takes_away(&self) -> bool {
        let Self { http, https, no_proxy, ca, services: _ } = self;
        let sets = |said: &Option<Setting<ProxyUrl>>| matches!(said, Some(Setting::Is(_)));
        let sets_any = sets(http) || sets(https) || matches!(no_proxy, Some(Setting::Is(_))) || ca.is_some();
        !sets_any && (http.is_some() || https.is_some() || no_proxy.is_some())
    }

    /// Whether a URL that is said names a user.
    pub fn names_user(&self) -> bool {
        let names_user = |said: &Setting<ProxyUrl>| matches!(said, Setting::Is(url) if url.as_str().contains('@'));
        [&self.http, &self.https].into_iter().flatten().any(names_user)
    }
}

/// A reference to an AddOnDeploymentConfig.
pub fn config_reference(namespace: &str, name: &str) -> AddOnConfig {
    AddOnConfig {
        group: GROUP.to_owned(),
        resource: RESOURCE.to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

/// The kind of AddOnDeploymentConfigs, as a [`Configured`](super::Configured) names it.
pub fn config_kind() -> String {
    format!("{RESOURCE}.{GROUP}")
}

/// The AddOnDeploymentConfig with what is said of proxies. What else the live one holds stays. Upstream:
/// `addon/v1alpha1.ProxyConfig`.
pub fn proxy_config(namespace: &str, name: &str, options: &ProxyOptions, live: Option<&Value>) -> Manifest {
    let urls = [
        ("httpProxy", url(options.http.as_ref())),
        ("httpsProxy", url(options.https.as_ref())),
        ("noProxy", no_proxy(options, live)),
    ];
    let mut spec = live.map(ours).unwrap_or_default();
    let mut proxy = spec["proxyConfig"].as_object().cloned().unwrap_or_default();
    for (member, said) in urls {
        let text = match said {
            Some(Setting::Is(text)) => text,
            // Others may have set it: it goes if it is said to be empty.
            Some(Setting::Without) if there(live, member).is_some() => String::new(),
            Some(Setting::Without) | None => continue,
        };
        proxy.insert(member.to_owned(), Value::String(text));
    }
    match ca(options) {
        Some(Setting::Is(bundle)) => drop(proxy.insert(CA.to_owned(), Value::String(bundle))),
        // The server takes no empty one. That of others stays: it vouches for nothing.
        Some(Setting::Without) => drop(proxy.remove(CA)),
        None => {}
    }
    spec["proxyConfig"] = Value::Object(proxy);
    Manifest::with::<AddOnDeploymentConfig>(&meta(Some(namespace), name), json!({"spec": spec})).exactly()
}

fn there<'a>(live: Option<&'a Value>, member: &str) -> Option<&'a str> {
    live.and_then(|live| live["spec"]["proxyConfig"][member].as_str())
}

fn url(said: Option<&Setting<ProxyUrl>>) -> Option<Setting<String>> {
    said.map(|said| match said {
        Setting::Is(url) => Setting::Is(url.as_str().to_owned()),
        Setting::Without => Setting::Without,
    })
}

fn no_proxy(options: &ProxyOptions, live: Option<&Value>) -> Option<Setting<String>> {
    let ProxyOptions { no_proxy, services, .. } = options;
    let known = there(live, "noProxy").filter(|text| !text.is_empty());
    match (no_proxy, known) {
        (Some(Setting::Without), _) => Some(Setting::Without),
        (Some(Setting::Is(list)), _) => Some(Setting::Is(joined(list.iter().map(String::as_str), services))),
        (None, Some(_)) if services.is_empty() => None,
        (None, Some(text)) => Some(Setting::Is(joined(text.split(',').map(str::trim), services))),
        (None, None) => has_proxy(options, live).then(|| Setting::Is(joined([].into_iter(), services))),
    }
}

/// Whether there is a proxy afterwards.
fn has_proxy(options: &ProxyOptions, live: Option<&Value>) -> bool {
    let of = |said: &Option<Setting<ProxyUrl>>, member: &str| match said {
        Some(said) => *said != Setting::Without,
        None => there(live, member).is_some_and(|url| !url.is_empty()),
    };
    of(&options.http, "httpProxy") || of(&options.https, "httpsProxy")
}

/// What no proxy leads to, each once: what is named, the domains of the cluster's own Services, and their addresses.
fn joined<'a>(named: impl Iterator<Item = &'a str>, services: &'a [String]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for one in named.chain(OWN).chain(services.iter().map(String::as_str)) {
        if !one.is_empty() && !all.contains(&one) {
            all.push(one);
        }
    }
    all.join(",")
}

fn ca(options: &ProxyOptions) -> Option<Setting<String>> {
    match (&options.ca, &options.https) {
        (Some(ca), _) => Some(Setting::Is(certificate::to_pem_base64(ca))),
        // There is no https proxy any more that it could vouch for.
        (None, Some(Setting::Without)) => Some(Setting::Without),
        (None, Some(Setting::Is(url))) if !url.is_https() => Some(Setting::Without),
        (None, _) => None,
    }
}

/// What an AddOnDeploymentConfig lacks with which pods reach the API server of their own cluster: they dial an address.
/// None if it names one, or has no proxy.
pub fn api_server_behind_proxy(planned: &Manifest, live: Option<&Value>) -> Option<String> {
    let said = &planned.body()["spec"]["proxyConfig"];
    let text = |member: &str| said[member].as_str().or_else(|| there(live, member)).unwrap_or_default();
    let has_proxy = !text("httpProxy").is_empty() || !text("httpsProxy").is_empty();
    let is_address = |entry: &str| entry == "*" || is_network(entry) || entry.parse::<IpAddr>().is_ok();
    (has_proxy && !text("noProxy").split(',').map(str::trim).any(is_address)).then(|| {
        "noProxy names no address: pods dial the API server of their cluster by the address of Service default/kubernetes, \
         and would go through the proxy"
            .to_owned()
    })
}

/// Whether a text can be an entry of a list of hosts to which no proxy leads: a host, with a port or not; a domain that begins
/// with a dot; an address; a network; `*` for all.
pub fn is_no_proxy(entry: &str) -> bool {
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-_.:[]*".contains(c);
    !entry.is_empty() && (entry.chars().all(is_host) || is_network(entry))
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// The addresses of a Service and the networks of Services. Upstream: `core/v1.ServiceSpec`, `networking/v1.ServiceCIDRSpec`.
pub fn service_addresses(service: Option<&Value>, networks: &[Value]) -> Vec<String> {
    let list = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        all.map(str::to_owned).collect()
    };
    let addresses = service.map(|service| list(&service["spec"]["clusterIPs"])).unwrap_or_default();
    addresses.into_iter().chain(networks.iter().flat_map(|network| list(&network["spec"]["cidrs"]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(url: &str) -> Option<Setting<ProxyUrl>> {
        Some(Setting::Is(ProxyUrl::parse(url).unwrap()))
    }

    fn settings(options: &ProxyOptions, live: Option<Value>) -> Value {
        let live = live.map(|proxy| json!({"spec": {"proxyConfig": proxy}}));
        let manifest = proxy_config("c1", CONFIG_NAME, options, live.as_ref());
        assert_eq!(manifest.namespace(), Some("c1"));
        manifest.body()["spec"]["proxyConfig"].clone()
    }

    #[test]
    fn what_belongs_to_the_cluster_is_reached_without_a_proxy() {
        let options = ProxyOptions { http: through("http://10.0.0.1:3128"), ..ProxyOptions::default() };
        assert_eq!(
            settings(&options, None),
            json!({"httpProxy": "http://10.0.0.1:3128", "noProxy": ".cluster.local,.svc"})
        );
        let services = service_addresses(
            Some(&json!({"spec": {"clusterIPs": ["10.96.0.1"]}})),
            &[json!({"spec": {"cidrs": ["10.96.0.0/16"]}})],
        );
        let list = vec!["example.com".to_owned(), ".svc".to_owned()];
        let options = ProxyOptions { no_proxy: Some(Setting::Is(list)), services: services.clone(), ..options };
        let told = settings(&options, None);
        assert_eq!(told["noProxy"], "example.com,.svc,.cluster.local,10.96.0.1,10.96.0.0/16");
        // What is there stays, and is added to.
        let options = ProxyOptions { services, ..ProxyOptions::default() };
        let told = settings(&options, Some(json!({"httpProxy": "http://a:1", "noProxy": "b, .svc"})));
        assert_eq!(told, json!({"noProxy": "b,.svc,.cluster.local,10.96.0.1,10.96.0.0/16"}));
        assert_eq!(settings(&ProxyOptions::default(), Some(json!({"noProxy": "b"}))), json!({}));
    }

    #[test]
    fn taking_away_is_told_apart_from_setting_and_from_saying_nothing() {
        let without = ProxyOptions { https: Some(Setting::Without), ..ProxyOptions::default() };
        let no_list = ProxyOptions { no_proxy: Some(Setting::Without), ..ProxyOptions::default() };
        // What the cluster says of its own addresses is no proxy.
        let services = ProxyOptions { services: vec!["10.96.0.0/16".to_owned()], ..without.clone() };
        for options in [&without, &no_list, &services] {
            assert!(options.only_takes_away(), "{options:?}");
        }
        let sets = [
            ProxyOptions { http: through("http://a:1"), ..without.clone() },
            ProxyOptions { no_proxy: Some(Setting::Is(vec!["b".to_owned()])), ..without.clone() },
            ProxyOptions { ca: Some(vec![b"c".to_vec()]), ..without },
            ProxyOptions::default(),
        ];
        for options in sets {
            assert!(!options.only_takes_away(), "{options:?}");
        }
    }

    #[test]
    fn what_is_not_said_stays_and_what_is_taken_away_goes() {
        let options = ProxyOptions { https: Some(Setting::Without), ..ProxyOptions::default() };
        let live = json!({"httpProxy": "http://a:1", "httpsProxy": "https://b:2", "noProxy": "c", "caBundle": "eA=="});
        assert_eq!(settings(&options, Some(live)), json!({"httpsProxy": ""}));
        // Once more it is the same, and where nothing is there nothing is said.
        assert_eq!(settings(&options, Some(json!({"httpsProxy": ""}))), json!({"httpsProxy": ""}));
        assert_eq!(settings(&options, None), json!({}));
        let none = ProxyOptions { no_proxy: Some(Setting::Without), ..ProxyOptions::default() };
        assert_eq!(settings(&none, Some(json!({"noProxy": "c"}))), json!({"noProxy": ""}));
    }

    #[test]
    fn a_ca_belongs_to_an_https_proxy() {
        let options =
            ProxyOptions { https: through("https://p:1"), ca: Some(vec![vec![1]]), ..ProxyOptions::default() };
        assert_eq!(settings(&options, None)["caBundle"], certificate::to_pem_base64(&[vec![1]]));
        let plain = ProxyOptions { https: through("http://p:1"), ..ProxyOptions::default() };
        let other = ProxyOptions { https: through("https://q:1"), ..ProxyOptions::default() };
        let ours = json!({
            "metadata": {"managedFields": [{"manager": "kubectl-ocm", "operation": "Apply", "fieldsV1": {
                "f:spec": {"f:proxyConfig": {"f:caBundle": {}, "f:httpProxy": {}}}}}]},
            "spec": {"proxyConfig": {"caBundle": "eA==", "httpProxy": "http://h:1", "noProxy": ".svc"}},
        });
        // What an apply of ours does not mention goes; what others have written stays.
        let after = |options: &ProxyOptions| {
            let planned = proxy_config("c1", CONFIG_NAME, options, Some(&ours));
            assert!(planned.is_exact());
            planned.body()["spec"]["proxyConfig"].clone()
        };
        assert_eq!(after(&plain), json!({"httpProxy": "http://h:1", "httpsProxy": "http://p:1"}));
        assert_eq!(after(&other), json!({"caBundle": "eA==", "httpProxy": "http://h:1", "httpsProxy": "https://q:1"}));
        assert!(ProxyOptions { http: through("http://me:x@p:1"), ..ProxyOptions::default() }.names_user());
        assert!(!other.names_user());
    }

    #[test]
    fn it_is_told_when_the_api_server_would_be_reached_by_the_proxy() {
        let told = |options: &ProxyOptions, live: Value| {
            let live = json!({"spec": {"proxyConfig": live}});
            let planned = proxy_config("c1", CONFIG_NAME, options, Some(&live));
            api_server_behind_proxy(&planned, Some(&live)).is_some()
        };
        let options = ProxyOptions { https: through("http://a:1"), ..ProxyOptions::default() };
        assert!(told(&options, json!({"noProxy": ".svc,.cluster.local"})));
        for no_proxy in ["10.96.0.1", ".svc, 10.96.0.0/16", "fd00::/108", "*"] {
            assert!(!told(&options, json!({"noProxy": no_proxy})), "{no_proxy}");
        }
        let without = ProxyOptions { https: Some(Setting::Without), ..ProxyOptions::default() };
        assert!(!told(&without, json!({"httpsProxy": "http://a:1", "noProxy": ".svc"})));
        assert!(told(&without, json!({"httpProxy": "http://a:1", "noProxy": ".svc"})));
    }

    #[test]
    fn entries_are_hosts_domains_addresses_and_networks() {
        for good in ["a.example", ".svc", "*.example", "10.0.0.1", "10.0.0.0/8", "fd00::/8", "[::1]:80", "a:80", "*"] {
            assert!(is_no_proxy(good), "{good}");
        }
        for bad in ["", "a b", "http://a", "10.0.0.0/33", "a/8", "10.0.0.0/", "10.0.0.0/x"] {
            assert!(!is_no_proxy(bad), "{bad}");
        }
    }
}
