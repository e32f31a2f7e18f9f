//! Policies in Rego, and what OPA says itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{read, run};
use crate::folders::guests;

/// The version of OPA that compiles Rego and answers beside us.
const OPA: &str = "v1.22.0";

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
