//! What the kinds of modules that import functions have in common: their memory, and what their host remembers.

use std::borrow::Cow;

use wasmtime::{AsContextMut, Caller, Extern, Instance, Memory, Store, Trap};

use ocm_policy_rules::outcome::Fault;

use crate::program::{Guarded, fault};

/// The exit code of a module that ended itself. Not yet a fault: zero is none.
#[derive(Debug, thiserror::Error)]
#[error("it ended with exit code {0}")]
pub(crate) struct Exited(pub(crate) i32);

/// A fault as the error of a host function; the guest stops.
pub(crate) fn stop<T>(fault: Fault) -> wasmtime::Result<T> {
    Err(wasmtime::Error::from(fault))
}

/// How a call ended: `Ok(None)` where the module ended itself with zero.
pub(crate) fn ended<T>(result: wasmtime::Result<T>) -> Result<Option<T>, Fault> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.downcast_ref::<Exited>() {
            Some(Exited(0)) => Ok(None),
            Some(Exited(code)) => Err(Fault::Exit(*code)),
            None => Err(fault(error)),
        },
    }
}

/// What keeps an instance from being made is no answer, but a reason why the policy cannot be loaded.
pub(crate) fn unloadable(error: wasmtime::Error) -> Fault {
    if error.is::<Fault>() || error.is::<Trap>() || error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return fault(error);
    }
    let text = format!("{error:#}");
    if text.contains("memory") && (text.contains("exceeds") || text.contains("limit")) {
        return Fault::Load(format!("it starts with more memory than it may have: {text}"));
    }
    Fault::Load(text)
}

pub(crate) fn outside() -> Fault {
    Fault::Trap("it points outside of its memory".to_owned())
}

/// The memory of the guest that calls.
pub(crate) fn memory<T>(caller: &mut Caller<'_, T>) -> wasmtime::Result<Memory> {
    match caller.get_export("memory") {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => stop(Fault::Load("it exports no memory".to_owned())),
    }
}

/// The memory of an instance.
pub(crate) fn memory_of<T: 'static>(store: &mut Store<T>, instance: &Instance) -> Result<Memory, Fault> {
    instance.get_memory(store, "memory").ok_or_else(|| Fault::Load("it exports no memory".to_owned()))
}

/// A piece of a memory.
pub(crate) fn piece(memory: &[u8], at: u32, length: u32) -> Result<&[u8], Fault> {
    let at = at as usize;
    at.checked_add(length as usize).and_then(|end| memory.get(at..end)).ok_or_else(outside)
}

/// A name in a memory. What is longer than any name is cut, and what is no UTF-8 is no name that anybody knows.
pub(crate) fn name(memory: &[u8], at: u32, length: u32) -> Result<Cow<'_, str>, Fault> {
    let bytes = piece(memory, at, length)?;
    Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(256)]))
}

/// A piece of a memory, to be written.
pub(crate) fn piece_mut(memory: &mut [u8], at: u32, length: u32) -> Result<&mut [u8], Fault> {
    let at = at as usize;
    at.checked_add(length as usize).and_then(|end| memory.get_mut(at..end)).ok_or_else(outside)
}

/// Writes bytes into a memory.
pub(crate) fn put(memory: &mut [u8], at: u32, bytes: &[u8]) -> Result<(), Fault> {
    let length = u32::try_from(bytes.len()).map_err(|_| outside())?;
    piece_mut(memory, at, length)?.copy_from_slice(bytes);
    Ok(())
}

/// A number in a memory, as WebAssembly keeps it.
pub(crate) fn number(memory: &[u8], at: u32) -> Result<u32, Fault> {
    let bytes = piece(memory, at, 4)?;
    bytes.try_into().map(u32::from_le_bytes).map_err(|_| outside())
}

/// A long number in a memory.
pub(crate) fn long(memory: &[u8], at: u32) -> Result<u64, Fault> {
    let bytes = piece(memory, at, 8)?;
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| outside())
}

/// A text that ends with a zero byte.
pub(crate) fn c_text(memory: &[u8], at: u32, most: usize) -> Result<&[u8], Fault> {
    let rest = memory.get(at as usize..).ok_or_else(outside)?;
    match rest.iter().take(most.saturating_add(1)).position(|byte| *byte == 0) {
        Some(end) => Ok(&rest[..end]),
        None if rest.len() > most => Err(Fault::TooLarge(format!("more than {most} bytes"))),
        None => Err(outside()),
    }
}

