//! What was named: a folder, an archive, or text.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use ocm_core::Failure;

/// The most that is read of a file with text: bytes.
pub const LARGEST: u64 = 64 << 20;

/// How much of a file tells what it is: bytes. The mark of an archive is within its first header.
const HEAD: usize = 512;

/// One of the two sides of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The hub.
    Hub,
    /// The managed cluster.
    Managed,
}

/// A dump that was named, of which nothing is known yet but its form.
pub struct Input {
    /// Which side it is, if that was said.
    pub side: Option<Side>,
    /// How messages name it.
    pub name: String,
    pub(crate) content: Content,
}

/// The form of a dump.
pub(crate) enum Content {
    Folder(PathBuf),
    Archive(Box<dyn Read + Send>),
    Text(Vec<u8>),
}

impl Input {
    /// The text, if it is neither a folder nor an archive.
    pub fn text(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Folder(_) | Content::Archive(_) => None,
        }
    }
}

/// Opens what was named; `-` is stdin. Archives may be compressed with gzip, and so may text.
///
/// # Errors
/// A usage failure that says why it cannot be read.
pub fn open(side: Option<Side>, path: &Path) -> Result<Input, Failure> {
    let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
    let failed = |error: io::Error| Failure::usage(format!("cannot read {name}")).because(error);
    let content = match path {
        path if path == Path::new("-") => content(Box::new(io::stdin())),
        path if path.is_dir() => Ok(Content::Folder(path.to_owned())),
        path => File::open(path).and_then(|file| content(Box::new(file))),
    };
    Ok(Input { side, content: content.map_err(failed)?, name })
}

fn content(reader: Box<dyn Read + Send>) -> io::Result<Content> {
    let (head, reader) = peek(reader)?;
    let (head, reader) = match head.as_slice() {
        [0x1f, 0x8b, ..] => peek(Box::new(MultiGzDecoder::new(reader)))?,
        _ => (head, reader),
    };
    if head.get(257..262) == Some(b"ustar") {
        return Ok(Content::Archive(reader));
    }
    let mut text = Vec::new();
    reader.take(LARGEST + 1).read_to_end(&mut text)?;
    match text.len() as u64 > LARGEST {
        true => Err(io::Error::other(too_large())),
        false => Ok(Content::Text(text)),
    }
}

/// Why a file with text is not read.
pub(crate) fn too_large() -> String {
    format!("it is larger than {} MiB, the most that is read", LARGEST >> 20)
}

/// The beginning, and a reader of all of it.
fn peek(mut reader: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::new();
    reader.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    let all = io::Cursor::new(head.clone()).chain(reader);
    Ok((head, Box::new(all)))
}
