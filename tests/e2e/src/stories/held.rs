//! A hub that accepts every cluster by itself, and a policy that holds one for longer than any controller rests.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use csr_fixtures::Fixture;
use ocm_rules::cluster::{ACCEPTED_BY_HUB, HELD};
use serde_json::{Value, json};

use crate::accept_support::{Ask, managed_cluster, token_kubeconfig};
use crate::controller_support::{Controller, holding_unknown};
use crate::join_support::JoinCommand;
use crate::trouble_support::{KNOWN, read};
use crate::{SOON, bundle, kubectl_ocm, log_lines, object, run, until, until_within};

/// Its name on the hub.
const NAME: &str = "edge";
/// For so long it is held.
const HOLDS: Duration = Duration::from_mins(10);
/// The entry that refuses the hub its acceptance: whoever is refused logs it.
const ENTRY: &str = "accept.policy.kubectl-ocm.dev";

pub(super) fn a_cluster_that_is_held_is_left_alone_by_the_hub_for_ten_minutes() {
    let hub = Cluster::start(&Spec::node("held")).expect("a cluster");
    let gate = "--feature-gates=ManagedClusterAutoApproval=true";
    let install = ["hub", "--bundle-version", bundle(), "--wait", gate];
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(install));
    assert_eq!(said.code, Some(0), "{said:?}");
    let (webhook, controller) = holding_unknown(&hub);
    let _controller = Controller::start_as(&controller);

    // Whoever registers it is none of those whose requests the hub approves by itself.
    let folder = hub.dir().expect("a folder");
    let (unlisted, file) = (folder.join("unlisted"), folder.join("object.json"));
    let token = JoinCommand::create(&hub, &["--kind", "bootstrap"]).token;
    fs::write(&unlisted, token_kubeconfig(&hub, &token)).expect("written");
    let create = |object: &Value| {
        fs::write(&file, object.to_string()).expect("written");
        let mut command = hub.kubectl_command();
        run(command.args(["create", "--kubeconfig"]).arg(&unlisted).arg("--filename").arg(&file))
    };
    // Until a policy is loaded it refuses everybody.
    until("it is registered", || create(&json!(managed_cluster(NAME))).code == Some(0));
    let said = create(&json!(Ask::with(NAME, &Fixture::agent(NAME, "a1")).object()));
    assert_eq!(said.code, Some(0), "{said:?}");

    let cluster = || object(&hub, &["managedcluster", NAME]);
    let is_accepted = || cluster()["spec"]["hubAcceptsClient"] == true;
    let is_held = || cluster()["metadata"]["annotations"][ACCEPTED_BY_HUB] == HELD && !is_accepted();
    until("it is held", is_held);
    let found = || read(&run(kubectl_ocm("troubleshoot", hub.kubeconfig()).args([NAME, KNOWN, "--output=json"])));
    until_within(
        SOON,
        "whoever asks is told that a policy holds it",
        || format!("{:#}", found().0),
        || {
            let (value, ids) = found();
            let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            ids == ["OCM8102"] && text("/clusters/0/headline").ends_with(&text("/findings/0/summary"))
        },
    );
    // What the hub has begun may come to its end.
    sleep(Duration::from_secs(2));
    let tried = || (webhook.decisions_of("accept"), log_lines(&hub, ENTRY).len());
    assert!(!log_lines(&hub, "controller").is_empty(), "what the hub's pods have logged is read");
    let (before, begun) = (tried(), Instant::now());
    while begun.elapsed() < HOLDS {
        sleep(Duration::from_secs(10));
        assert!(is_held(), "{:#}", cluster());
        assert_eq!(tried(), before, "the hub tries again: {:#?}", log_lines(&hub, ENTRY).last());
    }

    // And as soon as no policy holds it, the hub accepts it.
    hub.kubectl(&["delete", "hubpolicy", "inventory"]).expect("it is gone");
    until("the hub accepts it", is_accepted);
    let (report, ids) = found();
    assert!(!ids.iter().any(|id| id == "OCM8102"), "{report:#}");
}
