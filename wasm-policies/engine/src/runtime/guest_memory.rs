//! The memory of a guest that imports functions.

use std::borrow::Cow;

use ocm_policy_rules::PolicyError;
use wasmtime::{Caller, Extern, Instance, Memory, Store};

use crate::runtime::errors::{outside, stop};
use crate::runtime::store::{Guarded, charge, price};

/// The memory of the guest that calls.
pub(crate) fn memory<T>(caller: &mut Caller<'_, T>) -> wasmtime::Result<Memory> {
    match caller.get_export("memory") {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => stop(PolicyError::Load("it exports no memory".to_owned())),
    }
}

/// The memory of the guest that calls and what its host remembers, both at once.
pub(crate) fn memory_and_host<'c, H: 'static>(
    caller: &'c mut Caller<'_, Guarded<H>>,
) -> wasmtime::Result<(&'c mut [u8], &'c mut H)> {
    let memory = memory(caller)?;
    let (memory, guarded) = memory.data_and_store_mut(caller);
    Ok((memory, &mut guarded.host))
}

/// The memory of an instance.
pub(crate) fn memory_of<T: 'static>(store: &mut Store<T>, instance: &Instance) -> Result<Memory, PolicyError> {
    instance.get_memory(store, "memory").ok_or_else(|| PolicyError::Load("it exports no memory".to_owned()))
}

/// A piece of a memory.
pub(crate) fn piece(memory: &[u8], at: u32, length: u32) -> Result<&[u8], PolicyError> {
    let at = at as usize;
    at.checked_add(length as usize).and_then(|end| memory.get(at..end)).ok_or_else(outside)
}

/// A name in a memory. What is longer than any name is cut, and what is no UTF-8 is no name that anybody knows.
pub(crate) fn name(memory: &[u8], at: u32, length: u32) -> Result<Cow<'_, str>, PolicyError> {
    let bytes = piece(memory, at, length)?;
    Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(256)]))
}

/// A piece of a memory, to be written.
pub(crate) fn piece_mut(memory: &mut [u8], at: u32, length: u32) -> Result<&mut [u8], PolicyError> {
    let at = at as usize;
    at.checked_add(length as usize).and_then(|end| memory.get_mut(at..end)).ok_or_else(outside)
}

/// Writes bytes into a memory.
pub(crate) fn put(memory: &mut [u8], at: u32, bytes: &[u8]) -> Result<(), PolicyError> {
    let length = u32::try_from(bytes.len()).map_err(|_| outside())?;
    piece_mut(memory, at, length)?.copy_from_slice(bytes);
    Ok(())
}

/// A number in a memory, as WebAssembly keeps it.
pub(crate) fn number(memory: &[u8], at: u32) -> Result<u32, PolicyError> {
    let bytes = piece(memory, at, 4)?;
    bytes.try_into().map(u32::from_le_bytes).map_err(|_| outside())
}

/// A long number in a memory.
pub(crate) fn long(memory: &[u8], at: u32) -> Result<u64, PolicyError> {
    let bytes = piece(memory, at, 8)?;
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| outside())
}

/// A text that ends with a zero byte. Looking for its end costs fuel as it goes on: what a guest points at may be long.
pub(crate) fn charged_text<T: 'static>(caller: &mut Caller<'_, T>, at: u32, most: usize) -> wasmtime::Result<Vec<u8>> {
    const STEP: usize = 4096;
    let memory = memory(caller)?;
    let mut length = 0;
    loop {
        charge(&mut *caller, price(STEP))?;
        let rest = memory.data(&*caller).get(at as usize..).ok_or_else(outside)?;
        let next = rest.get(length..).ok_or_else(outside)?;
        match next.iter().take(STEP).position(|byte| *byte == 0) {
            Some(end) if length + end <= most => {
                charge(&mut *caller, price(length + end))?;
                let rest = memory.data(&*caller).get(at as usize..).ok_or_else(outside)?;
                return Ok(rest.get(..length + end).ok_or_else(outside)?.to_vec());
            }
            _ if length + next.len().min(STEP) > most => {
                return stop(PolicyError::TooLarge(format!("more than {most} bytes")));
            }
            _ if next.len() <= STEP => return stop(outside()),
            _ => length += STEP,
        }
    }
}

/// A text that ends with a zero byte.
pub(crate) fn c_text(memory: &[u8], at: u32, most: usize) -> Result<&[u8], PolicyError> {
    let rest = memory.get(at as usize..).ok_or_else(outside)?;
    match rest.iter().take(most.saturating_add(1)).position(|byte| *byte == 0) {
        Some(end) => Ok(&rest[..end]),
        None if rest.len() > most => Err(PolicyError::TooLarge(format!("more than {most} bytes"))),
        None => Err(outside()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_where_memory_ends() {
        let memory = [1_u8, 2, 3, 0];
        assert_eq!(piece(&memory, 1, 3), Ok(&memory[1..]));
        assert_eq!(piece(&memory, 4, 0), Ok(&memory[4..]));
        for (at, length) in [(1, 4), (5, 0), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
            assert_eq!(piece(&memory, at, length), Err(outside()), "{at} {length}");
        }
        assert_eq!(number(&memory, 1), Err(outside()));
        assert_eq!(number(&memory, 0), Ok(0x0003_0201));
    }

    #[test]
    fn texts_end_with_zero_and_have_a_largest_length() {
        assert_eq!(c_text(b"ab\0c", 0, 2), Ok(b"ab".as_slice()));
        assert_eq!(c_text(b"ab\0c", 0, 1).unwrap_err().code(), "too-large");
        assert_eq!(c_text(b"ab\0c", 3, 9), Err(outside()));
        assert_eq!(c_text(b"ab\0c", 9, 9), Err(outside()));
    }
}
