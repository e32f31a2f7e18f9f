//! `policy push`, `pull` and `verify`: wrong words, and whose credentials are shown to whom.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, Run};
use serde_json::json;

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

/// A module that is of our contract by what it exports, and its SHA-256.
const MODULE: &str = "\0asm\x01\0\0\0\x01\x04\x01`\0\0\x03\x02\x01\0\x07\"\x01\x1e\
                      ocm:policy/policy@0.1.0#decide\0\0\x0a\x04\x01\x02\0\x0b";
const MODULE_SHA256: &str = "029425ab37171dd2aeaff35be36d63a5cc9fe342da2c4f08b1178b4f925f8f4c";

#[test]
fn a_file_that_is_there_is_replaced_only_where_it_is_named_and_by_a_policy() {
    let manifest = |digest: &str, size: usize| {
        let layer = json!({"mediaType": "application/wasm", "digest": format!("sha256:{digest}"), "size": size});
        json!({ "layers": [layer] }).to_string()
    };
    let server =
        Server::start(move |_, asked| match (asked.line.contains("/blobs/"), asked.line.contains("/empty/")) {
            (true, true) => Reply::Json(200, String::new()),
            (true, false) => Reply::Json(200, MODULE.to_owned()),
            (false, true) => Reply::Json(200, manifest(EMPTY, 0)),
            (false, false) => Reply::Json(200, manifest(MODULE_SHA256, MODULE.len())),
        });
    let address = server.url().trim_start_matches("http://").to_owned();
    let image = format!("{address}/policies/only-prod:v1");
    let cli = Cli::new();
    let file = cli.write("only-prod.wasm", "mine");
    let run = policy(&cli, &["pull", &image]);
    assert!(run.exit == 2 && run.stderr.contains("only-prod.wasm is there already"), "{run}");
    assert!(run.stderr.contains("-o only-prod.wasm replaces it") && server.asked().is_empty(), "{run}");
    let run = policy(&cli, &["pull", &format!("{address}/empty/only-prod:v1"), "-o", "only-prod.wasm"]);
    assert!(run.exit == 1 && run.stderr.contains("holds no policy, so nothing was written"), "{run}");
    assert_eq!(fs::read(&file).expect("a file"), b"mine");
    let run = policy(&cli, &["pull", &image, "-o", "only-prod.wasm"]);
    assert!(run.exit == 0 && run.stderr.contains("note: the image is sha256:"), "{run}");
    assert_eq!(fs::read(&file).expect("a file"), MODULE.as_bytes());
    fs::remove_file(&file).expect("it is removed");
    let run = policy(&cli, &["pull", &image]);
    assert!(run.exit == 0 && run.stdout.starts_with("only-prod.wasm"), "{run}");
    let left = fs::read_dir(file.parent().expect("a folder")).expect("a folder").flatten();
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().contains("only-prod")).count(), 1);
}
