//! From an image of a registry to a module.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_distribution::Image;
use ocm_policy_engine::digest;

use crate::args::registry::PullArgs;
use crate::run::apart;
use crate::verbs::inspect::size;
use crate::verbs::registry::{open, public_key, reference, worded};

pub(crate) async fn run(args: PullArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PullArgs { reference: text, output_file, key, registry } = args;
    let image = reference(&text)?;
    let file = output_file.unwrap_or_else(|| {
        let name = image.repository.rsplit('/').next().unwrap_or_default();
        PathBuf::from(format!("{name}.wasm"))
    });
    let key = key.as_deref().map(public_key).transpose()?;
    let registry = apart(move |children| open(image, &registry, &children)).await?;
    ui.tell(Event::now(format!("pulling {text}")));
    let (manifest, found) = match &key {
        Some(key) => registry.verified(key).await.map_err(worded)?,
        None => registry.manifest().await.map_err(worded)?,
    };
    let image = Image::read(&manifest, &text).map_err(worded)?;
    let module = registry.module(&image).await.map_err(worded)?;
    let cannot = |error| Failure::other(format!("cannot write {}", file.display())).because(error);
    fs::write(&file, &module).map_err(cannot)?;
    ui.tell(Event::done(format!("the image is {found}")));
    ui.line(&format!("{}  {}  sha256:{}", file.display(), size(module.len() as u64), digest(&module)));
    Ok(Exit::Ok)
}
