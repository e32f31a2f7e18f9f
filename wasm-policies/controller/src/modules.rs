//! Modules of registries and web servers: fetched once by the controller that acts, and kept on the hub, so that neither the
//! pods nor a later controller need the place that they came from.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::core::PartialObjectMeta;
use ocm_api::conditions::hub_policy::reasons;
use ocm_api::policy::{OciSource, SecretName};
use ocm_core::policy_engine::NAMESPACE;
use ocm_core::{Event, Narrator};
use ocm_policy_distribution::{Credentials, DockerConfig, Entry, Error, ErrorKind, Reference, fetch, file};
use ocm_policy_server::store::{self, Lack, Objects, version};
use ocm_policy_server::{OfPolicy, Policies, Source, State, With};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::attempts::{Attempts, Trouble};
use crate::effects::Effects;
use crate::failed::Failed;
use crate::lease::Leadership;
use crate::parts::Parts;

/// How often it is looked whether policies name other modules.
const TICK: Duration = Duration::from_millis(500);
/// How long a registry or a web server may take for one answer.
const ANSWER: Duration = Duration::from_secs(60);
/// How many modules are fetched at once: each may be large.
const AT_ONCE: usize = 4;
/// How long one module may take, with all answers and writes.
const WHOLE: Duration = Duration::from_secs(180);
/// How often something is written that others write at the same time.
const WRITES: usize = 3;
/// How often it is looked whether what is kept is there, and is wanted.
const LOOKS: Duration = Duration::from_secs(30);
/// What policies were known to want for so long counts: for what nobody wants is deleted.
const FRESH: Duration = Duration::from_secs(20);

/// What holds credentials in a Secret.
const DOCKER_CONFIG: &str = ".dockerconfigjson";

/// Fetches and keeps modules, while this process leads.
pub(crate) struct Modules {
    effects: Effects,
    policies: Arc<Policies>,
    attempts: Mutex<Attempts>,
}

