//! What the sources of the libraries keep to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::MetadataCommand;
use cli_tests::{binaries, root};
use ocm_core::Exit;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::Lit;

/// The sources below a folder of the workspace, without what only tests compile.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut left = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
            let path = entry.path();
            match path.is_dir() {
                true if path.ends_with("tests") || path.ends_with("target") => {}
                true => left.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => found.push(source(&path)),
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn source(path: &PathBuf) -> (String, String) {
    let text = fs::read_to_string(path).expect("a source can be read");
    let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
    (path.strip_prefix(root()).unwrap_or(Path::new("")).display().to_string(), shipped)
}

/// The lines that are code, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(index, line)| (index + 1, line))
}

/// The strings of a source as they are while it runs, over however many lines they are written; those of macros and
/// attributes as well, but for doc comments.
fn strings(file: &str, text: &str) -> Vec<String> {
    let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut found = Vec::new();
    collect_strings(tokens, &mut found);
    found
}

fn collect_strings(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Literal(literal) => {
                if let Lit::Str(text) = Lit::new(literal) {
                    found.push(text.value());
                }
            }
            TokenTree::Group(group) if !is_doc(&group) => collect_strings(group.stream(), found),
            _ => {}
        }
    }
}

/// Whether these are the brackets of an attribute that a doc comment stands for.
fn is_doc(group: &Group) -> bool {
    let mut tokens = group.stream().into_iter();
    group.delimiter() == Delimiter::Bracket
        && matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "doc")
        && matches!(tokens.next(), Some(TokenTree::Punct(sign)) if sign.as_char() == '=')
}

/// Libraries whose callers are not all commands with the same flags.
const FLAGLESS: &[&str] = &[
    "plugins/lib/api",
    "plugins/lib/checks",
    "plugins/lib/core",
    "plugins/lib/dump",
    "plugins/lib/flows",
    "plugins/lib/kube",
    "plugins/lib/net",
    "plugins/lib/rules",
    "wasm-policies/abi",
    "wasm-policies/builtin",
    "wasm-policies/certificates",
    "wasm-policies/controller",
    "wasm-policies/distribution",
    "wasm-policies/engine",
    "wasm-policies/rules",
    "wasm-policies/sdk",
    "wasm-policies/server",
    "wasm-policies/testing",
];

/// Files that name flags, and why.
const FLAGS: &[(&str, &str)] = &[
    ("plugins/lib/checks/src/page.rs", "it is the document that says how the command shows it"),
    ("plugins/lib/checks/src/registry", "findings end with commands that are ready to be pasted"),
    ("plugins/lib/checks/src/tls/copies.rs", "findings end with commands that are ready to be pasted"),
    ("plugins/lib/checks/src/tls/judge.rs", "findings end with commands that are ready to be pasted"),
    ("plugins/lib/core/src/install/deployment.rs", "it is an argument of the operator's container"),
    (
        "plugins/lib/core/src/policy_engine/repair.rs",
        "conditions on the hub end with commands that are ready to be pasted",
    ),
    ("plugins/lib/core/src/policy_engine/workload.rs", "they are arguments of the webhook's container"),
    ("plugins/lib/core/src/join_command.rs", "it is the join command, which is made of flags"),
    ("plugins/lib/kube/src/args.rs", "it is the command line of connections"),
    ("wasm-policies/certificates/src/run.rs", "conditions on the hub end with commands that are ready to be pasted"),
    (
        "wasm-policies/controller/src/enforcement.rs",
        "conditions on the hub end with commands that are ready to be pasted",
    ),
    ("wasm-policies/controller/src/modules.rs", "conditions on the hub end with commands that are ready to be pasted"),
];

/// Whether a flag stands in a text.
fn names_a_flag(text: &str) -> bool {
    text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + 2..].chars().next();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '-')
            && after.is_some_and(|c| c.is_ascii_lowercase() || c == '{')
    })
}

