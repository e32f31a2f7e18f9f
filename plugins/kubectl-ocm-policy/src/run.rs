//! From arguments to a verb.

use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::{Exit, Failure};

use crate::args::hub::OnHub;
use crate::args::registry::InRegistry;
use crate::args::{PolicyArgs, ReplayArgs, What};
use crate::child::{Children, Leash};
use crate::verbs;

pub(crate) async fn run(args: PolicyArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PolicyArgs { what } = args;
    match what {
        What::New(args) => apart(move |_| verbs::new::run(args, &ui)).await,
        What::Build(args) => apart(move |children| verbs::build::run(args, &ui, &children)).await,
        What::Inspect(args) => apart(move |_| verbs::inspect::run(args, &ui)).await,
        What::Test(args) => verbs::test::run(args, ui).await,
        What::Run(args) => apart(move |_| verbs::run::run(args, &ui)).await,
        What::Explain(args) if args.hypothetical => verbs::explain::hypothetical::run(*args, ui).await,
        What::Explain(args) if args.files.is_empty() => verbs::explain::cluster::run(*args, ui).await,
        What::Explain(args) => apart(move |_| verbs::explain::modules::run(*args, &ui)).await,
        What::Bench(args) => apart(move |_| verbs::bench::run(args, &ui)).await,
        What::Diff(args) => apart(move |_| verbs::diff::run(args, &ui)).await,
        What::Replay(args) => replay(*args, ui).await,
        What::InRegistry(what) => match *what {
            InRegistry::Push(args) => verbs::push::run(args, ui).await,
            InRegistry::Pull(args) => verbs::pull::run(args, ui).await,
            InRegistry::Verify(args) => verbs::verify::run(args, ui).await,
        },
        What::OnHub(what) => on_hub(*what, ui).await,
    }
}

async fn replay(args: ReplayArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let ReplayArgs { records, since, policies, settings, kind, output, client } = args;
    let Some(records) = records else {
        let since = since.unwrap_or_default();
        return verbs::replay::hub::run(&since, policies, settings, kind, output, &client, ui).await;
    };
    if client.is_given() || !client.as_group.is_empty() {
        return Err(Failure::usage("the records of a file are asked on this machine, and no cluster")
            .hint("leave the flags of the connection out, or take the records of a hub: --since"));
    }
    apart(move |_| verbs::replay::file::run(&records, &policies, kind, &output, &ui)).await
}

async fn on_hub(what: OnHub, ui: Arc<Ui>) -> Result<Exit, Failure> {
    match what {
        OnHub::Apply(args) => verbs::apply::run(*args, ui).await,
        OnHub::List(args) => verbs::list::run(args, ui).await,
        OnHub::Describe(args) => verbs::describe::run(args, ui).await,
        OnHub::Logs(args) => verbs::logs::run(*args, ui).await,
        OnHub::Disable(args) => verbs::switch::disable(args, ui).await,
        OnHub::Enable(args) => verbs::switch::enable(args, ui).await,
        OnHub::Promote(args) => verbs::switch::promote(args, ui).await,
        OnHub::Pause(args) => verbs::switch::pause(args, ui).await,
        OnHub::Rollback(args) => verbs::switch::roll_back(args, ui).await,
        OnHub::Emergency(args) => verbs::emergency::run(args, ui).await,
    }
}

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