impl Modules {
    pub(crate) fn new(parts: &Parts, lead: &Leadership) -> Self {
        let effects = Effects::new(parts.effects.clone(), lead.clone());
        Self { effects, policies: parts.policies.clone(), attempts: Mutex::default() }
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The states with the reason why modules cannot be had, where that is known.
    pub(crate) fn told(&self, mut states: BTreeMap<String, State>) -> BTreeMap<String, State> {
        let sources = self.policies.sources();
        let attempts = self.attempts();
        let trouble = |of: &OfPolicy| match attempts.trouble(of, sources.get(of)) {
            Some(trouble) => (With::Source(trouble.word), trouble.message.clone()),
            None => (With::Fetching, "its module is being fetched".to_owned()),
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
        let mut tasks: JoinSet<(OfPolicy, Source, Result<Objects, Trouble>)> = JoinSet::new();
        let (mut looked, mut told) = (Instant::now(), String::new());
        loop {
            let free = AT_ONCE.saturating_sub(tasks.len());
            let due = self.attempts().due(self.policies.sources(), free, Instant::now());
            for (name, source) in due {
                let modules = self.clone();
                tasks.spawn(async move {
                    let made = tokio::time::timeout(WHOLE, modules.keep(&name, &source)).await;
                    let made = made.unwrap_or_else(|_| Err(late()));
                    (name, source, made)
                });
            }
            if looked.elapsed() >= LOOKS {
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
                    // Once for each reason: a registry that is away may be away for long.
                    Ok((name, source, made)) => {
                        let news = self.attempts().note(&name, &source, made, Instant::now());
                        if let Some(Trouble { message, .. }) = news {
                            narrator.tell(Event::warning(format!("the module of {name} is not on the hub: {message}")));
                        }
                    }
                    // A task that is gone has lost its name: everything is tried again.
                    Err(_) => self.attempts().interrupted(),
                }
            }
        }
    }

    /// Makes sure that the module of a source is kept. The objects that hold it.
    async fn keep(&self, of: &OfPolicy, source: &Source) -> Result<Objects, Trouble> {
        match store::take(self.effects.client(), source).await {
            Ok(kept) => return Ok(kept.objects),
            Err(Lack::Unread(why)) => {
                return Err(not_kept(&format!("the modules that are there cannot be read: {why}")));
            }
            Err(Lack::Missing | Lack::Damaged(_)) => {}
        }
        match source {
            Source::Oci(image) => self.image(of, source, image).await,
            Source::Url(url) => {
                let module = file(url, ANSWER).await.map_err(|error| trouble(&error, of, source))?;
                self.write_parts(module).await
            }
            _ => Ok(Objects::new()),
        }
    }

    async fn image(&self, of: &OfPolicy, source: &Source, image: &OciSource) -> Result<Objects, Trouble> {
        let credentials = match &image.pull_secret {
            Some(secret) => Some(self.credentials(of, secret, image).await?),
            None => None,
        };
        let mut fetched = fetch(image, credentials, ANSWER).await.map_err(|error| trouble(&error, of, source))?;
        let mut objects = self.write_parts(std::mem::take(&mut fetched.module)).await?;
        // Last: what it names is there then.
        let Some(name) = store::image_name(image) else { return Ok(objects) };
        let about = |there: Option<&ConfigMap>| store::about(&name, there, &fetched);
        let version = self.write(&name, about).await.map_err(|failed| not_kept(&failed))?;
        objects.insert(name, version);
        Ok(objects)
    }

    async fn credentials(
        &self,
        of: &OfPolicy,
        secret: &SecretName,
        source: &OciSource,
    ) -> Result<Credentials, Trouble> {
        let place = format!("Secret {}/{} of {}.oci.pullSecret", secret.namespace, secret.name, field(of));
        let unusable = |why: String| Trouble::new(ErrorKind::Unauthorized.word(), why, false);
        let api: Api<Secret> = Api::namespaced(self.effects.client().clone(), &secret.namespace);
        let found = self.effects.send(api.get_opt(&secret.name)).await.map_err(|failed| match failed {
            Failed::Forbidden(why) => unusable(format!(
                "{place} cannot be read: {why}; the ServiceAccount of the policy controller needs a Role that allows to \
                 get it"
            )),
            failed => Trouble::new(reasons::MODULE_NOT_KEPT, format!("{place} cannot be read: {failed}"), true),
        })?;
        let found = found.ok_or_else(|| unusable(format!("{place} is not there")))?;
        let text = found.data.and_then(|mut data| data.remove(DOCKER_CONFIG)).map(|text| text.0);
        let config = text.and_then(|text| DockerConfig::parse(&text));
        let config = config.ok_or_else(|| {
            unusable(format!(
                "{place} holds no {DOCKER_CONFIG}; kubectl create secret docker-registry makes one that does"
            ))
        })?;
        let image = Reference::parse(&source.image).map_err(|error| {
            Trouble::new(ErrorKind::Invalid.word(), format!("{error}; put {} right", field(of)), false)
        })?;
        match config.entry(&image) {
            Entry::Credentials(credentials) => Ok(credentials),
            Entry::IdentityToken => Err(unusable(format!(
                "{place} holds an identity token for {}, and user name and password are needed",
                image.registry
            ))),
            Entry::None | Entry::Helper { .. } => {
                Err(unusable(format!("{place} holds no credentials for {}", image.place())))
            }
        }
    }

    async fn write_parts(&self, module: Vec<u8>) -> Result<Objects, Trouble> {
        let too_large = |message| Trouble::new(ErrorKind::TooLarge.word(), message, false);
        // The lease is renewed meanwhile.
        let parts = tokio::task::spawn_blocking(move || store::parts(&module)).await;
        let parts = parts.map_err(|_| not_kept(&"packing it was interrupted"))?.map_err(too_large)?;
        let mut objects = Objects::new();
        for part in parts {
            let name = part.metadata.name.clone().unwrap_or_default();
            let version = self.write(&name, |_| part.clone()).await.map_err(|failed| not_kept(&failed))?;
            objects.insert(name, version);
        }
        Ok(objects)
    }

    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.effects.client().clone(), NAMESPACE)
    }

    /// Makes an object what `wanted` makes of the one that is there: what stands there otherwise is none of ours. Where somebody
    /// else has written in between, such as for another policy with the same module, it is looked at once more. The resource
    /// version that it has.
    async fn write(
        &self,
        name: &str,
        wanted: impl Fn(Option<&ConfigMap>) -> ConfigMap + Sync,
    ) -> Result<String, Failed> {
        let api = self.api();
        let mut writes = 1;
        loop {
            let there = self.effects.send(api.get_opt(name)).await?;
            let now = wanted(there.as_ref());
            let made = match &there {
                Some(there) if there.binary_data == now.binary_data && there.data == now.data => {
                    return Ok(version(there));
                }
                Some(there) if now.immutable == Some(true) => {
                    match self.effects.send(api.delete(name, &exactly(there))).await {
                        Ok(_) => self.effects.send(api.create(&PostParams::default(), &now)).await,
                        Err(failed) => Err(failed),
                    }
                }
                Some(_) => self.effects.send(api.replace(name, &PostParams::default(), &now)).await,
                None => self.effects.send(api.create(&PostParams::default(), &now)).await,
            };
            match made {
                Err(Failed::Changed) if writes < WRITES => writes += 1,
                made => return made.map(|made| version(&made)),
            }
        }
    }

    /// Has fetched again what is gone or was changed, and deletes what no policy wants any more.
    async fn tidy(&self) -> Result<(), Failed> {
        let (key, value) = store::LABEL;
        let api = self.api();
        let params = ListParams::default().labels(&format!("{key}={value}"));
        let there = self.effects.send(api.list_metadata(&params)).await?.items;
        let named = |object: &PartialObjectMeta<ConfigMap>| object.metadata.name.clone().unwrap_or_default();
        let version = |object: &PartialObjectMeta<ConfigMap>| object.metadata.resource_version.clone();
        let objects = there.iter().map(|one| (named(one), version(one).unwrap_or_default())).collect();
        let wanted = {
            let mut attempts = self.attempts();
            attempts.compare(&objects);
            attempts.kept(&self.policies.sources())
        };
        // Where a module is not known to be kept, nobody knows what belongs to it. Where the newest version is not in force,
        // the one that is may be wanted again, and the hub may be the only place that still has it.
        let is_known = self.policies.is_complete() && self.policies.age().is_some_and(|age| age < FRESH);
        let Some(mut wanted) = wanted.filter(|_| is_known && self.policies.failed().is_empty()) else { return Ok(()) };
        for source in self.policies.former_sources() {
            let about = match &source {
                Source::Oci(image) => store::image_name(image).filter(|name| objects.contains_key(name)),
                _ => None,
            };
            let about = match about {
                Some(name) => self.effects.send(api.get_opt(&name)).await?,
                None => None,
            };
            let held = store::held(&source, about.as_ref(), objects.keys().map(String::as_str));
            wanted.extend(held.into_iter().map(str::to_owned));
        }
        for object in there.iter().filter(|object| !wanted.contains(&named(object))) {
            let preconditions = Some(Preconditions { uid: object.metadata.uid.clone(), resource_version: None });
            let params = DeleteParams { preconditions, ..DeleteParams::default() };
            match self.effects.send(api.delete(&named(object), &params)).await {
                Ok(_) | Err(Failed::Changed) => {}
                Err(failed) => return Err(failed),
            }
        }
        Ok(())
    }
}

