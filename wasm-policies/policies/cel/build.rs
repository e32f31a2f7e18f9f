//! More stack and memory than other policies have: a parser and an interpreter are in it.
#![expect(clippy::disallowed_methods, reason = "build scripts look around themselves")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        // The last of these counts, and these come after those of .cargo/config.toml.
        println!("cargo::rustc-link-arg-cdylib=-zstack-size=131072");
        println!("cargo::rustc-link-arg-cdylib=--initial-memory=1048576");
    }
}
