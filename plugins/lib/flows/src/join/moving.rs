//! A cluster that has joined goes from two agents to one, or back. The operator makes the agents of the new mode and deletes the
//! Deployments of the former ones. These leave their leader leases, which would hold up whoever comes after them on the way back:
//! those of two agents are held by pods that are gone, because the operator takes the account's rights away before the pods.

use ocm_api::operator::KlusterletMode;
use ocm_core::agent_lease::renewed;
use ocm_core::join::lease::{self, StaleLease};
use ocm_core::join::membership::{moves_from, renamed};
use ocm_core::join::progress::Former;
use ocm_core::{DryRun, Event, Failure, Narrator, Outcome};
use ocm_kube::access::Right;
use ocm_kube::{Cluster, remove};

use super::session::HubSession;
use super::survey::Survey;
use crate::observe::managed::{self as observe, Names, OtherAgents};
use crate::observe::registration;

/// A move, and where it starts.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    /// The mode that the cluster leaves; none: its Klusterlet names the new one already, and of the former agents something is
    /// there.
    pub(super) from: Option<KlusterletMode>,
    /// The mode that it gets.
    pub(super) to: KlusterletMode,
    /// The name under which the new agent registers anew; none: it goes on with the certificate of the former one.
    pub(super) agent: Option<String>,
    /// What the hub has heard of the former agents.
    pub(super) former: Former,
    names: Names,
}

impl Moving {
    /// The move of a cluster that has joined to the mode that was typed; none where none was, or the cluster is in it with all
    /// that belongs to it.
    ///
    /// # Errors
    /// A refusal where its agents run on another cluster; the failure of a request.
    pub(super) async fn of(
        managed: &Cluster,
        hub: &HubSession,
        survey: &Survey,
        (name, wanted): (&str, Option<&KlusterletMode>),
        label: &str,
    ) -> Result<Option<Self>, Failure> {
        let from = moves_from(&survey.found, name, wanted, label)?;
        // In the mode that it keeps it may still have to register, after a run that nobody accepted.
        let own = survey.found.of_cluster(name).first().map(|klusterlet| klusterlet.mode());
        let agent = renamed(&survey.found, name, wanted.or(own.as_ref()), &survey.agent);
        let to = wanted.or(own.as_ref().filter(|_| agent.is_some()));
        let Some(to) = to.filter(|to| !to.is_hosted()) else { return Ok(None) };
        if from.is_none() && agent.is_none() {
            let OtherAgents { running, leases } = observe::agents_of_other_mode(managed, &survey.names, to).await?;
            if running.is_empty() && leases.is_empty() {
                return Ok(None);
            }
        }
        let lease = registration::observe(hub.client(), name).await.lease;
        let former = Former { renewed: lease.ok().flatten().as_ref().and_then(renewed) };
        Ok(Some(Self { from, to: to.clone(), agent, former, names: survey.names.clone() }))
    }

    /// What taking away what the former agents leave needs.
    pub(super) fn rights(&self) -> [Right; 1] {
        [Right::new("delete", "coordination.k8s.io", "leases").within(&self.names.namespace)]
    }

    /// What runs of the former agents.
    ///
    /// # Errors
    /// The failure of a request.
    pub(super) async fn running(&self, managed: &Cluster) -> Result<Vec<String>, Failure> {
        Ok(observe::agents_of_other_mode(managed, &self.names, &self.to).await?.running)
    }

    /// Deletes the leader leases of the former agents, if none of these runs any more. One that somebody has taken since it was
    /// looked at stays.
    ///
    /// # Errors
    /// The failure of a request.
    pub(super) async fn tidy(&self, managed: &Cluster, narrator: &dyn Narrator) -> Result<(), Failure> {
        let OtherAgents { running, leases } = observe::agents_of_other_mode(managed, &self.names, &self.to).await?;
        if !running.is_empty() {
            narrator.tell(Event::note(
                "the operator ends the former agents; once they have ended, the same command takes away what they leave",
            ));
            return Ok(());
        }
        for StaleLease { namespace, name, pod: _, uid, resource_version } in leases {
            let pin = (uid.as_deref().unwrap_or_default(), resource_version.as_deref().unwrap_or_default());
            let deleted = remove::pinned(managed, &lease::manifest(&namespace, name), pin, DryRun::No).await?;
            if deleted.outcome == Outcome::Deleted {
                narrator.tell(Event::done(format!("deleted leader lease {namespace}/{name} of the former agents")));
            }
        }
        Ok(())
    }
}
