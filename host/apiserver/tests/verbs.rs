//! Every verb, with the answers that clients see.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use expect_test::expect;
use serde_json::{Value, json};
use support::{Api, config_map, pod};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}})
}

#[tokio::test]
async fn refusals_use_the_words_of_kubernetes() {
    let api = Api::new().await;
    let mut said = Vec::new();
    said.push(api.get(&format!("{MAPS}/none")).await.refused(404));
    said.push(
        api.get("/apis/apps/v1/namespaces/default/deployments/none")
            .await
            .refused(404),
    );
    said.push(api.get("/apis/apps/v1/things").await.refused(404));
    said.push(
        api.post(
            "/api/v1/namespaces/none/configmaps",
            config_map("a", json!({})),
        )
        .await
        .refused(404),
    );
    api.post(MAPS, config_map("a", json!({}))).await.ok();
    said.push(
        api.post(MAPS, config_map("a", json!({})))
            .await
            .refused(409),
    );
    said.push(
        api.post(MAPS, config_map("A_b", json!({})))
            .await
            .refused(422),
    );
    said.push(
        api.post(
            MAPS,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
        )
        .await
        .refused(422),
    );
    said.push(
        api.post(
            MAPS,
            json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "b"}}),
        )
        .await
        .refused(400),
    );
    said.push(
        api.post(
            MAPS,
            json!({"metadata": {"name": "b", "namespace": "other"}}),
        )
        .await
        .refused(400),
    );
    said.push(
        api.post(
            MAPS,
            json!({"metadata": {"name": "b", "resourceVersion": "1"}}),
        )
        .await
        .refused(500),
    );
    said.push(
        api.put(&format!("{MAPS}/b"), config_map("b", json!({})))
            .await
            .refused(404),
    );
    said.push(
        api.put(
            &format!("{MAPS}/a"),
            json!({"metadata": {"name": "a", "resourceVersion": "1"}}),
        )
        .await
        .refused(409),
    );
    said.push(
        api.request(
            "PATCH",
            &format!("{MAPS}/a"),
            &[("content-type", "text/plain")],
            "{}",
        )
        .await
        .refused(415),
    );
    said.push(
        api.get(&format!("{MAPS}?labelSelector=a%20b"))
            .await
            .refused(400),
    );
    said.push(
        api.request("POST", MAPS, &[], vec![b' '; (3 << 20) + 1])
            .await
            .refused(413),
    );
    said.push(
        api.get(&format!("{MAPS}?x={}", "y".repeat(20_000)))
            .await
            .refused(414),
    );
    said.push(api.delete("/api/v1/configmaps").await.refused(405));
    said.push(
        api.request("GET", MAPS, &[("accept", "application/cbor")], "")
            .await
            .refused(406),
    );
    said.push(api.post(MAPS, Value::Null).await.refused(400));
    expect![[r#"
        NotFound: configmaps "none" not found
        NotFound: deployments.apps "none" not found
        NotFound: the server could not find the requested resource
        NotFound: namespaces "none" not found
        AlreadyExists: configmaps "a" already exists
        Invalid: ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
        BadRequest: ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"
        BadRequest: the namespace of the provided object does not match the namespace sent on the request
        : resourceVersion should not be set on objects to be created
        NotFound: configmaps "b" not found
        Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
        UnsupportedMediaType: 415: Unsupported Media Type
        BadRequest: unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt
        RequestEntityTooLarge: Request entity too large: limit is 3145728
        RequestURITooLong: the path and query are longer than 16384 bytes
        MethodNotAllowed: the server does not allow this method on the requested resource
        NotAcceptable: 406: Not Acceptable

        Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf
        BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal null into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (6e756c6c)"#]]
    .assert_eq(&said.join("\n"));
}

#[tokio::test]
async fn a_conflict_names_its_object() {
    let api = Api::new().await;
    let answer = api.get(&format!("{DEPLOYMENTS}/none")).await;
    assert_eq!(
        answer.body["details"],
        json!({"name": "none", "group": "apps", "kind": "deployments"})
    );
    let answer = api.post(MAPS, config_map("A", json!({}))).await;
    assert_eq!(
        answer.body["details"]["causes"][0]["field"],
        "metadata.name"
    );
    assert_eq!(
        answer.body["details"]["causes"][0]["reason"],
        "FieldValueInvalid"
    );
}

#[tokio::test]
async fn generation_follows_what_is_wanted() {
    let api = Api::new().await;
    let created = api.post(DEPLOYMENTS, deployment("web")).await.ok();
    assert_eq!(created["metadata"]["generation"], 1);
    let path = format!("{DEPLOYMENTS}/web");
    let generation = |value: Value| value["metadata"]["generation"].as_i64().unwrap();
    assert_eq!(
        generation(
            api.patch("merge", &path, json!({"metadata": {"labels": {"a": "b"}}}))
                .await
                .ok()
        ),
        1
    );
    assert_eq!(
        generation(
            api.patch(
                "merge",
                &format!("{path}/status"),
                json!({"status": {"replicas": 1}})
            )
            .await
            .ok()
        ),
        1
    );
    assert_eq!(
        generation(
            api.patch("merge", &path, json!({"spec": {"replicas": 3}}))
                .await
                .ok()
        ),
        2
    );
    let unchanged = api.get(&path).await.ok();
    assert_eq!(
        api.patch("merge", &path, json!({"spec": {"replicas": 3}}))
            .await
            .ok(),
        unchanged
    );
    assert_eq!(api.put(&path, unchanged.clone()).await.ok(), unchanged);
}

#[tokio::test]
async fn scale_changes_replicas() {
    let api = Api::new().await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let path = format!("{DEPLOYMENTS}/web/scale");
    let mut scale = api.get(&path).await.ok();
    assert_eq!(
        (
            &scale["kind"],
            &scale["spec"]["replicas"],
            &scale["status"]["selector"]
        ),
        (&json!("Scale"), &json!(2), &json!("app=web"))
    );
    scale["spec"]["replicas"] = json!(5);
    assert_eq!(
        api.put(&path, scale.clone()).await.ok()["spec"]["replicas"],
        5
    );
    assert_eq!(
        api.put(&path, scale).await.refused(409).split(':').next(),
        Some("Conflict")
    );
    assert_eq!(
        api.patch("merge", &path, json!({"spec": {"replicas": 6}}))
            .await
            .ok()["spec"]["replicas"],
        6
    );
    let deployment = api.get(&format!("{DEPLOYMENTS}/web")).await.ok();
    assert_eq!(
        (
            &deployment["spec"]["replicas"],
            &deployment["metadata"]["generation"]
        ),
        (&json!(6), &json!(3))
    );
    assert!(
        api.patch("merge", &path, json!({"spec": {"replicas": -1}}))
            .await
            .refused(422)
            .contains("spec.replicas")
    );
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let api = Api::new().await;
    let before = api.get(MAPS).await.ok();
    let tried = api
        .post(
            &format!("{MAPS}?dryRun=All"),
            config_map("a", json!({"k": "v"})),
        )
        .await;
    assert_eq!((tried.code, &tried.body["data"]["k"]), (201, &json!("v")));
    assert_eq!(api.get(MAPS).await.ok(), before);
    api.post(MAPS, config_map("a", json!({}))).await.ok();
    assert_eq!(
        api.patch(
            "merge",
            &format!("{MAPS}/a?dryRun=All"),
            json!({"data": {"x": "y"}})
        )
        .await
        .ok()["data"]["x"],
        "y"
    );
    assert_eq!(api.delete(&format!("{MAPS}/a?dryRun=All")).await.code, 200);
    assert!(
        api.get(&format!("{MAPS}/a"))
            .await
            .ok()
            .get("data")
            .is_none_or(|data| data == &json!({}))
    );
}

#[tokio::test]
async fn unknown_fields_are_handled_as_asked() {
    let api = Api::new().await;
    let mut object = pod("a");
    object["spec"]["containers"][0]["imagePullPolcy"] = json!("Always");
    let refused = api
        .post(&format!("{PODS}?fieldValidation=Strict"), object.clone())
        .await
        .refused(400);
    assert_eq!(
        refused,
        "BadRequest: Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.containers[0].imagePullPolcy\""
    );
    let warned = api.post(PODS, object.clone()).await;
    assert_eq!(
        warned.warnings,
        ["299 - \"unknown field \\\"spec.containers[0].imagePullPolcy\\\"\""]
    );
    assert!(
        warned.body["spec"]["containers"][0]
            .get("imagePullPolcy")
            .is_none()
    );
    object["metadata"]["name"] = json!("b");
    assert!(
        api.post(&format!("{PODS}?fieldValidation=Ignore"), object.clone())
            .await
            .warnings
            .is_empty()
    );
    object["spec"]["containers"] = json!("none");
    assert!(
        api.post(PODS, object)
            .await
            .refused(400)
            .contains("cannot be handled as a Pod")
    );
}

#[tokio::test]
async fn names_are_generated() {
    let api = Api::new().await;
    let object = json!({"metadata": {"generateName": "job-"}});
    let first = api.post(MAPS, object.clone()).await.ok()["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let second = api.post(MAPS, object).await.ok()["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        first.starts_with("job-") && first.len() == 9 && first != second,
        "{first} {second}"
    );
}

#[tokio::test]
async fn services_get_addresses_and_ports() {
    let api = Api::new().await;
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str, kind: &str| json!({"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}]}});
    let first = api.post(services, service("a", "ClusterIP")).await.ok();
    let address = first["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("10."), "{address}");
    let mut taken = service("b", "ClusterIP");
    taken["spec"]["clusterIP"] = json!(address);
    assert!(
        api.post(services, taken.clone())
            .await
            .refused(422)
            .contains("provided IP is already allocated")
    );
    api.delete(&format!("{services}/a")).await.ok();
    api.post(services, taken).await.ok();
    let balanced = api.post(services, service("c", "LoadBalancer")).await.ok();
    let port = balanced["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    assert!((30_000..32_768).contains(&port));
    // An update that does not name them keeps them.
    let kept = api
        .put(&format!("{services}/c"), service("c", "LoadBalancer"))
        .await
        .ok();
    assert_eq!(
        (
            &kept["spec"]["clusterIP"],
            &kept["spec"]["ports"][0]["nodePort"]
        ),
        (&balanced["spec"]["clusterIP"], &json!(port))
    );
}

#[tokio::test]
async fn both_groups_serve_the_same_events() {
    let api = Api::new().await;
    let event = json!({"metadata": {"name": "a"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "note": "hello", "reason": "Tested",
        "type": "Normal", "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "test", "reportingInstance": "test-1", "action": "Test"});
    api.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
        .await
        .ok();
    let list = api
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp")
        .await
        .ok();
    assert_eq!(
        (
            &list["items"][0]["message"],
            &list["items"][0]["involvedObject"]["name"]
        ),
        (&json!("hello"), &json!("p"))
    );
    let other = api
        .get("/apis/events.k8s.io/v1/namespaces/default/events/a")
        .await
        .ok();
    assert_eq!(
        (&other["note"], &other["apiVersion"]),
        (&json!("hello"), &json!("events.k8s.io/v1"))
    );
}

#[tokio::test]
async fn only_the_newest_events_are_kept() {
    let mut options = support::options();
    options.events = 3;
    let api = Api {
        server: configurator_apiserver::ApiServer::open(
            configurator_store::Store::memory(),
            options,
        )
        .await
        .unwrap(),
    };
    let events = "/api/v1/namespaces/default/events";
    for number in 0..5 {
        let event = json!({"metadata": {"name": format!("e{number}")}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}});
        api.post(events, event).await.ok();
    }
    api.gone(&format!("{events}/e1")).await;
    let names: Vec<Value> = api.get(events).await.ok()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["e2", "e3", "e4"]);
}

#[tokio::test]
async fn tables_and_metadata_are_given_on_request() {
    let api = Api::new().await;
    api.post(PODS, pod("a")).await.ok();
    let accept = [(
        "accept",
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    )];
    let table = api.request("GET", PODS, &accept, "").await.ok();
    assert_eq!(
        (
            &table["kind"],
            &table["columnDefinitions"][0]["name"],
            &table["rows"][0]["cells"][0]
        ),
        (&json!("Table"), &json!("Name"), &json!("a"))
    );
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let one = api
        .request("GET", &format!("{PODS}/a"), &accept, "")
        .await
        .ok();
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
    let accept = [(
        "accept",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    )];
    let list = api.request("GET", PODS, &accept, "").await.ok();
    assert_eq!(
        (&list["kind"], &list["items"][0]["metadata"]["name"]),
        (&json!("PartialObjectMetadataList"), &json!("a"))
    );
    assert!(list["items"][0].get("spec").is_none());
}

#[tokio::test]
async fn discovery_names_everything() {
    let api = Api::new().await;
    assert_eq!(api.get("/healthz").await.body, "ok");
    assert_eq!(api.get("/version").await.ok()["major"], "1");
    let core = api.get("/api/v1").await.ok();
    let pods = core["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|resource| resource["name"] == "pods")
        .unwrap();
    assert_eq!(pods["shortNames"], json!(["po"]));
    assert!(
        core["resources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|resource| resource["name"] == "pods/status")
    );
    let groups = api.get("/apis").await.ok();
    assert!(
        groups["groups"]
            .as_array()
            .unwrap()
            .iter()
            .any(|group| group["name"] == "apps")
    );
    assert_eq!(
        api.get("/apis/apps").await.ok()["preferredVersion"]["groupVersion"],
        "apps/v1"
    );
    let accept = [(
        "accept",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    )];
    let aggregated = api.request("GET", "/apis", &accept, "").await.ok();
    let apps = aggregated["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["metadata"]["name"] == "apps")
        .unwrap();
    assert_eq!(
        apps["versions"][0]["resources"][0]["responseKind"]["group"],
        "apps"
    );
    let index = api.get("/openapi/v3").await.ok();
    let link = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    assert!(api.get(link).await.ok()["components"]["schemas"].is_object());
    assert_eq!(
        api.post("/version", json!({}))
            .await
            .refused(405)
            .split(':')
            .next(),
        Some("MethodNotAllowed")
    );
}

#[tokio::test]
async fn rights_are_answered() {
    let api = Api::new().await;
    let review = json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let answer = api
        .post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            review,
        )
        .await
        .ok();
    assert_eq!(answer["status"]["allowed"], true);
    assert_eq!(
        api.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
            .await
            .refused(405)
            .split(':')
            .next(),
        Some("MethodNotAllowed")
    );
}

#[tokio::test]
async fn a_user_is_told_who_it_is() {
    let api = Api::new().await;
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let account = "system:serviceaccount:team-a:default";
    let mut answers = Vec::new();
    for user in [None, Some(account), Some("jane")] {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(user.map(|user| ("impersonate-user", user)));
        let answer = api
            .request("POST", path, &headers, review.to_string())
            .await
            .ok();
        let user = &answer["status"]["userInfo"];
        answers.push(format!("{} of {}", user["username"], user["groups"]));
    }
    expect![[r#"
        "kubernetes-admin" of ["system:masters","system:authenticated"]
        "system:serviceaccount:team-a:default" of ["system:serviceaccounts","system:serviceaccounts:team-a","system:authenticated"]
        "jane" of ["system:authenticated"]"#]].assert_eq(&answers.join("\n"));
}

#[tokio::test]
async fn secrets_take_plain_text() {
    let api = Api::new().await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "secret"}});
    let stored = api
        .post("/api/v1/namespaces/default/secrets", secret)
        .await
        .ok();
    assert_eq!(
        (&stored["data"]["password"], stored.get("stringData")),
        (&json!("c2VjcmV0"), None)
    );
}

#[tokio::test]
async fn large_numbers_survive() {
    let api = Api::new().await;
    let map = json!({"metadata": {"name": "a", "annotations": {"n": "1"}}});
    api.post(MAPS, map).await.ok();
    let deployment = json!({"spec": {"progressDeadlineSeconds": 2_147_483_647}});
    api.post(DEPLOYMENTS, self::deployment("web")).await.ok();
    assert_eq!(
        api.patch("merge", &format!("{DEPLOYMENTS}/web"), deployment)
            .await
            .ok()["spec"]["progressDeadlineSeconds"],
        2_147_483_647
    );
}
