//! A cluster goes from two agents to one: it leaves, and joins again in the other mode. A cluster that has joined is not moved.

use control_plane::{Cluster, Spec};

use crate::join_support::{alone, hub, hub_access, join};
use crate::residue::{nothing_stays, sweep};
use crate::upgrade_support::AGENT;
use crate::{kubectl_ocm, object, resource_versions, run, settled};

/// Its name on the hub.
const NAME: &str = "modes";

/// A mode as it is typed, as a Klusterlet names it, and the Deployments of its agents.
struct Mode {
    typed: &'static str,
    word: &'static str,
    agents: &'static [&'static str],
}

const DEFAULT: Mode = Mode {
    typed: "--mode=default",
    word: "Default",
    agents: &["klusterlet-registration-agent", "klusterlet-work-agent"],
};
const SINGLETON: Mode = Mode { typed: "--singleton", word: "Singleton", agents: &["klusterlet-agent"] };

fn agents(cluster: &Cluster) -> Vec<String> {
    let list = object(cluster, &["deployments", "--namespace", AGENT]);
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

pub(super) fn a_cluster_goes_from_two_agents_to_one_and_back() {
    let _alone = alone();
    let hub = hub();
    let cluster = Cluster::start(&Spec::node("modes")).expect("a cluster");
    let access = hub_access(hub);
    let before = (sweep(&cluster), sweep(hub));
    for (mode, other) in [(&DEFAULT, &SINGLETON), (&SINGLETON, &DEFAULT), (&DEFAULT, &SINGLETON)] {
        let said = join(&cluster, NAME, &[access.as_str(), mode.typed, "--accept", "--wait"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stdout.ends_with("/modes available\n"), "{said:?}");
        assert_eq!(agents(&cluster), mode.agents);

        // In its own mode, and in none, it stays as it is; to the other one it is not moved.
        let there = settled(&cluster);
        for flags in [&[mode.typed][..], &[]] {
            let said = join(&cluster, NAME, &[&[access.as_str()], flags].concat());
            assert!(said.code == Some(0) && said.stderr.contains("already; nothing is changed"), "{said:?}");
        }
        let sentence = format!("has joined in mode {}, and is not moved to {} as it is", mode.word, other.word);
        for flags in [&["--accept", "--wait"][..], &["--dry-run=server"], &["--diff"]] {
            let said = join(&cluster, NAME, &[&[access.as_str(), other.typed], flags].concat());
            assert_eq!(said.code, Some(3), "{said:?}");
            assert!(said.stderr.contains(&sentence) && said.stderr.contains("kubectl ocm unjoin modes"), "{said:?}");
        }
        assert_eq!(resource_versions(&cluster), there);

        let said = run(kubectl_ocm("unjoin", cluster.kubeconfig()).args([NAME, "--yes", &access]));
        assert_eq!(said.code, Some(0), "{said:?}");
        nothing_stays(&cluster, &before.0);
        nothing_stays(hub, &before.1);
    }
}
