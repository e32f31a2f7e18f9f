//! Modules of registries and web servers: fetched once by the controller that acts, and kept on the hub, so that neither the
//! pods nor a later controller need the place that they came from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use ocm_api::policy::{OciSource, SecretName, UrlSource};
use ocm_core::policy_engine::NAMESPACE;
use ocm_core::{Event, Narrator};
use ocm_policy_distribution::{Credentials, DockerConfig, Entry, Error, ErrorKind, Fetched, Reference, fetch, file};
use ocm_policy_server::store::{self, Lack};
use ocm_policy_server::{OfPolicy, Policies, Source, State, With};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::controller::Parts;
use crate::effects::{Effects, Failed};
use crate::lease::Leadership;

/// How often it is looked whether policies name other modules.
const TICK: Duration = Duration::from_millis(500);
/// How long a registry or a web server may take for one answer.
const ANSWER: Duration = Duration::from_secs(60);
/// How many modules are fetched at once: each may be large.
const AT_ONCE: usize = 4;
/// When a module is fetched again that could not be had: what may pass by itself, and what somebody has to put right.
const SOON: Duration = Duration::from_secs(10);
const LATER: Duration = Duration::from_secs(30);
/// How often it is looked whether what is kept is there, and is wanted.
const LOOKS: Duration = Duration::from_secs(30);
/// What policies were known to want for so long counts: for what nobody wants is deleted.
const FRESH: Duration = Duration::from_secs(20);

/// What holds credentials in a Secret.
const DOCKER_CONFIG: &str = ".dockerconfigjson";
/// The reason where it is the hub that fails.
const NOT_KEPT: &str = "ModuleNotKept";

/// What became of the module of a policy.
struct Attempt {
    /// What was wanted then.
    source: Source,
    /// Whether it is being looked after.
    runs: bool,
    /// What came of it the last time; none: it was not looked after yet.
    outcome: Option<Outcome>,
    at: Instant,
}

enum Outcome {
    /// It is kept in objects of these names.
    Kept(BTreeSet<String>),
    /// It cannot be had.
    Failed(Trouble),
}

/// Why a module cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trouble {
    /// A stable word.
    word: &'static str,
    /// The sentence, with what to do.
    message: String,
    /// Whether it may pass by itself.
    may_pass: bool,
}

/// Fetches and keeps modules, while this process leads.
pub(crate) struct Modules {
    effects: Effects,
    policies: Arc<Policies>,
    attempts: Mutex<BTreeMap<OfPolicy, Attempt>>,
}

impl Modules {
    pub(crate) fn new(parts: &Parts, lead: &Leadership) -> Self {
        let effects = Effects::new(parts.effects.clone(), lead.clone());
        Self { effects, policies: parts.policies.clone(), attempts: Mutex::default() }
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<OfPolicy, Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The states with the reason why modules cannot be had, where that is known.
    pub(crate) fn told(&self, mut states: BTreeMap<String, State>) -> BTreeMap<String, State> {
        let sources = self.policies.sources();
        let attempts = self.attempts();
        // What came of another source tells nothing of this one.
        let trouble = |of: &OfPolicy| {
            let attempt = attempts.get(of).filter(|attempt| sources.get(of) == Some(&attempt.source));
            match attempt.and_then(|attempt| attempt.outcome.as_ref()) {
                Some(Outcome::Failed(trouble)) => (With::Source(trouble.word), trouble.message.clone()),
                _ => (With::Fetching, "its module is being fetched".to_owned()),
            }
        };
        for (name, state) in &mut states {
            let of = |candidate| OfPolicy { name: name.clone(), candidate };
            if state.with == With::Fetching {
                let (with, why) = trouble(&of(false));
                (state.with, state.failed) = (with, Some(why));
            }
            if let Some(state) = state.candidate.as_mut().filter(|state| state.with == With::Fetching) {
                let (with, why) = trouble(&of(true));
                (state.with, state.failed) = (with, Some(why));
            }
        }
        states
    }

    /// Goes on until it is dropped.
    pub(crate) async fn run(self: &Arc<Self>, narrator: &dyn Narrator) {
        let mut tasks: JoinSet<(OfPolicy, Source, Result<BTreeSet<String>, Trouble>)> = JoinSet::new();
        let (mut looked, mut told) = (Instant::now(), String::new());
        loop {
            for (name, source) in self.due(AT_ONCE.saturating_sub(tasks.len())) {
                let modules = self.clone();
                tasks.spawn(async move {
                    let made = modules.keep(&source).await;
                    (name, source, made)
                });
            }
            if looked.elapsed() >= LOOKS && tasks.is_empty() {
                match self.tidy().await {
                    Ok(()) => told.clear(),
                    Err(failed) => {
                        let why = format!("the modules that are kept on the hub cannot be looked at: {failed}");
                        if why != told {
                            narrator.tell(Event::warning(why.clone()));
                            told = why;
                        }
                    }
                }
                looked = Instant::now();
            }
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                Some(done) = tasks.join_next() => match done {
                    Ok((name, source, made)) => self.note(name, source, made, narrator),
                    // A task that is gone has lost its name: everything is tried again.
                    Err(_) => self.attempts().values_mut().for_each(|attempt| attempt.runs = false),
                }
            }
        }
    }

