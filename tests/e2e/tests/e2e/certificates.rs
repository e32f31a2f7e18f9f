//! The webhook's certificates, renewed on a hub whose API server asks all the time; by runs that are killed, that lack a
//! right, or that find what somebody else has made.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use control_plane::ApiServer;
use e2e_tests::accept_support::{Hub, managed_cluster};
use e2e_tests::connection::connect;
use e2e_tests::controller_support::FailingProxy;
use e2e_tests::roles::{bind_rules, rights, user_with};
use e2e_tests::webhook_support::{Webhook, add_ons, prepare};
use e2e_tests::{Said, run, until, until_within};
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::PostParams;
use ocm_api::{ManagedCluster, Manifest};
use ocm_core::DryRun;
use ocm_core::certificate::{from_pem, is_signed_by};
use ocm_core::policy_engine::{self as engine, Certificates, FailurePolicy, Options, Pair, webhooks};
use ocm_policy_certificates::{Found, LEARNS, renew};
use serde_json::{Value, json};
use tokio::runtime::Builder;

const ROLE: &str = "policy-certificates.yaml";
const CONFIGURATIONS: [&str; 2] =
    ["mutatingwebhookconfiguration/ocm-policy-webhook", "validatingwebhookconfiguration/ocm-policy-webhook"];
const SECRETS: [&str; 2] = ["secret/ocm-policy-webhook-ca", "secret/ocm-policy-webhook-tls"];
/// So many reviews at once that an API server does not keep all connections: some are made anew each time.
const AT_ONCE: usize = 32;

/// Certificates of which the authority and what it has signed were made so many days ago.
fn aged(authority: i64, serving: i64) -> Certificates {
    let ago = |days: i64| Timestamp::now() - SignedDuration::from_hours(24 * days);
    let made = renew(&Found::default(), ago(authority)).expect("they are made");
    let found = Found {
        authority: Some(made.authority.clone()),
        serving: None,
        bundles: vec![made.bundle.clone().into_bytes()],
    };
    let later = renew(&found, ago(serving)).expect("it is made");
    assert_eq!(later.authority, made.authority);
    later
}

/// Puts Secrets and configurations on a hub as an installation does; where a webhook runs beside the hub, its Service leads
/// there.
fn put(hub: &Hub, certificates: &Certificates, webhook: Option<&Webhook>) {
    let options = Options { image: Some("image".to_owned()), ..Options::default() };
    let plan = engine::plan(&options, &engine::Running::default(), certificates).expect("a plan");
    let failure = if webhook.is_some() { FailurePolicy::Fail } else { FailurePolicy::Ignore };
    let mut objects: Vec<Manifest> = plan.pods.objects().filter(|object| object.is_secret()).cloned().collect();
    objects.extend(plan.configurations(failure).objects().cloned());
    if let Some((address, port)) = webhook.and_then(|webhook| webhook.address.rsplit_once(':')) {
        let port: u16 = port.parse().expect("a port");
        for entry in
            objects.iter_mut().filter_map(|object| object.body_mut().get_mut("webhooks")?.as_array_mut()).flatten()
        {
            entry["clientConfig"]["service"]["port"] = port.into();
        }
        let mut service = plan.pods.objects().find(|object| object.kind() == "Service").expect("a Service").clone();
        service.body_mut()["spec"] = json!({"type": "ExternalName", "externalName": address});
        objects.push(service);
    }
    let cluster = hub.connection();
    for object in objects {
        hub.wait(ocm_kube::apply::one(&cluster, &object, DryRun::No)).expect("it is applied");
    }
}

fn get(hub: &Hub, name: &str) -> Value {
    e2e_tests::object(&hub.cluster, &["--namespace=ocm-policy-engine", name])
}

fn pair(hub: &Hub, name: &str) -> Pair {
    Pair::of_secret(&get(hub, name)).expect("a pair")
}

fn bundles(hub: &Hub) -> Vec<Vec<u8>> {
    CONFIGURATIONS.iter().flat_map(|name| webhooks::bundles(&get(hub, name))).collect()
}

fn versions(hub: &Hub) -> Vec<Value> {
    let all = SECRETS.iter().chain(&CONFIGURATIONS);
    all.map(|name| get(hub, name)["metadata"]["resourceVersion"].clone()).collect()
}

fn command(kubeconfig: &Path) -> Command {
    let mut command = Command::new(cli_tests::binary("ocm-policy-webhook"));
    command.args(["certificates", "--kubeconfig"]).arg(kubeconfig).stdin(Stdio::null());
    command
}

