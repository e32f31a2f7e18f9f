//! `kubectl ocm join` with a proxy for the agent, and with all that is typed for its pods, on real clusters. The proxy is Debian's
//! Apache: plain, with TLS, and with a password. Commands go through it as well.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::proxy::CREDENTIALS;
use control_plane::{Cluster, Spec};
use e2e_tests::debian_proxy::{DebianProxy, Listener};
use e2e_tests::join_support::{JoinCommand, alone, hub, hub_access};
use e2e_tests::roles::user_with;
use e2e_tests::webhook_support::own_address;
use e2e_tests::{Said, bundle, kubectl_ocm, object, resource_versions, run, settled, unchanged, until};
use ocm_core::kubeconfig::HubAddress;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

const AGENT: &str = "--namespace=open-cluster-management-agent";
/// What the agent registers with, and what it has written down when it had its certificate.
const SECRETS: [&str; 2] = ["bootstrap-hub-kubeconfig", "hub-kubeconfig-secret"];

fn content(cluster: &Cluster, secret: &str, key: &str) -> String {
    let secret = object(cluster, &["secret", secret, AGENT]);
    let value = secret["data"][key].as_str().unwrap_or_default();
    String::from_utf8(STANDARD.decode(value).expect("base64")).expect("text")
}

/// The ways to the hub of both kubeconfigs of the agent.
fn ways(cluster: &Cluster) -> [HubAddress; 2] {
    SECRETS.map(|secret| {
        let kubeconfig = content(cluster, secret, "kubeconfig");
        ocm_flows::hub::parse(&kubeconfig).unwrap_or_else(|| panic!("no kubeconfig in {secret}: {kubeconfig}")).hub
    })
}

/// The agent has its certificate by this proxy, and verifies with so many authorities.
fn goes_through(cluster: &Cluster, proxy: Option<&str>, authorities: usize) {
    for (way, secret) in ways(cluster).into_iter().zip(SECRETS) {
        assert_eq!((way.proxy.as_deref(), way.ca.len()), (proxy, authorities), "{secret}");
    }
}

fn succeeds(said: &Said, state: &str) {
    assert_eq!(said.code, Some(0), "{said:?}");
    let line = format!("managedcluster.cluster.open-cluster-management.io/proxied {state}\n");
    assert!(said.stdout.ends_with(&line), "{said:?}");
    assert!(!format!("{said:?}").contains("s3cr"), "a password is shown: {said:?}");
}

/// Wrong credentials, and what is said of each.
const WRONG: [(&str, &str); 2] =
    [("me:wr0ng-s3cr3t@", "does not accept the user name and the password"), ("", "wants a user name and a password")];

/// Runs a command that goes through a proxy, whatever else the environment says.
fn run_through(proxy: &str, command: &mut Command) -> Said {
    let said = run(command.env("HTTPS_PROXY", proxy).env_remove("NO_PROXY").env_remove("no_proxy"));
    // A token that is printed is no password of a proxy, and holds none of these by chance.
    let is_shown = ["s3cr@t", "s3cr%40t", "wr0ng-s3cr3t"].iter().any(|part| format!("{said:?}").contains(part));
    assert!(!is_shown, "a password is shown: {said:?}");
    said
}

/// The proxy stopped a command, which says so of the proxy.
fn stopped(said: &Said, proxy: &str, sentence: &str) {
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stderr.contains(&format!("the proxy {proxy} {sentence}")), "{sentence}: {said:?}");
}

/// A kubeconfig that trusts another authority, too.
fn trusting(kubeconfig: &Path, cluster: &Cluster, authority: &str) -> NamedTempFile {
    let text = std::fs::read_to_string(kubeconfig).expect("a kubeconfig");
    let own = STANDARD.encode(cluster.ca_pem());
    assert!(text.contains(&own), "it holds the CA of its cluster");
    let file = NamedTempFile::new().expect("a file");
    let both = STANDARD.encode(format!("{}\n{authority}", cluster.ca_pem()));
    std::fs::write(file.path(), text.replace(&own, &both)).expect("written");
    file
}

/// Host and port of a cluster, as a proxy is asked for it.
fn host_and_port(cluster: &Cluster) -> String {
    cluster.server().trim_start_matches("https://").to_owned()
}

