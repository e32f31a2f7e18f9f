//! From arguments to the flow.

use std::collections::BTreeMap;
use std::sync::Arc;

use ocm_api::cert_manager::Issuer;
use ocm_cli::contents::ObjectFilesArgs;
use ocm_cli::{ApplyArgs, OutputArgs, PlanView, Troubleshoot, Ui, contents, files, options};
use ocm_core::baseline::{Enforcement, Settings};
use ocm_core::hub_addon::Content;
use ocm_core::install::feature_gates::GATES;
use ocm_core::install::gateway::Gateway;
use ocm_core::install::hosted::{Hosting, Webhook, WebhookExposure};
use ocm_core::install::{Driver, GrpcEndpoint, GrpcExposure, HubMode, Options, OptionsError};
use ocm_core::order::Collect as _;
use ocm_core::plan::Mode;
use ocm_core::policy_engine::{self, NotANetwork};
use ocm_core::release::Component;
use ocm_core::values::Kind;
use ocm_core::{Event, Exit, Failure, Narrator as _, Role, duration, glob, name, nearest};
use ocm_flows::hub_addons::{HubAddOnRequest, install_hub_addon, new_hub_addon};
use ocm_flows::install as flow;
use ocm_kube::{ClientArgs, Cluster, connect};

use crate::args::{
    BaselineInstallArgs, DriverWord, GrpcEndpointWord, GrpcExposureWord, HubAddOnInstallArgs, HubInstallArgs,
    InstallArgs, ModeWord, PolicyEngineInstallArgs, WebhookExposureWord, What,
};
use crate::{view, words};

pub(crate) async fn run(arguments: InstallArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let InstallArgs { what, client } = arguments;
    match what {
        What::Hub(hub) => hub_command(*hub, client, ui).await,
        What::Baseline(baseline) => baseline_command(*baseline, client, ui).await,
        What::PolicyEngine(engine) => policy_engine_command(*engine, client, ui).await,
        What::HubAddon(addon) => hub_addon_command(*addon, client, ui).await,
    }
}

async fn baseline_command(arguments: BaselineInstallArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let BaselineInstallArgs {
        audit,
        wait,
        timeout,
        plan,
        requesters,
        labels,
        cluster_sets,
        reserved,
        max_lifetime,
        output: OutputArgs { output },
    } = arguments;
    let timeout = options::timeout(&timeout)?;
    let lifetime = duration::parse(&max_lifetime);
    let lifetime = lifetime.map_err(|error| Failure::usage(format!("--max-lifetime: {error}")))?.as_secs();
    // What the API server gives at least (`spec.expirationSeconds` of a CertificateSigningRequest).
    let max_lifetime_seconds = i64::try_from(lifetime).ok().filter(|seconds| *seconds >= 600).ok_or_else(|| {
        Failure::usage(format!("--max-lifetime {max_lifetime}: no certificate lives for less than 10 minutes"))
    })?;
    for (flag, patterns) in [("--allow-label", &labels), ("--reserve-name", &reserved)] {
        for pattern in patterns {
            glob::check(pattern).map_err(|error| Failure::usage(format!("{flag} {pattern:?}: {error}")))?;
        }
    }
    if let Some(set) = cluster_sets.iter().find(|set| !name::is_dns_label(set)) {
        return Err(Failure::usage(format!("--allow-cluster-set {set:?} is no name of a cluster set")));
    }
    let view = PlanView::new(ui.clone(), &plan, output)?;
    let mut settings =
        Settings { enforcement: if audit { Enforcement::Audit } else { Enforcement::Deny }, ..Settings::default() };
    settings.clusters.labels = labels;
    settings.clusters.cluster_sets = cluster_sets;
    settings.clusters.reserved = reserved;
    settings.requests.requesters = requesters;
    settings.requests.max_lifetime_seconds = max_lifetime_seconds;
    if view.mode() == Mode::Render {
        return view.manifests(&flow::new_baseline(&settings));
    }
    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let request = flow::BaselineRequest { settings, mode: view.mode(), wait: wait.then_some(timeout) };
    let installed = flow::install_baseline(&cluster, &request, &*ui, |applied| view.row(applied)).await?;
    view::finish_baseline(&view, &ui, installed)
}

