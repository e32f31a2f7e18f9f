//! kubectl, with a kubeconfig and a cache for as long as it runs.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use ocm_cli::Stop;
use ocm_core::{Failure, Reason};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::process::Command;

/// What a shell returns for a program that a signal has ended, besides the number of the signal.
#[cfg(unix)]
const SIGNALLED: i32 = 128;

/// How long kubectl may take to end by itself after it was told to.
const GRACE: Duration = Duration::from_secs(5);

/// Runs kubectl to its end, and returns its exit code. kubectl keeps what it knows of an API server by its address; as this one
/// leads to another cluster in the next run, that goes, too.
///
/// # Errors
/// When the kubeconfig cannot be written, or there is no kubectl; [`Reason::Interrupted`].
pub(crate) async fn run(kubeconfig: &SecretString, arguments: &[OsString], stop: &mut Stop) -> Result<u8, Failure> {
    let folder = Private::with(kubeconfig.expose_secret())?;
    let mut command = Command::new("kubectl");
    command.args(arguments).env("KUBECONFIG", folder.kubeconfig()).env("KUBECACHEDIR", folder.0.join("cache"));
    wait(&mut command, stop).await
}

/// Runs a program to its end, or tells it to end.
async fn wait(command: &mut Command, stop: &mut Stop) -> Result<u8, Failure> {
    let mut kubectl = command.kill_on_drop(true).spawn().map_err(|error| {
        Failure::other("cannot start kubectl")
            .because(error)
            .hint("it has to be in a directory of $PATH: kubectl version --client")
    })?;
    tokio::select! {
        ended = kubectl.wait() => {
            ended.map(code).map_err(|error| Failure::other("cannot wait until kubectl ends").because(error))
        }
        () = stop => {
            // It may have something to clean up. A terminal has told kubectl, too; a signal that was sent to us alone has not.
            #[cfg(unix)]
            terminate(&kubectl);
            let _ = tokio::time::timeout(GRACE, kubectl.wait()).await;
            Err(interrupted())
        }
    }
}

/// Sends SIGTERM.
#[cfg(unix)]
fn terminate(kubectl: &tokio::process::Child) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(pid) = kubectl.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Somebody has pressed Ctrl-C, or sent a signal that ends programs.
pub(crate) fn interrupted() -> Failure {
    Failure::new(Reason::Interrupted, "interrupted")
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code();
    #[cfg(unix)]
    let code = code.or_else(|| std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| SIGNALLED + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// A folder that only its owner may enter, with a kubeconfig, and that goes with this value.
struct Private(PathBuf);

impl Private {
    fn with(kubeconfig: &str) -> Result<Self, Failure> {
        // A name that nobody guesses, and a folder that nobody has made before.
        let name = format!("kubectl-ocm-proxy-{:016x}", RandomState::new().build_hasher().finish());
        let path = std::env::temp_dir().join(name);
        let cannot = |error: std::io::Error| {
            Failure::other(format!("cannot write a kubeconfig to {}", path.display())).because(error)
        };
        let mut folder = DirBuilder::new();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        folder.create(&path).map_err(cannot)?;
        let private = Self(path.clone());
        let mut file = options.open(private.kubeconfig()).map_err(cannot)?;
        file.write_all(kubeconfig.as_bytes()).map_err(cannot)?;
        Ok(private)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.0.join("config")
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // Nobody can do anything about it here, and the token ends by itself. The token goes first: a kubectl that was killed
        // may still write to its cache.
        let _ = fs::remove_file(self.kubeconfig());
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_its_owners_alone_and_goes() {
        let private = Private::with("secret").unwrap();
        let path = private.0.clone();
        assert_eq!(fs::read_to_string(private.kubeconfig()).unwrap(), "secret");
        fs::create_dir(path.join("cache")).unwrap();
        #[cfg(unix)]
        for (path, mode) in [(path.clone(), 0o700), (private.kubeconfig(), 0o600)] {
            let permissions = fs::metadata(&path).unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777, mode, "{}", path.display());
        }
        drop(private);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn exit_codes_and_signals_are_passed_on() {
        let status = |raw: i32| -> ExitStatus { std::os::unix::process::ExitStatusExt::from_raw(raw) };
        assert_eq!([0, 3 << 8, 255 << 8, 9].map(|raw| code(status(raw))), [0, 3, 255, 137]);
    }

    #[cfg(unix)]
    #[test]
    fn kubectl_is_told_to_end_and_may_clean_up() {
        let room = Private::with("").unwrap();
        let (ready, cleaned) = (room.0.join("ready"), room.0.join("cleaned"));
        let script = "trap 'echo > \"$1\"; exit 0' TERM; echo > \"$0\"; while :; do sleep 0.05; done";
        let mut command = Command::new("sh");
        command.args(["-c", script]).args([&ready, &cleaned]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let begun = std::time::Instant::now();
        let result = runtime.block_on(async {
            let mut stop: Stop = Box::pin(async move {
                while !ready.exists() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
            wait(&mut command, &mut stop).await
        });
        assert!(result.is_err_and(|failure| failure.exit() == ocm_core::Exit::Interrupted));
        assert!(cleaned.exists());
        assert!(begun.elapsed() < GRACE, "it has ended by itself");
    }
}