/// The proxy has answered so to somebody who asked for this server.
fn answered(proxy: &DebianProxy, listener: Listener, status: u16, server: &str) {
    let line = format!("{status} CONNECT {server} HTTP/1.1");
    until(&format!("{listener:?} of the proxy has noted {line}"), || proxy.answers(listener).contains(&line));
}

#[test]
fn commands_reach_a_hub_through_a_proxy_of_debian_and_not_without_its_password() {
    let _alone = alone();
    let hub = hub();
    let proxy = DebianProxy::start(own_address(hub).parse().expect("an address"));
    let (server, trusting) = (host_and_port(hub), trusting(hub.kubeconfig(), hub, proxy.authority()));
    let get = |kubeconfig: &Path, url: &str| {
        run_through(url, kubectl_ocm("get", kubeconfig).args(["clusters", "--output=name"]))
    };
    // Where companies put the authority of their proxies.
    let system = NamedTempFile::new().expect("a file");
    std::fs::write(system.path(), proxy.authority()).expect("written");
    for listener in Listener::ALL {
        let right = if listener.wants_password() { CREDENTIALS } else { "" };
        let said = get(trusting.path(), &proxy.url(listener, right));
        assert_eq!(said.code, Some(0), "{listener:?}: {said:?}");
        let mut token = kubectl_ocm("token", trusting.path());
        let said = run_through(&proxy.url(listener, right), token.args(["create", "--output=json"]));
        assert_eq!(said.code, Some(0), "{listener:?}: {said:?}");
        assert_eq!(JoinCommand::read(&said.stdout).server, hub.server(), "{listener:?}");
        answered(&proxy, listener, 200, &server);
        if listener.wants_password() {
            for (wrong, sentence) in WRONG {
                stopped(&get(trusting.path(), &proxy.url(listener, wrong)), proxy.address(listener), sentence);
            }
            answered(&proxy, listener, 407, &server);
        }
        if listener.has_tls() {
            let sentence = "presents a certificate that the trusted CA did not sign";
            stopped(&get(hub.kubeconfig(), &proxy.url(listener, right)), proxy.address(listener), sentence);
            let mut trusting = kubectl_ocm("get", hub.kubeconfig());
            trusting.args(["clusters", "--output=name"]).env("SSL_CERT_FILE", system.path());
            let said = run_through(&proxy.url(listener, right), &mut trusting);
            assert_eq!(said.code, Some(0), "{listener:?}: {said:?}");
        }
    }

    // With a token. The cluster that joins is this machine's own, and is reached without a proxy.
    let cluster = Cluster::start(&Spec::api("by-token")).expect("a cluster");
    let (flags, bundle) = (JoinCommand::create(hub, &[]).flags(), format!("--bundle-version={}", bundle()));
    let join = |url: &str| {
        let mut command = kubectl_ocm("join", cluster.kubeconfig());
        command.args(["by-token", &bundle, "--dry-run=client"]).args(&flags).env("SSL_CERT_FILE", system.path());
        run_through(url, &mut command)
    };
    for listener in [Listener::Password, Listener::TlsPassword] {
        let before = proxy.connected(listener).len();
        let said = join(&proxy.url(listener, CREDENTIALS));
        assert!(said.code == Some(0) && said.stdout.contains("bootstrap-hub-kubeconfig"), "{listener:?}: {said:?}");
        assert!(proxy.connected(listener).len() > before, "{listener:?}: nobody went through it");
    }
    for (wrong, sentence) in WRONG {
        stopped(&join(&proxy.url(Listener::Password, wrong)), proxy.address(Listener::Password), sentence);
    }
}