async fn policy_engine_command(
    arguments: PolicyEngineInstallArgs,
    client: ClientArgs,
    ui: Arc<Ui>,
) -> Result<Exit, Failure> {
    let PolicyEngineInstallArgs {
        audit,
        wait,
        timeout,
        plan,
        image,
        image_pull_credential_file,
        certificate_issuer,
        api_server_cidrs,
        replicas,
        without_policies,
        without_baseline,
        output: OutputArgs { output },
    } = arguments;
    let timeout = options::timeout(&timeout)?;
    let view = PlanView::new(ui.clone(), &plan, output)?;
    if let Some(image) = image.as_deref().filter(|image| !is_image(image)) {
        return Err(Failure::usage(format!("--image {image:?} is not an image such as registry.example/name:1.0.0")));
    }
    let options = policy_engine::Options {
        image,
        pull_credentials: image_pull_credential_file.as_deref().map(options::pull_credentials).transpose()?,
        replicas,
        audit,
        without_policies,
        issuer: certificate_issuer.as_deref().map(issuer).transpose()?,
        api_servers: api_server_cidrs
            .iter()
            .map(|text| policy_engine::read_network(text).map_err(|error| not_a_network(text, error)))
            .collect::<Result<_, _>>()?,
    };
    let enforcement = if audit { Enforcement::Audit } else { Enforcement::Deny };
    let baseline = (!without_baseline).then(|| Settings { enforcement, ..Settings::default() });
    if view.mode() == Mode::Render {
        let plan = flow::new_policy_engine(&options, baseline.as_ref()).map_err(words::engine_failure)?;
        let exit = view.manifests(&plan)?;
        ui.tell(Event::note(view::RENDERED));
        return Ok(exit);
    }
    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let request = flow::EngineRequest { options, baseline, mode: view.mode(), wait: wait.then_some(timeout) };
    let installed = flow::install_policy_engine(&cluster, &request, &*ui, |applied| view.row(applied)).await;
    view::finish_policy_engine(&view, &ui, &cluster, installed.map_err(words::engine_failure)?, audit)
}

async fn hub_addon_command(arguments: HubAddOnInstallArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let HubAddOnInstallArgs {
        name,
        files: ObjectFilesArgs { files, recursive },
        namespace,
        create_namespace,
        overwrite,
        apply: ApplyArgs { wait, plan, output: OutputArgs { output } },
    } = arguments;
    let name = options::hub_addon_names(vec![name])?.remove(0);
    let namespace = options::namespaces(vec![namespace])?.remove(0);
    let wait = wait.limit()?;
    let view = PlanView::new(ui.clone(), &plan, output)?;
    let content = files::beside(move || Content::read(contents::documents_of(&files, recursive)?)).await?;
    let request = HubAddOnRequest { name, content, namespace, create_namespace, overwrite, mode: view.mode(), wait };
    if view.mode() == Mode::Render {
        return view.manifests(&new_hub_addon(&request, &*ui)?);
    }
    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let installed = install_hub_addon(&cluster, &request, &*ui, &|applied| view.row(applied)).await?;
    view::finish_hub_addon(&view, &ui, &cluster, &request.name, installed)
}

