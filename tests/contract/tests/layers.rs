//! The layers of the workspace: which crate may import which, and what stays out of where.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// Where a crate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// Types and names.
    Vocabulary,
    /// What can be decided without looking anywhere.
    Rules,
    /// Where the world is touched. An edge may stand on another one that it names, as the client of Kubernetes stands on
    /// TLS and proxies.
    Edge,
    /// Flows and the face of commands. They do not know each other, but for the controller, which asks the policies as the
    /// webhook does.
    Use,
    /// The binaries of people's commands.
    Binary,
    /// What nobody installs.
    Tests,
}

/// One crate: its layer, which of ours it may import, which crates it must not reach by any way, and which it must
/// not import itself.
struct Rule {
    name: &'static str,
    layer: Layer,
    ours: &'static [&'static str],
    never: &'static [&'static str],
    not_itself: &'static [&'static str],
}

const LIBRARIES: &[&str] =
    &["ocm-api", "ocm-checks", "ocm-cli", "ocm-core", "ocm-dump", "ocm-flows", "ocm-kube", "ocm-net", "ocm-rules"];
const TOOLS: &[&str] = &[
    "cli-tests",
    "control-plane",
    "csr-fixtures",
    "fleet-sim",
    "launcher",
    "ocm-api",
    "ocm-checks",
    "ocm-core",
    "ocm-flows",
    "ocm-kube",
    "ocm-net",
    "ocm-policy-certificates",
    "ocm-rules",
    "policy-tests",
    "xtask",
];
/// What brings in an event loop, a client, a command line or a terminal.
const WORLD: &[&str] = &["clap", "hyper", "indicatif", "kube-client", "mio", "rustls", "tokio"];

/// What has no place in a module of a few kilobytes that runs for microseconds, besides the world.
const GUESTS_NEVER: &[&str] = &["chrono", "clap", "jiff", "k8s-openapi", "regex", "ring", "tokio", "x509-parser"];

