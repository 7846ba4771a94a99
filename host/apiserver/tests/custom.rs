//! Custom resources.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use configurator_store::Store;
use serde_json::{Value, json};
use support::{Api, Lines};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SHIRTS: &str = "/apis/stable.example.com/v1/namespaces/default/shirts";

fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "required": ["color"], "properties": {
            "color": {"type": "string", "enum": ["red", "blue"]},
            "size": {"type": "string", "default": "M"},
            "replicas": {"type": "integer", "minimum": 0}},
            "x-kubernetes-validations": [{"rule": "self.color != 'blue' || self.size != 'S'", "message": "blue is not made in S"}]},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}}}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "shirts.stable.example.com"}, "spec": {
        "group": "stable.example.com", "scope": "Namespaced", "names": {"plural": "shirts", "singular": "shirt", "kind": "Shirt", "shortNames": ["sh"], "categories": ["all"]},
        "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
             "selectableFields": [{"jsonPath": ".spec.color"}],
             "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}]},
            {"name": "v1beta1", "served": true, "storage": false, "deprecated": true, "schema": schema}]}})
}

fn shirt(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "stable.example.com/v1", "kind": "Shirt", "metadata": {"name": name}, "spec": spec})
}

async fn with_definition() -> Api {
    let api = Api::new().await;
    let created = api.post(DEFINITIONS, definition()).await.ok();
    let conditions = created["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .all(|condition| condition["status"] == "True"),
        "{conditions:?}"
    );
    api
}

#[tokio::test]
async fn a_definition_is_served_at_once() {
    let api = with_definition().await;
    let resources = api.get("/apis/stable.example.com/v1").await.ok();
    assert_eq!(resources["resources"][0]["shortNames"], json!(["sh"]));
    let created = api
        .post(SHIRTS, shirt("a", json!({"color": "red"})))
        .await
        .ok();
    assert_eq!(
        (&created["spec"]["size"], &created["metadata"]["generation"]),
        (&json!("M"), &json!(1))
    );
    let list = api
        .get(&format!("{SHIRTS}?fieldSelector=spec.color%3Dred"))
        .await
        .ok();
    assert_eq!(
        (&list["kind"], list["items"].as_array().unwrap().len()),
        (&json!("ShirtList"), 1)
    );
    assert!(api.get("/openapi/v3").await.ok()["paths"]["apis/stable.example.com/v1"].is_object());
}

