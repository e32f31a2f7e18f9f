//! The hubs that an agent turns to, one after the other, when its own does not answer, or lets it in no longer.
//!
//! A Klusterlet lists the Secrets of all of them, behind the feature gate MultipleHubs. The first one is that of every agent;
//! each further hub has one of a few fixed names, so that roles can name them. Whenever it starts, such an agent takes the
//! kubeconfig of the hub that it is at, or else the first one of the list, whose hub answers and knows its token, whatever
//! certificate it holds: one whose tokens have all expired does not start any more. Upstream: `selectBootstrapKubeConfigs`.

use jiff::{SignedDuration, Timestamp};
use ocm_api::Manifest;
use ocm_api::names::secrets;
use ocm_api::operator::RegistrationAuthType;
use serde_json::{Value, json};

use super::bootstrap_secrets::secret_named;
use super::gates::{GATES, set_gate};
use crate::Failure;
use crate::kubeconfig::{Bootstrap, HubAddress, Likeness, exclusive_mark};
use crate::token::{self, Content};

/// The Secrets of further hubs, in the namespace of the agent.
pub const SECRETS: [&str; 4] = [
    "bootstrap-hub-kubeconfig-2",
    "bootstrap-hub-kubeconfig-3",
    "bootstrap-hub-kubeconfig-4",
    "bootstrap-hub-kubeconfig-5",
];

/// The feature gate without which the list has no effect.
const GATE: &str = "MultipleHubs";

/// Annotation of a ManagedCluster that was accepted before its agent comes: the address of the hub that this agent is at, and
/// which it leaves only when it does not answer.
pub const FALLBACK_OF: &str = "kubectl-ocm/fallback-of";

/// How many seconds the tokens of an agent with several hubs are to live; a hub may give less.
pub const TOKEN_SECONDS: u64 = 360 * 24 * 3600;

/// A token with less than this left is made anew.
const ENOUGH: SignedDuration = SignedDuration::from_hours(30 * 24);

/// After how long without its hub an agent turns to the next one. Upstream: `hubConnectionTimeoutSeconds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubTimeout(i32);

impl HubTimeout {
    /// The shortest one in seconds that the definition of Klusterlet lets through.
    pub const SHORTEST: i32 = 180;

    /// What upstream takes where nothing is said, in seconds.
    pub const USUAL: i32 = 600;

    /// So many seconds; none for a time that is too short.
    pub const fn seconds(seconds: i32) -> Option<Self> {
        if seconds >= Self::SHORTEST { Some(Self(seconds)) } else { None }
    }
}

/// The hubs that a Klusterlet lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The Secrets of their kubeconfigs, in order.
    pub secrets: Vec<String>,
    /// Seconds without a hub after which the agent turns to the next one; none: as upstream has it.
    pub timeout: Option<i32>,
}

impl Listing {
    /// Whether its first hub is that of every agent, as in the lists that are made here.
    pub fn is_ours(&self) -> bool {
        is_ours(&self.secrets)
    }
}

fn is_ours(order: &[String]) -> bool {
    order.first().is_some_and(|first| first == secrets::BOOTSTRAP_HUB_KUBECONFIG)
}

/// One hub of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The Secret of its kubeconfig.
    pub secret: String,
    /// The kubeconfig; none where it is not there, or could not be read.
    pub kubeconfig: Option<Bootstrap>,
    /// Whether the Secret may not be read by whoever looked.
    pub is_hidden: bool,
}

impl Known {
    /// Whether it is meant by a word: the name of its Secret, or its address.
    fn is(&self, word: &str) -> bool {
        self.secret == word || self.kubeconfig.as_ref().is_some_and(|there| there.hub.is_at(word))
    }

    /// Whether its Secret is not there, or holds no kubeconfig.
    fn lacks_kubeconfig(&self) -> bool {
        self.kubeconfig.is_none() && !self.is_hidden
    }

