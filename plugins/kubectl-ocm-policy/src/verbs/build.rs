//! A policy is built with the tools of its language.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ocm_cli::Ui;
use ocm_core::order;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_abi::Manifest;
use ocm_policy_engine::{Kind, PolicyError, annotate, componentize, digest, inspect};
use ocm_policy_rules::syntax::is_dns_label;
use ocm_policy_testing::Suite;
use serde_json::Value;

use crate::args::{BuildArgs, KindArgs, Language};
use crate::files::{self, word};
use crate::load::{Loader, NO_SETTINGS, module, refused};
use crate::processes::Processes;
use crate::verbs::inspect::size;

pub(crate) fn run(args: BuildArgs, ui: &Ui, processes: &Processes) -> Result<Exit, Failure> {
    let BuildArgs { dir, output_file } = args;
    let language = detect(&dir)?;
    let settings = usual_settings(&dir)?;
    ui.tell(Event::now(format!("building {} ({})", dir.display(), language.word())));
    // Gone with whatever the tools leave in it.
    let work =
        processes.folder().map_err(|error| Failure::other("cannot make a folder for the tools").because(error))?;
    let built = match language {
        Language::Rust => rust(&dir, processes)?,
        Language::Go => go(&dir, work.path(), processes)?,
        Language::AssemblyScript => assembly_script(&dir, processes)?,
        Language::Rego => rego(&dir, work.path(), processes)?,
    };
    let made = annotated(&dir, module(&built, KindArgs { kind: None })?)?;
    let cannot = |error: &PolicyError| refused(&dir, error);
    let module = match inspect(&made).map_err(|error| cannot(&error))?.kind {
        Kind::Core => componentize(&made).map_err(|error| cannot(&error))?,
        _ => made,
    };
    // Loaded once, so that what comes out is a policy.
    ui.tell(Event::now("loading the module"));
    let loader = Loader::new(ui)?;
    let loaded = loader.artifact(&module, settings.as_deref().unwrap_or(NO_SETTINGS));
    let (manifest, refusal) = match (loaded, &settings) {
        (Ok(artifact), _) => (artifact.header().manifest.clone(), None),
        // It is a policy, and only whoever uses it knows its settings.
        (Err(PolicyError::Settings(why)), None) => {
            (loader.describe(&module).map_err(|error| cannot(&error))?, Some(why))
        }
        (Err(error @ PolicyError::Settings(_)), Some(_)) => {
            return Err(Failure::other(format!("{}: {error}", dir.display())).hint(format!(
                "it was tried with `settings` of {}: write some there that the policy takes",
                dir.join(TESTS).display()
            )));
        }
        (Err(error), _) => return Err(cannot(&error)),
    };
    let file = match output_file {
        Some(file) => file,
        // The name comes out of the module and becomes part of a path.
        None if is_dns_label(&manifest.name) => dir.join(format!("{}.wasm", manifest.name)),
        None => {
            return Err(Failure::usage(format!("the policy calls itself {:?}, which is no DNS label", manifest.name))
                .hint("change the name in its manifest, or say where to write the module with -o FILE"));
        }
    };
    files::write(&file, &module)
        .map_err(|error| Failure::other(format!("cannot write {}", file.display())).because(error))?;
    if let Some(why) = refusal {
        ui.tell(Event::warning(format!(
            "{} was not tried with settings, and refuses to be without: {why}; `settings` of {} would be tried",
            file.display(),
            dir.join(TESTS).display()
        )));
    }
    ui.line(&format!("{}  {}  sha256:{}", file.display(), size(module.len() as u64), digest(&module)));
    let (shown, tests, request) = (word(&file), dir.join(TESTS), dir.join("request.yaml"));
    ui.say_line("Next:");
    if tests.is_file() {
        ui.say_line(&format!("  kubectl ocm policy test {shown} --tests {}", word(&tests)));
    }
    ui.say_line(&format!("  kubectl ocm policy inspect {shown}"));
    if request.is_file() {
        ui.say_line(&format!("  kubectl ocm policy bench {shown} -f {}", word(&request)));
    }
    Ok(Exit::Ok)
}

impl Language {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::AssemblyScript => "AssemblyScript",
            Self::Rego => "Rego",
        }
    }
}