/// Libraries of which what would help is a value, which `ocm-cli` and the binaries word.
const COMMANDLESS: &[&str] = &[
    "plugins/lib/core",
    "plugins/lib/flows",
    "plugins/lib/kube",
    "plugins/lib/net",
    "plugins/lib/rules",
    "wasm-policies/certificates",
    "wasm-policies/controller",
    "wasm-policies/distribution",
    "wasm-policies/engine",
    "wasm-policies/rules",
    "wasm-policies/server",
];

/// Files that name commands, and why.
const COMMANDS: &[(&str, &str)] = &[
    ("plugins/lib/core/src/hub_addon/guard.rs", "a refusal says which command does what an object would"),
    ("plugins/lib/core/src/install/images.rs", "notes of a plan are sentences"),
    ("plugins/lib/core/src/join/asking.rs", "what is waited for is a sentence"),
    ("plugins/lib/core/src/join/progress.rs", "what is waited for is a sentence"),
    ("plugins/lib/core/src/join_command.rs", "it is the join command"),
    ("plugins/lib/core/src/phase.rs", "where a cluster stands is a sentence"),
    (
        "plugins/lib/core/src/policy_engine/repair.rs",
        "conditions on the hub end with commands that are ready to be pasted",
    ),
    ("plugins/lib/flows/src/accept/carry_out.rs", "it is written into a condition of the request"),
    ("plugins/lib/flows/src/join/fallback.rs", "notes and warnings are sentences"),
    ("plugins/lib/flows/src/join/registered.rs", "warnings are sentences"),
    ("wasm-policies/certificates/src/run.rs", "conditions on the hub end with commands that are ready to be pasted"),
    (
        "wasm-policies/controller/src/enforcement.rs",
        "conditions on the hub end with commands that are ready to be pasted",
    ),
    ("wasm-policies/controller/src/modules.rs", "conditions on the hub end with commands that are ready to be pasted"),
    ("wasm-policies/controller/src/registrations.rs", "what keeps an acceptance from beginning is a sentence"),
];

/// Whether a command of the suite stands in a text.
fn names_a_command(text: &str) -> bool {
    text.contains("kubectl ocm ")
}

