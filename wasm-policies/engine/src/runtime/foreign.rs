//! Modules of other contracts: what they say of themselves, and whether they can be used at all.

use ocm_policy_abi::{CONTRACT, LimitsAsked, Manifest, Operation, ReasonDoc};
use ocm_policy_rules::adapt::{self, Settings, kubewarden_manifest};
use ocm_policy_rules::{PolicyError, check_manifest, read_manifest};
use wasmparser::{Parser, Payload};
use wasmtime::Module;

use crate::limits::Ceiling;
use crate::module::{Anatomy, Kind};
use crate::runtime::program::Program;
use crate::runtime::{opa, wapc, wasi};

/// Makes a program of a module that was compiled.
pub(super) fn load(module: &Module, kind: Kind, settings: &str) -> Result<Box<dyn Program>, PolicyError> {
    Ok(match kind {
        Kind::KubewardenWapc => Box::new(wapc::WapcProgram::new(module, settings)?),
        Kind::KubewardenWasi | Kind::WasiCommand => Box::new(wasi::WasiProgram::new(module, kind, settings)?),
        Kind::Opa | Kind::Gatekeeper => Box::new(opa::RegoProgram::new(module, kind, settings)?),
        Kind::Component | Kind::Core => return Err(PolicyError::Load("a component is no module".to_owned())),
    })
}

/// Tries a module out, before anybody relies on it: makes an instance within its limits, lets it judge its settings,
/// and asks it what it is.
pub(crate) fn examine(
    engine: &wasmtime::Engine,
    module: &Module,
    kind: Kind,
    anatomy: &Anatomy<'_>,
    digest: &str,
    settings: &str,
    ceiling: &Ceiling,
) -> Result<Manifest, PolicyError> {
    const PAGE: u64 = 1 << 16;
    let begins_with = module.resources_required().max_initial_memory_size.unwrap_or(0).saturating_mul(PAGE);
    let most = ceiling.most.memory_bytes;
    if begins_with > most {
        return Err(PolicyError::Load(format!(
            "it starts with {} MiB of memory, and no policy gets more than {} MiB",
            begins_with >> 20,
            most >> 20
        )));
    }
    let needs = needs(kind, begins_with, ceiling);
    let mut manifest = written(kind, anatomy)?;
    manifest.as_ref().map_or(Ok(()), |manifest| check_host_calls(kind, manifest))?;
    match kind {
        Kind::KubewardenWapc => {
            let program = wapc::WapcProgram::new(module, settings)?;
            let limits = ceiling.grant(&asked(manifest.as_ref(), needs));
            if anatomy.kubewarden.is_none() {
                let version = program.protocol(engine, &limits)?;
                if version != "v1" {
                    return Err(PolicyError::Load(format!("protocol version {version:?} is not known")));
                }
            }
            accepted(program.validate_settings(engine, &limits))?;
        }
        Kind::KubewardenWasi => {
            let program = wasi::WasiProgram::new(module, kind, settings)?;
            accepted(program.validate_settings(engine, &ceiling.grant(&asked(manifest.as_ref(), needs))))?;
        }
        Kind::WasiCommand => {
            let program = wasi::WasiProgram::new(module, kind, settings)?;
            if manifest.is_none() {
                manifest = program.describe(engine, &ceiling.grant(&needs))?;
            }
        }
        Kind::Opa | Kind::Gatekeeper => {
            let program = opa::RegoProgram::new(module, kind, settings)?;
            program.try_out(engine, &ceiling.grant(&asked(manifest.as_ref(), needs)))?;
        }
        Kind::Component | Kind::Core => {}
    }
    let mut manifest = manifest.unwrap_or_else(|| usual(kind, digest));
    if kind == Kind::Gatekeeper {
        manifest.evidence.iter().try_for_each(adapt::check_inventory)?;
    }
    manifest.limits = asked(Some(&manifest), needs);
    // These contracts know whole objects and nothing else.
    manifest.wants_object = true;
    check_manifest(&manifest)?;
    Ok(manifest)
}

/// Members of our requests that reviews of Kubernetes do not have, and that are no labels' names. `resource` and `object` are members
/// of both; `now`, `stage` and the like may stand in rules about labels of reviews.
const OURS: [&str; 3] = ["cluster", "csr", "requester"];

