//! The client against servers that are made up: what they get to see, and what is believed of what they say.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ocm_api::policy::{ModuleSignature, OciSource, UrlSource};
use ocm_core::Silent;
use ocm_policy_distribution::{
    Credentials, Digest, ErrorKind, Image, Layout, MAX_MODULE, PublicKey, Reference, Registry, SigningKey, Trust,
    fetch, file, sha256,
};
use rcgen::KeyPair;

const LIMIT: Duration = Duration::from_secs(10);
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// A request as a server sees it.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    authorization: Option<String>,
    body: Vec<u8>,
}

/// Status, headers and body of an answer.
type Answer = (u16, Vec<(String, String)>, Vec<u8>);

/// A server of the machine that answers by a function, and keeps what it was asked.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (asked.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || {
                    let Some(asked) = read(&stream) else { return };
                    seen.lock().unwrap().push(asked.clone());
                    write(stream, &asked, answer(&asked));
                });
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn image(&self, rest: &str) -> Reference {
        Reference::parse(&format!("{}/policies/p{rest}", self.address)).unwrap()
    }

    fn registry(&self, rest: &str, credentials: Option<Credentials>) -> Registry {
        Registry::new(self.image(rest), Trust::default(), credentials, LIMIT)
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut authorization, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, authorization, body })
}

