//! From the clusters of a fleet file to a client of each.

use std::path::Path;
use std::sync::Arc;

use ocm_core::fleet::{self as file, Access, Address, Hub};
use ocm_core::{Failure, Narrator, Role};
use ocm_kube::{Cluster, Connection, connect};

use super::request::{Fleet, Member};
use crate::hub::AddressOptions;

/// How the clusters of a file are reached.
pub struct Reach<'a> {
    /// The directory of the file: kubeconfigs are looked for there.
    pub folder: &'a Path,
    /// What the file does not say: the kubeconfig of clusters that have none of their own, and how long a request may take.
    pub plain: &'a Connection,
    /// Who hears of it.
    pub narrator: Arc<dyn Narrator>,
}

impl Reach<'_> {
    /// All of them.
    ///
    /// # Errors
    /// A context that is not there is a mistake of the file: then nothing is done.
    pub async fn fleet(&self, fleet: file::Fleet) -> Result<Fleet, Failure> {
        let file::Fleet { hub, members } = fleet;
        let cluster = self.hub(&hub).await?;
        let mut connected = Vec::new();
        for spec in members {
            let agents = self.agents(&spec).await?;
            let guest = match &spec.managed {
                Some(managed) => Some(self.one(managed, Role::Managed, &spec.settings.name, Vec::new()).await?),
                None => None,
            };
            connected.push(Member { spec, agents, guest });
        }
        let Hub { access: _, address: Address { server, internal, ca, unverified }, install } = hub;
        let address = AddressOptions { server, internal, ca, unverified };
        Ok(Fleet { hub: cluster, address, install, members: connected })
    }

    /// The hub.
    ///
    /// # Errors
    /// As of all of them.
    pub async fn hub(&self, hub: &Hub) -> Result<Cluster, Failure> {
        // What is sent to a hub that nobody verifies, anybody may hear: the CA that the file gives verifies it.
        self.one(&hub.access, Role::Hub, "the hub", hub.address.ca.clone()).await
    }

    /// The cluster on which the agents of one run.
    ///
    /// # Errors
    /// As of all of them.
    pub async fn agents(&self, member: &file::Member) -> Result<Cluster, Failure> {
        self.one(&member.access, Role::Target, &member.settings.name, Vec::new()).await
    }

    async fn one(&self, access: &Access, role: Role, who: &str, authorities: Vec<Vec<u8>>) -> Result<Cluster, Failure> {
        let connection = Connection { authorities, ..self.connection(access, role) };
        connect(&connection, self.narrator.clone()).await.map_err(|failure| {
            failure.context(format!("{who} of the fleet file cannot be reached; nothing was changed"))
        })
    }

    /// A kubeconfig that the file names is looked for beside it.
    fn connection(&self, access: &Access, role: Role) -> Connection {
        let Access { kubeconfig, context, act_as, as_groups } = access.clone();
        Connection {
            kubeconfig: kubeconfig.map(|path| self.folder.join(path)).or_else(|| self.plain.kubeconfig.clone()),
            context,
            act_as,
            as_groups,
            request_timeout: self.plain.request_timeout,
            role,
            ..Connection::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use ocm_core::Silent;

    use super::*;

    #[test]
    fn kubeconfigs_are_looked_for_beside_the_file() {
        let plain = Connection { kubeconfig: Some("all.yaml".into()), ..Connection::default() };
        let reach = Reach { folder: Path::new("fleets"), plain: &plain, narrator: Arc::new(Silent) };
        let of = |kubeconfig: Option<&str>| {
            let access = Access { kubeconfig: kubeconfig.map(str::to_owned), ..Access::default() };
            reach.connection(&access, Role::Hub).kubeconfig
        };
        assert_eq!(of(Some("c1.yaml")), Some("fleets/c1.yaml".into()));
        assert_eq!(of(Some("/etc/c1.yaml")), Some("/etc/c1.yaml".into()));
        assert_eq!(of(None), Some("all.yaml".into()));
    }
}
