//! From arguments to a joined cluster.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ocm_api::operator::{HubApiServerHostAlias, KlusterletMode, RegistrationAuthType};
use ocm_cli::{PlanView, Troubleshoot, Ui, files, options};
use ocm_core::accept::Options as AcceptOptions;
use ocm_core::cluster_name::{NameError, check_new};
use ocm_core::join::gates::GATES;
use ocm_core::join::progress::Goal;
use ocm_core::join::proxy::{AgentProxy, ProxyUrl};
use ocm_core::join::{CertificateLife, Settings, choices};
use ocm_core::release::Component;
use ocm_core::values::Kind;
use ocm_core::work::is_object_name;
use ocm_core::{Applied, Event, Exit, Failure, Narrator, Role, certificate};
use ocm_flows::hub::AddressOptions;
use ocm_flows::join::{self, HubAccess, Request, Trust};
use ocm_kube::{Cluster, Connection, HubArgs, ManagedArgs, connect};
use secrecy::SecretString;

use crate::args::{JoinArgs, ModeArg, WaitArg};
use crate::files::read;
use crate::further::Further;
use crate::{driver, fleet, view};

pub(crate) async fn run(args: JoinArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    if let Some(file) = args.filename.clone() {
        return fleet::run(&file, args, ui).await;
    }
    let JoinArgs {
        name,
        cluster_name,
        filename: _,
        concurrency: _,
        hub_token,
        hub_token_file,
        hub_apiserver,
        hub_ca_pin,
        hub_ca_data,
        ca_file,
        hub_insecure_skip_tls_verify,
        force_internal_endpoint_lookup: internal,
        accept,
        adopt_namespace,
        itself,
        wait,
        timeout,
        plan,
        mode,
        singleton,
        bundle_version,
        registry,
        image_files,
        image_pull_credential_file,
        values,
        feature_gates,
        client_cert_expiration_seconds,
        registration_auth,
        grpc_server,
        grpc_ca_file,
        hub_cluster_arn,
        managed_cluster_arn,
        addon_kubeclient_registration_auth,
        addon_token_expiration_seconds,
        klusterlet_annotation,
        enable_sync_labels,
        resources,
        nodes,
        priority_class,
        proxy_url,
        proxy_ca_file,
        host_alias,
        force_internal_endpoint_lookup_managed: internal_managed,
        create_namespace,
        output,
        hub,
        further,
        remove_fallback_hub,
        hub_connection_timeout,
        former,
        managed: managed_args,
        client,
    } = args;
    let name = name.or(cluster_name).ok_or_else(|| {
        Failure::usage("the name of the cluster is missing")
            .hint("name the cluster that joins: kubectl ocm join NAME")
            .hint("or name a file of a hub and its clusters: kubectl ocm join --filename FILE")
    })?;
    check_new(&name).map_err(NameError::failure)?;
    let typed = driver::Typed {
        driver: registration_auth,
        server: grpc_server,
        ca_file: grpc_ca_file,
        hub_arn: hub_cluster_arn,
        managed_arn: managed_cluster_arn,
    };
    let values = values.read(Kind::Klusterlet).await?;
    let driver::Registration { driver, grpc, roles } = typed.check()?.or(&values)?;
    let by_aws = driver.as_ref().is_some_and(|driver| driver.auth_type == RegistrationAuthType::AwsIrsa);
    let settings = Settings {
        name,
        mode: mode_of(mode, singleton)?.or_else(|| values.mode()),
        bundle: image_files.bundle(bundle_version.as_deref()).await?,
        registry: registry.as_deref().map(options::registry).transpose()?,
        digests: image_files.digests(Component::AGENT).await?,
        values,
        pull_credentials: image_pull_credential_file.as_deref().map(options::pull_credentials).transpose()?,
        create_namespace,
        feature_gates: options::feature_gates(&feature_gates, "a klusterlet", GATES)?,
        certificate_life: client_cert_expiration_seconds.map(certificate_life).transpose()?,
        annotations: options::pairs("--klusterlet-annotation", &klusterlet_annotation)?,
        server_urls: Vec::new(),
        resources: resources.requirement()?,
        scheduling: nodes.scheduling(priority_class.map(priority_class_of).transpose()?)?,
        enable_sync_labels,
        driver,
        addon_driver: driver::addons(addon_kubeclient_registration_auth, addon_token_expiration_seconds)?,
        host_alias: host_alias.as_deref().map(host_alias_of).transpose()?,
    };
    let timeout_of_hubs = hub_connection_timeout.as_deref();
    let further = Further::check(further, remove_fallback_hub, timeout_of_hubs, &settings.feature_gates)?;
    former.check()?;
    let view = PlanView::new(ui.clone(), &plan, output.output)?;
    let timeout = options::timeout(&timeout)?;
    let proxy = proxy(proxy_url.as_deref(), proxy_ca_file.as_deref())?;
    let trust = trust(&hub_ca_pin, &hub_ca_data, ca_file, hub_insecure_skip_tls_verify)?;
    let connection = client.connection()?;
    let guest = guest(settings.is_hosted(), &managed_args, &connection)?;
    if internal_managed && guest.is_none() {
        return Err(Failure::usage("--force-internal-endpoint-lookup-managed goes with --mode hosted")
            .hint("for the hub's address: --force-internal-endpoint-lookup"));
    }
    let token = files::beside(move || token(hub_token, hub_token_file)).await?;
    let typed = Typed { token, server: hub_apiserver, trust, internal };
    let access = typed.access(&hub, &connection, &ui).await?;
    let has_hub_kubeconfig = matches!(access, HubAccess::Kubeconfig { .. });
    if accept && !has_hub_kubeconfig {
        return Err(Failure::usage(
            "--accept needs the hub's kubeconfig: only an administrator of the hub accepts clusters",
        )
        .hint("with access to both clusters: --hub-context NAME or --hub-kubeconfig FILE")
        .hint("otherwise, on the hub: kubectl ocm accept NAME"));
    }
    if accept && by_aws {
        return Err(Failure::usage(
            "--accept approves a certificate request, and with an identity of AWS there is none",
        )
        .hint("when the IAM role of the agent is there, on the hub: kubectl ocm accept NAME"));
    }
    let goal = wait.map(|wait| match wait {
        WaitArg::Available => Goal::Available,
        WaitArg::Usual if accept => Goal::Available,
        WaitArg::Registered | WaitArg::Usual => Goal::Registered,
    });
    let fallback = further.connect(&hub, &connection, has_hub_kubeconfig, &ui).await?;
    let former = former.connect(&connection, &ui).await?;
    let managed = connect(&connection, ui.clone()).await?;
    let guest = match guest {
        Some(guest) => Some(Box::new(connect(&guest, ui.clone()).await?)),
        None => None,
    };
    let joining = guest.as_deref().unwrap_or(&managed);
    if guest.is_some() && join::are_one(&managed, joining).await {
        return Err(Failure::usage(format!("{} would host itself", managed.label()))
            .hint("say which cluster hosts the agent: --context NAME; and which one joins: --managed-context NAME")
            .hint("to have the agent on the cluster itself: --mode default, or --mode singleton"));
    }
    if join::is_itself(joining, &access).await {
        let sentence = format!("{} is the hub itself", joining.label());
        if itself || !view.mode().changes() {
            ui.tell(Event::note(sentence));
        } else if !ui.can_ask() {
            return Err(Failure::usage(format!("{sentence}, and would join itself"))
                .hint("say which cluster is to join: --context NAME")
                .hint("if the hub is to manage itself: --self"));
        } else if !ui.confirm(&format!("{sentence}. Let it manage itself?")).await? {
            return Err(Failure::refused("nothing was changed").hint("say which cluster is to join: --context NAME"));
        }
    }
    let request = Request {
        settings,
        access,
        mode: view.mode(),
        accept: accept.then(AcceptOptions::default),
        wait: goal,
        timeout,
        internal,
        internal_managed,
        adopt_namespace,
        guest,
        proxy,
        grpc,
        fallback,
        former,
        coming: None,
    };
    let name = &request.settings.name;
    // In the hosted modes objects of the same names are on both clusters; of hubs, only the former one is changed object by object.
    let mut each = |cluster: &Cluster, applied: &Applied| match (request.settings.is_hosted(), cluster.role) {
        (_, Role::FormerHub) => view.row_on(&format!("former hub, {}", cluster.label()), applied),
        (_, Role::Hub) => view.row_on(&format!("hub, {}", cluster.label()), applied),
        (false, _) => view.row(applied),
        (true, Role::Managed) => view.row_on(&format!("managed cluster, {}", cluster.label()), applied),
        (true, Role::Target) => view.row_on(&format!("hosting cluster, {}", cluster.label()), applied),
    };
    let joined = join::join(&managed, &request, ui.clone(), &mut each).await;
    match joined.and_then(|joined| view::finish(&view, &ui, name, joined, roles)) {
        Err(failure) => {
            let flags = client.words().map(|words| words.into_iter().chain(hub.words()).collect());
            Err(Troubleshoot::new(flags).explain(failure, std::slice::from_ref(name), ui.as_ref()).await)
        }
        done => done,
    }
}

