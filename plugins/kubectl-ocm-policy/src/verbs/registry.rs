//! Registries as the commands of this machine reach them: with the credentials of `docker login`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ocm_core::Failure;
use ocm_policy_distribution::{
    Credentials, DockerConfig, Entry, Error, ErrorKind, PublicKey, Reference, Registry, Trust,
};
use serde::Deserialize;

use crate::args::registry::RegistryArgs;
use crate::files;
use crate::processes::Processes;

/// How long one answer may take: whoever waits sees it, and a slow line is no error.
pub(crate) const ANSWER: Duration = Duration::from_secs(300);

/// Reads a reference of the command line.
pub(crate) fn reference(text: &str) -> Result<Reference, Failure> {
    Reference::parse(text).map_err(|error| Failure::usage(error.to_string()))
}

/// Reads the file of a public key.
pub(crate) fn public_key(file: &Path) -> Result<PublicKey, Failure> {
    let text = files::text(file, "the key")?;
    PublicKey::parse(&text)
        .map_err(|why| Failure::usage(format!("the key {} cannot be used", file.display())).because(why))
}

/// The repository of an image. It blocks: a program may be asked for credentials.
pub(crate) fn open(image: Reference, args: &RegistryArgs, processes: &Processes) -> Result<Registry, Failure> {
    let RegistryArgs { ca_file } = args;
    let trust = match ca_file {
        Some(file) => Trust::pem(&files::text(file, "the CA certificates")?).map_err(worded)?,
        None => Trust::default(),
    };
    let credentials = credentials(&image, processes)?;
    Ok(Registry::new(image, trust, credentials, ANSWER))
}

/// What docker knows of a registry; none: nothing.
pub(crate) fn credentials(image: &Reference, processes: &Processes) -> Result<Option<Credentials>, Failure> {
    let Some(file) = config_file().filter(|file| file.is_file()) else { return Ok(None) };
    let text = files::read(&file, "docker's configuration")?;
    let config = DockerConfig::parse(&text)
        .ok_or_else(|| Failure::usage(format!("{} is no configuration of docker", file.display())))?;
    match config.entry(image) {
        Entry::None => Ok(None),
        Entry::IdentityToken => {
            let why = "it is an identity token, and user name and password are needed";
            Err(Failure::other(format!("what {} holds for {} cannot be used", file.display(), image.registry))
                .because(why)
                .hint(format!("docker login {} --username USER writes them", image.registry)))
        }
        Entry::Credentials(credentials) => Ok(Some(credentials)),
        Entry::Helper { name, key } => helper(&name, &key, processes),
    }
}

fn config_file() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    Some(folder.or_else(|| Some(dirs::home_dir()?.join(".docker")))?.join("config.json"))
}

/// Asks a program that keeps credentials, as docker does.
fn helper(name: &str, key: &str, processes: &Processes) -> Result<Option<Credentials>, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Answer {
        username: String,
        secret: String,
    }
    /// What the username is when the secret is no password, but of use to the token server alone.
    const TOKEN: &str = "<token>";
    let program = format!("docker-credential-{name}");
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::other(format!("{program}, which docker's configuration names for {key}, does not answer")).because(why)
    };
    let output = processes.answer(Command::new(&program).arg("get"), key.as_bytes()).map_err(|error| cannot(&error))?;
    // Docker's programs fail where they know nothing, and say so on stdout.
    if !output.status.success() {
        let nothing = String::from_utf8_lossy(&output.stdout).contains("credentials not found");
        return if nothing { Ok(None) } else { Err(cannot(&output.status)) };
    }
    let answer: Answer =
        serde_json::from_slice(&output.stdout).map_err(|_| cannot(&"its answer holds no credentials"))?;
    match answer.username.as_str() {
        "" => Ok(None),
        TOKEN => {
            Err(cannot(&"it has an identity token, and user name and password are needed: docker login writes them"))
        }
        _ => Ok(Some(Credentials::new(answer.username, answer.secret))),
    }
}

/// An error in the words of this command's flags.
pub(crate) fn worded(error: Error) -> Failure {
    let failure = *error.failure;
    match error.kind {
        ErrorKind::Unauthorized => failure.hint("docker login writes the credentials that are used"),
        ErrorKind::Untrusted => failure.hint("--ca-file FILE names the CA certificates to trust it by"),
        ErrorKind::NotAModule => failure.hint("kubectl ocm policy push makes images of modules"),
        ErrorKind::Unsigned => failure.hint("sign it with policy push --sign-key FILE, or cosign sign --key FILE"),
        _ => failure,
    }
}