/// The strings of libraries that name something, but for files that are excepted, of which each has to need it.
fn named_in(libraries: &[&str], exceptions: &[(&'static str, &str)], is_named: fn(&str) -> bool) -> Vec<String> {
    let (mut wrong, mut excepted) = (Vec::new(), BTreeSet::new());
    for library in libraries {
        for (file, text) in sources(&format!("{library}/src")) {
            let named = strings(&file, &text).into_iter().filter(|text| is_named(text));
            match exceptions.iter().find(|(known, _)| file.starts_with(known)) {
                Some((known, _)) => excepted.extend(named.map(|_| *known)),
                None => wrong.extend(named.map(|text| format!("{file}: {text:?}"))),
            }
        }
    }
    let exceptions: BTreeSet<&str> = exceptions.iter().map(|(known, _)| *known).collect();
    assert_eq!(excepted, exceptions, "an exception that no file needs is none");
    wrong
}

#[test]
fn libraries_name_no_flag() {
    let wrong = named_in(FLAGLESS, FLAGS, names_a_flag);
    assert!(wrong.is_empty(), "the binary that reads a flag is the one that names it: {wrong:#?}");
}

#[test]
fn libraries_name_no_command() {
    let wrong = named_in(COMMANDLESS, COMMANDS, names_a_command);
    assert!(wrong.is_empty(), "what would help is a `Remedy`, which the binary words: {wrong:#?}");
}

#[test]
fn flags_are_found_in_strings_and_nowhere_else() {
    let found = |text: &str| strings("a source", text).iter().any(|text| names_a_flag(text));
    for named in [
        r#"fn f() { hint("add --yes") }"#,
        r#"fn f() { format!("--{prefix}context") }"#,
        r#"#[error("add --yes")] struct E;"#,
        "fn f() { hint(\"load it \\\n with --kind\") }",
        "fn f() { hint(\"a \\\"word\\\" \n and --kind\") }",
        "fn f() { hint(r#\"a \"word\" \n and --kind\"#) }",
    ] {
        assert!(found(named), "{named}");
    }
    for none in [
        r#"fn f() { ("-----BEGIN", "a -- b", 'x', "x").0 }"#,
        "fn f(x: i32) -> i32 { x --y }",
        "//! Add --yes.\n/// Add \"--yes\".\nfn f() {} // or \"--yes\"",
    ] {
        assert!(!found(none), "{none}");
    }
}

/// How many columns a line of a help has: longer ones are broken where nobody wrote a `\\`.
const COLUMNS: usize = 100;

/// The lines below `Examples:`, up to the next paragraph that is not indented.
fn examples(text: &str) -> Vec<&str> {
    let mut within = false;
    let is_example = |line: &&str| {
        match *line {
            "Examples:" => {
                within = true;
                return false;
            }
            line if !line.is_empty() && !line.starts_with("  ") => within = false,
            _ => {}
        }
        within
    };
    text.lines().filter(is_example).collect()
}

/// What keeps an example from being pasted into a shell.
fn obstacles(examples: &[&str]) -> Vec<String> {
    let is_wrong = |line: &&&str| {
        line.chars().count() > COLUMNS
            || line.trim() == "\\"
            || (!line.trim().starts_with('#') && line.contains(['<', '…']))
    };
    let mut found: Vec<String> = examples.iter().filter(is_wrong).map(|line| (*line).to_owned()).collect();
    let script = examples.join("\n");
    let bash = Command::new("bash").args(["-n", "-c", &script]).output().expect("bash is installed");
    if !bash.status.success() {
        found.push(String::from_utf8_lossy(&bash.stderr).into_owned());
    }
    found
}

#[test]
fn examples_of_helps_can_be_pasted() {
    let of = |text: &str| obstacles(&examples(text));
    assert_eq!(examples("Examples:\n  # One\n  a b\n\n  c\n\nExit codes: 0"), ["  # One", "  a b", "", "  c", ""]);
    assert_eq!(of("Examples:\n  a \\\n    b | c > d\n"), [""; 0]);
    for wrong in ["  a <name>", "  a 'b", "  a …", "  \\", &format!("  {}", "a".repeat(COLUMNS))] {
        assert!(!of(&format!("Examples:\n{wrong}")).is_empty(), "{wrong}");
    }
    let mut texts = 0;
    for (file, text) in sources("plugins") {
        for text in strings(&file, &text).iter().filter(|text| text.contains("Examples:\n")) {
            texts += 1;
            assert_eq!(of(text), [""; 0], "{file}");
        }
    }
    assert!(texts > 20, "helps have examples, and {texts} were found");
}

/// Files that look for words in a text, and whose text it is. Everything else matches on what is returned.
const WORDS: &[(&str, &str)] = &[
    (
        "plugins/kubectl-ocm-policy/src/verbs/registry.rs",
        "programs of docker that keep credentials say on stdout that there are none",
    ),
    ("plugins/lib/checks/src/causes.rs", "kubelets, operators and agents write them into conditions"),
    ("plugins/lib/core/src/join/agent.rs", "lines of an agent's log"),
    ("plugins/lib/core/src/redact.rs", "the labels of PEM"),
    ("plugins/lib/dump/src/query.rs", "label selectors of Kubernetes"),
    ("plugins/lib/dump/src/secret.rs", "programs that make dumps write them in the place of values"),
    ("plugins/lib/flows/src/workload.rs", "kubelets say in a log's place that there is none"),
    ("plugins/lib/kube/src/middleware.rs", "warnings of HTTP"),
    ("plugins/lib/kube/src/untyped.rs", "API servers and the standard library have no type for them"),
    ("wasm-policies/distribution/src/signature.rs", "the labels of PEM"),
    ("wasm-policies/engine/src/runtime/errors.rs", "wasmtime has no type for it"),
    ("wasm-policies/testing/src/expect.rs", "test cases of policies may ask for words of a reason"),
];

/// How a text is searched.
const SEARCHES: [&str; 18] = [
    "contains",
    "ends_with",
    "find",
    "match_indices",
    "matches",
    "rfind",
    "rsplit",
    "rsplit_once",
    "rsplitn",
    "split",
    "split_once",
    "split_terminator",
    "splitn",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "trim_end_matches",
    "trim_start_matches",
];

/// Constants, and whether words stand in them: a text with a space. Of those of one name in several sources, in all of them.
type Constants = BTreeMap<String, bool>;

/// What of a source is words: its strings, the constants that it names, and what looks for words that it is given.
struct Names<'a> {
    own: &'a Constants,
    all: &'a Constants,
    searching: BTreeSet<String>,
}

impl Names<'_> {
    /// The words that stand in what a search is given. Closures look at something else.
    fn words(&self, given: &Group) -> Vec<String> {
        let begins = given.stream().into_iter().next();
        let is_closure = match begins {
            Some(TokenTree::Punct(sign)) => sign.as_char() == '|',
            Some(TokenTree::Ident(name)) => name == "move",
            _ => false,
        };
        let mut found = Vec::new();
        if !is_closure {
            collect_strings(given.stream(), &mut found);
            found.retain(|text| text.contains(' '));
            let named = idents(given.stream()).into_iter();
            found.extend(named.filter(|name| *self.own.get(name).or(self.all.get(name)).unwrap_or(&false)));
        }
        found
    }

    /// What is looked for by words, wherever in these tokens.
    fn searched(&self, tokens: TokenStream, found: &mut Vec<String>) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else { continue };
            let is_call = group.delimiter() == Delimiter::Parenthesis;
            if is_call && (is_search(&tokens[..at]) || self.is_searching(&tokens[..at])) {
                found.extend(self.words(group));
            }
            self.searched(group.stream(), found);
        }
    }

    /// Whether what stands before a group calls a closure of this source that looks for what it is given.
    fn is_searching(&self, before: &[TokenTree]) -> bool {
        let is_method = matches!(before, [.., TokenTree::Punct(sign), _] if sign.as_char() == '.');
        !is_method
            && matches!(before.last(), Some(TokenTree::Ident(name)) if self.searching.contains(&name.to_string()))
    }
}

