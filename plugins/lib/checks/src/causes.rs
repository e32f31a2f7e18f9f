//! Why something does not work, by the words of kubelets, API servers, operators and agents. None: the words tell no more
//! than they say.

use ocm_api::names::{identity, namespaces};
use ocm_core::workload::{Lack, PodCause};

/// Whether words of an operator say that the API server denied a right to it, and not to somebody else.
pub(crate) fn lacks_right(message: &str, operator: &str) -> bool {
    let user = identity::service_account_user(namespaces::OPERATOR, operator);
    message.to_ascii_lowercase().contains(&format!("forbidden: user \"{user}\""))
}

/// The first row of which some words are all in a message.
fn first(message: &str, rows: &[(&[&str], &'static str)]) -> Option<&'static str> {
    let row = rows.iter().find(|(words, _)| words.iter().all(|word| message.contains(word)));
    row.map(|(_, cause)| *cause)
}

/// What an error of a connection to the hub means, and why it comes about: the words are Go's.
pub(crate) fn connection(message: &str) -> (&'static str, &'static str) {
    let has = |words: &str| message.contains(words);
    match () {
        () if has("proxyconnect") && has("x509") => {
            ("the proxy's certificate is not trusted", "the proxy's CA is not in the agent's kubeconfig")
        }
        () if has("proxyconnect") => ("the proxy cannot be reached", "the proxy is down, or its address is wrong"),
        () if has("Proxy Authentication Required") => {
            ("the proxy demands credentials", "the proxy's address in the kubeconfig has no user and password")
        }
        () if has("no such host") => ("the hub's name cannot be resolved", "the DNS of the agent's network lacks it"),
        () if has("connection refused") => {
            ("connection refused", "no API server listens at that address, as seen from the agent")
        }
        () if has("i/o timeout") || has("deadline exceeded") || has("no route to host") => {
            ("no answer", "a firewall, or an address that the agent's network does not reach")
        }
        () if has("certificate signed by unknown authority") => (
            "the hub's certificate is not signed by the agent's CA",
            "the CA in the agent's kubeconfig is not that of the address, or was replaced",
        ),
        () if has("x509: certificate is valid for") || has("doesn't contain any IP SANs") => {
            ("the hub's certificate is not valid for this hostname", "the certificate does not name the address")
        }
        () if has("expired or is not yet valid") => {
            ("a certificate is not valid now", "it has expired, or the clocks differ")
        }
        () if has("is forbidden: User") || has("is not allowed with") => (
            "the hub forbids it",
            "the hub's RBAC for this agent is missing: the cluster was denied, deleted or never accepted",
        ),
        () if has("Unauthorized") => (
            "the hub does not know the credential",
            "the token or the certificate has ended, was revoked, or is another hub's",
        ),
        // A bare phrase behind the URL is the answer of a proxy to CONNECT.
        () if message.trim_end().ends_with(": Forbidden") || message.trim_end().ends_with(": Filtered") => {
            ("a proxy refuses the connection", "the proxy does not allow CONNECT to the hub; this is not RBAC")
        }
        () => ("it failed", "the words of the operator say more"),
    }
}

/// Whether an error of a connection is that a name cannot be resolved.
pub(crate) fn is_unresolved(message: &str) -> bool {
    message.contains("no such host")
}

/// Why pods of a Deployment do not run.
pub(crate) fn pods(lack: &Lack) -> Option<&'static str> {
    const TAG: &str = "the image or its tag does not exist, the registry cannot be reached, or it wants credentials that the \
                       namespace lacks (Secret open-cluster-management-image-pull-credentials)";
    const NAME: &str = "the name of the image is empty or malformed: the image fields of the Klusterlet or the ClusterManager \
                        say what it is";
    const MEMORY: &str = "the container was killed, probably for want of memory: raise its limit";
    const NODES: &str = "no node takes the pod: set nodePlacement (node selector and tolerations), or make room";
    match lack.cause {
        Some(PodCause::Unschedulable) => Some(NODES),
        Some(PodCause::ImageName) => Some(NAME),
        Some(PodCause::ImagePull) => Some(TAG),
        Some(PodCause::NotCreated) => not_created(&lack.because),
        Some(PodCause::Killed) => Some(crash(lack).unwrap_or(MEMORY)),
        Some(PodCause::Crash | PodCause::Other) => crash(lack),
        None => crash(lack).or_else(|| not_created(&lack.because)),
    }
}

/// Why admission refuses pods: the condition of a ReplicaSet or Deployment has one reason for all of it, `FailedCreate`.
fn not_created(words: &str) -> Option<&'static str> {
    const SECURITY: &str = "PodSecurity or a SecurityContextConstraint refuses the pod: label the namespace, or grant the \
                            constraint to its service account";
    const QUOTA: &str = "a ResourceQuota of the namespace allows no more: raise it, or ask for less";
    first(
        words,
        &[
            (&["violates PodSecurity"], SECURITY),
            (&["security context constraint"], SECURITY),
            (&["exceeded quota"], QUOTA),
        ],
    )
}

/// Why a container does not start: the runtime's words, or the container's own.
fn crash(lack: &Lack) -> Option<&'static str> {
    const PROCESSOR: &str = "the image is for another processor than the node's: use a tag that is there for both";
    let mut texts = [Some(&lack.because), lack.log.as_ref()].into_iter().flatten();
    texts.find_map(|words| first(words, &[(&["exec format error"], PROCESSOR)]))
}

