//! `policy push`, `pull` and `verify`: wrong words, and whose credentials are shown to whom.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, Run};

const KEY: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n";

fn policy(cli: &Cli, words: &[&str]) -> Run {
    cli.run(std::iter::once("policy").chain(words.iter().copied()))
}

#[test]
fn what_names_no_image_and_what_is_no_key_is_refused_before_anybody_is_asked() {
    let cli = Cli::new();
    cli.write("short.pub", KEY);
    cli.write("text.wasm", "no module");
    let digest = "0".repeat(64);
    for (words, why) in [
        (vec!["pull", "only-prod"], "names no registry and repository; write it as REGISTRY/REPOSITORY:TAG"),
        (vec!["pull", "library/only-prod"], "is no host of a registry"),
        (vec!["push", "text.wasm", "r.example/p:v1"], "is no WebAssembly module"),
        (vec!["verify", "r.example/p:v1", "--key", "short.pub"], "the key short.pub cannot be used"),
        (vec!["verify", "r.example/p:v1", "--key", "none.pub"], "cannot read the key none.pub"),
        (vec!["verify", "r.example/p:v1"], "--key"),
    ] {
        let run = policy(&cli, &words);
        assert!(run.exit == 2 && run.stdout.is_empty() && run.stderr.contains(why), "{words:?}: {run}");
    }
    let pinned = format!("r.example/p@sha256:{digest}");
    let run = policy(&cli, &["push", "text.wasm", &pinned]);
    assert!(run.exit == 2 && run.stderr.contains("name a tag instead"), "{run}");
}

#[test]
fn credentials_of_docker_are_shown_to_their_registry_when_it_asks() {
    let server = Server::start(|_, asked| match asked.header("authorization").first() {
        Some(_) => Reply::Json(404, "{}".to_owned()),
        None => Reply::Json(401, "{}".to_owned()),
    });
    let address = server.url().trim_start_matches("http://").to_owned();
    let cli = Cli::new();
    let helper = cli.write(
        "bin/docker-credential-tests",
        "#!/bin/sh\nread key\nprintf '{\"Username\":\"%s\",\"Secret\":\"geheim\"}' \"$key\"\n",
    );
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a program");
    let config = format!("{{\"credHelpers\": {{\"{address}\": \"tests\"}}}}");
    cli.write(".docker/config.json", &config);
    let path = format!("{}:{}", cli.home().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let cli = cli.env("PATH", path);
    let run = policy(&cli, &["pull", &format!("{address}/p:v1")]);
    // The server does not say how it wants to be asked, so it gets nothing.
    assert!(run.exit == 1 && run.stderr.contains("(HTTP 401)") && !run.stderr.contains("geheim"), "{run}");
    assert!(run.stderr.contains("with the credentials that it was given"), "the program was asked: {run}");
    assert!(server.asked().iter().all(|asked| asked.header("authorization").is_empty()));
    let other = Server::start(|_, _| Reply::Json(401, "{}".to_owned()));
    let run = policy(&cli, &["pull", &format!("{}/p:v1", other.url().trim_start_matches("http://"))]);
    assert!(run.exit == 1 && run.stderr.contains("with no credentials (HTTP 401)"), "{run}");
    // A program that is not there is named.
    fs::remove_file(helper).expect("it is removed");
    let run = policy(&cli, &["pull", &format!("{address}/p:v1")]);
    assert!(
        run.exit == 1 && run.stderr.contains("docker-credential-tests, which docker's configuration names"),
        "{run}"
    );
    cli.write(".docker/config.json", "{");
    let run = policy(&cli, &["pull", &format!("{address}/p:v1")]);
    assert!(run.exit == 2 && run.stderr.contains("is no configuration of docker"), "{run}");
}
