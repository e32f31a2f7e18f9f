//! The functions of WASI preview 1: arguments and standard streams, and of everything else only as much as runtimes of
//! languages need to start. There are no files, no environment and no network. Time and randomness are made of the
//! request, so the same request gets the same answer.

use ocm_policy_rules::PolicyError;
use sha2::{Digest as _, Sha256};
use wasmtime::{Caller, FuncType, Linker, Val, ValType};

use crate::runtime::errors::{Exited, stop};
use crate::runtime::guest_memory::{long, memory_and_host, number, piece, piece_mut, put};
use crate::runtime::host_calls::GuestLog;
use crate::runtime::store::{CALL, Guarded, charge, price};

/// The module that such functions are imported from.
pub(crate) const MODULE: &str = "wasi_snapshot_preview1";

const SUCCESS: i32 = 0;
const ACCESS: i32 = 2;
const BAD_DESCRIPTOR: i32 = 8;
const INVALID: i32 = 28;
const NOT_SUPPORTED: i32 = 58;
const NO_SOCKET: i32 = 57;
const NO_SEEK: i32 = 70;

/// Nanoseconds that pass with each look at a clock.
const STEP: u64 = 1_000;

/// What such a module sees of the world.
#[derive(Default)]
pub(crate) struct Wasi {
    pub(crate) arguments: &'static [&'static str],
    stdin: Vec<u8>,
    read: usize,
    pub(crate) stdout: Vec<u8>,
    /// Nanoseconds since the beginning, as far as the guest can tell.
    elapsed: u64,
    /// What the stream of random bytes is made of, and how much of it was given.
    seed: [u8; 32],
    drawn: u64,
    /// Milliseconds since 1970, as the request says.
    now: i64,
    /// Bytes that may be printed, and a few times as many be read.
    pub(crate) most: usize,
    pub(crate) log: GuestLog,
}

impl Wasi {
    /// One that may print so many bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self { most: usize::try_from(most).unwrap_or(usize::MAX), ..Self::default() }
    }

    /// Takes what the request tells.
    pub(crate) fn begin(&mut self, request: &str, now: i64, stdin: Vec<u8>) {
        self.now = now;
        self.seed = Sha256::digest(request.as_bytes()).into();
        self.drawn = 0;
        self.elapsed = 0;
        self.stdin = stdin;
        self.read = 0;
    }

    /// Adds to what can be read.
    ///
    /// # Errors
    /// When it is too much.
    pub(crate) fn offer(&mut self, bytes: &[u8]) -> Result<(), PolicyError> {
        if self.stdin.len() > self.most.saturating_mul(8) {
            return Err(PolicyError::TooLarge("it asks its host too often".to_owned()));
        }
        self.stdin.extend_from_slice(bytes);
        Ok(())
    }

    fn random(&mut self, target: &mut [u8]) {
        for chunk in target.chunks_mut(32) {
            let block = Sha256::new().chain_update(self.seed).chain_update(self.drawn.to_le_bytes()).finalize();
            self.drawn += 1;
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }

    /// The clock of a kind: 0 shows the time of the request, all others begin with zero.
    fn time(&mut self, clock: u32) -> u64 {
        self.elapsed = self.elapsed.saturating_add(STEP);
        let begun = if clock == 0 { self.begun() } else { 0 };
        begun.saturating_add(self.elapsed)
    }

    /// The time of the request, in nanoseconds since 1970.
    fn begun(&self) -> u64 {
        u64::try_from(self.now).unwrap_or(0).saturating_mul(1_000_000)
    }
}

type Call<'c, H> = Caller<'c, Guarded<H>>;

/// The memory of the caller and what it sees of the world, both at once.
fn parts<'c, H: AsMut<Wasi> + 'static>(caller: &'c mut Call<'_, H>) -> wasmtime::Result<(&'c mut [u8], &'c mut Wasi)> {
    let (memory, host) = memory_and_host(caller)?;
    Ok((memory, host.as_mut()))
}

