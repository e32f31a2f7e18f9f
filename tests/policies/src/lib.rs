//! Builds policies with the tools that their authors use: cargo, go, opa, npm. The first time needs the network and some
//! minutes; what was built is kept in the folder that the caller names, and tools in the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub mod node;

/// The version of OPA that compiles Rego and answers beside us.
const OPA: &str = "v1.22.0";

/// The guests of these tests.
pub fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests")
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Standard libraries of Rust for WASI belong to no ordinary installation.
fn rust_for_wasi() {
    run(Command::new("rustup").args(["target", "add", "wasm32-wasip1"]).current_dir(guests()));
}

/// A policy made with the SDK of Kubewarden for Rust: one that a waPC host calls.
pub fn kubewarden(cache: &Path) -> Vec<u8> {
    rust_for_wasi();
    let target = cache.join("kubewarden");
    run(Command::new("cargo")
        .args(["build", "--release", "--locked", "--target", "wasm32-wasip1", "--target-dir"])
        .arg(&target)
        .current_dir(guests().join("kubewarden")));
    read(&target.join("wasm32-wasip1/release/kubewarden_guest.wasm"))
}

/// A plain program in Rust.
pub fn rust(cache: &Path) -> Vec<u8> {
    rust_for_wasi();
    let out = cache.join("rust.wasm");
    run(Command::new("rustc")
        .args([
            "--edition",
            "2024",
            "--target",
            "wasm32-wasip1",
            "-O",
            "-C",
            "strip=symbols",
            "wasi-rust/main.rs",
            "-o",
        ])
        .arg(&out)
        .current_dir(guests()));
    read(&out)
}

fn go_tool() -> PathBuf {
    control_plane::go_tool().unwrap_or_else(|error| panic!("{error}"))
}

/// A plain program in Go.
pub fn go(cache: &Path) -> Vec<u8> {
    go_program(cache, "wasi-go")
}

/// The same policy made with the SDK of Kubewarden for Go: a program.
pub fn kubewarden_go(cache: &Path) -> Vec<u8> {
    go_program(cache, "kubewarden-go")
}

fn go_program(cache: &Path, folder: &str) -> Vec<u8> {
    let out = cache.join(folder).with_extension("wasm");
    run(Command::new(go_tool())
        .args(["build", "-ldflags", "-s -w", "-o"])
        .arg(&out)
        .arg(".")
        .envs([("GOOS", "wasip1"), ("GOARCH", "wasm")])
        .current_dir(guests().join(folder)));
    read(&out)
}

/// What a variable of Go is on this machine, `GOROOT` for instance.
pub fn go_env(name: &str) -> PathBuf {
    let said = run(Command::new(go_tool()).args(["env", name]).env("GOTOOLCHAIN", "local"));
    PathBuf::from(String::from_utf8_lossy(&said).trim())
}

/// The cache of this project, outside the clone.
pub fn user_cache() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    base.expect("the user has a cache").join("kubectl-ocm")
}

/// The program `opa`.
pub fn opa() -> PathBuf {
    control_plane::go_program("github.com/open-policy-agent/opa", OPA).unwrap_or_else(|error| panic!("{error}"))
}

/// A file of Rego, compiled: the module and the bundle that it stood in.
pub fn rego(cache: &Path, file: &str, entry: &str) -> (Vec<u8>, Vec<u8>) {
    let folder = cache.join(format!("rego-{file}"));
    fs::create_dir_all(&folder).expect("a folder can be made");
    run(Command::new(opa())
        .args(["build", "-t", "wasm", "-e", entry, "-o"])
        .arg(folder.join("bundle.tar.gz"))
        .arg(file)
        .current_dir(guests().join("rego")));
    run(Command::new("tar").args(["xzf", "bundle.tar.gz"]).current_dir(&folder));
    (read(&folder.join("policy.wasm")), read(&folder.join("bundle.tar.gz")))
}

/// What OPA itself says: the value of a query, as JSON, about an input, with data. Undefined is nothing.
pub fn opa_eval(cache: &Path, file: &str, query: &str, data: &str, input: &str) -> String {
    let folder = cache.join(format!("eval-{file}"));
    fs::create_dir_all(&folder).expect("a folder can be made");
    for (name, text) in [("data.json", data), ("input.json", input)] {
        fs::write(folder.join(name), text).expect("a file can be written");
    }
    let output = run(Command::new(opa())
        .args(["eval", "--format", "raw", "--data"])
        .arg(folder.join("data.json"))
        .arg("--data")
        .arg(guests().join("rego").join(file))
        .arg("--input")
        .arg(folder.join("input.json"))
        .arg(query));
    String::from_utf8_lossy(&output).trim().to_owned()
}
