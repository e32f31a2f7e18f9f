//! From arguments to the flow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ocm_api::operator::ResourceQosClass;
use ocm_cli::{Format, OutputArgs, Ui};
use ocm_core::install::bundle::{Bundle, Component};
use ocm_core::install::{self, Driver, GrpcEndpoint, Live, Options, feature_gates};
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, duration, nearest};
use ocm_flows::install as flow;
use ocm_kube::apply::{self, Outcome};
use ocm_kube::{ClientArgs, Cluster, connect};

use crate::args::{DriverWord, GrpcEndpointWord, HubInstallArgs, InstallArgs, QosWord, What};
use crate::view;

/// What is done with the plan.
enum Action {
    Render { show_secrets: bool },
    DryRun(DryRun),
    Diff,
    Apply { wait: Option<Duration> },
}

pub(crate) async fn run(arguments: InstallArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let InstallArgs { what: What::Hub(hub), client } = arguments;
    hub_command(*hub, client, ui).await
}

async fn hub_command(arguments: HubInstallArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let HubInstallArgs {
        wait,
        timeout,
        dry_run,
        diff,
        render,
        show_secrets,
        bundle_version,
        registry,
        images,
        image_pull_credential_file,
        feature_gates,
        enable_sync_labels,
        registration_drivers,
        use_bootstrap_token,
        auto_approved_csr_identities,
        auto_approved_arn_patterns,
        auto_approved_grpc_identities,
        grpc_endpoint_type,
        grpc_server,
        hub_cluster_arn,
        aws_resource_tags,
        resource_qos_class,
        resource_limits,
        resource_requests,
        replicas,
        create_namespace,
        output: OutputArgs { output },
    } = arguments;
    let timeout = duration::parse(&timeout).map_err(|error| Failure::usage(format!("--timeout: {error}")))?;
    let action = match DryRun::from(dry_run.unwrap_or_default()) {
        _ if render => Action::Render { show_secrets },
        _ if diff => Action::Diff,
        dry_run @ (DryRun::Client | DryRun::Server) => Action::DryRun(dry_run),
        DryRun::No => Action::Apply { wait: wait.then_some(timeout) },
    };
    let has_form = match action {
        Action::Render { .. } => output.is_human() || output == Format::Yaml,
        Action::Diff => output.is_human(),
        _ => true,
    };
    if !has_form {
        return Err(Failure::usage("--diff and --render have a form of their own: leave out --output"));
    }
    let pull_credentials = match &image_pull_credential_file {
        None => None,
        Some(path) => Some(std::fs::read(path).map_err(|error| {
            Failure::usage(format!("cannot read {}, the file of --image-pull-credential-file", path.display()))
                .because(error)
        })?),
    };
    let mut options = Options {
        bundle: bundle_version.as_deref().map(Bundle::parse).transpose()?,
        registry: registry.as_deref().map(registry_of).transpose()?,
        images: images.iter().map(|pair| image(pair)).collect::<Result<_, _>>()?,
        pull_credentials,
        feature_gates: feature_gates.iter().map(|pair| feature_gates::parse(pair)).collect::<Result<_, _>>()?,
        registration_drivers: (!registration_drivers.is_empty()).then(|| drivers(&registration_drivers)),
        hub_cluster_arn,
        aws_resource_tags,
        auto_approved_csr_identities,
        auto_approved_arn_patterns,
        auto_approved_grpc_identities,
        grpc_endpoint: grpc_endpoint_type.map(|word| match word {
            GrpcEndpointWord::Hostname => GrpcEndpoint::Hostname,
            GrpcEndpointWord::LoadBalancer => GrpcEndpoint::LoadBalancer,
        }),
        grpc_server,
        resource_qos_class: resource_qos_class.map(|word| match word {
            QosWord::Default => ResourceQosClass::Default,
            QosWord::BestEffort => ResourceQosClass::BestEffort,
            QosWord::ResourceRequirement => ResourceQosClass::ResourceRequirement,
        }),
        resource_limits: amounts("--resource-limits", &resource_limits)?,
        resource_requests: amounts("--resource-requests", &resource_requests)?,
        use_bootstrap_token,
        enable_sync_labels,
        create_namespace,
        replicas,
    };
    if let Action::Render { show_secrets } = action {
        let installation = install::plan(&options, &Live::default())?;
        flow::tell_about(&installation, &*ui);
        ui.out(&view::manifests(&installation.plan, show_secrets)?);
        if !show_secrets && options.pull_credentials.is_some() {
            ui.tell(Event::note("the pull credentials are left out; --show-secrets prints them"));
        }
        return Ok(Exit::Ok);
    }

    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let wants_arn = options.registration_drivers.as_ref().is_some_and(|list| list.contains(&Driver::AwsIrsa));
    if wants_arn && options.hub_cluster_arn.is_none() {
        // The tools of AWS name the context after the cluster.
        options.hub_cluster_arn = cluster.context.clone().filter(|context| context.starts_with("arn:aws:eks:"));
    }
    let installation = flow::prepare(&cluster, &options, &*ui).await?;
    let plan = &installation.plan;
    let mut report = view::Report::new(&installation);
    match action {
        Action::Render { .. } => {}
        Action::DryRun(dry_run) => {
            let each = |applied: &apply::Applied| {
                show(&ui, output.is_human(), &mut report, applied, dry_run.remark());
            };
            apply::plan(&cluster, plan, dry_run, &*ui, each).await?;
        }
        Action::Diff => {
            let all = apply::plan(&cluster, plan, DryRun::Server, &*ui, |_| ()).await?;
            let mut differs = false;
            for applied in &all {
                kept(&ui, applied);
                if let Some(text) = view::diff(applied)? {
                    differs = true;
                    ui.out(&text);
                }
            }
            return Ok(if differs { Exit::Findings } else { Exit::Ok });
        }
        Action::Apply { wait } => {
            flow::preflight(&cluster, plan, &*ui).await?;
            let each = |applied: &apply::Applied| show(&ui, output.is_human(), &mut report, applied, "");
            apply::plan(&cluster, plan, DryRun::No, &*ui, each).await?;
            let waited = match wait {
                Some(timeout) => flow::usable(&cluster, &installation.hub, timeout, &*ui).await,
                None => Ok(()),
            };
            if wait.is_some() {
                report.usable = Some(waited.is_ok());
            }
            if !output.is_human() {
                ui.out(&report.render(output)?);
            }
            waited?;
            ui.tell(Event::note(next_step(&cluster, wait.is_some())));
            return Ok(Exit::Ok);
        }
    }
    if !output.is_human() {
        ui.out(&report.render(output)?);
    }
    Ok(Exit::Ok)
}

