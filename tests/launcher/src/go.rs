//! Calling Go so that one build finds what another one has compiled.

use std::process::Command;

/// Flags of `go build` and `go install`: what a debugger needs is not linked, so it need not be compiled either. Whatever is built
/// with the same flags shares what it has in common.
pub const GO_FLAGS: [&str; 2] = ["-trimpath", "-gcflags=all=-dwarf=false"];

/// Has a Go tool build from pinned modules alone, without C, and quickly.
pub fn pinned_go(command: &mut Command) -> &mut Command {
    command
        .env("CGO_ENABLED", "0")
        // The pinned modules decide the result; neither a workspace nor flags of the user may.
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        .env("GOTOOLCHAIN", "local")
        // Compilers that live for seconds gain nothing by collecting garbage.
        .env("GOGC", "800")
}