/// Why an operator could not apply its object.
pub(crate) fn operator(words: &str) -> Option<&'static str> {
    const HUB: &str = "in mode Hosted the operator needs Secret external-hub-kubeconfig, key kubeconfig, in the namespace of the \
                       ClusterManager's name, with an address that its pods can dial";
    const MANAGED: &str = "in the Hosted modes the operator needs Secret external-managed-kubeconfig, key kubeconfig, in the \
                           namespace of the Klusterlet's name, with an address that its pods can dial";
    const ROLE: &str = "the operator's ClusterRole lacks a right: it is of another release than the image, and an operator may \
                        grant only what it holds itself";
    first(
        words,
        &[
            (&["external-hub-kubeconfig"], HUB),
            (&["external-managed-kubeconfig"], MANAGED),
            (
                &["grpc-server-sa-kubeconfig", "forbidden"],
                "the operator's role does not name the Secret of the gRPC server, which a hosted hub has: add it",
            ),
            (
                &["ca-bundle.crt is empty"],
                "the hub's CA has not been made yet, or was deleted: the operator makes it within seconds, if it may write \
                 Secrets",
            ),
            (&["attempting to grant RBAC permissions not currently held"], ROLE),
            (&["is forbidden: User"], ROLE),
            (&["image: Required value"], "the image fields of the object are empty, and nothing fills them in"),
            (&["no matches for kind"], "a definition is missing: apply those of the operator's release"),
            (&["namespace", "being terminated"], "the namespace is being removed: nothing can be made in it"),
            (&["failed calling webhook"], "an admission webhook does not answer"),
            (&["exceeded quota"], "a ResourceQuota allows no more"),
        ],
    )
}

/// Why an agent could not apply an object of a work.
pub(crate) fn work(words: &str) -> Option<&'static str> {
    const AGENT: &str = "the work agent lacks a right on the managed cluster: a ClusterRole with the label \
                         open-cluster-management.io/aggregate-to-work=true grants it, or an executor that has it";
    const EXECUTOR: &str = "the executor of the work, a service account on the managed cluster, lacks a right: the agent applies \
                            nothing that its executor may not";
    first(
        words,
        &[
            (&["not allowed to apply the resource"], EXECUTOR),
            (&["is forbidden: User"], AGENT),
            (
                &["conflict", "field manager"],
                "another manager owns a field: set the work's update strategy to force, or leave the field out by ignoreFields",
            ),
            (
                &["Apply failed with", "conflict"],
                "another manager owns a field: set the work's update strategy to force, or leave the field out by ignoreFields",
            ),
            (
                &["AppliedManifestSSAIgnoreFieldError"],
                "an expression of ignoreFields in the work is neither a JSON pointer nor a jq path",
            ),
            (
                &["no matches for kind"],
                "the managed cluster does not serve the kind: its definition has to come first, in a work of its own",
            ),
            (&["failed calling webhook"], "an admission webhook of the managed cluster does not answer"),
            (&["exceeded quota"], "a ResourceQuota of the managed cluster allows no more"),
            (&["being terminated"], "the namespace of the object is being removed"),
            (&["namespaces", "not found"], "the namespace of the object does not exist: have a work make it"),
        ],
    )
}

