//! From a module to an image of a registry.

use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_distribution::{Layout, Pushed, SigningKey};
use ocm_policy_engine::inspect;

use crate::args::registry::{LayoutArg, PushArgs};
use crate::files;
use crate::load::{module, refused};
use crate::processes::on_thread;
use crate::verbs::registry::{open, reference, worded};

pub(crate) async fn run(args: PushArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PushArgs { module: file, reference: text, kind, layout, sign_key, registry } = args;
    let image = reference(&text)?;
    if image.digest.is_some() {
        return Err(Failure::usage(format!("{image} has a digest, and which one the image gets is what comes out"))
            .hint("name a tag instead: REGISTRY/REPOSITORY:TAG"));
    }
    let title = file.file_name().map_or_else(|| "policy.wasm".to_owned(), |name| name.to_string_lossy().into_owned());
    let (module, key, registry) = on_thread(move |processes| {
        let module = module(&file, kind)?;
        inspect(&module).map_err(|error| refused(&file, &error))?;
        let key = match &sign_key {
            Some(file) => Some(
                SigningKey::parse(&files::text(file, "the key")?)
                    .map_err(|why| Failure::usage(format!("the key {} cannot be used", file.display())).because(why))?,
            ),
            None => None,
        };
        Ok((module, key, open(image, &registry, &processes)?))
    })
    .await?;
    let layout = match layout {
        LayoutArg::Wasm => Layout::Wasm,
        LayoutArg::Kubewarden => Layout::Kubewarden,
    };
    ui.tell(Event::now(format!("pushing {text}")));
    let Pushed { image, module } = registry.push(&module, layout, &title, &*ui).await.map_err(worded)?;
    ui.tell(Event::note(format!("the module is {module}")));
    if let Some(key) = key {
        let now = registry.sign(&key, &image, &*ui).await.map_err(worded)?;
        ui.tell(Event::note(if now { "it is signed" } else { "this key has signed it before" }));
    }
    ui.line(&image.to_string());
    Ok(Exit::Ok)
}
