//! The whole file: its hub and its clusters, each with the defaults, checked against each other.

use super::cluster::{self, Member};
use super::fields::Files;
use super::file::{self, API_VERSION, Entry, File, KIND};
use super::hub::{self, Hub};
use super::wrong::{Place, Wrong};

/// What a fleet file says, checked as far as it can be without a cluster.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The hub.
    pub hub: Hub,
    /// Its clusters, in the order of the file.
    pub members: Vec<Member>,
}

/// Reads a fleet file. Of several documents, or of another kind, there is none.
///
/// # Errors
/// What is wrong, never nothing: of the file and its hub the first thing, and then of each cluster the first thing. Each has its
/// line or its field, and what was probably meant.
pub fn read(text: &str, files: Files<'_>) -> Result<Fleet, Vec<Wrong>> {
    let Whole { hub, defaults, clusters } = whole(text, files).map_err(|wrong| vec![wrong])?;
    let (mut members, mut wrong) = (Vec::new(), Vec::new());
    for (entry, place) in clusters {
        match member(entry, &defaults, &place, &members, files) {
            Ok(member) => members.push(member),
            Err(of_cluster) => wrong.push(of_cluster),
        }
    }
    if wrong.is_empty() { Ok(Fleet { hub, members }) } else { Err(wrong) }
}

/// The file, of which all but the clusters is checked.
struct Whole {
    hub: Hub,
    defaults: Entry,
    clusters: Vec<(Entry, Place)>,
}

fn whole(text: &str, files: Files<'_>) -> Result<Whole, Wrong> {
    let (File { api_version, kind, hub, defaults, clusters }, lines) = file::parse(text)?;
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
        return Err(Wrong::new(format!("it is a {kind} of {api_version}, and no {KIND} of {API_VERSION}")));
    }
    let hub = hub::read(hub, files)?;
    cluster::check_defaults(&defaults)?;
    if clusters.is_empty() {
        return Err(Place::of("clusters", None).wrong("", "there are none"));
    }
    let placed = clusters.into_iter().enumerate().map(|(index, entry)| {
        let line = lines.get(index).copied().filter(|line| *line > 0);
        (entry, Place::of(format!("clusters[{index}]"), line))
    });
    Ok(Whole { hub, defaults, clusters: placed.collect() })
}