/// Takes fuel for work of the host: otherwise a guest could let it work for nothing.
pub(crate) fn charge<T: 'static>(mut store: impl AsContextMut<Data = T>, fuel: u64) -> wasmtime::Result<()> {
    let mut store = store.as_context_mut();
    match store.get_fuel()?.checked_sub(fuel) {
        Some(left) => store.set_fuel(left),
        None => {
            store.set_fuel(0)?;
            stop(Fault::OutOfFuel)
        }
    }
}

/// What a guest says that does not decide: the beginning is kept for the case that it fails.
#[derive(Default)]
pub(crate) struct Murmur(Vec<u8>);

impl Murmur {
    const MOST: usize = 512;

    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        let room = Self::MOST.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Adds to a trap what the guest said before.
    pub(crate) fn explain(&self, fault: Fault) -> Fault {
        let text = String::from_utf8_lossy(&self.0);
        let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        match fault {
            Fault::Trap(trap) if !text.trim().is_empty() => Fault::Trap(format!("{trap}; it said: {}", text.trim())),
            other => other,
        }
    }
}

/// What a guest may ask its host by name, `<namespace>/<operation>`. The hub grants nothing yet; a grant would stand
/// in [`HostCalls::answer`] beside logging, given to the store with the limits.
#[derive(Default)]
pub(crate) struct HostCalls {
    /// The first call that was denied.
    denied: Option<String>,
}

impl HostCalls {
    /// What a call returns, or why it is denied.
    pub(crate) fn answer(&mut self, namespace: &str, operation: &str) -> Result<Vec<u8>, String> {
        match (namespace, operation) {
            ("tracing", "log") => Ok(Vec::new()),
            _ => {
                let shown =
                    |text: &str| text.chars().filter(|letter| !letter.is_control()).take(64).collect::<String>();
                let name = format!("{}/{}", shown(namespace), shown(operation));
                let why = format!("the host call {name} is not granted");
                self.denied.get_or_insert(name);
                Err(why)
            }
        }
    }

    /// A policy that could not ask must not be understood as if it had been told something, whatever it answers.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.denied.clone().map_or(Ok(()), |name| Err(Fault::HostCall(name)))
    }
}

/// What the host of a foreign module remembers. Each kind uses its part.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) wasi: super::wasi::Wasi,
    pub(crate) calls: HostCalls,
    pub(crate) talk: super::wapc::Talk,
    pub(crate) builtins: std::sync::Arc<super::opa::Builtins>,
    pub(crate) murmur: Murmur,
    /// Bytes of each buffer.
    pub(crate) most: usize,
    /// Milliseconds since 1970, as the request says.
    pub(crate) now: i64,
}

impl Host {
    pub(crate) fn new(most: u64) -> Self {
        Self { most: usize::try_from(most).unwrap_or(usize::MAX), ..Self::default() }
    }
}

/// A store with such a host.
pub(crate) type Guest = Store<Guarded<Host>>;

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

    #[test]
    fn only_logging_is_granted_and_a_denial_is_remembered() {
        let mut calls = HostCalls::default();
        assert_eq!(calls.answer("tracing", "log"), Ok(Vec::new()));
        assert_eq!(calls.check(), Ok(()));
        assert!(calls.answer("kubernetes", "can_i").is_err());
        assert!(calls.answer("net", "v1/dns_lookup_host").is_err());
        assert_eq!(calls.check(), Err(Fault::HostCall("kubernetes/can_i".to_owned())));
    }

    #[test]
    fn what_was_said_explains_a_trap_and_nothing_else() {
        let mut murmur = Murmur::default();
        murmur.hear(b"panicked at x\n");
        murmur.hear(&[b'y'; 10_000]);
        let Fault::Trap(text) = murmur.explain(Fault::Trap("unreachable".to_owned())) else { panic!("no trap") };
        assert!(text.starts_with("unreachable; it said: panicked at x ") && text.len() < 600, "{text}");
        assert_eq!(murmur.explain(Fault::OutOfFuel), Fault::OutOfFuel);
    }
}
