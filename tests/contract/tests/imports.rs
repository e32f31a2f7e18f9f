//! Files of a crate do not import each other in a circle, and `lib.rs` and `mod.rs` define nothing.
//!
//! An import is a path to what another file defines, in a `use` or where it is used. What a file merely re-exports counts
//! for those that import it through that file, and not for the file itself: an index depends on nothing. Code that only
//! tests compile is left out. Names are resolved as the language does, but for methods and for what macros write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cargo_metadata::MetadataCommand;
use cli_tests::root;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// The segments of a path; of a module, those behind `crate`.
type Segments = Vec<String>;

/// How many re-exports a path may lead through.
const HOPS: u32 = 12;

/// Folders whose crates define something in their `lib.rs`, and why.
const ONE_FILE: &[(&str, &str)] = &[
    ("plugins/lib/derive", "the compiler finds what is derived in the root alone"),
    ("wasm-policies/policies", "a policy is one function, with the types that it takes"),
];

/// What a module is made of, as far as paths go.
#[derive(Default)]
struct Module {
    file: String,
    defined: BTreeSet<String>,
    /// What it implements, and the macros that write items into it.
    unnamed: BTreeSet<String>,
    /// Names that `use` brings in, and what they stand for.
    used: BTreeMap<String, Segments>,
    /// Modules of which `use` brings in everything.
    globs: Vec<Segments>,
    /// What it needs: every path in it, but for re-exports.
    needed: Vec<Segments>,
}

/// The modules of a crate.
#[derive(Default)]
struct Modules(BTreeMap<Segments, Module>);

impl Modules {
    /// Reads sources: the module of each, its name, and its text.
    fn read<'s>(sources: impl IntoIterator<Item = (Segments, String, &'s str)>) -> Self {
        let mut modules = Self::default();
        for (module, file, text) in sources {
            let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
            modules.0.entry(module.clone()).or_default().file = file;
            Reader { modules: &mut modules, at: module }.visit_file(&parsed);
        }
        modules
    }

    /// The file that defines what a path in a module stands for; none: it is not of this crate.
    fn file(&self, at: &Segments, path: &[String], hops: u32) -> Option<&str> {
        let (mut base, mut rest) = (at.clone(), path);
        let first = rest.first().filter(|_| hops < HOPS)?;
        match first.as_str() {
            "crate" => (base, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            _ => {
                let module = self.0.get(at)?;
                if !module.defined.contains(first) && !self.0.contains_key(&child(at, first)) {
                    let stands_for = module.used.get(first)?;
                    // A crate that is imported under its own name.
                    return match stands_for.as_slice() {
                        [own] if own == first => None,
                        _ => self.file(at, &[stands_for, &rest[1..]].concat(), hops + 1),
                    };
                }
            }
        }
        self.descend(base, rest, hops)
    }

    fn descend(&self, mut at: Segments, mut rest: &[String], hops: u32) -> Option<&str> {
        loop {
            let module = self.0.get(&at)?;
            let Some(name) = rest.first().filter(|name| !module.defined.contains(*name)) else {
                return Some(&module.file);
            };
            if self.0.contains_key(&child(&at, name)) {
                at.push(name.clone());
                rest = &rest[1..];
                continue;
            }
            if let Some(stands_for) = module.used.get(name) {
                return self.file(&at, &[stands_for, &rest[1..]].concat(), hops + 1);
            }
            let of_globs = module.globs.iter().filter_map(|glob| self.module(&at, glob)).find(|other| {
                let has = |module: &Module| module.defined.contains(name) || module.used.contains_key(name);
                self.0.get(other).is_some_and(has) || self.0.contains_key(&child(other, name))
            });
            return match of_globs.filter(|_| hops < HOPS) {
                Some(other) => self.descend(other, rest, hops + 1),
                None => Some(&module.file),
            };
        }
    }

    /// The module that a path in another one names.
    fn module(&self, at: &Segments, path: &[String]) -> Option<Segments> {
        let (mut base, mut rest) = (at.clone(), path);
        while let Some(first) = rest.first() {
            match first.as_str() {
                "crate" => base.clear(),
                "self" => {}
                "super" => drop(base.pop()?),
                name => base.push(name.to_owned()),
            }
            rest = &rest[1..];
        }
        self.0.contains_key(&base).then_some(base)
    }

    /// What indexes define, by their files.
    fn defined_by_indexes(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut defined: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for module in self.0.values().filter(|module| is_index(&module.file)) {
            let names = module.defined.iter().chain(&module.unnamed).map(String::as_str);
            defined.entry(&module.file).or_default().extend(names);
        }
        defined.retain(|_, names| !names.is_empty());
        defined
    }

    /// The files that import each other in circles, and what each of them imports of the others.
    fn circles(&self) -> Vec<BTreeMap<&str, BTreeSet<&str>>> {
        let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, module) in &self.0 {
            let needed = module.needed.iter().filter_map(|path| self.file(name, path, 0));
            imports.entry(&module.file).or_default().extend(needed.filter(|file| *file != module.file));
        }
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            imports.keys().map(|file| (*file, reached(&imports, file))).collect();
        let (mut circles, mut told) = (Vec::new(), BTreeSet::new());
        for (file, from_here) in reached.iter().filter(|(file, reached)| reached.contains(*file)) {
            if told.contains(file) {
                continue;
            }
            let all: BTreeSet<&str> =
                from_here.iter().filter(|other| reached[*other].contains(file)).copied().collect();
            told.extend(all.iter().copied());
            circles.push(all.iter().map(|file| (*file, imports[file].intersection(&all).copied().collect())).collect());
        }
        circles
    }
}

