//! Saying that somebody approves a cluster: policies count who has, and the controller lets it in; or, with breakGlass, its
//! author passes over policies.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube::{Api, Resource};
use ocm_api::RegistrationApproval;
use ocm_core::accept::{Approver, Decision, Help, Refusal, Terms, Word, another_requester, word};
use ocm_core::baseline::approvals::{APPROVE, BREAK_GLASS, GUARD, proves_since};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{Right, myself};
use ocm_kube::apply::FIELD_MANAGER;
use serde_json::Value;

use super::candidate::Candidate;
use super::carry_out::{TRIES, in_order};
use super::rights::Rights;
use super::rows::{Outcome, Row, failed, row};
use super::survey::refuse_unselected;
use crate::registry;

const GROUP: &str = "policy.kubectl-ocm.dev";

/// What is said with an approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approval {
    /// The groups of the approver that are to count; none: all but those of the system.
    pub groups: Vec<String>,
    /// Why.
    pub reason: Option<String>,
    /// How long it counts.
    pub lasts: Duration,
    /// Whether it is for an emergency.
    pub break_glass: bool,
}

/// Approvals that are about to be given.
#[derive(Clone, Debug)]
pub struct Giving {
    terms: Terms,
    /// When the time on the hub was read.
    read: Instant,
    known: Vec<RegistrationApproval>,
}

/// Fails before anything is touched unless the user may approve these registrations, and see which are.
///
/// # Errors
/// [`Reason::Forbidden`] naming every right that is missing.
pub async fn check_rights_to_approve(
    hub: &Cluster,
    candidates: &[Candidate],
    approval: &Approval,
) -> Result<(), Failure> {
    let mut rights = Rights::default();
    for resource in ["validatingadmissionpolicies", "validatingadmissionpolicybindings"] {
        rights.need(Right::new("get", "admissionregistration.k8s.io", resource).on(GUARD));
    }
    for verb in ["list", "create"] {
        rights.need(Right::new(verb, GROUP, "registrationapprovals"));
    }
    let verb = if approval.break_glass { BREAK_GLASS } else { APPROVE };
    let approve = Right::new(verb, GROUP, "registrations");
    let acts = |candidate: &&Candidate| matches!(candidate.decision, Decision::Act { .. });
    let names: Vec<&str> = candidates.iter().filter(acts).map(|candidate| candidate.name.as_str()).collect();
    rights.need_of_each(hub, approve, &names).await?;
    rights.require(hub, "approve registrations").await
}

/// Reads who approves, whether the hub proves it, and what was approved before.
///
/// # Errors
/// When the hub cannot be read, does not know approvals or does not prove who writes them, or the approver is not in the
/// groups that were named.
pub async fn prepare(hub: &Cluster, approval: &Approval, narrator: &dyn Narrator) -> Result<Giving, Failure> {
    let api: Api<RegistrationApproval> = Api::all(hub.client.clone());
    let known = registry::all(hub, &api, ListParams::default(), "list approvals of registrations");
    let (known, guard, review) = futures::join!(known, guard(hub), myself(hub));
    let known = known.map_err(|failure| match failure.reason {
        Reason::KindNotServed => {
            failure.context("the hub does not know approvals of registrations").hint(Remedy::InstallBaseline)
        }
        _ => failure,
    })?;
    let read = Instant::now();
    let Some(proved_since) = guard? else {
        let sentence = format!(
            "an approval would not count: this hub does not prove who writes it, for the policy {GUARD} or its binding is \
             missing, or is not as this release writes it"
        );
        return Err(Failure::refused(sentence).hint(Remedy::InstallBaseline));
    };
    let review = review?;
    // The API server compares the end with its own time.
    let now = review.metadata.creation_timestamp.map_or_else(Timestamp::now, |time| time.0);
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    let name = user.username.unwrap_or_default();
    let approver = Approver::new(&name, &user.groups.unwrap_or_default(), &approval.groups)
        .map_err(|wrong| Failure::usage(wrong.to_string()))?;
    if approver.is_machine() {
        narrator.tell(Event::warning(format!("{name} is no person: policies do not count it unless they name it")));
    }
    let lasts = SignedDuration::try_from(approval.lasts).ok();
    let until = lasts.and_then(|lasts| now.checked_add(lasts).ok());
    let until = until.ok_or_else(|| Failure::usage("an approval cannot count for so long"))?;
    let (reason, break_glass) = (approval.reason.clone(), approval.break_glass);
    let terms = Terms { approver, reason, until, now, proved_since, break_glass };
    Ok(Giving { terms, read, known })
}

