//! 4xxx: certificates and TLS. `tls-check` runs them over what it has found of certificates, in [`crate::tls`].

use super::{Category, Check, Page, Rule};
use crate::finding::{Id, Severity};

pub(crate) const ISSUER: Id = Id(4001);
pub(crate) const EXPIRED: Id = Id(4002);
pub(crate) const NOT_YET_VALID: Id = Id(4003);
pub(crate) const NAME: Id = Id(4004);
pub(crate) const USAGE: Id = Id(4005);
pub(crate) const STRENGTH: Id = Id(4006);
pub(crate) const AUTHORITY: Id = Id(4007);
pub(crate) const RENEWED: Id = Id(4008);
/// No certificate expires within the time that was asked about.
pub const LASTS: Id = Id(4009);
pub(crate) const IDENTITY: Id = Id(4010);
pub(crate) const KEY: Id = Id(4011);
pub(crate) const READABLE: Id = Id(4012);
pub(crate) const TOKEN: Id = Id(4013);
pub(crate) const SIGNER_IN_BUNDLE: Id = Id(4020);
pub(crate) const WEBHOOK_BUNDLE: Id = Id(4021);
pub(crate) const BUNDLE: Id = Id(4022);
pub(crate) const SAME_AUTHORITY: Id = Id(4023);
pub(crate) const SAME_ADDRESS: Id = Id(4024);
pub(crate) const GRPC_BUNDLE: Id = Id(4025);
pub(crate) const REPORTED_AUTHORITY: Id = Id(4026);
pub(crate) const HOSTED_AUTHORITY: Id = Id(4027);
pub(crate) const VERSION: Id = Id(4030);
pub(crate) const SETTINGS: Id = Id(4031);
pub(crate) const SETTINGS_PLACE: Id = Id(4032);
pub(crate) const CIPHERS: Id = Id(4033);

