//! From a file to a policy that can be asked.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ocm_api::policy::HubPolicySpec;
use ocm_cli::Ui;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_abi::Manifest;
use ocm_policy_engine::{
    Artifact, Asked, Cache, Ceiling, Compiler, Engine, EngineSettings, Policy, PolicyError, annotate, pass_cases,
};
use ocm_policy_rules::{CONDITIONS, Scope, hub_policy};

use crate::args::{KindArgs, PoliciesArgs};
use crate::evaluation::Policies;
use crate::{bundle, files};

/// The argument with which this binary starts itself to compile. No verb: see `main`.
const COMPILE: &str = "compile-module";

/// Compiles the module that comes on stdin, when this process was started for that; none otherwise.
pub(crate) fn compile_module() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != COMPILE) {
        return None;
    }
    Some(match ocm_policy_engine::serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: this is started by the verbs of kubectl ocm policy: {error}");
            ExitCode::from(Exit::Usage.code())
        }
    })
}

/// What makes policies of files.
pub(crate) struct Loader {
    engine: Engine,
    compiler: Compiler,
    cache: Option<Cache>,
    pub(crate) ceiling: Ceiling,
}

/// What a policy without settings is given.
pub(crate) const NO_SETTINGS: &str = "{}";

impl Loader {
    /// Makes an engine and opens the cache.
    pub(crate) fn new(ui: &Ui) -> Result<Self, Failure> {
        let cannot = |error: &dyn std::fmt::Display| Failure::other("policies cannot be run here").because(error);
        let own = std::env::current_exe().map_err(|error| cannot(&error))?;
        let engine = Engine::new(&EngineSettings::default()).map_err(|error| cannot(&error))?;
        let compiler = Compiler::process(own, [COMPILE.to_owned()]);
        Ok(Self { engine, compiler, cache: cache(ui), ceiling: Ceiling::default() })
    }

    /// Compiles a module, or takes it from the cache.
    pub(crate) fn artifact(&self, module: &[u8], settings: &str) -> Result<Artifact, PolicyError> {
        self.artifact_within(module, settings, &self.ceiling)
    }

    fn artifact_within(&self, module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Artifact, PolicyError> {
        match &self.cache {
            Some(cache) => cache.artifact(&self.compiler, module, settings, ceiling),
            None => self.compiler.compile(module, settings, ceiling),
        }
    }

    /// What a module says of itself, whichever settings it needs.
    pub(crate) fn describe(&self, module: &[u8]) -> Result<Manifest, PolicyError> {
        self.compiler.describe(module, &self.ceiling)
    }

    /// Loads a policy as a hub does: with its limits, with nothing of what its module announces but what it is granted, and
    /// only if it passes its test cases.
    pub(crate) fn of_hub(&self, name: &str, module: &[u8], policy: &HubPolicySpec) -> Result<Arc<Policy>, PolicyError> {
        let settings = hub_policy::settings(policy.settings.as_ref());
        let loaded = self.of_hub_with(name, module, policy, &settings)?;
        if let Some(cases) = &policy.tests {
            let load = |own: &str| match own == settings {
                true => Ok(loaded.clone()),
                false => self.of_hub_with(name, module, policy, own),
            };
            pass_cases(cases, &settings, load).map_err(PolicyError::Load)?;
        }
        Ok(loaded)
    }

    /// As [`Self::of_hub`], with these settings, whatever its test cases say.
    pub(crate) fn of_hub_with(
        &self,
        name: &str,
        module: &[u8],
        policy: &HubPolicySpec,
        settings: &str,
    ) -> Result<Arc<Policy>, PolicyError> {
        let ceiling = self.ceiling.lowered(&hub_policy::limits(&policy.limits));
        let artifact = self.artifact_within(module, settings, &ceiling)?;
        if artifact.header().manifest.operations.is_empty() {
            return Err(PolicyError::Load("it judges no operation at all, so it would never be asked".to_owned()));
        }
        let asked = Asked::of(policy.into(), &self.engine, |settings, ceiling| {
            let conditions = ocm_policy_builtin::find(CONDITIONS).map_or(&[][..], |found| found.module);
            self.artifact_within(conditions, settings, ceiling)
        })?;
        Policy::load_as(name, &self.engine, &artifact, &ceiling, &hub_policy::granted(&policy.grants), asked)
    }

    /// Makes a policy of a module. It speaks under the name that this makes of its own.
    pub(crate) fn policy(
        &self,
        module: &[u8],
        settings: &str,
        place: impl FnOnce(&str) -> String,
    ) -> Result<Arc<Policy>, PolicyError> {
        let artifact = self.artifact(module, settings)?;
        let manifest = &artifact.header().manifest;
        // Here nobody is the administrator, so the manifest alone says what the policy may change.
        Policy::load_as(
            &place(&manifest.name),
            &self.engine,
            &artifact,
            &self.ceiling,
            &manifest.edits,
            Scope::default(),
        )
    }

    /// Adds the policy of a file to others.
    pub(crate) fn load(&self, source: &Source, policies: &mut Policies) -> Result<(), Failure> {
        let place = |policies: &Policies, name: &str| policies.place(name);
        self.load_as(source, policies, place)
    }

    /// As [`Self::load`], into the place that this makes of the policy's name.
    pub(crate) fn load_as(
        &self,
        source: &Source,
        policies: &mut Policies,
        place: impl FnOnce(&Policies, &str) -> String,
    ) -> Result<(), Failure> {
        let Source { file, settings, kind } = source;
        let module = module(file, *kind)?;
        self.policy(&module, settings, |name| place(policies, name))
            .and_then(|policy| policies.add(file, policy))
            .map_err(|error| refused(file, &error))
    }

    /// Makes policies of words of the command line.
    pub(crate) fn load_all(&self, args: &PoliciesArgs) -> Result<Policies, Failure> {
        let PoliciesArgs { kind, policies: words, settings } = args;
        let mut policies = Policies::default();
        for word in words {
            self.load(&Source::parse(word, settings.as_deref(), *kind)?, &mut policies)?;
        }
        Ok(policies)
    }
}

/// Why a file is no policy.
pub(crate) fn refused(file: &Path, error: &PolicyError) -> Failure {
    let failure = Failure::other(format!("{}: {error}", file.display()));
    match error {
        PolicyError::Settings(_) => failure.hint(format!(
            "kubectl ocm policy inspect {} shows which settings it takes; give them with --settings",
            file.display()
        )),
        PolicyError::UndeclaredKind => failure.hint(
            "declare it with --kind gatekeeper, or with --kind opa; a project has it as kind: in its manifest.yaml. \
             Rego that reads input.request of an AdmissionReview has to read input.cluster or input.csr of our requests",
        ),
        _ => failure,
    }
}

/// Reads a module, or takes it out of a bundle of OPA, or from those that come along where there is no file of the name;
/// text is not even tried. The kind that was named becomes part of
/// the module: the same code under another contract is another policy.
pub(crate) fn module(file: &Path, kind: KindArgs) -> Result<Vec<u8>, Failure> {
    if kind.kind.is_none()
        && !file.exists()
        && let Some(builtin) = file.to_str().and_then(ocm_policy_builtin::find)
    {
        return Ok(builtin.module.to_vec());
    }
    if file.is_dir() {
        return Err(Failure::usage(format!("{} is a directory, not a module", file.display()))
            .hint(format!("build it first: kubectl ocm policy build {}", file.display())));
    }
    let read = files::read(file, "the module")?;
    let module = match bundle::is_bundle(&read) {
        true => bundle::module(&read).map_err(|why| {
            Failure::usage(format!("{} is no bundle that can be used", file.display()))
                .because(why)
                .hint("opa build --target wasm --entrypoint RULE writes one with one module")
        })?,
        false => read,
    };
    if !module.starts_with(b"\0asm") {
        return Err(Failure::usage(format!("{} is no WebAssembly module", file.display()))
            .hint("kubectl ocm policy build makes a module of a project"));
    }
    Ok(match kind.kind {
        Some(kind) => annotate(&module, "ocm-policy-kind", kind.word().as_bytes()),
        None => module,
    })
}

fn cache(ui: &Ui) -> Option<Cache> {
    let folder = dirs::cache_dir()?.join("kubectl-ocm").join("policies");
    match Cache::open(folder) {
        Ok(cache) => Some(cache),
        Err(error) => {
            ui.tell(Event::warning(format!("modules are compiled again each time: {error}")));
            None
        }
    }
}

/// A module and its settings, as the command line names them.
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) settings: String,
    pub(crate) kind: KindArgs,
}

