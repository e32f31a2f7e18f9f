//! What the cluster belongs to already, and whether that is in the way.

use jiff::{SignedDuration, Timestamp};
use ocm_api::Klusterlet;
use ocm_api::names::operators;
use ocm_api::operator::{KlusterletMode, RegistrationAuthType};

use super::agent::Agent;
use super::hosted;
use crate::kubeconfig::{Bootstrap, HubAddress, Likeness};
use crate::token::{self, Content};
use crate::{Failure, Remedy};

/// What was found on the cluster.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// All Klusterlets, on the cluster where the agents run.
    pub klusterlets: Vec<Klusterlet>,
    /// Whether that is another cluster than the one that joins.
    pub is_hosted: bool,
    /// The kubeconfig to register with.
    pub bootstrap: Option<Bootstrap>,
    /// The agent's own identity, once a hub has let it in.
    pub identity: Option<Identity>,
}

/// The agent's own identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The hub that gave it.
    pub hub: HubAddress,
    /// The name under which the hub knows the cluster.
    pub cluster: String,
    /// Until when its certificate is valid.
    pub expires: Option<Timestamp>,
}

/// How the cluster stands to the hub that it is to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belonging {
    /// It belongs to nobody.
    Nobody,
    /// A join to this hub under this name was begun and has not ended.
    Begun,
    /// It has joined this hub under this name.
    Joined,
}

/// The Klusterlet of the cluster itself: those in the hosted modes manage other clusters.
pub fn own(klusterlets: &[Klusterlet]) -> impl Iterator<Item = &Klusterlet> {
    klusterlets.iter().filter(|klusterlet| !klusterlet.mode().is_hosted())
}

impl Found {
    /// The Klusterlets that are of the cluster `name`: its own, or on a hosting cluster those that say its name.
    pub fn of_cluster<'a>(&'a self, name: &'a str) -> Vec<&'a Klusterlet> {
        match self.is_hosted {
            true => hosted::of_cluster(&self.klusterlets, name).collect(),
            false => own(&self.klusterlets).collect(),
        }
    }

    /// The Klusterlet of another cluster that has the name which this one's would get.
    fn in_the_way(&self, name: &str) -> Option<&Klusterlet> {
        let wanted = match self.is_hosted {
            true => hosted::klusterlet_name(name),
            false => operators::KLUSTERLET_OBJECT.to_owned(),
        };
        self.klusterlets.iter().find(|klusterlet| name_of(klusterlet) == wanted)
    }
}

fn name_of(klusterlet: &Klusterlet) -> &str {
    klusterlet.metadata.name.as_deref().unwrap_or_default()
}

/// The Klusterlet of another cluster has the name that this cluster's would get.
fn taken(other: &Klusterlet, label: &str) -> Failure {
    let mode = other.mode();
    let of = other.spec.cluster_name.as_deref().filter(|name| !name.is_empty()).unwrap_or("of an unknown name");
    let there = if mode.is_hosted() { ", which is hosted there" } else { "" };
    Failure::refused(format!(
        "{label} has a Klusterlet {:?} in mode {}: it is the agent of cluster {of:?}{there}; nothing was changed",
        name_of(other),
        mode.as_str()
    ))
    .hint(format!("this cluster's Klusterlet would need that name: move {of:?} to a Klusterlet of another name first"))
}

