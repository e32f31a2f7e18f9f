//! Machine code where the shards of an engine find it: in memory once, however many of them run it.

use ocm_policy_rules::PolicyError;
use wasmtime::component::Component;
use wasmtime::{Engine, Module, Result};

use crate::runtime::errors::{policy_error, unloadable};

/// Machine code that was made by `compile_here` of this version, in this process, in one that it started, or in an
/// earlier one that put it into the cache, which authenticates what it gives back.
pub(crate) enum MachineCode {
    /// In a file in memory that nobody can change any more. Shards map it, and only what they use of it becomes part of
    /// this process.
    #[cfg(target_os = "linux")]
    Sealed(std::fs::File),
    /// Where there are no such files, each shard copies it.
    Plain(Vec<u8>),
}

impl MachineCode {
    pub(crate) fn new(code: &[u8]) -> Self {
        #[cfg(target_os = "linux")]
        if let Ok(file) = sealed(code) {
            return Self::Sealed(file);
        }
        Self::Plain(code.to_vec())
    }

    #[expect(unsafe_code, reason = "machine code is run as it is")]
    pub(crate) fn component(&self, engine: &Engine) -> Result<Component, PolicyError> {
        // SAFETY: nobody but our compiler makes machine code, and nobody changes it.
        let (map, copy) = unsafe {
            (|path: &str| Component::deserialize_file(engine, path), |code: &[u8]| Component::deserialize(engine, code))
        };
        self.load(map, copy).map_err(policy_error)
    }

    #[expect(unsafe_code, reason = "machine code is run as it is")]
    pub(crate) fn module(&self, engine: &Engine) -> Result<Module, PolicyError> {
        // SAFETY: as above.
        let (map, copy) = unsafe {
            (|path: &str| Module::deserialize_file(engine, path), |code: &[u8]| Module::deserialize(engine, code))
        };
        self.load(map, copy).map_err(unloadable)
    }

    #[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "nothing can be mapped"))]
    fn load<T>(&self, map: impl Fn(&str) -> Result<T>, copy: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Sealed(file) => {
                use std::os::{fd::AsRawFd as _, unix::fs::FileExt as _};
                // Some systems let no code be run that lies in a file without a name.
                map(&format!("/proc/self/fd/{}", file.as_raw_fd())).or_else(|_| {
                    let mut code = vec![0; usize::try_from(file.metadata()?.len())?];
                    file.read_exact_at(&mut code, 0)?;
                    copy(&code)
                })
            }
            Self::Plain(code) => copy(code),
        }
    }
}

#[cfg(target_os = "linux")]
fn sealed(code: &[u8]) -> std::io::Result<std::fs::File> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use std::io::Write as _;

    let mut file = std::fs::File::from(memfd_create("policy", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(code)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "machine code is run as it is")]
    fn code_is_the_same_mapped_and_copied() {
        let engine = crate::engine::compiling().unwrap();
        let made = engine.precompile_module(b"\0asm\x01\0\0\0").unwrap();
        for code in [MachineCode::new(&made), MachineCode::Plain(made.clone())] {
            assert_eq!(code.module(&engine).unwrap().imports().len(), 0);
            let refused = |_: &str| Err(wasmtime::format_err!("this system maps no code"));
            // SAFETY: it was compiled here.
            let copied = code.load(refused, |code| unsafe { Module::deserialize(&engine, code) });
            assert_eq!(copied.unwrap().imports().len(), 0);
            assert!(code.component(&engine).is_err(), "a module is no component");
        }
        assert!(MachineCode::new(&made[..made.len() / 2]).module(&engine).is_err());
    }

    /// How often this process maps such a file from its beginning.
    #[cfg(target_os = "linux")]
    fn mapped(file: &std::fs::File) -> usize {
        use std::os::unix::fs::MetadataExt as _;
        let inode = file.metadata().unwrap().ino().to_string();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        // Address, rights, offset, device, inode, name.
        let begins = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words[..], [_, _, offset, _, of, name, ..]
                if offset.bytes().all(|byte| byte == b'0') && of == inode && name == "/memfd:policy")
        };
        maps.lines().filter(begins).count()
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[expect(unsafe_code, reason = "machine code is run as it is")]
    fn all_shards_map_the_same_code() {
        let engines = [(); 2].map(|()| crate::engine::compiling().unwrap());
        let code = MachineCode::new(&engines[0].precompile_module(b"\0asm\x01\0\0\0").unwrap());
        let MachineCode::Sealed(file) = &code else { panic!("there are such files here") };
        assert_eq!(mapped(file), 0);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
        // SAFETY: it was compiled here.
        let can_be_mapped = unsafe { Module::deserialize_file(&engines[0], path) }.is_ok();
        let shards = engines.each_ref().map(|engine| code.module(engine).unwrap());
        assert_eq!(mapped(file), if can_be_mapped { shards.len() } else { 0 });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nobody_changes_code_that_is_mapped() {
        use std::os::unix::fs::FileExt as _;
        let MachineCode::Sealed(file) = MachineCode::new(b"code") else { panic!("there are such files here") };
        assert!(file.write_at(b"evil", 0).is_err() && file.set_len(0).is_err());
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let again = std::fs::OpenOptions::new().write(true).open(path);
        assert!(again.is_err() || again.is_ok_and(|file| file.write_at(b"evil", 0).is_err()));
    }
}
