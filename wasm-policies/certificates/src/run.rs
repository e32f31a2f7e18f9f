//! One run: what the hub holds, the next write, and what it holds then, until there is nothing left to do.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use ocm_api::Manifest;
use ocm_api::cert_manager::INJECT_CA_FROM;
use ocm_core::certificate::{from_pem, to_pem};
use ocm_core::policy_engine::{
    AUTHORITY_SECRET, NAMESPACE, Options, Pair, REPAIR, SERVING_SECRET, WEBHOOK, outline, webhooks,
};
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::apply::{FIELD_MANAGER, api, read};
use ocm_kube::{Cluster, access, explain};
use serde_json::{Value, json};

use crate::make::Found;
use crate::next::{Step, foreign, next, unusable_soon};

/// How long an API server may take to learn of another bundle before the webhook serves by it: each one watches by itself.
pub const LEARNS: Duration = Duration::from_secs(60);
/// How many looks a run takes at most: more than that, and somebody else changes the same all the time.
const LOOKS: usize = 32;
/// The pause after somebody else has changed the same.
const PAUSE: Duration = Duration::from_millis(200);
/// The annotations by which cert-manager is told to write bundles
/// (<https://cert-manager.io/docs/reference/annotations/>).
const INJECTED: &str = "cert-manager.io/inject-";
/// What makes certificates ours again.
const OTHERS: &str = "have it renewed by whoever made it; or delete both Secrets of certificates, and take annotations of \
                      cert-manager away, and kubectl ocm install policy-engine --wait makes its own";

/// An object as it is to be, and as it is.
type Live = (Manifest, Option<Value>);

/// What the hub holds of certificates.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The certificates, for the rules.
    pub found: Found,
    /// Whether registrations wait for the webhook.
    pub fails: bool,
    authority: Live,
    serving: Live,
    configurations: Vec<Live>,
}

/// Reads the two Secrets and the two configurations.
///
/// # Errors
/// The failure of a request.
pub async fn look(hub: &Cluster) -> Result<Seen, Failure> {
    let plan = outline(&Options::default());
    let of = |kind: &str, name: &str| {
        let ours = |manifest: &&Manifest| manifest.kind() == kind && manifest.name() == name;
        plan.objects().find(ours).cloned().ok_or_else(|| Failure::other(format!("no {kind} {name} is planned")))
    };
    let live = async |manifest: Manifest| -> Result<Live, Failure> {
        let found = read(hub, &manifest).await?;
        Ok((manifest, found))
    };
    let authority = live(of("Secret", AUTHORITY_SECRET)?).await?;
    let serving = live(of("Secret", SERVING_SECRET)?).await?;
    let mut configurations = Vec::new();
    for manifest in plan.objects().filter(|manifest| manifest.kind().ends_with("WebhookConfiguration")) {
        configurations.push(live(manifest.clone()).await?);
    }
    let found = Found {
        authority: authority.1.as_ref().and_then(Pair::of_secret),
        serving: serving.1.as_ref().and_then(Pair::of_secret),
        bundles: configurations.iter().filter_map(|(_, live)| live.as_ref()).flat_map(webhooks::bundles).collect(),
    };
    let fails = configurations.iter().filter_map(|(_, live)| live.as_ref()).any(webhooks::fails);
    Ok(Seen { found, fails, authority, serving, configurations })
}

impl Seen {
    /// What somebody else looks after, in words; none: nothing. Then nobody but them changes certificates and bundles.
    pub fn foreign(&self) -> Option<String> {
        let of = |(manifest, _): &Live| format!("cert-manager writes the bundle of {}", name(manifest));
        self.injected().map(of).or_else(|| foreign(&self.found))
    }

    /// Whether cert-manager writes a bundle.
    pub fn is_injected(&self) -> bool {
        self.injected().is_some()
    }

    /// Whether it does so for the certificate that an installation has asked it for, which is served from another Secret.
    fn is_issued(&self) -> bool {
        let own = format!("{NAMESPACE}/{WEBHOOK}");
        let from =
            |(_, live): &Live| live.as_ref().is_some_and(|live| live["metadata"]["annotations"][INJECT_CA_FROM] == own);
        self.configurations.iter().any(from)
    }

    fn injected(&self) -> Option<&Live> {
        self.configurations.iter().find(|(_, live)| {
            let annotations = live.as_ref().and_then(|live| live.pointer("/metadata/annotations")?.as_object());
            annotations.is_some_and(|all| all.keys().any(|key| key.starts_with(INJECTED)))
        })
    }

    /// Fails where an entry is missing: nothing here makes one.
    fn complete(&self) -> Result<(), Failure> {
        let missing = self.configurations.iter().filter_map(|(manifest, live)| {
            let Some(live) = live else { return Some(format!("{} is missing", name(manifest))) };
            let lacks = webhooks::lacking(manifest.body(), live);
            (!lacks.is_empty()).then(|| format!("{} lacks {}", name(manifest), lacks.join(", ")))
        });
        let missing: Vec<String> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        let sentence = format!("{}, so the API server does not ask about it", missing.join(", and "));
        Err(Failure::other(sentence).hint(REPAIR))
    }
}

