//! Policies in Go.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{read, run};
use crate::folders::guests;

fn go_tool() -> Command {
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
    run(go_tool()
        .args(["build", "-ldflags", "-s -w", "-o"])
        .arg(&out)
        .arg(".")
        .envs([("GOOS", "wasip1"), ("GOARCH", "wasm")])
        .current_dir(guests().join(folder)));
    read(&out)
}

/// What a variable of Go is on this machine, `GOROOT` for instance.
pub fn go_env(name: &str) -> PathBuf {
    let said = run(go_tool().args(["env", name]));
    PathBuf::from(String::from_utf8_lossy(&said).trim())
}