/// Whether what stands before a group calls a search: `.contains(`, or `str::contains(`.
fn is_search(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Punct(sign), TokenTree::Ident(name)]
        if matches!(sign.as_char(), '.' | ':') && SEARCHES.contains(&name.to_string().as_str()))
}

/// All names in some tokens.
fn idents(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => found.push(name.to_string()),
            TokenTree::Group(group) => found.extend(idents(group.stream())),
            _ => {}
        }
    }
    found
}

/// Whether one of these names is searched for somewhere in some tokens.
fn is_searched(names: &[String], tokens: &[TokenTree]) -> bool {
    tokens.iter().enumerate().any(|(at, token)| {
        let TokenTree::Group(group) = token else { return false };
        let within: Vec<TokenTree> = group.stream().into_iter().collect();
        let is_given = || {
            let mut given = within.iter().filter(|token| !matches!(token, TokenTree::Punct(sign) if sign.as_char() == '&'));
            matches!((given.next(), given.next()), (Some(TokenTree::Ident(name)), None) if names.contains(&name.to_string()))
        };
        (is_search(&tokens[..at]) && is_given()) || is_searched(names, &within)
    })
}

/// The closures of a source that search for what they are given.
fn searching(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_sign = |token: &TokenTree, sign| matches!(token, TokenTree::Punct(found) if found.as_char() == sign);
    for (at, token) in tokens.iter().enumerate() {
        match &tokens[at..] {
            [TokenTree::Ident(word), TokenTree::Ident(name), equals, bar, rest @ ..]
                if word == "let" && is_sign(equals, '=') && is_sign(bar, '|') =>
            {
                let end = rest.iter().position(|token| is_sign(token, ';')).unwrap_or(rest.len());
                let mut halves = rest[..end].splitn(2, |token| is_sign(token, '|'));
                let given = idents(halves.next().unwrap_or_default().iter().cloned().collect());
                if is_searched(&given, halves.next().unwrap_or_default()) {
                    found.insert(name.to_string());
                }
            }
            _ => {}
        }
        if let TokenTree::Group(group) = token {
            searching(group.stream(), found);
        }
    }
}

