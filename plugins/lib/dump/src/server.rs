//! A dump as an API server answers: what a client asks for, out of the store.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use ocm_core::{Failure, Reason};
use serde_json::{Value, json};
use tower::{BoxError, Service};

use crate::kind::{Kind, NAMESPACES, SECRETS};
use crate::layout::LogName;
use crate::query::{Query, decode};
use crate::store::Store;

/// How a page ends after which a request finds out that there may be more.
const MORE: &str = "more";

/// Answers requests. Nothing is sent anywhere.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) store: Arc<Store>,
    /// The time of the dump.
    pub(crate) now: Timestamp,
}

/// An answer.
enum Answer {
    Json(u16, Value),
    Text(u16, String),
}

impl Answer {
    /// As an API server says it of an object.
    fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", kind.plural);
        Self::Json(
            404,
            json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 404,
            "reason": "NotFound", "message": message}),
        )
    }

    /// As an API server says it of a kind.
    fn not_served() -> Self {
        Self::Text(404, "404 page not found\n".to_owned())
    }
}

impl Service<Request<Body>> for Server {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let uri = request.uri();
        let answer = self.answer(request.method(), uri.path(), uri.query().unwrap_or_default());
        let response = answer.map_err(BoxError::from).and_then(|answer| {
            let (code, body) = match answer {
                Answer::Json(code, value) => (code, ocm_kube::readable(serde_json::to_vec(&value)?)),
                Answer::Text(code, text) => (code, text.into_bytes()),
            };
            Ok(Response::builder().status(code).body(Body::from(body))?)
        });
        ready(response)
    }
}

impl Server {
    fn answer(&self, method: &Method, path: &str, query: &str) -> Result<Answer, Failure> {
        let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return Err(not_held(path)),
        };
        let query = Query::parse(query).map_err(|part| Failure::other(format!("a dump cannot be asked for {part}")))?;
        if *method != Method::GET {
            // Whoever asks who they are hears what time it is.
            let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
                "metadata": {"creationTimestamp": self.now.to_string()}, "status": {}});
            return match rest {
                ["selfsubjectreviews"] => Ok(Answer::Json(201, review)),
                _ => Err(not_held(path)),
            };
        }
        let kind = |plural: &str| Kind::of_resource(group, plural).ok_or_else(|| not_held(plural));
        match rest {
            [] => self.resources(group),
            ["namespaces", name] if group.is_empty() => self.one(&NAMESPACES, None, name),
            ["namespaces", namespace, "pods", pod, "log"] if group.is_empty() => self.log(namespace, pod, &query),
            ["namespaces", namespace, plural] => self.list(kind(plural)?, Some(namespace), &query),
            ["namespaces", namespace, plural, name] => self.one(kind(plural)?, Some(namespace), name),
            [plural] => self.list(kind(plural)?, None, &query),
            [plural, name] => self.one(kind(plural)?, None, name),
            _ => Err(not_held(path)),
        }
    }

    /// What a group of managed clusters serves: whether a cluster is a hub.
    fn resources(&self, group: &str) -> Result<Answer, Failure> {
        let kind = &crate::kind::CLUSTERS;
        if group != kind.group {
            return Err(not_held(group));
        }
        match self.store.serves(kind) {
            Some(true) => {
                let resource = json!({"name": kind.plural, "singularName": "", "namespaced": kind.is_namespaced,
                    "kind": kind.name, "verbs": ["get", "list"]});
                let version = format!("{group}/v1");
                let list = json!({"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": version,
                    "resources": [resource]});
                Ok(Answer::Json(200, list))
            }
            Some(false) => Ok(Answer::not_served()),
            None => Err(self.store.unknown(kind, None)),
        }
    }

    fn one(&self, kind: &'static Kind, namespace: Option<&str>, name: &str) -> Result<Answer, Failure> {
        if self.store.serves(kind) == Some(false) {
            return Ok(Answer::not_served());
        }
        Ok(match self.store.get(kind, namespace, name)? {
            Some(object) => Answer::Json(200, object.clone()),
            None => Answer::not_found(kind, name),
        })
    }

    fn list(&self, kind: &'static Kind, namespace: Option<&str>, query: &Query) -> Result<Answer, Failure> {
        let store = &self.store;
        if store.serves(kind) == Some(false) {
            return Ok(Answer::not_served());
        }
        let selected = || store.of(kind, namespace).filter(|(_, object)| query.selects(object));
        // There is one object of a name in a namespace, and among what is in none.
        let is_one = query.name().is_some() && (namespace.is_some() || !kind.is_namespaced);
        let is_whole = *kind != SECRETS && (store.knows(kind, namespace) || (is_one && selected().next().is_some()));
        // Whoever asks for pages can use what there is before hearing that it may not be all.
        let is_end = query.from.as_deref() == Some(MORE);
        let Some(limit) = query.limit.filter(|_| !is_end).or(is_whole.then_some(usize::MAX)) else {
            return Err(store.unknown(kind, namespace));
        };
        let from = query.from.as_deref().and_then(|from| from.parse().ok()).unwrap_or(0_usize);
        let mut left = selected().skip(from);
        let items: Vec<&Value> = left.by_ref().take(limit).map(|(_, object)| object).collect();
        let next = match left.next() {
            Some(_) => Some((from + items.len()).to_string()),
            None if is_whole => None,
            None if items.is_empty() => return Err(store.unknown(kind, namespace)),
            None => Some(MORE.to_owned()),
        };
        let version = items.first().and_then(|item| item.get("apiVersion")).cloned().unwrap_or(json!("v1"));
        Ok(Answer::Json(
            200,
            json!({"apiVersion": version, "kind": format!("{}List", kind.name),
                "metadata": {"resourceVersion": "0", "continue": next}, "items": items}),
        ))
    }

    /// The last lines of a log, as the container wrote them.
    fn log(&self, namespace: &str, pod: &str, query: &Query) -> Result<Answer, Failure> {
        let name = LogName {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            container: query.other("container").unwrap_or_default().to_owned(),
            is_previous: query.other("previous") == Some("true"),
        };
        let text = self.store.log(&name).ok_or_else(|| not_held("this log"))?;
        let wanted = query.other("tailLines").and_then(|lines| lines.parse().ok()).unwrap_or(usize::MAX);
        let lines: Vec<&str> = text.lines().map(without_time).collect();
        Ok(Answer::Text(200, lines[lines.len().saturating_sub(wanted)..].join("\n")))
    }
}