/// The mode that was typed, if one was.
fn mode_of(mode: Option<ModeArg>, singleton: bool) -> Result<Option<KlusterletMode>, Failure> {
    Ok(Some(match (mode, singleton) {
        (None, false) => return Ok(None),
        (None | Some(ModeArg::Singleton), true) | (Some(ModeArg::Singleton), false) => KlusterletMode::Singleton,
        (Some(ModeArg::Default), true) => {
            return Err(Failure::usage("--mode default has two Deployments, and --singleton asks for one"));
        }
        (Some(ModeArg::Default), false) => KlusterletMode::Default,
        (Some(ModeArg::Hosted), false) => KlusterletMode::Hosted,
        (Some(ModeArg::Hosted), true) | (Some(ModeArg::SingletonHosted), _) => KlusterletMode::SingletonHosted,
    }))
}

/// The connection to the cluster that joins, where the agent runs on another one.
fn guest(is_hosted: bool, managed: &ManagedArgs, plain: &Connection) -> Result<Option<Connection>, Failure> {
    match (is_hosted, managed.is_given()) {
        (false, false) => Ok(None),
        (true, true) => Ok(Some(managed.connection(plain))),
        (true, false) => Err(Failure::usage(
            "in the hosted modes the agent runs on another cluster than the one that joins",
        )
        .hint(
            "say which one joins: --managed-context NAME or --managed-kubeconfig FILE; --context is that of the agent",
        )),
        (false, true) => Err(Failure::usage("--managed-context and --managed-kubeconfig go with --mode hosted")
            .hint("with the agent on the cluster itself, that cluster is named by --context and --kubeconfig")),
    }
}

