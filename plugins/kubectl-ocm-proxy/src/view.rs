//! What the health of the proxy looks like.

use std::collections::BTreeMap;

use ocm_cli::list::NONE;
use ocm_cli::{Format, Table, Ui, document, without_nulls, words};
use ocm_core::cluster_proxy::{Probe, Servers};
use ocm_core::leave::some;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::cluster_proxy::{ClusterRow, Health, Ready};
use serde_json::{Value, json};

/// Which clusters can be reached. [`Exit::Findings`] if one cannot, [`Exit::Inconclusive`] if none could be tried.
pub(crate) fn show(ui: &Ui, format: Format, health: &Health) -> Result<Exit, Failure> {
    let Health { servers, pods, why, clusters, untried } = health;
    match format {
        Format::Json | Format::Yaml => ui.out(&document(format, &health_document(health))?),
        Format::Name => {
            let line =
                |row: &ClusterRow| ui.line(&format!("managedcluster.cluster.open-cluster-management.io/{}", row.name));
            clusters.iter().for_each(line);
        }
        Format::Table | Format::Wide => {
            ui.out(&format!("{}\n", servers_table(servers, pods, why.as_deref())));
            match clusters.is_empty() {
                true => ui.tell(Event::note("the hub has no managed clusters")),
                false => ui.out(&clusters_table(clusters)),
            }
        }
    }
    let mut hints: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (row, (_, hint)) in clusters.iter().filter_map(|row| Some((row, row.obstacle.as_ref()?))) {
        hints.entry(words(hint)).or_default().push(row.name.clone());
    }
    for (hint, names) in &hints {
        ui.tell(Event::note(format!("{}: {hint}", some(names))));
    }
    if let Some(untried) = untried {
        ui.tell(Event::warning(format!("no cluster was tried: {untried}")));
    }
    Ok(match (why.is_some() || clusters.iter().any(|row| row.obstacle.is_some()), untried) {
        (true, _) => Exit::Findings,
        (false, Some(_)) => Exit::Inconclusive,
        (false, None) => Exit::Ok,
    })
}

fn servers_table(servers: &Servers, pods: &Ready, why: Option<&str>) -> String {
    let mut table = Table::new(&["PROXY SERVERS", "READY", "ENTRYPOINT", "WHY"]);
    let ready = format!("{}/{}", pods.ready.len(), pods.all);
    table.row([servers.namespace.as_str(), &ready, &servers.entrypoint, why.unwrap_or_default()]);
    table.render()
}

fn clusters_table(clusters: &[ClusterRow]) -> String {
    let mut table = Table::new(&["CLUSTER", "INSTALLED", "AVAILABLE", "REACHED", "LATENCY", "WHY"]);
    for row in clusters {
        let ClusterRow { name, installed, available, probe, obstacle } = row;
        let (reached, latency) = match probe {
            Probe::NotTried => (NONE, NONE.to_owned()),
            Probe::Reached(milliseconds) => ("True", format!("{milliseconds}ms")),
            Probe::Failed(_) => ("False", NONE.to_owned()),
        };
        table.row([
            name.as_str(),
            if *installed { "True" } else { "False" },
            available.as_deref().unwrap_or(NONE),
            reached,
            &latency,
            obstacle.as_ref().map_or("", |(why, _)| why.as_str()),
        ]);
    }
    table.render()
}

fn health_document(health: &Health) -> Value {
    let Health { servers, pods, why, clusters, untried } = health;
    let Servers { namespace, entrypoint, client_secret: _, why: _ } = servers;
    let cluster = |row: &ClusterRow| {
        let ClusterRow { name, installed, available, probe, obstacle } = row;
        let (reached, latency) = match probe {
            Probe::NotTried => (None, None),
            Probe::Reached(milliseconds) => (Some(true), Some(milliseconds)),
            Probe::Failed(_) => (Some(false), None),
        };
        without_nulls(json!({
            "name": name,
            "installed": installed,
            "available": available,
            "reached": reached,
            "latencyMilliseconds": latency,
            "why": obstacle.as_ref().map(|(why, _)| why),
            "next": obstacle.as_ref().map(|(_, hint)| words(hint)),
        }))
    };
    without_nulls(json!({
        "servers": without_nulls(json!({
            "namespace": namespace, "entrypoint": entrypoint, "ready": pods.ready.len(), "pods": pods.all, "why": why,
        })),
        "clusters": clusters.iter().map(cluster).collect::<Vec<Value>>(),
        "untried": untried,
    }))
}
