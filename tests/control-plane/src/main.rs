//! The command: clusters for as long as it runs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks on its standard streams")]

use std::process::ExitCode;
use std::time::Duration;

use control_plane::{Cluster, Error, Size, Spec, binaries};

const USAGE: &str = "\
Real Kubernetes clusters with real Open Cluster Management on this machine.

Usage:
  control-plane up [--size api|node] [--without-ocm] NAME...   starts clusters; they end with this command
  control-plane binaries                                       builds what is missing and says where it is
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [verb, argument] if let Some(result) = control_plane::internal(verb, argument) => result,
        ["up", rest @ ..] => match specs(rest) {
            Ok(specs) => up(&specs),
            Err(why) => return usage(&why),
        },
        ["binaries"] => binaries().map(|found| {
            for (name, file) in found.iter() {
                println!("{name}\t{}", file.display());
            }
        }),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        [] => return usage("say what to do"),
        [other, ..] => return usage(&format!("{other:?} is neither \"up\" nor \"binaries\"")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage(why: &str) -> ExitCode {
    eprint!("error: {why}\n\n{USAGE}");
    ExitCode::from(2)
}

fn specs(words: &[&str]) -> Result<Vec<Spec>, String> {
    let (mut size, mut images, mut names) = (Size::Node, true, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--size" | "--size=api" | "--size=node" => {
                let value = word.strip_prefix("--size=").or_else(|| words.next().copied());
                size = match value {
                    Some("api") => Size::Api,
                    Some("node") => Size::Node,
                    _ => return Err("--size takes \"api\" or \"node\"".into()),
                };
            }
            "--without-ocm" => images = false,
            option if option.starts_with('-') => return Err(format!("{option} is not an option of \"up\"")),
            name => names.push(name),
        }
    }
    if names.is_empty() {
        return Err("\"up\" takes the names of the clusters, for example: control-plane up hub".into());
    }
    let spec = |name: &&str| match size {
        Size::Api => Spec::api(*name),
        Size::Node => Spec::node(*name).ocm_images(images),
    };
    Ok(names.iter().map(spec).collect())
}

fn up(specs: &[Spec]) -> Result<(), Error> {
    let clusters = Cluster::start_all(specs)?;
    for cluster in &clusters {
        println!("{}\tKUBECONFIG={}\t{}", cluster.name(), cluster.kubeconfig().display(), cluster.server());
    }
    // The interrupt key ends this process, and with it the clusters.
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