/// What was typed about the hub.
struct Typed {
    token: Option<String>,
    server: Option<String>,
    trust: Trust,
    internal: bool,
}

impl Typed {
    /// Which of the two ways to the hub was meant.
    async fn access(self, hub: &HubArgs, plain: &Connection, ui: &Arc<Ui>) -> Result<HubAccess, Failure> {
        let Self { token, server, trust, internal } = self;
        match (token, hub.is_given()) {
            (Some(_), true) => Err(Failure::usage("a token and the hub's kubeconfig are two different ways in")
                .hint("leave out --hub-token (and $KUBECTL_OCM_HUB_TOKEN), or --hub-context and --hub-kubeconfig")),
            (None, false) => Err(Failure::usage("say how to reach the hub")
                .hint("with a token: paste the line that `kubectl ocm token create` prints on the hub")
                .hint("with access to both clusters: --hub-context NAME or --hub-kubeconfig FILE")),
            (Some(token), false) => {
                let server = server.ok_or_else(|| {
                    Failure::usage("--hub-token needs --hub-apiserver URL: a token does not say where its hub is")
                })?;
                Ok(HubAccess::Token { token: SecretString::from(token), server, trust })
            }
            (None, true) => {
                if !trust.pins.is_empty() {
                    return Err(Failure::usage("--hub-ca-pin goes with a token")
                        .hint("with access to both clusters the hub's kubeconfig says how it is verified"));
                }
                // What is sent to a hub that nobody verifies, anybody may hear: the CA that was given verifies it.
                let connection = Connection { authorities: trust.ca.clone(), ..hub.connection(plain) };
                let hub = connect(&connection, ui.clone()).await?;
                let address = AddressOptions { server, internal, ca: trust.ca, unverified: trust.skip };
                Ok(HubAccess::Kubeconfig { hub: Box::new(hub), address })
            }
        }
    }
}

fn token(typed: Option<String>, file: Option<PathBuf>) -> Result<Option<String>, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| Failure::usage("the token on stdin cannot be read").because(error);
    let text = match (typed, file) {
        (Some(dash), _) if dash == "-" => {
            let mut text = String::new();
            std::io::stdin().take(1 << 16).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
            text
        }
        (Some(text), _) => text,
        (None, Some(path)) => String::from_utf8(read("--hub-token-file", &path)?)
            .map_err(|_| Failure::usage(format!("--hub-token-file {} holds no token", path.display())))?,
        (None, None) => return Ok(None),
    };
    Ok(Some(text.trim().to_owned()))
}

fn trust(pins: &[String], words: &[String], file: Option<PathBuf>, skip: bool) -> Result<Trust, Failure> {
    let wrong =
        |flag: &str, error: &dyn std::fmt::Display| Failure::usage(format!("{flag} cannot be used")).because(error);
    let pins = pins.iter().map(|pin| pin.parse().map_err(|error| wrong("--hub-ca-pin", &error)));
    let mut ca = Vec::new();
    for word in words {
        ca.extend(certificate::from_base64(word).map_err(|error| wrong("--hub-ca-data", &error))?);
    }
    if let Some(path) = file {
        ca.extend(certificate::from_pem(&read("--ca-file", &path)?).map_err(|error| wrong("--ca-file", &error))?);
    }
    Ok(Trust { pins: pins.collect::<Result<_, _>>()?, ca, skip })
}

