//! A look at the way to another cluster from where an agent or its operator runs, by a Job that is removed afterwards:
//! `troubleshoot --in-cluster`, and before a cluster joins whose agents run elsewhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::batch::v1 as batch;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use ocm_api::parts::{ContainerStateTerminated, Pod, PodStatus};
use ocm_checks::snapshot::{AgentSide, PolicyRule, Trouble};
use ocm_core::probe_job::{CONTAINER, UNREACHED, job, proxies};
use ocm_core::redact::redact;
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::access::{Right, missing};
use ocm_kube::relay::Relay;
use ocm_net::Vantage;

use crate::workload;

/// How long a pod may take until it runs: its image should be on the node.
const START: Duration = Duration::from_secs(30);

/// Time between two looks at a pod that is being started.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a pod may take to open a connection, and its kubelet to tell it.
const ANSWER: Duration = Duration::from_secs(15);

/// How long removing a Job may take.
const REMOVAL: Duration = Duration::from_secs(5);

/// Looks from where agents run. Clones share what is left to be removed.
#[derive(Clone, Default)]
pub struct InCluster {
    /// The image of the pod; none: the agent's own.
    pub image: Option<String>,
    jobs: Arc<Mutex<Vec<Started>>>,
}

/// A Job that was made.
#[derive(Clone)]
struct Started {
    managed: Cluster,
    namespace: String,
    name: String,
}

/// A place beside an agent.
pub(crate) struct Place {
    /// From there connections are opened.
    pub(crate) from: Vantage,
    /// What the agent's environment says of proxies.
    pub(crate) proxies: Vec<(String, String)>,
}

impl InCluster {
    /// With another image than the agent's own.
    pub fn with_image(image: Option<String>) -> Self {
        Self { image, ..Self::default() }
    }

    /// Starts a pod beside an agent.
    ///
    /// # Errors
    /// Why there is none: a missing right, an agent without a Deployment, a pod that does not start.
    pub(crate) async fn start(
        &self,
        managed: &Cluster,
        agent: &AgentSide,
        narrator: &dyn Narrator,
    ) -> Result<Place, Trouble> {
        let namespace = agent.namespace.as_str();
        may_start(managed, namespace).await?;
        let started = async {
            let deployment = deployment(managed, agent).await?;
            let because = "the agent's Deployment names no image";
            let job = job(&deployment, self.image.as_deref()).ok_or_else(|| Failure::other(because))?;
            narrator.tell(Event::now(format!("starting a pod in {namespace} to look from there")));
            let name = self.create(managed, namespace, &job).await?;
            let pod = running(managed, namespace, &name).await.map_err(|failure| self.hinted(failure))?;
            let pods = Api::namespaced(managed.client.clone(), namespace);
            let from = Vantage::elsewhere(Relay { pods, pod, container: CONTAINER.to_owned() });
            Ok(Place { from, proxies: proxies(&deployment) })
        };
        started.await.map_err(|failure: Failure| {
            Trouble::of(&failure.context("cannot look from within the managed cluster".to_owned()), None)
        })
    }

    fn hinted(&self, failure: Failure) -> Failure {
        match self.image {
            Some(_) => failure,
            None => failure.because("its image has to have bash, cat and sleep, or another one has to be named"),
        }
    }