/// The files that one imports, and those that they import, and so on.
fn reached<'m>(imports: &BTreeMap<&'m str, BTreeSet<&'m str>>, from: &'m str) -> BTreeSet<&'m str> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(file) = left.pop() {
        left.extend(imports.get(file).into_iter().flatten().filter(|next| seen.insert(**next)));
    }
    seen
}

fn is_index(file: &str) -> bool {
    Path::new(file).file_name().is_some_and(|name| name == "lib.rs" || name == "mod.rs")
}

fn child(module: &Segments, name: &str) -> Segments {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// Takes down what stands in a file.
struct Reader<'m> {
    modules: &'m mut Modules,
    at: Segments,
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        self.modules.0.entry(self.at.clone()).or_default()
    }

    /// What a `use` brings in.
    fn bring_in(&mut self, tree: &UseTree, before: &Segments, is_reexport: bool) {
        let (path, name) = match tree {
            UseTree::Path(path) => {
                return self.bring_in(&path.tree, &child(before, &path.ident.to_string()), is_reexport);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.bring_in(tree, before, is_reexport));
            }
            UseTree::Glob(_) => {
                self.module().globs.push(before.clone());
                (before.clone(), None)
            }
            UseTree::Name(name) if name.ident == "self" => (before.clone(), before.last().cloned()),
            UseTree::Name(name) => (child(before, &name.ident.to_string()), Some(name.ident.to_string())),
            UseTree::Rename(name) if name.ident == "self" => (before.clone(), Some(name.rename.to_string())),
            UseTree::Rename(name) => (child(before, &name.ident.to_string()), Some(name.rename.to_string())),
        };
        let module = self.module();
        if let Some(name) = name {
            module.used.insert(name, path.clone());
        }
        if !is_reexport {
            module.needed.push(path);
        }
    }

    /// The paths in what a macro is given.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.need(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.need(&mut path);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.need(&mut path);
                    colons = 0;
                }
            }
        }
        self.need(&mut path);
    }

    fn need(&mut self, path: &mut Segments) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.module().needed.push(path);
        }
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if attributes(item).iter().any(is_for_tests) {
            return;
        }
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name {
            self.module().defined.insert(name.to_string());
        }
        let unnamed = match item {
            Item::Impl(item) => Some(implementation(item)),
            Item::Macro(item) if item.ident.is_none() => {
                item.mac.path.segments.last().map(|last| format!("{}!", last.ident))
            }
            _ => None,
        };
        self.module().unnamed.extend(unnamed);
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        let Some((_, items)) = &item.content else { return };
        let file = self.module().file.clone();
        self.at.push(item.ident.to_string());
        self.module().file = file;
        items.iter().for_each(|item| self.visit_item(item));
        self.at.pop();
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.bring_in(&item.tree, &Vec::new(), !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            self.module().needed.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// `pub(crate)` needs nothing of the crate's root.
    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone());
    }
}

/// An implementation, by the type that it is of.
fn implementation(item: &syn::ItemImpl) -> String {
    match &*item.self_ty {
        syn::Type::Path(of) => of.path.segments.last().map(|last| format!("impl {}", last.ident)),
        _ => None,
    }
    .unwrap_or_else(|| "impl".to_owned())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let path = attribute.path();
    path.is_ident("test")
        || (path.is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")))
}

/// The sources of a crate with the modules that they are.
fn sources(folder: &Path) -> Vec<(Segments, String, String)> {
    let (mut left, mut found) = (vec![folder.to_path_buf()], Vec::new());
    let is_library = folder.join("lib.rs").is_file();
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())).flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let relative = path.strip_prefix(folder).expect("it lies there");
            // Beside a library it is a crate of its own.
            if path.extension().is_none_or(|extension| extension != "rs")
                || (is_library && relative == Path::new("main.rs"))
            {
                continue;
            }
            let file = relative.display().to_string();
            let mut module: Segments =
                relative.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|last| last == "mod") || ["lib.rs", "main.rs"].contains(&file.as_str()) {
                module.pop();
            }
            found.push((module, file, fs::read_to_string(&path).expect("a source can be read")));
        }
    }
    found
}