/// Renews what is old, and has the API server trust it before it is served. Makes no object: what is missing is an error,
/// after all else is done.
///
/// # Errors
/// When something is missing, or changes all the time; the failure of a request. The next run goes on from there.
pub async fn run(hub: &Cluster, narrator: &dyn Narrator) -> Result<(), Failure> {
    let mut waited = false;
    for _ in 0..LOOKS {
        let seen = look(hub).await?;
        // What a machine with a wrong clock makes, nobody else would take for valid.
        let now = access::clock(hub).await?;
        if seen.is_issued() {
            narrator.tell(Event::note("cert-manager looks after the certificate: nothing was changed"));
            return Ok(());
        }
        if let Some(whose) = seen.foreign() {
            ends_soon(&seen.found, now).map_or(Ok(()), Err)?;
            narrator.tell(Event::note(format!("{whose}: nothing was changed")));
            return Ok(());
        }
        let Some(step) = next(&seen.found, now)? else {
            seen.complete()?;
            narrator.tell(Event::note("every certificate has more than a third of its life left"));
            return Ok(());
        };
        match step {
            Step::Authority(pair) => {
                if replace(hub, &seen.authority, &pair).await? {
                    narrator.tell(Event::note(format!("{} holds a new authority", name(&seen.authority.0))));
                }
                // Another authority is another wait.
                waited = false;
            }
            Step::Bundle(pem) => {
                for (manifest, live) in &seen.configurations {
                    if let Some(patch) = live.as_ref().and_then(|live| webhooks::trust(live, &pem))
                        && trust(hub, manifest, patch).await?
                    {
                        let what = format!("{} has the API server trust the authority", name(manifest));
                        narrator.tell(Event::note(what));
                    }
                }
                waited = false;
            }
            Step::Serving { waits: true, .. } if !waited => {
                narrator.tell(Event::now("waiting until every API server knows the new authority"));
                tokio::time::sleep(LEARNS).await;
                waited = true;
            }
            Step::Serving { pair, .. } => {
                if replace(hub, &seen.serving, &pair).await? {
                    narrator.tell(Event::note(format!("{} holds a new certificate", name(&seen.serving.0))));
                }
            }
        }
    }
    let sentence = "somebody else changes the webhook's certificates or configurations all the time";
    Err(Failure::new(Reason::Conflict, sentence).hint("see in the audit log of the hub who it is"))
}

/// Has the API server trust these authorities (PEM) besides those that it trusts now. Whether it did not yet.
///
/// # Errors
/// The failure of a request; [`Reason::Conflict`] where others change the same all the time.
pub async fn trust_also(hub: &Cluster, authorities: &str, narrator: &dyn Narrator) -> Result<bool, Failure> {
    let wanted = from_pem(authorities.as_bytes()).unwrap_or_default();
    if wanted.is_empty() {
        return Err(Failure::other("there is no authority that the API server could trust").hint(REPAIR));
    }
    let mut changed = false;
    for _ in 0..LOOKS {
        let seen = look(hub).await?;
        let lacks = |bundle: &Vec<u8>| {
            let trusted = from_pem(bundle).unwrap_or_default();
            wanted.iter().any(|one| !trusted.contains(one))
        };
        if !seen.found.bundles.iter().any(lacks) {
            return Ok(changed);
        }
        // What any of them trusts serves now: one that somebody has emptied must not empty the others.
        let mut all: Vec<_> = Vec::new();
        let present = seen.found.bundles.iter().flat_map(|bundle| from_pem(bundle).unwrap_or_default());
        for one in present.chain(wanted.iter().cloned()) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        let pem = to_pem(&all);
        for (manifest, live) in &seen.configurations {
            if let Some(patch) = live.as_ref().and_then(|live| webhooks::trust(live, &pem))
                && trust(hub, manifest, patch).await?
            {
                changed = true;
                let what = format!("{} has the API server trust one more authority", name(manifest));
                narrator.tell(Event::note(what));
            }
        }
    }
    let sentence = "somebody else changes the webhook's configurations all the time";
    Err(Failure::new(Reason::Conflict, sentence).hint("see in the audit log of the hub who it is"))
}

/// Why somebody has to look after certificates that are somebody else's.
fn ends_soon(found: &Found, now: Timestamp) -> Option<Failure> {
    let why = unusable_soon(found, now)?;
    Some(Failure::other(format!("{why}, and it is somebody else's: nothing was changed")).hint(OTHERS))
}

/// Puts a pair into the Secret that was read. Whether nobody else has changed it since.
async fn replace(hub: &Cluster, (manifest, live): &Live, pair: &Pair) -> Result<bool, Failure> {
    let Some(live) = live else {
        return Err(Failure::new(Reason::NotFound, format!("{} is missing", name(manifest))).hint(REPAIR));
    };
    let patch = json!({
        "metadata": {"resourceVersion": live["metadata"]["resourceVersion"], "uid": live["metadata"]["uid"]},
        "data": pair.to_data(),
    });
    written(hub, manifest, &Patch::Merge(patch), &[Reason::Conflict]).await
}

/// Changes the bundles of the configuration that was read. Whether nobody else has changed it since.
async fn trust(hub: &Cluster, manifest: &Manifest, patch: Value) -> Result<bool, Failure> {
    let patch = serde_json::from_value(patch)
        .map_err(|error| Failure::other("the bundle cannot be written as a patch").because(error))?;
    // What a JSON patch says of the object that was read and does not hold any more is invalid.
    written(hub, manifest, &Patch::Json::<Value>(patch), &[Reason::Conflict, Reason::Invalid]).await
}

async fn written(
    hub: &Cluster,
    manifest: &Manifest,
    patch: &Patch<Value>,
    changed: &[Reason],
) -> Result<bool, Failure> {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    match api(hub, manifest).patch(manifest.name(), &params, patch).await {
        Ok(_) => Ok(true),
        // The patch holds for what was read alone, and the next look tells what there is now.
        Err(error) if changed.contains(&explain(&error).reason) => {
            tokio::time::sleep(PAUSE).await;
            Ok(false)
        }
        Err(error) => Err(hub.explain(format_args!("change {}", name(manifest)), error)),
    }
}

fn name(manifest: &Manifest) -> String {
    format!("{} {}", manifest.kind(), manifest.name())
}