/// A line of a log without the time that was put in front of it.
fn without_time(line: &str) -> &str {
    match line.split_once(' ') {
        Some((time, rest)) if time.parse::<Timestamp>().is_ok() => rest,
        _ => line,
    }
}

fn not_held(what: &str) -> Failure {
    Failure::new(Reason::NotInDump, format!("the dump has no {what}"))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;
    use crate::layout::Place;

    fn lease(namespace: &str, name: &str) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": namespace, "name": name}})
    }

    fn server(documents: Vec<Value>) -> Server {
        let mut store = Store::default();
        for document in documents {
            store.add(document, &Place::Plain);
        }
        Server { store: Arc::new(store), now: Timestamp::UNIX_EPOCH }
    }

    fn list_of(items: Vec<Value>) -> Value {
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    fn ask(server: &Server, path: &str) -> Result<(u16, Value), String> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match server.answer(&Method::GET, path, query) {
            Ok(Answer::Json(code, value)) => Ok((code, value)),
            Ok(Answer::Text(code, text)) => Ok((code, json!(text))),
            Err(failure) => Err(failure.to_string()),
        }
    }

    fn names(answer: &Value) -> Vec<&str> {
        let items = answer["items"].as_array().into_iter().flatten();
        items.filter_map(|item| item.pointer("/metadata/name")?.as_str()).collect()
    }

    const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";

    #[test]
    fn lists_come_in_pages() {
        let server = server(vec![list_of(vec![lease("n", "a"), lease("n", "b"), lease("m", "c")])]);
        let (_, first) = ask(&server, &format!("{LEASES}?limit=2")).unwrap();
        assert_eq!((names(&first), &first["metadata"]["continue"]), (vec!["c", "a"], &json!("2")));
        let (_, second) = ask(&server, &format!("{LEASES}?limit=2&continue=2")).unwrap();
        assert_eq!((names(&second), &second["metadata"]["continue"]), (vec!["b"], &Value::Null));
        let (_, one) = ask(&server, &format!("{LEASES}?fieldSelector=metadata.name%3Da")).unwrap();
        assert_eq!(names(&one), ["a"]);
        let none = "/apis/coordination.k8s.io/v1/namespaces/none/leases";
        assert_eq!(names(&ask(&server, none).unwrap().1), Vec::<&str>::new());
    }

    #[test]
    fn what_clients_cannot_read_is_no_part_of_an_answer() {
        let mut lease = lease("n", "a");
        lease["spec"] = json!({"renewTime": "10000-01-01T11:59:59.000000Z"});
        let mut server = server(vec![list_of(vec![lease])]);
        let response =
            server.call(Request::get(format!("{LEASES}?limit=5")).body(Body::empty()).unwrap()).into_inner().unwrap();
        let body = pin!(response.into_body().collect_bytes());
        let Poll::Ready(Ok(body)) = body.poll(&mut Context::from_waker(Waker::noop())) else { panic!("it is there") };
        let list: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(list["items"][0]["spec"]["renewTime"], "9999-12-28T11:59:59.000000Z");
    }

    #[test]
    fn what_may_not_be_all_is_shown_to_those_who_ask_for_pages_and_ends_with_a_failure() {
        let server = server(vec![lease("n", "a")]);
        assert_eq!(ask(&server, LEASES).unwrap_err(), "the dump may not hold all leases");
        let (_, page) = ask(&server, &format!("{LEASES}?limit=5")).unwrap();
        assert_eq!((names(&page), &page["metadata"]["continue"]), (vec!["a"], &json!("more")));
        assert!(ask(&server, &format!("{LEASES}?limit=5&continue=more")).is_err());
        let within = "/apis/coordination.k8s.io/v1/namespaces/n/leases";
        assert!(ask(&server, within).is_err());
        // One name in one namespace is one object.
        let by_name = |name: &str| ask(&server, &format!("{within}?limit=5&fieldSelector=metadata.name%3D{name}"));
        assert_eq!(by_name("a").unwrap().1["metadata"]["continue"], Value::Null);
        assert!(by_name("b").is_err());
        assert!(ask(&server, &format!("{LEASES}?limit=5&fieldSelector=metadata.name%3Db")).is_err());
    }

    #[test]
    fn objects_kinds_and_the_time_are_answered_as_by_an_api_server() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "x"}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        let server = server(vec![list_of(vec![definition, namespace, lease("n", "a")])]);
        assert_eq!(ask(&server, "/api/v1/namespaces/n").unwrap().0, 200);
        assert_eq!(ask(&server, "/api/v1/namespaces/m").unwrap().0, 404);
        let (code, missing) = ask(&server, "/apis/coordination.k8s.io/v1/namespaces/n/leases/b").unwrap();
        assert_eq!((code, &missing["reason"]), (404, &json!("NotFound")));
        let hub = "/apis/cluster.open-cluster-management.io/v1";
        for path in [hub.to_owned(), format!("{hub}/managedclusters"), format!("{hub}/managedclusters/c1")] {
            assert_eq!(ask(&server, &path).unwrap(), (404, json!("404 page not found\n")));
        }
        assert!(ask(&server, "/version").is_err() && ask(&server, "/api/v1/nodes").is_err());
        let review = server.answer(&Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews", "").unwrap();
        assert!(
            matches!(review, Answer::Json(201, review) if review["metadata"]["creationTimestamp"] == "1970-01-01T00:00:00Z")
        );
        assert!(server.answer(&Method::DELETE, "/api/v1/namespaces/n", "").is_err(), "nothing is changed");
    }

    #[test]
    fn logs_are_quoted_as_the_container_wrote_them() {
        let mut store = Store::default();
        let [namespace, pod, container] = ["n", "p", "c"].map(str::to_owned);
        let text = "2026-03-01T12:00:00.5Z one\n2026-03-01T12:00:01Z two\nthree\n".to_owned();
        store.add_log(LogName { namespace, pod, container, is_previous: true }, text);
        let server = Server { store: Arc::new(store), now: Timestamp::UNIX_EPOCH };
        let path = "/api/v1/namespaces/n/pods/p/log?container=c&tailLines=2";
        assert!(ask(&server, path).is_err());
        assert_eq!(ask(&server, &format!("{path}&previous=true")).unwrap().1, json!("two\nthree"));
    }
}
