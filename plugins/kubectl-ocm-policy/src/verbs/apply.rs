//! From files to the policies of a hub.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ocm_api::HubPolicy;
use ocm_api::policy::Module;
use ocm_cli::{OutputArgs, PlanView, Ui, options};
use ocm_core::hub_policy::disabled;
use ocm_core::hub_policy::files::{Document, Files, FilesError, Given, Located};
use ocm_core::plan::{Applied, Mode};
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, nearest};
use ocm_flows::policies::{ApplyRequest, PoliciesApplied, apply_policies};
use ocm_kube::connect;
use ocm_policy_distribution::{ErrorKind, fetch, file};
use ocm_policy_engine::digest;
use serde_json::{Map, Value, json};

use crate::args::KindArgs;
use crate::args::hub::ApplyArgs;
use crate::load::{Loader, module};
use crate::processes::on_thread;
use crate::verbs::registry::{ANSWER, credentials, reference};

pub(crate) async fn run(args: ApplyArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let ApplyArgs { files, modules, kind, without_fetch, wait, timeout, plan, output: OutputArgs { output }, client } =
        args;
    let timeout = options::timeout(&timeout)?;
    let view = PlanView::new(ui.clone(), &plan, output)?;
    let connection = client.connection()?;
    let teller = ui.clone();
    let files = on_thread(move |_| read(&files, &modules, kind)).await?;
    let fetched = if without_fetch { FetchedModules::default() } else { fetched(&files, &ui).await? };
    let (files, digests) = on_thread(move |_| checked(files, &fetched, &teller)).await?;
    let plan = files.plan();
    if view.mode() == Mode::Render {
        return view.manifests(&plan);
    }
    let hub = connect(&connection, ui.clone()).await?;
    let request = ApplyRequest { plan, digests, mode: view.mode(), wait: wait.then_some(timeout) };
    let PoliciesApplied { applied, in_force } =
        apply_policies(&hub, &request, &*ui, |applied| view.row(applied)).await?;
    if view.mode() == Mode::Diff {
        return view.diff(&applied);
    }
    let mut members = Map::new();
    members.insert("inForce".to_owned(), json!(in_force.as_ref().map(Result::is_ok)));
    view.document(members)?;
    // What a dry run of the client comes to is not known.
    if view.mode().dry_run() != DryRun::Client {
        applied.iter().filter_map(about_disabled).for_each(|event| ui.tell(event));
    }
    let waited = in_force.transpose()?.is_some();
    if view.mode().changes() {
        ui.tell(Event::note(match waited {
            true => "every policy is in force as it was applied",
            false => "it takes effect in a moment; --wait would tell when",
        }));
    }
    Ok(Exit::Ok)
}

/// What the files hold.
pub(crate) fn read(paths: &[PathBuf], modules: &[String], kind: KindArgs) -> Result<Files, Failure> {
    if kind.kind.is_some() && modules.is_empty() {
        return Err(Failure::usage("--kind is about the files of --module, and there is none"));
    }
    let mut documents = Vec::new();
    for path in paths {
        for (index, value) in crate::files::documents(path, "the file")?.into_iter().enumerate() {
            documents.push(Document { source: format!("{}, document {}", path.display(), index + 1), value });
        }
    }
    let mut files = Files::read(documents).map_err(wrong)?;
    for word in modules {
        let Some((policy, file)) = word.split_once('=').filter(|(policy, file)| !policy.is_empty() && !file.is_empty())
        else {
            return Err(Failure::usage(format!("--module {word:?} is not POLICY=FILE")));
        };
        files.add_module(policy, module(Path::new(file), kind)?).map_err(wrong)?;
    }
    Ok(files)
}

/// Modules that were fetched: of policies, and of their candidates, by name.
#[derive(Default)]
pub(crate) struct FetchedModules {
    policies: BTreeMap<String, Vec<u8>>,
    candidates: BTreeMap<String, Vec<u8>>,
}

