//! Calling Cargo from programs that Cargo runs.

use std::env;
use std::process::Command;

/// Names a folder with the binaries of the workspace, for whoever has built them already.
pub const BINARIES: &str = "KUBECTL_OCM_BINARIES";

/// Cargo, without what an outer Cargo told this process about its own package: a build of another package must not take
/// that for its own, and build scripts that look at it would build half of everything again.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let of_package = ["CARGO_PKG_", "CARGO_BIN_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        if name.to_str().is_some_and(|name| of_package.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    command
}
