//! The command that a cluster joins with.

use std::fmt;

use crate::certificate;
use crate::pin::Pin;
use crate::shell::shell;

/// What stands in it for the name that the cluster is to get.
pub const NAME_TO_FILL_IN: &str = "CLUSTER_NAME";

/// What clusteradm writes there, for scripts that look for it.
const CLUSTERADM_NAME: &str = "<cluster_name>";

/// What a cluster joins with, apart from its name.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinCommand {
    /// The token.
    pub token: String,
    /// The hub's address as agents dial it.
    pub server: String,
    /// Keys of the authorities that vouch for the hub there; none: every system trusts it anyway.
    pub pins: Vec<Pin>,
    /// The authority's certificate, where a joiner could not learn it from the hub.
    pub ca: Vec<Vec<u8>>,
}

impl fmt::Debug for JoinCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinCommand").field("server", &self.server).field("pins", &self.pins).finish_non_exhaustive()
    }
}

impl JoinCommand {
    /// The line that joins a cluster.
    pub fn join_line(&self) -> String {
        let mut line = format!(
            "kubectl ocm join {NAME_TO_FILL_IN} --hub-token {} --hub-apiserver {}",
            shell(&self.token),
            shell(&self.server)
        );
        for pin in &self.pins {
            line += &format!(" --hub-ca-pin {pin}");
        }
        for certificate in &self.ca {
            line += &format!(" --hub-ca-data {}", certificate::to_base64(certificate));
        }
        line
    }

    /// The line in clusteradm's format, for scripts that take it apart.
    pub fn clusteradm_line(&self) -> String {
        format!(
            "clusteradm join --hub-token {} --hub-apiserver {} --cluster-name {CLUSTERADM_NAME}",
            self.token, self.server
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let join_command = JoinCommand {
            token: "a.b".to_owned(),
            server: "https://h:6443".to_owned(),
            pins: Vec::new(),
            ca: Vec::new(),
        };
        assert_eq!(
            join_command.join_line(),
            "kubectl ocm join CLUSTER_NAME --hub-token a.b --hub-apiserver https://h:6443"
        );
        assert_eq!(
            join_command.clusteradm_line(),
            "clusteradm join --hub-token a.b --hub-apiserver https://h:6443 --cluster-name <cluster_name>"
        );
        let certificate = rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap().cert.der().to_vec();
        let pin = Pin::of(&certificate).unwrap();
        let full = JoinCommand { pins: vec![pin], ca: vec![certificate.clone()], ..join_command };
        assert!(
            full.join_line()
                .ends_with(&format!(" --hub-ca-pin {pin} --hub-ca-data {}", certificate::to_base64(&certificate)))
        );
        assert!(!format!("{full:?}").contains("a.b"));
    }
}