#[test]
fn an_agent_reaches_its_hub_through_a_proxy_through_another_one_and_without_again() {
    let _alone = alone();
    let hub = hub();
    let cluster = Cluster::start(&Spec::node("proxied")).expect("a cluster");
    let joiner = user_with(&cluster, "proxied-joiner", &["join.yaml"]);
    let on_hub = user_with(hub, "proxied-hub-joiner", &["join-hub.yaml", "accept.yaml"]);
    let bundle = format!("--bundle-version={}", bundle());
    let command = |[joiner, on_hub]: [&Path; 2], flags: &[&str]| {
        let mut command = kubectl_ocm("join", joiner);
        command.args(["proxied", &bundle]).arg(format!("--hub-kubeconfig={}", on_hub.display())).args(flags);
        command
    };
    let files = [joiner.as_path(), on_hub.as_path()];
    let join = |flags: &[&str]| run(&mut command(files, flags));
    let nothing_happens = |before: &BTreeMap<String, String>, flags: &[&str], code: i32, words: &[&str]| {
        let said = join(flags);
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(words.iter().all(|word| said.stderr.contains(word)), "{words:?}: {said:?}");
        unchanged(&cluster, before, flags);
        said
    };
    let proxy = DebianProxy::start(own_address(hub).parse().expect("an address"));
    let [server, own] = [hub, &cluster].map(host_and_port);
    let [plain, secure] = [Listener::Password, Listener::TlsPassword].map(|of| proxy.url(of, CREDENTIALS));
    let authority = NamedTempFile::new().expect("a file");
    // One certificate twice: agents get each once.
    std::fs::write(authority.path(), format!("{0}{0}", proxy.authority())).expect("written");
    let authority = format!("--proxy-ca-file={}", authority.path().display());

    let before = settled(&cluster);
    nothing_happens(&before, &["--proxy-url=socks5://10.0.0.1:1080"], 2, &["neither http nor https", "--proxy-url ''"]);
    nothing_happens(&before, &["--proxy-url=http://127.0.0.1:3128"], 2, &["to a pod that is the pod itself"]);
    let needless = ["--proxy-ca-file goes with an https --proxy-url"];
    nothing_happens(&before, &["--proxy-url=http://10.0.0.1:3128", authority.as_str()], 2, &needless);
    nothing_happens(&before, &[authority.as_str()], 2, &needless);

    // From nothing to available: the agent through a proxy that asks for a password, the command through one that does not.
    let typed = format!("--proxy-url={plain}");
    let through_plain = typed.as_str();
    let flags = [through_plain, "--accept", "--wait"];
    succeeds(&run_through(&proxy.url(Listener::Plain, ""), &mut command(files, &flags)), "available");
    goes_through(&cluster, Some(&plain), 1);
    let passed = proxy.connected(Listener::Password);
    assert!(!passed.is_empty() && passed.iter().all(|asked| *asked == server), "{passed:?}");
    for server in [&server, &own] {
        answered(&proxy, Listener::Plain, 200, server);
    }
    let key = || content(&cluster, "hub-kubeconfig-secret", "tls.crt");
    let first = key();
    let before = settled(&cluster);
    for flags in [&["--accept", "--wait"][..], &[through_plain, "--accept", "--wait"], &[through_plain, "--diff"]] {
        nothing_happens(&before, flags, 0, &["already; nothing is changed"]);
    }

    // Through another one: first only looked at, then for real, by a command that goes through one with TLS itself.
    let typed = format!("--proxy-url={secure}");
    let flags = [typed.as_str(), authority.as_str()];
    let before = settled(&cluster);
    for (promise, code) in [("--dry-run=client", 0), ("--dry-run=server", 0), ("--diff", 3)] {
        let flags = [&flags[..], &[promise]].concat();
        let said = nothing_happens(&before, &flags, code, &["would get the proxy https://"]);
        assert!(said.stdout.contains("bootstrap-hub-kubeconfig") && !format!("{said:?}").contains("s3cr"), "{said:?}");
    }
    let trusted = [(&joiner, &cluster), (&on_hub, hub)].map(|(file, of)| trusting(file, of, proxy.authority()));
    let mut through_tls =
        command([trusted[0].path(), trusted[1].path()], &[&flags[..], &["--accept", "--wait"]].concat());
    succeeds(&run_through(&proxy.url(Listener::Tls, ""), &mut through_tls), "available");
    goes_through(&cluster, Some(&secure), 2);
    let passed = proxy.connected(Listener::TlsPassword);
    assert!(!passed.is_empty() && passed.iter().all(|asked| *asked == server), "{passed:?}");
    for server in [&server, &own] {
        answered(&proxy, Listener::Tls, 200, server);
    }
    let second = key();
    assert_ne!(first, second, "it has registered again");
    // Without the flag it keeps the proxy, and its CA.
    nothing_happens(&settled(&cluster), &["--accept", "--wait"], 0, &["already; nothing is changed"]);
    goes_through(&cluster, Some(&secure), 2);

    // Without a proxy again, and without somebody who approves it at once. The command shows its own proxy a password, the right
    // one in the end.
    let before = settled(&cluster);
    for (wrong, sentence) in WRONG {
        let url = proxy.url(Listener::Password, wrong);
        let said = run_through(&url, &mut command(files, &["--proxy-url="]));
        stopped(&said, proxy.address(Listener::Password), sentence);
    }
    unchanged(&cluster, &before, "the proxy lets nobody through without its password");
    let said = run_through(&plain, &mut command(files, &["--proxy-url="]));
    succeeds(&said, "registering again");
    answered(&proxy, Listener::Password, 200, &own);
    assert!(said.stderr.contains("kubectl ocm accept proxied --replace"), "{said:?}");
    let [bootstrap, registered] = ways(&cluster);
    assert_eq!((bootstrap.proxy, registered.proxy.is_some()), (None, true));
    let said = join(&["--wait=registered"]);
    succeeds(&said, "registered again, pending approval");
    assert!(said.stderr.contains("its agent has to register again"), "{said:?}");
    assert_eq!(key(), second, "nobody has approved it");
    // The same command goes on where the last one has stopped.
    succeeds(&join(&["--accept", "--wait"]), "available");
    goes_through(&cluster, None, 1);
    assert_ne!(key(), second);
    nothing_happens(&settled(&cluster), &["--proxy-url="], 0, &["already; nothing is changed"]);
}

