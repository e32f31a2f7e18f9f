//! Builds the policies of this workspace as WebAssembly modules, and lists them.
#![expect(clippy::disallowed_methods, reason = "build scripts look around themselves")]

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod remap;

const TRIPLE: &str = "wasm32-unknown-unknown";
/// What a module is made of, besides the policy's own folder. The workspace has the profile, and flags of the target.
const ALSO: [&str; 7] =
    ["abi", "sdk", "wit", "../plugins/lib/rules", "../Cargo.lock", "../Cargo.toml", "../.cargo/config.toml"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let area = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("..").canonicalize()?;
    let policies = area.join("policies");
    println!("cargo::rerun-if-changed={}", policies.display());
    for also in ALSO {
        println!("cargo::rerun-if-changed={}", area.join(also).display());
    }
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(&policies)? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let target = shared_target(&out);
    // The toolchain file names the target, but not every rustup adds it to a toolchain that is there already. Without
    // rustup the build says what is missing.
    let _ = Command::new("rustup").args(["target", "add", TRIPLE]).current_dir(&area).output();
    let mut build = Command::new(env::var_os("CARGO").ok_or("cargo did not say where it is")?);
    build.args(["build", "--quiet", "--locked", "--profile", "policy", "--target", TRIPLE, "--target-dir"]);
    build.arg(&target).current_dir(&area);
    for name in &names {
        build.arg("--package").arg(format!("policy-{name}"));
    }
    build.arg("--config").arg(remap::remap_setting(TRIPLE));
    // Flags and wrappers for the machine that builds are not for the modules.
    for variable in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET", "__CARGO_FIX_PLZ"]
    {
        build.env_remove(variable);
    }
    let done = build.output()?;
    if !done.status.success() {
        return Err(format!("the policies cannot be built:\n{}", String::from_utf8_lossy(&done.stderr)).into());
    }
    let mut list = String::from("[\n");
    for name in &names {
        let file = target.join(TRIPLE).join("policy").join(format!("policy_{}.wasm", name.replace('-', "_")));
        // A copy of its own: other builds write into the shared folder.
        let module = out.join(format!("{name}.wasm"));
        fs::copy(&file, &module)?;
        writeln!(list, "    Builtin {{ name: {name:?}, module: include_bytes!({module:?}) }},")?;
    }
    list.push(']');
    fs::write(out.join("list.rs"), list)?;
    Ok(())
}

/// A folder for modules that all profiles of this target folder share: beside that of the running build's profile.
fn shared_target(out: &Path) -> PathBuf {
    let marked = out.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    marked.unwrap_or(out).join("policies")
}
