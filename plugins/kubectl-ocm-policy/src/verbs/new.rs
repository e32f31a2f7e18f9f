//! The project of a new policy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ocm_cli::Ui;
use ocm_core::{Exit, Failure};
use ocm_policy_rules::syntax::is_dns_label;

use crate::args::NewArgs;
use crate::files::word;
use crate::templates::{NAME, Template};

pub(crate) fn run(args: NewArgs, ui: &Ui) -> Result<Exit, Failure> {
    let NewArgs { name, lang, dir } = args;
    // Packages of Rust and Go cannot begin with a digit.
    if !is_dns_label(&name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(Failure::usage(format!("{name:?} cannot be the name of a policy")).hint(
            "a name is of lower-case letters, digits and hyphens, begins with a letter and has at most 63 of them",
        ));
    }
    // Cargo would look for the one and find both.
    if lang.brings(&name) {
        return Err(Failure::usage(format!("a policy in {} cannot be called {name}", lang.word()))
            .because("its project holds a package of this name already")
            .hint("name it otherwise"));
    }
    let folder = dir.unwrap_or_else(|| PathBuf::from(&name));
    must_be_free(&folder)?;
    for (path, content) in lang.template() {
        write(&folder, &name, (*path, *content))
            .map_err(|error| Failure::other(format!("cannot write {}", folder.join(path).display())).because(error))?;
    }
    ui.line(&folder.display().to_string());
    let shown = word(&folder);
    ui.say_line("Next:");
    ui.say_line(&format!("  kubectl ocm policy build {shown}"));
    ui.say_line(&format!("  kubectl ocm policy test {shown}"));
    Ok(Exit::Ok)
}

/// A folder that is not there, or is empty.
fn must_be_free(folder: &Path) -> Result<(), Failure> {
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Failure::usage(format!("the directory {} is not empty", folder.display()))
                .hint("name another one with --dir FOLDER")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::usage(format!("{} cannot be the directory of a project", folder.display()))
            .because(error)
            .hint("name another one with --dir FOLDER")),
    }
}

fn write(folder: &Path, name: &str, (path, content): Template) -> io::Result<()> {
    let file = folder.join(path);
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    match std::str::from_utf8(content) {
        Ok(text) => fs::write(file, text.replace(NAME, name)),
        Err(_) => fs::write(file, content),
    }
}