#[track_caller]
fn renews(kubeconfig: &Path, code: i32) -> Said {
    let said = run(&mut command(kubeconfig));
    assert_eq!((said.code, &*said.stdout), (Some(code), ""), "{said:?}");
    assert!(!said.stderr.contains("PRIVATE"), "a key is told");
    said
}

/// Asks the hub for reviews until it has to stop; returns how many came, and those that were not answered.
fn load(kubeconfig: &Path, ends: impl Fn() -> bool) -> (usize, Vec<String>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(connect(kubeconfig)).client;
    let api: Api<ManagedCluster> = Api::all(client);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let (cluster, mut asked, mut failed) = (managed_cluster("c1"), 0, Vec::new());
    while !ends() {
        let all = (0..AT_ONCE).map(|_| api.create(&dry, &cluster));
        let answers = runtime.block_on(futures::future::join_all(all));
        asked += answers.len();
        failed.extend(answers.into_iter().filter_map(Result::err).map(|error| error.to_string()));
        std::thread::sleep(Duration::from_millis(200));
    }
    (asked, failed)
}

/// How often an API server went on without an answer of the webhook.
fn passed_unasked(hub: &Hub, kubeconfig: &Path) -> String {
    let kubeconfig = kubeconfig.to_str().expect("text");
    let metrics = hub.cluster.kubectl(&["get", "--raw", "/metrics", "--kubeconfig", kubeconfig]).expect("metrics");
    let lines = metrics.lines().filter(|line| line.starts_with("apiserver_admission_webhook_fail_open_count{"));
    lines.filter(|line| line.contains("policy.kubectl-ocm.dev")).map(|line| format!("{line}\n")).collect()
}

/// A hub with a webhook beside it that serves as its Secret says, and who renews certificates there.
fn served(name: &str, certificates: &Certificates) -> (Hub, Webhook, PathBuf) {
    let hub = Hub::start(name);
    add_ons(&hub.cluster);
    prepare(&hub.cluster);
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.serve_with(&certificates.serving);
    put(&hub, certificates, Some(&webhook));
    webhook.is_asked(&hub.cluster);
    let user = user_with(&hub.cluster, "certificates", &[ROLE]);
    (hub, webhook, user)
}

/// Copies the Secret to the webhook's files, as a kubelet does, beside a story that the API server asks it in all the time.
fn under_load(hub: &Hub, webhook: &Webhook, story: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    let kubeconfig = hub.cluster.kubeconfig();
    let cluster = &hub.cluster;
    let before = passed_unasked(hub, kubeconfig);
    let (asked, failed) = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(kubeconfig, || stop.load(Ordering::Relaxed)));
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let secret = e2e_tests::object(cluster, &["--namespace=ocm-policy-engine", SECRETS[1]]);
                webhook.serve_with(&Pair::of_secret(&secret).expect("a pair"));
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(story));
        stop.store(true, Ordering::Relaxed);
        let done = loading.join().expect("it ended");
        told.unwrap_or_else(|why| std::panic::resume_unwind(why));
        done
    });
    assert!(failed.is_empty(), "{} of {asked} failed: {}", failed.len(), failed[0]);
    assert!(asked > 5 * AT_ONCE, "{asked}");
    assert_eq!(passed_unasked(hub, kubeconfig), before);
}

/// Waits until the webhook serves with what its Secret holds, and a while longer, so that connections are made anew.
fn settles(hub: &Hub, webhook: &Webhook) {
    let wanted = from_pem(pair(hub, SECRETS[1]).certificate.as_bytes()).expect("a certificate").remove(0);
    let endpoint = ocm_net::Endpoint::parse(&format!("https://{}", webhook.address), None).expect("an address");
    until("the webhook serves with the new certificate", || {
        let presented = hub.wait(ocm_net::present(&endpoint, &[], Duration::from_secs(2)));
        presented.is_ok_and(|presented| presented.chain[0] == wanted)
    });
    std::thread::sleep(Duration::from_secs(3));
}

/// For so long of the time that is left to API servers one of them hears nothing.
const BEHIND: Duration = Duration::from_secs(30);
const _: () = assert!(BEHIND.as_secs() < LEARNS.as_secs());

/// What becomes of an API server that has heard of no bundle since it was held, and goes on in time. It is asked until the webhook
/// serves with the new certificate, and longer.
fn catches_up(hub: &Hub, behind: &ApiServer, stop: &AtomicBool) {
    std::thread::sleep(BEHIND);
    hub.cluster.release(behind).expect("it goes on");
    let kubeconfig = behind.kubeconfig.to_str().expect("text");
    let is_ready = || hub.cluster.kubectl(&["get", "--raw", "/readyz", "--kubeconfig", kubeconfig]).is_ok();
    until_within(LEARNS - BEHIND, "it has its connections again", String::new, is_ready);
    // What it had waited for when it was held may end first.
    std::thread::sleep(Duration::from_secs(3));
    // Also where whoever would tell it to stop has failed.
    let begun = Instant::now();
    let ends = || stop.load(Ordering::Relaxed) || begun.elapsed() > 4 * LEARNS;
    let (asked, failed) = load(&behind.kubeconfig, ends);
    assert!(failed.is_empty(), "{} of {asked} failed: {}", failed.len(), failed[0]);
    assert!(asked > AT_ONCE, "{asked}");
}

