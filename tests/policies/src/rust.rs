//! Policies in Rust.

use std::path::Path;
use std::process::Command;

use crate::command::{read, run};
use crate::folders::guests;

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