    /// The next modules to look after, which are then being looked after.
    fn due(&self, most: usize) -> Vec<(OfPolicy, Source)> {
        let mut wanted = self.policies.sources();
        wanted.retain(|_, source| source.is_fetched());
        let mut attempts = self.attempts();
        attempts.retain(|name, _| wanted.contains_key(name));
        let is_due = |(name, source): &(OfPolicy, Source)| match attempts.get(name) {
            Some(attempt) => attempt.is_due(source),
            None => true,
        };
        let due: Vec<_> = wanted.into_iter().filter(is_due).take(most).collect();
        for (name, source) in &due {
            let before = attempts.remove(name).filter(|before| before.source == *source);
            // Until more is known, what was said of it stands.
            let outcome = before.and_then(|before| before.outcome);
            let attempt = Attempt { source: source.clone(), runs: true, outcome, at: Instant::now() };
            attempts.insert(name.clone(), attempt);
        }
        due
    }

    fn note(&self, name: OfPolicy, source: Source, made: Result<BTreeSet<String>, Trouble>, narrator: &dyn Narrator) {
        let mut attempts = self.attempts();
        // Of what was wanted before, nobody wants to know.
        let Some(attempt) = attempts.get_mut(&name).filter(|attempt| attempt.source == source) else { return };
        (attempt.runs, attempt.at) = (false, Instant::now());
        let before = attempt.outcome.replace(made.map_or_else(Outcome::Failed, Outcome::Kept));
        // Once for each reason: a registry that is away may be away for long.
        if let Some(Outcome::Failed(trouble)) = &attempt.outcome
            && !matches!(&before, Some(Outcome::Failed(before)) if before == trouble)
        {
            let why = &trouble.message;
            narrator.tell(Event::warning(format!("the module of {name} is not on the hub: {why}")));
        }
    }

    /// Makes sure that the module of a source is kept. The names of the objects that hold it.
    async fn keep(&self, source: &Source) -> Result<BTreeSet<String>, Trouble> {
        match store::take(self.effects.client(), source).await {
            Ok(kept) => return Ok(kept.names),
            Err(Lack::Unread(why)) => {
                return Err(not_kept(&format!("the modules that are there cannot be read: {why}")));
            }
            Err(Lack::Missing | Lack::Damaged(_)) => {}
        }
        let names = match source {
            Source::Oci(image) => self.image(image).await?,
            Source::Url(url) => self.file(url).await?,
            _ => BTreeSet::new(),
        };
        Ok(names)
    }