/// Prints what became of an object, or notes it down for the document at the end.
fn show(ui: &Ui, is_human: bool, report: &mut view::Report, applied: &apply::Applied, suffix: &str) {
    kept(ui, applied);
    if is_human {
        ui.line(&format!("{} {}{suffix}", applied.manifest.reference(), applied.outcome.word()));
    }
    report.add(applied);
}

/// Says why an object was left alone.
fn kept(ui: &Ui, applied: &apply::Applied) {
    if let Outcome::Kept(reason) = &applied.outcome {
        ui.tell(Event::note(format!("{} stays as it is: {reason}", applied.manifest.reference())));
    }
}

fn next_step(cluster: &Cluster, usable: bool) -> String {
    let context = cluster.context.as_ref().map(|context| format!(" --context {context}")).unwrap_or_default();
    let state =
        if usable { "the hub is usable" } else { "the hub is being set up; --wait would tell when it is usable" };
    format!("{state}. Next, create a token for a cluster to join with: kubectl ocm token create{context}")
}

fn registry_of(text: &str) -> Result<String, Failure> {
    let registry = text.trim().trim_end_matches('/');
    if registry.is_empty() || registry.contains("://") || registry.contains(char::is_whitespace) {
        return Err(Failure::usage(format!("--registry {text:?} is not a registry such as registry.example/ocm")));
    }
    Ok(registry.to_owned())
}

fn image(pair: &str) -> Result<(Component, String), Failure> {
    let Some((name, reference)) = pair.split_once('=').filter(|(_, reference)| !reference.is_empty()) else {
        return Err(Failure::usage(format!("--image {pair:?} is not COMPONENT=IMAGE")));
    };
    if let Some(component) = Component::of(name) {
        return Ok((component, reference.to_owned()));
    }
    let names = || Component::ALL.into_iter().map(Component::image);
    Err(Failure::usage(format!("--image {pair:?}: there is no component {name:?}")).hint(
        match nearest(name, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        },
    ))
}

fn drivers(words: &[DriverWord]) -> Vec<Driver> {
    let mut list = Vec::new();
    for word in words {
        let driver = match word {
            DriverWord::Csr => Driver::Csr,
            DriverWord::AwsIrsa => Driver::AwsIrsa,
            DriverWord::Grpc => Driver::Grpc,
        };
        if !list.contains(&driver) {
            list.push(driver);
        }
    }
    list
}

fn amounts(flag: &str, pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let amount = |pair: &String| match pair.split_once('=') {
        Some((name, amount)) if !name.is_empty() && !amount.is_empty() => Ok((name.to_owned(), amount.to_owned())),
        _ => Err(Failure::usage(format!("{flag} {pair:?} is not NAME=AMOUNT"))),
    };
    pairs.iter().map(amount).collect()
}
