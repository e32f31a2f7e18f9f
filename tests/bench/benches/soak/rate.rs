//! How fast those get in who wait, against the lower bound of the same run: the same writes in a plain loop.

use std::time::Instant;

use control_plane::Spec;
use e2e_tests::accept_support::Hub;
use e2e_tests::controller_support::Controller;
use e2e_tests::roles::user_with;
use e2e_tests::storm_support;
use e2e_tests::until_within;
use fleet_sim::Storm;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::Api;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use ocm_api::names::labels;
use ocm_api::registration::{RegistrationSpec, RegistrationStatus};
use ocm_api::{ManagedCluster, Registration};
use serde_json::json;

use crate::table::Table;
use crate::{AT_ONCE, joining, patience};

/// The part of the lower bound that is wanted.
const TARGET: f64 = 0.6;
/// How many clusters a trial of the lower bound has.
const TRIAL: usize = 300;
/// How many clusters are measured in all, in at most so many rounds.
const ALL: usize = 3000;

/// Measures both on hubs of their own, in turns.
pub(crate) fn measure(count: usize, loop_of: &Loop, table: &mut Table) {
    let mut rounds: Vec<[f64; 3]> = (0..(ALL / count).clamp(1, 3))
        .map(|round| {
            let (mut bound, mut ours) = (0.0, [0.0; 2]);
            // A machine that others use is not equally fast all the time.
            for turn in [round % 2, 1 - round % 2] {
                match turn {
                    0 => bound = loop_of.measure(count),
                    _ => ours = controller(count),
                }
            }
            println!("{count}: lower bound {bound:.1}/s, controller {:.1}/s, once it runs {:.1}/s", ours[0], ours[1]);
            [bound, ours[0], ours[1]]
        })
        .collect();
    rounds.sort_unstable_by(|one, other| (one[1] / one[0]).total_cmp(&(other[1] / other[0])));
    // The median; of two rounds the worse one.
    let [bound, ours, running] = rounds[(rounds.len() - 1) / 2];
    let at_once = loop_of.at_once;
    table.add(&format!("{count} at once, lower bound, {at_once} on their way"), format!("{bound:.1} clusters/s"));
    let figure = format!("{ours:.1} clusters/s, {:.2} of the lower bound", ours / bound);
    let target = format!(">= {TARGET}");
    table.judge(&format!("{count} at once, controller with its start"), figure, target, ours / bound >= TARGET);
    let figure = format!("{running:.1} clusters/s, {:.2} of the lower bound", running / bound);
    table.add(&format!("{count} at once, first to last accepted"), figure);
}

/// The writes of the controller for each cluster and nothing else.
pub(crate) struct Loop {
    /// How many clusters are on their way at once.
    at_once: usize,
    /// What is written of a cluster.
    template: RegistrationStatus,
}

impl Loop {
    /// With as many at once as are fastest on this machine.
    pub(crate) fn choose(hub: &Hub, template: RegistrationStatus) -> Self {
        let rate = |at_once| {
            let trial = Self { at_once, template: template.clone() };
            let rate = trial.measure_on(hub, &format!("trial{at_once}-"), TRIAL);
            println!("lower bound, {TRIAL} clusters, {at_once} at once: {rate:.1}/s");
            (rate, at_once)
        };
        let all = [16, 32, 64].map(rate);
        let best = all.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
        Self { at_once: best.1, template }
    }

    /// Clusters per second.
    fn measure(&self, count: usize) -> f64 {
        let (hub, _webhook) = storm_support::hub(&Spec::api("soak-bound"));
        self.measure_on(&hub, "c", count)
    }