/// Whether it can be the name of an image: what is wrong with it otherwise, whoever pulls it says.
fn is_image(text: &str) -> bool {
    !text.is_empty() && !text.contains("://") && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn issuer(text: &str) -> Result<Issuer, Failure> {
    policy_engine::read_issuer(text).ok_or_else(|| {
        Failure::usage(format!("--certificate-issuer {text:?} is no issuer of cert-manager"))
            .hint("write it as ClusterIssuer/NAME, Issuer/NAME in the namespace ocm-policy-engine, or KIND.GROUP/NAME")
    })
}

fn not_a_network(text: &str, error: NotANetwork) -> Failure {
    let failure = Failure::usage(format!("--api-server-cidr {text:?} is no network in CIDR notation"));
    match error {
        NotANetwork::Address(bits) => failure.hint(format!("for this address alone: {text}/{bits}")),
        NotANetwork::Other => failure.hint("write it as 10.0.0.0/24 or fd00::/64"),
    }
}

async fn hub_command(arguments: HubInstallArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let HubInstallArgs {
        wait,
        timeout,
        plan,
        bundle_version,
        registry,
        images,
        image_files,
        image_pull_credential_file,
        values,
        feature_gates,
        enable_sync_labels,
        registration_drivers,
        use_bootstrap_token,
        auto_approved_csr_identities,
        auto_approved_arn_patterns,
        auto_approved_grpc_identities,
        grpc_endpoint_type,
        grpc_server,
        expose_grpc,
        grpc_gateway,
        hub_cluster_arn,
        aws_resource_tags,
        mode,
        registration_webhook,
        work_webhook,
        expose_webhooks,
        force_internal_endpoint_lookup: internal,
        resources,
        nodes,
        replicas,
        create_namespace,
        output: OutputArgs { output },
        hub,
    } = arguments;
    let timeout = options::timeout(&timeout)?;
    let view = PlanView::new(ui.clone(), &plan, output)?;
    let images: BTreeMap<Component, String> = images.iter().map(|pair| image(pair)).try_collect_map()?;
    // An image that was typed says its digest itself.
    let needed = Component::ALL.into_iter().filter(|component| !images.contains_key(component));
    let options = Options {
        bundle: image_files.bundle(bundle_version.as_deref()).await?,
        registry: registry.as_deref().map(options::registry).transpose()?,
        digests: image_files.digests(needed).await?,
        images,
        values: values.read(Kind::ClusterManager).await?,
        pull_credentials: image_pull_credential_file.as_deref().map(options::pull_credentials).transpose()?,
        feature_gates: options::feature_gates(&feature_gates, "a hub", GATES)?,
        registration_drivers: (!registration_drivers.is_empty()).then(|| drivers(&registration_drivers)),
        hub_cluster_arn,
        // The flow knows which cluster the hub is.
        usual_hub_arn: None,
        aws_resource_tags,
        auto_approved_csr_identities,
        auto_approved_arn_patterns,
        auto_approved_grpc_identities,
        grpc_endpoint: grpc_endpoint_type.map(|word| match word {
            GrpcEndpointWord::Hostname => GrpcEndpoint::Hostname,
            GrpcEndpointWord::LoadBalancer => GrpcEndpoint::LoadBalancer,
        }),
        grpc_server,
        expose_grpc: expose_grpc.map(|word| match word {
            GrpcExposureWord::NodePort => GrpcExposure::NodePort,
            GrpcExposureWord::LoadBalancer => GrpcExposure::LoadBalancer,
            GrpcExposureWord::Gateway => GrpcExposure::Gateway,
        }),
        grpc_gateway: grpc_gateway.as_deref().map(gateway).transpose()?,
        // The flow asks the hub.
        route_version: None,
        resources: resources.requirement()?,
        scheduling: nodes.scheduling(None)?,
        use_bootstrap_token,
        enable_sync_labels,
        create_namespace,
        replicas,
        hosting: Hosting {
            mode: mode.map(|word| match word {
                ModeWord::Default => HubMode::Default,
                ModeWord::Hosted => HubMode::Hosted,
            }),
            registration: webhook("--registration-webhook", registration_webhook)?,
            work: webhook("--work-webhook", work_webhook)?,
            expose: expose_webhooks.map(|word| match word {
                WebhookExposureWord::NodePort => WebhookExposure::NodePort,
                WebhookExposureWord::LoadBalancer => WebhookExposure::LoadBalancer,
            }),
            kubeconfig: None,
        },
    };
    if internal && !hub.is_given() {
        return Err(Failure::usage("--force-internal-endpoint-lookup goes with --mode hosted and --hub-context"));
    }
    if mode == Some(ModeWord::Hosted) && !hub.is_given() {
        return Err(words::options(OptionsError::NoHub));
    }
    // The manifests of a hosted hub say how its hub is reached.
    if view.mode() == Mode::Render && !hub.is_given() {
        return view.manifests(&flow::new_hub(&options, &*ui).map_err(words::options)?.plan);
    }
    let connection = client.connection()?;
    let cluster = connect(&connection, ui.clone()).await?;
    let itself = match hub.is_given() {
        true => Some(Box::new(connect(&hub.connection(&connection), ui.clone()).await?)),
        false => None,
    };
    let request = flow::Request { options, hub: itself, internal, mode: view.mode(), wait, timeout };
    let is_hosted = request.hub.is_some();
    // Of a hosted hub, objects of the same names are on both clusters.
    let each = |cluster: &Cluster, applied: &ocm_core::Applied| match (is_hosted, cluster.role) {
        (false, _) => view.row(applied),
        (true, Role::Hub | Role::FormerHub) => view.row_on(&format!("hub, {}", cluster.label()), applied),
        (true, Role::Target | Role::Managed) => {
            view.row_on(&format!("hosting cluster, {}", cluster.label()), applied);
        }
    };
    let installed = flow::install(&cluster, &request, &*ui, each).await;
    let reached = request.hub.as_deref().unwrap_or(&cluster);
    match installed.map_err(words::failure).and_then(|installed| view::finish(&view, &ui, reached, installed)) {
        // The command that looks at hubs knows one cluster.
        Err(failure) if is_hosted => Err(failure),
        Err(failure) => Err(Troubleshoot::new(client.words()).explain(failure, &[], &*ui).await),
        done => done,
    }
}

fn gateway(text: &str) -> Result<Gateway, Failure> {
    Gateway::parse(text).ok_or_else(|| {
        Failure::usage(format!("--grpc-gateway {text:?} is not NAMESPACE/NAME or NAMESPACE/NAME/LISTENER"))
            .hint("see which there are: kubectl get gateways.gateway.networking.k8s.io --all-namespaces")
    })
}

/// Where the hub's API server finds a webhook.
fn webhook(flag: &str, text: Option<String>) -> Result<Option<Webhook>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match Webhook::parse(&text) {
        Some(webhook) => Ok(Some(webhook)),
        None => Err(Failure::usage(format!("{flag} {text:?} is not HOST or HOST:PORT"))
            .hint("name a host or an IPv4 address as the hub's API server dials it, such as webhooks.example:9443")),
    }
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
