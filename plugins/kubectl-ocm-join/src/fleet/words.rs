//! What would help, in the words of a fleet file: its fields, where a command for one cluster has flags.

use ocm_core::{Hint, Remedy, Role};

/// A hint as it is of use to whoever writes the file.
pub(crate) fn in_the_file(hint: Hint) -> Hint {
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
        Remedy::SkipVerification(Role::Target | Role::Managed) => {
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
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
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
}
