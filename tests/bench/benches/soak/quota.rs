//! Of many that ask at once as many get in as a quota has places, and others of the API server go on meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use control_plane::Spec;
use e2e_tests::connection::connect;
use e2e_tests::controller_support::registrations;
use e2e_tests::roles::user_with;
use e2e_tests::storm_support::{self, LetIn};
use e2e_tests::until_within;
use e2e_tests::webhook_support::policy;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::runtime::Builder;

use crate::table::Table;
use crate::{AT_ONCE, joining, leading, patience};

/// How often others write something.
const OFTEN: Duration = Duration::from_millis(50);
/// How long 99 of 100 of their writes may take.
const QUICK: Duration = Duration::from_secs(1);

/// Does it with half as many places as clusters.
pub(crate) fn run(count: usize, table: &mut Table) {
    let places = count / 2;
    let (hub, webhook) = storm_support::hub(&Spec::api("soak-quota").audited(true));
    // They are registered before there is a quota: who registers counts with all that are registered.
    (0..count).for_each(|number| drop(hub.register(&format!("c{number}"))));
    let quota = json!({"module": {"builtin": "join-quota"}, "settings": {"total": places}});
    policy(&hub.cluster, "join-quota", quota);
    let is_asked = || webhook.get("/metrics").contains(r#"policy_info{policy="join-quota""#);
    until_within(Duration::from_secs(30), "the webhook asks it", String::new, is_asked);
    let _controller = leading(&user_with(&hub.cluster, "controller", &["policy-controller.yaml"]));
    let fleet = hub.fleet(AT_ONCE);
    let wait = || {
        let all = registrations(&hub);
        all.values().filter(|status| status["waitingFor"].to_string().contains("(QuotaTotal)")).count()
    };
    let (ended, kubeconfig) = (AtomicBool::new(false), hub.cluster.kubeconfig());
    let (report, others) = thread::scope(|scope| {
        let others = scope.spawn(|| others(kubeconfig, 2 * patience(count), &ended));
        let storm = fleet.storm(&joining("c", count));
        let said = || format!("{} are in, {} wait", storm.accepted(), wait());
        until_within(patience(count), "all others wait for a place", said, || wait() == count - places);
        ended.store(true, Ordering::Relaxed);
        (storm.end(Duration::ZERO), others.join().unwrap())
    });

    let row = |what: &str| format!("{count} for {places} places, {what}");
    let inside = LetIn::on(&hub);
    let figure = format!("{} accepted, {} approved", inside.clusters.len(), inside.requests.len());
    let exact = [report.accepted, inside.clusters.len(), inside.requests.len()] == [places; 3];
    table.judge(&row("let in"), figure, format!("{places}"), exact);
    let written = inside.written(&hub);
    let figure = format!("{} wrong, {} not in the audit log", written.wrong.len(), written.missing.len());
    let once = written.wrong.is_empty() && written.missing.is_empty();
    table.judge(&row("writes"), figure, "0 wrong, 0 missing", once);
    let Others { mut took, failed } = others;
    took.sort_unstable();
    let late = took.get(took.len() * 99 / 100).copied().unwrap_or(Duration::MAX);
    let figure = format!("{} writes, {} failed, p99 {} ms", took.len(), failed.len(), late.as_millis());
    let target = format!("none fails, p99 <= {} ms", QUICK.as_millis());
    table.judge(&row("others meanwhile"), figure, target, failed.is_empty() && late <= QUICK);
    failed.iter().take(3).for_each(|why| println!("somebody else's write failed: {why}"));
}

/// How others fared.
struct Others {
    took: Vec<Duration>,
    failed: Vec<String>,
}

/// Writes something that has nothing to do with clusters, until it has ended, and not for ever.
fn others(kubeconfig: &Path, most: Duration, ended: &AtomicBool) -> Others {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let api: Api<ConfigMap> = Api::namespaced(connect(kubeconfig).await.client, "default");
        let metadata = ObjectMeta { name: Some("others".to_owned()), ..ObjectMeta::default() };
        let mine = ConfigMap { metadata, ..ConfigMap::default() };
        api.create(&PostParams::default(), &mine).await.unwrap();
        let (mut others, begun) = (Others { took: Vec::new(), failed: Vec::new() }, Instant::now());
        while !ended.load(Ordering::Relaxed) && begun.elapsed() < most {
            let patch = Patch::Merge(json!({"data": {"number": others.took.len().to_string()}}));
            let asked = Instant::now();
            let answer = api.patch("others", &PatchParams::default(), &patch).await;
            others.took.push(asked.elapsed());
            others.failed.extend(answer.err().map(|error| error.to_string()));
            tokio::time::sleep(OFTEN).await;
        }
        others
    })
}