    async fn image(&self, source: &OciSource) -> Result<BTreeSet<String>, Trouble> {
        let credentials = match &source.pull_secret {
            Some(secret) => Some(self.credentials(secret, source).await?),
            None => None,
        };
        let fetched = fetch(source, credentials, ANSWER).await.map_err(|error| trouble(&error))?;
        let mut names = self.write_parts(&fetched.module).await?;
        // Last: what it names is there then.
        let Some(name) = store::image_name(source) else { return Ok(names) };
        self.write_image(&name, &fetched).await.map_err(|failed| not_kept(&failed))?;
        names.insert(name);
        Ok(names)
    }

    async fn file(&self, source: &UrlSource) -> Result<BTreeSet<String>, Trouble> {
        let module = file(source, ANSWER).await.map_err(|error| trouble(&error))?;
        self.write_parts(&module).await
    }

    async fn credentials(&self, secret: &SecretName, source: &OciSource) -> Result<Credentials, Trouble> {
        let place = format!("Secret {}/{} of spec.module.oci.pullSecret", secret.namespace, secret.name);
        let unusable = |why: String| Trouble { word: ErrorKind::Unauthorized.word(), message: why, may_pass: false };
        let api: Api<Secret> = Api::namespaced(self.effects.client().clone(), &secret.namespace);
        let found = self.effects.send(api.get_opt(&secret.name)).await.map_err(|failed| {
            unusable(format!(
                "{place} cannot be read: {failed}; the ServiceAccount of the policy controller needs a Role that allows \
                 to get it"
            ))
        })?;
        let found = found.ok_or_else(|| unusable(format!("{place} is not there")))?;
        let text = found.data.and_then(|mut data| data.remove(DOCKER_CONFIG)).map(|text| text.0);
        let config = text.and_then(|text| DockerConfig::parse(&text));
        let config = config.ok_or_else(|| {
            unusable(format!(
                "{place} holds no {DOCKER_CONFIG}; kubectl create secret docker-registry makes one that does"
            ))
        })?;
        let registry = Reference::parse(&source.image).map(|image| image.registry).unwrap_or_default();
        match config.entry(&registry) {
            Entry::Credentials(credentials) => Ok(credentials),
            Entry::None | Entry::Helper { .. } => Err(unusable(format!("{place} holds no credentials for {registry}"))),
        }
    }

    async fn write_parts(&self, module: &[u8]) -> Result<BTreeSet<String>, Trouble> {
        let parts = store::parts(module).map_err(|message| {
            let word = ErrorKind::TooLarge.word();
            Trouble { word, message, may_pass: false }
        })?;
        let mut names = BTreeSet::new();
        for part in parts {
            let name = part.metadata.name.clone().unwrap_or_default();
            self.write_part(&name, part).await.map_err(|failed| not_kept(&failed))?;
            names.insert(name);
        }
        Ok(names)
    }

    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.effects.client().clone(), NAMESPACE)
    }

    /// Writes what never changes: what stands there otherwise is none of ours.
    async fn write_part(&self, name: &str, part: ConfigMap) -> Result<(), Failed> {
        let api = self.api();
        if let Some(there) = self.effects.send(api.get_opt(name)).await? {
            if there.binary_data == part.binary_data && there.data == part.data {
                return Ok(());
            }
            self.effects.send(api.delete(name, &exactly(&there))).await?;
        }
        self.effects.send(api.create(&PostParams::default(), &part)).await.map(|_| ())
    }

    async fn write_image(&self, name: &str, fetched: &Fetched) -> Result<(), Failed> {
        let api = self.api();
        let there = self.effects.send(api.get_opt(name)).await?;
        let about = store::about(name, there.as_ref(), fetched);
        match there {
            Some(_) => self.effects.send(api.replace(name, &PostParams::default(), &about)).await,
            None => self.effects.send(api.create(&PostParams::default(), &about)).await,
        }
        .map(|_| ())
    }

    /// Has fetched again what is gone, and deletes what no policy wants any more.
    async fn tidy(&self) -> Result<(), Failed> {
        let (key, value) = store::LABEL;
        let api = self.api();
        let params = ListParams::default().labels(&format!("{key}={value}"));
        let there = self.effects.send(api.list_metadata(&params)).await?.items;
        let names: BTreeSet<&str> = there.iter().filter_map(|object| object.metadata.name.as_deref()).collect();
        let (wanted, known) = {
            let mut attempts = self.attempts();
            attempts.retain(|_, attempt| {
                attempt.names().is_none_or(|kept| kept.iter().all(|name| names.contains(name.as_str())))
            });
            let wanted: BTreeSet<String> = attempts.values().filter_map(Attempt::names).flatten().cloned().collect();
            let kept: BTreeSet<&OfPolicy> =
                attempts.iter().filter(|(_, one)| one.names().is_some()).map(|(name, _)| name).collect();
            // Of a policy whose module is not known to be kept, nobody knows what belongs to it.
            let sources = self.policies.sources();
            let known = sources.iter().all(|(name, source)| match source {
                Source::Oci(_) | Source::Url(_) => kept.contains(name),
                Source::Unknown => false,
                _ => true,
            });
            (wanted, known)
        };
        let fresh = self.policies.is_complete() && self.policies.age().is_some_and(|age| age < FRESH);
        if !known || !fresh {
            return Ok(());
        }
        for object in there {
            let name = object.metadata.name.clone().unwrap_or_default();
            if !wanted.contains(&name) {
                let preconditions = Some(Preconditions { uid: object.metadata.uid, resource_version: None });
                let params = DeleteParams { preconditions, ..DeleteParams::default() };
                match self.effects.send(api.delete(&name, &params)).await {
                    Ok(_) | Err(Failed::Changed) => {}
                    Err(failed) => return Err(failed),
                }
            }
        }
        Ok(())
    }
}

