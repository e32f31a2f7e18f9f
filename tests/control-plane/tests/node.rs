//! Whole nodes: pods of the OCM image run, and a cluster can be cut off. Needs root.

use std::thread::sleep;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec, earlier_ocm_version, ocm_version};

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited 30 s for: {what}");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_pod_of_the_ocm_image_runs_and_a_node_can_be_cut_off() {
    let begun = Instant::now();
    let cluster = Cluster::start(&Spec::node("whole")).expect("a node starts");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(120), "starting took {took:?}");

    // A node tells no more than five names of an image, so it is shown by pods that it has the names of both releases. The
    // default service account exists, so this needs no second attempt.
    let earlier = earlier_ocm_version().expect("a release").expect("an earlier one");
    let pods = [("ocm", ocm_version().expect("a release")), ("ocm-earlier", earlier)];
    for (pod, version) in &pods {
        let image = format!("--image=quay.io/open-cluster-management/work:{version}");
        cluster.kubectl(&["run", pod, &image, "--restart=Never", "--", "/work", "--help"]).expect("a pod is created");
    }
    for (pod, _) in &pods {
        eventually("the end of the pod", || {
            let phase = ["get", "pod", pod, "--output", "jsonpath={.status.phase}"];
            cluster.kubectl(&phase).is_ok_and(|phase| phase == "Succeeded")
        });
    }
    let log = cluster.kubectl(&["logs", "ocm"]).expect("the node gives the log of the pod");
    assert!(log.contains("Usage:"), "{log}");
    assert!(cluster.pod_logs().is_dir());

    let quick = ["get", "--raw", "/readyz", "--request-timeout=2s"];
    cluster.set_network(false).expect("the network is cut");
    cluster.kubectl(&quick).expect_err("nobody answers");
    cluster.set_network(true).expect("the network is back");
    eventually("an answer", || cluster.kubectl(&quick).is_ok());
    cluster.pause().expect("everything stops");
    cluster.kubectl(&quick).expect_err("nobody answers");
    cluster.resume().expect("everything goes on");
    eventually("an answer", || cluster.kubectl(&quick).is_ok());
}

#[test]
fn pods_stay_pending_without_a_scheduler() {
    let cluster = Cluster::start(&Spec::node("idle").ocm_images(false).schedulable(false)).expect("a node starts");
    cluster.kubectl(&["run", "waiting", "--image=ocm.local/pause:1"]).expect("a pod is created");
    let phase = ["get", "pod", "waiting", "--output", "jsonpath={.status.phase}{.spec.nodeName}"];
    sleep(Duration::from_secs(2));
    assert_eq!(cluster.kubectl(&phase).expect("the pod is there"), "Pending");
    cluster.start_again("kube-scheduler").expect("a scheduler starts");
    eventually("a running pod", || cluster.kubectl(&phase).is_ok_and(|phase| phase.starts_with("Running")));
}