/// Since when the hub proves who writes approvals; none where it does not.
async fn guard(hub: &Cluster) -> Result<Option<Timestamp>, Failure> {
    let (policy, binding) = futures::join!(
        guarding::<ValidatingAdmissionPolicy>(hub, "read the policy that guards approvals"),
        guarding::<ValidatingAdmissionPolicyBinding>(hub, "read the binding of the policy that guards approvals"),
    );
    Ok(policy?.zip(binding?).and_then(|(policy, binding)| proves_since(&policy, &binding)))
}

/// An object of the guard with everything that it says, also what is newer than this program.
async fn guarding<K: Resource<DynamicType = ()>>(hub: &Cluster, what: &str) -> Result<Option<Value>, Failure> {
    let api: Api<DynamicObject> = Api::all_with(hub.client.clone(), &ApiResource::erase::<K>(&()));
    let object = api.get_opt(GUARD).await.map_err(|error| hub.explain(what, error))?;
    object
        .map(|object| {
            serde_json::to_value(object).map_err(|error| Failure::other(format!("cannot {what}")).because(error))
        })
        .transpose()
}

/// What there is to tell of clusters of which none can be approved.
pub fn only_told(candidates: Vec<Candidate>, mut each: impl FnMut(&Row)) -> Vec<Row> {
    let told = candidates.iter().map(|candidate| {
        let row = unable(candidate);
        each(&row);
        row
    });
    told.collect()
}

/// How a cluster comes out of which there is nothing to approve. An approval names who asks, so that nobody can do without
/// a request.
fn unable(candidate: &Candidate) -> Row {
    let row = row(candidate);
    let help = row.help.filter(|help| *help != Help::WithoutRequest);
    Row { help, ..row }
}

impl Giving {
    /// Who approves.
    pub fn approver(&self) -> &Approver {
        &self.terms.approver
    }

    /// Whether they are for an emergency.
    pub fn break_glass(&self) -> bool {
        self.terms.break_glass
    }

    /// From when on the approvals do not count.
    pub fn until(&self) -> Timestamp {
        self.terms.until
    }

    /// Approves, several clusters at a time, and hands over each row in the order of the candidates.
    pub async fn give(
        self,
        hub: &Cluster,
        candidates: Vec<Candidate>,
        dry_run: DryRun,
        at_once: usize,
        narrator: &dyn Narrator,
        mut each: impl FnMut(&Row),
    ) -> Vec<Row> {
        let waits = |candidate: &Candidate| matches!(candidate.decision, Decision::Act { .. });
        if dry_run == DryRun::No && candidates.iter().any(waits) {
            self.until_proved(narrator).await;
        }
        let one = async |candidate: Candidate| {
            let row = self.one(hub, &candidate, dry_run).await;
            if let (DryRun::No, Outcome::ApprovalWritten, Some(approval)) = (dry_run, &row.outcome, &row.approval) {
                narrator.tell(Event::done(format!("wrote approval {approval}")));
            }
            row
        };
        in_order(candidates, at_once, one, |row, _| each(row)).await
    }

    /// Waits until what is written counts, where the baseline was installed a moment ago.
    async fn until_proved(&self, narrator: &dyn Narrator) {
        // It has to be later than that, and the hub counts in seconds.
        let left = self.terms.now.duration_until(self.terms.proved_since) + SignedDuration::from_secs(1);
        let left = Duration::try_from(left).unwrap_or_default().saturating_sub(self.read.elapsed());
        if !left.is_zero() {
            narrator.tell(Event::now("waiting until the hub proves who approves"));
            tokio::time::sleep(left).await;
        }
    }