    /// Whether it is this hub.
    fn leads_to(&self, hub: &HubAddress) -> bool {
        self.kubeconfig.as_ref().is_some_and(|there| there.hub.likeness(hub) != Likeness::OtherHub)
    }

    /// How messages name it: by its address where that is known.
    pub fn told(&self) -> &str {
        self.kubeconfig.as_ref().map_or(&self.secret, |there| &there.hub.server)
    }
}

/// What is to change in the list of hubs.
#[derive(Clone, Copy, Debug, Default)]
pub struct HubChanges<'a> {
    /// Further hubs that it is to have.
    pub named: &'a [HubAddress],
    /// Hubs that it is to have no longer, by their addresses or by the names of their Secrets.
    pub removed: &'a [String],
    /// After how long the agent turns to the next hub; none: as it is.
    pub timeout: Option<HubTimeout>,
}

impl HubChanges<'_> {
    fn is_empty(&self) -> bool {
        self.named.is_empty() && self.removed.is_empty() && self.timeout.is_none()
    }
}

/// What becomes of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arranged {
    /// The Secrets of all hubs, that of the first one first; empty: there is one hub, and no list.
    pub order: Vec<String>,
    /// Seconds without a hub after which the agent turns to the next one; none: as upstream has it.
    pub timeout: Option<i32>,
    /// The Secret of each hub that was named.
    pub named: Vec<String>,
    /// The hubs that leave it.
    pub removed: Vec<Known>,
    /// What was to leave it and is none of it.
    pub unknown: Vec<String>,
    /// Whether the Klusterlet says something else until now.
    pub is_changed: bool,
}

impl Arranged {
    /// Whether there is a list whose first hub is that of every agent.
    pub fn is_ours(&self) -> bool {
        is_ours(&self.order)
    }
}

/// The hubs that a Klusterlet lists, where the list has an effect.
pub fn listing(klusterlet: &Value) -> Option<Listing> {
    let registration = klusterlet.pointer("/spec/registrationConfiguration")?;
    let mut gates = registration["featureGates"].as_array().into_iter().flatten();
    let configs = &registration["bootstrapKubeConfigs"];
    if !gates.any(|gate| gate["feature"] == GATE && gate["mode"] == "Enable") || configs["type"] != "LocalSecrets" {
        return None;
    }
    let local = &configs["localSecretsConfig"];
    let names = local["kubeConfigSecrets"].as_array()?.iter().filter_map(|secret| secret["name"].as_str());
    let timeout = local["hubConnectionTimeoutSeconds"].as_i64().and_then(|seconds| i32::try_from(seconds).ok());
    Some(Listing { secrets: names.map(str::to_owned).collect(), timeout })
}

/// The hub of the list, besides the first one, that is meant by an address; none: it is the first one, or none of them.
pub fn fallback_at<'a>(first: &HubAddress, further: &'a [Known], hub: &HubAddress) -> Option<&'a Known> {
    if first.likeness(hub) != Likeness::OtherHub {
        return None;
    }
    further.iter().find(|one| one.leads_to(hub))
}

/// Whether an agent that registers by this driver can have several hubs.
///
/// # Errors
/// A refusal, with the reason.
pub fn supports(driver: &RegistrationAuthType) -> Result<(), Failure> {
    let because = match driver {
        RegistrationAuthType::Grpc => "over gRPC an agent knows one server, that of bootstrap-hub-kubeconfig alone",
        RegistrationAuthType::AwsIrsa => "with an identity of AWS an agent knows the ARN of one hub",
        _ => return Ok(()),
    };
    Err(Failure::refused(format!("an agent that registers by {driver} has one hub; nothing was changed"))
        .because(because)
        .hint("agents that register by csr may have several"))
}

