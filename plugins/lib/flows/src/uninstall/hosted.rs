//! What is on the hub itself, of a hub that another cluster hosts: whose it is, and what of it the operator leaves.

use std::time::Instant;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use ocm_api::names::{namespaces, operators};
use ocm_api::{ManagedCluster, Manifest};
use ocm_core::account::is_ours;
use ocm_core::install::hosted as rules;
use ocm_core::leave::{installation, klusterlet::namespace};
use ocm_core::token::MANAGED_BY;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Plan, Remedy, Stage};
use ocm_kube::access::{self, Right};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

use crate::hub;
use crate::install::hosted::{apart, is_hub, kept, own_manager, refuse_own};
use crate::join::serves;
use crate::leave::{Leaving, namespace_gone};

/// What is on the hub.
#[derive(Clone, Debug)]
pub(super) struct OnHub {
    /// The namespace of the hub's controllers' accounts, named as the ClusterManager.
    pub(super) space: String,
    /// The namespaces of the accounts that we made for its operator: names and UIDs.
    accounts: Vec<(String, String)>,
    /// Its webhook configurations, with their UIDs.
    configurations: Vec<(Manifest, String)>,
    /// Whether the operator of a managed cluster is on it.
    pub(super) beside_agent: bool,
}

/// The rights on the hub.
pub(super) fn rights() -> Vec<Right> {
    let left = Stage::new("what the operator leaves", installation::webhook_configurations());
    let mut rights = access::to_remove(&Plan::new([left]));
    rights.push(Right::new("list", "", "namespaces"));
    rights
}

/// Looks at the hub of the ClusterManager of this name, or of one that is gone already.
///
/// # Errors
/// A refusal where it is not the hub that this cluster hosts; the failure of a request.
pub(super) async fn find(hosting: &Cluster, cluster: &Cluster, manager: Option<&str>) -> Result<OnHub, Failure> {
    apart(hosting, cluster).await?;
    let space = manager.unwrap_or(rules::NAME).to_owned();
    let label = cluster.label();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespaces::OPERATOR);
    let (own, hosting_uid, uid, kept, found, agent) = futures::join!(
        own_manager(cluster),
        hub::uid(hosting),
        hub::uid(cluster),
        kept(hosting, &space),
        accounts(cluster),
        deployments.get_metadata_opt(operators::KLUSTERLET),
    );
    refuse_own(own?, &label)?;
    let (kept, found) = (kept?, found?);
    let refused = |why: String| {
        Failure::refused(format!("{why}; nothing was deleted")).hint("name the hub that this cluster hosts")
    };
    if let Some(kept) = kept.as_ref().filter(|kept| !is_hub(kept, uid.as_deref(), cluster)) {
        let there = &kept.server;
        return Err(refused(format!("{label} is not the hub of {}, which is at {there}", hosting.label())));
    }
    let (mut accounts, name) = (Vec::new(), rules::account_name(&space));
    for Account { name: own, uid, hosted_by } in found {
        match (hosted_by.as_deref(), hosting_uid.as_deref()) {
            (Some(noted), Some(hosting)) if noted == hosting => accounts.push((own, uid)),
            (Some(_), Some(_)) if own == name => {
                return Err(refused(format!("{label} is a hub that another cluster than {} hosts", hosting.label())));
            }
            // Nothing tells whose it is, but the operator reaches the hub by it.
            (None, _) | (_, None) if own == name && kept.is_some() => accounts.push((own, uid)),
            _ => {}
        }
    }
    if manager.is_none() && accounts.is_empty() && serves::<ManagedCluster>(cluster).await? {
        return Err(refused(format!("{label} is a hub, and nothing tells that {} hosts it", hosting.label())));
    }
    let mut configurations = Vec::new();
    for configuration in installation::webhook_configurations() {
        let Some(live) = apply::read(cluster, &configuration).await? else { continue };
        if installation::asks_services_of(&live, &space) {
            let uid = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
            configurations.push((configuration, uid));
        }
    }
    let agent = agent.map_err(|error| cluster.explain("read the operator's Deployment", error))?;
    Ok(OnHub { space, accounts, configurations, beside_agent: agent.is_some() })
}

/// An account for an operator elsewhere.
struct Account {
    name: String,
    uid: String,
    /// The UID of the cluster where that operator is, as noted.
    hosted_by: Option<String>,
}

/// The namespaces of ours that may be those of accounts.
async fn accounts(cluster: &Cluster) -> Result<Vec<Account>, Failure> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let ours = ListParams::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
    let found = api.list_metadata(&ours).await;
    let found = found.map_err(|error| cluster.explain("list namespaces", error))?.items.into_iter();
    let found = found.map(|found| found.metadata).filter(is_ours);
    Ok(found
        .map(|found| Account {
            hosted_by: rules::hosting_uid(&found).map(str::to_owned),
            name: found.name.unwrap_or_default(),
            uid: found.uid.unwrap_or_default(),
        })
        .collect())
}

impl OnHub {
    /// Whether there is anything.
    pub(super) fn is_there(&self) -> bool {
        !self.accounts.is_empty() || !self.configurations.is_empty()
    }

    /// The rights to delete the accounts, whose names nobody knows before.
    pub(super) fn rights(&self) -> Vec<Right> {
        self.accounts.iter().map(|(name, _)| Right::new("delete", "", "namespaces").on(name)).collect()
    }

    /// Takes away what the operator leaves when the ClusterManager is gone, and its account.
    ///
    /// # Errors
    /// [`ocm_core::Reason::TimedOut`], or the failure of a request.
    pub(super) async fn remove(
        &self,
        cluster: &Cluster,
        leaving: Leaving,
        narrator: &dyn Narrator,
        each: &dyn Fn(&Applied),
    ) -> Result<(), Failure> {
        let dry_run = leaving.dry_run;
        narrator.tell(Event::now(format!("{} what the operator leaves on the hub", leaving.verb())));
        for (configuration, uid) in &self.configurations {
            each(&remove::known(cluster, configuration, uid, Dependents::Usual, dry_run).await?);
        }
        for (name, uid) in &self.accounts {
            // Its rights belong to its namespace.
            each(&remove::known(cluster, &namespace(name), uid, Dependents::Usual, dry_run).await?);
        }
        if dry_run != DryRun::No {
            return Ok(());
        }
        for (name, _) in &self.accounts {
            let doing = format!("waiting until namespace {name:?} is gone");
            namespace_gone(cluster, name, &doing, Instant::now() + leaving.timeout, narrator)
                .await
                .map_err(|failure| failure.hint(Remedy::RunAgain))?;
        }
        Ok(())
    }
}