const RULES: &[Rule] = &[
    // It is in no binary: the compiler runs it.
    Rule { name: "ocm-derive", layer: Layer::Vocabulary, ours: &[], never: WORLD, not_itself: &[] },
    Rule { name: "ocm-api", layer: Layer::Vocabulary, ours: &["ocm-derive"], never: WORLD, not_itself: &[] },
    Rule {
        name: "ocm-rules",
        layer: Layer::Rules,
        ours: &[],
        never: GUESTS_NEVER,
        not_itself: &["serde", "serde_json"],
    },
    Rule { name: "ocm-core", layer: Layer::Rules, ours: &["ocm-api", "ocm-rules"], never: WORLD, not_itself: &[] },
    Rule {
        name: "ocm-checks",
        layer: Layer::Rules,
        ours: &["ocm-api", "ocm-core", "ocm-rules"],
        never: WORLD,
        not_itself: &[],
    },
    Rule { name: "ocm-policy-abi", layer: Layer::Vocabulary, ours: &[], never: WORLD, not_itself: &[] },
    Rule {
        name: "ocm-policy-rules",
        layer: Layer::Rules,
        ours: &["ocm-api", "ocm-core", "ocm-policy-abi", "ocm-rules"],
        never: WORLD,
        not_itself: &[],
    },
    Rule {
        name: "ocm-policy-testing",
        layer: Layer::Rules,
        ours: &["ocm-api", "ocm-core", "ocm-policy-abi", "ocm-policy-rules"],
        never: WORLD,
        not_itself: &[],
    },
    Rule {
        name: "ocm-policy-sdk",
        layer: Layer::Rules,
        ours: &["ocm-policy-abi", "ocm-rules"],
        never: GUESTS_NEVER,
        not_itself: &[],
    },
    guest("policy-agent-self-edit"),
    guest("policy-allowed-identities"),
    guest("policy-approvals"),
    guest("policy-cel"),
    guest("policy-cluster-hygiene"),
    guest("policy-cluster-set-routing"),
    guest("policy-csr-hygiene"),
    guest("policy-freeze-window"),
    guest("policy-inventory"),
    guest("policy-join-quota"),
    guest("policy-name-claim"),
    guest("policy-name-pattern"),
    guest("policy-required-labels"),
    Rule {
        name: "ocm-policy-engine",
        layer: Layer::Edge,
        ours: &["ocm-api", "ocm-core", "ocm-policy-abi", "ocm-policy-rules", "ocm-policy-testing"],
        never: WORLD,
        not_itself: &[],
    },
    Rule {
        name: "ocm-policy-distribution",
        layer: Layer::Edge,
        ours: &["ocm-api", "ocm-core", "ocm-net"],
        never: &["clap", "indicatif", "kube", "kube-client", "wasmtime"],
        not_itself: &[],
    },
    Rule {
        name: "ocm-policy-certificates",
        layer: Layer::Use,
        ours: &["ocm-api", "ocm-core", "ocm-kube"],
        never: &["comfy-table", "indicatif", "wasmtime"],
        not_itself: &["clap"],
    },
    // Modules as bytes, and nothing else.
    Rule { name: "ocm-policy-builtin", layer: Layer::Vocabulary, ours: &[], never: WORLD, not_itself: &[] },
    Rule {
        name: "ocm-policy-server",
        layer: Layer::Use,
        ours: &[
            "ocm-api",
            "ocm-core",
            "ocm-kube",
            "ocm-policy-abi",
            "ocm-policy-builtin",
            "ocm-policy-distribution",
            "ocm-policy-engine",
            "ocm-policy-rules",
        ],
        never: &["comfy-table", "indicatif"],
        not_itself: &["clap", "wasmtime"],
    },
    Rule {
        name: "ocm-policy-controller",
        layer: Layer::Use,
        ours: &[
            "ocm-api",
            "ocm-core",
            "ocm-kube",
            "ocm-policy-abi",
            "ocm-policy-distribution",
            "ocm-policy-engine",
            "ocm-policy-rules",
            "ocm-policy-server",
            "ocm-rules",
        ],
        never: &["comfy-table", "indicatif"],
        not_itself: &["clap", "wasmtime"],
    },
    Rule {
        name: "ocm-kube",
        layer: Layer::Edge,
        ours: &["ocm-api", "ocm-core", "ocm-net"],
        never: &["comfy-table", "indicatif"],
        not_itself: &[],
    },
    Rule {
        name: "ocm-net",
        layer: Layer::Edge,
        ours: &["ocm-api", "ocm-core"],
        never: &["clap", "indicatif", "kube", "kube-client"],
        not_itself: &[],
    },
    Rule {
        name: "ocm-dump",
        layer: Layer::Edge,
        ours: &["ocm-api", "ocm-core", "ocm-kube", "ocm-net"],
        never: &["comfy-table", "indicatif"],
        not_itself: &["clap", "hyper"],
    },
    Rule {
        name: "ocm-flows",
        layer: Layer::Use,
        ours: &["ocm-api", "ocm-checks", "ocm-core", "ocm-kube", "ocm-net", "ocm-policy-certificates", "ocm-rules"],
        never: &["comfy-table", "indicatif"],
        not_itself: &["clap"],
    },
    Rule {
        name: "ocm-cli",
        layer: Layer::Use,
        ours: &["ocm-api", "ocm-checks", "ocm-core"],
        never: &["hyper", "kube-client", "rustls"],
        not_itself: &["kube"],
    },
    binary("kubectl-ocm-accept"),
    binary("kubectl-ocm-addon"),
    binary("kubectl-ocm-clusterset"),
    binary("kubectl-ocm-detach"),
    binary("kubectl-ocm-get"),
    binary("kubectl-ocm-install"),
    binary("kubectl-ocm-join"),
    binary("kubectl-ocm-placement"),
    binary("kubectl-ocm-proxy"),
    binary("kubectl-ocm-token"),
    binary("kubectl-ocm-troubleshoot"),
    binary("kubectl-ocm-tls-check"),
    binary("kubectl-ocm-uninstall"),
    binary("kubectl-ocm-unjoin"),
    binary("kubectl-ocm-upgrade"),
    binary("kubectl-ocm-work"),
    Rule {
        name: "kubectl-ocm-policy",
        layer: Layer::Binary,
        ours: &[
            "ocm-api",
            "ocm-cli",
            "ocm-core",
            "ocm-flows",
            "ocm-kube",
            "ocm-policy-abi",
            "ocm-policy-builtin",
            "ocm-policy-distribution",
            "ocm-policy-engine",
            "ocm-policy-rules",
            "ocm-policy-testing",
        ],
        never: &[],
        not_itself: &["hyper", "indicatif", "kube", "rustls", "wasmtime"],
    },
    Rule {
        name: "ocm-policy-webhook",
        layer: Layer::Binary,
        ours: &[
            "ocm-cli",
            "ocm-core",
            "ocm-kube",
            "ocm-net",
            "ocm-policy-certificates",
            "ocm-policy-controller",
            "ocm-policy-engine",
            "ocm-policy-server",
        ],
        never: &[],
        not_itself: &["hyper", "indicatif", "kube", "rustls", "wasmtime"],
    },
    // The dispatcher starts in no time because it links nothing.
    Rule { name: "kubectl-ocm", layer: Layer::Binary, ours: &[], never: &[], not_itself: &[] },
    tests("bench"),
    tests("cli-tests"),
    tests("contract-tests"),
    tests("control-plane"),
    tests("e2e-tests"),
    tests("csr-fixtures"),
    tests("fleet-sim"),
    // The first program of a new machine compiles in no time because it links nothing.
    Rule { name: "launcher", layer: Layer::Tests, ours: &[], never: &[], not_itself: &[] },
    tests("policy-tests"),
    tests("xtask"),
];