/// The language of a project, told from what lies in its folder.
fn detect(dir: &Path) -> Result<Language, Failure> {
    let cannot = |error| {
        Failure::usage(format!("cannot read the directory {}", dir.display()))
            .because(error)
            .hint("kubectl ocm policy new NAME --lang rust begins a project")
    };
    let names: Vec<String> =
        fs::read_dir(dir).map_err(cannot)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    if has("Cargo.toml") {
        return Ok(Language::Rust);
    }
    if has("go.mod") {
        return Ok(Language::Go);
    }
    if has("asconfig.json") {
        return Ok(Language::AssemblyScript);
    }
    if names.iter().any(|name| name.ends_with(".rego")) {
        return Ok(Language::Rego);
    }
    Err(Failure::usage(format!("{} is no project of a policy", dir.display()))
        .because("it holds none of Cargo.toml, go.mod, asconfig.json, *.rego")
        .hint("kubectl ocm policy new NAME --lang rust begins one"))
}

/// The module with the manifest that lies beside its sources, for languages in which a policy cannot say what it is.
fn annotated(dir: &Path, module: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let file = dir.join("manifest.yaml");
    if !file.is_file() {
        return Ok(module);
    }
    let bad = |why: String| Failure::usage(format!("{} is no manifest", file.display())).because(why);
    let value = files::value(&files::text(&file, "the manifest")?).map_err(bad)?;
    must_be_manifest(&value).map_err(bad)?;
    Ok(annotate(&module, "ocm-policy-manifest", value.to_string().as_bytes()))
}

/// Refuses what is no manifest, and members that none has: people write it, and a misspelt one would ask for nothing. Modules may
/// have been built for a later contract, so whoever reads one passes over what is not known. `kind` is no member of the contract:
/// it says what sort of module this is, and is judged where the module is read.
fn must_be_manifest(value: &Value) -> Result<(), String> {
    let mut unknown = Vec::new();
    serde_ignored::deserialize::<_, _, Manifest>(value, |member| unknown.push(member.to_string()))
        .map_err(|error| error.to_string())?;
    unknown.retain(|member| member != "kind");
    if unknown.is_empty() { Ok(()) } else { Err(format!("a manifest has no member {}", unknown.join(", "))) }
}

/// The test cases of a project.
const TESTS: &str = "tests.yaml";

/// The settings of the test cases: a policy may refuse to be loaded without any. None: they name none, or there are no cases.
fn usual_settings(dir: &Path) -> Result<Option<String>, Failure> {
    let file = dir.join(TESTS);
    if !file.is_file() {
        return Ok(None);
    }
    let suite = Suite::read(&files::text(&file, "the tests")?)
        .map_err(|bad| Failure::usage(format!("the test cases {} cannot be used", file.display())).because(bad))?;
    Ok((!suite.settings.is_null()).then(|| suite.settings.to_string()))
}

const TARGET: &str = "wasm32-unknown-unknown";

/// Runs a tool. One that is missing is said in one sentence.
fn tool(processes: &Processes, command: &mut Command, install: &str) -> Result<Output, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    match processes.output(command) {
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => Err(Failure::other(format!("{name} could not build the policy"))
            .because(format!("{name} ended with {}; what it said stands above", output.status))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::other(format!("{name} is not installed")).hint(install))
        }
        Err(error) => Err(Failure::other(format!("cannot start {name}")).because(error)),
    }
}