/// The modules of every crate, with the folder of its sources below that of the workspace.
fn crates() -> Vec<(String, Modules)> {
    let mut command = MetadataCommand::new();
    let metadata = command.manifest_path(root().join("Cargo.toml")).no_deps().exec().expect("Cargo knows its packages");
    let mut crates = Vec::new();
    for package in metadata.workspace_packages() {
        let folder = package.manifest_path.with_file_name("src");
        if !folder.is_dir() {
            continue;
        }
        let sources = sources(folder.as_std_path());
        let modules = Modules::read(sources.iter().map(|(module, file, text)| (module.clone(), file.clone(), &**text)));
        let below = folder.strip_prefix(&metadata.workspace_root).expect("it is of the workspace");
        crates.push((below.to_string(), modules));
    }
    crates
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut wrong = Vec::new();
    for (folder, modules) in crates() {
        wrong.extend(modules.circles().into_iter().map(|circle| format!("{folder}: {circle:#?}")));
    }
    assert!(wrong.is_empty(), "what both need belongs below both: {}", wrong.join("\n"));
}

#[test]
fn circles_are_found_through_indexes_and_nowhere_else() {
    let circles = |files: &[(&str, &str)]| {
        let module = |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let modules = Modules::read(files.iter().map(|(name, text)| (module(name), (*name).to_owned(), *text)));
        modules.circles().iter().map(|circle| circle.keys().map(|file| (*file).to_owned()).collect()).collect()
    };
    let of = |files: &[(&str, &str)]| -> Vec<Vec<String>> { circles(files) };
    let index = ("", "mod a; mod b; pub use a::A; pub use b::*;");
    let a = ("a", "use crate::B; pub struct A(B);");
    assert_eq!(of(&[index, a, ("b", "pub struct B; fn f() -> Vec<super::A> { todo!() }")]), [["a", "b"]]);
    assert_eq!(of(&[index, a, ("b", "pub struct B; fn f() { println!(\"{}\", super::A::N) }")]), [["a", "b"]]);
    assert_eq!(of(&[("", "mod a; const N: u8 = a::f();"), ("a", "use super::N;")]), [["", "a"]]);
    let good = of(&[index, a, ("b", "pub struct B; #[cfg(test)] mod tests { use crate::A; } pub(crate) fn f() {}")]);
    assert!(good.is_empty(), "{good:?}");
}

#[test]
fn indexes_define_nothing() {
    let (mut wrong, mut excepted) = (Vec::new(), BTreeSet::new());
    let exceptions: BTreeSet<&str> = ONE_FILE.iter().map(|(above, _)| *above).collect();
    for (folder, modules) in crates() {
        let mut defined = modules.defined_by_indexes();
        let exception = ONE_FILE.iter().find(|(above, _)| Path::new(&folder).starts_with(above));
        if let Some((above, _)) = exception
            && defined.remove("lib.rs").is_some()
        {
            excepted.insert(*above);
        }
        wrong.extend(defined.into_iter().map(|(file, names)| format!("{folder}/{file}: {names:?}")));
    }
    assert!(wrong.is_empty(), "it belongs into files that are named for what they hold: {}", wrong.join("\n"));
    assert_eq!(excepted, exceptions, "an exception that no crate needs is none");
}

#[test]
fn what_an_index_defines_is_found() {
    let defined = |file: &str, text: &str| -> Vec<String> {
        let modules = Modules::read([(Vec::new(), file.to_owned(), text)]);
        modules.defined_by_indexes().into_values().flatten().map(str::to_owned).collect()
    };
    let index = "#![allow(dead_code)] #[macro_use] mod a; pub mod b { pub use super::a::A; } pub use a::*; \
                 #[cfg(test)] mod tests { use super::*; fn f() {} }";
    assert_eq!(defined("a/mod.rs", index), [""; 0]);
    for (text, name) in [
        ("pub fn f() {}", "f"),
        ("struct S;", "S"),
        ("enum E {}", "E"),
        ("trait T {}", "T"),
        ("const N: u8 = 1;", "N"),
        ("static N: u8 = 1;", "N"),
        ("pub type T = u8;", "T"),
        ("macro_rules! m { () => {} }", "m"),
        ("impl<T> super::S<T> {}", "impl S"),
        ("impl T for [u8] {}", "impl"),
        ("written! { A }", "written!"),
        ("pub mod b { pub const N: u8 = 1; }", "N"),
    ] {
        assert_eq!(defined("lib.rs", text), [name]);
        assert_eq!(defined("a/mod.rs", text), [name]);
        assert_eq!(defined("a.rs", text), [""; 0]);
    }
}
