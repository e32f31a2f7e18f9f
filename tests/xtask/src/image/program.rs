//! Whether a binary runs where there is nothing besides it.

use super::architecture::Architecture;

/// Makes sure of it: it is for this processor, no other file has to load it, and it may lie anywhere in memory.
///
/// # Errors
/// What it is instead.
pub(super) fn check(binary: &[u8], architecture: Architecture) -> Result<(), String> {
    let file = Elf::of(binary).ok_or("it is no program of a 64-bit Linux")?;
    if file.machine != architecture.elf() {
        return Err(format!("it is not for {}: its machine has number {}", architecture.name(), file.machine));
    }
    if file.kind != POSITION_INDEPENDENT {
        return Err("it has fixed addresses".to_owned());
    }
    if file.segments.contains(&INTERPRETER) {
        return Err("another program has to load it, so it is not static".to_owned());
    }
    Ok(())
}

/// `ET_DYN`: what may lie anywhere.
const POSITION_INDEPENDENT: u16 = 3;
/// `PT_INTERP`: the name of the program that loads this one.
const INTERPRETER: u32 = 3;

/// What the headers of a program say.
struct Elf {
    kind: u16,
    machine: u16,
    /// The kinds of its segments.
    segments: Vec<u32>,
}

impl Elf {
    fn of(file: &[u8]) -> Option<Self> {
        // 64 bits, the least byte first.
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let short = |at: usize| Some(u16::from_le_bytes(file.get(at..at.checked_add(2)?)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_le_bytes(file.get(at..at.checked_add(4)?)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(file.get(at..at.checked_add(8)?)?.try_into().ok()?));
        let (first, size, count) = (usize::try_from(long(32)?).ok()?, usize::from(short(54)?), usize::from(short(56)?));
        let segments = (0..count).map(|number| word(first.checked_add(number * size)?)).collect::<Option<_>>()?;
        Some(Self { kind: short(16)?, machine: short(18)?, segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers of a program with these segments.
    fn program(kind: u16, machine: u16, segments: &[u32]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56 * segments.len()];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[16..18].copy_from_slice(&kind.to_le_bytes());
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[32..40].copy_from_slice(&64_u64.to_le_bytes());
        file[54..56].copy_from_slice(&56_u16.to_le_bytes());
        file[56..58].copy_from_slice(&u16::try_from(segments.len()).unwrap().to_le_bytes());
        for (number, segment) in segments.iter().enumerate() {
            let at = 64 + 56 * number;
            file[at..at + 4].copy_from_slice(&segment.to_le_bytes());
        }
        file
    }

    #[test]
    fn only_what_needs_nothing_else_becomes_an_image() {
        let arm = Architecture::Arm64;
        // Code, and what the program moves itself by.
        assert_eq!(check(&program(3, 183, &[1, 2]), arm), Ok(()));
        let wrong = |file: &[u8]| check(file, arm).unwrap_err();
        assert!(wrong(&program(3, 62, &[1, 2])).contains("not for arm64"));
        assert!(wrong(&program(2, 183, &[1])).contains("fixed addresses"));
        assert!(wrong(&program(3, 183, &[1, 3, 2])).contains("not static"));
        for cut in [&program(3, 183, &[1, 2])[..100], b"#!/bin/sh", b""] {
            assert!(wrong(cut).contains("no program"), "{}", cut.len());
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn a_program_that_is_linked_to_libraries_is_noticed() {
        let own = if std::env::consts::ARCH == "aarch64" { Architecture::Arm64 } else { Architecture::Amd64 };
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(check(&file, own).unwrap_err().contains("not static"));
    }
}