/// The constants of a source.
fn constants(tokens: TokenStream, found: &mut Constants) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match &tokens[at..] {
            [TokenTree::Ident(word), TokenTree::Ident(name), rest @ ..] if word == "const" || word == "static" => {
                let value =
                    rest.iter().take_while(|token| !matches!(token, TokenTree::Punct(sign) if sign.as_char() == ';'));
                let mut strings = Vec::new();
                collect_strings(value.cloned().collect(), &mut strings);
                *found.entry(name.to_string()).or_default() |= strings.iter().any(|text| text.contains(' '));
            }
            _ => {}
        }
        if let TokenTree::Group(group) = token {
            constants(group.stream(), found);
        }
    }
}

/// Whether a line looks for words in what an error says, whatever they are.
fn searches_an_error(line: &str) -> bool {
    let says =
        ["message", "cause", "because", "why", "error.to_string()", "failure.to_string()", "link.to_string()", "hint"];
    says.iter().any(|what| {
        ["contains(", "starts_with(", "ends_with("].iter().any(|search| line.contains(&format!("{what}.{search}")))
    })
}

/// What a source looks for by words.
fn searches(text: &str, all: &Constants) -> Vec<String> {
    let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
    let (mut own, mut names) = (Constants::new(), BTreeSet::new());
    constants(tokens.clone(), &mut own);
    searching(tokens.clone(), &mut names);
    let mut found = Vec::new();
    Names { own: &own, all, searching: names }.searched(tokens, &mut found);
    let lines = code(text).filter(|(_, line)| searches_an_error(line));
    found.extend(lines.map(|(_, line)| line.trim().to_owned()));
    found
}

/// The files that only tests compile: a module of that name is declared for them.
fn of_tests(sources: &[(String, String)]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for (file, _) in sources {
        let text = fs::read_to_string(root().join(file)).expect("a source can be read");
        let file = Path::new(file);
        let folder = match file.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "main" | "mod") => file.with_file_name(""),
            _ => file.with_extension(""),
        };
        for declared in text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| rest.lines().next()) {
            let name = declared.strip_suffix(';').and_then(|declared| declared.rsplit_once("mod "));
            found.extend(name.map(|(_, name)| folder.join(format!("{name}.rs"))));
        }
    }
    found
}

#[test]
fn errors_are_recognised_by_type() {
    let mut sources: Vec<(String, String)> = ["plugins", "wasm-policies"].into_iter().flat_map(sources).collect();
    let (of_tests, mut all) = (of_tests(&sources), Constants::new());
    sources.retain(|(file, _)| file.contains("/src/") && !of_tests.contains(Path::new(file)));
    for (file, text) in &sources {
        let mut own = Constants::new();
        constants(text.parse().unwrap_or_else(|error| panic!("{file}: {error}")), &mut own);
        for (name, is_words) in own {
            *all.entry(name).or_insert(true) &= is_words;
        }
    }
    let (mut wrong, mut excepted) = (Vec::new(), BTreeSet::new());
    for (file, text) in &sources {
        let found = searches(text, &all);
        match WORDS.iter().find(|(known, _)| file == known) {
            Some((known, _)) => excepted.extend(found.first().map(|_| *known)),
            None => wrong.extend(found.into_iter().map(|words| format!("{file}: {words:?}"))),
        }
    }
    assert!(wrong.is_empty(), "what is matched on is returned as a type: {wrong:#?}");
    let exceptions: BTreeSet<&str> = WORDS.iter().map(|(known, _)| *known).collect();
    assert_eq!(excepted, exceptions, "an exception that no file needs is none");
}

