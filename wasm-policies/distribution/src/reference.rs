//! The names of images: `REGISTRY/REPOSITORY[:TAG][@sha256:DIGEST]`.

use std::fmt;

use crate::digest::Digest;

/// What begins to name an image of Docker Hub, and where that listens.
const HUB: &str = "docker.io";
const HUB_SERVER: &str = "registry-1.docker.io";

/// An image of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Host, and port where one is written.
    pub registry: String,
    /// The path of the repository.
    pub repository: String,
    /// The tag.
    pub tag: Option<String>,
    /// The digest of the manifest. Where there is one, the tag counts for nothing.
    pub digest: Option<Digest>,
}

/// Why a text names no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no image of a registry: {why}; write it as REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST"
)]
pub struct ReferenceError {
    text: String,
    why: &'static str,
}

impl Reference {
    /// Reads a reference. A registry has a dot or a port, or is localhost: nothing is added to what is written.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let wrong = |why| ReferenceError { text: text.to_owned(), why };
        let bare = text.strip_prefix("oci://").or_else(|| text.strip_prefix("registry://")).unwrap_or(text);
        let (rest, digest) = match bare.split_once('@') {
            Some((rest, digest)) => {
                let digest =
                    Digest::parse(digest).ok_or_else(|| wrong("its digest is not sha256: and 64 lower-case digits"))?;
                (rest, Some(digest))
            }
            None => (bare, None),
        };
        let (registry, path) = rest.split_once('/').ok_or_else(|| wrong("it names no registry and repository"))?;
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if !is_registry(registry) {
            return Err(wrong("what stands before the first / is no host of a registry"));
        }
        if repository.len() > 255 || !repository.split('/').all(is_component) {
            return Err(wrong("its repository is not of lower-case letters, digits, and . _ - between them"));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("its tag is not of letters, digits, and . _ -"));
        }
        let (registry, repository, tag) = (registry.to_owned(), repository.to_owned(), tag.map(str::to_owned));
        Ok(Self { registry, repository, tag, digest })
    }

    /// The same repository, and this manifest of it.
    #[must_use]
    pub fn pinned(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// What the API of registries calls the manifest: a digest or a tag.
    pub(crate) fn manifest(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }

    /// Where the registry listens: host and, where one is written, port.
    pub(crate) fn server(&self) -> &str {
        if self.registry == HUB { HUB_SERVER } else { &self.registry }
    }

    /// Registry and repository, without tag and digest.
    pub fn place(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, "")) => return address.parse::<std::net::Ipv6Addr>().is_ok(),
            Some((address, after)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("", after.strip_prefix(':')),
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => return (text.contains('.') || text == "localhost") && is_host(text),
        },
    };
    (host.is_empty() == text.starts_with('['))
        && (host.is_empty() || is_host(host))
        && port.is_some_and(|port| port.parse::<u16>().is_ok())
}

fn is_host(text: &str) -> bool {
    text.split('.').all(|label| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
    })
}

/// Words of letters and digits, with separators between them.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<u8>| byte.is_some_and(is_word);
    ends(text.bytes().next())
        && ends(text.bytes().next_back())
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest() -> String {
        format!("sha256:{}", "a".repeat(64))
    }

    #[test]
    fn references_are_taken_apart_and_written_again() {
        let digest = digest();
        for (text, registry, repository, tag, pinned) in [
            ("registry.example.com/a/b-c:v1".to_owned(), "registry.example.com", "a/b-c", Some("v1"), false),
            ("localhost/p".to_owned(), "localhost", "p", None, false),
            ("127.0.0.1:5000/p:1".to_owned(), "127.0.0.1:5000", "p", Some("1"), false),
            ("[::1]:5000/p".to_owned(), "[::1]:5000", "p", None, false),
            (format!("ghcr.io/o/p@{digest}"), "ghcr.io", "o/p", None, true),
            (format!("ghcr.io/o/p:v1@{digest}"), "ghcr.io", "o/p", Some("v1"), true),
        ] {
            let read = Reference::parse(&text).unwrap();
            assert_eq!((read.registry.as_str(), read.repository.as_str()), (registry, repository), "{text}");
            assert_eq!((read.tag.as_deref(), read.digest.is_some()), (tag, pinned), "{text}");
            assert_eq!(read.to_string(), text);
        }
        assert_eq!(Reference::parse("oci://ghcr.io/o/p:1").unwrap().to_string(), "ghcr.io/o/p:1");
        assert_eq!(Reference::parse("docker.io/o/p").unwrap().server(), "registry-1.docker.io");
    }

    #[test]
    fn what_names_no_image_is_refused() {
        for text in [
            "p",
            "p:1",
            "library/p",
            "ghcr.io/",
            "ghcr.io/P",
            "ghcr.io/p:",
            "ghcr.io/p:a b",
            "ghcr.io/p@sha256:ab",
            "ghcr.io:port/p",
            "https://ghcr.io/p",
            "ghcr.io/-p",
            "ghcr.io/a//b",
            "[::1/p",
            "-x.io/p",
            "ghcr.io/p?x=1",
            ":5/p",
            "ghcr.io/../p",
        ] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
        assert!(Reference::parse(&format!("ghcr.io/p@{}", digest().to_uppercase())).is_err());
    }
}