fn rust(dir: &Path, processes: &Processes) -> Result<PathBuf, Failure> {
    const INSTALL: &str = "https://rustup.rs installs Rust";
    let mut libraries = Command::new("rustc");
    libraries.args(["--print", "target-libdir", "--target", TARGET]).current_dir(dir);
    let libraries = tool(processes, &mut libraries, INSTALL)?.stdout;
    if !Path::new(String::from_utf8_lossy(&libraries).trim()).is_dir() {
        let add = format!("rustup target add {TARGET}");
        tool(processes, Command::new("rustup").args(["target", "add", TARGET]).current_dir(dir), &add)?;
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    let said = tool(processes, cargo.current_dir(dir), INSTALL)?.stdout;
    // Cargo names what it has built; the package itself comes last.
    let module = String::from_utf8_lossy(&said)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .rfind(|file| file.extension().is_some_and(|extension| extension == "wasm"));
    module.ok_or_else(|| {
        Failure::usage(format!("{} builds no module", dir.display()))
            .hint("Cargo.toml needs [lib] with crate-type = [\"cdylib\"]")
    })
}

fn go(dir: &Path, work: &Path, processes: &Processes) -> Result<PathBuf, Failure> {
    let file = work.join("policy.wasm");
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-ldflags=-s -w", "-o"]).arg(&file).arg(".").current_dir(dir);
    go.env("GOOS", "wasip1").env("GOARCH", "wasm");
    tool(processes, &mut go, "https://go.dev/doc/install installs Go")?;
    Ok(file)
}

/// The rule that a policy in Rego answers with.
const ENTRYPOINT: &str = "policy/decision";

fn rego(dir: &Path, work: &Path, processes: &Processes) -> Result<PathBuf, Failure> {
    let mut sources: Vec<PathBuf> = fs::read_dir(dir)
        .map_err(|error| Failure::usage(format!("cannot read the directory {}", dir.display())).because(error))?
        .flatten()
        .map(|entry| entry.path())
        // Tests of OPA are no part of the policy.
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(".rego") && !path.ends_with("_test.rego")))
        .collect();
    order::sort(&mut sources);
    let bundle = work.join("bundle.tar.gz");
    let mut opa = Command::new("opa");
    opa.args(["build", "--target", "wasm", "--entrypoint", ENTRYPOINT, "--output"]).arg(&bundle).args(&sources);
    tool(processes, &mut opa, "https://www.openpolicyagent.org/docs/#running-opa tells how to install it")?;
    Ok(bundle)
}

fn assembly_script(dir: &Path, processes: &Processes) -> Result<PathBuf, Failure> {
    const INSTALL: &str = "https://nodejs.org installs Node.js with npm";
    if !dir.join("node_modules/assemblyscript").is_dir() {
        let mut npm = Command::new("npm");
        // Nothing that comes with a package is run.
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(dir);
        tool(processes, &mut npm, INSTALL)?;
    }
    let mut asc = Command::new("npx");
    asc.args(["--no-install", "asc", "assembly/index.ts", "--config", "asconfig.json", "--target", "release"]);
    tool(processes, asc.current_dir(dir), INSTALL)?;
    Ok(dir.join("build/policy.wasm"))
}

#[cfg(test)]
mod tests {
    use ocm_core::Exit;

    use super::*;

    #[test]
    fn a_misspelt_member_of_a_manifest_is_told_and_not_passed_over() {
        let read = |members: &str| {
            let needed = "contract: ocm:policy@0.1.0\nname: p\nversion: 0.1.0\noperations: [create]\n";
            must_be_manifest(&files::value(&format!("{needed}{members}")).unwrap())
        };
        let right = "wantsObject: false\nevidence: []\nlimits: {fuel: null}\nsettingsSchema: {type: object, own: {}}\n";
        assert_eq!(read(right), Ok(()));
        assert_eq!(read("kind: gatekeeper"), Ok(()));
        for (members, name) in [
            ("wantObject: true", "wantObject"),
            ("evidences: [{name: c, source: {kind: clusters}, fields: [/metadata/name]}]", "evidences"),
            ("limits: {fule: 1}", "limits.fule"),
            ("limits: {kind: opa}", "limits.kind"),
            ("reasons: [{code: A, description: d, descripton: d}]", "reasons.0.descripton"),
        ] {
            assert_eq!(read(members), Err(format!("a manifest has no member {name}")));
        }
        assert!(read("reasons: [{code: A}]").unwrap_err().contains("description"));
    }

    #[test]
    fn settings_are_those_of_test_cases_that_can_be_read() {
        let project = tempfile::tempdir().unwrap();
        let settings = || usual_settings(project.path());
        assert_eq!(settings().map_err(|failure| failure.message), Ok(None), "there are no cases");
        let write = |text: &str| fs::write(project.path().join(TESTS), text).unwrap();
        let cases = "cases:\n- name: a\n  request: {operation: create}\n  expect: {verdict: allow}\n";
        write(cases);
        assert_eq!(settings().map_err(|failure| failure.message), Ok(None));
        write(&format!("settings: {{a: 1}}\n{cases}"));
        assert_eq!(settings().map_err(|failure| failure.message), Ok(Some(r#"{"a":1}"#.to_owned())));
        write("settings: {a: 1}\ncases: []\n");
        let failure = settings().unwrap_err();
        assert!(failure.message.contains("tests.yaml cannot be used") && failure.exit() == Exit::Usage, "{failure:?}");
    }
}