impl Attempt {
    fn names(&self) -> Option<&BTreeSet<String>> {
        match &self.outcome {
            Some(Outcome::Kept(names)) => Some(names),
            _ => None,
        }
    }

    /// Whether something is to be done for what is wanted now.
    fn is_due(&self, source: &Source) -> bool {
        if self.source != *source {
            return true;
        }
        match &self.outcome {
            _ if self.runs => false,
            Some(Outcome::Kept(_)) => false,
            Some(Outcome::Failed(trouble)) => self.at.elapsed() >= if trouble.may_pass { SOON } else { LATER },
            None => true,
        }
    }
}

fn exactly(object: &ConfigMap) -> DeleteParams {
    let preconditions = Preconditions { uid: object.metadata.uid.clone(), resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

fn not_kept(why: &dyn std::fmt::Display) -> Trouble {
    let message = format!("its module cannot be kept in ConfigMaps of namespace {NAMESPACE}: {why}");
    Trouble { word: NOT_KEPT, message, may_pass: true }
}

/// What an error means for whoever wrote the HubPolicy.
fn trouble(error: &Error) -> Trouble {
    let next = match error.kind {
        ErrorKind::Unreachable => "see that the pods of ocm-policy-controller reach it: DNS, egress, HTTPS_PROXY",
        ErrorKind::Untrusted => "name the CA certificates that it is to be trusted by in caCertificates",
        ErrorKind::Unauthorized => "name a Secret with credentials that may pull it in spec.module.oci.pullSecret",
        ErrorKind::NotFound => "put it there, or name another one in spec.module",
        ErrorKind::WrongDigest => "name the digest that it is to have, and see who has changed it",
        ErrorKind::Unsigned => {
            "sign it with the key of spec.module.oci.signature: kubectl ocm policy push --sign-key, or cosign sign"
        }
        ErrorKind::WrongSignature => {
            "see who has signed it; only an image signed with the key of spec.module.oci.signature is loaded"
        }
        ErrorKind::NotAModule => "kubectl ocm policy push makes images of modules",
        ErrorKind::Refused | ErrorKind::TooLarge | ErrorKind::Invalid => "put spec.module right",
    };
    Trouble { word: error.kind.word(), message: format!("{error}; {next}"), may_pass: error.kind.may_pass() }
}