fn priority_class_of(name: String) -> Result<String, Failure> {
    match is_object_name(&name) {
        true => Ok(name),
        false => Err(Failure::usage(format!("--priority-class {name:?} cannot be the name of a PriorityClass"))),
    }
}

/// What was typed about the agent's proxy.
fn proxy(url: Option<&str>, ca: Option<&Path>) -> Result<AgentProxy, Failure> {
    let needless = || {
        Failure::usage("--proxy-ca-file goes with an https --proxy-url: agents verify no other proxy")
            .hint("name the proxy, too: --proxy-url https://HOST:PORT")
    };
    let url = match url.map(str::trim) {
        None if ca.is_none() => return Ok(AgentProxy::AsItIs),
        Some("") if ca.is_none() => return Ok(AgentProxy::Without),
        None | Some("") => return Err(needless()),
        Some(url) => ProxyUrl::parse(url).map_err(|why| {
            Failure::usage("--proxy-url cannot be the proxy of an agent")
                .because(why)
                .hint("write it as http://HOST:PORT or https://HOST:PORT, with the address at which pods reach it")
                .hint("to take the agent's proxy away: --proxy-url ''")
        })?,
    };
    let ca = match ca {
        None => Vec::new(),
        Some(_) if !url.is_https() => return Err(needless()),
        Some(path) => certificate::from_pem(&read("--proxy-ca-file", path)?)
            .map_err(|error| Failure::usage("--proxy-ca-file cannot be used").because(error))?,
    };
    Ok(AgentProxy::Through { url, ca })
}

fn host_alias_of(text: &str) -> Result<HubApiServerHostAlias, Failure> {
    choices::host_alias(text).ok_or_else(|| {
        Failure::usage(format!("--host-alias {text:?} is not IP=NAME, with an IPv4 address and the name of a host"))
            .hint("write it as 192.0.2.10=hub.example")
    })
}

fn certificate_life(seconds: i32) -> Result<CertificateLife, Failure> {
    CertificateLife::seconds(seconds).ok_or_else(|| {
        Failure::usage(format!(
            "--client-cert-expiration-seconds {seconds}: a certificate lives for {} seconds at least; 0 leaves it to the \
             hub",
            CertificateLife::SHORTEST
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_alias_is_an_address_and_a_name() {
        assert_eq!(host_alias_of("192.0.2.10=hub.example").unwrap().hostname, "hub.example");
        assert!(
            host_alias_of("hub.example").unwrap_err().message.contains("--host-alias \"hub.example\" is not IP=NAME")
        );
    }

    #[test]
    fn a_certificate_that_would_live_too_briefly_is_refused() {
        assert!(certificate_life(600).unwrap_err().message.contains("3600 seconds at least"));
        assert!(certificate_life(0).is_ok());
    }

    #[test]
    fn the_ca_of_a_proxy_goes_with_an_https_proxy() {
        assert_eq!(proxy(None, None), Ok(AgentProxy::AsItIs));
        assert_eq!(proxy(Some(""), None), Ok(AgentProxy::Without));
        let plain = proxy(Some("http://proxy.example:3128"), None).unwrap();
        assert!(matches!(plain, AgentProxy::Through { ca, .. } if ca.is_empty()));
        let file = Some(Path::new("/nonexistent/ca"));
        for url in [None, Some(""), Some("http://proxy.example:3128")] {
            let refused = proxy(url, file).unwrap_err();
            assert!(refused.message.contains("--proxy-ca-file goes with an https --proxy-url"), "{url:?}: {refused}");
        }
        let missing = proxy(Some("https://proxy.example:3129"), file).unwrap_err();
        assert!(missing.message.contains("--proxy-ca-file /nonexistent/ca"), "{missing}");
        let wrong = proxy(Some("socks5://me:s3cr@proxy.example"), None).unwrap_err();
        assert!(wrong.to_string().contains("neither http nor https") && !wrong.to_string().contains("s3cr"), "{wrong}");
        assert!(wrong.hints.iter().any(|hint| *hint == "to take the agent's proxy away: --proxy-url ''"));
    }

    #[test]
    fn what_is_no_pin_or_certificate_is_named() {
        assert!(trust(&["sha256:1".to_owned()], &[], None, false).unwrap_err().message.contains("--hub-ca-pin"));
        assert!(trust(&[], &["xx".to_owned()], None, false).unwrap_err().message.contains("--hub-ca-data"));
        let missing = trust(&[], &[], Some("/nonexistent/ca".into()), false).unwrap_err();
        assert!(missing.message.contains("--ca-file /nonexistent/ca"), "{missing}");
    }
}
