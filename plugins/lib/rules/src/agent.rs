//! What agents write: to their own ManagedCluster (rules M4 and M5) and to the ManifestWorks for it (M7).

use crate::cluster::{AgentSettings, Cluster, Member, agent_change};
use crate::identity::{Identity, Requester};
use crate::{Code, Violation, glob};

/// The subresource that agents report in.
const STATUS: &str = "status";
/// What admission calls a write to an object that is there.
const UPDATE: &str = "UPDATE";

/// What agents may write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// What they may change of their own cluster.
    pub changes: AgentSettings,
    /// Patterns of the names of clusters that register by gRPC: the only ManagedClusters that the hub's gRPC server updates.
    pub grpc_clusters: Vec<String>,
}

/// Who writes as an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer<'a> {
    /// An agent of this cluster, or of one of its add-ons.
    Agent(&'a str),
    /// Some agent behind the hub's gRPC server, which does not name it.
    GrpcServer,
    /// Somebody with a name of the hub's that is no agent's, or with the groups of several clusters' agents.
    Unclear,
}

impl<'a> Writer<'a> {
    /// As whom a requester (`userInfo` of an admission review) writes; none for whoever is no agent. By the name: who only
    /// impersonates an agent or the gRPC server is bound by what binds them.
    pub fn of<S: AsRef<str>>(requester: &Requester<'a, S>) -> Option<Self> {
        let identity = requester.identity();
        if identity == Identity::GrpcServer {
            return Some(Self::GrpcServer);
        }
        if let Some(cluster) = identity.cluster() {
            return Some(Self::Agent(cluster));
        }
        // Agents with an AWS identity are named as their cluster alone; whoever has the rights of several is no agent.
        let mut clusters = requester.clusters();
        match clusters.next() {
            Some(cluster) if clusters.all(|other| other == cluster) => Some(Self::Agent(cluster)),
            Some(_) => Some(Self::Unclear),
            None => (identity == Identity::Unclear).then_some(Self::Unclear),
        }
    }

    /// Whether this one may update the ManagedCluster of that name.
    pub fn may_write(&self, cluster: &str, settings: &Settings) -> bool {
        match self {
            Self::Agent(own) => *own == cluster,
            Self::GrpcServer => glob::any(&settings.grpc_clusters, cluster),
            Self::Unclear => false,
        }
    }

    /// Whether this one may take part in the works of a cluster, for which their namespace is named. The gRPC server finds a
    /// work in the namespace of the cluster whose agent speaks, and asks the hub's authorization whether that agent may update
    /// it (Open Cluster Management 1.2, `pkg/server/services/work`); which agent it was is not in the write.
    fn may_write_works(&self, namespace: &str) -> bool {
        match self {
            Self::Agent(own) => *own == namespace,
            Self::GrpcServer => true,
            Self::Unclear => false,
        }
    }

    /// That this one may not write to such a place, which `field` names.
    fn elsewhere(&self, place: &str, field: &'static str) -> Violation {
        let detail = match self {
            Self::GrpcServer => {
                "the hub's gRPC server updates only clusters that the setting grpcClusters names".to_owned()
            }
            Self::Agent(_) | Self::Unclear => format!("an agent may not write to {place}"),
        };
        Violation::new(Code::OtherCluster, field, detail)
    }
}

/// Why two objects are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomparable {
    /// Not both are there.
    Missing,
    /// One of them cannot be read.
    Unreadable,
}

/// An update of a ManagedCluster.
#[derive(Debug)]
pub struct ClusterWrite<'a, S> {
    /// Who writes.
    pub writer: Writer<'a>,
    /// The subresource that is written: `subResource` of an admission review.
    pub subresource: Option<&'a str>,
    /// The cluster before, of `oldObject`; none where nobody knows it.
    pub before: Option<&'a Cluster<'a, S>>,
    /// The cluster after, of `object`; none where nobody knows it.
    pub after: Option<&'a Cluster<'a, S>>,
}

/// Judges an update of a ManagedCluster (M4, M5). `beyond` tells which members differ in what the facts leave out of both
/// objects; it is called only where all else is right, because whole objects may be large. None: no rule is about it, for what
/// an agent reports of its cluster is its own.
pub fn cluster_write<S: AsRef<str>>(
    write: &ClusterWrite<'_, S>,
    settings: &Settings,
    beyond: impl FnOnce() -> Result<Vec<Member>, Incomparable>,
) -> Option<Vec<Violation>> {
    let missing = |what: &str| Some(vec![Violation::new(Code::PreviousMissing, "", what)]);
    let Some(after) = write.after else { return missing("there is no cluster to compare") };
    if !write.writer.may_write(after.name, settings) {
        return Some(vec![write.writer.elsewhere("another cluster", "metadata.name")]);
    }
    if write.subresource == Some(STATUS) {
        return None;
    }
    let Some(before) = write.before else { return missing("there is no earlier cluster to compare with") };
    match beyond() {
        Ok(beyond) => Some(agent_change(before, after, &beyond, &settings.changes)),
        Err(Incomparable::Missing) => missing("the whole objects are not there to compare"),
        Err(Incomparable::Unreadable) => missing("the objects cannot be read"),
    }
}