/// Arranges the list. `further` are the hubs that it has besides the first one, which is at `first`.
///
/// Hubs that are listed keep their places; others come after them, in the order in which they were named.
///
/// # Errors
/// A usage failure for one hub that is named twice, or named and removed, and for a time without another hub; a refusal of a
/// list that somebody else made, and of more hubs than there are names.
pub fn arrange(
    first: &HubAddress,
    listing: Option<&Listing>,
    further: &[Known],
    changes: &HubChanges<'_>,
) -> Result<Arranged, Failure> {
    let listed = listing.map(|listing| listing.secrets.clone()).unwrap_or_default();
    let timeout = listing.and_then(|listing| listing.timeout);
    if changes.is_empty() {
        return Ok(Arranged { order: listed, timeout, ..Arranged::default() });
    }
    if listed.first().is_some_and(|own| own != secrets::BOOTSTRAP_HUB_KUBECONFIG) {
        return Err(Failure::refused(format!(
            "the Klusterlet lists the hubs of Secrets {}, as somebody else has made them; nothing was changed",
            listed.join(", ")
        ))
        .because(format!(
            "the first hub of a list that is kept here is that of {}",
            secrets::BOOTSTRAP_HUB_KUBECONFIG
        )));
    }
    each_once(first, changes.named)?;
    let (mut kept, mut removed, mut unknown) = (further.to_vec(), Vec::new(), Vec::new());
    for word in changes.removed {
        match kept.iter().position(|one| one.is(word)) {
            Some(at) => removed.push(kept.remove(at)),
            None => unknown.push(word.clone()),
        }
    }
    if let Some(both) = changes.named.iter().find(|hub| removed.iter().any(|one: &Known| one.leads_to(hub))) {
        return Err(Failure::usage(format!("the hub at {} is to be added and removed at once", both.server)));
    }
    let named = places(changes.named, &kept)?;
    let mut order = vec![secrets::BOOTSTRAP_HUB_KUBECONFIG.to_owned()];
    order.extend(kept.into_iter().map(|one| one.secret));
    for secret in &named {
        if !order.contains(secret) {
            order.push(secret.clone());
        }
    }
    if order.len() < 2 {
        order.clear();
    }
    if order.is_empty() && changes.timeout.is_some() {
        return Err(Failure::usage("a time after which the agent turns to the next hub goes with another hub"));
    }
    let wanted = changes.timeout.map(|HubTimeout(seconds)| seconds).or(timeout);
    let is_changed = order != listed || (!order.is_empty() && wanted != timeout);
    Ok(Arranged { order, timeout: wanted, named, removed, unknown, is_changed })
}

/// Checks that no hub is named twice.
fn each_once(first: &HubAddress, named: &[HubAddress]) -> Result<(), Failure> {
    for (at, hub) in named.iter().enumerate() {
        let mut earlier = std::iter::once(first).chain(&named[..at]);
        let Some(same) = earlier.find(|other| other.likeness(hub) != Likeness::OtherHub) else { continue };
        let sentence = match same.is_at(&hub.server) {
            true => format!("the hub at {} is named twice", hub.server),
            false => format!("{} and {} are addresses of the same hub", same.server, hub.server),
        };
        let failure = Failure::usage(sentence).because("the agent turns to another hub when one does not answer");
        return Err(failure.hint("name each hub once: the first one as the hub to join, the others as further ones"));
    }
    Ok(())
}

