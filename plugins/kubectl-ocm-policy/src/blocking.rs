//! Work that blocks, on a thread of its own.

use ocm_core::Failure;

use crate::child::{Children, Leash};

/// Runs and compiles modules on another thread, so that this one notices Ctrl-C whatever they do.
pub(crate) async fn apart<T: Send + 'static>(
    work: impl FnOnce(Children) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let leash = Leash::default();
    let children = leash.children();
    let done = tokio::task::spawn_blocking(move || work(children)).await;
    let done = done.map_err(|error| Failure::other("this is a defect of kubectl ocm policy").because(error));
    drop(leash);
    done?
}