impl FetchedModules {
    /// That of a policy.
    pub(crate) fn of(&self, policy: &str) -> Option<&[u8]> {
        self.policies.get(policy).map(Vec::as_slice)
    }

    /// That of the candidate of a policy.
    pub(crate) fn of_candidate(&self, policy: &str) -> Option<&[u8]> {
        self.candidates.get(policy).map(Vec::as_slice)
    }
}

/// The modules of registries and web servers: what cannot be loaded is seen here then.
pub(crate) async fn fetched(files: &Files, ui: &Ui) -> Result<FetchedModules, Failure> {
    let mut modules = FetchedModules::default();
    for given in files.policies() {
        let name = given.name();
        if let Some(module) = fetch_one(given, &given.policy, POLICY, ui).await? {
            modules.policies.insert(name.to_owned(), module);
        }
        if let Some(tried) = given.candidate() {
            // One with other settings alone has the module of its policy.
            let same = tried.spec.module == given.policy.spec.module;
            let module = match modules.policies.get(name).filter(|_| same) {
                Some(module) => Some(module.clone()),
                None => fetch_one(given, &tried, CANDIDATE, ui).await?,
            };
            if let Some(module) = module {
                modules.candidates.insert(name.to_owned(), module);
            }
        }
    }
    Ok(modules)
}

/// What a policy is called.
pub(crate) const POLICY: &str = "policy";
/// What a candidate is called.
pub(crate) const CANDIDATE: &str = "the candidate of policy";

/// The module of a version of a policy; none: it is not in a registry or on a web server.
async fn fetch_one(given: &Given, version: &HubPolicy, what: &str, ui: &Ui) -> Result<Option<Vec<u8>>, Failure> {
    let made = match version.spec.module.module() {
        Some(Module::Oci(image)) => {
            ui.tell(Event::now(format!("fetching {}", image.image)));
            let named = reference(&image.image)?;
            let credentials = on_thread(move |processes| credentials(&named, &processes)).await?;
            fetch(image, credentials, ANSWER).await.map(|fetched| fetched.module)
        }
        Some(Module::Url(url)) => {
            ui.tell(Event::now(format!("fetching {}", url.url)));
            file(url, ANSWER).await
        }
        _ => return Ok(None),
    };
    made.map(Some).map_err(|error| {
        let (name, source) = (given.name(), &given.source);
        let sentence = format!("{what} {name:?} of {source}: its module cannot be had, so nothing was applied");
        let reachable = error.kind.may_pass() || matches!(error.kind, ErrorKind::Untrusted | ErrorKind::Unauthorized);
        let failure = error.failure.context(sentence);
        match reachable {
            true => failure
                .hint("--without-fetch applies it without a look, where the hub reaches what this machine does not"),
            false => failure,
        }
    })
}

/// The files after a look at whether what they hold can be loaded, and the digests of modules, where these are at hand.
fn checked(mut files: Files, fetched: &FetchedModules, ui: &Ui) -> Result<(Files, Vec<(String, String)>), Failure> {
    let loader = Loader::new(ui)?;
    let (mut digests, mut pins, mut candidates) = (Vec::new(), Vec::new(), Vec::new());
    for given in files.policies() {
        let name = given.name();
        ui.tell(Event::now(format!("loading {name}")));
        let module = fetched.of(name);
        if let Some(digest) = check(&loader, &files, given, (&given.policy, POLICY, module), ui)? {
            // What was fetched is named by a digest already.
            if module.is_none() {
                pins.push((name.to_owned(), digest.clone()));
            }
            digests.push((name.to_owned(), digest));
        }
        let module = fetched.of_candidate(name);
        if let Some(tried) = given.candidate()
            && let Some(digest) = check(&loader, &files, given, (&tried, CANDIDATE, module), ui)?
            && module.is_none()
        {
            candidates.push((name.to_owned(), digest));
        }
    }
    let find = |digests: &[(String, String)], name: &str| {
        digests.iter().find(|(of, _)| of == name).map(|(_, digest)| digest.clone())
    };
    for given in files.policies_mut() {
        if let Some(digest) = find(&pins, given.name()) {
            given.pin(&digest);
        }
        if let Some(digest) = find(&candidates, given.name()) {
            given.pin_candidate(&digest);
        }
    }
    Ok((files, digests))
}