/// Judges whether the cluster may join `hub` as `name`. `label` is how messages name the cluster.
///
/// # Errors
/// A refusal when it belongs to another hub, has another name, or is being detached.
pub fn belonging(
    found: &Found,
    name: &str,
    hub: &HubAddress,
    now: Timestamp,
    label: &str,
) -> Result<Belonging, Failure> {
    let of_cluster = found.of_cluster(name);
    let (first, second) = (of_cluster.first(), of_cluster.get(1));
    if let (Some(first), Some(second)) = (first, second) {
        let names = [first, second].map(|klusterlet| name_of(klusterlet).to_owned());
        return Err(Failure::refused(format!("{label} has several Klusterlets: {}", names.join(", ")))
            .hint("a cluster joins one hub; delete those that are not meant"));
    }
    let Some(klusterlet) = first else {
        return match found.in_the_way(name) {
            Some(other) => Err(taken(other, label)),
            None => Ok(Belonging::Nobody),
        };
    };
    let object = klusterlet.metadata.name.as_deref().unwrap_or_default();
    if klusterlet.metadata.deletion_timestamp.is_some() {
        return Err(Failure::refused(format!("{label} is being detached: its Klusterlet {object:?} is going away"))
            .hint("wait until it is gone, then run this again"));
    }
    // A certificate that has run out says where the cluster once belonged, but no longer lets it in.
    let identity = found.identity.as_ref();
    let current = identity.filter(|identity| identity.expires.is_none_or(|expires| expires > now));
    let known_as = klusterlet.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    let known_as = known_as.or(identity.map(|identity| identity.cluster.as_str()));
    let address = identity.map(|identity| &identity.hub).or(found.bootstrap.as_ref().map(|bootstrap| &bootstrap.hub));
    let likeness = address.map(|address| address.likeness(hub));
    let at = address.map_or("a hub", |address| address.server.as_str());
    let leave = Remedy::Unjoin(known_as.unwrap_or("CLUSTER").to_owned());
    match likeness {
        Some(Likeness::OtherHub) => {
            let verb = if current.is_some() { "has joined" } else { "is about to join" };
            let sentence = format!("{label} {verb} another hub, {at}; nothing was changed");
            return Err(Failure::refused(sentence).hint(Remedy::ChangeHub(at.to_owned())).hint(leave));
        }
        Some(Likeness::OtherCa) => {
            return Err(Failure::refused(format!(
                "{label} knows {at} with another CA: the hub's CA was replaced, or it is another hub; nothing was changed"
            ))
            .hint(leave));
        }
        _ => {}
    }
    if let Some(known_as) = known_as
        && known_as != name
    {
        let verb = if current.is_some() { "has joined this hub" } else { "is about to join this hub" };
        return Err(Failure::refused(format!("{label} {verb} as {known_as:?}, not as {name:?}; nothing was changed"))
            .hint(Remedy::KeepName(known_as.to_owned()))
            .hint(leave));
    }
    match current {
        Some(identity) if identity.cluster == name => Ok(Belonging::Joined),
        _ => Ok(Belonging::Begun),
    }
}

/// The mode that a cluster that has joined leaves for the one that was typed; none: it stays in the one that it has, as it does
/// where none was typed. `label` is how messages name the cluster.
///
/// # Errors
/// A refusal where its agents run on another cluster: what they leave there and here, nobody would take away.
pub fn moves_from(
    found: &Found,
    name: &str,
    wanted: Option<&KlusterletMode>,
    label: &str,
) -> Result<Option<KlusterletMode>, Failure> {
    let (Some(klusterlet), Some(wanted)) = (found.of_cluster(name).first().copied(), wanted) else { return Ok(None) };
    let mode = klusterlet.mode();
    if mode == *wanted {
        return Ok(None);
    }
    if mode.is_hosted() || wanted.is_hosted() {
        return Err(Failure::refused(format!(
            "{label} has joined in mode {mode}, and is not moved to {wanted} as it is: unjoin it first; nothing was changed"
        ))
        .hint(Remedy::Unjoin(name.to_owned())));
    }
    Ok(Some(mode))
}

/// The name that the agent of a cluster has in the mode that was typed, where its certificate is of another one: it takes that
/// for nobody's, and registers anew. In mode Singleton the name is the UID of the Klusterlet; of two agents, the one that
/// registers goes on with the name that it finds. `agent` is what is known of the agent until now. Upstream:
/// `klusterlet-agent-deployment.yaml`, `getOrGenerateClusterAgentID`.
pub fn renamed(found: &Found, cluster: &str, wanted: Option<&KlusterletMode>, agent: &Agent) -> Option<String> {
    let uid = found.of_cluster(cluster).first()?.metadata.uid.clone()?;
    let has_another = agent.key.is_some() && agent.name.as_deref().is_some_and(|name| name != uid);
    (wanted == Some(&KlusterletMode::Singleton) && has_another).then_some(uid)
}

