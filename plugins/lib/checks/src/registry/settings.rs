//! 212x: settings of Klusterlets that the API server takes and that do not do what was meant.

use ocm_api::conditions::{self, klusterlet};
use ocm_api::operator::{KlusterletMode, RegistrationAuthType};
use ocm_core::duration::human;

use super::subject::agent;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Agent, Cluster, Facts, own_manager};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::Side;
use crate::text;

/// The checks of settings of Klusterlets.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(2120),
        slug: "hosts-entry-used",
        title: "the hosts entry of the agents is for the hub's address that they dial",
        category: Category::Join,
        severity: Severity::Warning,
        inputs: &[Input::Klusterlets, Input::Bootstrap],
        after: &[Id(2107)],
        rule: Rule::Cluster(hosts_entry_used),
        page: Page {
            means: "hubApiServerHostAlias of the Klusterlet gives the agents' pods an entry for a host name that their kubeconfig \
                    does not dial: it has no effect.",
            happens: "The hub's address was changed by a new join, or the name is misspelt.",
            mend: "Set hostname to the host of the kubeconfig's server. The operator does not use the entry: with one, its word that \
                   the name cannot be resolved says nothing of the agents.",
            mended: "Both name the same host.",
        },
    },
    Check {
        id: Id(2121),
        slug: "images-named",
        title: "the Klusterlet names the images of its agents",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets, Input::Agents],
        after: &[Id(2102), Id(2103), Id(2104), Id(2119)],
        rule: Rule::Cluster(images_named),
        page: Page {
            means: "The Klusterlet says no image for its mode, and nothing fills one in: the API server refuses Deployments without \
                    an image. No agent is made, or those that are there stay as they were, whatever is changed in the Klusterlet, \
                    while all of its conditions stay well: a warning.",
            happens: "The Klusterlet was written by hand, or its mode was changed: the Singleton modes take imagePullSpec, the others \
                      registrationImagePullSpec and workImagePullSpec.",
            mend: "Set the images, or run `kubectl ocm join` with the same name: it sets them.",
            mended: "The agents' Deployments are there, and follow what the Klusterlet says.",
        },
    },
    Check {
        id: Id(2122),
        slug: "hubs-in-turn",
        title: "an agent with several hubs can turn to the next one, and does so late enough",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets],
        after: &[],
        rule: Rule::Cluster(hubs_in_turn),
        page: Page {
            means: "The Klusterlet lists the kubeconfigs of several hubs, or is to. Either the list has no effect, or agents leave a hub that \
                    is only slow, or they do not start: an error.",
            happens: "The feature gate MultipleHubs is off; it is on and fewer than two Secrets are listed, or bootstrapKubeConfigs has \
                      another type than LocalSecrets; or hubConnectionTimeoutSeconds is less than five lease periods, after which \
                      a hub itself gives a cluster up.",
            mend: "List two Secrets or more and switch the gate on, or switch the gate off; leave the timeout at 600 seconds.",
            mended: "The gate is on with two Secrets or more and a timeout of five times leaseDurationSeconds or more, or it is off \
                     and nothing is listed.",
        },
    },
    Check {
        id: Id(2123),
        slug: "klusterlet-feature-gates",
        title: "every feature gate of the Klusterlet is known",
        category: Category::Join,
        severity: Severity::Warning,
        inputs: &[Input::Klusterlets],
        after: &[],
        rule: Rule::Cluster(klusterlet_feature_gates),
        page: Page {
            means: "The Klusterlet sets a feature gate that this release does not know. It has no effect.",
            happens: "A misspelt name, or a gate of another release.",
            mend: "Correct the name in spec, or set gates with `kubectl ocm join --feature-gates`.",
            mended: "The condition ValidFeatureGates of the Klusterlet is True.",
        },
    },
    Check {
        id: Id(2124),
        slug: "aws-arns-agree",
        title: "hub and Klusterlet mean the same EKS clusters",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets, Input::ClusterManagers, Input::ManagedClusters],
        after: &[Id(2118)],
        rule: Rule::Cluster(aws_arns_agree),
        page: Page {
            means: "The agent registers by AWS IAM, and hub and Klusterlet have different ARNs: the hub answers that the ARN provided \
                    during the join is different from its own, or makes the roles for another cluster.",
            happens: "A wrong ARN was given to the join or to the hub.",
            mend: "Set both to the same ARN, and join again. Where they agree and the cluster does not join, look at IAM: the role of \
                   the registration controller with its trust, the access entry of the hub's cluster, and `aws eks get-token` in \
                   the agent's pod; the end of a role's name is made of both clusters' accounts and names. A pattern by which the \
                   hub accepts by itself has to match the whole ARN.",
            mended: "hubClusterArn of the Klusterlet is that of the ClusterManager, and managedClusterArn the annotation of the \
                     ManagedCluster.",
        },
    },
];

