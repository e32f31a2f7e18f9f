//! Which verbs there are.

/// The verbs of the suite in the order in which a cluster lives, with one line for each.
pub(crate) const VERBS: &[(&str, &str)] = &[
    ("install", "Install Open Cluster Management on a hub"),
    ("token", "Create, show, list and revoke the tokens that clusters join with"),
    ("join", "Register a cluster with a hub"),
    ("accept", "Accept clusters that want to join, after verifying their certificate requests"),
    ("get", "List what a hub knows of clusters with where it stands, and say what runs on a hub or a managed cluster"),
    ("clusterset", "Make sets of clusters, put clusters into them, and bind them to namespaces"),
    ("placement", "Create placements, which select clusters, and delete them"),
    ("work", "Bring objects to clusters, see what became of them, and take them away"),
    (
        "addon",
        "Create add-ons, enable them on clusters, configure them, see what takes effect, disable and delete them",
    ),
    ("proxy", "See which clusters can be reached through the add-on cluster-proxy, and run kubectl on one"),
    ("troubleshoot", "Say why a cluster is not joined, and what to type next"),
    ("tls-check", "Check the certificates of hubs and managed clusters, and tell when they expire"),
    ("upgrade", "Bring hubs and managed clusters to a newer release"),
    ("unjoin", "Take the agent away from a cluster, and the cluster from its hub"),
    ("detach", "Take clusters away from a hub, from the hub's side"),
    ("uninstall", "Take away what install has added to a hub"),
    ("policy", "Write, build, test, run and measure policies"),
];