/// A policy: it has the words and the SDK, and nothing else of ours.
const fn guest(name: &'static str) -> Rule {
    Rule {
        name,
        layer: Layer::Rules,
        ours: &["ocm-policy-abi", "ocm-policy-sdk", "ocm-rules"],
        never: GUESTS_NEVER,
        not_itself: &[],
    }
}

const fn binary(name: &'static str) -> Rule {
    Rule {
        name,
        layer: Layer::Binary,
        ours: LIBRARIES,
        never: &[],
        not_itself: &["hyper", "indicatif", "kube", "rustls"],
    }
}

const fn tests(name: &'static str) -> Rule {
    Rule { name, layer: Layer::Tests, ours: TOOLS, never: &[], not_itself: &[] }
}

/// What may link the engine of the policies, besides the crates below `wasm-policies`.
const POLICY_BINARIES: &[&str] = &["kubectl-ocm-policy", "bench", "e2e-tests", "policy-tests"];

/// The graph for this kind of machine: crates of other kinds need not be downloaded for it.
fn metadata() -> Metadata {
    let version = Command::new("rustc").arg("-vV").output().expect("there is a compiler").stdout;
    let version = String::from_utf8(version).expect("a version is text");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("the compiler knows its host");
    MetadataCommand::new()
        .current_dir(cli_tests::root())
        .other_options(["--locked", "--offline", "--filter-platform", host].map(str::to_owned))
        .exec()
        .expect("the graph of the crates can be had")
}

/// What a package itself imports to be used, not to be built or tested.
fn imports<'m>(metadata: &'m Metadata, package: &PackageId) -> impl Iterator<Item = &'m PackageId> {
    let resolve = metadata.resolve.as_ref().expect("the graph is resolved");
    let node = resolve.nodes.iter().find(|node| node.id == *package);
    node.into_iter()
        .flat_map(|node| &node.deps)
        .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal))
        .map(|dep| &dep.pkg)
}

/// Everything that a package reaches, with the way to it.
fn reach(metadata: &Metadata, package: &PackageId) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![(package.clone(), String::new())];
    while let Some((id, way)) = left.pop() {
        for import in imports(metadata, &id) {
            let name = metadata[import].name.to_string();
            let way = format!("{way} → {name}");
            if found.insert(name, way.clone()).is_none() {
                left.push((import.clone(), way));
            }
        }
    }
    found
}

fn rule(package: &Package) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == package.name.as_str())
}

#[test]
fn every_crate_has_its_layer() {
    let metadata = metadata();
    let members: BTreeSet<_> =
        metadata.workspace_packages().into_iter().map(|package| package.name.to_string()).collect();
    let known: BTreeSet<_> = RULES.iter().map(|rule| rule.name.to_owned()).collect();
    assert_eq!(members, known, "the table of layers and the workspace differ");
    for package in metadata.workspace_packages() {
        let layer = rule(package).map(|rule| rule.layer);
        let wing = package.manifest_path.strip_prefix(&metadata.workspace_root).map(|path| path.as_str().to_owned());
        let wing = wing.expect("members are in the workspace");
        let right = match layer {
            Some(Layer::Binary) => wing.starts_with("plugins/kubectl-") || wing == "wasm-policies/webhook/Cargo.toml",
            Some(Layer::Tests) => wing.starts_with("tests/"),
            _ => wing.starts_with("plugins/lib/") || wing.starts_with("wasm-policies/"),
        };
        assert!(right, "{} is {layer:?} but lives in {wing}", package.name);
    }
}

