//! What may be linked, and what rules may call: the lists of `deny.toml` and of the files for clippy.

use std::fs;
use std::path::Path;
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};
use cli_tests::root;

/// The graph for this kind of machine: crates of other kinds need not be downloaded for it.
fn metadata() -> Metadata {
    let version = Command::new("rustc").arg("-vV").output().expect("there is a compiler").stdout;
    let version = String::from_utf8(version).expect("a version is text");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("the compiler knows its host");
    MetadataCommand::new()
        .current_dir(root())
        .other_options(["--locked", "--offline", "--filter-platform", host].map(str::to_owned))
        .exec()
        .expect("the graph of the crates can be had")
}

/// The strings of a list in `deny.toml`.
fn list(key: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("there is a deny.toml");
    let rest = text.split_once(&format!("\n{key} = [")).expect("the list is there").1;
    let items = rest.split(']').next().expect("a list ends").split(',').map(|item| item.trim().trim_matches('"'));
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Whether an SPDX expression holds when exactly these licences are allowed. `OR` binds weaker than `AND`; the slash is
/// an old way to write `OR`.
fn holds(expression: &str, allowed: &[String]) -> bool {
    if let Some((one, other)) = halves(expression, " OR ") {
        return holds(one, allowed) || holds(other, allowed);
    }
    if let Some((one, other)) = halves(expression, " AND ") {
        return holds(one, allowed) && holds(other, allowed);
    }
    let expression = expression.trim();
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => holds(inner, allowed),
        None => expression.split('/').any(|name| allowed.iter().any(|allowed| allowed == name.trim())),
    }
}

/// What stands before and after the first such operator outside parentheses.
fn halves<'e>(expression: &'e str, operator: &str) -> Option<(&'e str, &'e str)> {
    let mut depth = 0;
    let (at, _) = expression.char_indices().find(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && expression[*at..].starts_with(operator)
    })?;
    Some((&expression[..at], &expression[at + operator.len()..]))
}

#[test]
fn dependencies_are_allowed() {
    let (licences, registries) = (list("allow"), list("allow-registry"));
    let mut wrong = Vec::new();
    for package in metadata().packages {
        let licence = package.license.as_deref().unwrap_or("none");
        if !holds(licence, &licences) {
            wrong.push(format!("{} {} has the licence {licence}", package.name, package.version));
        }
        if let Some(source) = &package.source
            && !registries.iter().any(|registry| source.repr == format!("registry+{registry}"))
        {
            wrong.push(format!("{} {} comes from {source}", package.name, package.version));
        }
    }
    assert!(wrong.is_empty(), "deny.toml does not allow {wrong:#?}");
}

#[test]
fn expressions_of_licences_are_understood() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for good in
        ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "(MIT OR GPL-3.0) AND ISC", "Apache-2.0 WITH LLVM-exception OR X"]
    {
        assert!(holds(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND GPL-3.0", "Apache-2.0", "none"] {
        assert!(!holds(bad, &allowed), "{bad}");
    }
}

/// Crates that look at the world, or that policies do not consist of.
const MAY_LOOK: &[&str] = &[
    "wasm-policies/certificates",
    "wasm-policies/controller",
    "wasm-policies/distribution",
    "wasm-policies/engine",
    "wasm-policies/server",
    "wasm-policies/webhook",
];

/// Clippy reads the file that is nearest to a crate, and only that.
#[test]
fn rules_have_no_clock_environment_or_files() {
    for package in metadata().workspace_packages() {
        let folder = package.manifest_path.parent().expect("a manifest is in a folder").as_std_path();
        let place = folder.strip_prefix(root().canonicalize().expect("a workspace")).unwrap_or(folder);
        let place = place.strip_prefix(root()).unwrap_or(place);
        let rules = place.starts_with("wasm-policies")
            || ["plugins/lib/checks", "plugins/lib/core", "plugins/lib/rules"].map(Path::new).contains(&place);
        if !rules || MAY_LOOK.iter().any(|may| place == Path::new(may)) {
            continue;
        }
        let nearest = folder.ancestors().map(|folder| folder.join("clippy.toml")).find(|file| file.is_file());
        let nearest = nearest.expect("the workspace has one");
        let text = fs::read_to_string(&nearest).expect("it can be read");
        for method in ["std::time::SystemTime::now", "std::env::var", "std::fs::read", "std::process::Command::new"] {
            assert!(text.contains(method), "{} does not refuse {method} to {}", nearest.display(), package.name);
        }
    }
}

/// Records are compared byte by byte on other machines and by other builds. These features of the JSON library would
/// change the order of members and the form of numbers, and any crate of the tree could switch them on.
#[test]
fn json_is_written_alike_by_every_build() {
    let metadata = metadata();
    let json = metadata.packages.iter().find(|package| package.name.as_str() == "serde_json").expect("it is used");
    let nodes = metadata.resolve.as_ref().expect("there is a graph").nodes.iter();
    let node = nodes.into_iter().find(|node| node.id == json.id).expect("it is in the graph");
    for feature in ["preserve_order", "arbitrary_precision"] {
        assert!(json.features.contains_key(feature), "the feature {feature} has another name now");
        let on = node.features.iter().any(|on| on.as_ref() as &str == feature);
        assert!(!on, "a crate switches on the feature {feature} of serde_json");
    }
}
