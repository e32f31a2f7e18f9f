//! Chooses the role.

use std::sync::Arc;

use ocm_cli::{Stop, Ui};
use ocm_core::{Exit, Failure};

use crate::args::{ProgramArgs, Role};
use crate::{certificates, controller, webhook};

/// Does it until it is told to end.
pub(crate) async fn run(args: ProgramArgs, ui: Arc<Ui>, stop: Stop) -> Result<Exit, Failure> {
    let ProgramArgs { role, client } = args;
    match role {
        Role::Webhook(args) => webhook::run(args, client, ui, stop).await,
        Role::Controller(args) => controller::run(args, client, ui, stop).await,
        Role::Certificates => certificates::run(client, ui, stop).await,
    }
}
