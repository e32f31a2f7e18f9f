//! The projects that `new` writes, and how projects are told apart.

use crate::args::Language;

/// A file of a project: where it goes and what it holds.
pub(crate) type Template = (&'static str, &'static [u8]);

macro_rules! files {
    ($($to:literal = $from:literal),* $(,)?) => {
        &[$(($to, include_bytes!(concat!("../../../wasm-policies/", $from)))),*]
    };
}

/// What a name stands for in the files.
pub(crate) const NAME: &str = "{{name}}";

const RUST: &[Template] = files![
    "Cargo.toml" = "sdk/templates/rust/Cargo.toml",
    ".cargo/config.toml" = "sdk/templates/rust/cargo/config.toml",
    ".gitignore" = "sdk/templates/rust/gitignore",
    "README.md" = "sdk/templates/rust/README.md",
    "request.yaml" = "sdk/templates/common/request.yaml",
    "src/lib.rs" = "sdk/templates/rust/src/lib.rs",
    "tests.yaml" = "sdk/templates/rust/tests.yaml",
    // The SDK, the contract and the rules are on no registry.
    "sdk/Cargo.toml" = "sdk/templates/rust/sdk/Cargo.toml",
    "sdk/src/build.rs" = "sdk/src/build.rs",
    "sdk/src/bump.rs" = "sdk/src/bump.rs",
    "sdk/src/guest.rs" = "sdk/src/guest.rs",
    "sdk/src/hub.rs" = "sdk/src/hub.rs",
    "sdk/src/lib.rs" = "sdk/src/lib.rs",
    "sdk/src/policy.rs" = "sdk/src/policy.rs",
    "sdk/src/wit_types.rs" = "sdk/src/wit_types.rs",
    "sdk/src/request.rs" = "sdk/src/request.rs",
    "sdk/src/time.rs" = "sdk/src/time.rs",
    "sdk/src/world.bin" = "sdk/src/world.bin",
    "abi/Cargo.toml" = "sdk/templates/rust/abi/Cargo.toml",
    "abi/src/contract.rs" = "abi/src/contract.rs",
    "abi/src/decision.rs" = "abi/src/decision.rs",
    "abi/src/lib.rs" = "abi/src/lib.rs",
    "abi/src/manifest.rs" = "abi/src/manifest.rs",
    "abi/src/owned.rs" = "abi/src/owned.rs",
    "abi/src/request.rs" = "abi/src/request.rs",
    "abi/src/text.rs" = "abi/src/text.rs",
    "rules/Cargo.toml" = "sdk/templates/rust/rules/Cargo.toml",
    "rules/src/agent.rs" = "../plugins/lib/rules/src/agent.rs",
    "rules/src/aws.rs" = "../plugins/lib/rules/src/aws.rs",
    "rules/src/claim.rs" = "../plugins/lib/rules/src/claim.rs",
    "rules/src/cluster.rs" = "../plugins/lib/rules/src/cluster.rs",
    "rules/src/code.rs" = "../plugins/lib/rules/src/code.rs",
    "rules/src/csr/about.rs" = "../plugins/lib/rules/src/csr/about.rs",
    "rules/src/csr/facts.rs" = "../plugins/lib/rules/src/csr/facts.rs",
    "rules/src/csr/field.rs" = "../plugins/lib/rules/src/csr/field.rs",
    "rules/src/csr/mod.rs" = "../plugins/lib/rules/src/csr/mod.rs",
    "rules/src/csr/rules.rs" = "../plugins/lib/rules/src/csr/rules.rs",
    "rules/src/csr/violations.rs" = "../plugins/lib/rules/src/csr/violations.rs",
    "rules/src/csr/samples.rs" = "../plugins/lib/rules/src/csr/samples.rs",
    "rules/src/glob.rs" = "../plugins/lib/rules/src/glob.rs",
    "rules/src/identity.rs" = "../plugins/lib/rules/src/identity.rs",
    "rules/src/lib.rs" = "../plugins/lib/rules/src/lib.rs",
    "rules/src/name.rs" = "../plugins/lib/rules/src/name.rs",
    "rules/src/time.rs" = "../plugins/lib/rules/src/time.rs",
];