#[test]
fn what_was_typed_for_pods_is_theirs_and_their_operators_and_stays() {
    let _alone = alone();
    // No agent runs there: the cluster stays as a join leaves it.
    let cluster = Cluster::start(&Spec::api("placed")).expect("a cluster");
    let joiner = user_with(&cluster, "placed-joiner", &["join.yaml"]);
    let (access, bundle) = (hub_access(hub()), format!("--bundle-version={}", bundle()));
    let join = |flags: &[&str]| run(kubectl_ocm("join", &joiner).args(["placed", &bundle, &access]).args(flags));
    let refused = |flags: &[&str], code: i32, words: &str| {
        let before = resource_versions(&cluster);
        let said = join(flags);
        assert!(said.code == Some(code) && said.stderr.contains(words), "{words}: {said:?}");
        unchanged(&cluster, &before, "nothing is changed");
    };
    refused(&["--priority-class=nobodys"], 1, "has no PriorityClass \"nobodys\"");
    refused(&["--resource-limits=cpu=1"], 2, "--resource-qos-class ResourceRequirement");
    refused(&["--tolerations=infra:Never"], 2, "none of NoSchedule, PreferNoSchedule and NoExecute");

    let typed = [
        "--resource-qos-class=ResourceRequirement",
        "--resource-requests=cpu=10m",
        "--node-selector=pool=infra",
        "--tolerations=infra=yes:NoSchedule,spot:NoExecute",
        "--priority-class=system-cluster-critical",
        "--enable-sync-labels",
    ];
    let said = join(&typed);
    assert_eq!(said.code, Some(0), "{said:?}");
    let spec = || object(&cluster, &["klusterlet", "klusterlet"])["spec"].clone();
    let pod = || {
        let operator = object(&cluster, &["deployment", "klusterlet", "--namespace=open-cluster-management"]);
        operator.pointer("/spec/template/spec").cloned().unwrap_or_default()
    };
    let tolerations = json!([
        {"key": "infra", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists", "effect": "NoExecute"},
    ]);
    let is_there = |selector: Value| {
        let (spec, pod) = (spec(), pod());
        assert_eq!(spec["nodePlacement"], json!({"nodeSelector": selector, "tolerations": tolerations}));
        assert_eq!((&pod["nodeSelector"], &pod["tolerations"]), (&selector, &tolerations));
        let class = json!("system-cluster-critical");
        assert_eq!((&spec["priorityClassName"], &pod["priorityClassName"]), (&class, &class));
        let requests = json!({"requests": {"cpu": "10m"}});
        let resources = json!({"type": "ResourceRequirement", "resourceRequirements": requests});
        assert_eq!(spec["resourceRequirement"], resources);
        let arguments = pod["containers"][0]["args"].as_array().cloned().unwrap_or_default();
        assert!(arguments.contains(&json!("--enable-sync-labels")), "{arguments:?}");
    };
    is_there(json!({"pool": "infra"}));
    // What is not typed stays, and what is typed replaces what was.
    let before = settled(&cluster);
    let said = join(&[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    unchanged(&cluster, &before, "nothing is changed");
    let said = join(&["--node-selector=disk=ssd"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    is_there(json!({"disk": "ssd"}));
}