/// Functions that do nothing: name, parameters (`i` and `l`) and what they return.
const REFUSED: &[(&str, &str, i32)] = &[
    ("fd_advise", "illi", BAD_DESCRIPTOR),
    ("fd_allocate", "ill", BAD_DESCRIPTOR),
    ("fd_datasync", "i", BAD_DESCRIPTOR),
    ("fd_fdstat_set_rights", "ill", SUCCESS),
    ("fd_filestat_set_size", "il", BAD_DESCRIPTOR),
    ("fd_filestat_set_times", "illi", BAD_DESCRIPTOR),
    ("fd_pread", "iiili", BAD_DESCRIPTOR),
    ("fd_prestat_get", "ii", BAD_DESCRIPTOR),
    ("fd_prestat_dir_name", "iii", BAD_DESCRIPTOR),
    ("fd_pwrite", "iiili", BAD_DESCRIPTOR),
    ("fd_readdir", "iiili", BAD_DESCRIPTOR),
    ("fd_renumber", "ii", BAD_DESCRIPTOR),
    ("fd_sync", "i", BAD_DESCRIPTOR),
    ("fd_tell", "ii", NO_SEEK),
    ("path_create_directory", "iii", ACCESS),
    ("path_filestat_get", "iiiii", ACCESS),
    ("path_filestat_set_times", "iiiilli", ACCESS),
    ("path_link", "iiiiiii", ACCESS),
    ("path_open", "iiiiillii", ACCESS),
    ("path_readlink", "iiiiii", ACCESS),
    ("path_remove_directory", "iii", ACCESS),
    ("path_rename", "iiiiii", ACCESS),
    ("path_symlink", "iiiii", ACCESS),
    ("path_unlink_file", "iii", ACCESS),
    ("proc_raise", "i", NOT_SUPPORTED),
    ("sched_yield", "", SUCCESS),
    ("sock_accept", "iii", NO_SOCKET),
    ("sock_recv", "iiiiii", NO_SOCKET),
    ("sock_send", "iiiii", NO_SOCKET),
    ("sock_shutdown", "ii", NO_SOCKET),
];

fn is_stream(descriptor: u32) -> bool {
    descriptor <= 2
}

/// Puts all functions of preview 1 before a module.
pub(crate) fn link<H: AsMut<Wasi> + 'static>(linker: &mut Linker<Guarded<H>>) -> wasmtime::Result<()> {
    for (name, parameters, errno) in REFUSED {
        let kinds = parameters.chars().map(|kind| if kind == 'l' { ValType::I64 } else { ValType::I32 });
        let kind = FuncType::new(linker.engine(), kinds, [ValType::I32]);
        linker.func_new(MODULE, name, kind, |caller, _, results| {
            charge(caller, CALL)?;
            results[0] = Val::I32(*errno);
            Ok(())
        })?;
    }
    linker.func_wrap(MODULE, "args_sizes_get", |mut caller: Call<'_, H>, count: u32, size: u32| {
        charge(&mut caller, CALL)?;
        let (memory, wasi) = parts(&mut caller)?;
        let arguments = wasi.arguments;
        put(memory, count, &to_u32(arguments.len()).to_le_bytes())?;
        put(memory, size, &to_u32(arguments.iter().map(|text| text.len() + 1).sum()).to_le_bytes())?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "args_get", |mut caller: Call<'_, H>, mut list: u32, mut buffer: u32| {
        charge(&mut caller, CALL)?;
        let (memory, wasi) = parts(&mut caller)?;
        for text in wasi.arguments {
            put(memory, list, &buffer.to_le_bytes())?;
            put(memory, buffer, text.as_bytes())?;
            list = list.wrapping_add(4);
            buffer = buffer.wrapping_add(to_u32(text.len()));
            put(memory, buffer, &[0])?;
            buffer = buffer.wrapping_add(1);
        }
        Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "environ_sizes_get", |mut caller: Call<'_, H>, count: u32, size: u32| {
        charge(&mut caller, CALL)?;
        let (memory, _) = parts(&mut caller)?;
        put(memory, count, &[0; 4])?;
        put(memory, size, &[0; 4])?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "environ_get", |mut caller: Call<'_, H>, _list: u32, _buffer: u32| {
        charge(&mut caller, CALL)?;
        wasmtime::Result::Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "clock_res_get", |mut caller: Call<'_, H>, _clock: u32, result: u32| {
        charge(&mut caller, CALL)?;
        let (memory, _) = parts(&mut caller)?;
        put(memory, result, &STEP.to_le_bytes())?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "clock_time_get", |mut caller: Call<'_, H>, clock: u32, _: u64, result: u32| {
        charge(&mut caller, CALL)?;
        let (memory, wasi) = parts(&mut caller)?;
        let time = wasi.time(clock);
        put(memory, result, &time.to_le_bytes())?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "random_get", |mut caller: Call<'_, H>, buffer: u32, length: u32| {
        // Hashing takes about ten instructions for each byte.
        charge(&mut caller, CALL + u64::from(length) * 10)?;
        let (memory, wasi) = parts(&mut caller)?;
        wasi.random(piece_mut(memory, buffer, length)?);
        Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "proc_exit", |_: Call<'_, H>, code: i32| -> wasmtime::Result<()> {
        Err(wasmtime::Error::from(Exited(code)))
    })?;
    linker
        .func_wrap(MODULE, "fd_close", |caller: Call<'_, H>, descriptor: u32| of_stream(caller, descriptor, SUCCESS))?;
    linker.func_wrap(MODULE, "fd_fdstat_set_flags", |caller: Call<'_, H>, descriptor: u32, _flags: u32| {
        of_stream(caller, descriptor, SUCCESS)
    })?;
    linker.func_wrap(MODULE, "fd_seek", |caller: Call<'_, H>, descriptor: u32, _: i64, _: u32, _: u32| {
        of_stream(caller, descriptor, NO_SEEK)
    })?;
    linker.func_wrap(MODULE, "fd_fdstat_get", |mut caller: Call<'_, H>, descriptor: u32, result: u32| {
        charge(&mut caller, CALL)?;
        if !is_stream(descriptor) {
            return Ok(BAD_DESCRIPTOR);
        }
        let (memory, _) = parts(&mut caller)?;
        // Rights to read, write and poll; neither a file nor a terminal.
        let rights: u64 = (1 << 1) | (1 << 6) | (1 << 27);
        let mut state = [0; 24];
        state[8..16].copy_from_slice(&rights.to_le_bytes());
        put(memory, result, &state)?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "fd_filestat_get", |mut caller: Call<'_, H>, descriptor: u32, result: u32| {
        charge(&mut caller, CALL)?;
        if !is_stream(descriptor) {
            return Ok(BAD_DESCRIPTOR);
        }
        let (memory, _) = parts(&mut caller)?;
        put(memory, result, &[0; 64])?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(MODULE, "fd_read", read::<H>)?;
    linker.func_wrap(MODULE, "fd_write", write::<H>)?;
    linker.func_wrap(MODULE, "poll_oneoff", poll::<H>)?;
    Ok(())
}