#[test]
fn runs_that_are_killed_after_each_of_their_writes_lose_no_review() {
    let before = aged(250, 61);
    let (hub, webhook, user) = served("certificates", &before);
    let behind = hub.cluster.add_api_server().expect("another API server");
    let unasked = passed_unasked(&hub, &behind.kubeconfig);
    let first = bundles(&hub);
    under_load(&hub, &webhook, || {
        let mut states = Vec::new();
        let mut one = |write: usize| {
            let begun = Instant::now();
            let proxy = FailingProxy::start(&hub.cluster, &user, 1);
            let mut child = command(&proxy.kubeconfig).stderr(Stdio::null()).spawn().expect("it starts");
            until_within(LEARNS * 2, &format!("write {write}"), String::new, || proxy.failed());
            child.kill().expect("it is killed");
            child.wait().expect("it ended");
            // Only the certificate that another authority has signed waits.
            assert_eq!(begun.elapsed() >= LEARNS, write == 4, "{write}: {:?}", begun.elapsed());
            let now = bundles(&hub);
            states.push((
                pair(&hub, SECRETS[0]) != before.authority,
                now.iter().zip(&first).filter(|(now, first)| now != first).count(),
                pair(&hub, SECRETS[1]) != before.serving,
            ));
            settles(&hub, &webhook);
        };
        one(1);
        one(2);
        // One API server hears neither of the last bundle nor of anything else.
        hub.cluster.hold(&behind).expect("it is held");
        one(3);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| catches_up(&hub, &behind, &stop));
            one(4);
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(passed_unasked(&hub, &behind.kubeconfig), unasked);
        let all = first.len();
        // Each configuration is written whole.
        let changing = webhooks::bundles(&get(&hub, CONFIGURATIONS[0])).len();
        assert_eq!(states, [(true, 0, false), (true, changing, false), (true, all, false), (true, all, true)]);
        let versions = versions(&hub);
        let said = renews(&user, 0);
        assert!(said.stderr.contains("every certificate has more than a third of its life left"), "{said:?}");
        assert_eq!(self::versions(&hub), versions);
    });
    let now = bundles(&hub);
    let (leaf, both) = (pair(&hub, SECRETS[1]).certificate, from_pem(&now[0]).expect("a bundle"));
    assert!(now.iter().all(|bundle| *bundle == now[0]) && both.len() == 2);
    assert!(is_signed_by(&from_pem(leaf.as_bytes()).expect("a certificate")[0], &both[0]), "the new authority signs");
}

#[test]
fn a_certificate_is_renewed_in_one_run_and_every_right_is_needed_for_what_it_is_for() {
    let before = aged(100, 61);
    let (hub, webhook, user) = served("certificates", &before);
    let all = rights(ROLE);
    under_load(&hub, &webhook, || {
        let first = bundles(&hub);
        let begun = Instant::now();
        let said = renews(&user, 0);
        assert!(said.stderr.contains("Secret ocm-policy-webhook-tls holds a new certificate"), "{said:?}");
        assert!(begun.elapsed() < LEARNS / 2, "the authority is the same: nobody has to learn of it");
        assert_eq!((pair(&hub, SECRETS[0]), bundles(&hub)), (before.authority.clone(), first));
        assert_ne!(pair(&hub, SECRETS[1]), before.serving);
        settles(&hub, &webhook);
    });
    assert_eq!(all.len(), 8);
    // What cannot be served any more is not waited for, so that a run does all of it at once.
    drop(webhook);
    let late = aged(250, 91);
    for (index, missing) in all.iter().enumerate() {
        put(&hub, &late, None);
        let name = format!("without-{index}");
        let others: Vec<Value> = all.iter().filter(|right| *right != missing).cloned().collect();
        bind_rules(&hub.cluster, &name, &others);
        let said = renews(&hub.cluster.user_kubeconfig(&name, &[]).expect("a user"), 1);
        let text = |member: &str| missing[member][0].as_str().unwrap_or_default();
        let words = format!("cannot {} resource {:?}", text("verbs"), text("resources"));
        assert!(said.stderr.contains(&words) && said.stderr.contains(text("resourceNames")), "{words}: {said:?}");
    }
    put(&hub, &late, None);
    renews(&user, 0);
    assert!(pair(&hub, SECRETS[0]) != late.authority && pair(&hub, SECRETS[1]) != late.serving);
}

