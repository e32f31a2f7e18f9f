//! From a fleet file to a hub with its clusters.

use std::path::Path;
use std::sync::Arc;

use ocm_cli::{Ui, fleet_file, options};
use ocm_core::plan::Mode;
use ocm_core::{Exit, Failure};
use ocm_flows::fleet::{Reach, Request, bring_up};

use super::{render, view};
use crate::args::JoinArgs;

pub(crate) async fn run(file: &Path, args: JoinArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    // What else there is of a cluster is refused beside a file by the command line itself.
    let JoinArgs { name, cluster_name, hub_token, timeout, plan, concurrency, output, client, .. } = args;
    if let Some(name) = name.or(cluster_name) {
        return Err(beside_a_name(file, &name));
    }
    if hub_token.is_some() {
        return Err(Failure::usage("a fleet file goes with access to all clusters, and with no token")
            .hint("leave out --hub-token (and $KUBECTL_OCM_HUB_TOKEN)"));
    }
    if plan.diff {
        return Err(no_diff(file));
    }
    if plan.show_secrets {
        return Err(no_secrets(file));
    }
    let format = output.output;
    let mode = plan.mode(format)?;
    let timeout = options::timeout(&timeout)?;
    let fleet = fleet_file::read(file).await?;
    let plain = client.connection()?;
    let reach = Reach { folder: fleet_file::folder(file), plain: &plain, narrator: ui.clone() };
    let fleet = reach.fleet(fleet).await.map_err(fleet_file::of_fields)?;
    let request = Request { mode, timeout, at_once: concurrency.at_once() };
    let rows = ui.rows(fleet.names());
    let brought = bring_up(&fleet, &request, ui.clone()).await;
    drop(rows);
    match mode {
        Mode::Render => render::render(&ui, format, &brought),
        _ => view::finish(&ui, format, mode, &brought),
    }
}

/// Somebody names a cluster, and a file that names its clusters itself.
fn beside_a_name(file: &Path, name: &str) -> Failure {
    Failure::usage(format!("{name} and --filename cannot be typed together: the fleet file says which clusters join"))
        .hint(format!("all clusters of the file: kubectl ocm join --filename {}", file.display()))
        .hint(format!("{name} alone, with flags for what the file says of it: kubectl ocm join {name} --help"))
}

/// A diff is of the objects of one cluster.
fn no_diff(file: &Path) -> Failure {
    let file = file.display();
    Failure::usage("--diff and --filename cannot be typed together: a diff is of one cluster")
        .hint(format!("what would change in each cluster: kubectl ocm join --filename {file} --dry-run -o yaml"))
        .hint("one cluster, with flags for what the file says of it: kubectl ocm join NAME --diff")
}

/// The manifests of a fleet are to be kept in Git.
fn no_secrets(file: &Path) -> Failure {
    let file = file.display();
    Failure::usage(
        "--show-secrets and --filename cannot be typed together: the manifests of a fleet file leave Secrets out",
    )
    .hint(format!("the manifests: kubectl ocm join --filename {file} --render"))
    .hint("one cluster, with flags for what the file says of it: kubectl ocm join NAME --render --show-secrets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beside_a_file_is_refused_with_what_to_type() {
        let failure = beside_a_name(Path::new("fleet.yaml"), "c1");
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(failure.message.starts_with("c1 and --filename cannot be typed together"), "{failure}");
        assert_eq!(failure.hints.len(), 2, "{failure}");
    }

    #[test]
    fn what_is_of_one_cluster_is_refused_with_what_to_type() {
        let file = Path::new("fleet.yaml");
        for (failure, flag, instead) in [
            (no_diff(file), "--diff", "kubectl ocm join --filename fleet.yaml --dry-run"),
            (no_secrets(file), "--show-secrets", "kubectl ocm join --filename fleet.yaml --render"),
        ] {
            assert_eq!(failure.exit(), Exit::Usage);
            assert!(failure.message.starts_with(&format!("{flag} and --filename")), "{failure}");
            let hints: Vec<String> = failure.hints.iter().map(|hint| format!("{hint:?}")).collect();
            assert!(hints.len() == 2 && hints[0].contains(instead) && hints[1].contains(flag), "{hints:?}");
        }
    }
}
