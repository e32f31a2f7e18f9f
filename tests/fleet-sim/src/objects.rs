//! What clusters send to a hub: the object that registers them, and the request for a certificate, right or wrong in any way.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::ManagedCluster;
use ocm_api::cluster::{ClientConfig, ManagedClusterSpec};
use ocm_api::names::{annotations, labels, signers};

/// Who asks for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The bootstrap service account, with a real token.
    Bootstrap,
    /// A bootstrap token in the right group.
    Token,
    /// A bootstrap token without that group.
    TokenWithoutGroup,
    /// OCM's gRPC server, with a real token.
    Grpc,
    /// A service account of the same name in another namespace.
    AccountElsewhere,
    /// A service account whose name goes on.
    LongerAccount,
    /// A user with a client certificate.
    Eva,
    /// A client certificate with the name of the bootstrap service account.
    CertificateOfAccount,
    /// A client certificate with the name and the group of a bootstrap token.
    CertificateOfToken,
    /// A client certificate with the name of OCM's gRPC server.
    CertificateOfGrpc,
    /// The agent of the cluster `c2`.
    AgentOfC2,
    /// The administrator.
    Admin,
}

impl Who {
    /// Everybody who asks on such a hub.
    pub const ALL: [Self; 12] = [
        Self::Bootstrap,
        Self::Token,
        Self::TokenWithoutGroup,
        Self::Grpc,
        Self::AccountElsewhere,
        Self::LongerAccount,
        Self::Eva,
        Self::CertificateOfAccount,
        Self::CertificateOfToken,
        Self::CertificateOfGrpc,
        Self::AgentOfC2,
        Self::Admin,
    ];
}

/// A request for a certificate.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What `spec.request` holds.
    pub pem: Vec<u8>,
    /// Who asks.
    pub who: Who,
    /// The cluster that the label names.
    pub label: Option<String>,
    /// The add-on that the label names.
    pub addon: Option<String>,
    /// The annotation of the gRPC server.
    pub annotation: Option<String>,
    /// `spec.signerName`.
    pub signer: String,
    /// `spec.usages`.
    pub usages: Vec<String>,
    /// `spec.expirationSeconds`.
    pub seconds: Option<i32>,
    /// The whole name; else the API server makes one up.
    pub name: Option<String>,
}

impl Ask {
    /// The right way to ask for a cluster, with this content.
    pub fn with(cluster: &str, fixture: &csr_fixtures::Fixture) -> Self {
        Self::raw(cluster, fixture.pem().into_bytes())
    }

    /// The right way to ask for a cluster, with this content.
    pub fn raw(cluster: &str, pem: Vec<u8>) -> Self {
        Self {
            pem,
            who: Who::Bootstrap,
            label: Some(cluster.to_owned()),
            addon: None,
            annotation: None,
            signer: signers::KUBE_APISERVER_CLIENT.to_owned(),
            usages: ["digital signature", "key encipherment", "client auth"].map(str::to_owned).to_vec(),
            seconds: None,
            name: None,
        }
    }

    /// Every way of asking for a certificate.
    pub fn every_way() -> Vec<Self> {
        let mut all = Vec::new();
        let contents = [Ask::agent("c1"), Ask::agent("c2"), Ask::with("c1", &csr_fixtures::Fixture::addon("c1", "x"))];
        for content in contents {
            for who in Who::ALL {
                for (label, addon) in [(Some("c1"), None), (Some("c2"), None), (None, None), (Some("c1"), Some("x"))] {
                    for signer in [signers::KUBE_APISERVER_CLIENT, signers::GRPC, "example.com/own"] {
                        for annotation in [None, Some("system:bootstrap:abcdef")] {
                            for (usage, seconds) in
                                [("client auth", None), ("server auth", None), ("client auth", Some(63_072_000))]
                            {
                                let mut ask = content.clone().by(who);
                                ask.label = label.map(str::to_owned);
                                ask.addon = addon.map(str::to_owned);
                                ask.signer = signer.to_owned();
                                ask.annotation = annotation.map(str::to_owned);
                                ask.usages = vec!["digital signature".to_owned(), usage.to_owned()];
                                ask.seconds = seconds;
                                all.push(ask);
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// As an agent asks.
    pub fn agent(cluster: &str) -> Self {
        Self::with(cluster, &csr_fixtures::Fixture::agent(cluster, "a1"))
    }

    /// Somebody else asks.
    #[must_use]
    pub fn by(mut self, who: Who) -> Self {
        self.who = who;
        self
    }

    /// By way of OCM's gRPC server, which names this user.
    #[must_use]
    pub fn grpc(mut self, user: &str) -> Self {
        self.signer = signers::GRPC.to_owned();
        self.annotation = Some(user.to_owned());
        self.by(Who::Grpc)
    }

    /// The object that is created.
    pub fn object(&self) -> CertificateSigningRequest {
        let mut object = CertificateSigningRequest::default();
        object.metadata.name.clone_from(&self.name);
        if self.name.is_none() {
            object.metadata.generate_name = Some(format!("{}-", self.label.as_deref().unwrap_or("nobody")));
        }
        let all = [(labels::CLUSTER_NAME, &self.label), (labels::ADDON_NAME, &self.addon)];
        object.metadata.labels =
            Some(all.iter().filter_map(|(key, value)| Some(((*key).to_owned(), (*value).clone()?))).collect());
        object.metadata.annotations =
            self.annotation.as_ref().map(|user| [(annotations::CSR_USER.to_owned(), user.clone())].into());
        object.spec.request = ByteString(self.pem.clone());
        object.spec.signer_name.clone_from(&self.signer);
        object.spec.usages = Some(self.usages.clone());
        object.spec.expiration_seconds = self.seconds;
        object
    }
}

/// A cluster as its agent creates it.
pub fn managed_cluster(name: &str) -> ManagedCluster {
    let config = ClientConfig {
        url: "https://192.0.2.7:6443".to_owned(),
        // Nobody connects: an address for documentation, and a CA of one byte.
        ca_bundle: Some(ByteString(b"x".to_vec())),
    };
    ManagedCluster::new(
        name,
        ManagedClusterSpec { managed_cluster_client_configs: vec![config], ..ManagedClusterSpec::default() },
    )
}