#[test]
fn searches_for_words_are_found() {
    let all = Constants::from([("REFUSED".to_owned(), true), ("WORD".to_owned(), false)]);
    for wrong in [
        r#"fn f(a: &str) -> bool { a.contains("was refused") }"#,
        r#"fn f(a: &str) { a.split_once(": ") }"#,
        r#"fn f(a: &str) { a.lines().any(|line| line.starts_with("it failed")) }"#,
        r#"fn f(a: &str) { assert!(matches!(a, a if a.ends_with("x y"))) }"#,
        r#"fn f(a: &str) { a.split("; ") }"#,
        r#"fn f(a: &str) { a.strip_prefix(&format!("policy {a}")) }"#,
        r#"fn f(a: &str) { str::contains(a, "was refused") }"#,
        "fn f(a: &str) { a.contains(\n    \"was \\\n refused\"\n) }",
        r#"const WORD: &str = "a b"; fn f(a: &str) { a.contains(WORD) }"#,
        r#"fn f(a: &str) { a.contains(names::REFUSED) }"#,
        r#"fn f(a: &str) { let says = |text: &str| a.contains(text); says("was refused") }"#,
        "fn f(message: &str) {\n if message.contains(word) {}\n if !cause.starts_with(\"cannot\") {} }",
    ] {
        assert!(!searches(wrong, &all).is_empty(), "{wrong}");
    }
    for right in [
        r#"fn f(a: &str) -> bool { a.contains("refused") && names.contains(&"message") }"#,
        r#"fn f(a: &str) { a.contains(WORD); b(a, "was refused") }"#,
        r#"const REFUSED: &str = "x"; fn f(a: &str) { a.contains(REFUSED) }"#,
        r#"fn f(a: &[Value]) { a.iter().find(|one| one["a"] == "x y") }"#,
        r#"fn f(a: &str) { let says = |text: &str| format!("{a} {text}"); says("was refused") }"#,
        "/// a.contains(\"was refused\")\nfn f() {} // a.contains(\"was refused\")",
    ] {
        assert!(searches(right, &all).is_empty(), "{right}");
    }
}

/// What STYLE.md says not to write: the phrases on the left of its table of such, in lower case.
fn unwanted() -> Vec<String> {
    let text = fs::read_to_string(root().join("STYLE.md")).expect("there is a STYLE.md");
    let rows = text.split("| not | but |\n|---|---|\n").nth(1).unwrap_or_default();
    let cells = rows.lines().map_while(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Those of the phrases that stand in a text, wherever its lines end. That there is no list says nothing of what something
/// has to be.
fn against_style<'p>(text: &str, unwanted: &'p [String]) -> Vec<&'p str> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let stands = |phrase: &&String| {
        text.match_indices(phrase.as_str()).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + phrase.len()..]);
            let is_whole = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
            is_whole && !before.ends_with("there ")
        })
    };
    unwanted.iter().filter(stands).map(String::as_str).collect()
}

/// The document of what was measured: it keeps the words of the programs that measured it.
const MEASURED: &str = "docs/measurements.md";

/// The documents: those at the top, and all below folders of the workspace.
fn documents() -> Vec<(String, String)> {
    let mut found: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|name| root().join(name)).collect();
    let mut left: Vec<PathBuf> = ["docs", "krew", "plugins", "wasm-policies"].map(|name| root().join(name)).into();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
            let path = entry.path();
            match path.is_dir() {
                true if path.ends_with("target") => {}
                true => left.push(path),
                false if path.extension().is_some_and(|extension| extension == "md") => found.push(path),
                false => {}
            }
        }
    }
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.strip_prefix(root()).unwrap_or(path).display().to_string(), text)
    };
    let mut read: Vec<(String, String)> = found.iter().map(read).filter(|(file, _)| file != MEASURED).collect();
    read.sort();
    read
}