/// What a function that does nothing returns about a stream; there are no other files.
fn of_stream<H: 'static>(mut caller: Call<'_, H>, descriptor: u32, errno: i32) -> wasmtime::Result<i32> {
    charge(&mut caller, CALL)?;
    Ok(if is_stream(descriptor) { errno } else { BAD_DESCRIPTOR })
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Where a list of buffers says they are.
fn buffer(memory: &[u8], list: u32, index: u32) -> Result<(u32, u32), PolicyError> {
    let at = list.wrapping_add(index.wrapping_mul(8));
    Ok((number(memory, at)?, number(memory, at.wrapping_add(4))?))
}

/// A list of buffers is no longer.
const MOST_BUFFERS: u32 = 1024;

/// Fuel for looking at one buffer of a list, however little it holds.
const BUFFER: u64 = 16;

fn read<H: AsMut<Wasi> + 'static>(
    mut caller: Call<'_, H>,
    descriptor: u32,
    list: u32,
    count: u32,
    result: u32,
) -> wasmtime::Result<i32> {
    charge(&mut caller, CALL)?;
    if descriptor != 0 {
        return Ok(BAD_DESCRIPTOR);
    }
    if count > MOST_BUFFERS {
        return Ok(INVALID);
    }
    charge(&mut caller, BUFFER * u64::from(count))?;
    let (memory, wasi) = parts(&mut caller)?;
    let mut wanted = 0_usize;
    for index in 0..count {
        wanted = wanted.saturating_add(buffer(memory, list, index)?.1 as usize);
    }
    let left = wasi.stdin.len() - wasi.read;
    charge(&mut caller, price(wanted.min(left)))?;
    let (memory, wasi) = parts(&mut caller)?;
    let mut total = 0_u32;
    for index in 0..count {
        let (at, length) = buffer(memory, list, index)?;
        let left = &wasi.stdin[wasi.read..];
        let taken = to_u32(left.len()).min(length);
        put(memory, at, &left[..taken as usize])?;
        wasi.read += taken as usize;
        total += taken;
        if taken < length {
            break;
        }
    }
    put(memory, result, &total.to_le_bytes())?;
    Ok(SUCCESS)
}

