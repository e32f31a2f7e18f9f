//! What becomes of registrations while a webhook, or the whole control plane of a hub, is replaced or away.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use e2e_tests::accept_support::{Who, managed_cluster};
use e2e_tests::connection::connect;
use e2e_tests::controller_support::Controller;
use e2e_tests::refusals::{Answer, CLUSTERS, Call, Sender};
use e2e_tests::service_support::{ask, hub};
use e2e_tests::until;
use serde_json::json;
use tokio::runtime::Builder;

/// Asks until it is told to stop; how often, and what was wrong.
fn ask_all_the_time(kubeconfig: &Path, stop: &AtomicBool) -> (usize, Vec<String>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let sender = Sender::new(runtime.block_on(connect(kubeconfig)).client);
    let (begun, mut count, mut wrong) = (Instant::now(), 0, Vec::new());
    // Also where whoever would tell it to stop has failed.
    while !stop.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(120) {
        wrong.extend(runtime.block_on(ask(&sender)).err());
        count += 2;
    }
    (count, wrong)
}

#[test]
fn webhooks_are_replaced_under_load_and_no_review_is_lost_or_missed() {
    let (hub, first, service) = hub("outages-rolling");
    let second = first.another(&hub.cluster, &["--drain", "5s"]);
    service.leads_to(&[&first, &second]);
    // Each API server has connections of its own.
    let others = [(); 2].map(|()| hub.cluster.add_api_server().expect("another API server").kubeconfig);
    let kubeconfigs = [hub.cluster.kubeconfig(), &others[0], &others[1]];
    let stop = AtomicBool::new(false);
    let (asked, took) = std::thread::scope(|scope| {
        let asking = kubeconfigs.map(|kubeconfig| {
            let stop = &stop;
            scope.spawn(move || ask_all_the_time(kubeconfig, stop))
        });
        let begun = Instant::now();
        let mut running = vec![first, second];
        for _ in 0..2 {
            let new = running[0].another(&hub.cluster, &["--drain", "5s"]);
            let mut former = running.remove(0);
            running.push(new);
            service.leads_to(&[&former, &running[0], &running[1]]);
            // Whoever passes connections on hears later than the webhook that it ends.
            let ending = scope.spawn(move || former.terminate());
            sleep(Duration::from_millis(500));
            service.leads_to(&[&running[0], &running[1]]);
            assert_eq!(ending.join().expect("it ended"), Some(0));
        }
        stop.store(true, Ordering::Relaxed);
        (asking.map(|one| one.join().expect("it asked")), begun.elapsed())
    });
    let count: usize = asked.iter().map(|(count, _)| count).sum();
    assert!(asked.iter().all(|(count, _)| *count > 50), "{asked:?} in {took:?}");
    let wrong: Vec<&String> = asked.iter().flat_map(|(_, wrong)| wrong).collect();
    assert_eq!(wrong, [""; 0], "of {count}");
    assert!(count > 300, "{count} in {took:?}");
}

#[test]
fn a_webhook_that_ends_while_connections_rest_costs_no_review() {
    let (hub, mut first, service) = hub("outages-idle");
    let admin = Sender::new(hub.client(Who::Admin));
    let again = |what: &str| hub.wait(ask(&admin)).unwrap_or_else(|why| panic!("{what}: {why}"));
    again("at first");
    let opened = service.opened();
    sleep(Duration::from_secs(35));
    again("over a connection that rested");
    assert_eq!(service.opened(), opened, "it is the same connection");
    // The kernel ends it, and another one takes its place.
    let second = first.another(&hub.cluster, &[]);
    service.leads_to(&[&second]);
    first.kill();
    // Whoever passes connections on hears later than the webhook that it ends.
    sleep(Duration::from_millis(500));
    for _ in 0..10 {
        again("after the first one had ended");
    }
    assert!(service.opened() > opened);
}

#[test]
fn a_control_plane_that_was_off_starts_without_the_webhook_and_joins_go_on() {
    let (hub, mut first, service) = hub("outages-all");
    let controller = Controller::start(&hub);
    hub.join("c1");
    until("c1 is accepted", || hub.accepts("c1"));

    first.kill();
    let daemons = ["kube-controller-manager", "kube-apiserver", "etcd"];
    for daemon in daemons {
        hub.cluster.stop(daemon).expect("it is stopped");
    }
    sleep(Duration::from_secs(2));
    hub.cluster.start_again("etcd").expect("it starts");
    hub.cluster.start_api_server().expect("it is ready");
    hub.cluster.start_again("kube-controller-manager").expect("it starts");

    // Whatever a cluster needs to run pods, such as the webhook's own, needs no webhook.
    let kubectl = |words: &[&str]| hub.cluster.kubectl(words);
    until("a namespace gets its account", || {
        let _ = kubectl(&["create", "namespace", "new"]);
        kubectl(&["get", "serviceaccount", "default", "--namespace=new"]).is_ok()
    });
    kubectl(&["create", "deployment", "pods", "--image=registry.example.com/none", "--namespace=new"])
        .expect("created");
    until("it has its pod", || {
        kubectl(&["get", "pods", "--namespace=new", "--output=name"]).is_ok_and(|names| names.contains("pod/pods-"))
    });
    // Registrations wait.
    let register = Call::create(CLUSTERS, json!(managed_cluster("c2")));
    let bootstrap = Sender::new(hub.client(Who::Bootstrap));
    let answer = Answer::of("a cluster", hub.wait(bootstrap.send(&register, false)));
    assert_eq!(answer, Answer::Unanswered("register".to_owned()));

    // The webhook comes back as any pod does. The controller was there all the time.
    let second = first.another(&hub.cluster, &[]);
    service.leads_to(&[&second]);
    hub.join("c2");
    until("c2 is accepted", || hub.accepts("c2"));
    assert!(hub.accepts("c1") && controller.leads());
}
