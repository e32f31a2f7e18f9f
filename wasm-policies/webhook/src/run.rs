//! Chooses the role.

use std::sync::Arc;

use ocm_cli::{Stop, Ui};
use ocm_core::{Exit, Failure};

use crate::args::{ProgramArgs, Role};
use crate::{certificates, controller, webhook};

/// Does it until it is told to end.
pub(crate) async fn run(args: ProgramArgs, ui: Arc<Ui>, stop: Stop) -> Result<Exit, Failure> {
    let ProgramArgs { role, client } = args;
    with_a_thread(async {
        match role {
            Role::Webhook(args) => webhook::run(args, client, ui, stop).await,
            Role::Controller(args) => controller::run(args, client, ui, stop).await,
            Role::Certificates => certificates::run(client, ui, stop).await,
        }
    })
    .await
}

/// Does this once the runtime has a thread for work that would hold it up, such as policies that the controller asks and names that
/// are looked up. Where the system lets it start no other it has work wait for those that it has; where it has none it panics,
/// and the process ends. So it starts one before there is anything to lose, and keeps it: see `ocm_cli::serve_main`.
async fn with_a_thread<T>(work: impl Future<Output = T>) -> T {
    let _ = tokio::task::spawn_blocking(|| ()).await;
    work.await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_thread_for_work_is_there_before_the_work_begins() {
        let started = Arc::new(AtomicUsize::new(0));
        let counted = started.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .on_thread_start(move || {
                counted.fetch_add(1, Ordering::Relaxed);
            })
            .build()
            .unwrap();
        let found = runtime.block_on(with_a_thread(async { started.load(Ordering::Relaxed) }));
        assert_eq!(found, 1);
    }
}
