//! What is read of reviews and objects of a real API server.

use k8s_openapi::ByteString;
use ocm_policy_abi::{CHANGES_SHOWN, Operation, Request, Requester, Signature};
use serde_json::{Map as Object, Value, json};

use super::cluster::{MOST_BYTES, MOST_ENTRIES, MOST_ITEMS};
use super::*;
use crate::json::sha256_hex;

#[expect(clippy::disallowed_methods, reason = "recorded reviews are files")]
fn sample(name: &str) -> Value {
    let path = format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn asking(wants_object: bool) -> Asking {
    Asking { id: "q".into(), now: 1_700_000_000_000, attempt: 2, wants_object, ..Asking::default() }
}

fn with<T>(name: &str, test: impl FnOnce(Request<'_>) -> T) -> T {
    let review = sample(name);
    test(from_admission(request_of(&review).unwrap(), &asking(false)).unwrap())
}

#[test]
fn a_creation() {
    with("cluster-create", |request| {
        assert_eq!((&*request.id, request.operation, request.now), ("1", Operation::Create, 1_700_000_000_000));
        assert_eq!((request.attempt, request.dry_run), (2, false));
        let credentials = request.requester.extra.get("authentication.kubernetes.io/credential-id");
        assert_eq!(credentials.unwrap()[0], "JTI=id-of-token");
        let cluster = request.cluster.unwrap();
        assert_eq!((&*cluster.name, cluster.accepted, cluster.lease_duration_seconds), ("c1", false, Some(60)));
        assert_eq!(cluster.created, Some(1_795_215_756_000));
        assert!(request.previous.is_none() && request.object.is_none());
    });
    with("cluster-apply-dry-run", |request| {
        assert!(request.dry_run);
        assert_eq!(request.resource.unwrap().field_manager.unwrap(), "gitops");
    });
    with("cluster-generate-name", |request| {
        assert_eq!((request.operation, request.resource.unwrap().name), (Operation::Create, None));
        assert_eq!(request.cluster.unwrap().name, "");
    });
}

#[test]
fn acceptance_shows_both_sides_and_does_not_say_who_asked_for_the_certificate() {
    with("cluster-accept", |request| {
        // So whoever accepts is who is judged.
        assert_eq!(asking_user(&request), &*request.requester.username);
        assert_eq!((request.operation, request.creator), (Operation::Accept, None));
        assert!(request.cluster.unwrap().accepted && !request.previous.unwrap().accepted);
    });
    let mut review = sample("cluster-accept");
    // Only the change is acceptance: later writes to an accepted cluster are updates.
    review["request"]["oldObject"]["spec"]["hubAcceptsClient"] = json!(true);
    let request = from_admission(&review["request"], &asking(false)).unwrap();
    assert_eq!((request.operation, request.creator), (Operation::Update, None));
    with("cluster-status", |request| {
        assert_eq!(request.operation, Operation::Update);
        assert_eq!(request.resource.unwrap().subresource.unwrap(), "status");
        assert_eq!(request.cluster.unwrap().claims[0].value, "other");
    });
}

#[test]
fn obligations_are_declared_where_somebody_carries_them_out() {
    let review = sample("cluster-accept");
    let declared = |review: &Value, carries_out| {
        let request = from_admission(&review["request"], &Asking { carries_out, ..asking(false) }).unwrap();
        request.obligations.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!((declared(&review, true), declared(&review, false)), (vec!["expire-acceptance".to_owned()], vec![]));
    assert!(declared(&sample("cluster-create"), true).is_empty(), "nothing is accepted");
}

#[test]
fn a_deletion_without_a_name_shows_what_is_deleted() {
    with("cluster-delete-collection", |request| {
        assert_eq!(request.operation, Operation::Delete);
        assert_eq!(request.resource.unwrap().name.unwrap(), "c1");
        assert!(request.previous.is_none());
        let cluster = request.cluster.unwrap();
        assert!(cluster.deleting && cluster.accepted);
        assert_eq!(cluster.owners[0].kind, "Namespace");
        assert_eq!(cluster.taints[0].effect, "NoSelect");
        assert_eq!(cluster.client_configs[0].ca_sha256.as_deref(), Some(sha256_hex(b"a bundle").as_str()));
        assert_eq!(cluster.conditions[0].since, Some(1_795_215_893_000));
    });
}

#[test]
fn what_lets_a_cluster_in_is_asked_about_as_a_join_of_the_cluster_as_it_was() {
    let accepted = with("cluster-accept", |request| request.into_owned());
    let csr = with("csr-approval", |request| request.into_owned().csr.unwrap());
    let asked = join_of(&accepted, csr.clone());
    assert_eq!((asked.operation, &asked.requester), (Operation::Join, &csr.requester));
    assert_eq!(asked.creator.as_ref(), Some(&csr.requester));
    assert!(!asked.cluster.unwrap().accepted && asked.previous.is_none());
    assert_eq!(asked.obligations, [""; 0], "nobody would carry them out");
    // Neither renewals nor what was denied registers anybody; the label of an add-on hides nothing.
    let mut addon = csr.clone();
    let label = |key: &'static str| ocm_policy_abi::Text::from(key);
    let all = csr.labels.iter().map(|(key, value)| (ocm_policy_abi::Text::from(key.to_owned()), value.clone()));
    addon.labels = all.chain([(label("open-cluster-management.io/addon-name"), label("app"))]).collect();
    assert!(is_registration(&csr) && is_registration(&addon));
    let mut renewal = csr.clone();
    renewal.requester.username = "system:open-cluster-management:c1:agent-1".into();
    let denied = ocm_policy_abi::Csr { state: "Denied".into(), ..csr.clone() };
    assert!(!is_registration(&renewal) && !is_registration(&denied));
    // Nor does an agent that has its rights by an AWS identity.
    let mut by_aws = csr.clone();
    (by_aws.requester.username, by_aws.requester.groups) = ("c1".into(), vec!["open-cluster-management:c1".into()]);
    assert!(!is_registration(&by_aws));
    by_aws.requester.groups.clear();
    assert!(is_registration(&by_aws), "anybody may be called so");
}

#[test]
fn a_certificate_request_is_for_the_cluster_of_which_all_of_it_speaks() {
    let csr = with("csr-approval", |request| request.into_owned().csr.unwrap());
    assert_eq!(agents_cluster(&csr), Some("c1"));
    assert!(registers(&csr, "c1") && !registers(&csr, "c10"));
    let elsewhere = ocm_policy_abi::Csr { signer: "example.com/own".into(), ..csr.clone() };
    let denied = ocm_policy_abi::Csr { state: "Denied".into(), ..csr.clone() };
    assert!(!registers(&elsewhere, "c1") && !registers(&denied, "c1"));
    let two = ocm_policy_abi::Csr {
        common_names: vec![csr.common_names[0].clone(), "system:open-cluster-management:evil:x".into()],
        ..csr.clone()
    };
    let groups = ocm_policy_abi::Csr { organizations: vec!["system:open-cluster-management:c".into()], ..csr.clone() };
    let other = ocm_policy_abi::Csr { common_names: vec!["system:open-cluster-management:c10:x".into()], ..csr };
    assert_eq!([&two, &groups, &other].map(agents_cluster), [None; 3]);
    assert_eq!([&two, &groups, &other].map(|csr| registers(csr, "c1")), [false; 3]);
}

#[test]
fn a_new_certificate_request_is_pending_and_its_requester_is_who_asks() {
    with("csr-create-before-mutation", |request| {
        assert_eq!((request.operation, &request.creator), (Operation::Request, &None));
        let resource = request.resource.unwrap();
        assert_eq!((&*resource.operation, resource.name), ("CREATE", None));
        let csr = request.csr.unwrap();
        // The object claims another requester and that it is approved.
        assert_eq!((&csr.requester, &*csr.state), (&request.requester, "Pending"));
        assert_eq!(csr.common_names, ["system:open-cluster-management:c1:agent-1"]);
        assert_eq!((csr.organizations.len(), csr.signature), (2, Signature::Valid));
        assert_eq!((&*csr.key.algorithm, csr.key.bits, csr.spki_sha256.len()), ("ECDSA", 256, 64));
        assert_eq!((csr.lifetime_seconds, csr.unreadable), (Some(31_536_000), None));
    });
}

#[test]
fn approval_and_denial_are_told_apart() {
    for (name, adds) in [("csr-approval", "Approved"), ("csr-denial", "Denied")] {
        with(name, |request| {
            assert_eq!(request.operation, Operation::Approve);
            let csr = request.csr.unwrap();
            assert_eq!((csr.adds_condition.unwrap(), csr.state), (adds.into(), "Pending".into()));
            assert_ne!(csr.requester, request.requester);
            assert_eq!(request.creator, Some(csr.requester));
        });
    }
    with("csr-signed", |request| {
        assert_eq!(request.operation, Operation::Admit);
        let csr = request.csr.unwrap();
        assert_eq!((csr.adds_condition, csr.state), (None, "Approved".into()));
    });
}

#[test]
fn an_approval_cannot_swap_the_request() {
    let mut review = sample("csr-approval");
    review["request"]["object"]["spec"]["request"] = json!("bm90aGluZw==");
    review["request"]["object"]["spec"]["username"] = json!("system:admin");
    let request = from_admission(&review["request"], &asking(false)).unwrap();
    let csr = request.csr.unwrap();
    assert!(csr.unreadable.is_none() && csr.requester.username.ends_with("agent-registration-bootstrap"));
}

#[test]
fn an_approval_is_never_hidden_behind_another_condition() {
    let mut review = sample("csr-denial");
    let conditions = review["request"]["object"]["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({"type": "Approved", "status": "True"}));
    let request = from_admission(&review["request"], &asking(false)).unwrap();
    assert_eq!(request.csr.unwrap().adds_condition.unwrap(), "Approved");
}

#[test]
fn everything_else_is_admitted() {
    let review = sample("work-create");
    let request = from_admission(&review["request"], &asking(true)).unwrap();
    assert_eq!((request.operation, request.cluster, request.csr), (Operation::Admit, None, None));
    assert_eq!(request.resource.unwrap().namespace.unwrap(), "c1");
    assert_eq!(request.object.unwrap()["kind"], "ManifestWork");
}

#[test]
fn plain_objects_are_asked_about_as_well() {
    let (csr, cluster) = (sample("stored-csr"), sample("stored-cluster"));
    assert!(of_csr(Operation::Join, &csr, &asking(false)).is_err());
    let request = of_csr(Operation::Approve, &csr, &asking(false)).unwrap();
    assert_eq!((&*request.id, request.operation, request.object), ("q", Operation::Approve, None));
    assert_eq!(request.requester, request.csr.unwrap().requester);
    let request = of_cluster(Operation::Accept, &cluster, Requester::default(), &asking(true)).unwrap();
    assert_eq!((request.operation, request.object.as_ref()), (Operation::Accept, Some(&cluster)));
    let request = join(&csr, &cluster, &asking(false)).unwrap();
    assert_eq!((request.operation, request.cluster.unwrap().name), (Operation::Join, "c1".into()));
    assert_eq!(request.requester.username, request.csr.unwrap().requester.username);
    assert!(of_cluster(Operation::Admit, &cluster, Requester::default(), &asking(false)).is_err());
}

#[test]
fn what_is_new_in_the_contract_is_read() {
    let mut review = sample("cluster-delete-collection");
    let request = &mut review["request"];
    request["userInfo"]["extra"] = json!({"authentication.kubernetes.io/credential-id": ["X509SHA256=00FF"]});
    request["options"] = json!({"kind": "DeleteOptions", "propagationPolicy": "Foreground", "gracePeriodSeconds": 5});
    let old = &mut request["oldObject"];
    old["metadata"]["resourceVersion"] = json!("12");
    old["metadata"]["generation"] = json!(3);
    old["metadata"]["ownerReferences"][0]["controller"] = json!(true);
    old["spec"]["taints"] = json!([{"key": "k", "effect": "NoSelect", "timeAdded": "2026-11-20T23:04:52Z"}]);
    old["status"]["version"] = json!({"kubernetes": "v1.35.4"});
    old["status"]["conditions"] = json!([{"type": "A", "status": "True", "reason": "B", "message": "told"}]);
    let request = from_admission(request, &asking(false)).unwrap();
    assert_eq!(request.requester.certificate_sha256.as_deref(), Some("00ff"));
    let resource = request.resource.unwrap();
    let options: Vec<_> = resource.options.iter().map(|(name, value)| (name, value.as_str())).collect();
    assert_eq!(options, [("gracePeriodSeconds", "5"), ("propagationPolicy", "Foreground")]);
    let cluster = request.cluster.unwrap();
    assert_eq!((cluster.resource_version.as_deref(), cluster.generation), (Some("12"), Some(3)));
    assert_eq!((cluster.owners[0].uid.as_str(), cluster.owners[0].controller), ("x", true));
    assert_eq!(
        (cluster.taints[0].added, cluster.kubernetes_version.as_deref()),
        (Some(1_795_215_892_000), Some("v1.35.4"))
    );
    assert_eq!((&*cluster.conditions[0].message, cluster.truncated), ("told", Vec::new()));
}

#[test]
fn what_agents_inflate_is_cut_and_said_so() {
    let mut review = sample("cluster-status");
    let claims: Vec<_> = (0..5000).map(|n| json!({"name": format!("c{n}"), "value": "v"})).collect();
    review["request"]["object"]["status"]["clusterClaims"] = json!(claims);
    let message = "ä".repeat(300_000);
    review["request"]["object"]["status"]["conditions"] = json!([{"type": "A", "status": "True", "message": message}]);
    let many: Object<_, _> = (0..5000).map(|n| (format!("agent.example.com/{n}"), json!(""))).collect();
    review["request"]["object"]["metadata"]["annotations"] = json!(many);
    let request = from_admission(&review["request"], &asking(false)).unwrap();
    let cluster = request.cluster.unwrap();
    assert_eq!((cluster.claims.len(), cluster.conditions[0].message.len()), (MOST_ITEMS, MOST_BYTES));
    assert_eq!(cluster.annotations.len(), MOST_ENTRIES);
    assert_eq!(cluster.truncated, ["annotations", "claims", "conditions"]);
}

#[test]
fn no_number_of_other_labels_and_annotations_hides_those_that_the_hub_gives_a_meaning() {
    let mut review = sample("cluster-create");
    let many = |last: &[&str]| -> Object<_, _> {
        let fillers = (0..MOST_ENTRIES).map(|n| (format!("a-{n:04}"), json!("")));
        fillers.chain(last.iter().map(|key| ((*key).to_owned(), json!("told")))).collect()
    };
    let set = "cluster.open-cluster-management.io/clusterset";
    let noted = ["kubectl-ocm/creator-credential", "open-cluster-management.io/automatically-accepted-on"];
    review["request"]["object"]["metadata"]["labels"] = json!(many(&[set, "z-other"]));
    review["request"]["object"]["metadata"]["annotations"] = json!(many(&noted));
    let request = from_admission(&review["request"], &asking(false)).unwrap();
    let cluster = request.cluster.unwrap();
    assert_eq!((cluster.labels.len(), cluster.annotations.len()), (MOST_ENTRIES, MOST_ENTRIES));
    assert_eq!(cluster.truncated, ["annotations", "labels"]);
    assert!(cluster.labels.contains(set) && !cluster.labels.contains("z-other"));
    assert!(noted.iter().all(|key| cluster.annotations.contains(key)));
}

#[test]
fn no_number_of_labels_hides_what_an_update_changes() {
    let fillers = |count: usize| (0..count).map(|n| (format!("a-{n:04}"), json!("")));
    let of = |count: usize, also: &[&str]| -> Object<_, _> {
        fillers(count).chain(also.iter().map(|key| ((*key).to_owned(), json!("")))).collect()
    };
    let ask = |old: Object<String, Value>, new: Object<String, Value>| {
        let mut review = sample("cluster-accept");
        review["request"]["oldObject"]["metadata"]["labels"] = json!(old);
        review["request"]["object"]["metadata"]["labels"] = json!(new);
        let request = from_admission(&review["request"], &asking(false)).unwrap().into_owned();
        (request.cluster.unwrap(), request.previous.unwrap())
    };
    let (cluster, previous) = ask(of(2000, &["z-gone"]), of(2000, &["internal/x"]));
    assert!(cluster.labels.contains("internal/x") && previous.labels.contains("z-gone"));
    assert_eq!((cluster.labels.len(), previous.labels.len()), (MOST_ENTRIES, MOST_ENTRIES));
    assert_eq!(cluster.more.get(CHANGES_SHOWN), Some(&json!(["labels"])));
    let (cluster, _) = ask(of(2000, &[]), of(100, &[]));
    assert!(cluster.more.is_empty(), "more is taken away than is shown");
    let (cluster, _) = ask(of(100, &[]), of(2000, &["internal/x"]));
    assert_eq!((&*cluster.truncated, cluster.more.is_empty()), (&["labels".into()][..], true));
    let (cluster, _) = ask(of(1000, &[]), of(1100, &[]));
    assert_eq!((&*cluster.truncated, cluster.more.is_empty()), (&["labels".into()][..], true), "it is inflated now");
    let (cluster, _) = ask(of(100, &[]), of(100, &["b"]));
    assert!(cluster.truncated.is_empty() && cluster.more.is_empty(), "all of it is shown");
}

#[test]
fn a_label_that_an_update_leaves_as_it_is_is_shown_before_and_after_it_or_not_at_all() {
    type Labels = Object<String, Value>;
    let fillers = |range: std::ops::Range<usize>| range.map(|n| (format!("a-{n:04}"), json!("")));
    let of = |range: std::ops::Range<usize>, also: &[(&str, &str)]| -> Labels {
        fillers(range).chain(also.iter().map(|(key, value)| ((*key).to_owned(), json!(value)))).collect()
    };
    let kept = [("env", "prod"), ("z", "")];
    for (old, new) in [
        // One is added, and the last one that was shown has to make room on both sides.
        (of(0..1023, &kept), of(0..1023, &[("env", "prod"), ("z", ""), ("new", "")])),
        (of(0..1023, &[("env", "prod"), ("z", ""), ("gone", "")]), of(0..1023, &kept)),
        // One side is small enough to be shown as a whole.
        (of(0..2000, &kept), of(0..990, &kept)),
        (of(0..2000, &kept), of(1500..2000, &kept)),
        (of(0..100, &kept), of(0..1900, &kept)),
        (of(0..1023, &kept), of(0..1023, &[("env", "dev"), ("z", "")])),
        (of(0..3000, &kept), of(2000..5000, &kept)),
    ] {
        let mut review = sample("cluster-accept");
        review["request"]["oldObject"]["metadata"]["labels"] = json!(old);
        review["request"]["object"]["metadata"]["labels"] = json!(new);
        let request = from_admission(&review["request"], &asking(false)).unwrap().into_owned();
        let (cluster, previous) = (request.cluster.unwrap(), request.previous.unwrap());
        let sizes = (old.len(), new.len());
        for key in old.keys().filter(|key| old.get(*key) == new.get(*key)) {
            assert_eq!(cluster.labels.contains(key), previous.labels.contains(key), "{key} of {sizes:?}");
        }
        for (shown, all) in [(&cluster, &new), (&previous, &old)] {
            let is_cut = shown.truncated.iter().any(|member| *member == "labels");
            assert_eq!(
                (is_cut, shown.labels.len() <= MOST_ENTRIES),
                (shown.labels.len() < all.len(), true),
                "{sizes:?}"
            );
        }
    }
}

#[test]
fn what_stands_behind_the_end_of_a_list_is_shown_not_to_change() {
    let mut review = sample("cluster-accept");
    let taints = |last: &str| -> Vec<_> {
        let keys = (0..200).map(|n| format!("k{n}")).chain([last.to_owned()]);
        keys.map(|key| json!({"key": key, "effect": "NoSelect"})).collect()
    };
    let mut shown = |old: &str, new: &str| {
        review["request"]["oldObject"]["spec"]["taints"] = json!(taints(old));
        review["request"]["object"]["spec"]["taints"] = json!(taints(new));
        let cluster = from_admission(&review["request"], &asking(false)).unwrap().cluster.unwrap();
        cluster.more.get(CHANGES_SHOWN).cloned()
    };
    assert_eq!((shown("a", "a"), shown("a", "b")), (Some(json!(["taints"])), None));
}

#[test]
fn what_an_agent_writes_that_nobody_can_read_is_left_out_and_keeps_nobody_from_taking_away() {
    let condition = |time: &str| json!({"type": "A", "status": "True", "lastTransitionTime": time});
    for time in ["9999-12-31T23:59:59Z", "9999-12-29T23:59:59-23:59", "2026-02-31T00:00:00Z"] {
        let mut review = sample("cluster-accept");
        let request = &mut review["request"];
        for (name, accepted) in [("object", false), ("oldObject", true)] {
            let cluster = &mut request[name];
            cluster["spec"] = json!({
                "hubAcceptsClient": accepted, "taints": [{"key": "k", "effect": "NoSelect", "timeAdded": time}],
                "managedClusterClientConfigs": [{"url": "https://a", "caBundle": "AB=="}],
            });
            cluster["status"] = json!({"conditions": [condition(time)]});
        }
        let asked = from_admission(request, &asking(false)).unwrap();
        let cluster = asked.cluster.as_ref().unwrap();
        let read = (cluster.conditions[0].since, cluster.taints[0].added, &cluster.client_configs[0].ca_sha256);
        assert_eq!(read, (None, None, &None), "{time}");
        assert_eq!(cluster.truncated, ["clientConfigs", "conditions", "taints"], "nobody takes it for absent");
        // What is changed in them is no secret.
        assert_eq!(cluster.more.get(CHANGES_SHOWN), Some(&json!(cluster.truncated)));
        request["object"]["status"]["conditions"] = json!([condition("9999-12-31T00:00:00Z")]);
        let asked = from_admission(request, &asking(false)).unwrap();
        let shown = asked.cluster.as_ref().unwrap().more.get(CHANGES_SHOWN);
        assert_eq!(shown, Some(&json!(["clientConfigs", "taints"])));
        request["object"] = Value::Null;
        request["operation"] = "DELETE".into();
        let asked = from_admission(request, &asking(false)).unwrap();
        assert!((asked.operation, takes_away(&asked)) == (Operation::Delete, true), "{time}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut review = sample("cluster-create");
    assert!(request_of(&json!({"kind": "Pod"})).is_err());
    let of = |version: &str| json!({"kind": "AdmissionReview", "apiVersion": version, "request": {"uid": "1"}});
    for version in ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] {
        assert_eq!(request_of(&of(version)), Ok(&json!({"uid": "1"})), "{version}");
    }
    let said = request_of(&of("admission.k8s.io/v2")).unwrap_err().to_string();
    assert_eq!(said, "apiVersion: it must be admission.k8s.io/v1 or admission.k8s.io/v1beta1");
    review["request"]["object"]["metadata"]["labels"] = json!({"a": 1});
    let error = from_admission(&review["request"], &asking(false)).unwrap_err();
    assert_eq!(error.to_string(), "request.object.metadata.labels.a: it must be a string");
    review["request"]["object"] = Value::Null;
    let error = from_admission(&review["request"], &asking(false)).unwrap_err();
    assert_eq!(error.path, "request.object");
    let mut csr = sample("stored-csr");
    csr["spec"]["request"] = json!("bm90aGluZw==");
    let (csr, _) = certificate_request(&csr).unwrap();
    assert!(csr.unreadable.is_some() && csr.signature == Signature::Unverifiable);
}

#[test]
fn of_a_certificate_request_with_more_than_one_block_the_names_are_told_that_the_api_server_reads() {
    let mut object = sample("stored-csr");
    let (clean, _) = certificate_request(&object).map(|(csr, decided)| (csr.into_owned(), decided)).unwrap();
    let ByteString(pem) = serde_json::from_value(object["spec"]["request"].clone()).unwrap();
    object["metadata"]["labels"] = json!({});
    object["spec"]["request"] = json!(ByteString([b"hello\n", &pem[..], &pem[..]].concat()));
    let (csr, _) = certificate_request(&object).unwrap();
    assert!(csr.unreadable.is_some() && !clean.common_names.is_empty());
    assert_eq!((&csr.common_names, &csr.organizations), (&clean.common_names, &clean.organizations));
    assert_eq!((&*csr.spki_sha256, csr.signature), ("", Signature::Unverifiable));
    assert_eq!(cluster_of_csr(&csr), cluster_of_csr(&clean));
    object["spec"]["request"] = json!(ByteString(b"hello".to_vec()));
    let (csr, _) = certificate_request(&object).unwrap();
    assert!(csr.unreadable.is_some() && csr.common_names.is_empty() && clusters_of_csr(&csr).is_empty());
}

#[test]
fn questions_survive_the_way_through_the_form_of_kubernetes() {
    for name in [
        "cluster-create",
        "cluster-apply-dry-run",
        "cluster-accept",
        "cluster-status",
        "cluster-delete-collection",
        "csr-create-before-mutation",
        "csr-approval",
        "csr-signed",
        "work-create",
    ] {
        let review = sample(name);
        let request = from_admission(&review["request"], &asking(true)).unwrap();
        let written = admission_request(&request, None);
        assert_eq!(from_admission(&written, &asking(true)).unwrap(), request, "{name}");
    }
    let cluster = sample("stored-cluster");
    let request = of_cluster(Operation::Delete, &cluster, Requester::default(), &asking(false)).unwrap();
    assert_eq!(admission_request(&request, Some(&cluster))["oldObject"], cluster);
}
