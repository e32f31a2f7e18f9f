//! The role `webhook`: puts the server together and runs it.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ocm_cli::{Stop, Ui};
use ocm_core::{Event, Exit, Failure, Narrator, duration};
use ocm_kube::ClientArgs;
use ocm_net::Endpoint;
use ocm_policy_engine::{Cache, Engine, EngineSettings};
use ocm_policy_server::{
    Bounds, Certificate, CertificateFiles, DecisionLog, Gate, Health, Knowledge, Metrics, Policies, Server, follow,
    serve_health,
};
use tokio::net::TcpListener;

use crate::args::WebhookArgs;
use crate::compile;

/// Lines of the decision log that wait for a reader of stdout.
const LOG: usize = 4096;
/// How long the rest of the log may take at the end.
const WRITTEN: Duration = Duration::from_secs(5);
/// How often the certificate's files are looked at. By their content: a Secret's volume is another file each time.
const REREAD: Duration = Duration::from_secs(5);
/// How long its own connection may take, and the pause before the next.
const LOOK_AT_ITSELF: Duration = Duration::from_secs(2);
/// How often it is looked whether the server is ready to say so.
const LOOK: Duration = Duration::from_millis(20);

/// Serves until it is told to end.
pub(crate) async fn run(args: WebhookArgs, client: ClientArgs, ui: Arc<Ui>, stop: Stop) -> Result<Exit, Failure> {
    let WebhookArgs { listen, health_listen, tls_cert_file, tls_private_key_file, cache_dir, max_in_flight, drain } =
        args;
    let drain = duration::parse(&drain)
        .map_err(|error| Failure::usage(format!("--drain {drain} is no duration")).because(error))?;
    let files = CertificateFiles { certificate: tls_cert_file, key: tls_private_key_file };
    let unusable =
        |error: &dyn std::fmt::Display| Failure::usage("the serving certificate cannot be used").because(error);
    let certificate = Arc::new(Certificate::read(&files).map_err(|error| unusable(&error))?);
    let tls = certificate.config().map_err(|error| unusable(&error))?;
    let (reviews, probes) = (bind(listen).await?, bind(health_listen).await?);
    let hub = ocm_kube::connect(&client.connection()?, ui.clone()).await?;
    let cannot = |error: &dyn std::fmt::Display| Failure::other("policies cannot be run here").because(error);
    let engine = Engine::new(&EngineSettings::default()).map_err(|error| cannot(&error))?;
    let cache = match cache_dir {
        Some(folder) => Some(Cache::open(folder).map_err(|error| cannot(&error))?),
        None => None,
    };
    let metrics = Arc::new(Metrics::default());
    let knowledge = Arc::new(Knowledge::new(hub.client.clone()));
    let policies = Arc::new(Policies::new(
        hub.client.clone(),
        engine,
        compile::compiler()?,
        cache,
        knowledge.clone(),
        metrics.clone(),
    ));
    let log = Arc::new(DecisionLog::new(LOG));
    let lines = log.clone();
    let writer = std::thread::spawn(move || lines.write(write));
    let gate = Arc::new(Gate::new(policies.clone(), knowledge.clone(), metrics.clone(), log.clone()));
    let bounds = Bounds { in_flight: max_in_flight.into(), drain, ..Bounds::default() };
    let server = Server::new(gate, metrics.clone(), bounds);
    let health = Arc::new(Health::new(policies.clone(), knowledge, metrics.clone()));

    let told = ui.clone();
    let following = tokio::spawn(follow(hub.client.clone(), policies, move |why| told.tell(Event::warning(why))));
    let rereading = tokio::spawn(reread(files, certificate, metrics, ui.clone()));
    let probing = tokio::spawn(serve_health(probes, health.clone()));
    let ready = tokio::spawn(say_when_ready(health, reviews.local_addr(), ui.clone()));
    server.serve(reviews, tls, stop).await;
    for task in [following, rereading, probing, ready] {
        task.abort();
        let _ = task.await;
    }
    // What waits is written, and then nothing comes.
    log.close();
    let written = tokio::task::spawn_blocking(move || writer.join());
    let _ = tokio::time::timeout(WRITTEN, written).await;
    ui.tell(Event::done("every review that came was answered"));
    Ok(Exit::Ok)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Failure::other(format!("cannot listen on {address}")).because(error))
}

/// Writes lines of the decision log.
fn write(lines: &VecDeque<String>) {
    let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        text += line;
        text.push('\n');
    }
    // Whoever closes stdout wants no log; that stops nobody.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Serves with the newest certificate.
async fn reread(files: CertificateFiles, certificate: Arc<Certificate>, metrics: Arc<Metrics>, ui: Arc<Ui>) {
    let mut told = String::new();
    loop {
        metrics.serving_certificate(certificate.ends());
        tokio::time::sleep(REREAD).await;
        match certificate.reread(&files) {
            Ok(true) => ui.tell(Event::done("serving with a new certificate")),
            Ok(false) => told.clear(),
            Err(error) => {
                let why = error.to_string();
                if why != told {
                    ui.tell(Event::warning(format!("the new serving certificate cannot be used: {why}")));
                    told = why;
                }
            }
        }
    }
}

/// Says that it is ready, when the policies were read and a connection of its own was served.
async fn say_when_ready(health: Arc<Health>, address: std::io::Result<SocketAddr>, ui: Arc<Ui>) {
    let Ok(address) = address else { return };
    let own = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let url = format!("https://{}", SocketAddr::new(own, address.port()));
    let Ok(endpoint) = Endpoint::parse(&url, None) else { return };
    while let Err(error) = ocm_net::present(&endpoint, &[], LOOK_AT_ITSELF).await {
        ui.tell(Event::warning(error.failure(&endpoint).to_string()));
        tokio::time::sleep(LOOK_AT_ITSELF).await;
    }
    health.answers();
    while !health.not_ready().is_empty() {
        tokio::time::sleep(LOOK).await;
    }
    ui.tell(Event::done(format!("answering reviews at {address}")));
}
