//! One cluster of a fleet: from its entry to its labels on the hub.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use ocm_core::accept::Options as AcceptOptions;
use ocm_core::join::progress::Goal;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::plan::Applied;
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use tokio::sync::OnceCell;

use super::outcome::{Installation, Outcome, Row};
use super::placing;
use super::request::{Fleet, Member, Request};
use crate::hub;
use crate::join::{self, Coming, FallbackOptions, FormerHubOptions, GrpcOptions, HubAccess, Joined};
use crate::named::OneOfMany;

/// How long the others wait for one cluster to say which it is, before any of them joins.
const LOOK: Duration = Duration::from_secs(5);

/// Whether a cluster has its operator, under a lock for who makes it.
type Operator = Arc<tokio::sync::Mutex<bool>>;

/// What the clusters of a fleet share.
pub(super) struct Run<'a> {
    fleet: &'a Fleet,
    request: Request,
    coming: Option<Coming>,
    installation: Option<Installation<'a>>,
    narrator: Arc<dyn Narrator>,
    /// The UID of the hub, where it may be read.
    hub_uid: OnceCell<Option<String>>,
    /// Names of clusters by their UIDs, or by their addresses where these may not be read.
    known: Mutex<BTreeMap<String, BTreeSet<String>>>,
    /// Operators by the clusters on which they run.
    operators: Mutex<BTreeMap<String, Operator>>,
    /// How many clusters have ended.
    ended: AtomicUsize,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        fleet: &'a Fleet,
        request: Request,
        coming: Option<Coming>,
        installation: Option<Installation<'a>>,
        narrator: Arc<dyn Narrator>,
    ) -> Self {
        Self {
            fleet,
            request,
            coming,
            installation,
            narrator,
            hub_uid: OnceCell::new(),
            known: Mutex::default(),
            operators: Mutex::default(),
            ended: AtomicUsize::default(),
        }
    }

    /// Looks at all clusters, so that of two entries of one cluster none joins, whichever is first.
    pub(super) async fn inspect(&self) {
        let each = self.fleet.members.iter().map(|member| async move {
            let uid = tokio::time::timeout(LOOK, hub::uid(member.joining())).await.ok().flatten();
            self.others(member, uid.as_deref());
        });
        stream::iter(each).buffer_unordered(self.request.at_once.max(1)).collect::<()>().await;
    }

    /// Under which other names the cluster is in the file, as far as was seen.
    fn others(&self, member: &Member, uid: Option<&str>) -> Vec<String> {
        let name = &member.spec.settings.name;
        let key = uid.unwrap_or(&member.joining().server);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let names = known.entry(key.to_owned()).or_default();
        names.insert(name.clone());
        names.iter().filter(|other| *other != name).cloned().collect()
    }

    /// Joins a cluster and gives it its labels and its set, or does with its plan what the request says. `place` is its place
    /// among all that are worked on.
    pub(super) async fn member(&self, place: usize, member: &Member) -> Row {
        let name = &member.spec.settings.name;
        let one = Arc::new(OneOfMany::new(place, name, self.narrator.clone()));
        let narrator: Arc<dyn Narrator> = one.clone();
        let mut row = Row { name: name.clone(), label: member.joining().label(), ..Row::default() };
        narrator.tell(Event::now(format!("looking at {}", row.label)));
        row.outcome = match self.carry_out(member, &mut row, &narrator).await {
            Ok(true) => Outcome::Changed,
            Ok(false) => Outcome::Unchanged,
            Err(failure) if failure.reason == Reason::KindNotServed && self.is_in_vain() && !row.is_tried() => {
                Outcome::NotTried
            }
            Err(failure) => Outcome::Failed(failure),
        };
        let (ended, all) = (self.ended.fetch_add(1, Ordering::Relaxed) + 1, self.fleet.members.len());
        let said = match (&row.outcome, self.request.mode.changes()) {
            (Outcome::Failed(failure), _) => Event::warning(failure.to_string()),
            (Outcome::NotTried, _) => Event::warning("the hub was not installed"),
            (_, false) => Event::now("it was looked at"),
            (_, true) => {
                let phase = row.phase.map(|phase| phase.to_string().to_ascii_lowercase());
                let phase = phase.unwrap_or_else(|| "as the file has it".to_owned());
                Event::note(format!("it is {phase}; {ended} of {all} clusters have ended"))
            }
        };
        one.end(row.outcome.word(self.request.mode.changes()), said);
        row
    }

    /// Whether the hub's installation has failed.
    fn is_in_vain(&self) -> bool {
        self.coming.as_ref().is_some_and(Coming::has_failed)
    }

    /// Says whether anything was changed, or would be.
    async fn carry_out(&self, member: &Member, row: &mut Row, narrator: &Arc<dyn Narrator>) -> Result<bool, Failure> {
        let spec = &member.spec;
        let changes = self.request.mode.changes();
        let uid = self.identify(member).await?;
        placing::check_rights(&self.fleet.hub, spec).await?;
        if changes && spec.by_grpc() {
            // Its address and its CA are there when the hub is.
            self.hub_is_usable().await?;
        }
        let Joined { before, anew, plan, applied, followed, .. } = self.join(member, uid, narrator).await?;
        let is_changed = applied.iter().any(|applied| applied.outcome.is_change());
        (row.plan, row.applied) = (plan, applied);
        row.phase = followed?;
        let mut is_placed = false;
        if !spec.labels.is_empty() || spec.cluster_set.is_some() {
            if changes {
                self.hub_is_usable().await?;
            }
            is_placed = placing::place(&self.fleet.hub, spec, self.request.mode, narrator.as_ref()).await?;
        }
        row.set.clone_from(&spec.cluster_set);
        // A cluster that is not accepted here stands where it stood until somebody accepts it.
        Ok(is_changed || is_placed || anew || (spec.accept && !before))
    }

    /// Refuses a cluster that is another one of the fleet, and one that is the hub unless the file says so.
    async fn identify(&self, member: &Member) -> Result<Option<String>, Failure> {
        let (joining, hub) = (member.joining(), &self.fleet.hub);
        // Without an answer two entries of one cluster, and the hub itself, would not be told.
        let of_hub = self.hub_uid.get_or_try_init(|| hub::known_uid(hub));
        let (uid, hub_uid) = futures::try_join!(hub::known_uid(joining), of_hub)?;
        let is_hub = are_at_one(joining, hub) || (uid.is_some() && uid == *hub_uid);
        if is_hub && !member.spec.itself {
            let sentence = format!("{} is the hub itself; nothing was changed", joining.label());
            return Err(Failure::refused(sentence)
                .hint("say which cluster is meant by its context; if the hub is to manage itself, write self: true"));
        }
        if let Some(guest) = &member.guest
            && join::are_one(&member.agents, guest).await
        {
            return Err(Failure::refused(format!("{} would host itself; nothing was changed", guest.label())));
        }
        match self.others(member, uid.as_deref()).first() {
            Some(other) => Err(Failure::refused(format!(
                "{} is the same cluster as that of {other:?}; nothing was changed",
                joining.label()
            ))
            .hint("leave one of them out of the file, or name another cluster")),
            None => Ok(uid),
        }
    }

    /// Joins a cluster. Of those whose agents run on one cluster the first goes alone until the operator that they share is
    /// there.
    async fn join(
        &self,
        member: &Member,
        uid: Option<String>,
        narrator: &Arc<dyn Narrator>,
    ) -> Result<Joined, Failure> {
        let request = self.request_of(member);
        let agents = match member.guest {
            Some(_) => hub::uid(&member.agents).await,
            None => uid,
        };
        let operator = self.operator(agents.unwrap_or_else(|| member.agents.server.clone()));
        let is_there = operator.lock().await;
        let was_there = *is_there;
        let mut alone = (!was_there).then_some(is_there);
        let mut each = |_: &Cluster, applied: &Applied| {
            if applied.manifest.kind() == "Deployment"
                && let Some(mut is_there) = alone.take()
            {
                *is_there = true;
            }
        };
        join::join(&member.agents, &request, narrator.clone(), &mut each).await
    }

    fn operator(&self, cluster: String) -> Operator {
        let mut operators = self.operators.lock().unwrap_or_else(PoisonError::into_inner);
        operators.entry(cluster).or_default().clone()
    }

    fn request_of(&self, member: &Member) -> join::Request {
        let Member { spec, guest, .. } = member;
        let access =
            HubAccess::Kubeconfig { hub: Box::new(self.fleet.hub.clone()), address: self.fleet.address.clone() };
        join::Request {
            settings: spec.settings.clone(),
            access,
            mode: self.request.mode,
            accept: spec.accept.then(AcceptOptions::default),
            wait: Some(if spec.accept { Goal::Available } else { Goal::Registered }),
            timeout: self.request.timeout,
            internal: false,
            internal_managed: spec.internal_managed,
            adopt_namespace: spec.adopt_namespace,
            guest: guest.clone().map(Box::new),
            proxy: spec.proxy.clone(),
            grpc: GrpcOptions { server: spec.grpc.server.clone(), ca: spec.grpc.ca.clone() },
            fallback: FallbackOptions::default(),
            former: FormerHubOptions::default(),
            coming: self.coming.clone(),
        }
    }

    /// Waits for the end of the hub's installation.
    ///
    /// # Errors
    /// [`Reason::KindNotServed`] where it was not installed; that of the wait where it is not usable.
    async fn hub_is_usable(&self) -> Result<(), Failure> {
        let Some(installation) = self.installation.clone() else { return Ok(()) };
        match installation.await.outcome {
            Outcome::Failed(_) if self.is_in_vain() => {
                let sentence = format!("{} was not installed", hub_label(&self.fleet.hub));
                Err(Failure::new(Reason::KindNotServed, sentence))
            }
            Outcome::Failed(failure) => {
                Err(Failure::new(failure.reason, format!("{} is not usable", hub_label(&self.fleet.hub)))
                    .because(failure))
            }
            _ => Ok(()),
        }
    }
}

/// Whether two clusters have the same address.
fn are_at_one(one: &Cluster, other: &Cluster) -> bool {
    let at = HubAddress { server: one.server.clone(), ..HubAddress::default() };
    at.is_at(&other.server)
}

fn hub_label(hub: &Cluster) -> String {
    format!("the hub ({})", hub.label())
}