fn on_klusterlet(agent: &Agent<'_>, finding: Finding) -> Finding {
    finding.on(Side::Managed, "Klusterlet", None, &agent.side.klusterlet).run(
        Side::Managed,
        "kubectl edit klusterlet/{}",
        &[&agent.side.klusterlet],
    )
}

fn hosts_entry_used(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let Some(alias) = &agent.klusterlet.spec.hub_api_server_host_alias else { return Outcome::Pass };
    if agent.is_grpc() {
        return Outcome::skip("with gRPC the entry may be for the gRPC server");
    }
    let Some(dialled) = agent.dials() else { return Outcome::skip("there is no kubeconfig to register with") };
    if agent.has_hosts_entry() {
        return Outcome::Pass;
    }
    let finding =
        Finding::warning(format!("the hosts entry of the agents is for {:?}, which they do not dial", alias.hostname))
            .seen(format!("they dial {dialled}"))
            .because("the hub's address or the proxy was changed, or the name is misspelt");
    Outcome::Found(vec![on_klusterlet(&agent, finding)])
}

fn images_named(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let Some(deployments) = agent.side.deployments.read() else {
        return Outcome::skip("the agents were not looked at");
    };
    let spec = &agent.klusterlet.spec;
    let mode = spec.deploy_option.as_ref().and_then(|option| option.mode.clone()).unwrap_or_default();
    let wanted = match mode {
        KlusterletMode::Singleton | KlusterletMode::SingletonHosted => {
            vec![("imagePullSpec", &spec.image_pull_spec)]
        }
        _ => vec![
            ("registrationImagePullSpec", &spec.registration_image_pull_spec),
            ("workImagePullSpec", &spec.work_image_pull_spec),
        ],
    };
    let is_empty = |image: &Option<String>| image.as_ref().is_none_or(|image| image.trim().is_empty());
    let missing: Vec<&str> = wanted.iter().filter(|(_, image)| is_empty(image)).map(|(field, _)| *field).collect();
    if missing.is_empty() {
        return Outcome::Pass;
    }
    // The API server takes no Deployment without an image, and all conditions of the Klusterlet stay as they are.
    let follows = match (deployments.is_empty(), missing.len() == wanted.len()) {
        (true, true) => "no agent is made",
        (false, true) => "its agents stay as they were",
        (_, false) => "the agent of that image is not made, or stays as it was",
    };
    let text = format!("the Klusterlet does not say {}, and {follows}", text::list(missing));
    let finding = if cluster.is_well(facts.now) { Finding::warning(text) } else { Finding::error(text) };
    let finding = finding
        .seen(format!("its mode is {mode}"))
        .because("nothing fills them in: whoever writes a Klusterlet names the images of its mode");
    Outcome::Found(vec![on_klusterlet(&agent, finding)])
}

/// After so many seconds without its hub an agent tries the next one. Upstream: the default of the field.
const TIMEOUT: i32 = 600;
/// How many lease periods a hub waits before it gives a cluster up.
const PERIODS: i32 = 5;