/// The Secret of each hub: that which it has already, then one of ours that is listed and lacks its kubeconfig, then a free one.
fn places(named: &[HubAddress], kept: &[Known]) -> Result<Vec<String>, Failure> {
    let own = |hub: &HubAddress| kept.iter().find(|one| one.leads_to(hub)).map(|one| one.secret.clone());
    let mut taken: Vec<String> = named.iter().filter_map(own).collect();
    // A Secret of another name is somebody else's, whatever it holds.
    let lacking =
        SECRETS.into_iter().filter(|name| kept.iter().any(|one| one.secret == *name && one.lacks_kubeconfig()));
    let free = SECRETS.into_iter().filter(|name| kept.iter().all(|one| one.secret != *name));
    let candidates: Vec<&str> = lacking.chain(free).collect();
    let mut places = Vec::new();
    for hub in named {
        if let Some(secret) = own(hub) {
            places.push(secret);
            continue;
        }
        let place = candidates.iter().find(|name| taken.iter().all(|taken| taken != *name));
        let Some(place) = place else {
            return Err(Failure::refused(format!(
                "an agent has {} hubs besides its first one at most; nothing was changed",
                SECRETS.len()
            )));
        };
        taken.push((*place).to_owned());
        places.push((*place).to_owned());
    }
    Ok(places)
}

/// What a plan makes of the hubs of an agent.
#[derive(Clone, Debug, Default)]
pub struct Hubs {
    /// The Secrets of all hubs, that of the first one first; empty: there is one hub, and no list.
    pub order: Vec<String>,
    /// Seconds without a hub after which the agent turns to the next one; none: as upstream has it.
    pub timeout: Option<i32>,
    /// The Secrets that are written, and their kubeconfigs.
    pub kubeconfigs: Vec<(String, Bootstrap)>,
}

impl Hubs {
    /// Writes the list into the spec of a Klusterlet. Gate and list go together: an operator that finds the gate on and no list
    /// ends. A list without hubs is said as an empty one, because what an apply does not mention stays.
    pub(super) fn lay(&self, spec: &mut Value) {
        let is_list = !self.order.is_empty();
        if let Some(gate) = GATES.iter().find(|gate| gate.name == GATE) {
            set_gate(spec, gate, is_list);
        }
        let names: Vec<Value> = self.order.iter().map(|name| json!({ "name": name })).collect();
        let mut local = json!({ "kubeConfigSecrets": names });
        if let Some(seconds) = self.timeout.filter(|_| is_list) {
            local["hubConnectionTimeoutSeconds"] = Value::from(seconds);
        }
        let kind = if is_list { "LocalSecrets" } else { "None" };
        spec["registrationConfiguration"]["bootstrapKubeConfigs"] =
            json!({ "type": kind, "localSecretsConfig": local });
    }
}

/// The Secret of a further hub.
pub fn secret(namespace: &str, name: &str, bootstrap: &Bootstrap) -> Manifest {
    let files = (bootstrap.to_yaml(), None);
    let mark = exclusive_mark(&bootstrap.token, bootstrap.exclusive);
    secret_named(name, namespace, files, mark, bootstrap.hub.uid.as_deref())
}

/// Until when a token is valid; none where it does not say so.
pub fn ends(token: &str) -> Option<Timestamp> {
    match token::read(token) {
        Content::Jwt { expires, .. } => expires,
        Content::Bootstrap(_) | Content::Opaque => None,
    }
}

