//! Chooses the role.

use std::sync::Arc;

use ocm_cli::{Stop, Ui};
use ocm_core::{Exit, Failure};

use crate::args::{ProgramArgs, Role};
use crate::{certificates, controller, webhook};

/// Does it until it is told to end.
pub(crate) async fn run(args: ProgramArgs, ui: Arc<Ui>, stop: Stop) -> Result<Exit, Failure> {
    // Work that would hold the runtime up, such as policies that the controller asks and names that are looked up, is done by
    // threads of its own. Where the system lets it start no other it has work wait for those that it has; where it has none it
    // panics, and the process ends. So it starts one before there is anything to lose, and keeps it: see `ocm_cli::serve_main`.
    let _ = tokio::task::spawn_blocking(|| ()).await;
    let ProgramArgs { role, client } = args;
    match role {
        Role::Webhook(args) => webhook::run(args, client, ui, stop).await,
        Role::Controller(args) => controller::run(args, client, ui, stop).await,
        Role::Certificates => certificates::run(client, ui, stop).await,
    }
}