/// Refuses Rego that reads what it would not be given: its rules would be silent, and silence denies nothing.
///
/// Compiled Rego keeps every name that stands in its sources as a text of its own, so a template that reads
/// `data.inventory` holds the word. One that uses the word for something else is refused as well until it asks for
/// evidence; one that makes the name while it runs cannot be told from others. Of what it reads in an inventory only versions of
/// groups can be told from other texts: it has to ask for objects of each.
pub(crate) fn check_inputs(module: &[u8], kind: Kind, declared: bool, manifest: &Manifest) -> Result<(), PolicyError> {
    let texts = Texts::of(module)?;
    if kind == Kind::Gatekeeper
        && !manifest.evidence.is_empty()
        && texts.hold("inventory")
        && let Some(version) = unasked(&texts, manifest)
    {
        return Err(PolicyError::Load(format!(
            "it reads data.inventory, names {version} and asks for no objects of that version; name each version and kind \
             that it reads as contextAwareResources in its metadata, or as evidence in manifest.yaml"
        )));
    }
    match kind {
        Kind::Gatekeeper if manifest.evidence.is_empty() && texts.hold("inventory") => Err(PolicyError::Load(
            "it reads data.inventory and does not say which objects it needs to know; name them as \
             contextAwareResources in its metadata, or as evidence in manifest.yaml"
                .to_owned(),
        )),
        Kind::Gatekeeper if texts.hold("_unstable") => Err(PolicyError::Load(
            "it reads input.review._unstable, which is not given here; a template finds namespaces in data.inventory"
                .to_owned(),
        )),
        Kind::Opa if !declared && texts.hold("violation") && texts.hold("review") && texts.hold("parameters") => {
            Err(PolicyError::UndeclaredKind)
        }
        // An operation of ours has the name of what reviews hold.
        Kind::Opa if !declared && texts.hold("request") && !OURS.iter().any(|word| texts.hold(word)) => {
            Err(PolicyError::UndeclaredKind)
        }
        _ => Ok(()),
    }
}

/// Refuses policies that would ask the host for objects of the hub: nobody answers them, and every decision that needs an answer
/// would be an error.
fn check_host_calls(kind: Kind, manifest: &Manifest) -> Result<(), PolicyError> {
    match kind {
        Kind::KubewardenWapc | Kind::KubewardenWasi if !manifest.evidence.is_empty() => Err(PolicyError::Load(
            "it asks its host for objects of the hub (contextAwareResources), and such calls are not answered here; use a \
             policy that is given them as evidence, such as a template of Gatekeeper, or take them out of its metadata if \
             no decision needs them"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// A version of a group, such as `networking.k8s.io/v1`, that stands in a template which asks for no objects of it.
fn unasked<'m>(texts: &Texts<'m>, manifest: &Manifest) -> Option<&'m str> {
    let asked =
        |version: &str| manifest.evidence.iter().any(|query| adapt::inventory_version(&query.source) == Some(version));
    texts.all().filter(|text| is_version_of_group(text)).find(|version| !asked(version))
}

/// Whether a text is a group with its version, as `apiVersion` has it: `apps/v1`, `policy/v1beta1`.
fn is_version_of_group(text: &str) -> bool {
    let Some((group, version)) = text.split_once('/') else { return false };
    let is_of_group = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let Some(number) = version.strip_prefix('v') else { return false };
    let stage = number.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_stage = ["alpha", "beta"].iter().any(|word| {
        stage.strip_prefix(word).is_some_and(|more| !more.is_empty() && more.bytes().all(|byte| byte.is_ascii_digit()))
    });
    !group.is_empty() && group.bytes().all(is_of_group) && stage.len() < number.len() && (stage.is_empty() || is_stage)
}

/// The data of a module, in which compiled Rego keeps its texts, each with a zero byte behind it.
struct Texts<'m>(Vec<&'m [u8]>);

impl<'m> Texts<'m> {
    fn of(module: &'m [u8]) -> Result<Self, PolicyError> {
        let broken =
            |error: wasmparser::BinaryReaderError| PolicyError::Load(format!("this is no WebAssembly module: {error}"));
        let mut found = Vec::new();
        for payload in Parser::new(0).parse_all(module) {
            if let Payload::DataSection(segments) = payload.map_err(broken)? {
                for segment in segments {
                    found.push(segment.map_err(broken)?.data);
                }
            }
        }
        Ok(Self(found))
    }

    fn hold(&self, word: &str) -> bool {
        self.all().any(|text| text == word)
    }

    /// Those that are UTF-8.
    fn all(&self) -> impl Iterator<Item = &'m str> {
        let texts = self.0.iter().flat_map(|data| data.split(|byte| *byte == 0));
        texts.filter_map(|text| std::str::from_utf8(text).ok())
    }
}

