//! `install` on servers that no cluster of ours can be.

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, check, kubeconfig};
use serde_json::json;

/// Runs `install` against a server of this release, and returns what was asked of it.
fn install(what: &str, minor: &str) -> (cli_tests::Run, Vec<String>) {
    let version = json!({
        "major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.4"), "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
    });
    let server = Server::start(move |_, asked| match asked.line.as_str() {
        "GET /version" => Reply::Json(200, version.to_string()),
        _ => Reply::Json(404, "{}".to_owned()),
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let image = (what == "policy-engine").then_some("--image=registry.example/webhook:1");
    (cli.run(["install", what].into_iter().chain(image)), server.lines())
}

#[test]
fn a_server_without_policies_of_admission_gets_no_baseline() {
    for minor in ["29", "29+", "9"] {
        let (run, asked) = install("baseline", minor);
        assert_eq!(run.exit, 3, "{run}");
        assert!(run.stderr.contains(&format!("the cluster runs Kubernetes v1.{minor}.4")), "{run}");
        assert!(run.stderr.contains("from 1.30 on") && run.stderr.contains("nothing was installed"), "{run}");
        assert_eq!(asked, ["GET /version"]);
    }
    // A newer one is asked for more.
    let (run, asked) = install("baseline", "30+");
    assert!(run.exit != 0 && !run.stderr.contains("from 1.30 on") && asked.len() > 1, "{run}");
}

#[test]
fn a_server_whose_webhooks_have_no_match_conditions_gets_no_policy_engine() {
    let (run, asked) = install("policy-engine", "29");
    assert_eq!(run.exit, 3, "{run}");
    assert!(
        run.stderr.contains("the cluster runs Kubernetes v1.29.4, and webhooks have match conditions from 1.30 on")
    );
    assert!(run.stderr.contains("nothing was installed"), "{run}");
    // The mark of an emergency is read before anything else.
    assert_eq!(asked, ["GET /api/v1/namespaces/ocm-policy-engine", "GET /version"]);
}

#[test]
fn manifests_of_a_policy_engine_tell_no_key() {
    let cli = Cli::new();
    let image = "--image=registry.example/webhook:1";
    let run = cli.run(["install", "policy-engine", image, "--render"]);
    assert_eq!(run.exit, 0, "{run}");
    assert!(run.stdout.contains("kind: ValidatingWebhookConfiguration") && run.stdout.contains("\nkind: HubPolicy\n"));
    let key = "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t";
    assert!(
        !run.stdout.contains(key) && run.stderr.contains("--show-secrets") && run.stderr.contains("apply those last"),
        "{run}"
    );
    let run = cli.run([
        "install",
        "policy-engine",
        image,
        "--render",
        "--show-secrets",
        "--without-baseline",
        "--without-policies",
    ]);
    assert!(
        run.stdout.contains(key)
            && !run.stdout.contains("\nkind: HubPolicy\n")
            && !run.stdout.contains("ValidatingAdmissionPolicy")
    );
    for (arguments, why) in [
        (&["--render"][..], "no image is named"),
        (&["--image=", "--render"], "is not an image"),
        (&["--image=https://a/b", "--render"], "is not an image"),
        (&[image, "--replicas=0", "--render"], "--replicas must be at least 1"),
        (&[image, "--api-server-cidr=10.0.0.0/33", "--render"], "is no network in CIDR notation"),
        (&[image, "--api-server-cidr=10.0.0.0/8,10.0.0.1", "--render"], "for this address alone: 10.0.0.1/32"),
    ] {
        let run = cli.run(["install", "policy-engine"].iter().chain(arguments));
        assert!(run.exit == 2 && run.stderr.contains(why), "{arguments:?}: {run}");
    }
}

#[test]
fn a_policy_engine_takes_reviews_from_the_networks_of_api_servers_alone() {
    let cli = Cli::new();
    let rendered = |flags: &[&str]| {
        let image = "--image=registry.example/webhook:1";
        let run = cli.run(["install", "policy-engine", image, "--render"].iter().chain(flags));
        assert_eq!(run.exit, 0, "{run}");
        let policies = run.stdout.split("---\n").filter(|one| one.contains("\nkind: NetworkPolicy\n"));
        policies.collect::<Vec<_>>().join("---\n")
    };
    let narrow = rendered(&["--api-server-cidr=10.0.0.5/28,fd00:1::/64"]);
    check!("install-policy-engine-api-server-cidr", cli, narrow);
    let open = rendered(&[]);
    assert!(open.contains("kind: NetworkPolicy") && !open.contains("ipBlock"), "{open}");
}

#[test]
fn a_gateway_of_a_hub_is_named_once_and_asked_for_a_name() {
    let cli = Cli::new();
    let hub = |words: &[&str]| {
        let fixed = ["install", "hub", "--render", "--registration-drivers=csr,grpc"];
        cli.run(fixed.iter().chain(words).copied())
    };
    let (gateway, public) = ("--expose-grpc=gateway", "--grpc-gateway=infra/public/tls");
    let run = hub(&[gateway, public, "--grpc-server=hub.example:8443"]);
    assert_eq!(run.exit, 0, "{run}");
    for part in
        ["\nkind: TLSRoute\n", "apiVersion: gateway.networking.k8s.io/v1\n", "sectionName: tls", "infra/public/tls"]
    {
        assert!(run.stdout.contains(part), "{part}: {run}");
    }
    for (words, why) in [
        (&[gateway][..], "--expose-grpc gateway and --grpc-gateway NAMESPACE/NAME[/LISTENER] go together"),
        (&[public, "--grpc-server=hub.example"], "go together"),
        (&["--expose-grpc=nodePort", public, "--grpc-server=hub.example"], "go together"),
        (&[gateway, "--grpc-gateway=public"], "\"public\" is not NAMESPACE/NAME or NAMESPACE/NAME/LISTENER"),
        (&[gateway, public], "needs --grpc-server HOST[:PORT]"),
        (&[gateway, public, "--grpc-server=192.0.2.1"], "--grpc-server 192.0.2.1 is an IP address"),
        (
            &[gateway, public, "--grpc-server=hub.example", "--grpc-endpoint-type=loadBalancer"],
            "no load balancer of its own",
        ),
    ] {
        let run = hub(words);
        assert!(run.exit == 2 && run.stderr.contains(why), "{why}: {run}");
        assert_eq!(run.stdout, "", "{run}");
    }
}

#[test]
fn options_of_a_gateway_are_checked_before_any_cluster_is_asked() {
    let server = Server::start(|_, _| Reply::Json(404, "{}".to_owned()));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let (gateway, public) = ("--expose-grpc=gateway", "--grpc-gateway=infra/public");
    for (words, why) in [
        (&["--expose-grpc=nodePort", public][..], "go together"),
        (&[gateway, public, "--grpc-server=192.0.2.1"], "--grpc-server 192.0.2.1 is an IP address"),
        (&[gateway, public, "--grpc-endpoint-type=loadBalancer"], "no load balancer of its own"),
        (&[gateway, public, "--registration-drivers=csr"], "--expose-grpc needs the registration driver grpc"),
        (&[gateway, public, "--replicas=0"], "--replicas must be at least 1"),
    ] {
        let run = cli.run(["install", "hub"].iter().chain(words).copied());
        assert!(run.exit == 2 && run.stderr.contains(why), "{why}: {run}");
    }
    assert!(server.lines().is_empty(), "{:?}", server.lines());
}

#[test]
fn webhooks_are_exposed_of_a_hosted_hub_alone() {
    let cli = Cli::new();
    let run = cli.run(["install", "hub", "--render", "--expose-webhooks=nodePort"]);
    assert!(run.exit == 2 && run.stderr.contains("--expose-webhooks are for a hub whose pods run on another"), "{run}");
    let run = cli.run(["install", "hub", "--render", "--mode=hosted", "--expose-webhooks=elsewhere"]);
    assert!(run.exit == 2 && run.stderr.contains("nodePort, loadBalancer"), "{run}");
}