    fn measure_on(&self, hub: &Hub, prefix: &str, count: usize) -> f64 {
        let fleet = hub.fleet(AT_ONCE);
        let storm = waiting(&fleet, prefix, count);
        let requests: Api<CertificateSigningRequest> = Api::all(hub.admin.clone());
        let pending = |request: &CertificateSigningRequest| {
            request.status.as_ref().and_then(|status| status.conditions.as_ref()).is_none()
        };
        let asked: Vec<_> =
            hub.wait(requests.list(&ListParams::default())).unwrap().items.into_iter().filter(pending).collect();
        assert_eq!(asked.len(), count);
        let begun = Instant::now();
        hub.wait(async {
            let all = futures::stream::iter(asked).map(|request| self.writes(hub, request));
            all.buffer_unordered(self.at_once).try_collect::<Vec<()>>().await.unwrap();
        });
        let rate = count as f64 / begun.elapsed().as_secs_f64();
        let report = storm.end(patience(count));
        assert!(report.is_right(), "{report}");
        rate
    }

    /// What the controller writes to let a cluster in: Registration, intent, approval, acceptance, Event, result.
    async fn writes(&self, hub: &Hub, mut request: CertificateSigningRequest) -> Result<(), kube::Error> {
        let params = PostParams::default();
        let name = request.metadata.labels.as_ref().unwrap()[labels::CLUSTER_NAME].clone();
        let registrations: Api<Registration> = Api::all(hub.admin.clone());
        let mut registration = registrations.create(&params, &Registration::new(&name, RegistrationSpec {})).await?;
        registration.status = Some(RegistrationStatus { keys: Vec::new(), ..self.template.clone() });
        let mut registration = registrations.replace_subresource("status", &name, &params, &registration).await?;
        let status = request.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
            type_: "Approved".to_owned(),
            status: "True".to_owned(),
            reason: Some("LowerBound".to_owned()),
            ..CertificateSigningRequestCondition::default()
        });
        let requests: Api<CertificateSigningRequest> = Api::all(hub.admin.clone());
        let request_name = request.metadata.name.clone().unwrap();
        requests.replace_subresource("approval", &request_name, &params, &request).await?;
        let clusters: Api<ManagedCluster> = Api::all(hub.admin.clone());
        let accept = Patch::Merge(json!({"spec": {"hubAcceptsClient": true}}));
        clusters.patch(&name, &PatchParams::default(), &accept).await?;
        let events: Api<Event> = Api::namespaced(hub.admin.clone(), "default");
        let event = Event {
            metadata: ObjectMeta { name: Some(format!("{name}.bound")), ..ObjectMeta::default() },
            involved_object: ObjectReference {
                kind: Some("ManagedCluster".to_owned()),
                name: Some(name.clone()),
                ..ObjectReference::default()
            },
            reason: Some("JoinAllowed".to_owned()),
            message: Some("accepted: allowed by policy approves".to_owned()),
            type_: Some("Normal".to_owned()),
            ..Event::default()
        };
        events.create(&params, &event).await?;
        registration.status = Some(self.template.clone());
        registrations.replace_subresource("status", &name, &params, &registration).await?;
        Ok(())
    }
}

/// Has so many clusters ask while nobody answers.
fn waiting(fleet: &fleet_sim::Fleet, prefix: &str, count: usize) -> Storm {
    let storm = fleet.storm(&joining(prefix, count));
    until_within(patience(count), "all have asked", || storm.asked().to_string(), || storm.asked() == count);
    // What the hub still has to do about that belongs to nobody's time.
    std::thread::sleep(std::time::Duration::from_secs(2));
    storm
}

/// Clusters per second from the start of a controller, and from the first one that it accepted to the last.
fn controller(count: usize) -> [f64; 2] {
    let (hub, _webhook) = storm_support::hub(&Spec::api("soak-rate"));
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    // Policies are compiled once: the next controller finds them in the cache.
    assert_eq!(crate::leading(&user).terminate(), Some(0));
    let fleet = hub.fleet(AT_ONCE);
    let begun = Instant::now();
    let storm = waiting(&fleet, "c", count);
    let started = begun.elapsed();
    let mut controller = Controller::spawn(&user);
    let report = storm.end(patience(count));
    assert!(report.is_right() && report.accepted == count, "{report}");
    assert_eq!(controller.terminate(), Some(0));
    let took = report.took.saturating_sub(started).as_secs_f64();
    [count as f64 / took, (count - 1) as f64 / (report.took - report.first).as_secs_f64()]
}
