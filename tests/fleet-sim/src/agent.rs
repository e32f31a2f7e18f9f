//! One cluster that registers as Open Cluster Management's agent does, and what it does once it is in.

use std::time::{Duration, Instant};

use csr_fixtures::{Fixture, Key};
use fastrand::Rng;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use ocm_api::conditions::{TRUE, managed_cluster};
use ocm_api::names::hub::MANAGED_CLUSTER_LEASE;
use serde_json::json;

use crate::hostile::AGENT;
use crate::hub::{Failed, Hub};
use crate::objects::{Ask, Who, managed_cluster};

/// How long the certificate of a renewal may take.
const SIGNED: Duration = Duration::from_secs(60);

/// A cluster that has joined: it has a certificate.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The names of its certificate requests, the newest one last.
    pub requests: Vec<String>,
    key: String,
    certificate: Vec<u8>,
}

/// Registers a cluster, unless it is registered already.
pub(crate) async fn register(hub: &Hub, random: &mut Rng, name: &str) -> Result<(), Failed> {
    let api: Api<ManagedCluster> = Api::all(hub.clients[&Who::Bootstrap].clone());
    if hub.insist(random, || api.get_opt(name), |_| false).await?.is_some() {
        return Ok(());
    }
    let (cluster, params) = (managed_cluster(name), PostParams::default());
    // An answer may have been lost.
    match hub.insist(random, || api.create(&params, &cluster), |failed| failed.exists).await {
        Err(failed) if !failed.exists => Err(failed),
        _ => Ok(()),
    }
}

/// Asks for a certificate until the hub takes the request; returns its name.
pub(crate) async fn ask(hub: &Hub, random: &mut Rng, client: &Client, ask: &Ask) -> Result<String, Failed> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let (object, params) = (ask.object(), PostParams::default());
    let created = hub.insist(random, || api.create(&params, &object), |_| false).await?;
    Ok(created.metadata.name.unwrap_or_default())
}

impl Agent {
    /// Joins: asks for a certificate, and waits until the hub has accepted the cluster and signed it. `asked` hears that
    /// the hub has the request, `accepted` how long after sending it, and when, the hub was seen to accept the cluster.
    /// Returns how long after sending the request the certificate was there.
    pub(crate) async fn join(
        hub: &Hub,
        random: &mut Rng,
        name: &str,
        asked: impl FnOnce(),
        accepted: impl FnOnce(Duration, Instant),
    ) -> Result<(Self, Duration), Failed> {
        let (key, private) = Key::p256_with_pem();
        let content = Ask::with(name, &Fixture::agent(name, AGENT).key(&key));
        let begun = Instant::now();
        let request = ask(hub, random, &hub.clients[&Who::Bootstrap], &content).await?;
        asked();
        let let_in = hub.board.until_accepted(name).await.ok_or_else(gone)?;
        accepted(let_in.saturating_duration_since(begun), let_in);
        let (signed, certificate) = hub.board.until_signed(&request).await.ok_or_else(gone)?;
        let agent = Self { name: name.to_owned(), requests: vec![request], key: private, certificate };
        Ok((agent, signed.saturating_duration_since(begun)))
    }

    fn client(&self, hub: &Hub) -> Result<Client, Failed> {
        hub.client_of(&self.certificate, &self.key)
    }

    /// Writes its status, and renews its lease if the hub has made one. Whether it has. What fails is tried again until
    /// `is_over` finds that to be no use.
    pub(crate) async fn beat(
        &self,
        hub: &Hub,
        random: &mut Rng,
        is_over: impl Fn(&Failed) -> bool,
    ) -> Result<bool, Failed> {
        let client = self.client(hub)?;
        let clusters: Api<ManagedCluster> = Api::all(client.clone());
        let there = hub.insist(random, || clusters.get(&self.name), &is_over).await?;
        let now = Timestamp::now();
        let mut conditions = there.status.unwrap_or_default().conditions;
        for kind in [managed_cluster::JOINED, managed_cluster::AVAILABLE] {
            conditions.retain(|condition| condition.type_ != kind);
            conditions.push(Condition {
                type_: kind.to_owned(),
                status: TRUE.to_owned(),
                reason: "Simulated".to_owned(),
                message: "a simulated cluster reports".to_owned(),
                last_transition_time: Time(now),
                observed_generation: None,
            });
        }
        let status = json!({"status": {
            "conditions": conditions, "version": {"kubernetes": "v1.35.0"},
            "capacity": {"cpu": "4", "memory": "16Gi"}, "allocatable": {"cpu": "4", "memory": "15Gi"},
        }});
        let (params, patch) = (PatchParams::default(), Patch::Merge(status));
        hub.insist(random, || clusters.patch_status(&self.name, &params, &patch), &is_over).await?;
        let leases: Api<Lease> = Api::namespaced(client, &self.name);
        let params = PostParams::default();
        // Somebody else may have written it in between.
        let renew = async || {
            let mut lease = leases.get(MANAGED_CLUSTER_LEASE).await?;
            lease.spec.get_or_insert_default().renew_time = Some(MicroTime(now));
            leases.replace(MANAGED_CLUSTER_LEASE, &params, &lease).await
        };
        match hub.insist(random, renew, |failed| failed.is_missing || is_over(failed)).await {
            Ok(_) => Ok(true),
            Err(failed) if failed.is_missing => Ok(false),
            Err(failed) => Err(failed),
        }
    }

    /// Asks in its own name for another certificate, with another key, and takes it.
    pub(crate) async fn renew(&mut self, hub: &Hub) -> Result<(), Failed> {
        let (key, private) = Key::p256_with_pem();
        let content = Ask::with(&self.name, &Fixture::agent(&self.name, AGENT).key(&key));
        let requests: Api<CertificateSigningRequest> = Api::all(self.client(hub)?);
        let created = hub.call(requests.create(&PostParams::default(), &content.object())).await?;
        let name = created.metadata.name.clone().unwrap_or_default();
        if let Some(approver) = &hub.approver {
            approve(hub, approver, created).await?;
        }
        let signed = tokio::time::timeout(SIGNED, hub.board.until_signed(&name)).await;
        let late = || Failed::of(format!("no certificate within {} seconds", SIGNED.as_secs()));
        let (_, certificate) = signed.map_err(|_| late())?.ok_or_else(gone)?;
        (self.key, self.certificate) = (private, certificate);
        self.requests.push(name);
        Ok(())
    }
}

/// Approves a request in the place of the hub's own controllers.
async fn approve(hub: &Hub, approver: &Client, mut request: CertificateSigningRequest) -> Result<(), Failed> {
    let status = request.status.get_or_insert_default();
    status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
        type_: "Approved".to_owned(),
        status: TRUE.to_owned(),
        reason: Some("Simulated".to_owned()),
        ..CertificateSigningRequestCondition::default()
    });
    let api: Api<CertificateSigningRequest> = Api::all(approver.clone());
    let name = request.metadata.name.clone().unwrap_or_default();
    hub.call(api.replace_subresource("approval", &name, &PostParams::default(), &request)).await.map(drop)
}

/// The board ends only with the simulation itself.
fn gone() -> Failed {
    Failed::of("the simulation ended".to_owned())
}
