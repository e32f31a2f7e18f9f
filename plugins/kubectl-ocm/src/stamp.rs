//! The version that a binary of this suite carries in a section of its file, read without starting it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The section in which every binary of the suite keeps its version.
const SECTION: &[u8] = b".ocm.version";

/// Sizes of a file header and of a section header (System V ABI, ELF-64 object file format).
const HEADER: usize = 64;

/// The version in a 64-bit little-endian ELF file; none for every other file, which can still be asked by starting it.
pub(crate) fn read(binary: &Path) -> Option<String> {
    let mut file = File::open(binary).ok()?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    if !header.starts_with(b"\x7fELF\x02\x01") || short(&header, 0x3a)? != HEADER {
        return None;
    }
    let (start, count, names) = (long(&header, 0x28)?, short(&header, 0x3c)?, short(&header, 0x3e)?);
    let table = part(&mut file, start, count * HEADER)?;
    let section = |index: usize| table.get(index * HEADER..(index + 1) * HEADER);
    let place = |section: &[u8]| Some((long(section, 24)?, usize::try_from(long(section, 32)?).ok()?));
    let (offset, size) = place(section(names)?)?;
    let names = part(&mut file, offset, size)?;
    let is_ours = |section: &&[u8]| {
        let name = whole(section, 0).and_then(|start| names.get(start..));
        name.and_then(|name| name.strip_prefix(SECTION)).is_some_and(|rest| rest.first() == Some(&0))
    };
    let (offset, size) = place((0..count).filter_map(section).find(is_ours)?)?;
    String::from_utf8(part(&mut file, offset, size)?).ok().filter(|text| !text.is_empty())
}

/// No table or name of a sound binary is larger; a broken one must not make us reserve what it says.
const LIMIT: usize = 1 << 16;

fn part(file: &mut File, offset: u64, size: usize) -> Option<Vec<u8>> {
    if size > LIMIT {
        return None;
    }
    let mut bytes = vec![0; size];
    file.seek(SeekFrom::Start(offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?).into())
}

fn whole(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_stamp_have_none() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(read(&own), None, "a test binary is an ELF file that carries no version");
        assert_eq!(read(Path::new("Cargo.toml")), None);
        let bytes = std::fs::read(&own).unwrap();
        let folder = std::env::temp_dir().join(format!("kubectl-ocm-stamp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("damaged");
        // Offsets and sizes that point anywhere: nothing is found, nothing is reserved.
        for at in [0x28, 0x2f, 0x3c, 0x3e] {
            let mut damaged = bytes[..HEADER].to_vec();
            damaged[at] ^= 0xff;
            std::fs::write(&file, &damaged).unwrap();
            assert_eq!(read(&file), None);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
