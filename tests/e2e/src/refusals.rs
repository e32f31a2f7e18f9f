//! What a hub answers to somebody, and which part of it refused.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use http::Request;
use http::header::CONTENT_TYPE;
use kube::{Client, Error};
use serde_json::{Value, json};

/// What an API request came to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// It passed.
    Passed,
    /// The static baseline refused it, with this code.
    Baseline(String),
    /// The webhook refused it, with this code.
    Webhook(String),
    /// This entry of the webhook's configuration was not answered.
    Unanswered(String),
}

impl Answer {
    /// Of what the hub answered.
    ///
    /// # Panics
    ///
    /// When something else refused it: then nobody can tell what these would have done.
    pub fn of(what: &str, answer: Result<Value, Error>) -> Self {
        let status = match answer {
            Ok(_) => return Self::Passed,
            Err(Error::Api(status)) => status,
            Err(error) => panic!("{what}: no answer: {error}"),
        };
        let entry = |before: &str| {
            let (_, rest) = status.message.split_once(before)?;
            rest.split_once(".policy.kubectl-ocm.dev\"").map(|(entry, _)| entry.to_owned())
        };
        let code = || {
            let code = status.message.trim_end_matches(')').rsplit(['(', ' ']).next().unwrap_or_default();
            code.to_owned()
        };
        if status.message.contains("baseline.kubectl-ocm.dev' denied request: ") {
            Self::Baseline(code())
        } else if let Some(entry) = entry("failed calling webhook \"") {
            Self::Unanswered(entry)
        } else if status.message.contains(".policy.kubectl-ocm.dev\" denied the request: ") {
            Self::Webhook(code())
        } else {
            panic!("{what}: by neither: {}", status.message)
        }
    }

    /// The code that the baseline refused it with.
    pub fn baseline(&self) -> Option<&str> {
        if let Self::Baseline(code) = self { Some(code) } else { None }
    }

    /// The code that the webhook refused it with.
    pub fn webhook(&self) -> Option<&str> {
        if let Self::Webhook(code) = self { Some(code) } else { None }
    }
}

/// Somebody who sends requests to a hub.
#[derive(Clone)]
pub struct Sender {
    client: Client,
    /// The headers by which an administrator sends them as somebody else.
    acts_as: Vec<(String, String)>,
}

impl Sender {
    /// With credentials of their own.
    pub fn new(client: Client) -> Self {
        Self { client, acts_as: Vec::new() }
    }

    /// The agent of a cluster, as whom an administrator sends requests.
    pub fn agent(administrator: Client, cluster: &str) -> Self {
        let own = format!("system:open-cluster-management:{cluster}");
        let groups = [own.clone(), "system:open-cluster-management:managed-clusters".to_owned()];
        Self::user(administrator, &json!({"username": format!("{own}:a1"), "groups": groups}))
    }

    /// Somebody, by what an API server knows of users: their names, UIDs, groups and whatever else it has noted of them.
    pub fn user(administrator: Client, user: &Value) -> Self {
        let texts = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let name = user["username"].as_str().unwrap().to_owned();
        let mut acts_as = vec![("Impersonate-User".to_owned(), name)];
        acts_as.extend(user["uid"].as_str().map(|uid| ("Impersonate-Uid".to_owned(), uid.to_owned())));
        acts_as.extend(texts(&user["groups"]).into_iter().map(|group| ("Impersonate-Group".to_owned(), group)));
        for (key, values) in user["extra"].as_object().into_iter().flatten() {
            // A slash may not be part of the name of a header.
            let header = format!("Impersonate-Extra-{}", key.replace('/', "%2F"));
            acts_as.extend(texts(values).into_iter().map(|value| (header.clone(), value)));
        }
        Self { client: administrator, acts_as }
    }

    /// A user of this name in the groups that agents of these clusters have with an AWS identity, as whom an administrator sends
    /// requests.
    pub fn aws(administrator: Client, user: &str, clusters: &[&str]) -> Self {
        let groups: Vec<String> = clusters.iter().map(|cluster| format!("open-cluster-management:{cluster}")).collect();
        Self::user(administrator, &json!({"username": user, "groups": groups}))
    }

    /// Sends a request; with `dry_run` nothing is stored.
    ///
    /// # Errors
    /// When the hub refuses it.
    pub async fn send(&self, call: &Call, dry_run: bool) -> Result<Value, Error> {
        let kind = if call.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", call.path, if dry_run { "?dryRun=All" } else { "" }))
            .header(CONTENT_TYPE, kind);
        for (header, value) in &self.acts_as {
            request = request.header(header, value);
        }
        self.client.request(request.body(call.body.to_string().into_bytes()).unwrap()).await
    }
}

/// One API request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method of HTTP.
    pub method: &'static str,
    /// The path.
    pub path: String,
    /// What is sent.
    pub body: Value,
}

/// The path of managed clusters.
pub const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
/// The path of certificate requests.
pub const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

impl Call {
    /// Creates an object below a path.
    pub fn create(path: &str, body: Value) -> Self {
        Self { method: "POST", path: path.to_owned(), body }
    }

    /// Changes an object, as clusteradm and agents do.
    pub fn patch(path: &str, name: &str, body: Value) -> Self {
        Self { method: "PATCH", path: format!("{path}/{name}"), body }
    }

    /// Gives a certificate request a condition, as everybody does who approves or denies one.
    pub fn conclude(mut request: Value, condition: &str) -> Self {
        let name = request.pointer("/metadata/name").and_then(Value::as_str).unwrap().to_owned();
        request["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        request["status"]["conditions"] =
            json!([{"type": condition, "status": "True", "reason": "Test", "message": "by a test"}]);
        Self { method: "PUT", path: format!("{REQUESTS}/{name}/approval"), body: request }
    }
}