fn hubs_in_turn(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let (listed, is_on) = (agent.hubs_of_spec(), agent.has_gate_of_hubs());
    let count = listed.map_or(0, |listed| listed.kube_config_secrets.len());
    // A list that was emptied says that there is one hub.
    if !is_on && count == 0 {
        return Outcome::Pass;
    }
    let period = cluster.lease_period();
    let timeout = listed.and_then(|listed| listed.hub_connection_timeout_seconds);
    let timeout = i64::from(timeout.unwrap_or(TIMEOUT));
    // Upstream: `SpokeAgentOptions.Validate`.
    let is_short = is_on && count < 2;
    let (what, seen) = match () {
        () if !is_on => (
            "has several hubs, but its list of hubs has no effect".to_owned(),
            "the feature gate MultipleHubs is off".to_owned(),
        ),
        () if is_short => (
            "has the feature gate MultipleHubs, but its list of hubs is too short".to_owned(),
            format!("Secrets that are listed: {count}; the agent does not start with less than two"),
        ),
        () if timeout < (period * PERIODS).as_secs() => (
            format!("has several hubs, but its agent leaves a hub after {timeout}s, before that gives it up"),
            format!("a lease period is {}, and the hub waits for five", human(period.try_into().unwrap_or_default())),
        ),
        () => return Outcome::Pass,
    };
    let name = &agent.side.klusterlet;
    let text = format!("Klusterlet {name} {what}");
    // An agent that runs has started before its list was changed.
    let is_error = is_short && !cluster.is_well(facts.now);
    let finding = if is_error { Finding::error(text) } else { Finding::warning(text) };
    let finding = finding.seen(seen).because(
        "agents turn to another hub only with the gate, two Secrets, and a timeout of five lease periods or more",
    );
    Outcome::Found(vec![on_klusterlet(&agent, finding)])
}

fn klusterlet_feature_gates(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let conditions = agent.klusterlet.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = conditions::find(conditions, klusterlet::VALID_FEATURE_GATES);
    let Some(condition) = condition.filter(|condition| condition.status == conditions::FALSE) else {
        return Outcome::Pass;
    };
    let finding = Finding::warning("the Klusterlet sets a feature gate that its release does not know")
        .seen(format!("{}: {}", condition.reason, condition.message))
        .because("a misspelt name, or a gate of another release: it has no effect");
    Outcome::Found(vec![on_klusterlet(&agent, finding)])
}

fn aws_arns_agree(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if agent.driver() != RegistrationAuthType::AwsIrsa {
        return Outcome::Pass;
    }
    let registration = agent.klusterlet.spec.registration_configuration.as_ref();
    let own = registration.and_then(|registration| registration.registration_driver.as_ref()?.aws_irsa.as_ref());
    let Some(own) = own else { return Outcome::skip("the Klusterlet names no ARNs") };
    let managers = facts.snapshot.hub.as_ref().and_then(|hub| hub.managers.read());
    let manager = managers.and_then(|managers| own_manager(managers));
    let drivers = manager.into_iter().flat_map(|manager| manager.spec.registration_configuration.iter());
    let drivers = drivers.flat_map(|registration| &registration.registration_drivers);
    let hubs: Vec<&str> = drivers.filter_map(|driver| driver.aws_irsa.as_ref()?.hub_cluster_arn.as_deref()).collect();
    let noted = cluster
        .object
        .and_then(|object| object.metadata.annotations.as_ref()?.get(ocm_api::names::annotations::MANAGED_CLUSTER_ARN));
    let mut found = Vec::new();
    if !hubs.is_empty() && !hubs.contains(&own.hub_cluster_arn.as_str()) {
        found.push(("the hub", own.hub_cluster_arn.as_str(), hubs.join(", ")));
    }
    if let Some(noted) = noted.filter(|noted| **noted != own.managed_cluster_arn) {
        found.push(("the managed cluster", own.managed_cluster_arn.as_str(), noted.clone()));
    }
    let findings = found.into_iter().map(|(whose, own, other)| {
        let finding = Finding::error(format!("hub and Klusterlet have different ARNs of {whose}"))
            .seen(format!("the Klusterlet says {own}"))
            .seen(format!("the hub has {other}"))
            .because("a wrong ARN was given to the join, or to the hub");
        on_klusterlet(&agent, finding)
    });
    Outcome::of(findings.collect())
}
