//! Files of objects that are brought to clusters: documents of files, of directories, and of stdin.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use ocm_core::Failure;
use ocm_core::order;
use ocm_core::work::{Content, Document};

use crate::files::documents;

/// Endings of files in directories that are read.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Which files hold the objects.
#[derive(Args, Clone, Debug)]
pub struct ObjectFilesArgs {
    /// File of objects, YAML or JSON; a directory of such files; - for stdin (repeatable)
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Read directories within directories, too
    #[arg(short = 'R', long)]
    pub recursive: bool,
}

/// Reads the objects of a work: all of them, in the order given; those of a directory by name.
///
/// # Errors
/// A usage failure that says which file or document cannot be in a work.
pub fn read(paths: &[PathBuf], recursive: bool) -> Result<Content, Failure> {
    Content::read(documents_of(paths, recursive)?)
}

/// All documents, each with its place.
///
/// # Errors
/// A usage failure that says which file cannot be read.
pub fn documents_of(paths: &[PathBuf], recursive: bool) -> Result<Vec<Document>, Failure> {
    if paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Failure::usage("--filename - is there twice, and stdin can be read once"));
    }
    let mut all = Vec::new();
    for path in paths {
        let files = if path.is_dir() { files_of(path, recursive)? } else { vec![path.clone()] };
        for file in files {
            for (index, value) in documents(&file, "the file")?.into_iter().enumerate() {
                let file = if file.as_os_str() == "-" { "stdin".to_owned() } else { file.display().to_string() };
                all.push(Document { source: format!("{file}, object {}", index + 1), value });
            }
        }
    }
    Ok(all)
}

/// Files of a directory that hold objects.
fn files_of(directory: &Path, recursive: bool) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    walk(directory, recursive, &mut found)
        .map_err(|error| Failure::usage(format!("cannot read the directory {}", directory.display())).because(error))?;
    if found.is_empty() {
        let place = directory.display();
        let failure =
            Failure::usage(format!("the directory {place} holds no file that ends with .yaml, .yml or .json"));
        return Err(if recursive { failure } else { failure.hint("those of directories in it: --recursive") });
    }
    Ok(found)
}

/// By name. Links to directories are not followed: they may lead in a circle.
fn walk(directory: &Path, recursive: bool, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    order::sort_by_key(&mut entries, fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let has_ending = ENDINGS.iter().any(|ending| path.extension().is_some_and(|own| own == *ending));
        if entry.file_type()?.is_dir() {
            if recursive {
                walk(&path, recursive, found)?;
            }
        } else if has_ending && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(name: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: n}}\n")
    }

    fn names(paths: &[&Path], recursive: bool) -> Result<Vec<String>, Failure> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
        let content = read(&paths, recursive)?;
        let name = |object: &serde_json::Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(content.manifests().iter().map(name).collect())
    }

    #[test]
    fn directories_are_read_by_name_and_those_within_them_only_if_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(folder.path().join("b.yaml"), format!("{}---\n{}---\n", map("b1"), map("b2"))).unwrap();
        let list =
            r#"{"kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]}"#;
        fs::write(folder.path().join("a.json"), list).unwrap();
        fs::write(folder.path().join("README.md"), "no objects").unwrap();
        fs::write(inner.join("c.yml"), map("c")).unwrap();
        std::os::unix::fs::symlink(folder.path(), inner.join("loop")).unwrap();
        assert_eq!(names(&[folder.path()], false).unwrap(), ["a", "b1", "b2"]);
        assert_eq!(names(&[folder.path()], true).unwrap(), ["a", "b1", "b2", "c"]);
        assert_eq!(names(&[&inner, &folder.path().join("a.json")], false).unwrap(), ["c", "a"]);
    }

    #[test]
    fn what_holds_no_objects_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        let failure = names(&[folder.path()], false).unwrap_err();
        assert!(failure.message.contains("holds no file that ends with"), "{failure}");
        let bad = folder.path().join("bad.yaml");
        fs::write(&bad, format!("{}---\nkind: ConfigMap\n", map("a"))).unwrap();
        let failure = names(&[&bad], false).unwrap_err();
        assert!(failure.message.contains("bad.yaml, object 2"), "{failure}");
        assert!(names(&[Path::new("-"), Path::new("-")], false).unwrap_err().message.contains("twice"));
        assert!(
            names(&[&folder.path().join("none.yaml")], false).unwrap_err().message.contains("cannot read the file")
        );
    }
}
