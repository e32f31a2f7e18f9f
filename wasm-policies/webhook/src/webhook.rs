//! The role `webhook`: puts the server together and runs it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ocm_cli::{Stop, Ui};
use ocm_core::certificate::Certificate as Facts;
use ocm_core::policy_engine::CERTIFICATES;
use ocm_core::{Event, Exit, Failure, Narrator, duration};
use ocm_kube::ClientArgs;
use ocm_net::Endpoint;
use ocm_policy_server::{
    Bounds, Certificate, CertificateFiles, ClientCa, Gate, Health, Metrics, Server, Unusable, serve_health,
};

use crate::args::WebhookArgs;
use crate::parts::{Log, Parts, bind};

/// How often the files of certificates are looked at. By their content: a Secret's volume is another file each time.
const REREAD: Duration = Duration::from_secs(5);
/// How often it is told that the certificate ends soon.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long its own connection may take, and the pause before the next.
const LOOK_AT_ITSELF: Duration = Duration::from_secs(2);
/// How often it is looked whether the server is ready to say so.
const LOOK: Duration = Duration::from_millis(20);

/// Serves until it is told to end.
pub(crate) async fn run(args: WebhookArgs, client: ClientArgs, ui: Arc<Ui>, stop: Stop) -> Result<Exit, Failure> {
    let WebhookArgs {
        listen,
        health_listen,
        tls_cert_file,
        tls_private_key_file,
        client_ca_file,
        modules,
        max_in_flight,
        drain,
        with_controller,
    } = args;
    let drain = duration::parse(&drain)
        .map_err(|error| Failure::usage(format!("--drain {drain} is no duration")).because(error))?;
    let files = CertificateFiles { certificate: tls_cert_file, key: tls_private_key_file };
    let unusable =
        |error: &dyn std::fmt::Display| Failure::usage("the serving certificate cannot be used").because(error);
    let certificate = Arc::new(Certificate::read(&files).map_err(|error| unusable(&error))?);
    let clients = client_ca_file.map(|file| match ClientCa::read(&file) {
        Ok(ca) => Ok((Arc::new(ca), file)),
        Err(error) => Err(Failure::usage("the CA of the clients cannot be used").because(error)),
    });
    let clients = clients.transpose()?;
    let tls = certificate.config(clients.as_ref().map(|(ca, _)| ca.clone())).map_err(|error| unusable(&error))?;
    let (reviews, probes) = (bind(listen).await?, bind(health_listen).await?);
    let parts = Parts::new(&client, modules, &ui).await?;
    let Parts { policies, knowledge, metrics, health, .. } = &parts;
    let log = Log::start()?;
    let gate = Gate::new(policies.clone(), knowledge.clone(), metrics.clone(), log.log.clone());
    let gate = Arc::new(gate.with_controller(with_controller));
    let bounds = Bounds { in_flight: max_in_flight.into(), drain, ..Bounds::default() }.within_open_files();
    let server = Server::new(gate, metrics.clone(), bounds)
        .map_err(|error| Failure::other("no thread can be started that answers reviews").because(error))?;
    let following = parts.follow(&ui);
    let rereading = tokio::spawn(reread(files, certificate, clients, metrics.clone(), ui.clone()));
    let probing = tokio::spawn(serve_health(probes, health.clone()));
    let ready = tokio::spawn(say_when_ready(health.clone(), reviews.local_addr(), ui.clone()));
    server.serve(reviews, tls, stop).await;
    for task in [following, rereading, probing, ready] {
        task.abort();
        let _ = task.await;
    }
    log.end().await;
    ui.tell(Event::done("every review that came was answered"));
    Ok(Exit::Ok)
}

/// Serves with the newest certificate, and whom the newest CA vouches for.
async fn reread(
    files: CertificateFiles,
    certificate: Arc<Certificate>,
    clients: Option<(Arc<ClientCa>, PathBuf)>,
    metrics: Arc<Metrics>,
    ui: Arc<Ui>,
) {
    let (mut told, mut told_of_ca, mut warned) = (String::new(), String::new(), None::<Instant>);
    loop {
        let facts = certificate.facts();
        metrics.serving_certificate(facts.as_ref().map(|facts| facts.not_after));
        let soon = facts.and_then(|facts| ends_soon(&facts, Timestamp::now()));
        if let Some(why) = soon.filter(|_| warned.is_none_or(|at| at.elapsed() >= DAY)) {
            ui.tell(Event::warning(why));
            warned = Some(Instant::now());
        }
        tokio::time::sleep(REREAD).await;
        let what = ["serving with a new certificate", "the new serving certificate cannot be used"];
        tell(certificate.reread(&files), what, &mut told, &ui);
        if let Some((ca, file)) = &clients {
            let what = ["serving clients of a new CA", "the new CA of the clients cannot be used"];
            tell(ca.reread(file), what, &mut told_of_ca, &ui);
        }
    }
}

/// Tells what came of reading a file again, and what is wrong with it once.
fn tell(read: Result<bool, Unusable>, [done, failed]: [&str; 2], told: &mut String, ui: &Ui) {
    match read {
        Ok(true) => ui.tell(Event::done(done)),
        Ok(false) => told.clear(),
        Err(error) => {
            let why = error.to_string();
            if why != *told {
                ui.tell(Event::warning(format!("{failed}: {why}")));
                *told = why;
            }
        }
    }
}

/// Why somebody has to see to a certificate: less than a fifth of its life is left. What renews it does so when a third is.
fn ends_soon(certificate: &Facts, now: Timestamp) -> Option<String> {
    let life = certificate.not_after.duration_since(certificate.not_before);
    (now > certificate.not_after - life / 5).then(|| {
        format!(
            "the serving certificate ends at {} and nobody has renewed it: see what the Jobs of CronJob {CERTIFICATES} say, or \
             run kubectl ocm install policy-engine --wait",
            certificate.not_after
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_told_of_when_a_fifth_of_its_life_is_left() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["webhook".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 4, 11);
        let certificate = Facts::read(params.self_signed(&key).unwrap().der()).unwrap();
        let at = |day: &str| ends_soon(&certificate, format!("{day}T12:00:00Z").parse().unwrap());
        assert_eq!((at("2026-01-01"), at("2026-03-21")), (None, None));
        let said = at("2026-03-22").unwrap();
        assert!(said.contains("2026-04-11") && said.contains("ocm-policy-certificates"), "{said}");
        assert!(at("2026-05-01").is_some());
    }
}
