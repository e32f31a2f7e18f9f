//! From an image of a registry to a module.

use std::path::PathBuf;
use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_distribution::Image;
use ocm_policy_engine::{PolicyError, digest, inspect};

use crate::args::registry::PullArgs;
use crate::files;
use crate::processes::on_thread;
use crate::verbs::inspect::size;
use crate::verbs::registry::{open, public_key, reference, worded};

pub(crate) async fn run(args: PullArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PullArgs { reference: text, output_file, key, registry } = args;
    let image = reference(&text)?;
    let file = match output_file {
        Some(file) => file,
        None => {
            let name = image.repository.rsplit('/').next().unwrap_or_default();
            let file = PathBuf::from(format!("{name}.wasm"));
            // Whoever does not name a file does not mean one that is there.
            if file.exists() {
                return Err(Failure::usage(format!("the file {} is there already", file.display()))
                    .hint(format!("-o {} replaces it, and -o FILE writes another one", file.display())));
            }
            file
        }
    };
    let key = key.as_deref().map(public_key).transpose()?;
    let registry = on_thread(move |processes| open(image, &registry, &processes)).await?;
    ui.tell(Event::now(format!("pulling {text}")));
    let (manifest, found) = match &key {
        Some(key) => registry.verified(key).await.map_err(worded)?,
        None => registry.manifest().await.map_err(worded)?,
    };
    let image = Image::read(&manifest, &text).map_err(worded)?;
    let module = registry.module(&image).await.map_err(worded)?;
    is_policy(&text, &module)?;
    let cannot = |error| Failure::other(format!("cannot write {}", file.display())).because(error);
    files::write(&file, &module).map_err(cannot)?;
    ui.tell(Event::note(format!("the image is {found}")));
    ui.line(&format!("{}  {}  sha256:{}", file.display(), size(module.len() as u64), digest(&module)));
    Ok(Exit::Ok)
}

/// Whether what an image holds is a policy: what is not must not take the place of one. The kind may be declared with --kind
/// when it is asked.
fn is_policy(image: &str, module: &[u8]) -> Result<(), Failure> {
    match inspect(module) {
        Ok(_) | Err(PolicyError::UndeclaredKind) => Ok(()),
        Err(error) => Err(Failure::other(format!("{image} holds no policy, so nothing was written")).because(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_policy_is_refused() {
        for module in [&b""[..], b"<html>", b"\0asm\x01\0\0\0"] {
            let failure = is_policy("r.example/p:v1", module).unwrap_err();
            let message = "r.example/p:v1 holds no policy, so nothing was written";
            assert_eq!((failure.message.as_str(), failure.exit()), (message, Exit::Failed));
        }
        assert_eq!(is_policy("r.example/p:v1", ocm_policy_builtin::ALL[0].module).map_err(|why| why.message), Ok(()));
    }
}