#[test]
fn texts_are_in_the_words_of_the_style() {
    let unwanted = unwanted();
    assert!(unwanted.len() >= 10, "{unwanted:?}");
    let found = against_style("It is no\n  Object, and there is no list; it is no objection.", &unwanted);
    assert_eq!(found, ["is no object"]);
    let mut sources: Vec<(String, String)> = ["plugins", "wasm-policies"].into_iter().flat_map(sources).collect();
    let of_tests = of_tests(&sources);
    sources.retain(|(file, _)| file.contains("/src/") && !of_tests.contains(Path::new(file)));
    let mut wrong: Vec<String> = Vec::new();
    for (file, text) in &sources {
        for string in strings(file, text) {
            let found = against_style(&string, &unwanted).into_iter();
            wrong.extend(found.map(|phrase| format!("{file}: {phrase:?} in {string:?}")));
        }
    }
    let documents = documents();
    assert!(documents.len() > 50, "{} documents", documents.len());
    for (file, text) in documents {
        let found = against_style(&text, &unwanted).into_iter();
        wrong.extend(found.map(|phrase| format!("{file}: {phrase:?}")));
    }
    assert!(wrong.is_empty(), "STYLE.md has other words for it: {wrong:#?}");
}

/// A file that ends a policy which it is part of, inside of the engine, and no process of ours.
const ENDS_A_POLICY: &str = "wasm-policies/sdk/src/guest.rs";

