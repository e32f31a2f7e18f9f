//! The archive of the binaries of this platform, and the manifest by which krew finds it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

const TEMPLATE: &str = include_str!("../../../krew/ocm.yaml");
/// What kubectl's completion asks about the words behind `kubectl ocm`.
pub(crate) const COMPLETER: &str = "kubectl_complete-ocm";
/// The operating systems and architectures that krew knows, by their names in Rust and in krew.
const SYSTEMS: [(&str, &str); 3] = [("linux", "linux"), ("macos", "darwin"), ("windows", "windows")];
const ARCHITECTURES: [(&str, &str); 4] =
    [("x86_64", "amd64"), ("aarch64", "arm64"), ("arm", "arm"), ("powerpc64", "ppc64le")];

/// The version as krew has it.
fn version() -> String {
    format!("v{}", env!("CARGO_PKG_VERSION"))
}

/// The name of the archive of a platform.
fn archive_name(system: &str, architecture: &str) -> String {
    format!("kubectl-ocm-{}-{system}-{architecture}.tar.gz", version())
}

/// Packs the binaries of a folder into the archive of this platform, with a file of its digest beside it.
///
/// # Errors
/// When krew does not know this platform, or a file cannot be read or written.
pub(crate) fn archive(binaries: &Path, folder: &Path, level: Compression) -> Result<PathBuf, String> {
    let known =
        |table: &[(&str, &'static str)], name: &str| table.iter().find(|(own, _)| *own == name).map(|row| row.1);
    let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let (system, architecture) = known(&SYSTEMS, system)
        .zip(known(&ARCHITECTURES, architecture))
        .ok_or_else(|| format!("krew does not know the platform {system} on {architecture}"))?;
    let licence = cli_tests::root().join("LICENSE");
    let mut files = vec![("LICENSE".to_owned(), licence, 0o644)];
    let file_name = |name: &str| format!("{name}{}", std::env::consts::EXE_SUFFIX);
    for name in cli_tests::binaries() {
        let name = file_name(&cli_tests::file_name(&name));
        files.push((name.clone(), binaries.join(&name), 0o755));
    }
    // The dispatcher once more: by this name it answers what kubectl's completion asks. krew takes no links.
    files.push((file_name(COMPLETER), binaries.join(file_name("kubectl-ocm")), 0o755));
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join(archive_name(system, architecture));
    let failed = |error: std::io::Error| format!("packing {}: {error}", file.display());
    let out = File::create(&file).map_err(failed)?;
    pack(files, out, level).map_err(failed)?;
    let (name, sum) = (archive_name(system, architecture), digest(&file)?);
    fs::write(folder.join(format!("{name}.sha256")), format!("{sum}  {name}\n")).map_err(failed)?;
    Ok(file)
}

/// Writes an archive that depends on nothing but names, modes and contents: sorted, of nobody and of no time.
fn pack(mut files: Vec<(String, PathBuf, u32)>, out: impl Write, level: Compression) -> std::io::Result<()> {
    files.sort();
    let mut archive = Builder::new(GzBuilder::new().mtime(0).write(out, level));
    for (name, file, mode) in files {
        let mut file = File::open(file)?;
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(file.metadata()?.len());
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        archive.append_data(&mut header, name, &mut file)?;
    }
    archive.into_inner()?.finish()?.flush()
}

/// The digest of a file, in hexadecimal digits as krew wants it.
pub(crate) fn digest(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let sum = ring::digest::digest(&ring::digest::SHA256, &bytes);
    Ok(sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The names of the archives of this version in a folder: what [`manifest`] has people download. Some may have been packed
/// before, on other machines or from other sources.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn archives(folder: &Path) -> Result<Vec<String>, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        names.extend(entry.map_err(cannot)?.file_name().into_string());
    }
    names.retain(|name| name.starts_with(&format!("kubectl-ocm-{}-", version())) && name.ends_with(".tar.gz"));
    names.sort();
    Ok(names)
}

/// The manifest for krew, with a platform for each archive of this version in the folder.
///
/// # Errors
/// When there is no archive, or one cannot be read.
pub(crate) fn manifest(folder: &Path, repository: &str) -> Result<String, String> {
    let repository = repository.trim_end_matches('/');
    let version = version();
    // The first line is about the template.
    let template = TEMPLATE.split_once('\n').map_or(TEMPLATE, |(_, rest)| rest);
    let mut text = template.replace("{version}", &version).replace("{repository}", repository);
    let mut platforms = 0;
    for (_, system) in SYSTEMS {
        for (_, architecture) in ARCHITECTURES {
            let name = archive_name(system, architecture);
            let file = folder.join(&name);
            if !file.is_file() {
                continue;
            }
            platforms += 1;
            let suffix = if system == "windows" { ".exe" } else { "" };
            text += &format!(
                "  - selector:\n      matchLabels:\n        os: {system}\n        arch: {architecture}\n    \
                 uri: {repository}/releases/download/{version}/{name}\n    sha256: {}\n    bin: kubectl-ocm{suffix}\n",
                digest(&file)?
            );
        }
    }
    if platforms == 0 {
        return Err(format!("there is no archive of {version} in {}; pack one first", folder.display()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn the_same_contents_give_the_same_archive() {
        let packed = |order: &[&str], time: u64| {
            let folder = tempfile::tempdir().expect("a directory");
            let files = order.iter().map(|name| {
                let file = folder.path().join(name);
                fs::write(&file, format!("this is {name}")).expect("a file");
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time);
                File::options().write(true).open(&file).and_then(|f| f.set_modified(time)).expect("a time");
                ((*name).to_owned(), file, 0o755)
            });
            let mut out = Vec::new();
            pack(files.collect(), &mut out, Compression::best()).expect("it is packed");
            out
        };
        let first = packed(&["b", "a"], 1_000_000_000);
        assert_eq!(first, packed(&["a", "b"], 1_700_000_000));
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(first.as_slice()));
        let entries: Vec<_> = archive
            .entries()
            .expect("an archive")
            .map(|entry| entry.expect("an entry"))
            .map(|entry| (entry.path().expect("a path").display().to_string(), entry.header().mode().expect("a mode")))
            .collect();
        assert_eq!(entries, [("a".to_owned(), 0o755), ("b".to_owned(), 0o755)]);
    }

    #[test]
    fn a_manifest_names_each_archive_that_is_there() {
        let folder = tempfile::tempdir().expect("a directory");
        assert!(manifest(folder.path(), "https://example.com/x").is_err_and(|why| why.contains("there is no archive")));
        for (system, architecture) in [("linux", "amd64"), ("windows", "arm64")] {
            fs::write(folder.path().join(archive_name(system, architecture)), "x").expect("a file");
        }
        let text = manifest(folder.path(), "https://example.com/x/").expect("a manifest");
        let names = [archive_name("linux", "amd64"), archive_name("windows", "arm64")];
        assert_eq!(archives(folder.path()).expect("a directory"), names);
        let name = archive_name("linux", "amd64");
        assert!(text.contains(&format!("uri: https://example.com/x/releases/download/{}/{name}", version())), "{text}");
        assert!(text.contains("bin: kubectl-ocm.exe\n"), "{text}");
        assert_eq!(text.matches("sha256: 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881").count(), 2);
        assert!(!text.contains('{'), "{text}");
    }
}
