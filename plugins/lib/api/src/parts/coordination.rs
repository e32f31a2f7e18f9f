//! Leases: who leads, and when an agent was heard of.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

part_object! {
    /// A lease.
    pub struct Lease {
        /// What it says; none where nobody has taken it yet.
        "spec" => spec: Option<LeaseSpec>,
    }
    group "coordination.k8s.io", version "v1", plural "leases", scope NamespaceResourceScope
}

part! {
    /// Who holds a lease, and for how long.
    pub struct LeaseSpec {
        /// Who holds it.
        "holderIdentity" => holder_identity: Option<String>,
        /// How long it stands after it was renewed.
        "leaseDurationSeconds" => lease_duration_seconds: Option<i32>,
        /// When it was renewed last, by the clock of its holder.
        "renewTime" => renew_time: Option<MicroTime>,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1 as whole;
    use serde_json::json;

    use super::super::tests::{both, refused};
    use super::*;

    #[test]
    fn of_a_lease_the_same_is_read() {
        let (part, whole): (Lease, whole::Lease) = both(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "managed-cluster-lease", "namespace": "c1", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"apiVersion": "coordination.k8s.io/v1",
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:renewTime": {}}}, "manager": "registration",
                    "operation": "Update", "time": "2026-01-01T00:05:00Z"}]},
            "spec": {"acquireTime": "2026-01-01T00:00:01.000000Z", "holderIdentity": "klusterlet-agent-7d_1f",
                "leaseDurationSeconds": 137, "leaseTransitions": 2, "renewTime": "2026-01-01T00:05:00.123456Z"},
        }));
        assert_eq!(part.metadata, whole.metadata);
        let (part, whole) = (part.spec.unwrap(), whole.spec.unwrap());
        assert_eq!(part.holder_identity, whole.holder_identity);
        assert_eq!(part.lease_duration_seconds, whole.lease_duration_seconds);
        assert!(part.renew_time.is_some());
        assert_eq!(part.renew_time, whole.renew_time);
        let (part, _): (Lease, whole::Lease) = both(json!({"metadata": {"name": "l"}}));
        assert_eq!((part.metadata.name.as_deref(), part.spec), (Some("l"), None));
        for wrong in [
            json!({"spec": {"renewTime": "soon"}}),
            json!({"spec": {"leaseDurationSeconds": "60"}}),
            json!({"spec": {"leaseDurationSeconds": 1.5}}),
            json!({"spec": {"holderIdentity": 1}}),
            json!({"metadata": {"creationTimestamp": 1}}),
            json!({"apiVersion": "coordination.k8s.io/v1beta1"}),
            json!([]),
        ] {
            refused::<Lease, whole::Lease>(wrong);
        }
    }
}