#[test]
fn only_binaries_end_the_process() {
    let wrong: Vec<String> = FLAGLESS
        .iter()
        .chain(&["plugins/lib/cli"])
        .flat_map(|library| sources(library))
        .filter(|(file, _)| file != ENDS_A_POLICY)
        .flat_map(|(file, text)| {
            let lines =
                code(&text).filter(|(_, line)| line.contains("process::exit") || line.contains("process::abort"));
            lines.map(|(number, _)| format!("{file}:{number}")).collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The codes that a text lists as `Exit codes: 0 ok, 1 failed, …`, up to the end of the paragraph, and what each means.
fn listed(text: &str) -> Vec<(u8, String)> {
    let paragraph = text.split("\n\n").next().unwrap_or_default().split("```").next().unwrap_or_default();
    let mut found: Vec<(u8, Vec<&str>)> = Vec::new();
    let mut begins = true;
    for word in paragraph.split_whitespace() {
        match word.parse::<u8>() {
            Ok(code) if begins => found.push((code, Vec::new())),
            _ => found.last_mut().into_iter().for_each(|(_, meaning)| meaning.push(word)),
        }
        begins = word.ends_with([',', ':']);
    }
    found.into_iter().map(|(code, meaning)| (code, meaning.join(" "))).collect()
}

fn codes(listed: &[(u8, String)]) -> Vec<u8> {
    listed.iter().map(|(code, _)| *code).collect()
}

/// What stands for 1 because others refuse it, no rule of ours.
const REFUSED_BY_OTHERS: [&str; 1] = ["the registry failed or refused it,"];

/// Those of the codes that mean a refusal by a rule of ours, which is 3, and are another one.
fn refusals(listed: &[(u8, String)]) -> Vec<u8> {
    let is_refused = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()) == "refused";
    let wrong = listed.iter().filter(|(code, meaning)| {
        *code != Exit::Findings.code()
            && !REFUSED_BY_OTHERS.contains(&meaning.as_str())
            && meaning.split_whitespace().any(is_refused)
    });
    wrong.map(|(code, _)| *code).collect()
}

#[test]
fn help_texts_and_the_page_agree_about_exit_codes() {
    assert_eq!(codes(&listed(" 0 ok, 1 of 2, 130 gone.\n\n7 x")), [0, 1, 130]);
    assert_eq!(refusals(&listed(" 0 ok, 1 failed or refused: x, 2 unrefused, 3 refused, 124 (refused).")), [1, 124]);
    let page = fs::read_to_string(root().join("docs/reference/exit-codes.md")).expect("there is a page");
    let all: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
    for name in binaries() {
        let Some(verb) = name.strip_prefix("kubectl-ocm-") else { continue };
        let row = page.lines().find_map(|line| line.strip_prefix(&format!("| `{verb}` | ")));
        let row = row.unwrap_or_else(|| panic!("docs/reference/exit-codes.md has no row for {verb}"));
        let promised: Vec<u8> = row.trim_end_matches(" |").split(", ").filter_map(|code| code.parse().ok()).collect();
        assert!(promised.iter().all(|code| all.contains(code)), "{verb}: {promised:?}");
        let help = fs::read_to_string(root().join(format!("docs/commands/{verb}.md"))).expect("every verb has a page");
        let texts: Vec<Vec<(u8, String)>> = help.split("Exit codes:").skip(1).map(listed).collect();
        let first = texts.first().map(|text| codes(text));
        assert_eq!(first.as_ref(), Some(&promised), "the help of {verb} and docs/reference/exit-codes.md");
        for text in texts {
            assert!(codes(&text).iter().all(|code| promised.contains(code)), "a help of {verb} lists {text:?}");
            assert!(refusals(&text).is_empty(), "a refusal by a rule of ours is 3, in a help of {verb}: {text:?}");
        }
    }
}

/// Whether documentation has an example that rustdoc compiles: a block that is in no other language, or an indented one.
fn has_example(text: &str) -> bool {
    const OTHERS: [&str; 2] = ["text", "yaml"];
    let mut is_within = false;
    for line in text.lines().map(str::trim_start) {
        let Some(words) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_within = false;
            continue;
        };
        match words.trim_start().strip_prefix("```") {
            Some(language) if !is_within && !OTHERS.contains(&language.trim_end()) => return true,
            Some(_) => is_within = !is_within,
            // Four, and the one that every line has.
            None if !is_within && words.starts_with("     ") && !words.trim().is_empty() => return true,
            None => {}
        }
    }
    false
}

#[test]
fn examples_are_run_and_nobody_looks_for_them_where_there_are_none() {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().expect("Cargo tells of its packages");
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(folder) = package.manifest_path.as_std_path().parent().map(|folder| folder.join("src")) else {
            continue;
        };
        if !folder.join("lib.rs").is_file() {
            continue;
        }
        let is_asked = package.targets.iter().any(|target| target.doctest);
        let has_some = sources(&folder.display().to_string()).iter().any(|(_, text)| has_example(text));
        match (is_asked, has_some) {
            (true, false) => wrong.push(format!("{}: has no example; let its [lib] say doctest = false", package.name)),
            (false, true) => wrong.push(format!("{}: has an example, which doctest = false hides", package.name)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_that_rustdoc_compiles_are_told_from_other_blocks() {
    for text in [
        "/// ```\n/// f();\n/// ```",
        "//! ```text\n//! x\n//! ```\n//!\n//! ```no_run\n//! f();\n//! ```",
        "    /// Words.\n    ///\n    ///     f();",
    ] {
        assert!(has_example(text), "{text}");
    }
    for text in ["/// ```text\n///     f();\n/// ```\n/// Words.", "// ```\nf();", "/// Words `f`.\n///\n/// 1. more"] {
        assert!(!has_example(text), "{text}");
    }
}

/// Whether a source has tests of its own.
fn has_tests(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::trim_start).any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// Whether there is a source with tests of its own in a folder or in one below it, but for one file of the folder.
fn has_tests_in(folder: &Path, but_for: &str) -> bool {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.flatten().map(|entry| entry.path()).any(|path| match path.is_dir() {
        true => has_tests_in(&path, ""),
        false => {
            let is_meant = path.file_name().is_some_and(|name| name != but_for);
            is_meant && path.extension().is_some_and(|end| end == "rs") && has_tests(&path)
        }
    })
}

#[test]
fn targets_with_tests_are_tested_and_no_others_are_linked_for_that() {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().expect("Cargo tells of its packages");
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let has_library = package.targets.iter().any(|target| target.src_path.ends_with("src/lib.rs"));
        for target in &package.targets {
            let path = target.src_path.as_std_path();
            let Some(folder) = path.parent().filter(|folder| folder.ends_with("src")) else { continue };
            let has_some = match path.ends_with("main.rs") {
                true if has_library => has_tests(path),
                true => has_tests_in(folder, ""),
                false => has_tests_in(folder, "main.rs"),
            };
            match (target.test, has_some) {
                (true, false) => wrong.push(format!("{} has no test; let its target say test = false", target.name)),
                (false, true) => wrong.push(format!("{} has tests, which test = false hides", target.name)),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
