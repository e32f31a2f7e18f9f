//! Talking to a process through its pipes, without threads: none may be to be had.

use std::io;
use std::process::Child;
use std::time::{Duration, Instant};

/// Writes all of `question` to the process and reads its answer to the end, both at once: who answers before it has read
/// everything must not be waited for at the wrong end.
///
/// # Errors
/// `TimedOut` when that takes longer than `longest`, `FileTooLarge` when the answer is longer than `most`. The process
/// still runs then.
#[cfg(unix)]
pub(super) fn exchange(child: &mut Child, question: &[u8], most: usize, longest: Duration) -> io::Result<Vec<u8>> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::io::{Read as _, Write as _};

    let missing = || io::Error::other("it has no pipes");
    let mut input = Some(child.stdin.take().ok_or_else(missing)?);
    let mut output = child.stdout.take().ok_or_else(missing)?;
    for pipe in [std::os::fd::AsFd::as_fd(&output), std::os::fd::AsFd::as_fd(input.as_ref().ok_or_else(missing)?)] {
        fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
    }
    let again = |error: &io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
    let end = Instant::now() + longest;
    let mut left = question;
    let mut answer = Vec::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let time = end.saturating_duration_since(Instant::now());
        if time.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let time = Timespec::try_from(time).map_err(io::Error::other)?;
        let mut pipes = vec![PollFd::new(&output, PollFlags::IN)];
        pipes.extend(input.as_ref().map(|input| PollFd::new(input, PollFlags::OUT)));
        match poll(&mut pipes, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        drop(pipes);
        if let Some(pipe) = &mut input {
            match pipe.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if again(&error) => {}
                // It has not read everything, and may well have said why.
                Err(_) => left = &[],
            }
            if left.is_empty() {
                input = None;
            }
        }
        match output.read(&mut piece) {
            Ok(0) => return Ok(answer),
            Ok(read) if answer.len() + read > most => return Err(io::ErrorKind::FileTooLarge.into()),
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) if again(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(not(unix))]
pub(super) fn exchange(child: &mut Child, question: &[u8], most: usize, _: Duration) -> io::Result<Vec<u8>> {
    use std::io::{Read as _, Write as _};

    let missing = || io::Error::other("it has no pipes");
    let (mut input, output) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
    // The other side reads everything before it answers.
    input.write_all(question)?;
    drop(input);
    let mut answer = Vec::new();
    output.take(most as u64 + 1).read_to_end(&mut answer)?;
    if answer.len() > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(answer) }
}