impl Source {
    /// Reads `FILE` or `FILE=SETTINGS`, of which the settings are a file or JSON. A file whose own name holds the sign is meant
    /// first.
    pub(crate) fn parse(word: &str, default: Option<&str>, kind: KindArgs) -> Result<Self, Failure> {
        // JSON may hold the sign, too: it begins with the first brace behind one.
        let mut signs = word.match_indices('=').map(|(at, _)| (&word[..at], &word[at + 1..]));
        let json = signs.find(|(_, settings)| is_json(settings));
        let (file, own) = match json.or_else(|| word.rsplit_once('=')) {
            Some((file, settings)) if !Path::new(word).exists() => (file, Some(settings)),
            _ => (word, None),
        };
        let settings = own.or(default).map_or_else(|| Ok(NO_SETTINGS.to_owned()), settings)?;
        Ok(Self { file: PathBuf::from(file), settings, kind })
    }
}

/// Settings as JSON: from a file, or as they stand on the command line.
pub(crate) fn settings(word: &str) -> Result<String, Failure> {
    let (text, from) = match is_json(word) {
        true => (word.to_owned(), "the settings".to_owned()),
        false => (files::text(Path::new(word), "the settings")?, format!("the settings {word}")),
    };
    let value = files::value(&text).map_err(|why| Failure::usage(format!("{from} cannot be read")).because(why))?;
    serde_json::to_string(&value).map_err(|error| Failure::usage(format!("{from} cannot be read")).because(error))
}

/// Whether settings stand on the command line themselves.
fn is_json(word: &str) -> bool {
    word.trim_start().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_from_the_file_of_their_policy() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a=b.wasm");
        std::fs::write(&odd, "").unwrap();
        let parse = |word: &str| {
            let source = Source::parse(word, None, KindArgs { kind: None }).map_err(|failure| failure.message)?;
            Ok::<_, String>((source.file.display().to_string(), source.settings))
        };
        let told = |file: &str, settings: &str| Ok((file.to_owned(), settings.to_owned()));
        let odd = odd.display().to_string();
        assert_eq!(parse("p.wasm"), told("p.wasm", "{}"));
        assert_eq!(parse(r#"p.wasm={"a":"k=v","b":"={"}"#), told("p.wasm", r#"{"a":"k=v","b":"={"}"#));
        assert_eq!(parse("a=b/p.wasm= {a: k=v}"), told("a=b/p.wasm", r#"{"a":"k=v"}"#));
        assert_eq!(parse(&odd), told(&odd, "{}"), "a file of this name is there");
        let plain = folder.path().join("s.yaml");
        std::fs::write(&plain, "a: 1\n").unwrap();
        assert_eq!(parse(&format!("p.wasm={}", plain.display())), told("p.wasm", r#"{"a":1}"#));
        assert!(parse("p.wasm=nowhere.yaml").unwrap_err().contains("nowhere.yaml"));
    }
}