/// Why an add-on is not available.
pub(crate) fn addon(words: &str) -> Option<&'static str> {
    first(
        words,
        &[
            (
                &["HostingClusterInvalid"],
                "the cluster that is to run the hosted add-on is no managed cluster of this hub: see the annotation \
                 addon.open-cluster-management.io/hosting-cluster-name",
            ),
            (
                &["ManagedClusterAddOnLeaseNotFound"],
                "its agent has never started, or renews a lease in another namespace or, when hosted, on another cluster than \
                 the hub looks at",
            ),
            (&["ManagedClusterAddOnLeaseUpdateStopped"], "its pods have stopped, or cannot reach what they report to"),
            (
                &["TokenInfrastructureReady"],
                "the hub's addon-manager, which makes the add-on's service account, is older than 1.2 or lacks a right",
            ),
            (&["WorkNotFound"], "the add-on's manager has made no work for it: the manager does not run"),
            (&["WorkNotApplied"], "its works are not applied on the managed cluster"),
            (&["WorkApplyFailed"], "its works are not applied on the managed cluster"),
            (&["ProbeUnavailable"], "what it installs is there, but not ready"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_refusal_is_not_rbac() {
        let url = r#"Post "https://hub:6443/apis/authorization.k8s.io/v1/selfsubjectaccessreviews""#;
        assert_eq!(connection(&format!("{url}: Forbidden")).0, "a proxy refuses the connection");
        assert_eq!(connection(&format!("{url}: Filtered")).0, "a proxy refuses the connection");
        let rbac = "leases is forbidden: User \"x\" cannot get resource: Forbidden";
        assert_eq!(connection(rbac).0, "the hub forbids it");
        assert_eq!(connection(&format!("{url}: Proxy Authentication Required")).0, "the proxy demands credentials");
        let untrusted = format!("{url}: proxyconnect tcp: tls: x509: certificate signed by unknown authority");
        assert_eq!(connection(&untrusted).0, "the proxy's certificate is not trusted");
    }

    #[test]
    fn words_of_others_tell_their_cause_and_other_words_none() {
        let held_up = |cause, words: &str| Lack { cause: Some(cause), ..Lack::new(words) };
        let log = Some("its last log lines: exec format error".to_owned());
        let crash = Lack { log, ..held_up(PodCause::Crash, "its container a crashes (exit code 1)") };
        let wanted = [
            (pods(&crash), "another processor"),
            (pods(&held_up(PodCause::Killed, "x")), "want of memory"),
            (pods(&held_up(PodCause::ImagePull, "x")), "its tag does not exist"),
            (pods(&held_up(PodCause::ImageName, "x")), "empty or malformed"),
            (pods(&held_up(PodCause::Unschedulable, "x")), "no node takes"),
            (pods(&held_up(PodCause::NotCreated, "is forbidden: violates PodSecurity \"restricted\"")), "PodSecurity"),
            (pods(&held_up(PodCause::NotCreated, "is forbidden: exceeded quota: q")), "ResourceQuota"),
            (pods(&Lack::new("is forbidden: exceeded quota: q")), "ResourceQuota"),
            (operator("secrets \"external-managed-kubeconfig\" not found"), "Hosted"),
            (
                operator("clusterroles is forbidden: User \"x\" (attempting to grant RBAC permissions"),
                "another release",
            ),
            (work("configmaps is forbidden: User \"x\" cannot create"), "aggregate-to-work"),
            (work("not allowed to apply the resource: configmaps is forbidden: User \"x\""), "executor"),
            (work("Apply failed with 1 conflict: conflict with \"kubectl\""), "another manager owns"),
            (addon("ManagedClusterAddOnLeaseNotFound: x"), "never started"),
        ];
        for (cause, words) in wanted {
            assert!(cause.is_some_and(|cause| cause.contains(words)), "{cause:?}: {words}");
        }
        for cause in [operator, work, addon] {
            assert_eq!(cause("something else"), None);
        }
        assert_eq!(pods(&held_up(PodCause::Crash, "image x cannot be pulled: exceeded quota")), None);
    }
}