    /// Has the pod of a Job open a connection by itself, and waits for how it ends: none, where there is one, or why there is none.
    ///
    /// # Errors
    /// Why it says nothing of that: the Job cannot be made, or its pod does not run.
    pub(crate) async fn connects(
        &self,
        cluster: &Cluster,
        namespace: &str,
        job: &serde_json::Value,
    ) -> Result<Option<String>, Failure> {
        let name = self.create(cluster, namespace, job).await?;
        let pods = workload::pods(cluster, namespace);
        let (begun, mut runs): (Instant, Option<Instant>) = (Instant::now(), None);
        loop {
            let pod = pod_of(cluster, namespace, &pods, &name).await?;
            let status = pod.and_then(|pod| pod.status).unwrap_or_default();
            if let Some(end) = look_of(&status) {
                return ended(end);
            }
            match status.phase.as_deref() {
                Some("Running") if runs.get_or_insert_with(Instant::now).elapsed() > ANSWER => {
                    return Ok(Some(format!("nothing answers within {} seconds", ANSWER.as_secs())));
                }
                Some("Running") => {}
                _ => {
                    if let Err(failure) = starts(cluster, namespace, &name, begun).await {
                        // It may have come to its end since it was looked at.
                        let pod = pod_of(cluster, namespace, &pods, &name).await?;
                        let status = pod.and_then(|pod| pod.status).unwrap_or_default();
                        return look_of(&status).map_or(Err(failure), ended);
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn create(&self, managed: &Cluster, namespace: &str, job: &serde_json::Value) -> Result<String, Failure> {
        let kind = ApiResource::erase::<batch::Job>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(managed.client.clone(), namespace, &kind);
        let explained = |error| managed.explain(format_args!("create a Job in {namespace}"), error);
        let object: DynamicObject =
            serde_json::from_value(job.clone()).map_err(|error| explained(kube::Error::SerdeError(error)))?;
        let made = api.create(&PostParams::default(), &object).await.map_err(explained)?;
        let name = made.metadata.name.unwrap_or_default();
        let started = Started { managed: managed.clone(), namespace: namespace.to_owned(), name: name.clone() };
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(started);
        Ok(name)
    }

    /// Removes every Job that is left. One that cannot be removed ends by itself, and is removed by the cluster after that.
    pub async fn remove_all(&self, narrator: &dyn Narrator) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        let removing = jobs.iter().map(|started| async move {
            let Started { managed, namespace, name } = started;
            let kind = ApiResource::erase::<batch::Job>(&());
            let api: Api<DynamicObject> = Api::namespaced_with(managed.client.clone(), namespace, &kind);
            let removed = tokio::time::timeout(REMOVAL, api.delete(name, &DeleteParams::background())).await;
            let failure = match removed {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => managed.explain(format_args!("delete Job {namespace}/{name}"), error),
                Err(_) => Failure::other(format!("cannot delete Job {namespace}/{name}: no answer")),
            };
            if failure.reason != Reason::NotFound {
                narrator.tell(Event::warning(format!("{failure}; it ends by itself within minutes")));
            }
        });
        futures::stream::iter(removing).buffer_unordered(8).collect::<Vec<()>>().await;
    }
}

/// Fails before anything is made unless everything may be done.
async fn may_start(managed: &Cluster, namespace: &str) -> Result<(), Trouble> {
    let right = |verb: &'static str, group: &'static str, resource: &'static str| {
        (Right::new(verb, group, resource).within(namespace), PolicyRule::new(verb, group, resource, Some(namespace)))
    };
    let needed = [
        right("create", "batch", "jobs"),
        right("delete", "batch", "jobs"),
        right("list", "", "pods"),
        right("get", "", "pods/exec"),
        right("create", "", "pods/exec"),
    ];
    let rights: Vec<Right> = needed.iter().map(|(right, _)| right.clone()).collect();
    let missing = missing(managed, &rights).await.map_err(|failure| Trouble::of(&failure, None))?;
    let Some(first) = missing.first() else { return Ok(()) };
    let rule = needed.iter().find(|(right, _)| right == first).map(|(_, rule)| rule.clone());
    let failure = Failure::new(
        Reason::Forbidden,
        format!("you may not {first}, so nobody can look from within the managed cluster"),
    );
    Err(Trouble::of(&failure, rule))
}

/// The Deployment of the agent that registers.
async fn deployment(managed: &Cluster, agent: &AgentSide) -> Result<serde_json::Value, Failure> {
    let kind = ApiResource::erase::<apps::Deployment>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(managed.client.clone(), &agent.namespace, &kind);
    for name in ["registration-agent", "agent"].map(|end| format!("{}-{end}", agent.klusterlet)) {
        let explained = |error| managed.explain(format_args!("read Deployment {}/{name}", agent.namespace), error);
        if let Some(found) = api.get_opt(&name).await.map_err(explained)? {
            return serde_json::to_value(found).map_err(|error| explained(kube::Error::SerdeError(error)));
        }
    }
    Err(Failure::new(Reason::NotFound, format!("the agent has no Deployment in {}", agent.namespace)))
}

/// What the end of a container says that was to open a connection: none, it has; or why it has not, in its own words.
///
/// # Errors
/// It has not come so far.
fn ended(end: &ContainerStateTerminated) -> Result<Option<String>, Failure> {
    let words = end.message.as_deref().unwrap_or_default();
    let last = words.lines().map(str::trim).rfind(|line| !line.is_empty()).map(redact);
    match end.exit_code {
        0 => Ok(None),
        UNREACHED => Ok(Some(last.unwrap_or_else(|| "its shell says nothing".to_owned()))),
        _ => Err(last.into_iter().fold(Failure::other("the pod ended before it had looked"), Failure::because)),
    }
}

/// How the container of a pod ended that was to look. Others may be in the pod, whose phase tells of all of them.
fn look_of(status: &PodStatus) -> Option<&ContainerStateTerminated> {
    let look = status.container_statuses.iter().flatten().find(|container| container.name == CONTAINER);
    look?.state.as_ref()?.terminated.as_ref()
}

/// The pod of a Job; none: there is none yet.
async fn pod_of(cluster: &Cluster, namespace: &str, pods: &Api<Pod>, job: &str) -> Result<Option<Pod>, Failure> {
    let listed = pods.list(&ListParams::default().labels(&own(job))).await;
    let explained = |error| cluster.explain(format_args!("list the pods of {namespace}"), error);
    Ok(listed.map_err(explained)?.items.into_iter().next())
}

/// What selects the pods of a Job.
fn own(job: &str) -> String {
    format!("batch.kubernetes.io/job-name={job}")
}

/// Waits until the pod of a Job runs, and tells its name.
async fn running(managed: &Cluster, namespace: &str, job: &str) -> Result<String, Failure> {
    let pods = workload::pods(managed, namespace);
    let begun = Instant::now();
    loop {
        let found = pod_of(managed, namespace, &pods, job).await?;
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        if let Some(pod) = found.filter(|pod| phase(pod).as_deref() == Some("Running")) {
            return Ok(pod.metadata.name.unwrap_or_default());
        }
        starts(managed, namespace, job, begun).await?;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether the pod of a Job that was made then may still start.
///
/// # Errors
/// It will not, or has not in time.
async fn starts(cluster: &Cluster, namespace: &str, job: &str, begun: Instant) -> Result<(), Failure> {
    let (why, is_stuck) = workload::of_pods(cluster, namespace, &own(job)).await?;
    if !is_stuck && begun.elapsed() <= START {
        return Ok(());
    }
    let why = why.unwrap_or_else(|| "no pod has been created for it".to_owned());
    Err(Failure::new(Reason::TimedOut, format!("the pod of Job {namespace}/{job} does not start")).because(why))
}
