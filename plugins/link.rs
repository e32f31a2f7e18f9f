//! The build script of every binary: how its release binary is linked on Linux.
//!
//! Release binaries abort when they panic, so nobody ever walks their unwind tables; left in, they are a tenth of each
//! binary. (What policies are compiled to has tables of its own.) Linking them away is safe with the linkers that read linker
//! scripts (GNU ld, and LLVM's, which is Rust's default); with another one the tables stay. Rust's default linker on x86-64,
//! which is LLVM's, also folds functions that were compiled to the same code, a hundredth of each binary: nothing here
//! compares addresses of functions.
#![expect(clippy::print_stdout, reason = "build scripts tell cargo so")]

use std::env;
use std::fs;
use std::path::Path;

const SCRIPT: &str = "SECTIONS { /DISCARD/ : { \
                      *(.eh_frame) *(.eh_frame.*) *(.gcc_except_table) *(.gcc_except_table.*) \
                      } } INSERT AFTER .rodata;\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../link.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // The name of a folder says nothing of linkers.
    let flags: Vec<_> = flags.split('\u{1f}').filter(|flag| !flag.starts_with("--remap-path-prefix")).collect();
    let flags = flags.join("\u{1f}");
    let reads_no_scripts = ["mold", "gold", "wild"].iter().any(|linker| flags.contains(linker));
    if !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_OS", "linux") || reads_no_scripts {
        return Ok(());
    }
    let script = Path::new(&env::var("OUT_DIR")?).join("link.ld");
    fs::write(&script, SCRIPT)?;
    println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    // The unwinder that the standard library refers to, from the archive: one shared library less to load at each start,
    // and to find on a small system. Linkers that follow the order of archives take the shared one as before.
    if is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
    let is_default =
        env::var_os("RUSTC_LINKER").is_none() && !["linker", "fuse-ld"].iter().any(|word| flags.contains(word));
    if is_default && is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
    Ok(())
}
