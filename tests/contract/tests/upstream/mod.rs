//! Upstream's API module, as Go keeps it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

/// Where the module lies. `upstream-api/go.mod` names its version and `go.sum` its checksum.
static MODULE: LazyLock<PathBuf> = LazyLock::new(|| {
    let output = Command::new("go")
        .args(["mod", "download", "-json", "open-cluster-management.io/api"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream-api"))
        .env("GOFLAGS", "-mod=readonly")
        .env("GOWORK", "off")
        .output()
        .expect("this test needs Go to download upstream's module");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "go mod download: {stdout}{}", String::from_utf8_lossy(&output.stderr));
    let module: Value = serde_json::from_str(&stdout).unwrap();
    PathBuf::from(module["Dir"].as_str().unwrap())
});

/// One file of the module.
pub fn text(file: &str) -> String {
    let path = MODULE.join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