/// The name that the one agent of a cluster is started under in the mode that was typed, or else in its own; none: it has two
/// agents, or is yet to get its Klusterlet. See [`Klusterlet::agent_name`].
pub fn started_as(found: &Found, cluster: &str, wanted: Option<&KlusterletMode>) -> Option<String> {
    let klusterlet = found.of_cluster(cluster).first().copied()?;
    let is_singleton = wanted.map_or_else(|| klusterlet.mode().is_singleton(), KlusterletMode::is_singleton);
    klusterlet.metadata.uid.clone().filter(|_| is_singleton)
}

/// Whether the agent of a cluster whose join to this hub has begun registers anew: the hub has heard of it already, and it holds no
/// certificate any more, because that has ended or its Secret is gone. What the hub says of the cluster is then of before, or of
/// somebody else. `has_joined` is whether the hub says that the cluster has joined.
pub fn asks_anew(has_joined: bool, agent: &Agent, driver: &RegistrationAuthType) -> bool {
    // With an identity of AWS it never has one.
    has_joined && agent.key.is_none() && *driver != RegistrationAuthType::AwsIrsa
}

/// A token with less than this left is replaced by one that lasts longer.
const SOON: SignedDuration = SignedDuration::from_mins(10);

/// Whether the kubeconfig that is there still serves, so that agents are not restarted for nothing.
///
/// `accepted` is whether the hub accepts its token; `offered` is the token that would replace it.
pub fn still_serves(
    there: &Bootstrap,
    hub: &HubAddress,
    accepted: bool,
    offered: Option<&str>,
    now: Timestamp,
) -> bool {
    if there.hub.likeness(hub) != Likeness::Same || there.hub.ca != hub.ca || there.hub.proxy != hub.proxy || !accepted
    {
        return false;
    }
    let expires = |token: &str| match token::read(token) {
        Content::Jwt { expires, .. } => expires,
        _ => None,
    };
    match (expires(&there.token), offered) {
        (None, _) => true,
        (Some(ends), _) if ends > now + SOON => true,
        (Some(ends), Some(offered)) => expires(offered).is_some_and(|offered| offered <= ends),
        // A new one can be made.
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ocm_api::operator::{KlusterletDeployOption, KlusterletSpec};

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn hub(server: &str, ca: &[u8]) -> HubAddress {
        HubAddress { server: server.to_owned(), ca: vec![ca.to_vec()], ..HubAddress::default() }
    }

    fn klusterlet(name: Option<&str>) -> Klusterlet {
        Klusterlet::new(
            "klusterlet",
            KlusterletSpec { cluster_name: name.map(str::to_owned), ..KlusterletSpec::default() },
        )
    }

    fn found(name: &str, address: HubAddress, joined: bool) -> Found {
        let identity = Identity { hub: address.clone(), cluster: name.to_owned(), expires: None };
        Found {
            klusterlets: vec![klusterlet(Some(name))],
            bootstrap: Some(Bootstrap { hub: address, token: "t".to_owned(), ..Bootstrap::default() }),
            identity: joined.then_some(identity),
            is_hosted: false,
        }
    }

    fn judge(found: &Found) -> Result<Belonging, Failure> {
        belonging(found, "c1", &hub("https://hub", b"ca"), NOW, "context \"a\"")
    }

    #[test]
    fn a_cluster_of_nobodys_may_join() {
        assert_eq!(judge(&Found::default()), Ok(Belonging::Nobody));
        let mut hosted = klusterlet(Some("other"));
        hosted.metadata.name = Some("klusterlet-hosted-x".to_owned());
        hosted.spec.deploy_option = Some(KlusterletDeployOption { mode: Some(KlusterletMode::Hosted) });
        assert_eq!(judge(&Found { klusterlets: vec![hosted], ..Found::default() }), Ok(Belonging::Nobody));
    }

    #[test]
    fn the_agent_of_a_hosted_cluster_is_not_overwritten() {
        for mode in [KlusterletMode::Hosted, KlusterletMode::SingletonHosted] {
            let word = mode.as_str().to_owned();
            let mut hosted = klusterlet(Some("other"));
            hosted.spec.deploy_option = Some(KlusterletDeployOption { mode: Some(mode) });
            let refused = judge(&Found { klusterlets: vec![hosted.clone()], ..Found::default() }).unwrap_err();
            assert_eq!(refused.reason, crate::Reason::Refused);
            let words = format!("a Klusterlet \"klusterlet\" in mode {word}: it is the agent of cluster \"other\"");
            assert!(refused.message.contains(&words), "{refused}");
            // Beside a Klusterlet of the cluster's own it is in nobody's way.
            let mut own = klusterlet(Some("c1"));
            own.metadata.name = Some("mine".to_owned());
            let both = Found { klusterlets: vec![hosted, own], ..Found::default() };
            assert_eq!(judge(&both), Ok(Belonging::Begun));
        }
    }

    #[test]
    fn a_hosted_cluster_goes_by_the_klusterlet_that_says_its_name() {
        let mode = |name: &str, of: &str, mode| {
            let mut klusterlet = klusterlet(Some(of));
            klusterlet.metadata.name = Some(name.to_owned());
            klusterlet.spec.deploy_option = Some(KlusterletDeployOption { mode: Some(mode) });
            klusterlet
        };
        let of = |klusterlets: Vec<Klusterlet>| {
            judge(&Found { klusterlets, is_hosted: true, ..Found::default() }).map_err(|failure| failure.message)
        };
        let host = mode("klusterlet", "c1", KlusterletMode::Default);
        let other = mode("klusterlet-hosted-c2", "c2", KlusterletMode::Hosted);
        assert_eq!(of(vec![host.clone(), other.clone()]), Ok(Belonging::Nobody));
        let foreign = mode("made-elsewhere", "c1", KlusterletMode::Hosted);
        assert_eq!(of(vec![host, other, foreign.clone()]), Ok(Belonging::Begun));
        let twice = of(vec![foreign, mode("klusterlet-hosted-c1", "c1", KlusterletMode::Hosted)]).unwrap_err();
        assert!(twice.contains("several Klusterlets: made-elsewhere, klusterlet-hosted-c1"), "{twice}");
        let taken = of(vec![mode("klusterlet-hosted-c1", "c9", KlusterletMode::Hosted)]).unwrap_err();
        assert!(taken.contains("it is the agent of cluster \"c9\", which is hosted there"), "{taken}");
        let taken = of(vec![mode("klusterlet-hosted-c1", "c1", KlusterletMode::Singleton)]).unwrap_err();
        assert!(taken.contains("in mode Singleton: it is the agent of cluster \"c1\";"), "{taken}");
    }

    #[test]
    fn the_same_hub_and_name_go_on_or_are_done() {
        assert_eq!(judge(&found("c1", hub("https://hub", b"ca"), false)), Ok(Belonging::Begun));
        assert_eq!(judge(&found("c1", hub("https://hub/", b"ca"), true)), Ok(Belonging::Joined));
        assert_eq!(judge(&found("c1", hub("https://10.0.0.1", b"ca"), true)), Ok(Belonging::Joined));
        let mut expired = found("c1", hub("https://hub", b"ca"), true);
        expired.identity.as_mut().unwrap().expires = Some(NOW);
        assert_eq!(judge(&expired), Ok(Belonging::Begun));
        assert_eq!(judge(&Found { klusterlets: vec![klusterlet(None)], ..Found::default() }), Ok(Belonging::Begun));
    }

    #[test]
    fn another_hub_or_name_is_refused_with_what_to_type() {
        let other_hub = judge(&found("c1", hub("https://other", b"x"), true)).unwrap_err();
        assert!(other_hub.message.contains("another hub, https://other"), "{other_hub}");
        assert_eq!(
            other_hub.hints,
            [crate::Hint::from(Remedy::ChangeHub("https://other".to_owned())), Remedy::Unjoin("c1".to_owned()).into()]
        );
        let other_ca = judge(&found("c1", hub("https://hub", b"x"), true)).unwrap_err();
        assert!(other_ca.message.contains("another CA"), "{other_ca}");
        let other_name = judge(&found("c2", hub("https://hub", b"ca"), true)).unwrap_err();
        assert!(other_name.message.contains("as \"c2\", not as \"c1\""), "{other_name}");
        assert_eq!(
            other_name.hints,
            [crate::Hint::from(Remedy::KeepName("c2".to_owned())), Remedy::Unjoin("c2".to_owned()).into()]
        );
        for failure in [other_hub, other_ca, other_name] {
            assert_eq!(failure.reason, crate::Reason::Refused);
        }
        let mut leaving = found("c1", hub("https://hub", b"ca"), true);
        leaving.klusterlets[0].metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
        assert!(judge(&leaving).unwrap_err().message.contains("being detached"));
        let twice = Found { klusterlets: vec![klusterlet(None), klusterlet(None)], ..Found::default() };
        assert!(judge(&twice).unwrap_err().message.contains("several"));
    }

    #[test]
    fn one_agent_for_all_has_the_name_of_the_klusterlet_and_registers_anew_where_its_certificate_is_of_another() {
        let mut klusterlet = klusterlet(Some("c1"));
        klusterlet.metadata.uid = Some("u1".to_owned());
        let found = Found { klusterlets: vec![klusterlet], ..Found::default() };
        let agent = |name: &str, key: Option<&str>| Agent {
            cluster: "c1".to_owned(),
            name: Some(name.to_owned()),
            key: key.map(str::to_owned),
        };
        let (singleton, default) = (KlusterletMode::Singleton, KlusterletMode::Default);
        let of = |wanted: Option<&KlusterletMode>, agent: &Agent| renamed(&found, "c1", wanted, agent);
        assert_eq!(of(Some(&singleton), &agent("a1", Some("k"))).as_deref(), Some("u1"));
        assert_eq!(of(Some(&singleton), &agent("u1", Some("k"))), None, "it has been there before");
        assert_eq!(of(Some(&singleton), &agent("a1", None)), None, "it comes without a certificate");
        assert_eq!(of(Some(&default), &agent("a1", Some("k"))), None);
        assert_eq!(of(None, &agent("a1", Some("k"))), None);
    }

    #[test]
    fn one_agent_for_all_is_started_as_its_klusterlet() {
        let mut found = found("c1", hub("https://hub", b"ca"), true);
        found.klusterlets[0].metadata.uid = Some("u1".to_owned());
        let of = |found: &Found, wanted: Option<KlusterletMode>| started_as(found, "c1", wanted.as_ref());
        assert_eq!(of(&found, Some(KlusterletMode::Singleton)).as_deref(), Some("u1"));
        assert_eq!(of(&found, Some(KlusterletMode::Default)), None);
        assert_eq!(of(&found, None), None);
        assert_eq!(found.klusterlets[0].agent_name(), None);
        for mode in [KlusterletMode::Singleton, KlusterletMode::SingletonHosted] {
            found.is_hosted = mode.is_hosted();
            found.klusterlets[0].spec.deploy_option = Some(KlusterletDeployOption { mode: Some(mode) });
            assert_eq!(of(&found, None).as_deref(), Some("u1"));
            assert_eq!(found.klusterlets[0].agent_name(), Some("u1"));
        }
        assert_eq!(of(&Found::default(), Some(KlusterletMode::Singleton)), None, "it has no Klusterlet yet");
    }

    #[test]
    fn a_cluster_whose_certificate_has_ended_registers_anew() {
        let mut found = found("c1", hub("https://hub", b"ca"), true);
        found.identity.as_mut().unwrap().expires = Some(NOW);
        assert_eq!(judge(&found), Ok(Belonging::Begun));
        let agent = |key: Option<&str>| Agent { cluster: "c1".to_owned(), name: None, key: key.map(str::to_owned) };
        let csr = RegistrationAuthType::Csr;
        assert!(asks_anew(true, &agent(None), &csr));
        assert!(!asks_anew(true, &agent(Some("k")), &csr), "it has its new one already");
        assert!(!asks_anew(false, &agent(None), &csr), "it registers for the first time");
        assert!(!asks_anew(true, &agent(None), &RegistrationAuthType::AwsIrsa), "it has none at any time");
    }

    #[test]
    fn a_cluster_moves_between_modes_on_itself_alone_and_only_when_asked() {
        let in_mode = |mode: Option<KlusterletMode>, is_hosted: bool| {
            let mut found = found("c1", hub("https://hub", b"ca"), true);
            found.is_hosted = is_hosted;
            found.klusterlets[0].spec.deploy_option = mode.map(|mode| KlusterletDeployOption { mode: Some(mode) });
            found
        };
        let judge =
            |found: &Found, wanted: Option<KlusterletMode>| moves_from(found, "c1", wanted.as_ref(), "context \"a\"");
        let (default, singleton) = (KlusterletMode::Default, KlusterletMode::Singleton);
        let two = in_mode(None, false);
        assert_eq!(judge(&two, None), Ok(None));
        assert_eq!(judge(&two, Some(default.clone())), Ok(None));
        assert_eq!(judge(&two, Some(singleton.clone())), Ok(Some(default.clone())));
        let one = in_mode(Some(singleton.clone()), false);
        assert_eq!(judge(&one, None), Ok(None));
        assert_eq!(judge(&one, Some(singleton.clone())), Ok(None));
        assert_eq!(judge(&one, Some(default)), Ok(Some(singleton)));
        assert_eq!(judge(&Found::default(), Some(KlusterletMode::Singleton)), Ok(None));
        let refused = judge(&in_mode(Some(KlusterletMode::Hosted), true), Some(KlusterletMode::SingletonHosted));
        let refused = refused.unwrap_err();
        assert_eq!(refused.reason, crate::Reason::Refused);
        let words = "context \"a\" has joined in mode Hosted, and is not moved to SingletonHosted as it is: unjoin it first; \
                     nothing was changed";
        assert_eq!(refused.message, words);
        assert!(format!("{:?}", refused.hints).contains("Unjoin(\"c1\")"), "{refused:?}");
    }

    #[test]
    fn a_kubeconfig_is_replaced_only_when_it_must() {
        let address = hub("https://hub", b"ca");
        let jwt = |exp: i64| format!("e30.{}.c", URL_SAFE_NO_PAD.encode(format!("{{\"exp\":{exp}}}")));
        let with = |token: String| Bootstrap { hub: address.clone(), token, ..Bootstrap::default() };
        let serves =
            |there: &Bootstrap, accepted, offered: Option<&str>| still_serves(there, &address, accepted, offered, NOW);
        assert!(serves(&with(jwt(3600)), true, Some(&jwt(7200))));
        assert!(serves(&with("abcdef.0123456789abcdef".to_owned()), true, None));
        assert!(!serves(&with(jwt(3600)), false, None));
        assert!(!serves(&with(jwt(60)), true, Some(&jwt(7200))));
        assert!(!serves(&with(jwt(60)), true, None));
        assert!(serves(&with(jwt(60)), true, Some(&jwt(50))));
        let elsewhere = Bootstrap { hub: hub("https://10.0.0.1", b"ca"), token: jwt(3600), ..Bootstrap::default() };
        assert!(!serves(&elsewhere, true, None));
        let proxied = HubAddress { proxy: Some("http://proxy:3128".to_owned()), ..address.clone() };
        assert!(!still_serves(&with(jwt(3600)), &proxied, true, None, NOW));
        let through = Bootstrap { hub: proxied.clone(), ..with(jwt(3600)) };
        assert!(still_serves(&through, &proxied, true, None, NOW) && !serves(&through, true, None));
    }
}
