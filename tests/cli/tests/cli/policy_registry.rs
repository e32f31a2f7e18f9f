//! `policy push`, `pull` and `verify`: wrong words, and whose credentials are shown to whom.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, Run};

/// SHA-256 of nothing.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
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
    let asking = |challenge: &'static str| {
        Server::start(move |_, asked| match asked.header("authorization").first() {
            Some(_) => Reply::Json(404, "{}".to_owned()),
            None => Reply::Challenge(challenge),
        })
    };
    let (server, other) = (asking("Basic realm=\"r\""), asking("Basic realm=\"r\""));
    let silent = Server::start(|_, _| Reply::Json(401, "{}".to_owned()));
    let place = |server: &Server| server.url().trim_start_matches("http://").to_owned();
    let address = place(&server);
    let cli = Cli::new();
    let helper = cli.write(
        "bin/docker-credential-tests",
        "#!/bin/sh\nread key\nprintf '{\"Username\":\"%s\",\"Secret\":\"geheim\"}' \"$key\"\n",
    );
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a program");
    let config = format!("{{\"credHelpers\": {{\"{address}\": \"tests\", \"{}\": \"tests\"}}}}", place(&silent));
    cli.write(".docker/config.json", &config);
    let path = format!("{}:{}", cli.home().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let cli = cli.env("PATH", path);
    let run = policy(&cli, &["pull", &format!("{address}/p:v1")]);
    assert!(run.exit == 1 && run.stderr.contains("does not have") && !run.stderr.contains("geheim"), "{run}");
    let basic = format!("Basic {}", STANDARD.encode(format!("{address}:geheim")));
    let shown: Vec<_> = server.asked().iter().map(|asked| asked.header("authorization").concat()).collect();
    assert_eq!(shown, [String::new(), basic], "the program was asked for the registry, when that wanted to know");
    // One that does not say how it wants to be asked gets nothing.
    let run = policy(&cli, &["pull", &format!("{}/p:v1", place(&silent))]);
    assert!(run.exit == 1 && run.stderr.contains("with the credentials that it was given (HTTP 401)"), "{run}");
    assert!(silent.asked().iter().all(|asked| asked.header("authorization").is_empty()));
    let run = policy(&cli, &["pull", &format!("{}/p:v1", place(&other))]);
    assert!(run.exit == 1 && run.stderr.contains("with no credentials (HTTP 401)"), "{run}");
    assert!(other.asked().iter().all(|asked| asked.header("authorization").is_empty()));
    // A program that is not there is named.
    fs::remove_file(helper).expect("it is removed");
    let run = policy(&cli, &["pull", &format!("{address}/p:v1")]);
    assert!(
        run.exit == 1 && run.stderr.contains("docker-credential-tests, which docker's configuration names"),
        "{run}"
    );
    let token = format!("{{\"auths\": {{\"{address}\": {{\"identitytoken\": \"geheim\"}}}}}}");
    cli.write(".docker/config.json", &token);
    let run = policy(&cli, &["pull", &format!("{address}/p:v1")]);
    assert!(run.exit == 1 && run.stderr.contains("user name and password are needed"), "{run}");
    assert!(!run.stderr.contains("geheim"), "{run}");
    cli.write(".docker/config.json", "{");
    let run = policy(&cli, &["pull", &format!("{address}/p:v1")]);
    assert!(run.exit == 2 && run.stderr.contains("is no configuration of docker"), "{run}");
}

#[test]
fn a_file_that_is_there_is_replaced_only_where_it_is_named() {
    let manifest = format!(
        "{{\"layers\": [{{\"mediaType\": \"application/wasm\", \"digest\": \"sha256:{EMPTY}\", \"size\": 0}}]}}"
    );
    let server = Server::start(move |_, asked| match asked.line.contains("/blobs/") {
        true => Reply::Json(200, String::new()),
        false => Reply::Json(200, manifest.clone()),
    });
    let image = format!("{}/policies/only-prod:v1", server.url().trim_start_matches("http://"));
    let cli = Cli::new();
    let file = cli.write("only-prod.wasm", "mine");
    let run = policy(&cli, &["pull", &image]);
    assert!(run.exit == 2 && run.stderr.contains("only-prod.wasm is there already"), "{run}");
    assert!(run.stderr.contains("-o only-prod.wasm replaces it") && server.asked().is_empty(), "{run}");
    assert_eq!(fs::read(&file).expect("a file"), b"mine");
    let run = policy(&cli, &["pull", &image, "-o", "only-prod.wasm"]);
    assert!(run.exit == 0 && run.stderr.contains("note: the image is sha256:"), "{run}");
    assert_eq!(fs::read(&file).expect("a file"), b"");
    fs::remove_file(&file).expect("it is removed");
    let run = policy(&cli, &["pull", &image]);
    assert!(run.exit == 0 && run.stdout.starts_with("only-prod.wasm"), "{run}");
    let left = fs::read_dir(file.parent().expect("a folder")).expect("a folder").flatten();
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().contains("only-prod")).count(), 1);
}