/// The checks of certificates and TLS.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: ISSUER,
        slug: "issuer-is-trusted",
        title: "certificates are signed by an authority that whoever verifies them trusts",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "Signatures lead from the certificate to none of the authorities that its verifier has. It ends \
                    the connection before anything is said: the log of an agent tells of `x509: certificate signed \
                    by unknown authority`, the API server of `failed calling webhook`. A warning: the verifier asks \
                    for no authority at all (`insecure-skip-tls-verify`), so that anybody on the way can answer in \
                    place of the server.",
            happens: "The authority was replaced and the verifier still has the former one; a load balancer presents \
                      a certificate of its own; a proxy on the way intercepts TLS; an intermediate certificate is \
                      missing in what the server presents; a kubeconfig was made for another cluster.",
            mend: "See who signed what is presented: the issuer stands in the evidence. Give the verifier that \
                   authority, or the server a certificate of the one that the verifier has. Agents get the authority \
                   of their hub by `kubectl ocm join`; the operator of the hub copies its bundle to webhooks by \
                   itself.",
            mended: "`kubectl ocm tls-check` has no such finding, and the verifier connects.",
        },
    },
    Check {
        id: EXPIRED,
        slug: "not-expired",
        title: "certificates and those that signed them have not expired",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The certificate, or one that signed it, is not valid any more at the time of the verifier. Go \
                    and OpenSSL refuse an authority that has expired; rustls looks at its name and its key alone.",
            happens: "Whatever renews it does not run, may not write, or was not asked: an agent that was off for \
                      longer than its certificate lived cannot renew it. Or the verifier's clock is fast.",
            mend: "Compare the clocks first. Certificates of webhooks and of the gRPC server are renewed by the \
                   hub's operator: see its log. An agent whose certificate has expired registers again with its \
                   bootstrap kubeconfig, whose token must be valid.",
            mended: "The time line of `kubectl ocm tls-check` shows a later end.",
        },
    },
    Check {
        id: NOT_YET_VALID,
        slug: "already-valid",
        title: "certificates and those that signed them are valid already",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The certificate begins to be valid in the verifier's future.",
            happens: "The verifier's clock is slow, or the clock of whoever signed was fast.",
            mend: "Set the clock of that machine, and let it follow a time server.",
            mended: "Both clocks tell the same time, and `kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: NAME,
        slug: "valid-for-the-name",
        title: "servers present certificates that are valid for the names under which they are dialled",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The certificate has no alternative name for the host or the address that is dialled. Common \
                    names count for OpenSSL alone, and an IP address has to be written as one, not as a DNS name.",
            happens: "The server got another address or a load balancer; a kubeconfig names an address that the \
                      certificate was not made for; the certificate says the name in its common name only.",
            mend: "Dial a name that the evidence lists, or have the server's certificate made for the name as well: \
                   `apiServer.certSANs` of kubeadm, the host of the gRPC server in the ClusterManager's \
                   `endpointsExposure`.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: USAGE,
        slug: "right-usage",
        title: "certificates may be used for what they are used for",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The extended key usage of the certificate, or of one that signed it, does not allow to be a \
                    server or a client. A certificate without one may be used for everything.",
            happens: "A server presents a client's certificate or the other way round; an authority is limited to \
                      other uses.",
            mend: "Have the certificate issued again with `serverAuth` or `clientAuth`.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: STRENGTH,
        slug: "strong-enough",
        title: "keys and signatures are strong enough",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "An RSA key has less than 2048 bits, a signature uses MD5 or SHA-1, or an algorithm is one that \
                    the verifier does not know. Collisions of MD5 and SHA-1 can be computed, and Go, rustls and \
                    OpenSSL refuse such signatures.",
            happens: "The certificate comes from an old authority.",
            mend: "Have it issued again with RSA of 2048 bits or more, or with ECDSA on P-256, and SHA-256.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: AUTHORITY,
        slug: "authorities-sign",
        title: "certificates of authorities sign others, and no others do",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "A certificate signs others without being one of an authority, or for a name that it may not sign \
                    for; or the certificate of an authority is used as a server's own. Clients differ: rustls \
                    refuses an authority as a server and does not look at what an authority may, Go and OpenSSL do \
                    the reverse.",
            happens: "A self-signed certificate was made with the defaults of a tool and is its own authority; a \
                      certificate of a server was put where an authority belongs; an authority is limited by name \
                      constraints.",
            mend: "Make an authority (`CA:TRUE`, `keyCertSign`), and have it sign a certificate for the server.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: RENEWED,
        slug: "renewed-in-time",
        title: "certificates are renewed in time",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The certificate is past the point of its life at which it is renewed, and was not. It still \
                    works, and will not for long.",
            happens: "The controller that renews it does not run or may not write; a renewed certificate request of \
                      an agent waits for approval, or there are ten of them and the agent makes no more.",
            mend: "For what the hub's operator renews: its log, `kubectl logs --namespace open-cluster-management \
                   deployment/cluster-manager`. For agents: `kubectl ocm get csr`, and the log of the registration \
                   agent.",
            mended: "The time line of `kubectl ocm tls-check` shows a later end.",
        },
    },
    Check {
        id: LASTS,
        slug: "lasts-long-enough",
        title: "no certificate expires within the time that was asked about",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The certificate, or the token, expires within the time of `--expires-in`.",
            happens: "That is how certificates are; whether somebody renews it is another check.",
            mend: "Renew it, or ask about a shorter time.",
            mended: "The time line of `kubectl ocm tls-check` shows a later end.",
        },
    },
    Check {
        id: IDENTITY,
        slug: "agent-is-named",
        title: "certificates of agents name their cluster and their group",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The common name or the organizations of an agent's certificate are not those of its cluster, or an \
                    add-on's certificate is the one of another cluster or add-on. The hub grants rights to exactly these \
                    names. Add-ons that ask for names of their own are not judged.",
            happens: "The cluster was renamed, or the Secret was copied from another cluster.",
            mend: "Register the cluster again: delete the Secret `hub-kubeconfig-secret` in the agent's namespace, \
                   and `kubectl ocm join`. Of an add-on, delete its Secret: the registration agent makes it again.",
            mended: "`kubectl ocm tls-check` has no such finding, and the agent renews its lease.",
        },
    },
    Check {
        id: KEY,
        slug: "key-belongs",
        title: "the private key beside a certificate belongs to it",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The public key of the certificate is not that of the private key in the same Secret. No \
                    handshake comes about with them.",
            happens: "A Secret was restored or written in part.",
            mend: "Delete the Secret: whoever made it creates it again.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: READABLE,
        slug: "readable",
        title: "certificates can be read",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "Something that should be a certificate is none, or one that no verifier takes: of an old \
                    version, with a critical extension that is not known, or broken.",
            happens: "A file was cut or put together wrongly, or comes from an old tool.",
            mend: "Put the certificate there again as PEM.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: TOKEN,
        slug: "token-not-expired",
        title: "tokens with which agents, add-ons and operators come to another cluster have not expired",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The token tells of itself that it has ended: the API server that it is for answers `Unauthorized`. Of a hosted \
                    agent nothing of the managed cluster is seen or changed any more; an agent that has not joined cannot register.",
            happens: "Whoever renews it did not run, or may not make tokens there any more: the operator renews those of hosted \
                      agents and of a hosted hub when a fifth of their life is left, by the kubeconfig `external-managed-kubeconfig` \
                      or `external-hub-kubeconfig`, whose own token nobody renews.",
            mend: "Join the cluster again, which makes a new token; of a hosted hub, run `kubectl ocm install hub` for it again. Where \
                   the operator renews it, its log says what is in the way.",
            mended: "The time line of `kubectl ocm tls-check` shows a later end.",
        },
    },
    Check {
        id: SIGNER_IN_BUNDLE,
        slug: "signer-in-bundle",
        title: "the hub's bundle has the authority with which the hub signs",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The certificate in the Secret `signer-secret` is not in the ConfigMap `ca-bundle-configmap`. \
                    What the hub signs from now on, nobody trusts.",
            happens: "Somebody changed one of them, or restored one of them from a backup.",
            mend: "Restart the hub's operator, which puts the signer into the bundle: `kubectl rollout restart \
                   --namespace open-cluster-management deployment/cluster-manager`.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: WEBHOOK_BUNDLE,
        slug: "webhooks-have-the-bundle",
        title: "the API server verifies webhooks with the hub's bundle",
        category: Category::Tls,
        severity: Severity::Error,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The `caBundle` of a webhook or of a conversion is not what the ConfigMap `ca-bundle-configmap` \
                    has. If the present signer is missing there, every call of the webhook fails.",
            happens: "Somebody applied an older copy of the configuration, or another controller writes the same \
                      field.",
            mend: "Restart the hub's operator, and see who else writes the field: `kubectl get KIND NAME -o yaml \
                   --show-managed-fields`.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: BUNDLE,
        slug: "bundle-is-clean",
        title: "bundles hold authorities that are valid, each once",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "A bundle has the same certificate twice, one that has expired, one that is not of an authority and \
                    that no server presents that was looked at, or a block that cannot be read. Others in it still \
                    work; some clients refuse the whole chain if they try that one.",
            happens: "Somebody put a bundle together by hand, or put the certificate of a server there in place of \
                      that of its authority.",
            mend: "Take out what stands there twice, has expired or cannot be read. Before a certificate is taken out \
                   that is not of an authority, put the certificate of the CA there that issued the server's \
                   certificate: clients written in Go, and so agents, trust a server that presents exactly a \
                   certificate of the bundle, and without it they would lose that server.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: SAME_AUTHORITY,
        slug: "agent-has-one-authority",
        title: "an agent trusts the same authorities of its hub before and after it was let in",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The Secrets `bootstrap-hub-kubeconfig` and `hub-kubeconfig-secret` have different authorities of \
                    the hub. The agent registers again as soon as it sees the difference, and its request has to be \
                    accepted again.",
            happens: "The authority of the hub was replaced in one of them only.",
            mend: "See which of them vouches for the hub, join with that one, and accept the cluster again.",
            mended: "Both Secrets have the same authorities.",
        },
    },
    Check {
        id: SAME_ADDRESS,
        slug: "agent-has-one-address",
        title: "an agent dials the same address of its hub before and after it was let in",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The Secrets `bootstrap-hub-kubeconfig` and `hub-kubeconfig-secret` name different addresses or \
                    proxies. The agent registers again, and its request has to be accepted again although the cluster \
                    is accepted.",
            happens: "Address or proxy was changed by another join.",
            mend: "Accept the new request: `kubectl ocm accept NAME`.",
            mended: "Both Secrets name the same address and the same proxy.",
        },
    },
    Check {
        id: GRPC_BUNDLE,
        slug: "grpc-bundle",
        title: "agents that register over gRPC trust the hub's present signer",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "`caData` in `config.yaml` of the agent's Secret lacks the authority with which the hub signs \
                    now. When the gRPC server's certificate is renewed, the agent loses its hub.",
            happens: "The hub's signer was replaced since the cluster joined; nothing carries the new one to agents.",
            mend: "Join the cluster again, so that it gets the bundle of now.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: REPORTED_AUTHORITY,
        slug: "hub-has-the-clusters-authority",
        title: "the hub has an authority of the API server of each managed cluster",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "None of the authorities in `spec.managedClusterClientConfigs` of the ManagedCluster is one that the \
                    cluster itself publishes for its API server, in the ConfigMap `kube-root-ca.crt`. Whatever reaches \
                    the cluster by that address, such as an add-on on the hub, ends the connection with `x509: \
                    certificate signed by unknown authority`.",
            happens: "The authority of the managed cluster was replaced: agents report it when they register, and again \
                      only when the number of addresses changes. Or a load balancer in front of the API server \
                      presents a certificate of its own: where it answers from where the command runs, and the hub's \
                      authority vouches for it, all is well; where it does not answer, suppress this.",
            mend: "Put the present authority into `caBundle` of the entry: `kubectl edit managedcluster NAME` on the \
                   hub. Where the Klusterlet names external addresses with authorities of their own, correct \
                   `spec.externalServerURLs` there as well.",
            mended: "`kubectl ocm tls-check` of both clusters has no such finding.",
        },
    },
    Check {
        id: HOSTED_AUTHORITY,
        slug: "hosted-has-one-authority",
        title: "what works on another cluster trusts the authorities that its operator has",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "A kubeconfig that the operator has made for a hosted agent, or for a controller of a hosted hub, has other \
                    authorities than the one that it was made of: `external-managed-kubeconfig` or `external-hub-kubeconfig`.",
            happens: "The authority of the API server there was replaced in one of the Secrets, and the operator, which carries it \
                      over, does not run or cannot reach that cluster.",
            mend: "See in the operator's log why it makes no new one: `kubectl logs --namespace open-cluster-management \
                   deployment/klusterlet`, of a hosted hub `deployment/cluster-manager`.",
            mended: "The Secrets have the same authorities.",
        },
    },
    Check {
        id: VERSION,
        slug: "tls-version",
        title: "servers accept no older version of TLS than the profile allows",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The server agreed on a version of TLS that is older than the oldest one of the profile. TLS 1.0 to \
                    1.3 are tried.",
            happens: "The server has no setting for it, or does not follow it: operators and agents up to 1.3 ignore \
                      the profile for their own port 8443.",
            mend: "Set `minTLSVersion` in the ConfigMap `ocm-tls-profile` of the operator's namespace; for API \
                   servers, `--tls-min-version`.",
            mended: "`kubectl ocm tls-check --profile modern` has no such finding.",
        },
    },
    Check {
        id: SETTINGS,
        slug: "tls-settings",
        title: "the TLS profile of the hub is one that servers can follow",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "The ConfigMap `ocm-tls-profile` has a version or a cipher suite that there is not, that is \
                    broken, or that counts for nothing; or lacks one that servers need. Servers of Open Cluster \
                    Management do not start with names that they do not know, nor without a cipher suite that HTTP/2 \
                    asks for; with none that is for the kind of their certificate they accept TLS 1.3 alone.",
            happens: "Names are those of OpenSSL instead of IANA's, or a word was mistyped, or a list was made for \
                      certificates of another kind.",
            mend: "Correct the ConfigMap. The hub's operator restarts itself when it changes.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: SETTINGS_PLACE,
        slug: "tls-settings-are-read",
        title: "the TLS profile is where the operator reads it",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "A ConfigMap `ocm-tls-profile` is in a namespace in which no operator looks for it.",
            happens: "It was created beside the hub's Deployments or the agents. Operators read their own namespace, \
                      `open-cluster-management`.",
            mend: "Create it in the namespace of the operator.",
            mended: "`kubectl ocm tls-check` has no such finding.",
        },
    },
    Check {
        id: CIPHERS,
        slug: "tls-ciphers",
        title: "servers accept the cipher suites of the profile alone",
        category: Category::Tls,
        severity: Severity::Warning,
        inputs: &[],
        after: &[],
        rule: Rule::Certificates,
        page: Page {
            means: "By TLS 1.2 the server accepts cipher suites that the profile does not have, or that `cipherSuites` of the \
                    ConfigMap `ocm-tls-profile` does not name, where that is for the server. It was asked for each. A client that \
                    has no better one agrees on it: without a key exchange of its own (`TLS_RSA_WITH_…`) everything that was \
                    recorded can be read by whoever gets the server's key one day; RC4, DES, 3DES, `NULL` and `EXPORT` are broken. \
                    The suites of TLS 1.3 are the same in every profile, and are not looked at.",
            happens: "The server has no setting for it, or was not restarted since the profile was changed; it was built with Go \
                      before 1.23, which has more by default; a load balancer or a proxy serves old clients, too; \
                      `--profile intermediate` is stricter than what servers written in Go have by default; with \
                      `--profile ocm` servers are asked, too, that are none of Open Cluster Management.",
            mend: "Set the cipher suites of the server: `cipherSuites` in the ConfigMap `ocm-tls-profile` of the operator's \
                   namespace for those of Open Cluster Management, `--tls-cipher-suites` for API servers, the policy of a load \
                   balancer. Then restart it.",
            mended: "`kubectl ocm tls-check` with the same `--profile` has no such finding.",
        },
    },
];
