//! Clusters that must not get in, each wrong in one way.

use csr_fixtures::Fixture;
use ocm_api::ManagedCluster;
use ocm_api::names::bootstrap;

use crate::objects::{Ask, Who, managed_cluster};

/// In which way a cluster is hostile. All of them register a cluster of their own first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hostile {
    /// It asks for a certificate in the name of another cluster.
    OtherName,
    /// It asks to be in the group of administrators besides.
    OtherGroup,
    /// It asks another signer.
    OtherSigner,
    /// It asks for a certificate that servers use.
    ServerUsage,
    /// It asks for a certificate of two years.
    LongLifetime,
    /// It claims that the hub's gRPC server asks for it.
    GrpcClaim,
    /// It registers as a cluster that is accepted already.
    AcceptedAtCreation,
    /// Somebody else asks than registered the cluster: a bootstrap token that no policy of the hub lets in.
    OtherRequester,
    /// A client certificate asks, with the name of the bootstrap service account.
    Impersonator,
    /// As soon as another cluster is accepted, it asks with a key of its own for that cluster's name.
    SecondKey,
}

impl Hostile {
    /// Every way.
    pub const ALL: [Self; 10] = [
        Self::OtherName,
        Self::OtherGroup,
        Self::OtherSigner,
        Self::ServerUsage,
        Self::LongLifetime,
        Self::GrpcClaim,
        Self::AcceptedAtCreation,
        Self::OtherRequester,
        Self::Impersonator,
        Self::SecondKey,
    ];

    /// Who asks for the certificate.
    pub fn requester(self) -> Who {
        match self {
            Self::OtherRequester => Who::Token,
            Self::Impersonator => Who::CertificateOfAccount,
            _ => Who::Bootstrap,
        }
    }

    /// The cluster that it registers.
    pub(crate) fn cluster(self, own: &str) -> ManagedCluster {
        let mut cluster = managed_cluster(own);
        cluster.spec.hub_accepts_client = (self == Self::AcceptedAtCreation).then_some(true);
        cluster
    }

    /// What it asks for; `victim` is the name of a right cluster.
    pub(crate) fn ask(self, own: &str, victim: &str) -> Ask {
        let right = Ask::agent(own).by(self.requester());
        match self {
            Self::OtherName => Ask { label: Some(own.to_owned()), ..Ask::agent(victim) },
            Self::OtherGroup => Ask::with(own, &Fixture::agent(own, AGENT).organization("system:masters")),
            Self::OtherSigner => Ask { signer: "example.com/own".to_owned(), ..right },
            Self::ServerUsage => {
                Ask { usages: ["digital signature", "server auth"].map(str::to_owned).to_vec(), ..right }
            }
            Self::LongLifetime => Ask { seconds: Some(2 * 365 * 24 * 3600), ..right },
            Self::GrpcClaim => Ask { annotation: Some(bootstrap::token_user("abcdef")), ..right },
            Self::SecondKey => Ask::with(victim, &Fixture::agent(victim, "other")),
            Self::AcceptedAtCreation | Self::OtherRequester | Self::Impersonator => right,
        }
    }
}

/// The name of the agents.
pub(crate) const AGENT: &str = "a1";

/// What came of a hostile cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// In which way it is hostile.
    pub kind: Hostile,
    /// The cluster that it registered, or wanted to.
    pub cluster: String,
    /// Its certificate request; none: the API server took none.
    pub request: Option<String>,
    /// What the API server said against it, in its own words: first of the cluster, then of the request.
    pub refusals: Vec<String>,
    /// Whether its cluster was accepted or its request approved by the end.
    pub is_in: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_differs_from_a_right_cluster_in_one_way() {
        let right = Ask::agent("own");
        for kind in Hostile::ALL {
            let (cluster, ask) = (kind.cluster("own"), kind.ask("own", "victim"));
            let differences = [
                cluster != managed_cluster("own"),
                ask.who != right.who,
                ask.label != right.label,
                ask.signer != right.signer,
                ask.usages != right.usages,
                ask.seconds != right.seconds,
                ask.annotation != right.annotation,
            ];
            let outside = differences.into_iter().filter(|differs| *differs).count();
            // What stands in the request itself differs in any case: every request has a key of its own.
            let inside = matches!(kind, Hostile::OtherName | Hostile::OtherGroup);
            assert_eq!(outside, usize::from(!inside), "{kind:?}");
        }
    }
}