fn write<H: AsMut<Wasi> + 'static>(
    mut caller: Call<'_, H>,
    descriptor: u32,
    list: u32,
    count: u32,
    result: u32,
) -> wasmtime::Result<i32> {
    charge(&mut caller, CALL)?;
    if !matches!(descriptor, 1 | 2) {
        return Ok(BAD_DESCRIPTOR);
    }
    if count > MOST_BUFFERS {
        return Ok(INVALID);
    }
    charge(&mut caller, BUFFER * u64::from(count))?;
    let (memory, wasi) = parts(&mut caller)?;
    let mut wanted = 0_usize;
    for index in 0..count {
        let (at, length) = buffer(memory, list, index)?;
        wanted = wanted.saturating_add(piece(memory, at, length)?.len());
    }
    if descriptor == 1 && wasi.stdout.len().saturating_add(wanted) > wasi.most {
        return stop(PolicyError::TooLarge(format!("it prints more than {} bytes", wasi.most)));
    }
    // Of what is no answer only the beginning is kept.
    charge(&mut caller, price(if descriptor == 1 { wanted } else { 0 }))?;
    let (memory, wasi) = parts(&mut caller)?;
    let mut total = 0_u32;
    for index in 0..count {
        let (at, length) = buffer(memory, list, index)?;
        let bytes = piece(memory, at, length)?;
        if descriptor == 1 {
            wasi.stdout.extend_from_slice(bytes);
        } else {
            wasi.log.record(bytes);
        }
        total = total.saturating_add(length);
    }
    put(memory, result, &total.to_le_bytes())?;
    Ok(SUCCESS)
}

/// Streams are ready at once. Where only clocks are waited for, their time comes at once: it is no real time.
fn poll<H: AsMut<Wasi> + 'static>(
    mut caller: Call<'_, H>,
    list: u32,
    events: u32,
    count: u32,
    result: u32,
) -> wasmtime::Result<i32> {
    charge(&mut caller, CALL)?;
    if count == 0 || count > MOST_BUFFERS {
        return Ok(INVALID);
    }
    charge(&mut caller, u64::from(count) * 16)?;
    let (memory, wasi) = parts(&mut caller)?;
    let begun = wasi.begun();
    // What is asked for, read before events are written: they may lie in the same place.
    let mut asked = Vec::with_capacity(count as usize);
    for index in 0..count {
        let at = list.wrapping_add(index * 48);
        let user = long(memory, at)?;
        let kind = piece(memory, at.wrapping_add(8), 1)?[0];
        let descriptor = number(memory, at.wrapping_add(16))?;
        let due = if kind == 0 {
            let timeout = long(memory, at.wrapping_add(24))?;
            match (number(memory, at.wrapping_add(40))? & 1, descriptor) {
                (0, _) => wasi.elapsed.saturating_add(timeout),
                (_, 0) => timeout.saturating_sub(begun),
                _ => timeout,
            }
        } else {
            0
        };
        asked.push((user, kind, descriptor, due));
    }
    if asked.iter().all(|(_, kind, ..)| *kind == 0) {
        let next = asked.iter().map(|(.., due)| *due).min().unwrap_or(0);
        wasi.elapsed = wasi.elapsed.max(next);
    }
    let mut told = 0_u32;
    for (user, kind, descriptor, due) in asked {
        let errno = match kind {
            0 if due > wasi.elapsed => continue,
            0 => SUCCESS,
            1 | 2 if is_stream(descriptor) => SUCCESS,
            1 | 2 => BAD_DESCRIPTOR,
            _ => INVALID,
        };
        let mut event = [0; 32];
        event[..8].copy_from_slice(&user.to_le_bytes());
        event[8..10].copy_from_slice(&u16::try_from(errno).unwrap_or(0).to_le_bytes());
        event[10] = kind;
        if kind != 0 {
            event[16..24].copy_from_slice(&1_u64.to_le_bytes());
        }
        put(memory, events.wrapping_add(told * 32), &event)?;
        told += 1;
    }
    put(memory, result, &told.to_le_bytes())?;
    Ok(SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_request_sees_the_same_world() {
        let draw = |request: &str| {
            let mut wasi = Wasi::default();
            wasi.begin(request, 5, Vec::new());
            let mut bytes = [0; 70];
            wasi.random(&mut bytes);
            (bytes.to_vec(), wasi.time(0), wasi.time(1))
        };
        assert_eq!(draw("a"), draw("a"));
        assert_ne!(draw("a").0, draw("b").0);
        assert_eq!((draw("a").1, draw("a").2), (5_001_000, 2_000));
        let (bytes, ..) = draw("a");
        assert_ne!(bytes[..32], bytes[32..64], "the stream goes on");
    }

    #[test]
    fn time_before_the_epoch_and_after_the_end_is_no_accident() {
        let at = |now: i64| Wasi { now, ..Wasi::default() }.time(0);
        assert_eq!((at(-5), at(i64::MAX)), (STEP, u64::MAX));
    }
}