/// An object without bundles and what the API server notes down.
fn without_bundles(hub: &Hub, name: &str) -> Value {
    let mut object = ocm_core::plan::without_bookkeeping(&get(hub, name));
    for entry in object["webhooks"].as_array_mut().into_iter().flatten() {
        entry["clientConfig"]["caBundle"].take();
    }
    object
}

#[test]
fn wrong_bundles_are_put_right_and_nothing_is_made_that_is_missing_or_changed_that_is_not_ours() {
    let hub = Hub::start("certificates");
    prepare(&hub.cluster);
    let user = user_with(&hub.cluster, "certificates", &[ROLE]);
    let good = aged(1, 1);
    put(&hub, &good, None);
    let right = bundles(&hub);
    let all = CONFIGURATIONS.map(|name| without_bundles(&hub, name));
    let unchanged = versions(&hub);
    renews(&user, 0);
    assert_eq!(versions(&hub), unchanged);

    // A foreign authority in one entry, none at all in another one.
    let patch = |name: &str, patch: Value| {
        let patch = patch.to_string();
        hub.cluster.kubectl(&["patch", name, "--type=json", "--patch", &patch]).expect("it is patched");
    };
    let theirs = rcgen::generate_simple_self_signed(vec![engine::SERVER_NAME.to_owned()]).expect("a certificate");
    let other = base64(&theirs.cert.pem());
    let spoil = || {
        patch(CONFIGURATIONS[0], json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]));
        patch(
            CONFIGURATIONS[1],
            json!([
                {"op": "replace", "path": "/webhooks/3/clientConfig/caBundle", "value": other},
                {"op": "remove", "path": "/webhooks/5/clientConfig/caBundle"},
            ]),
        );
        assert_ne!(bundles(&hub), right);
    };
    spoil();
    renews(&user, 0);
    assert_eq!(bundles(&hub), right);
    assert_eq!(CONFIGURATIONS.map(|name| without_bundles(&hub, name)), all, "nothing else has changed");
    assert_eq!(versions(&hub)[..2], unchanged[..2], "the certificates stay");

    // An entry that is missing is told, and not made; what is there is put right.
    spoil();
    patch(CONFIGURATIONS[1], json!([{"op": "remove", "path": "/webhooks/1"}]));
    let said = renews(&user, 1);
    let sentence = "ValidatingWebhookConfiguration ocm-policy-webhook lacks accept.policy.kubectl-ocm.dev";
    assert!(said.stderr.contains(sentence), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm install policy-engine --wait"), "{said:?}");
    assert_eq!(bundles(&hub), right[1..]);

    // Certificates of somebody else are theirs, however old, and so are bundles that another program writes.
    let theirs = Pair { certificate: theirs.cert.pem(), key: theirs.signing_key.serialize_pem() };
    put(&hub, &Certificates { serving: theirs, ..aged(250, 61) }, None);
    spoil();
    let unchanged = versions(&hub);
    let said = renews(&user, 0);
    assert!(said.stderr.contains("Secret ocm-policy-webhook-tls holds a certificate that"), "{said:?}");
    assert_eq!(versions(&hub), unchanged);
    put(&hub, &aged(250, 61), None);
    let annotation = "cert-manager.io/inject-ca-from=ocm-policy-engine/webhook";
    hub.cluster.kubectl(&["annotate", CONFIGURATIONS[0], annotation]).expect("it is annotated");
    let unchanged = versions(&hub);
    let said = renews(&user, 0);
    assert!(said.stderr.contains("cert-manager writes the bundle of MutatingWebhookConfiguration"), "{said:?}");
    assert_eq!(versions(&hub), unchanged);

    // After an emergency nothing comes back.
    put(&hub, &good, None);
    for name in CONFIGURATIONS {
        hub.cluster.kubectl(&["delete", name]).expect("it is deleted");
    }
    let said = renews(&user, 1);
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        assert!(said.stderr.contains(&format!("{kind} ocm-policy-webhook is missing")), "{said:?}");
    }
    for name in CONFIGURATIONS {
        assert!(hub.cluster.kubectl(&["get", name]).is_err(), "{name}");
    }
    hub.cluster.kubectl(&["delete", SECRETS[0], "--namespace=ocm-policy-engine"]).expect("it is deleted");
    let said = renews(&user, 1);
    assert!(said.stderr.contains("Secret ocm-policy-webhook-ca is missing"), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm install policy-engine --wait"), "{said:?}");
}

fn base64(text: &str) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(text)
}
