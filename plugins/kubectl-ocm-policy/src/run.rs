//! From arguments to a verb.

use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::{Exit, Failure};

use crate::args::{PolicyArgs, What};
use crate::child::Leash;
use crate::verbs;

pub(crate) async fn run(args: PolicyArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PolicyArgs { what } = args;
    // Modules run and compile on another thread, so that this one notices Ctrl-C whatever they do.
    let leash = Leash::default();
    let children = leash.children();
    let work = tokio::task::spawn_blocking(move || match what {
        What::New(args) => verbs::new::run(args, &ui),
        What::Build(args) => verbs::build::run(args, &ui, &children),
        What::Inspect(args) => verbs::inspect::run(args, &ui),
        What::Test(args) => verbs::test::run(args, &ui),
        What::Run(args) => verbs::run::run(args, &ui),
        What::Explain(args) => verbs::explain::run(args, &ui),
        What::Bench(args) => verbs::bench::run(args, &ui),
        What::Diff(args) => verbs::diff::run(args, &ui),
        What::Replay(args) => verbs::replay::run(args, &ui),
    });
    let done = work.await.map_err(|error| Failure::other("this is a defect of kubectl ocm policy").because(error));
    drop(leash);
    done?
}
