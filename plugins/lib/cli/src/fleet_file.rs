//! Fleet files: how they are read, what is wrong with them, and what would help, in the words of their fields where a command
//! for one cluster has flags.

use std::path::Path;

use ocm_core::fleet::{self, Fleet, Wrong};
use ocm_core::shell::shell;
use ocm_core::{Failure, Hint, Remedy, Role};

use crate::files;

/// Reads a fleet file, or stdin for `-`.
///
/// # Errors
/// A usage failure that names the file and what is wrong with it.
pub async fn read(file: &Path) -> Result<Fleet, Failure> {
    let named = file.to_owned();
    let text = files::beside(move || files::text(&named, "the fleet file")).await?;
    let mut beside = |path: &str| std::fs::read(folder(file).join(path)).map_err(|error| error.to_string());
    fleet::read(&text, &mut beside).map_err(|wrong| refused(file, &wrong))
}

/// The directory of a fleet file: what it names is there.
pub fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
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
    let mut hints: Vec<&Hint> = Vec::new();
    for hint in all.iter().filter_map(|wrong| wrong.hint.as_deref()) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    hints.into_iter().cloned().fold(failure, Failure::hint)
}

/// A failure as it is of use to whoever writes the file.
#[must_use]
pub fn of_fields(failure: Failure) -> Failure {
    Failure { hints: failure.hints.into_iter().map(in_the_file).collect(), ..failure }
}

/// A hint as it is of use to whoever writes the file.
fn in_the_file(hint: Hint) -> Hint {
    let field = match &hint {
        Hint::Remedy(remedy) => field(remedy),
        Hint::Text(_) => None,
    };
    field.map_or(hint, Hint::Text)
}

fn field(remedy: &Remedy) -> Option<String> {
    let text = match remedy {
        Remedy::Kubeconfig(_) => "name its kubeconfig in the field kubeconfig, or that of all with --kubeconfig",
        Remedy::Context { known, .. } => match known.as_slice() {
            [] => "the kubeconfig holds no contexts",
            known => return Some(format!("name its context in the field context: {}", known.join(", "))),
        },
        Remedy::SimilarContext(_, near) => return Some(format!("did you mean context: {near}?")),
        Remedy::HubCa => "give the CA of the hub's address: hub.caFile",
        Remedy::HubAddress => {
            "name the address at which other clusters reach the hub: hub.apiServer: https://HOST:PORT"
        }
        Remedy::PublishedAddress => "or use the one that the hub publishes: hub.internalAddress: true",
        Remedy::SkipVerification(Role::Hub) => "or accept that: hub.insecureSkipTlsVerify: true",
        Remedy::SkipVerification(Role::Target | Role::FormerHub | Role::Managed) => {
            "or accept that in its kubeconfig: insecure-skip-tls-verify: true of the cluster"
        }
        Remedy::User(_) | Remedy::Cluster(_) => "name one that the kubeconfig has in its context",
        Remedy::GrpcAddress => {
            "name the address at which agents reach the hub's gRPC server: grpcServer: HOST:PORT of the cluster"
        }
        Remedy::GrpcCa => "give the CA of the hub's gRPC server: grpcCaFile of the cluster",
        Remedy::OfferDriver(driver) => {
            return Some(format!(
                "have the hub list it beside the others: {driver} in hub.install.registrationDrivers"
            ));
        }
        Remedy::AdoptNamespace => "if that namespace is meant for this cluster: adoptNamespace: true",
        Remedy::NameCluster => "say which cluster it is: context of the cluster",
        Remedy::NameItsHub => "name the hub that it belongs to: context of hub",
        Remedy::ChangeHub(server) => {
            let server = shell(server);
            return Some(format!(
                "take it from that hub to this one by itself: kubectl ocm join NAME --former-hub {server}"
            ));
        }
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use ocm_core::Exit;

    use super::*;

    #[test]
    fn hints_name_fields_where_there_are_some() {
        assert_eq!(in_the_file(Remedy::HubCa.into()), "give the CA of the hub's address: hub.caFile");
        let near = Remedy::SimilarContext(Role::Target, "c1".to_owned());
        assert_eq!(in_the_file(near.into()), "did you mean context: c1?");
        assert_eq!(in_the_file(Hint::from("as it is")), "as it is");
        let other = Hint::from(Remedy::Unjoin("c1".to_owned()));
        assert_eq!(in_the_file(other.clone()), other);
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