    async fn one(&self, hub: &Cluster, candidate: &Candidate, dry_run: DryRun) -> Row {
        let Decision::Act { accept, .. } = candidate.decision else { return unable(candidate) };
        let row = row(candidate);
        let (Some(cluster), Some(request)) = (&candidate.cluster, candidate.request()) else {
            let detail = "the hub has no request of its agent, and an approval names who asks";
            return Row { outcome: Outcome::NoRequest, detail: detail.to_owned(), help: None, ..row };
        };
        let requester = request.asked_by();
        // The hub's webhook passes over no policy then, and to approve alone lets in nobody else.
        if self.terms.break_glass
            && accept
            && let Some(refusal) = another_requester(&candidate.name, requester, &candidate.requests)
        {
            return refused(row, refusal);
        }
        if dry_run != DryRun::Client {
            let mut again = candidate.clone();
            match refuse_unselected(hub, std::slice::from_mut(&mut again)).await {
                Ok(()) if !matches!(again.decision, Decision::Act { .. }) => return unable(&again),
                Ok(()) => {}
                Err(failure) => return failed(candidate, failure),
            }
        }
        let same = |known: &&RegistrationApproval| Some(&known.spec.cluster.uid) == cluster.metadata.uid.as_ref();
        let mut known: Vec<RegistrationApproval> = self.known.iter().filter(same).cloned().collect();
        for _ in 0..TRIES {
            let approval = match word(cluster, requester, &self.terms, &known) {
                Word::Refused(refusal) => return refused(row, refusal),
                Word::Given(approval) => return told(row, Outcome::AlreadyApproved, &approval),
                Word::ToGive(approval) => approval,
            };
            let written = match dry_run {
                DryRun::Client => Ok(()),
                _ => write(hub, &approval, dry_run).await,
            };
            let failure = match written {
                Ok(()) => return told(row, Outcome::ApprovalWritten, &approval),
                Err(failure) => failure,
            };
            let other = match failure.reason {
                Reason::Conflict => live(hub, &approval).await,
                _ => return failed(candidate, failure),
            };
            match other {
                // Whoever wrote it was ourselves, at the same time: whether it says the same is seen then.
                Ok(Some(other)) if is_ours(&other, &approval) => known.push(other),
                Ok(Some(_)) => return failed(candidate, taken(&approval)),
                // It was withdrawn meanwhile.
                Ok(None) => {}
                Err(failure) => return failed(candidate, failure),
            }
        }
        let sentence = "approvals of this cluster are written and withdrawn faster than they can be read";
        failed(candidate, Failure::new(Reason::Conflict, sentence))
    }
}

fn refused(row: Row, refusal: Refusal) -> Row {
    let Refusal { code, detail, help, .. } = refusal;
    Row { outcome: Outcome::Refused(code), detail, help: help.or(row.help), ..row }
}

/// Whether this was written by the same approver about the same cluster and who asks, as far as the API server proves.
fn is_ours(other: &RegistrationApproval, ours: &RegistrationApproval) -> bool {
    let (other, ours) = (&other.spec, &ours.spec);
    other.approver == ours.approver
        && other.cluster == ours.cluster
        && other.requester == ours.requester
        && other.break_glass == ours.break_glass
}

fn taken(approval: &RegistrationApproval) -> Failure {
    let name = approval.metadata.name.as_deref().unwrap_or_default();
    Failure::new(Reason::Conflict, format!("an approval of the name {name} is there that says something else"))
}

async fn write(hub: &Cluster, approval: &RegistrationApproval, dry_run: DryRun) -> Result<(), Failure> {
    let api: Api<RegistrationApproval> = Api::all(hub.client.clone());
    let params = PostParams { dry_run: dry_run == DryRun::Server, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let written = api.create(&params, approval).await;
    let name = &approval.spec.cluster.name;
    written.map(|_| ()).map_err(|error| hub.explain(format_args!("approve the registration of {name}"), error))
}

async fn live(hub: &Cluster, approval: &RegistrationApproval) -> Result<Option<RegistrationApproval>, Failure> {
    let api: Api<RegistrationApproval> = Api::all(hub.client.clone());
    let name = approval.metadata.name.as_deref().unwrap_or_default();
    // Who may list approvals may see this one, whether or not they may read it by its name.
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(registry::all(hub, &api, params, "list approvals of registrations").await?.pop())
}

fn told(row: Row, outcome: Outcome, approval: &RegistrationApproval) -> Row {
    let spec = &approval.spec;
    let groups = match spec.groups.as_slice() {
        [] => String::new(),
        groups => format!(" of {}", groups.join(", ")),
    };
    let word = if spec.break_glass { "with breakGlass, " } else { "" };
    let detail = format!("{word}by {}{groups}, for {}, until {}", spec.approver, spec.requester, spec.expires_at);
    Row { outcome, detail, help: None, approval: approval.metadata.name.clone(), ..row }
}