#[tokio::test]
async fn objects_are_validated_and_pruned() {
    let api = with_definition().await;
    let message = api
        .post(SHIRTS, shirt("a", json!({"size": "L"})))
        .await
        .refused(422);
    assert_eq!(
        message,
        "Invalid: Shirt.stable.example.com \"a\" is invalid: [spec.color: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"
    );
    let message = api
        .post(SHIRTS, shirt("a", json!({"color": "green"})))
        .await
        .refused(422);
    assert!(
        message.contains("spec.color: Unsupported value: \"green\""),
        "{message}"
    );
    let message = api
        .post(SHIRTS, shirt("a", json!({"color": "blue", "size": "S"})))
        .await
        .refused(422);
    assert!(message.contains("blue is not made in S"), "{message}");
    let warned = api
        .post(SHIRTS, shirt("a", json!({"color": "red", "colour": "red"})))
        .await;
    assert!(
        warned.warnings[0].contains("spec.colour"),
        "{:?}",
        warned.warnings
    );
    assert!(warned.body["spec"].get("colour").is_none());
    let message = api
        .put(&format!("{SHIRTS}/a"), shirt("a", json!({"color": "red"})))
        .await
        .refused(422);
    assert!(
        message.contains(
            "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        ),
        "{message}"
    );
    let strategic = api
        .patch("strategic", &format!("{SHIRTS}/a"), json!({}))
        .await;
    assert_eq!(strategic.code, 415);
}

#[tokio::test]
async fn status_and_scale_are_apart() {
    let api = with_definition().await;
    let mut object = shirt("a", json!({"color": "red", "replicas": 1}));
    object["status"] = json!({"phase": "ignored"});
    let created = api.post(SHIRTS, object).await.ok();
    assert!(created.get("status").is_none());
    let changed = api
        .patch(
            "merge",
            &format!("{SHIRTS}/a/status"),
            json!({"status": {"phase": "Worn"}, "spec": {"size": "XL"}}),
        )
        .await
        .ok();
    assert_eq!(
        (
            &changed["status"]["phase"],
            &changed["spec"]["size"],
            &changed["metadata"]["generation"]
        ),
        (&json!("Worn"), &json!("M"), &json!(1))
    );
    let scaled = api
        .patch(
            "merge",
            &format!("{SHIRTS}/a/scale"),
            json!({"spec": {"replicas": 4}}),
        )
        .await
        .ok();
    assert_eq!(scaled["spec"]["replicas"], 4);
    assert_eq!(
        api.get(&format!("{SHIRTS}/a")).await.ok()["metadata"]["generation"],
        2
    );
}

#[tokio::test]
async fn all_versions_show_the_same_objects() {
    let api = with_definition().await;
    api.post(SHIRTS, shirt("a", json!({"color": "red"})))
        .await
        .ok();
    let beta = "/apis/stable.example.com/v1beta1/namespaces/default/shirts";
    let answer = api.get(&format!("{beta}/a")).await;
    assert_eq!(answer.body["apiVersion"], "stable.example.com/v1beta1");
    assert_eq!(
        answer.warnings,
        ["299 - \"stable.example.com/v1beta1 Shirt is deprecated\""]
    );
    let mut lines = Lines::of(api.send("GET", &format!("{beta}?watch=1"), &[], "").await);
    assert_eq!(
        lines.next().await.unwrap()["object"]["apiVersion"],
        "stable.example.com/v1beta1"
    );
    api.patch(
        "merge",
        &format!("{SHIRTS}/a"),
        json!({"spec": {"size": "L"}}),
    )
    .await
    .ok();
    assert_eq!(
        lines.next().await.unwrap()["object"]["apiVersion"],
        "stable.example.com/v1beta1"
    );
}

#[tokio::test]
async fn a_deleted_definition_takes_its_objects_along() {
    let api = with_definition().await;
    api.post(SHIRTS, shirt("a", json!({"color": "red"})))
        .await
        .ok();
    let mut lines = Lines::of(api.send("GET", &format!("{SHIRTS}?watch=1"), &[], "").await);
    lines.next().await.unwrap();
    api.delete(&format!("{DEFINITIONS}/shirts.stable.example.com"))
        .await
        .ok();
    assert_eq!(lines.next().await.unwrap()["type"], "DELETED");
    assert_eq!(lines.next().await, None);
    api.gone(&format!("{DEFINITIONS}/shirts.stable.example.com"))
        .await;
    assert_eq!(api.get(SHIRTS).await.code, 404);
    api.post(DEFINITIONS, definition()).await.ok();
    assert_eq!(api.get(SHIRTS).await.ok()["items"], json!([]));
}

#[tokio::test]
async fn definitions_survive_a_restart() {
    let store = Store::memory();
    let api = Api::on(store.clone()).await;
    api.post(DEFINITIONS, definition()).await.ok();
    api.post(SHIRTS, shirt("a", json!({"color": "red"})))
        .await
        .ok();
    drop(api);
    Api::on(store).await.get(&format!("{SHIRTS}/a")).await.ok();
}

#[tokio::test]
async fn unfit_definitions_are_refused() {
    let api = Api::new().await;
    let refused = |change: fn(&mut Value)| {
        let mut definition = definition();
        change(&mut definition);
        let api = &api;
        async move { api.post(DEFINITIONS, definition).await.refused(422) }
    };
    assert!(
        refused(|d| d["metadata"]["name"] = json!("x.y"))
            .await
            .contains("must be spec.names.plural+\".\"+spec.group")
    );
    assert!(
        refused(|d| d["spec"]["conversion"] = json!({"strategy": "Webhook"}))
            .await
            .contains("spec.conversion.webhookClientConfig: Required value")
    );
    assert!(
        refused(|d| d["spec"]["versions"][1]["storage"] = json!(true))
            .await
            .contains("exactly one version marked as storage")
    );
    assert!(refused(|d| d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = json!("objekt")).await.contains("schema.openAPIV3Schema"));
    assert!(
        refused(|d| d["spec"]["scope"] = json!("Everywhere"))
            .await
            .contains("spec.scope: Unsupported value")
    );
}
