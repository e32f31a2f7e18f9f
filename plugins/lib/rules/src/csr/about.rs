//! Which cluster a certificate request is about.

use super::facts::{API_SIGNER, Asked, Csr, GRPC_SIGNER, texts};
use super::field::{LABELS, REQUEST};
use super::violations::{addon_label_violation, no_addon_label_violation};
use crate::code::Quoted;
use crate::identity::{Identity, MANAGED_CLUSTERS_GROUP, PREFIX};
use crate::{Code, Violation};

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    /// The certificate of a cluster's agent.
    Agent {
        /// The cluster.
        cluster: &'a str,
        /// The agent's own name.
        agent: &'a str,
    },
    /// The certificate of an add-on's agent.
    Addon {
        /// The cluster.
        cluster: &'a str,
        /// The add-on.
        addon: &'a str,
    },
}

impl<'a> About<'a> {
    /// The cluster.
    pub fn cluster(self) -> &'a str {
        match self {
            Self::Agent { cluster, .. } | Self::Addon { cluster, .. } => cluster,
        }
    }
}

/// Which cluster a request is about, by its common name, with which the label must agree; of an add-on with a signer or names of
/// its own, by its labels. None if the request has nothing to do with the hub.
///
/// # Errors
/// Where that is not clear: nobody may go on with such a request.
pub fn about<'a, S: AsRef<str>>(csr: &Csr<'a, S>) -> Result<Option<About<'a>>, Violation> {
    if !csr.concerns_hub() {
        return Ok(None);
    }
    let content = csr.content.map_err(|unreadable| unreadable.violation())?;
    if csr.own_names().is_some() || (csr.is_addons() && csr.has_own_signer()) {
        return by_labels(csr).map(Some);
    }
    let [name] = content.common_names else { return Err(content.common_names_violation()) };
    let name = name.as_ref();
    let about = match Identity::of(name) {
        Identity::Agent { cluster, agent } => About::Agent { cluster, agent },
        Identity::AddonAgent { cluster, addon, .. } => About::Addon { cluster, addon },
        _ => {
            let detail = format!("common name {} is no agent's", Quoted(name));
            return Err(Violation::new(Code::CommonName, REQUEST, detail));
        }
    };
    if csr.cluster_label != Some(about.cluster()) {
        return Err(csr.cluster_label_violation());
    }
    match (about, csr.addon_label) {
        (About::Agent { .. }, Some(label)) => Err(addon_label_violation(label)),
        (About::Addon { addon, .. }, label) if label != Some(addon) => {
            let detail = format!("the label names the add-on {}", Quoted(label.unwrap_or_default()));
            Err(Violation::new(Code::AddonLabel, LABELS, detail))
        }
        _ => Ok(Some(about)),
    }
}

impl<'a, S: AsRef<str>> Asked<'a, S> {
    /// The cluster whose agent a request is for, where its one common name, its groups and `label` ([`CLUSTER_NAME`]) all say the
    /// same, and it can be read. Others read a request by any of these. Unlike [`about`], it does not ask for the label of an
    /// add-on: a request that names an agent is judged as one with it, too.
    ///
    /// [`CLUSTER_NAME`]: super::CLUSTER_NAME
    pub fn clearly_of(&self, label: Option<&str>) -> Option<&'a str> {
        let [name] = self.common_names else { return None };
        let Identity::Agent { cluster, .. } = Identity::of(name.as_ref()) else { return None };
        let is_own = |group: &str| group == MANAGED_CLUSTERS_GROUP || group.strip_prefix(PREFIX) == Some(cluster);
        let is_clear = self.is_readable && label == Some(cluster) && texts(self.organizations).all(is_own);
        is_clear.then_some(cluster)
    }

    /// Whether the agent of `cluster` registers with it: whatever else is called so, by its label for instance, gives nobody a
    /// certificate of the hub, or is another's.
    pub fn registers(&self, label: Option<&str>, cluster: &str) -> bool {
        matches!(self.signer, API_SIGNER | GRPC_SIGNER)
            && !self.is_by_agent()
            && self.clearly_of(label) == Some(cluster)
    }
}

