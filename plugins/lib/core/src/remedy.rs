//! What would help where a command failed. Rules and flows name it; whoever reads the command line puts it into words.

/// Which of the clusters that a command talks to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The one that the command is about.
    #[default]
    Target,
    /// The hub, of a command that is about another cluster.
    Hub,
    /// The hub that a cluster leaves, of a command that brings the cluster to another one.
    FormerHub,
    /// The managed cluster, of a command that is about the one where its agents run.
    Managed,
}

/// What would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Say which kubeconfig is meant.
    Kubeconfig(Role),
    /// Say which context is meant.
    Context {
        /// Of which cluster.
        role: Role,
        /// Those that there are.
        known: Vec<String>,
    },
    /// This context was probably meant.
    SimilarContext(Role, String),
    /// Name a user that the kubeconfig has.
    User(Role),
    /// Name a cluster that the kubeconfig has.
    Cluster(Role),
    /// Name the hub, or make this cluster one.
    NameHub,
    /// Make this cluster a hub.
    InstallHub,
    /// Leave the hub's installation out of a fleet file, and install the hub by itself.
    InstallHubApart,
    /// Install the hub again when what is left of it is gone.
    ReinstallHub,
    /// Have the hub's operator back.
    RestoreHubOperator,
    /// Have the hub's operator back, and do the same again.
    RestoreHubOperatorFirst,
    /// Have an operator on the hub that takes all of it away.
    UninstallByOperator,
    /// Keep the hub, and let clusters register there again.
    KeepHub,
    /// Take this part of the hub away first: the word by which it is uninstalled.
    UninstallFirst(String),
    /// Name the hub that is hosted here, or take it away.
    UninstallOtherHub,
    /// Name the cluster that hosts the hub, or take the hub away there.
    UninstallAtHosting,
    /// Bring the hub to a release that knows more.
    NewerHub,
    /// Have the operator of the agents back.
    RestoreKlusterletOperator,
    /// Have the hub let clusters register again: its installation gives them the rights.
    RestoreRegistering,
    /// Have an administrator of the hub accept a cluster of this name that it has denied.
    AcceptDenied(String),
    /// Make a new token on the hub that has not accepted this one.
    NewToken,
    /// Make a new token on the hub in the place of one that has expired.
    ReplaceExpiredToken,
    /// See which tokens the hub has, and make a new one.
    OtherToken,
    /// See which tokens the hub has.
    ListTokens,
    /// Take the CA of the hub and its pin from the same place.
    CaAndPin,
    /// Compare the pin of the hub's CA with what the hub says now.
    ComparePin,
    /// Say which cluster leaves.
    NameLeaving,
    /// Install the policy engine again.
    ReinstallPolicyEngine,
    /// Name a hub that has a policy engine, or install it.
    InstallPolicyEngine,
    /// See whether the policy controller runs.
    PolicyController,
    /// Put module or settings of a HubPolicy right, and apply it again.
    MendPolicy,
    /// Have a HubPolicy loaded from a module that judges what was judged before, or say in it what it is to be asked about.
    PolicyOperations,
    /// Have the API server ask no policy any more.
    PoliciesOutOfForce,
    /// Have the API server ask policies again although somebody has taken them out of force.
    PoliciesInForce,
    /// Have a policy refuse nothing while the agents of a cluster change.
    DisablePolicyMeanwhile {
        /// Name of the policy.
        policy: String,
        /// Name of the cluster.
        cluster: String,
    },
    /// Enable the HubPolicy of this name again.
    EnablePolicy(String),
    /// See what each registration waits for.
    Registrations,
    /// Install the static baseline on this hub.
    InstallBaseline,
    /// See on the hub what its start waits for.
    HubStart,
    /// Give the certificate of the hub's CA.
    HubCa,
    /// Give the pin of the hub's CA.
    HubPin,
    /// Believe a server that nobody verifies.
    SkipVerification(Role),
    /// Name an address of the hub at which agents reach it.
    HubAddress,
    /// Name the address at which agents reach the hub's gRPC server.
    GrpcAddress,
    /// Give the certificate of the CA of the hub's gRPC server.
    GrpcCa,
    /// Let clusters register at the hub by this driver, too.
    OfferDriver(String),
    /// Let agents dial the address that the hub publishes.
    PublishedAddress,
    /// Make a new token for that address of the hub.
    TokenForAddress,
    /// Make a bootstrap token instead, which may live as shortly as wished.
    BootstrapToken,
    /// Make another bootstrap token.
    NewBootstrapToken,
    /// Let the cluster have the namespace of its name that is on the hub.
    AdoptNamespace,
    /// Compare with the agent's log, and accept the cluster of this name with the agent's key.
    AcceptKey(String),
    /// Give the name of a cluster that has joined to another key of it: its name, and the key (`sha256:` and 64 hex digits).
    ReplaceKey(String, String),
    /// Have the agent of this cluster ask, and a person give it the cluster's name.
    LeaveToPerson(String),
    /// Let the cluster of this name in.
    Accept(String),
    /// Have a fleet file accept no cluster that has an identity of AWS, and accept it when the IAM role of its agent is there.
    AcceptWithRole,
    /// Look at why the cluster of this name is not let in, with the key that is meant.
    ExplainAcceptance(String, Option<String>),
    /// Say that one approves the cluster of this name, so that a policy counts it.
    ApproveOnly(String),
    /// Let the cluster of this name in past policies, in an emergency.
    BreakGlass(String),
    /// Look at the certificate requests for the cluster of this name.
    SeeRequests(String),
    /// Look at the policy of this name.
    SeePolicy(String),
    /// Say of several dumps which side each shows.
    NameSides,
    /// Say of the parts of a dump which side each shows.
    NameFolders,
    /// Say which side the dump of this name shows.
    NameSide(String),
    /// Look at the dump of this name as at a managed cluster.
    ReadAsManaged(String),
    /// Write a bundle, which holds both sides.
    WriteBundle,
    /// Dump the objects of a cluster.
    DumpObjects,
    /// Find out what is wrong.
    FindCause,
    /// Go on without what does not answer.
    Force,
    /// Say which cluster is meant.
    NameCluster,
    /// Name the hub that the agent belongs to.
    NameItsHub,
    /// Do the same with access to the hub, too.
    WithHub,
    /// Do the same without the hub, which is none any more.
    WithoutHub,
    /// Let what others have made go along.
    Purge,
    /// Join by this name, by which the hub knows the cluster already.
    KeepName(String),
    /// Take the agent away from the cluster of this name, with its hub.
    Unjoin(String),
    /// Have the cluster go from the hub at this address to the one that is named.
    ChangeHub(String),
    /// Name the hub that the cluster leaves for another one.
    NameFormerHub,
    /// Take the agent away from the cluster of this name, and nothing from the hub, where the name is another one's by now.
    UnjoinAlone(String),
    /// Take the cluster of this name away from its hub.
    Detach(String),
    /// Take the cluster of this name away from its hub, if a run that took it off was interrupted.
    GoOnAtHub(String),
    /// Say which Klusterlet is meant.
    NameKlusterlet,
    /// Say what becomes of objects that works have put on the cluster.
    SayWorks,
    /// Say that an older release is wanted.
    AllowDowngrade,
    /// Go back to this older release of the hub.
    DowngradeHub(String),
    /// Upgrade the hub to this release first.
    UpgradeHub(String),
    /// Store the objects of a definition anew, and note that none is stored in another version any more.
    RewriteStored {
        /// Name of the definition.
        definition: String,
        /// The versions that may be stored afterwards.
        keep: Vec<String>,
    },
    /// Make the namespace, too.
    CreateNamespace,
    /// Bind a set of clusters to a namespace.
    BindSet {
        /// Name of the set.
        set: String,
        /// The namespace.
        namespace: String,
        /// The context of the hub, if it was reached by one.
        context: Option<String>,
    },
    /// Put a cluster into a set although somebody has put it into another.
    PutIntoSet {
        /// Name of the set.
        set: String,
        /// Name of the cluster.
        cluster: String,
    },
    /// Put clusters into another set.
    PutIntoAnotherSet,
    /// Take clusters and bindings away from the set of this name, or let the command do it.
    EmptySet(String),
    /// The same command goes on where this one has stopped.
    RunAgain,
    /// Replace what others have written.
    Overwrite,
    /// See what became of each object of the work of this name.
    ExplainWork(String),
    /// See what a placement makes of each cluster.
    ExplainPlacement {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// See which placements there are.
    SeePlacements,
    /// See what keeps add-ons from being well.
    SeeAddOns,
    /// Turn the feature gate of this name on, on the hub.
    EnableGate(&'static str),
    /// Enable an add-on that nothing on the hub defines.
    WithoutDefinition,
    /// Enable an add-on on a cluster first.
    EnableAddOn {
        /// Its name.
        name: String,
        /// The cluster.
        cluster: String,
    },
    /// Disable an add-on on clusters first.
    DisableAddOn {
        /// Its name.
        name: String,
        /// The clusters, with commas between them.
        clusters: String,
    },
    /// Take it away although clusters have it.
    WithClusters,
    /// Uninstall the hub's side of add-ons of this name.
    UninstallHubAddOn(String),
    /// Put the settings into the configuration of this namespace and name, which is referred to already.
    IntoConfiguration(String),
    /// Make a configuration of this kind, `RESOURCE.GROUP`, or see which there are.
    MakeConfiguration(String),
    /// Have an add-on refer no longer to those configurations of a kind that are to go.
    UnsetConfigurations {
        /// Its name.
        name: String,
        /// The kind, `RESOURCE.GROUP`.
        kind: String,
    },
    /// Have the add-on of this name refer to another template, in the place of the one that is to go.
    SetTemplate(String),
    /// Say which ManagedServiceAccount is meant, or make one.
    NameAccount,
    /// See what a ManagedServiceAccount lacks.
    SeeAccount {
        /// Its name.
        name: String,
        /// The cluster that it is of.
        cluster: String,
    },
    /// See which ManagedServiceAccounts the cluster of this name has.
    SeeAccounts(String),
    /// See what keeps the proxy to managed clusters from working.
    SeeProxy,
    /// See on the hub what its proxy servers do.
    SeeProxyServers,
    /// See on the managed cluster what the agents of cluster-proxy do, in their namespace, if that is known.
    SeeProxyAgents(Option<String>),
    /// See the managed cluster of this name as the hub has it.
    SeeCluster(String),
    /// See on the hub whether its webhooks run.
    SeeWebhooks,
    /// See an object.
    SeeObject {
        /// The plural of its kind.
        resource: String,
        /// Its name.
        name: String,
    },
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// In words, for every command the same.
    Text(String),
    /// To be put into words by the command.
    Remedy(Remedy),
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Remedy> for Hint {
    fn from(remedy: Remedy) -> Self {
        Self::Remedy(remedy)
    }
}

impl PartialEq<&str> for Hint {
    fn eq(&self, text: &&str) -> bool {
        matches!(self, Self::Text(own) if own == text)
    }
}