fn write(mut stream: TcpStream, asked: &Asked, (status, headers, body): Answer) {
    let mut head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let body = if asked.method == "HEAD" { Vec::new() } else { body };
    // Whoever has read enough hangs up.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

fn ok(body: impl Into<Vec<u8>>) -> Answer {
    (200, Vec::new(), body.into())
}

fn not_found() -> Answer {
    (404, Vec::new(), br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#.to_vec())
}

/// A manifest of this module, and its digest.
fn manifest(module: &[u8]) -> (Vec<u8>, Digest) {
    let (digest, size) = (Digest::of(module), module.len());
    let text = format!(
        r#"{{"schemaVersion":2,"layers":[{{"mediaType":"application/wasm","digest":"{digest}","size":{size}}}]}}"#
    );
    let digest = Digest::of(text.as_bytes());
    (text.into_bytes(), digest)
}

/// A registry of blobs and manifests that takes what is put into it, as the specification has it.
fn store() -> Server {
    store_of(Held::default())
}

/// What a registry holds, by the end of its path.
type Held = Arc<Mutex<std::collections::BTreeMap<String, Vec<u8>>>>;

fn store_of(held: Held) -> Server {
    Server::start(move |asked| {
        let mut held = held.lock().unwrap();
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let name = path.strip_prefix("/v2/policies/p/").unwrap_or_default().to_owned();
        match asked.method.as_str() {
            "POST" => (202, vec![("location".into(), "/v2/policies/p/uploads/7?state=x".into())], Vec::new()),
            "PUT" if name.starts_with("uploads/") => {
                let digest = query.strip_prefix("state=x&digest=").unwrap().to_owned();
                assert_eq!(digest, Digest::of(&asked.body).to_string());
                held.insert(format!("blobs/{digest}"), asked.body.clone());
                (201, Vec::new(), Vec::new())
            }
            "PUT" => {
                held.insert(format!("manifests/{}", Digest::of(&asked.body)), asked.body.clone());
                held.insert(name, asked.body.clone());
                (201, Vec::new(), Vec::new())
            }
            _ => held.get(&name).map_or_else(not_found, |body| ok(body.clone())),
        }
    })
}

#[tokio::test]
async fn what_was_pushed_is_pulled_in_both_layouts_and_is_signed_beside_other_signatures() {
    let server = store();
    let keys = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
    for layout in [Layout::Wasm, Layout::Kubewarden] {
        let registry = server.registry(":v1", None);
        let pushed = registry.push(MODULE, layout, "p.wasm", &Silent).await.unwrap();
        let digest = pushed.image.digest.clone().unwrap();
        assert_eq!(pushed.module, Digest::of(MODULE));
        let (found, by_tag) = registry.manifest().await.unwrap();
        assert_eq!(by_tag, digest);
        let image = Image::read(&found, "p").unwrap();
        assert_eq!((image.layout, registry.module(&image).await.unwrap()), (layout, MODULE.to_vec()));

        let source = |signed_by: Option<&KeyPair>| OciSource {
            image: pushed.image.to_string(),
            signature: signed_by.map(|pair| ModuleSignature { public_key: pair.public_key_pem() }),
            ..OciSource::default()
        };
        assert_eq!(fetch(&source(None), None, LIMIT).await.unwrap().module, MODULE);
        let unsigned = fetch(&source(Some(&keys[0])), None, LIMIT).await.unwrap_err();
        assert_eq!(unsigned.kind, ErrorKind::Unsigned, "{unsigned}");
        for pair in &keys {
            let key = SigningKey::parse(&pair.serialize_pem()).unwrap();
            assert!(registry.sign(&key, &pushed.image, &Silent).await.unwrap(), "it is new");
            assert!(!registry.sign(&key, &pushed.image, &Silent).await.unwrap(), "once is enough");
        }
        for pair in &keys {
            let fetched = fetch(&source(Some(pair)), None, LIMIT).await.unwrap();
            assert_eq!((fetched.module.as_slice(), fetched.signatures.len()), (MODULE, 2));
            let key = PublicKey::parse(&pair.public_key_pem()).unwrap();
            assert_eq!(registry.verified(&key).await.unwrap().1, digest);
        }
        let stranger = KeyPair::generate().unwrap();
        let before = server.asked().len();
        let wrong = fetch(&source(Some(&stranger)), None, LIMIT).await.unwrap_err();
        assert_eq!(wrong.kind, ErrorKind::WrongSignature, "{wrong}");
        let module = format!("blobs/{}", Digest::of(MODULE));
        assert!(
            server.asked()[before..].iter().all(|asked| !asked.path.contains(&module)),
            "nothing of it was fetched"
        );
    }
}

#[tokio::test]
async fn what_else_is_said_of_other_signatures_stays_and_what_is_none_hides_none() {
    let held = Held::default();
    let server = store_of(held.clone());
    let registry = server.registry(":v1", None);
    let image = registry.push(MODULE, Layout::Wasm, "p.wasm", &Silent).await.unwrap().image;
    let tag = format!("manifests/sha256-{}.sig", image.digest.clone().unwrap().hex());
    let sign = async |pair: &KeyPair| {
        let key = SigningKey::parse(&pair.serialize_pem()).unwrap();
        assert!(registry.sign(&key, &image, &Silent).await.unwrap());
    };
    let read = || serde_json::from_slice::<serde_json::Value>(&held.lock().unwrap()[&tag]).unwrap();
    let write = |manifest: &serde_json::Value| held.lock().unwrap().insert(tag.clone(), manifest.to_string().into());
    let [first, second, third] = [(); 3].map(|()| KeyPair::generate().unwrap());
    sign(&first).await;
    // Tools of others write more: a certificate, where it is to be found in a log, what the image is for.
    let mut before = read();
    before["annotations"] = serde_json::json!({"of": "the whole"});
    before["layers"][0]["annotations"]["dev.sigstore.cosign/bundle"] = "{}".into();
    // Whoever may write there names blobs that are not there, that are others, and that are too large.
    let (absent, other, large) = (Digest::of(b"absent"), Digest::of(b"other"), vec![b' '; 64 << 10]);
    held.lock().unwrap().insert(format!("blobs/{other}"), b"not it".to_vec());
    held.lock().unwrap().insert(format!("blobs/{}", Digest::of(&large)), large.clone());
    let layers = before["layers"].as_array_mut().unwrap();
    for digest in [absent, other, Digest::of(&large)].iter().cycle().take(12) {
        let mut layer = layers[0].clone();
        layer["digest"] = digest.to_string().into();
        layers.push(layer);
    }
    // No key makes so long a signature: what is kept of an image has to fit into an object of the hub.
    let mut long = layers[0].clone();
    long["annotations"]["dev.cosignproject.cosign/signature"] = "A".repeat(513).into();
    layers.push(long);
    write(&before);
    sign(&second).await;
    let after = read();
    assert_eq!(after["annotations"], before["annotations"]);
    assert_eq!(after["layers"].as_array().unwrap()[..14], before["layers"].as_array().unwrap()[..]);
    for pair in [&first, &second] {
        assert!(registry.verified(&PublicKey::parse(&pair.public_key_pem()).unwrap()).await.is_ok());
    }
    assert_eq!(registry.signatures(image.digest.as_ref().unwrap()).await.unwrap().len(), 2);
    // Of very many the newest are looked at.
    let mut many = read();
    let layers = many["layers"].as_array_mut().unwrap();
    layers.extend(vec![layers[0].clone(); 40]);
    write(&many);
    sign(&third).await;
    assert!(registry.verified(&PublicKey::parse(&third.public_key_pem()).unwrap()).await.is_ok());
    // Whether there is one that cannot be read now is not known.
    let newest = read()["layers"][54]["digest"].as_str().unwrap().to_owned();
    let broken = store_that_fails(held, newest);
    let key = PublicKey::parse(&third.public_key_pem()).unwrap();
    let error = broken.registry(":v1", None).verified(&key).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused, "{error}");
}

/// The same, but for one blob that cannot be had now.
fn store_that_fails(held: Held, digest: String) -> Server {
    Server::start(move |asked| match asked.path.strip_prefix("/v2/policies/p/").unwrap_or_default() {
        name if name.ends_with(&digest) => (503, Vec::new(), Vec::new()),
        name => held.lock().unwrap().get(name).map_or_else(not_found, |body| ok(body.clone())),
    })
}

#[tokio::test]
async fn credentials_go_to_the_registry_and_its_token_server_and_nowhere_else() {
    let (text, digest) = manifest(MODULE);
    let elsewhere = Server::start(|asked| if asked.path == "/blob" { ok(MODULE) } else { not_found() });
    let cdn = format!("http://{}/blob", elsewhere.address);
    let tokens = Server::start(|asked| match asked.authorization.as_deref() {
        Some("Basic dTpw") => ok(r#"{"token":"t"}"#),
        _ => (401, Vec::new(), Vec::new()),
    });
    let realm = format!("http://{}/token", tokens.address);
    let server = Server::start(move |asked| {
        let challenge = format!(r#"Bearer realm="{realm}",service="s",scope="repository:policies/p:pull""#);
        match (asked.authorization.as_deref(), asked.path.contains("/blobs/")) {
            (Some("Bearer t"), true) => (307, vec![("location".into(), cdn.clone())], Vec::new()),
            (Some("Bearer t"), false) => ok(text.clone()),
            _ => (401, vec![("www-authenticate".into(), challenge)], Vec::new()),
        }
    });
    let registry = server.registry(&format!("@{digest}"), Some(Credentials::new("u", "p")));
    let (found, _) = registry.manifest().await.unwrap();
    assert_eq!(registry.module(&Image::read(&found, "p").unwrap()).await.unwrap(), MODULE);
    let token = &tokens.asked()[0];
    assert_eq!(token.path, "/token?service=s&scope=repository:policies/p:pull");
    assert_eq!(tokens.asked().len(), 1, "one token is enough");
    assert!(elsewhere.asked().iter().all(|asked| asked.authorization.is_none()));
    // Without credentials, and with others.
    for credentials in [None, Some(Credentials::new("u", "geheim"))] {
        let error = server.registry(":v1", credentials).manifest().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unauthorized, "{error}");
        assert!(!error.to_string().contains("geheim"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_a_redirect_leads_to_gets_no_credentials_by_naming_a_token_server() {
    let (text, _) = manifest(MODULE);
    let thief = Server::start(|_| ok(r#"{"token":"t"}"#));
    for challenge in [format!(r#"Bearer realm="http://{}/token""#, thief.address), "Basic realm=\"r\"".to_owned()] {
        let cdn = Server::start(move |_| (401, vec![("www-authenticate".into(), challenge.clone())], Vec::new()));
        let blob = format!("http://{}/blob", cdn.address);
        let server = Server::start(move |_| (307, vec![("location".into(), blob.clone())], Vec::new()));
        let registry = server.registry(":v1", Some(Credentials::new("u", "p")));
        let error = registry.module(&Image::read(&text, "p").unwrap()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unauthorized, "{error}");
        let all = [server.asked(), cdn.asked(), thief.asked()].concat();
        assert!(all.iter().all(|asked| asked.authorization.is_none()), "{all:?}");
        assert!(thief.asked().is_empty(), "nobody asks it for a token");
    }
}

#[tokio::test]
async fn a_registry_that_knows_no_tokens_gets_user_and_password() {
    let (text, _) = manifest(MODULE);
    let server = Server::start(move |asked| match asked.authorization.as_deref() {
        Some("Basic dTpw") => ok(text.clone()),
        _ => (401, vec![("www-authenticate".into(), "Basic realm=\"r\"".into())], Vec::new()),
    });
    assert!(server.registry(":v1", Some(Credentials::new("u", "p"))).manifest().await.is_ok());
    assert!(server.asked()[0].authorization.is_none(), "nobody gets a password unasked");
    let error = server.registry(":v1", None).manifest().await.unwrap_err();
    assert!(error.to_string().contains("with no credentials (HTTP 401)"), "{error}");
}

#[tokio::test]
async fn what_a_registry_says_is_believed_by_its_digest_alone() {
    let (text, digest) = manifest(MODULE);
    let (other, _) = manifest(b"\0asm another");
    let lies = Server::start(move |asked| match asked.path.contains("/manifests/") {
        true => ok(other.clone()),
        false => ok("not the module"),
    });
    let pinned = lies.registry(&format!("@{digest}"), None);
    assert_eq!(pinned.manifest().await.unwrap_err().kind, ErrorKind::WrongDigest);
    let image = Image::read(&text, "p").unwrap();
    let error = pinned.module(&Image { size: 100, ..image.clone() }).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::WrongDigest, "{error}");
    // More than the manifest has announced is not even read.
    assert_eq!(pinned.module(&image).await.unwrap_err().kind, ErrorKind::TooLarge);
    let tag = OciSource { image: lies.image(":v1").to_string(), ..OciSource::default() };
    assert_eq!(fetch(&tag, None, LIMIT).await.unwrap_err().kind, ErrorKind::Invalid, "a tag pins nothing");
}

#[tokio::test]
async fn failures_are_told_apart() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/v2/policies/p/manifests/gone" => not_found(),
        "/v2/policies/p/manifests/large" => ok(vec![b' '; 1 << 20]),
        "/v2/policies/p/manifests/loop" => (302, vec![("location".into(), asked.path.clone())], Vec::new()),
        "/v2/policies/p/manifests/away" => (302, vec![("location".into(), "http://192.0.2.1/p".into())], Vec::new()),
        _ => (500, Vec::new(), b"<html>".to_vec()),
    });
    for (tag, kind, words) in [
        ("gone", ErrorKind::NotFound, "does not have"),
        ("large", ErrorKind::TooLarge, "more than the 262144 bytes"),
        ("loop", ErrorKind::Refused, "more than 5 times"),
        ("away", ErrorKind::Invalid, "only loopback addresses"),
        ("broken", ErrorKind::Refused, "HTTP 500"),
    ] {
        let error = server.registry(&format!(":{tag}"), None).manifest().await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let image = Reference::parse(&format!("{nobody}/p")).unwrap();
    let error = Registry::new(image.clone(), Trust::default(), None, LIMIT).manifest().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreachable);
    assert!(error.to_string().starts_with(&format!("{nobody} cannot be reached: connection refused")), "{error}");
    // Who listens and says nothing does not hold anybody up.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let image = Reference::parse(&format!("{}/p", silent.local_addr().unwrap())).unwrap();
    let begun = Instant::now();
    let registry = Registry::new(image, Trust::default(), None, Duration::from_millis(200));
    assert_eq!(registry.manifest().await.unwrap_err().kind, ErrorKind::Unreachable);
    assert!(begun.elapsed() < LIMIT);
}

#[tokio::test]
async fn a_file_of_a_web_server_has_its_digest_or_is_none() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/p.wasm?v=1" => ok(MODULE),
        "/private" => (403, Vec::new(), Vec::new()),
        "/endless" => (200, Vec::new(), vec![0; MAX_MODULE + 1]),
        _ => (404, Vec::new(), Vec::new()),
    });
    let source = |path: &str, module: &[u8]| UrlSource {
        url: format!("http://{}{path}", server.address),
        sha256: sha256(module),
        ca_certificates: None,
    };
    assert_eq!(file(&source("/p.wasm?v=1", MODULE), LIMIT).await.unwrap(), MODULE);
    for (source, kind) in [
        (source("/p.wasm?v=1", b"other"), ErrorKind::WrongDigest),
        (source("/private", MODULE), ErrorKind::Unauthorized),
        (source("/gone", MODULE), ErrorKind::NotFound),
        (source("/endless", MODULE), ErrorKind::TooLarge),
        (UrlSource { sha256: "AB".to_owned(), ..source("/p.wasm?v=1", MODULE) }, ErrorKind::Invalid),
        (UrlSource { url: "http://192.0.2.1/p".to_owned(), ..source("", MODULE) }, ErrorKind::Invalid),
    ] {
        let error = file(&source, LIMIT).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
}