/// A write to a ManifestWork: the hub's word to a cluster, of which the agent only says that it is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkWrite<'a> {
    /// Who writes.
    pub writer: Writer<'a>,
    /// The namespace of the work, which is named as the cluster that it is for: `namespace` of an admission review.
    pub namespace: Option<&'a str>,
    /// The subresource that is written: `subResource` of an admission review.
    pub subresource: Option<&'a str>,
    /// `operation` of an admission review: `CREATE`, `UPDATE` or `DELETE`.
    pub operation: &'a str,
}

/// Judges a write to a ManifestWork (M7). `is_same` tells whether a work is the same as before but for finalizers, status and
/// what the API server writes; it is called only where all else is right, because works may be large. None: no rule is about
/// it, for what an agent reports of a work is its own.
pub fn work_write(
    write: &WorkWrite<'_>,
    is_same: impl FnOnce() -> Result<bool, Incomparable>,
) -> Option<Vec<Violation>> {
    if !write.namespace.is_some_and(|namespace| write.writer.may_write_works(namespace)) {
        return Some(vec![write.writer.elsewhere("another cluster's works", "metadata.namespace")]);
    }
    if write.subresource == Some(STATUS) {
        return None;
    }
    let compared = if write.operation == UPDATE { is_same() } else { Err(Incomparable::Missing) };
    let detail = match compared {
        Ok(true) => return Some(Vec::new()),
        Ok(false) | Err(Incomparable::Unreadable) => "an agent may only change the finalizers of a work",
        Err(Incomparable::Missing) => "an agent may not make or remove works",
    };
    Some(vec![Violation::new(Code::ManifestWork, "", detail)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{GRPC_SERVER_USER, MANAGED_CLUSTERS_GROUP};

    const CLUSTER: Cluster<'_, &str> = Cluster {
        name: "c1",
        labels: &[],
        annotations: &[],
        finalizers: &[],
        owners: &[],
        taints: &[],
        lease_duration_seconds: Some(60),
        accepted: true,
        client_configs: &[],
        other_fields: "",
    };

    fn writer<'a>(user: &'a str, groups: &'a [&'a str]) -> Option<Writer<'a>> {
        Writer::of(&Requester { user, uid: None, groups, credential_ids: &[] })
    }

    /// Codes, fields and details.
    fn told(found: Option<&[Violation]>) -> Option<Vec<(Code, &'static str, &str)>> {
        found.map(|found| found.iter().map(|one| (one.code, one.field, one.detail.as_str())).collect())
    }

    #[test]
    fn names_and_groups_say_as_whom_somebody_writes() {
        let cases: &[(&str, &[&str], Option<Writer<'_>>)] = &[
            ("system:open-cluster-management:c1:a1", &[], Some(Writer::Agent("c1"))),
            ("system:open-cluster-management:cluster:a1", &[], Some(Writer::Agent("cluster"))),
            ("system:open-cluster-management:cluster:c1:addon:x:agent:y", &[], Some(Writer::Agent("c1"))),
            // The name counts before groups do.
            ("system:open-cluster-management:c1:a1", &["open-cluster-management:c2"], Some(Writer::Agent("c1"))),
            ("c1", &["open-cluster-management:c1", "system:authenticated"], Some(Writer::Agent("c1"))),
            ("eve", &["system:open-cluster-management:c1", MANAGED_CLUSTERS_GROUP], Some(Writer::Agent("c1"))),
            ("eve", &["system:open-cluster-management:c1", "open-cluster-management:c1"], Some(Writer::Agent("c1"))),
            ("eve", &["system:open-cluster-management:c1", "open-cluster-management:c2"], Some(Writer::Unclear)),
            ("system:open-cluster-management:c1:a1:b", &[], Some(Writer::Unclear)),
            ("system:open-cluster-management:c1", &["open-cluster-management:c1"], Some(Writer::Agent("c1"))),
            (GRPC_SERVER_USER, &["open-cluster-management:c1"], Some(Writer::GrpcServer)),
            ("alice", &["system:masters"], None),
            ("alice", &[MANAGED_CLUSTERS_GROUP], None),
            ("system:serviceaccount:a:b", &[], None),
        ];
        for &(user, groups, expected) in cases {
            assert_eq!(writer(user, groups), expected, "{user} {groups:?}");
        }
    }

    #[test]
    fn agents_write_to_their_own_cluster_and_the_grpc_server_to_named_ones() {
        let settings = Settings { grpc_clusters: vec!["c1*".to_owned()], ..Settings::default() };
        for (writer, cluster, may) in [
            (Writer::Agent("c1"), "c1", true),
            (Writer::Agent("c1"), "c10", false),
            (Writer::Agent("c10"), "c1", false),
            (Writer::GrpcServer, "c10", true),
            (Writer::GrpcServer, "c2", false),
            (Writer::Unclear, "c1", false),
        ] {
            assert_eq!(writer.may_write(cluster, &settings), may, "{writer:?} {cluster}");
        }
        assert!(!Writer::GrpcServer.may_write("c1", &Settings::default()));
    }

    #[test]
    fn clusters_are_compared_where_the_writer_may_write() {
        let settings = Settings::default();
        let write = ClusterWrite {
            writer: Writer::Agent("c1"),
            subresource: None,
            before: Some(&CLUSTER),
            after: Some(&CLUSTER),
        };
        let same = || Ok(Vec::new());
        assert_eq!(cluster_write(&write, &settings, same), Some(Vec::new()));
        let found = cluster_write(&write, &settings, || Ok(vec![Member::Taints]));
        let taints = (Code::Taints, "spec.taints", "an agent may not change the taints of its cluster");
        assert_eq!(told(found.as_deref()), Some(vec![taints]));
        for (why, detail) in [
            (Incomparable::Missing, "the whole objects are not there to compare"),
            (Incomparable::Unreadable, "the objects cannot be read"),
        ] {
            let found = cluster_write(&write, &settings, || Err(why));
            assert_eq!(told(found.as_deref()), Some(vec![(Code::PreviousMissing, "", detail)]));
        }
        let scale = ClusterWrite { subresource: Some("scale"), ..write };
        let found = cluster_write(&scale, &settings, || Ok(vec![Member::Taints]));
        assert_eq!(told(found.as_deref()), Some(vec![taints]), "only the status is the agent's own");
        // What follows needs no whole objects.
        let unread = || -> Result<Vec<Member>, Incomparable> { panic!("the objects are read") };
        let of = |write: ClusterWrite<'_, &str>| cluster_write(&write, &settings, unread);
        assert_eq!(of(ClusterWrite { subresource: Some(STATUS), before: None, ..write }), None);
        let found = of(ClusterWrite { before: None, ..write });
        let missing = (Code::PreviousMissing, "", "there is no earlier cluster to compare with");
        assert_eq!(told(found.as_deref()), Some(vec![missing]));
        let found = of(ClusterWrite { after: None, ..write });
        let missing = (Code::PreviousMissing, "", "there is no cluster to compare");
        assert_eq!(told(found.as_deref()), Some(vec![missing]));
        for subresource in [None, Some(STATUS)] {
            let found = of(ClusterWrite { writer: Writer::Unclear, subresource, ..write });
            let other = (Code::OtherCluster, "metadata.name", "an agent may not write to another cluster");
            assert_eq!(told(found.as_deref()), Some(vec![other]));
        }
        let found = of(ClusterWrite { writer: Writer::GrpcServer, ..write });
        let detail = "the hub's gRPC server updates only clusters that the setting grpcClusters names";
        assert_eq!(told(found.as_deref()), Some(vec![(Code::OtherCluster, "metadata.name", detail)]));
    }

    #[test]
    fn of_works_only_finalizers_change() {
        let agent =
            WorkWrite { writer: Writer::Agent("c1"), namespace: Some("c1"), subresource: None, operation: UPDATE };
        let changed = "an agent may only change the finalizers of a work";
        let made = "an agent may not make or remove works";
        // For whose agent the gRPC server writes is not in the write, and it changes no more than an agent does.
        let server = WorkWrite { writer: Writer::GrpcServer, ..agent };
        for write in [agent, server] {
            assert_eq!(work_write(&write, || Ok(true)), Some(Vec::new()));
            for (compared, detail) in
                [(Ok(false), changed), (Err(Incomparable::Unreadable), changed), (Err(Incomparable::Missing), made)]
            {
                let found = work_write(&write, || compared);
                assert_eq!(told(found.as_deref()), Some(vec![(Code::ManifestWork, "", detail)]));
            }
            let scale = WorkWrite { subresource: Some("scale"), ..write };
            let found = work_write(&scale, || Ok(false));
            assert_eq!(told(found.as_deref()), Some(vec![(Code::ManifestWork, "", changed)]));
        }
        // What follows needs no whole objects.
        let unread = || -> Result<bool, Incomparable> { panic!("the objects are read") };
        let of = |write: WorkWrite<'_>| work_write(&write, unread);
        for write in [agent, server] {
            for operation in ["CREATE", "DELETE"] {
                let found = of(WorkWrite { operation, ..write });
                assert_eq!(told(found.as_deref()), Some(vec![(Code::ManifestWork, "", made)]));
            }
            assert_eq!(of(WorkWrite { subresource: Some(STATUS), ..write }), None);
        }
        let unclear = WorkWrite { writer: Writer::Unclear, ..agent };
        let strangers =
            [WorkWrite { namespace: None, ..agent }, WorkWrite { namespace: Some("c10"), ..agent }, unclear];
        for write in strangers {
            let found = of(WorkWrite { subresource: Some(STATUS), ..write });
            let other = (Code::OtherCluster, "metadata.namespace", "an agent may not write to another cluster's works");
            assert_eq!(told(found.as_deref()), Some(vec![other]));
        }
    }
}