const GO: &[Template] = files![
    ".gitignore" = "sdk/templates/go/gitignore",
    "README.md" = "sdk/templates/go/README.md",
    "go.mod" = "sdk/templates/go/go.mod",
    "main.go" = "sdk/templates/go/main.go",
    "request.yaml" = "sdk/templates/common/request.yaml",
    "tests.yaml" = "sdk/templates/common/tests.yaml",
];

const ASSEMBLY_SCRIPT: &[Template] = files![
    ".gitignore" = "sdk/templates/assemblyscript/gitignore",
    "README.md" = "sdk/templates/assemblyscript/README.md",
    "asconfig.json" = "sdk/templates/assemblyscript/asconfig.json",
    "assembly/index.ts" = "sdk/templates/assemblyscript/assembly/index.ts",
    "assembly/json.ts" = "sdk/templates/assemblyscript/assembly/json.ts",
    "assembly/wasi.ts" = "sdk/templates/assemblyscript/assembly/wasi.ts",
    "package.json" = "sdk/templates/assemblyscript/package.json",
    "request.yaml" = "sdk/templates/common/request.yaml",
    "tests.yaml" = "sdk/templates/common/tests.yaml",
];

const REGO: &[Template] = files![
    ".gitignore" = "sdk/templates/rego/gitignore",
    "README.md" = "sdk/templates/rego/README.md",
    "manifest.yaml" = "sdk/templates/rego/manifest.yaml",
    "policy.rego" = "sdk/templates/rego/policy.rego",
    "request.yaml" = "sdk/templates/common/request.yaml",
    "tests.yaml" = "sdk/templates/common/tests.yaml",
];

impl Language {
    /// The files of a project in this language.
    pub(crate) const fn template(self) -> &'static [Template] {
        match self {
            Self::Rust => RUST,
            Self::Go => GO,
            Self::AssemblyScript => ASSEMBLY_SCRIPT,
            Self::Rego => REGO,
        }
    }

    /// Whether its projects hold a package of this name besides that of the policy.
    pub(crate) fn brings(self, name: &str) -> bool {
        let line = format!("name = \"{name}\"");
        let mut packages = self.template().iter().filter(|(path, _)| path.ends_with("/Cargo.toml"));
        packages.any(|(_, content)| content.split(|byte| *byte == b'\n').any(|other| other == line.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_whole_sdk_is_written() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wasm-policies");
        let mut folders: Vec<_> =
            [("sdk/src", "sdk/src"), ("abi/src", "abi/src"), ("rules/src", "../plugins/lib/rules/src")]
                .map(|(folder, source)| (folder.to_owned(), root.join(source)))
                .into();
        while let Some((folder, source)) = folders.pop() {
            for entry in source.read_dir().unwrap().flatten() {
                let file = format!("{folder}/{}", entry.file_name().into_string().unwrap());
                match entry.path().is_dir() {
                    true => folders.push((file, entry.path())),
                    false => {
                        let known = RUST.iter().any(|(path, _)| *path == file);
                        assert!(known, "{file} is in no project: add it to the list");
                    }
                }
            }
        }
    }

    #[test]
    fn packages_that_a_project_brings_are_known() {
        for name in ["ocm-policy-sdk", "ocm-policy-abi", "ocm-rules"] {
            assert!(Language::Rust.brings(name) && !Language::Go.brings(name), "{name}");
        }
        assert!(!Language::Rust.brings("only-prod"));
    }

    #[test]
    fn every_project_has_what_the_verbs_look_for() {
        for language in [Language::Rust, Language::Go, Language::AssemblyScript, Language::Rego] {
            for file in ["README.md", "request.yaml", "tests.yaml"] {
                assert!(language.template().iter().any(|(path, _)| *path == file), "{language:?} lacks {file}");
            }
        }
    }
}