/// A cluster that goes with those before it.
fn member(entry: Entry, defaults: &Entry, place: &Place, before: &[Member], files: Files<'_>) -> Result<Member, Wrong> {
    cluster::check_named(&entry, defaults, place)?;
    cluster::check_hosted(&entry, defaults, place)?;
    let member = cluster::read(entry.over(defaults), place, files)?;
    let name = &member.settings.name;
    if before.iter().any(|other| other.settings.name == *name) {
        return Err(place.wrong("name", format!("there are two clusters {name:?}")));
    }
    let joining = member.joining().place();
    if let Some(other) = before.iter().find(|other| other.joining().place() == joining) {
        let why = format!("it is the same cluster as {:?}: they have one kubeconfig and context", other.settings.name);
        return Err(place.wrong("", why));
    }
    Ok(member)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ocm_api::operator::{AddOnAuthType, KlusterletMode, RegistrationAuthType};

    use super::*;
    use crate::Hint;
    use crate::join::proxy::AgentProxy;
    use crate::release::Component;

    const HEAD: &str = "apiVersion: kubectl-ocm.dev/v1alpha1\nkind: Fleet\n";

    /// Reads what stands behind the head; the only file that there is holds registry credentials.
    fn fleet(text: &str) -> Result<Fleet, Vec<Wrong>> {
        let mut files = |path: &str| match path {
            "auth.json" => Ok(br#"{"auths": {"registry.example": {"auth": "c2VjcmV0"}}}"#.to_vec()),
            _ => Err("no such file".to_owned()),
        };
        read(&format!("{HEAD}{text}"), &mut files)
    }

    fn said(text: &str) -> (String, String) {
        let mut all = fleet(text).unwrap_err();
        assert_eq!(all.len(), 1, "{all:?}");
        let wrong = all.remove(0);
        let hint = match wrong.hint.as_deref() {
            Some(Hint::Text(text)) => text.clone(),
            Some(Hint::Remedy(remedy)) => format!("{remedy:?}"),
            None => String::new(),
        };
        (wrong.to_string(), hint)
    }

    const TWO: &str =
        "hub: {context: hub, install: {}}\nclusters:\n- {name: c1, context: c1}\n- {name: c2, context: c2}\n";

    #[test]
    fn what_is_not_said_is_as_for_one_cluster_that_is_accepted() {
        let Fleet { hub, members } = fleet(TWO).unwrap();
        assert!(hub.install.is_some_and(|options| options.create_namespace && options.bundle.is_none()));
        assert_eq!(hub.access.context.as_deref(), Some("hub"));
        let [one, two] = members.as_slice() else { panic!("{members:?}") };
        assert_eq!((one.settings.name.as_str(), two.settings.name.as_str()), ("c1", "c2"));
        assert!(one.accept && !one.itself && !one.adopt_namespace && one.settings.create_namespace);
        assert!(one.settings.mode.is_none() && one.settings.driver.is_none() && one.proxy == AgentProxy::AsItIs);
        let there = TWO.replace(", install: {}", "");
        assert!(fleet(&there).unwrap().hub.install.is_none(), "a hub that is there is not installed");
    }

    #[test]
    fn a_cluster_says_more_than_the_defaults() {
        let text = "hub: {context: hub}\n\
            defaults: {mode: singleton, clusterSet: all, labels: {env: test, team: a}, kubeconfig: all.yaml,\n  \
              featureGates: {ClusterClaim: false}, tolerations: ['a:NoSchedule'], imagePullCredentialFile: auth.json}\n\
            clusters:\n\
            - {name: c1, context: c1}\n\
            - {name: c2, context: c2, mode: default, clusterSet: other, labels: {env: prod}, tolerations: []}\n";
        let members = fleet(text).unwrap().members;
        let labels = |member: &Member| member.labels.clone();
        let map = |pairs: [(&str, &str); 2]| -> BTreeMap<String, String> {
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        };
        assert_eq!(members[0].settings.mode, Some(KlusterletMode::Singleton));
        assert_eq!(members[1].settings.mode, Some(KlusterletMode::Default));
        assert_eq!(labels(&members[0]), map([("env", "test"), ("team", "a")]));
        assert_eq!(labels(&members[1]), map([("env", "prod"), ("team", "a")]));
        assert_eq!(members[0].settings.scheduling.tolerations.len(), 1);
        assert!(members[1].settings.scheduling.tolerations.is_empty());
        assert_eq!(members[0].cluster_set.as_deref(), Some("all"));
        assert_eq!(members[1].cluster_set.as_deref(), Some("other"));
        for member in &members {
            assert_eq!(member.access.kubeconfig.as_deref(), Some("all.yaml"));
            assert_eq!(
                member.settings.feature_gates.iter().map(|(gate, on)| (gate.name, *on)).collect::<Vec<_>>(),
                [("ClusterClaim", false)]
            );
            assert!(member.settings.pull_credentials.is_some() && !format!("{member:?}").contains("c2VjcmV0"));
        }
    }

    #[test]
    fn fields_that_are_not_known_are_named_with_their_line_and_what_was_meant() {
        let (why, hint) = said("hub: {context: hub}\nclusters:\n- name: c1\n  context: c1\n  lables: {a: b}\n");
        assert!(why.starts_with("line 7: ") && why.contains("\"lables\""), "{why}");
        assert_eq!(hint, "did you mean labels?");
        let (why, hint) = said("hub:\n  context: hub\n  instal: {}\nclusters: []\n");
        assert!(why.starts_with("line 5: "), "{why}");
        assert_eq!(hint, "did you mean install?");
        let (why, hint) = said("hub: {context: hub}\nclusters: [{name: c1, context: c1, mode: hostd}]\n");
        assert!(why.contains("\"hostd\""), "{why}");
        assert_eq!(hint, "did you mean hosted?");
        let (_, hint) = said("hub: {context: hub, zzzzzzzz: 1}\nclusters: []\n");
        assert!(hint.starts_with("there are: ") && hint.contains("install"), "{hint}");
    }

    #[test]
    fn what_cannot_be_is_named_by_its_field() {
        let cluster =
            |members: &str| format!("hub: {{context: hub}}\nclusters:\n- {{name: c1, context: c1, {members}}}\n");
        for (members, field) in [
            ("bundleVersion: newest", "clusters[0].bundleVersion"),
            ("registry: 'https://registry.example'", "clusters[0].registry"),
            ("labels: {'a b': c}", "clusters[0].labels"),
            ("labels: {cluster.open-cluster-management.io/clusterset: x}", "clusters[0].labels"),
            ("clusterSet: A", "clusters[0].clusterSet"),
            ("featureGates: {ClusterClaims: true}", "clusters[0].featureGates"),
            ("clientCertExpirationSeconds: 600", "clusters[0].clientCertExpirationSeconds"),
            ("resources: {limits: {cpu: 1}}", "clusters[0].resources"),
            ("tolerations: ['a:Never']", "clusters[0].tolerations"),
            ("nodeSelector: {'': b}", "clusters[0].nodeSelector"),
            ("priorityClass: A_b", "clusters[0].priorityClass"),
            ("proxyUrl: 'socks5://me:s3cr@proxy.example'", "clusters[0].proxyUrl"),
            ("proxyCaFile: ca.crt", "clusters[0].proxyCaFile"),
            ("grpcServer: 'hub:443'", "clusters[0].grpcServer"),
            ("registrationAuth: grpc, grpcCaFile: missing", "clusters[0].grpcCaFile"),
            ("registrationAuth: awsirsa, accept: false", "clusters[0].registrationAuth"),
            ("mode: hosted", "clusters[0].managed"),
            ("managed: {context: c2}", "clusters[0].managed"),
            ("managedInternalAddress: true", "clusters[0].managedInternalAddress"),
            ("mode: singleton, managedInternalAddress: true", "clusters[0].managedInternalAddress"),
            ("asGroups: [g]", "clusters[0].asGroups"),
            ("imagePullCredentialFile: missing", "clusters[0].imagePullCredentialFile"),
            ("imageDigests: {work: latest}", "clusters[0].imageDigests"),
            ("imageDigests: {worc: x}", "clusters[0].imageDigests"),
            ("values: {workConfiguration: 1}", "clusters[0].values"),
            ("values: {deployOption: {mode: Hosted}}", "clusters[0].values"),
            ("hostAlias: hub.example", "clusters[0].hostAlias"),
            ("addonTokenExpirationSeconds: 3600", "clusters[0].addonTokenExpirationSeconds"),
        ] {
            let (why, _) = said(&cluster(members));
            assert!(why.starts_with(&format!("line 5: {field}: ")), "{members}: {why}");
            assert!(!why.contains("s3cr"), "{why}");
        }
        for (text, part) in [
            ("hub: {}\nclusters: [{name: c1, context: c1}]\n", "hub.context: "),
            ("hub: {context: hub}\nclusters: []\n", "clusters: "),
            ("hub: {context: hub}\nclusters: [{context: c1}]\n", "clusters[0].name: "),
            ("hub: {context: hub}\nclusters: [{name: kube-system, context: c1}]\n", "clusters[0].name: "),
            ("hub: {context: hub}\nclusters: [{name: c1}]\n", "clusters[0].context: "),
            (
                "hub: {context: hub}\ndefaults: {kubeconfig: all.yaml}\nclusters: [{name: c1}]\n",
                "clusters[0].context: in the kubeconfig of all clusters",
            ),
            ("hub: {context: hub}\ndefaults: {name: x}\nclusters: [{name: c1, context: c1}]\n", "defaults.name: "),
            ("hub: {context: hub}\nclusters: [{name: a, context: c1}, {name: a, context: c2}]\n", "clusters[1].name: "),
            ("hub: {context: hub}\nclusters: [{name: a, context: c}, {name: b, context: c}]\n", "clusters[1]: "),
            ("hub: {context: hub, install: {images: {works: x}}}\nclusters: []\n", "hub.install.images: "),
            ("hub: {context: hub, install: {registry: 'https://x'}}\nclusters: []\n", "hub.install.registry: "),
        ] {
            let (why, _) = said(text);
            assert!(why.contains(part), "{text}: {why}");
        }
        let other = read("apiVersion: v1\nkind: Config\nhub: {}\nclusters: []\n", &mut |_| Ok(Vec::new())).unwrap_err();
        assert!(matches!(other.as_slice(), [only] if only.to_string().contains("no Fleet")), "{other:?}");
    }

    #[test]
    fn every_cluster_that_cannot_join_is_told_at_once() {
        let text = "hub: {context: hub}\nclusters:\n- {name: C_1, context: c1}\n- {name: c2, context: c2}\n\
            - {name: kube-system, context: c3}\n- {name: c2, context: c4}\n- {name: c5}\n";
        let said: Vec<String> = fleet(text).unwrap_err().iter().map(ToString::to_string).collect();
        let expected = [
            "line 5: clusters[0].name: \"C_1\" cannot be the name of a managed cluster",
            "line 7: clusters[2].name: \"kube-system\" cannot be the name of a managed cluster: the hub or Kubernetes uses",
            "line 8: clusters[3].name: there are two clusters \"c2\"",
            "line 9: clusters[4].context: nothing says which cluster it is",
        ];
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        assert!(said.iter().zip(expected).all(|(said, start)| said.starts_with(start)), "{said:#?}");
    }

    #[test]
    fn digests_values_and_how_addons_register_are_read() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let text = format!(
            "hub: {{context: hub, install: {{values: {{workConfiguration: {{workDriver: kube}}}}}}}}\n\
             defaults: {{imageDigests: {{registration: '{digest}', work: '{digest}', registration-operator: '{digest}'}},\n  \
               values: {{registrationConfiguration: {{kubeAPIQPS: 60}}}}, hostAlias: '192.0.2.10=hub.example'}}\n\
             clusters:\n- {{name: c1, context: c1, addonKubeclientRegistrationAuth: token}}\n"
        );
        let Fleet { hub, members } = fleet(&text).unwrap();
        assert!(!hub.install.unwrap().values.is_empty());
        let settings = &members[0].settings;
        assert_eq!(settings.digests.of(Component::Work), Some(digest.as_str()));
        assert_eq!(settings.values.spec()["registrationConfiguration"]["kubeAPIQPS"], 60);
        assert_eq!(settings.host_alias.as_ref().map(|alias| alias.ip.as_str()), Some("192.0.2.10"));
        let driver = settings.addon_driver.as_ref().and_then(|driver| driver.auth_type.clone());
        assert_eq!(driver, Some(AddOnAuthType::Token));
        let lacking = text.replace(&format!(", work: '{digest}'"), "");
        assert!(said(&lacking).0.contains("it has no digest of work"), "{lacking}");
    }

    #[test]
    fn hosted_clusters_share_the_one_that_hosts_them() {
        let text = "hub: {context: hub}\ndefaults: {mode: hosted, registrationAuth: grpc, grpcServer: 'hub.example:443'}\n\
            clusters:\n\
            - {name: c1, context: hosting, managed: {context: c1}, managedInternalAddress: true}\n\
            - {name: c2, context: hosting, managed: {kubeconfig: c2.yaml, as: me, asGroups: [g]}}\n";
        let members = fleet(text).unwrap().members;
        assert!(members.iter().all(|member| member.settings.is_hosted() && member.by_grpc()));
        assert_eq!(members[1].joining().kubeconfig.as_deref(), Some("c2.yaml"));
        assert_eq!(members[1].joining().as_groups, ["g"]);
        assert_eq!(members.iter().map(|member| member.internal_managed).collect::<Vec<_>>(), [true, false]);
        // A context that stands alone is one of the kubeconfig beside it.
        let in_one = "hub: {context: hub}\ndefaults: {mode: hosted, kubeconfig: fleet.yaml}\nclusters:\n\
            - {name: c1, context: hosting, managed: {context: c1}}\n\
            - {name: c2, context: hosting, managed: {kubeconfig: c2.yaml, context: c2}}\n\
            - {name: c3, context: hosting, kubeconfig: own.yaml, managed: {context: c3}}\n";
        let of_one = fleet(in_one).unwrap().members;
        let kubeconfigs: Vec<_> = of_one.iter().map(|member| member.joining().kubeconfig.as_deref()).collect();
        assert_eq!(kubeconfigs, [Some("fleet.yaml"), Some("c2.yaml"), Some("own.yaml")]);
        let twice = "hub: {context: hub}\ndefaults: {mode: hosted, kubeconfig: fleet.yaml}\nclusters:\n\
            - {name: c1, context: hosting, managed: {context: c1}}\n- {name: c2, context: c1, mode: default}\n";
        assert!(said(twice).0.contains("clusters[1]"), "{:?}", said(twice));
        let of_all = "hub: {context: hub}\ndefaults: {managedInternalAddress: true}\nclusters:\n- {name: c1, context: c1}\n\
            - {name: c2, context: c1, mode: hosted, managed: {context: c2}}\n";
        let internal: Vec<bool> = fleet(of_all).unwrap().members.iter().map(|member| member.internal_managed).collect();
        assert_eq!(internal, [false, true], "the defaults are for those that are hosted");
        let driver = members[0].settings.driver.as_ref().map(|driver| driver.auth_type.clone());
        assert_eq!(driver, Some(RegistrationAuthType::Grpc));
        assert_eq!(members[0].grpc.server, Some(("hub.example".to_owned(), Some(443))));
    }

    #[test]
    fn a_cluster_that_chooses_otherwise_does_without_what_goes_with_the_defaults() {
        let text = "hub: {context: hub}\n\
            defaults: {registrationAuth: grpc, grpcServer: hub.example, addonKubeclientRegistrationAuth: token, \
            addonTokenExpirationSeconds: 7200, proxyUrl: 'https://proxy.example:3129', proxyCaFile: proxy.crt}\n\
            clusters:\n\
            - {name: c1, context: c1, registrationAuth: csr, addonKubeclientRegistrationAuth: csr, proxyUrl: ''}\n\
            - {name: c2, context: c2, registrationAuth: csr, proxyUrl: 'http://other.example:3128'}\n";
        let members = fleet(text).unwrap().members;
        assert!(members.iter().all(|member| !member.by_grpc() && member.grpc.server.is_none()));
        assert_eq!(members[0].proxy, AgentProxy::Without);
        assert!(matches!(&members[1].proxy, AgentProxy::Through { ca, .. } if ca.is_empty()));
        // What it says itself is refused as ever.
        let own = text.replace("proxyUrl: ''", "proxyUrl: '', proxyCaFile: own.crt");
        assert!(said(&own).0.contains("proxyCaFile"), "{:?}", said(&own));
    }
}