fn exactly(object: &ConfigMap) -> DeleteParams {
    let preconditions = Preconditions { uid: object.metadata.uid.clone(), resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

fn not_kept(why: &dyn std::fmt::Display) -> Trouble {
    let message = format!("its module cannot be kept in ConfigMaps of namespace {NAMESPACE}: {why}");
    Trouble::new(reasons::MODULE_NOT_KEPT, message, true)
}

fn late() -> Trouble {
    let message = format!("its module was not fetched and kept within {}", ocm_core::duration::human(WHOLE));
    Trouble::new(ErrorKind::Unreachable.word(), message, true)
}

/// Where a HubPolicy names the module.
const fn field(of: &OfPolicy) -> &'static str {
    if of.candidate { "spec.candidate.module" } else { "spec.module" }
}

/// What an error means for whoever wrote the HubPolicy.
fn trouble(error: &Error, of: &OfPolicy, source: &Source) -> Trouble {
    let (field, is_image) = (field(of), matches!(source, Source::Oci(_)));
    let next = match error.kind {
        ErrorKind::Unreachable => {
            "see that the pods of ocm-policy-controller reach it: DNS, egress, HTTPS_PROXY".to_owned()
        }
        ErrorKind::Untrusted => "name the CA certificates that it is to be trusted by in caCertificates".to_owned(),
        ErrorKind::Unauthorized if is_image => {
            format!("name a Secret with credentials that may pull it in {field}.oci.pullSecret")
        }
        ErrorKind::Unauthorized => {
            "web servers are given no credentials: have it served without, or put it into a registry".to_owned()
        }
        ErrorKind::NotFound => format!("put it there, or name another one in {field}"),
        ErrorKind::WrongDigest => "name the digest that it is to have, and see who has changed it".to_owned(),
        ErrorKind::Unsigned => {
            format!("sign it with the key of {field}.oci.signature: kubectl ocm policy push --sign-key, or cosign sign")
        }
        ErrorKind::WrongSignature => {
            format!("see who has signed it; only an image signed with the key of {field}.oci.signature is loaded")
        }
        ErrorKind::NotAModule if is_image => "kubectl ocm policy push makes images of modules".to_owned(),
        ErrorKind::Refused => {
            format!("if it stays so, see why the server answers this, or name another one in {field}")
        }
        ErrorKind::NotAModule | ErrorKind::TooLarge | ErrorKind::Invalid => format!("put {field} right"),
    };
    let (message, own) = (format!("{error}; {next}"), error.failure.message.clone());
    Trouble { word: error.kind.word(), message, own, may_pass: error.kind.may_pass() }
}

#[cfg(test)]
mod tests {
    use ocm_api::policy::UrlSource;

    use super::*;

    #[test]
    fn whoever_wrote_a_policy_is_told_what_to_change_where() {
        let url = Source::Url(UrlSource { url: String::new(), sha256: String::new(), ca_certificates: None });
        let said = |kind, candidate, source: &Source| {
            let of = OfPolicy { name: "p".to_owned(), candidate };
            trouble(&Error::new(kind, "it went wrong"), &of, source).message
        };
        let image = Source::Oci(Box::default());
        let unauthorized = said(ErrorKind::Unauthorized, false, &image);
        assert!(unauthorized.ends_with("in spec.module.oci.pullSecret"), "{unauthorized}");
        assert!(said(ErrorKind::Unauthorized, true, &image).ends_with("in spec.candidate.module.oci.pullSecret"));
        assert!(said(ErrorKind::Unauthorized, false, &url).contains("web servers are given no credentials"));
        assert!(said(ErrorKind::NotFound, true, &url).ends_with("in spec.candidate.module"));
        assert!(said(ErrorKind::Refused, false, &url).contains("see why the server answers this"));
    }
}