#[test]
fn imports_go_only_down() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(rule) = rule(package) else { continue };
        for import in imports(&metadata, &package.id).map(|id| &metadata[id]) {
            let name = import.name.as_str();
            if !metadata.workspace_members.contains(&import.id) {
                if rule.not_itself.contains(&name) {
                    wrong.push(format!("{} must not import {name} itself", rule.name));
                }
                continue;
            }
            // Vocabulary, rules, edges and flows may stand on others that they name; Cargo refuses a cycle.
            let below = self::rule(import).is_some_and(|other| match rule.layer {
                Layer::Tests => true,
                Layer::Vocabulary | Layer::Rules | Layer::Edge | Layer::Use => other.layer <= rule.layer,
                layer => other.layer < layer,
            });
            if !rule.ours.contains(&name) || !below {
                wrong.push(format!("{} ({:?}) must not import {name}", rule.name, rule.layer));
            }
        }
        let reach = reach(&metadata, &package.id);
        for name in rule.never {
            if let Some(way) = reach.get(*name) {
                wrong.push(format!("{} must not reach {name}: {}{way}", rule.name, rule.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_dispatcher_and_the_launcher_link_nothing() {
    let metadata = metadata();
    let packages = metadata.workspace_packages();
    for name in ["kubectl-ocm", "launcher"] {
        let package = packages.iter().find(|package| package.name.as_str() == name).expect("it is there");
        assert_eq!(imports(&metadata, &package.id).count(), 0, "{name}");
    }
}

#[test]
fn only_where_policies_run_is_their_engine_linked() {
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        let at_home = package.manifest_path.as_str().contains("/wasm-policies/");
        if at_home || POLICY_BINARIES.contains(&package.name.as_str()) {
            continue;
        }
        let reach = reach(&metadata, &package.id);
        assert!(!reach.contains_key("wasmtime"), "{}{}", package.name, reach["wasmtime"]);
    }
}

#[test]
fn binaries_hold_no_logic_in_main() {
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        if rule(package).is_none_or(|rule| rule.layer != Layer::Binary) {
            continue;
        }
        let main = package.manifest_path.parent().expect("a manifest is in a folder").join("src/main.rs");
        let text = fs::read_to_string(&main).expect("a binary has a main.rs");
        let lines = text.lines().count();
        assert!(lines <= 20, "{main} has {lines} lines; 20 are enough for a binary");
    }
}

/// Crates of which two versions are linked or built, and why.
const TWICE: &[(&str, &str)] = &[
    ("base64", "k8s-openapi and kube still take 0.22"),
    ("bit-vec", "the parser of CEL, which runs as a guest only, is a version ahead of yasna"),
    ("block-buffer", "comes with sha2"),
    ("cpufeatures", "comes with sha2"),
    ("crypto-common", "comes with sha2"),
    ("digest", "comes with sha2"),
    ("embedded-io", "postcard, in which wasmtime keeps its metadata, names two of which it uses none"),
    ("getrandom", "ring still takes 0.2, the p521 family takes 0.4"),
    ("hashbrown", "gimli and object, which wasmtime takes, are one version behind"),
    ("r-efi", "comes with the versions of getrandom, for UEFI only"),
    ("sha2", "the long-term support line of wasmtime takes 0.10"),
    ("syn", "some derive macros still take 2; only the compiler runs them"),
    ("windows-sys", "for Windows only; the crates of the ecosystem move one by one"),
];

#[test]
fn each_crate_is_there_once() {
    let lock = fs::read_to_string(cli_tests::root().join("Cargo.lock")).expect("there is a lock file");
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in lock.lines() {
        let value = |key: &str| line.strip_prefix(key).and_then(|rest| rest.strip_prefix(" = \"")?.strip_suffix('"'));
        if let Some(found) = value("name") {
            name = found;
        } else if let Some(found) = value("version").filter(|_| !name.is_empty()) {
            versions.entry(name).or_default().push(found);
            name = "";
        }
    }
    let twice: BTreeMap<_, _> = versions.iter().filter(|(_, versions)| versions.len() > 1).collect();
    for (name, versions) in &twice {
        assert!(TWICE.iter().any(|(known, _)| known == *name), "{name} is there as {}", versions.join(" and "));
    }
    for (name, _) in TWICE {
        assert!(twice.contains_key(name), "{name} is there once now: take it off the list");
    }
}