/// Loads a version of the policy of a file, said with what it is and the module that was fetched for it, where its module
/// is at hand; returns the digest of one that does not come along.
fn check(
    loader: &Loader,
    files: &Files,
    given: &Given,
    (version, what, fetched): (&HubPolicy, &str, Option<&[u8]>),
    ui: &Ui,
) -> Result<Option<String>, Failure> {
    let (name, spec) = (given.name(), &version.spec);
    let broken = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("{what} {name:?} of {} cannot be loaded, so nothing was applied", given.source))
            .because(why)
    };
    let Some(module) = module_of(files, given, (version, fetched))? else {
        let sentence = format!("the module of {what} {name} is not in the files: the hub alone can load it");
        ui.tell(Event::note(sentence));
        return Ok(None);
    };
    let found = spec.module.builtin.is_none().then(|| digest(module));
    if let (Some(wanted), Some(found)) = (&spec.sha256, &found)
        && wanted != found
    {
        return Err(broken(&format!("the SHA-256 of its module is {found}, and {wanted} is wanted")));
    }
    loader.of_hub(name, module, spec).map_err(|error| broken(&error))?;
    Ok(found)
}

/// The module of a version of a policy of the files, or the one that was fetched for it; none: the hub alone has it.
pub(crate) fn module_of<'a>(
    files: &'a Files,
    given: &Given,
    (version, fetched): (&'a HubPolicy, Option<&'a [u8]>),
) -> Result<Option<&'a [u8]>, Failure> {
    match files.module(version).map_err(wrong)? {
        Located::Builtin(builtin) => match ocm_policy_builtin::find(builtin) {
            Some(found) => Ok(Some(found.module)),
            None => Err(unknown(given, builtin)),
        },
        Located::Here(module) => Ok(Some(module)),
        Located::Elsewhere => Ok(fetched),
    }
}

fn unknown(given: &Given, builtin: &str) -> Failure {
    let names = || ocm_policy_builtin::ALL.iter().map(|builtin| builtin.name);
    let sentence = format!(
        "policy {:?} of {}: there is no built-in policy {builtin:?} in this release",
        given.name(),
        given.source
    );
    Failure::usage(sentence).hint(match nearest(builtin, names()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("these do: {}", names().collect::<Vec<_>>().join(", ")),
    })
}

/// Why files cannot be applied, in the words of this command's flags.
fn wrong(error: FilesError) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        FilesError::NoConfigMap { policy } => {
            failure.hint(format!("--module {policy}=FILE needs spec.module.configMap with namespace, name and key"))
        }
        FilesError::TooLarge { .. } => {
            failure.hint("kubectl ocm policy build makes smaller modules of Rust than of other languages")
        }
        _ => failure,
    }
}

/// What there is to know of a policy that is, or was, disabled.
fn about_disabled(applied: &Applied) -> Option<Event> {
    let was = |object: &Value| {
        let policy: Option<HubPolicy> = serde_json::from_value(object.clone()).ok();
        policy.and_then(|policy| disabled(&policy))
    };
    let name = applied.manifest.name();
    let names_mode = applied.manifest.body().pointer("/spec/mode").is_some();
    match (applied.before.as_ref().is_some_and(|before| was(before).is_some()), was(&applied.after)) {
        (_, Some(was)) if names_mode => Some(Event::warning(format!(
            "{name} is disabled, and stays so with the mode of the file: kubectl ocm policy enable {name} puts back mode {}, which \
             it had before",
            was.mode
        ))),
        (_, Some(_)) => Some(Event::note(format!(
            "{name} is disabled, and stays so: the file does not name its mode; to let it count: kubectl ocm policy \
             enable {name}"
        ))),
        (true, None) => Some(Event::note(format!("{name} was disabled, and counts again as the file says"))),
        (false, None) => None,
    }
}