/// What stands in the module itself.
fn written(kind: Kind, anatomy: &Anatomy<'_>) -> Result<Option<Manifest>, PolicyError> {
    if let Some(section) = anatomy.manifest {
        return read_manifest(section).map(Some);
    }
    match (kind, anatomy.kubewarden) {
        // They answer with a whole admission review, and nothing must be taken for an answer that is not understood.
        (Kind::Opa, Some(_)) => Err(PolicyError::Load(
            "this Kubewarden policy has the execution mode \"opa\", which is not supported; \"gatekeeper\" is"
                .to_owned(),
        )),
        (_, Some(section)) => {
            let mut manifest = kubewarden_manifest(section)?;
            if kind == Kind::Gatekeeper {
                manifest.reasons = reasons(kind);
            }
            Ok(Some(manifest))
        }
        _ => Ok(None),
    }
}

/// What a module gets that says nothing of itself.
fn usual(kind: Kind, digest: &str) -> Manifest {
    Manifest {
        contract: CONTRACT.to_owned(),
        name: format!("{}-{}", kind.word(), digest.get(..12).unwrap_or(digest)),
        version: "0.0.0".to_owned(),
        operations: Operation::ALL.to_vec(),
        reasons: reasons(kind),
        ..Manifest::default()
    }
}

fn reasons(kind: Kind) -> Vec<ReasonDoc> {
    let codes: &[(&str, &str)] = match kind {
        Kind::KubewardenWapc | Kind::KubewardenWasi => &[(adapt::REJECTED, "the policy does not accept the object")],
        Kind::Gatekeeper => &[(adapt::VIOLATION, "the object violates the policy")],
        Kind::Opa => &[(adapt::REGO_DENIES, "a rule denies"), (adapt::REGO_HOLDS, "a rule holds")],
        _ => &[],
    };
    let doc = |(code, description): &(&str, &str)| ReasonDoc {
        code: (*code).to_owned(),
        description: (*description).to_owned(),
    };
    codes.iter().map(doc).collect()
}

/// What modules need that cannot say so: some memory more than they start with, and, where a whole program is started
/// for each request, the fuel for that.
fn needs(kind: Kind, begins_with: u64, ceiling: &Ceiling) -> LimitsAsked {
    const ROOM: u64 = 16 << 20;
    let command = matches!(kind, Kind::KubewardenWasi | Kind::WasiCommand);
    let memory = begins_with + ROOM;
    LimitsAsked {
        fuel: command.then_some(100_000_000.max(ceiling.usual.fuel)),
        memory_bytes: (memory > ceiling.usual.memory_bytes).then_some(memory),
    }
}

/// What a manifest asks for, or else what such modules need.
fn asked(manifest: Option<&Manifest>, needs: LimitsAsked) -> LimitsAsked {
    let asked = manifest.map(|manifest| manifest.limits).unwrap_or_default();
    LimitsAsked { fuel: asked.fuel.or(needs.fuel), memory_bytes: asked.memory_bytes.or(needs.memory_bytes) }
}

/// Settings that a policy does not take keep it from being loaded.
fn accepted(answer: Result<Settings, PolicyError>) -> Result<(), PolicyError> {
    match answer {
        Ok(Settings::Valid) => Ok(()),
        Ok(Settings::Invalid(why)) => Err(PolicyError::Settings(why)),
        Err(error @ (PolicyError::Load(_) | PolicyError::Overloaded(_))) => Err(error),
        Err(error) => Err(PolicyError::Load(format!("it cannot judge its settings: {error}"))),
    }
}
