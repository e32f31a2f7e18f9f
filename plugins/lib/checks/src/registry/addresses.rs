//! 3112: at which address the hub has a managed cluster.

use super::subject::{agent, staying};
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::Side;
use crate::text;

/// The check of reported addresses.
pub(super) const CHECKS: &[Check] = &[Check {
    id: Id(3112),
    slug: "reported-address",
    title: "the address that the hub has of a managed cluster is not the hub's own",
    category: Category::Life,
    severity: Severity::Warning,
    inputs: &[Input::ManagedClusters, Input::Klusterlets],
    after: &[Id(2104), Id(2110)],
    rule: Rule::Cluster(reported_address),
    page: Page {
        means: "`spec.managedClusterClientConfigs` of the ManagedCluster names the address of the hub's API server, and the managed \
                cluster is another one than the hub. Whatever uses the address, such as an add-on on the hub, talks to the hub.",
        happens: "`spec.externalServerURLs` of the Klusterlet was written by a tool, or by hand, with the hub's address.",
        mend: "Correct externalServerURLs of the Klusterlet, or `kubectl ocm join` again; then see whether the entry on the hub has \
               followed, and take a wrong one away there.",
        mended: "`kubectl ocm get clusters NAME -o yaml` shows the cluster's own address, or none.",
    },
}];

fn reported_address(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    let agent = agent!(cluster);
    if agent.is_hosted() {
        return Outcome::skip("the agent runs on another cluster than the one that it manages");
    }
    let (Some(hub), Some(managed)) = (&facts.snapshot.hub, &facts.snapshot.managed) else {
        return Outcome::skip("only one of the two clusters was looked at");
    };
    let (Some(hubs), Some(own)) = (&hub.uid, &managed.uid) else {
        return Outcome::skip("whether hub and managed cluster are one is not known");
    };
    // A hub that is registered at itself has its own address.
    if hubs == own {
        return Outcome::Pass;
    }
    let dialled = agent.kubeconfig().map(|kubeconfig| kubeconfig.server.as_str());
    let is_hubs = |url: &str| dialled.into_iter().chain([hub.server.as_str()]).any(|server| is_same(server, url));
    let addresses = object.spec.managed_cluster_client_configs.iter().map(|config| config.url.as_str());
    let Some(wrong) = addresses.filter(|url| !text::is_loopback(url)).find(|url| is_hubs(url)) else {
        return Outcome::Pass;
    };
    let finding = Finding::warning(format!("the hub has its own address {wrong} for the managed cluster"))
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .on(Side::Managed, "Klusterlet", None, &agent.side.klusterlet)
        .seen("it stands in spec.managedClusterClientConfigs, and their UIDs tell that they are two clusters")
        .because("externalServerURLs of the Klusterlet names the hub")
        .run(Side::Managed, "kubectl edit klusterlet/{}", &[&agent.side.klusterlet])
        .run(Side::Hub, "kubectl edit managedcluster/{}", &[cluster.name]);
    Outcome::Found(vec![finding])
}

/// Whether two URLs are one.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/').eq_ignore_ascii_case(other.trim_end_matches('/'))
}
