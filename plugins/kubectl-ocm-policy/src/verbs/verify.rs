//! Whether an image of a registry is signed.

use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::{Event, Exit, Failure, Narrator};

use crate::args::registry::VerifyArgs;
use crate::processes::on_thread;
use crate::verbs::registry::{open, public_key, reference, worded};

pub(crate) async fn run(args: VerifyArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let VerifyArgs { reference: text, key: file, registry } = args;
    let image = reference(&text)?;
    let key = public_key(&file)?;
    let pinned = image.clone();
    let registry = on_thread(move |processes| open(image, &registry, &processes)).await?;
    let (_, digest) = registry.verified(&key).await.map_err(worded)?;
    ui.tell(Event::note(format!("it is signed by the key {}", file.display())));
    ui.line(&pinned.pinned(digest).to_string());
    Ok(Exit::Ok)
}
