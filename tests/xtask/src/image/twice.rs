//! Whether a commit has one image: it is built here, and again where everything is another that a build could leave traces
//! of. Both are compared, and run.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use clap::ValueEnum as _;
use ring::digest::{SHA256, digest};

use super::architecture::Architecture;
use super::run::{Arguments, make};
use super::smoke::smoke;
use crate::places::target;

/// Below it the second build lies. It takes gigabytes, and `/tmp` may be memory.
const ELSEWHERE: &str = "/var/tmp";
/// Where a compiler of C and what calls it keep what they have made: the second build begins with nothing.
const CACHES: [&str; 3] = ["CARGO_ZIGBUILD_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"];

/// Builds the image of the policy engine for every processor twice, compares all that comes of it, and runs it.
///
/// # Errors
/// What differs, or could not be built or run.
pub fn twice() -> Result<(), String> {
    unchanged()?;
    let begun = Instant::now();
    let made = make(&Arguments::for_every_processor())?;
    let first = begun.elapsed().as_secs();
    let begun = Instant::now();
    let folder = tempfile::Builder::new().prefix("kubectl-ocm-image-").tempdir_in(ELSEWHERE);
    let folder = folder.map_err(|error| format!("making a directory in {ELSEWHERE}: {error}"))?;
    let there = again(folder.path())?;
    println!("\nbuilt here in {first} s, and again in {} s, with what builds it", begun.elapsed().as_secs());

    let here = target()?;
    let files = made.binaries.iter().map(|(_, binary)| binary).chain(&made.lists).chain([&made.archive]);
    let mut differing = Vec::new();
    for file in files {
        let name = file.strip_prefix(&here).map_err(|_| format!("{} is not in {}", file.display(), here.display()))?;
        let other = there.join(name);
        let (one, two) = (read(file)?, read(&other)?);
        match difference(&one, &two) {
            None => println!("{}: {} bytes, sha256 {}, the same twice", name.display(), one.len(), sum(&one)),
            Some(at) => {
                println!("{}: DIFFERENT from byte {at}: {} bytes, and {}", name.display(), one.len(), two.len());
                differing.push(format!("{} and {}", file.display(), other.display()));
            }
        }
    }
    if !differing.is_empty() {
        let folder = folder.keep();
        return Err(format!(
            "two builds of one commit differ: compare {}, and remove {} afterwards",
            differing.join(", "),
            folder.display()
        ));
    }
    for (architecture, binary) in &made.binaries {
        if architecture.processor() != env::consts::ARCH {
            println!("{} runs in an emulator and says: {}", architecture.name(), emulated(*architecture, binary)?);
        }
    }
    println!("runs as a pod and says: {}", smoke(&made.archive, &made.reference, &["--version"])?.trim());
    Ok(())
}

/// Makes sure that everything here is in the commit, of which another folder gets a copy.
fn unchanged() -> Result<(), String> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain"]).current_dir(cli_tests::root());
    let done = git.output().map_err(|error| format!("git cannot be started: {error}"))?;
    if !done.status.success() {
        return Err(format!("git does not tell what is changed: {}", String::from_utf8_lossy(&done.stderr).trim()));
    }
    if done.stdout.is_empty() {
        return Ok(());
    }
    Err("an image is that of a commit, and something here is changed: commit it, or type `git stash --include-untracked`, and \
         then `cargo soak --parts image`"
        .to_owned())
}

/// Builds the commit in a folder, as `cargo xtask image` does, and returns the target directory. Sources, what is built,
/// crates, the compiler of C and its cache lie elsewhere than here.
fn again(folder: &Path) -> Result<PathBuf, String> {
    let (sources, target, home) = (folder.join("sources"), folder.join("built"), folder.join("crates"));
    end(Command::new("git").args(["clone", "--quiet"]).arg(cli_tests::root()).arg(&sources))?;
    let own = cli_tests::cargo_home().ok_or("neither CARGO_HOME nor HOME is set")?;
    links(&own, &home).map_err(|error| format!("linking {} from {}: {error}", own.display(), home.display()))?;
    let mut cargo = cli_tests::cargo();
    cargo.args(["xtask", "image", "--arch"]);
    cargo.arg(Architecture::value_variants().iter().map(|one| one.name()).collect::<Vec<_>>().join(","));
    for cache in CACHES {
        cargo.env_remove(cache);
    }
    cargo.current_dir(&sources).env("CARGO_TARGET_DIR", &target).env("CARGO_HOME", &home);
    cargo.env("XDG_CACHE_HOME", folder.join("cache"));
    end(&mut cargo)?;
    Ok(target)
}

/// A folder of Cargo by another name: what is in the first one, but for its locks and its notes of what was used when.
fn links(own: &Path, other: &Path) -> std::io::Result<()> {
    fs::create_dir(other)?;
    for entry in fs::read_dir(own)? {
        let name = entry?.file_name();
        if !name.to_string_lossy().starts_with('.') {
            symlink(own.join(&name), other.join(&name))?;
        }
    }
    Ok(())
}

/// What a program for another processor says of its version.
fn emulated(architecture: Architecture, binary: &Path) -> Result<String, String> {
    let emulator = control_plane::emulator(architecture.processor(), &control_plane::print);
    let emulator = emulator.map_err(|error| error.to_string())?;
    let done = Command::new(&emulator).arg(binary).arg("--version").stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("{} cannot be started: {error}", emulator.display()))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("{} does not run for {}: {}: {}", binary.display(), architecture.name(), done.status, said.trim()))
}

/// Runs a command to its end.
fn end(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().display().to_string();
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the second build failed: {name}: {status}")),
        Err(error) => Err(format!("{name} cannot be started: {error}")),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn sum(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first byte that is another, or that only one of them has.
fn difference(one: &[u8], two: &[u8]) -> Option<usize> {
    let at = one.iter().zip(two).position(|(one, two)| one != two);
    at.or_else(|| (one.len() != two.len()).then(|| one.len().min(two.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_differs_is_told() {
        assert_eq!(difference(b"image", b"image"), None);
        assert_eq!(difference(b"image", b"imaGe"), Some(3));
        assert_eq!(difference(b"image", b"imag"), Some(4));
        assert_eq!(difference(b"", b"i"), Some(0));
    }

    #[test]
    fn crates_are_found_under_another_name_and_locks_are_not_shared() {
        let folder = tempfile::tempdir().expect("a directory");
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        fs::create_dir_all(own.join("registry/src")).expect("a directory");
        fs::write(own.join("registry/src/a.rs"), "a").expect("a file");
        fs::write(own.join(".package-cache"), "").expect("a file");
        links(&own, &other).expect("links");
        assert_eq!(fs::read_to_string(other.join("registry/src/a.rs")).expect("a file"), "a");
        assert!(!other.join(".package-cache").exists());
    }
}
