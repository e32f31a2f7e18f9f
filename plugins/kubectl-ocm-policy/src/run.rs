//! From arguments to a verb.

use std::sync::Arc;

use ocm_cli::{Described, Ui};
use ocm_core::{Exit, Failure};

use crate::args::hub::OnHub;
use crate::args::registry::InRegistry;
use crate::args::{PolicyArgs, ReplayArgs, What};
use crate::processes::on_thread;
use crate::verbs;

pub(crate) async fn run(args: PolicyArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PolicyArgs { what } = args;
    match what {
        What::New(Described(args)) => on_thread(move |_| verbs::new::run(args, &ui)).await,
        What::Build(Described(args)) => on_thread(move |processes| verbs::build::run(args, &ui, &processes)).await,
        What::Inspect(Described(args)) => on_thread(move |_| verbs::inspect::run(args, &ui)).await,
        What::Test(Described(args)) => verbs::test::run(args, ui).await,
        What::Run(Described(args)) => on_thread(move |_| verbs::run::run(args, &ui)).await,
        What::Explain(Described(args)) if args.hypothetical => verbs::explain::hypothetical::run(*args, ui).await,
        What::Explain(Described(args)) if args.files.is_empty() => verbs::explain::cluster::run(*args, ui).await,
        What::Explain(Described(args)) => on_thread(move |_| verbs::explain::modules::run(*args, &ui)).await,
        What::Bench(Described(args)) => on_thread(move |_| verbs::bench::run(args, &ui)).await,
        What::Diff(Described(args)) => on_thread(move |_| verbs::diff::run(args, &ui)).await,
        What::Replay(Described(args)) => replay(*args, ui).await,
        What::InRegistry(what) => match *what {
            InRegistry::Push(Described(args)) => verbs::push::run(args, ui).await,
            InRegistry::Pull(Described(args)) => verbs::pull::run(args, ui).await,
            InRegistry::Verify(Described(args)) => verbs::verify::run(args, ui).await,
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
    on_thread(move |_| verbs::replay::file::run(&records, &policies, kind, &output, &ui)).await
}

async fn on_hub(what: OnHub, ui: Arc<Ui>) -> Result<Exit, Failure> {
    match what {
        OnHub::Apply(Described(args)) => verbs::apply::run(*args, ui).await,
        OnHub::List(Described(args)) => verbs::list::run(args, ui).await,
        OnHub::Describe(Described(args)) => verbs::describe::run(args, ui).await,
        OnHub::Logs(Described(args)) => verbs::logs::run(*args, ui).await,
        OnHub::Disable(Described(args)) => verbs::switch::disable(args, ui).await,
        OnHub::Enable(Described(args)) => verbs::switch::enable(args, ui).await,
        OnHub::Promote(Described(args)) => verbs::switch::promote(args, ui).await,
        OnHub::Pause(Described(args)) => verbs::switch::pause(args, ui).await,
        OnHub::Rollback(Described(args)) => verbs::switch::roll_back(args, ui).await,
        OnHub::Emergency(Described(args)) => verbs::emergency::run(args, ui).await,
    }
}
