//! The modules that the build script has compiled.

/// A policy that comes along.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name, by which administrators choose it.
    pub name: &'static str,
    /// Its core module.
    pub module: &'static [u8],
}

/// All of them, by name.
pub const ALL: &[Builtin] = &include!(concat!(env!("OUT_DIR"), "/list.rs"));

/// The policy of a name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|builtin| builtin.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the policies are folders")]
    fn every_policy_of_the_workspace_comes_along_as_a_module() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies");
        let projects = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let projects = projects.filter(|path| path.join("Cargo.toml").exists()).count();
        assert_eq!(ALL.len(), projects);
        assert!(ALL.iter().all(|builtin| builtin.module.starts_with(b"\0asm\x01")));
        assert!(find("name-claim").is_some() && find("name_claim").is_none());
    }

    /// What the same sources are compiled to on another machine is the same, byte by byte.
    #[test]
    fn no_module_tells_where_sources_lie() {
        let area = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let area = std::path::Path::new(area).canonicalize().unwrap().display().to_string();
        // The workspace, Rust's own library, and what build scripts write.
        let folders = [area.as_str(), "/lib/rustlib/src/", "/wasm32-unknown-unknown/policy/"];
        let mut places = 0;
        for builtin in ALL {
            let text = String::from_utf8_lossy(builtin.module);
            for folder in folders {
                assert!(!text.contains(folder), "{} names {folder}", builtin.name);
            }
            for (at, _) in text.match_indices("/registry/src/") {
                places += 1;
                assert!(text[..at].ends_with("/cargo"), "{} names another folder at {at}", builtin.name);
            }
        }
        // Panics do name the crate that they are of.
        assert!(places > 0);
    }
}