/// What the labels say, unless a common name is that of another cluster's agent.
fn by_labels<'a, S: AsRef<str>>(csr: &Csr<'a, S>) -> Result<About<'a>, Violation> {
    let is_anothers = |name: &str, cluster: &str| Identity::of(name).cluster().is_some_and(|of| of != cluster);
    match (csr.cluster_label, csr.addon_label) {
        (None | Some(""), _) => Err(csr.cluster_label_violation()),
        (Some(cluster), _) if csr.common_names().any(|name| is_anothers(name, cluster)) => {
            Err(csr.cluster_label_violation())
        }
        (_, None | Some("")) => Err(no_addon_label_violation()),
        (Some(cluster), Some(addon)) => Ok(About::Addon { cluster, addon }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Unreadable;
    use super::super::samples::{ADDON, CLUSTER_PROXY, CLUSTER_PROXY_OF_HUB, FIRST, OTHER, RENEWAL, named};
    use super::*;

    #[test]
    fn a_request_is_about_the_cluster_that_its_common_name_and_its_label_say() {
        let agent = Ok(Some(About::Agent { cluster: "c1", agent: "a1" }));
        assert_eq!((about(&FIRST), about(&RENEWAL)), (agent.clone(), agent));
        assert_eq!(about(&ADDON), Ok(Some(About::Addon { cluster: "c1", addon: "x" })));
        assert_eq!(about(&FIRST).map(|about| about.map(About::cluster)), Ok(Some("c1")));
        let code = |request: Csr<'static, &str>| about(&request).map_err(|violation| violation.code);
        for (request, expected) in [
            (Csr { cluster_label: None, ..FIRST }, Code::ClusterLabel),
            (Csr { cluster_label: Some("c2"), ..FIRST }, Code::ClusterLabel),
            (Csr { cluster_label: None, ..ADDON }, Code::ClusterLabel),
            (Csr { addon_label: Some("x"), ..FIRST }, Code::AddonLabel),
            (Csr { addon_label: None, ..ADDON }, Code::AddonLabel),
            (Csr { addon_label: Some("other"), ..ADDON }, Code::AddonLabel),
            (named(&[]), Code::CommonNames),
            (named(&["system:open-cluster-management:c1:a1", "bob"]), Code::CommonNames),
            (named(&["bob"]), Code::CommonName),
            (named(&["system:open-cluster-management:c1"]), Code::CommonName),
            (Csr { content: Err(Unreadable::of("no PEM")), ..FIRST }, Code::Unreadable),
        ] {
            assert_eq!(code(request), Err(expected), "{request:?}");
        }
    }

    #[test]
    fn of_an_addon_with_a_signer_of_its_own_the_labels_tell() {
        let addon = |addon| Ok(Some(About::Addon { cluster: "c1", addon }));
        assert_eq!(about(&CLUSTER_PROXY), addon("cluster-proxy"));
        let signer = CLUSTER_PROXY.signer;
        assert_eq!(about(&Csr { signer, addon_label: Some("other"), ..ADDON }), addon("other"));
        let code = |request: Csr<'static, &str>| about(&request).map_err(|violation| violation.code);
        for (request, expected) in [
            (Csr { cluster_label: None, ..CLUSTER_PROXY }, Code::ClusterLabel),
            (Csr { cluster_label: Some(""), ..CLUSTER_PROXY }, Code::ClusterLabel),
            (Csr { cluster_label: Some("c2"), signer, ..ADDON }, Code::ClusterLabel),
            (Csr { addon_label: Some(""), ..CLUSTER_PROXY }, Code::AddonLabel),
            (Csr { addon_label: None, ..CLUSTER_PROXY }, Code::CommonName),
            (Csr { content: Err(Unreadable::of("no PEM")), ..CLUSTER_PROXY }, Code::Unreadable),
            // On the hub, such a name is no agent's.
            (Csr { signer: API_SIGNER, ..CLUSTER_PROXY }, Code::CommonName),
        ] {
            assert_eq!(code(request), Err(expected), "{request:?}");
        }
    }

    #[test]
    fn of_an_addon_with_names_of_its_own_the_labels_tell() {
        assert_eq!(about(&CLUSTER_PROXY_OF_HUB), Ok(Some(About::Addon { cluster: "c1", addon: "cluster-proxy" })));
        let code = |request: Csr<'static, &str>| about(&request).map_err(|violation| violation.code);
        for (request, expected) in [
            (Csr { cluster_label: None, ..CLUSTER_PROXY_OF_HUB }, Code::ClusterLabel),
            (Csr { cluster_label: Some(""), ..CLUSTER_PROXY_OF_HUB }, Code::ClusterLabel),
            // That cluster has the group itself.
            (Csr { cluster_label: Some("cluster-proxy"), ..CLUSTER_PROXY_OF_HUB }, Code::CommonName),
            (Csr { addon_label: None, ..CLUSTER_PROXY_OF_HUB }, Code::CommonName),
            (Csr { addon_label: Some("x"), ..CLUSTER_PROXY_OF_HUB }, Code::CommonName),
            (Csr { signer: GRPC_SIGNER, ..CLUSTER_PROXY_OF_HUB }, Code::CommonName),
        ] {
            assert_eq!(code(request), Err(expected), "{request:?}");
        }
    }

    #[test]
    fn requests_of_others_are_about_no_cluster() {
        assert_eq!(about(&OTHER), Ok(None));
        // Agents, and those who register clusters, have nothing else to ask for; nor do labels and groups of the hub.
        for unclear in [
            Csr { requester: FIRST.requester, ..OTHER },
            Csr { requester: RENEWAL.requester, ..OTHER },
            Csr { addon_label: Some("x"), ..OTHER },
            Csr { grpc_user: Some("bob"), ..OTHER },
        ] {
            assert!(about(&unclear).is_err(), "{unclear:?}");
        }
    }

    #[test]
    fn a_certificate_lets_somebody_in_who_had_no_rights_of_the_cluster() {
        let names = &["system:open-cluster-management:c1:a1"];
        let none: &[&str] = &[];
        let asked =
            Asked { signer: API_SIGNER, asked_by: "eve", is_readable: true, common_names: names, organizations: none };
        assert!(asked.lets_into("c1") && !asked.lets_into("c10"));
        for (asked_by, expected) in [
            ("system:open-cluster-management:c1:a1", false),
            ("system:open-cluster-management:cluster:c1:addon:x:agent:y", false),
            ("system:open-cluster-management:c2:a1", true),
            ("system:open-cluster-management:c1", true),
        ] {
            assert_eq!(Asked { asked_by, ..asked }.lets_into("c1"), expected, "{asked_by}");
        }
        let two = &["system:open-cluster-management:c2:a1", "system:open-cluster-management:c1:a1"];
        let by = |common_names, organizations| Asked { common_names, organizations, ..asked }.lets_into("c1");
        assert!(by(&["eve"], &["open-cluster-management:c1"]) && by(two, none));
        assert!(!by(&["eve"], &["devs"]) && !by(&[], none));
        assert!(Asked { is_readable: false, common_names: none, ..asked }.lets_into("c1"));
        assert!(!Asked { signer: "example.com/s", is_readable: false, ..asked }.lets_into("c1"));
    }

    #[test]
    fn a_cluster_registers_with_a_request_of_which_all_speaks_of_it_and_no_other() {
        let names = &["system:open-cluster-management:c1:a1"];
        let groups = &["system:open-cluster-management:c1", MANAGED_CLUSTERS_GROUP];
        let asked = Asked {
            signer: GRPC_SIGNER,
            asked_by: "eve",
            is_readable: true,
            common_names: names,
            organizations: groups,
        };
        let label = Some("c1");
        assert!(asked.registers(label, "c1") && !asked.registers(label, "c10") && !asked.registers(None, "c1"));
        assert!(!asked.registers(Some("c2"), "c1") && !asked.registers(Some("c2"), "c2"));
        for other in [
            Asked { is_readable: false, ..asked },
            Asked { common_names: &["system:open-cluster-management:c1:a1", "bob"], ..asked },
            Asked { common_names: &["system:open-cluster-management:cluster:c1:addon:x:agent:y"], ..asked },
            Asked { organizations: &["system:open-cluster-management:c10"], ..asked },
            Asked { organizations: &["open-cluster-management:c1"], ..asked },
            Asked { organizations: &["system:masters"], ..asked },
        ] {
            assert_eq!(other.clearly_of(label), None, "{other:?}");
            assert!(!other.registers(label, "c1"), "{other:?}");
        }
        for agent in [names[0], "system:open-cluster-management:cluster:c2:addon:x:agent:y"] {
            assert!(!Asked { asked_by: agent, ..asked }.registers(label, "c1"), "{agent}");
        }
        let elsewhere = Asked { signer: "example.com/own", ..asked };
        assert!(elsewhere.clearly_of(label) == label && !elsewhere.registers(label, "c1"));
    }

    #[test]
    fn what_cannot_be_read_is_the_hubs_unless_the_api_server_reads_other_names_or_its_certificate_is_no_identity_there()
    {
        let nothing = Unreadable::of("no PEM");
        let reads = |common_names: &'static [&'static str], organizations: &'static [&'static str]| Csr {
            content: Err(Unreadable { common_names, organizations, ..nothing }),
            ..OTHER
        };
        let code = |request: Csr<'static, &str>| about(&request).map_err(|violation| violation.code);
        let agents = reads(&["system:open-cluster-management:c1:a1"], &[]);
        for of_hub in [
            reads(&[], &[]),
            agents,
            reads(&["eva"], &["system:open-cluster-management:c1"]),
            reads(&["eva"], &["open-cluster-management:c1"]),
        ] {
            assert_eq!(code(of_hub), Err(Code::Unreadable), "{of_hub:?}");
        }
        for others in [
            reads(&["bob"], &["devs"]),
            reads(&["bob"], &[]),
            Csr { signer: "kubernetes.io/kubelet-serving", ..reads(&[], &[]) },
            Csr { signer: "kubernetes.io/kube-apiserver-client-kubelet", ..reads(&[], &[]) },
            Csr { signer: "example.com/s", ..reads(&[], &[]) },
            Csr { signer: "example.com/s", ..agents },
        ] {
            assert_eq!(code(others), Ok(None), "{others:?}");
        }
        // Its names are known, so that it counts for the cluster whose agent's name it asks for.
        assert!(agents.claims("c1") && agents.names_agent_of("c1") && !agents.claims("c2"));
    }
}
