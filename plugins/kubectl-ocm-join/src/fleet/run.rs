//! From a fleet file to a hub with its clusters.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ocm_cli::{Ui, files, options};
use ocm_core::fleet::{self, Access, Address, Hub, Wrong};
use ocm_core::plan::Mode;
use ocm_core::{Exit, Failure, Role};
use ocm_flows::fleet::{Fleet, Member, Request, bring_up};
use ocm_flows::hub::AddressOptions;
use ocm_kube::{Connection, connect};

use super::{render, view, words};
use crate::args::JoinArgs;

/// What the file is to people.
const WHAT: &str = "the fleet file";

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
    let folder = file.parent().unwrap_or(Path::new(""));
    let named = file.to_owned();
    let text = files::beside(move || files::text(&named, WHAT)).await?;
    let mut beside = |path: &str| std::fs::read(folder.join(path)).map_err(|error| error.to_string());
    let fleet = fleet::read(&text, &mut beside).map_err(|wrong| refused(file, &wrong))?;
    let fleet = connected(fleet, folder, &client.connection()?, &ui).await?;
    let request = Request { mode, timeout, at_once: concurrency.at_once() };
    let brought = bring_up(&fleet, &request, ui.clone()).await;
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

/// What is wrong with the file, for people: each thing, and what helps, once.
fn refused(file: &Path, all: &[Wrong]) -> Failure {
    let file = file.display();
    let failure = match all {
        [only] => Failure::usage(format!("{file}: {only}")),
        several => {
            let sentence = format!("{file}: {} of its clusters cannot join as they are written", several.len());
            several.iter().fold(Failure::usage(sentence), Failure::because)
        }
    };
    let mut told = BTreeSet::new();
    all.iter()
        .filter_map(|wrong| wrong.hint.clone())
        .filter(|hint| told.insert(hint.clone()))
        .fold(failure, Failure::hint)
}

/// A client of each cluster. A context that is not there is a mistake of the file: then nothing is done.
async fn connected(fleet: fleet::Fleet, folder: &Path, plain: &Connection, ui: &Arc<Ui>) -> Result<Fleet, Failure> {
    let fleet::Fleet { hub: Hub { access, address, install }, members } = fleet;
    let Address { server, internal, ca, unverified } = address;
    let reach = async |access: &Access, role: Role, who: &str| {
        let connection = connection(access, role, folder, plain);
        // What is sent to a hub that nobody verifies, anybody may hear: the CA that the file gives verifies it.
        let authorities = if role == Role::Hub { ca.clone() } else { Vec::new() };
        let connection = Connection { authorities, ..connection };
        connect(&connection, ui.clone()).await.map_err(|failure| {
            let failure = failure.context(format!("{who} of {WHAT} cannot be reached; nothing was changed"));
            Failure { hints: failure.hints.into_iter().map(words::in_the_file).collect(), ..failure }
        })
    };
    let hub = reach(&access, Role::Hub, "the hub").await?;
    let mut connected = Vec::new();
    for spec in members {
        let name = spec.settings.name.clone();
        let agents = reach(&spec.access, Role::Target, &name).await?;
        let guest = match &spec.managed {
            Some(managed) => Some(reach(managed, Role::Managed, &name).await?),
            None => None,
        };
        connected.push(Member { spec, agents, guest });
    }
    Ok(Fleet { hub, address: AddressOptions { server, internal, ca, unverified }, install, members: connected })
}

/// How a cluster of the file is reached. Its kubeconfig is looked for beside the file.
fn connection(access: &Access, role: Role, folder: &Path, plain: &Connection) -> Connection {
    let Access { kubeconfig, context, act_as, as_groups } = access.clone();
    Connection {
        kubeconfig: kubeconfig.map(|path| folder.join(path)).or_else(|| plain.kubeconfig.clone()),
        context,
        act_as,
        as_groups,
        request_timeout: plain.request_timeout,
        role,
        ..Connection::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeconfigs_are_looked_for_beside_the_file() {
        let plain = Connection { kubeconfig: Some("all.yaml".into()), ..Connection::default() };
        let of = |kubeconfig: Option<&str>| {
            let access = Access { kubeconfig: kubeconfig.map(str::to_owned), ..Access::default() };
            connection(&access, Role::Hub, Path::new("fleets"), &plain).kubeconfig
        };
        assert_eq!(of(Some("c1.yaml")), Some("fleets/c1.yaml".into()));
        assert_eq!(of(Some("/etc/c1.yaml")), Some("/etc/c1.yaml".into()));
        assert_eq!(of(None), Some("all.yaml".into()));
    }

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

    #[test]
    fn a_file_that_is_wrong_is_named_with_the_place() {
        let wrong = fleet::read("apiVersion: v1\nkind: Fleet\nhub: {}\nclusters: []\n", &mut |_| Ok(Vec::new()));
        let failure = refused(Path::new("fleet.yaml"), &wrong.unwrap_err());
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(failure.message.starts_with("fleet.yaml: it is a Fleet of v1"), "{failure}");
    }

    #[test]
    fn all_names_that_cannot_be_are_told_with_what_names_are() {
        let text = "apiVersion: kubectl-ocm.dev/v1alpha1\nkind: Fleet\nhub: {context: hub}\nclusters:\n\
            - {name: C_1, context: c1}\n- {name: C_2, context: c2}\n";
        let failure = refused(Path::new("fleet.yaml"), &fleet::read(text, &mut |_| Ok(Vec::new())).unwrap_err());
        assert_eq!(failure.exit(), Exit::Usage);
        assert_eq!(failure.message, "fleet.yaml: 2 of its clusters cannot join as they are written");
        assert!(failure.causes.iter().zip(["C_1", "C_2"]).all(|(cause, name)| cause.contains(name)), "{failure}");
        assert_eq!((failure.causes.len(), failure.hints.len()), (2, 1), "{failure}");
    }
}
