//! What is linked into a binary, as a list in the format of CycloneDX.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// What Cargo knows of a package of the workspace.
pub struct Package {
    /// Its version.
    pub version: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Its licence, as an expression of SPDX.
    pub licence: String,
}

/// A package of the workspace.
///
/// # Errors
/// When there is none of this name.
pub fn package(name: &str) -> Result<Package, String> {
    let metadata = cargo(&["metadata", "--locked", "--offline", "--no-deps", "--format-version=1"])?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = packages.iter().find(|package| package["name"] == name);
    let found = found.ok_or_else(|| format!("the workspace has no package {name}"))?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Ok(Package { version: text("version"), description: text("description"), licence: text("license") })
}

/// The list of everything that the binary of a package links on a kind of machine. What only compiles it is not there.
///
/// # Errors
/// When Cargo does not tell.
pub fn of(package: &str, triple: &str) -> Result<String, String> {
    let tree = cargo(&[
        "tree",
        "--locked",
        "--offline",
        "--edges=normal,no-proc-macro",
        "--prefix=depth",
        "--format=|{p}|{l}",
        "--package",
        package,
        "--target",
        triple,
    ])?;
    let list = serde_json::to_string_pretty(&list(&tree)?).map_err(|error| error.to_string())?;
    Ok(list + "\n")
}

/// The list, from lines of `depth|name version|licence`. The children of a package that is there again are told once.
fn list(tree: &str) -> Result<Value, String> {
    let mut components: BTreeMap<String, Value> = BTreeMap::new();
    let mut dependencies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // The way from the root to the line.
    let mut way: Vec<String> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (reference, component, depth) =
            component(line).ok_or_else(|| format!("cargo tree prints a line that is none of a package: {line}"))?;
        if depth > way.len() {
            return Err(format!("cargo tree prints a package without the one that needs it: {line}"));
        }
        way.truncate(depth);
        if let Some(parent) = way.last() {
            dependencies.entry(parent.clone()).or_default().insert(reference.clone());
        }
        dependencies.entry(reference.clone()).or_default();
        components.insert(reference.clone(), component);
        way.push(reference);
    }
    let root = way.first().ok_or("cargo tree prints nothing")?;
    let mut top = components.remove(root).unwrap_or_default();
    top["type"] = json!("application");
    let dependencies: Vec<_> =
        dependencies.iter().map(|(reference, needs)| json!({ "ref": reference, "dependsOn": needs })).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": top },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

fn component(line: &str) -> Option<(String, Value, usize)> {
    let mut parts = line.split('|');
    let (depth, package, licence) = (parts.next()?, parts.next()?, parts.next()?);
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let reference = format!("pkg:cargo/{name}@{version}");
    let mut component =
        json!({ "type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference });
    // With the mark of a package that is there again; crates of former years write `/` for OR.
    let licence = licence.trim_end_matches("(*)").trim().replace('/', " OR ");
    if !licence.is_empty() {
        component["licenses"] = json!([{ "expression": licence }]);
    }
    Some((reference, component, depth.parse().ok()?))
}

fn cargo(words: &[&str]) -> Result<String, String> {
    let done = cli_tests::cargo().args(words).current_dir(cli_tests::root()).output();
    let done = done.map_err(|error| format!("cannot start Cargo: {error}"))?;
    if !done.status.success() {
        return Err(format!("cargo {}: {}", words[0], String::from_utf8_lossy(&done.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_each_package_once_and_who_needs_it() {
        let tree =
            "0|app v0.1.0 (/src/app)|Apache-2.0\n1|a v1.0.0|MIT/Apache-2.0\n2|b v2.0.0|MIT\n1|b v2.0.0|MIT (*)\n";
        let list = list(tree).expect("a list");
        assert_eq!(list["metadata"]["component"]["name"], "app");
        assert_eq!(list["metadata"]["component"]["type"], "application");
        let components = list["components"].as_array().expect("components");
        let names: Vec<_> = components.iter().map(|component| component["purl"].as_str().unwrap_or_default()).collect();
        assert_eq!(names, ["pkg:cargo/a@1.0.0", "pkg:cargo/b@2.0.0"]);
        assert_eq!(components[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(components[1]["licenses"][0]["expression"], "MIT");
        assert_eq!(
            list["dependencies"],
            json!([
                { "ref": "pkg:cargo/a@1.0.0", "dependsOn": ["pkg:cargo/b@2.0.0"] },
                { "ref": "pkg:cargo/app@0.1.0", "dependsOn": ["pkg:cargo/a@1.0.0", "pkg:cargo/b@2.0.0"] },
                { "ref": "pkg:cargo/b@2.0.0", "dependsOn": [] },
            ])
        );
        for wrong in ["", "app v0.1.0\n", "0|app 0.1.0|MIT\n", "1|a v1.0.0|MIT\n"] {
            assert!(super::list(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_linked_is_listed_and_what_only_compiles_is_not() {
        let list = of("kubectl-ocm-policy", "x86_64-unknown-linux-musl").expect("a list");
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let names: BTreeSet<_> =
            list["components"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
        assert!(["ocm-policy-engine", "wasmtime", "ring"].iter().all(|name| names.contains(name)), "{names:?}");
        assert!(
            ["cc", "serde_derive", "insta", "ocm-policy-server"].iter().all(|name| !names.contains(name)),
            "{names:?}"
        );
        let unknown = list["components"].as_array().into_iter().flatten().find(|one| one.get("licenses").is_none());
        assert!(unknown.is_none(), "without a licence: {unknown:?}");
        assert!(package("nothing").is_err());
    }
}