/// Whether a token is valid for long enough: agents need it whenever they start.
pub fn lasts(token: &str, now: Timestamp) -> bool {
    ends(token).is_none_or(|ends| ends > now + ENOUGH)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ocm_api::operator::KlusterletMode;

    use super::*;
    use crate::Reason;
    use crate::join::plan::{Live, Settings, klusterlet};
    use crate::reconcile::{FIELD_MANAGER, Reconciled, reconcile};

    fn hub(name: &str) -> HubAddress {
        HubAddress {
            server: format!("https://{name}:6443"),
            ca: vec![name.as_bytes().to_vec()],
            uid: Some(format!("uid-{name}")),
            ..HubAddress::default()
        }
    }

    fn known(secret: &str, name: Option<&str>) -> Known {
        let kubeconfig = name.map(|name| Bootstrap { hub: hub(name), token: "t".to_owned(), ..Bootstrap::default() });
        Known { secret: secret.to_owned(), kubeconfig, is_hidden: false }
    }

    fn list(names: &[&str]) -> Listing {
        Listing { secrets: names.iter().map(|name| (*name).to_owned()).collect(), timeout: Some(600) }
    }

    const FIRST: &str = secrets::BOOTSTRAP_HUB_KUBECONFIG;

    #[test]
    fn hubs_that_are_named_get_secrets_in_their_order() {
        let named = [hub("b"), hub("c")];
        let changes = HubChanges { named: &named, timeout: HubTimeout::seconds(300), ..HubChanges::default() };
        let arranged = arrange(&hub("a"), None, &[], &changes).unwrap();
        assert_eq!(arranged.order, [FIRST, SECRETS[0], SECRETS[1]]);
        assert_eq!(arranged.named, SECRETS[..2]);
        assert!(arranged.is_changed);
        assert_eq!(arranged.timeout, Some(300));
    }

    #[test]
    fn hubs_that_are_there_keep_their_places_and_others_come_after_them() {
        let listing = list(&[FIRST, SECRETS[1], SECRETS[0]]);
        let further = [known(SECRETS[1], Some("c")), known(SECRETS[0], Some("b"))];
        let named = [hub("d"), hub("b")];
        let changes = HubChanges { named: &named, ..HubChanges::default() };
        let arranged = arrange(&hub("a"), Some(&listing), &further, &changes).unwrap();
        assert_eq!(arranged.order, [FIRST, SECRETS[1], SECRETS[0], SECRETS[2]]);
        assert_eq!(arranged.named, [SECRETS[2], SECRETS[0]]);
        assert_eq!(arranged.timeout, Some(600));
        let again = HubChanges { named: &named[1..], ..HubChanges::default() };
        let arranged = arrange(&hub("a"), Some(&listing), &further, &again).unwrap();
        assert_eq!((arranged.is_changed, arranged.order), (false, listing.secrets.clone()));
        let longer = HubChanges { timeout: HubTimeout::seconds(900), ..HubChanges::default() };
        let arranged = arrange(&hub("a"), Some(&listing), &further, &longer).unwrap();
        assert_eq!((arranged.is_changed, arranged.timeout), (true, Some(900)));
    }

    #[test]
    fn nothing_that_was_said_changes_nothing() {
        let foreign = list(&["one", "two"]);
        assert!(!foreign.is_ours() && list(&[FIRST, "two"]).is_ours() && !list(&[]).is_ours());
        let arranged = arrange(&hub("a"), Some(&foreign), &[], &HubChanges::default()).unwrap();
        assert_eq!((arranged.is_changed, arranged.order), (false, foreign.secrets.clone()));
        let named = [hub("b")];
        let changes = HubChanges { named: &named, ..HubChanges::default() };
        let refused = arrange(&hub("a"), Some(&foreign), &[], &changes).unwrap_err();
        assert_eq!(refused.reason, Reason::Refused);
        assert!(refused.message.contains("Secrets one, two"), "{refused}");
    }

    #[test]
    fn the_last_hub_that_is_removed_ends_the_list() {
        let listing = list(&[FIRST, SECRETS[0]]);
        let further = [known(SECRETS[0], Some("b"))];
        for word in [SECRETS[0], "https://B:6443/"] {
            let removed = [word.to_owned(), "https://gone".to_owned()];
            let changes = HubChanges { removed: &removed, ..HubChanges::default() };
            let arranged = arrange(&hub("a"), Some(&listing), &further, &changes).unwrap();
            assert_eq!((arranged.is_changed, arranged.order.len()), (true, 0));
            assert_eq!(arranged.removed, further);
            assert_eq!(arranged.unknown, ["https://gone"]);
            // A run that was cut off goes on.
            let again = arrange(&hub("a"), None, &[], &changes).unwrap();
            assert_eq!((again.is_changed, again.unknown.len()), (false, 2));
        }
    }

    #[test]
    fn a_secret_that_is_listed_and_lacks_its_kubeconfig_is_filled_first() {
        let listing = list(&[FIRST, SECRETS[0], SECRETS[1]]);
        let further = [known(SECRETS[0], Some("b")), known(SECRETS[1], None)];
        let named = [hub("c")];
        let changes = HubChanges { named: &named, ..HubChanges::default() };
        let arranged = arrange(&hub("a"), Some(&listing), &further, &changes).unwrap();
        assert_eq!((arranged.is_changed, arranged.named), (false, vec![SECRETS[1].to_owned()]));
        let hidden = [further[0].clone(), Known { is_hidden: true, ..further[1].clone() }];
        let arranged = arrange(&hub("a"), Some(&listing), &hidden, &changes).unwrap();
        assert_eq!(arranged.named, [SECRETS[2]]);
        // A Secret that somebody else has named is not filled.
        let (listing, theirs) = (list(&[FIRST, "theirs"]), [known("theirs", None)]);
        let arranged = arrange(&hub("a"), Some(&listing), &theirs, &changes).unwrap();
        assert_eq!(arranged.order, [FIRST, "theirs", SECRETS[0]]);
    }

    #[test]
    fn one_hub_is_not_named_twice() {
        let elsewhere = HubAddress { server: "https://10.0.0.1".to_owned(), ..hub("a") };
        let unknown = |server: &str| HubAddress { server: server.to_owned(), uid: None, ..hub("b") };
        for (named, words) in [
            (vec![hub("a")], "the hub at https://a:6443 is named twice"),
            (vec![elsewhere], "are addresses of the same hub"),
            (vec![hub("b"), hub("b")], "the hub at https://b:6443 is named twice"),
            (vec![unknown("https://x"), unknown("https://y")], "are addresses of the same hub"),
        ] {
            let changes = HubChanges { named: &named, ..HubChanges::default() };
            let refused = arrange(&hub("a"), None, &[], &changes).unwrap_err();
            assert_eq!(refused.reason, Reason::Usage);
            assert!(refused.message.contains(words), "{refused}");
        }
        // Hubs of one authority are two, where their UIDs are known.
        let twins = [HubAddress { ca: vec![b"a".to_vec()], ..hub("b") }];
        let changes = HubChanges { named: &twins, ..HubChanges::default() };
        assert!(arrange(&hub("a"), None, &[], &changes).is_ok());
    }

    #[test]
    fn what_contradicts_itself_is_told() {
        let listing = list(&[FIRST, SECRETS[0]]);
        let further = [known(SECRETS[0], Some("b"))];
        let (named, removed) = ([hub("b")], [SECRETS[0].to_owned()]);
        let reason = |changes: &HubChanges<'_>| {
            arrange(&hub("a"), Some(&listing), &further, changes).map_err(|failure| failure.reason)
        };
        let both = HubChanges { named: &named, removed: &removed, timeout: None };
        assert_eq!(reason(&both), Err(Reason::Usage));
        let alone = HubChanges { named: &[], removed: &removed, timeout: HubTimeout::seconds(300) };
        assert_eq!(reason(&alone), Err(Reason::Usage));
        let many: Vec<HubAddress> = ["b", "c", "d", "e", "f"].map(hub).to_vec();
        let changes = HubChanges { named: &many, ..HubChanges::default() };
        assert_eq!(reason(&changes), Err(Reason::Refused));
        assert_eq!(
            reason(&HubChanges { named: &many[..4], ..HubChanges::default() }).map(|arranged| arranged.order.len()),
            Ok(5)
        );
        assert_eq!((HubTimeout::seconds(179), HubTimeout::seconds(180)), (None, Some(HubTimeout(180))));
    }

    #[test]
    fn a_list_is_written_with_its_gate_and_read_again() {
        let order: Vec<String> = [FIRST, SECRETS[0]].map(str::to_owned).to_vec();
        let mut klusterlet = json!({"spec": {"registrationConfiguration": {"featureGates": [
            {"feature": "ClusterClaim", "mode": "Disable"}]}}});
        let hubs = Hubs { order: order.clone(), timeout: Some(300), kubeconfigs: Vec::new() };
        hubs.lay(&mut klusterlet["spec"]);
        assert_eq!(listing(&klusterlet), Some(Listing { secrets: order, timeout: Some(300) }));
        let gates = klusterlet["spec"]["registrationConfiguration"]["featureGates"].as_array().map(Vec::len);
        assert_eq!(gates, Some(2));
        Hubs::default().lay(&mut klusterlet["spec"]);
        assert_eq!(listing(&klusterlet), None);
        let configs = &klusterlet["spec"]["registrationConfiguration"]["bootstrapKubeConfigs"];
        assert_eq!(*configs, json!({"type": "None", "localSecretsConfig": {"kubeConfigSecrets": []}}));
        let mut bare = json!({});
        hubs.lay(&mut bare);
        assert!(listing(&json!({ "spec": bare })).is_some());
        assert_eq!(listing(&json!({"spec": {}})), None);
    }

    #[test]
    fn a_cluster_that_moves_to_another_mode_keeps_its_list() {
        let order: Vec<String> = [FIRST, SECRETS[0]].map(str::to_owned).to_vec();
        // Of a list that we have not written, nothing is said, and it stays.
        let mut there = json!({
            "metadata": {"managedFields": [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {
                "f:spec": {"f:registrationConfiguration": {"f:featureGates": {}, "f:bootstrapKubeConfigs": {
                    "f:type": {}, "f:localSecretsConfig": {
                        "f:kubeConfigSecrets": {}, "f:hubConnectionTimeoutSeconds": {}}}}}}}]},
            "spec": {"deployOption": {"mode": "Default"}},
        });
        let hubs = Hubs { order: order.clone(), timeout: Some(300), kubeconfigs: Vec::new() };
        hubs.lay(&mut there["spec"]);
        let settings = Settings { name: "c1".to_owned(), mode: Some(KlusterletMode::Singleton), ..Settings::default() };
        let live = Live { klusterlet: Some(there.clone()), ..Live::default() };
        let Reconciled::Apply(moved) = reconcile(&klusterlet(&settings, &live, "agents"), Some(&there)) else {
            panic!("it stays as it is");
        };
        assert_eq!(moved.body()["spec"]["deployOption"]["mode"], "Singleton");
        assert_eq!(listing(moved.body()), Some(Listing { secrets: order, timeout: Some(300) }));
    }

    #[test]
    fn an_agent_is_at_its_first_hub_or_at_another_one_of_the_list() {
        let further = [known(SECRETS[0], Some("b")), known(SECRETS[1], None)];
        let at = |name: &str| fallback_at(&hub("a"), &further, &hub(name)).map(Known::told);
        assert_eq!((at("a"), at("b"), at("c")), (None, Some("https://b:6443"), None));
        assert_eq!(further[1].told(), SECRETS[1]);
    }

    #[test]
    fn tokens_of_agents_with_several_hubs_last() {
        let now = Timestamp::UNIX_EPOCH;
        let jwt = |exp: i64| format!("e30.{}.c", URL_SAFE_NO_PAD.encode(format!("{{\"exp\":{exp}}}")));
        assert!(lasts(&jwt(31 * 24 * 3600), now) && !lasts(&jwt(29 * 24 * 3600), now));
        assert!(lasts("abcdef.0123456789abcdef", now), "it does not say until when");
        assert_eq!(ends(&jwt(60)), Timestamp::from_second(60).ok());
    }

    #[test]
    fn drivers_that_know_one_hub_are_refused() {
        assert!(supports(&RegistrationAuthType::Csr).is_ok());
        for driver in [RegistrationAuthType::Grpc, RegistrationAuthType::AwsIrsa] {
            assert_eq!(supports(&driver).unwrap_err().reason, Reason::Refused);
        }
    }
}
