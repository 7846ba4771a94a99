//! Whatever is sent, there is an answer, and it is the sender's fault.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use proptest::prelude::*;
use serde_json::{Value, json};
use support::Api;

/// Documents that look like objects and are wrong somewhere.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z.{}/%\"]{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 32, 4, |inner| {
        let key = prop_oneof![
            Just("name"),
            Just("labels"),
            Just("finalizers"),
            Just("ownerReferences"),
            Just("managedFields"),
            Just("containers"),
            Just("ports"),
            Just("data"),
            Just("replicas"),
            Just("selector"),
            Just("annotations"),
            Just("fieldsV1"),
            Just("uid"),
            Just("template"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    });
    (value.clone(), value.clone(), value.clone(), value).prop_map(
        |(metadata, spec, status, data)| {
            let mut object =
                json!({"metadata": metadata, "spec": spec, "status": status, "data": data});
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.entry("name").or_insert_with(|| json!("a"));
            }
            object
        },
    )
}

fn path() -> impl Strategy<Value = String> {
    let collection = prop_oneof![
        Just("/api/v1/namespaces/default/pods"),
        Just("/api/v1/namespaces/default/services"),
        Just("/api/v1/namespaces/default/configmaps"),
        Just("/api/v1/namespaces/default/events"),
        Just("/apis/events.k8s.io/v1/namespaces/default/events"),
        Just("/apis/apps/v1/namespaces/default/deployments"),
        Just("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        Just("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        Just("/api/v1/namespaces"),
        Just("/api/v1/nodes"),
    ];
    let rest = prop_oneof![
        Just(""),
        Just("/a"),
        Just("/a/status"),
        Just("/a/scale"),
        Just("/a/%2F"),
        Just("/a/b/c")
    ];
    let query = prop_oneof![
        Just(""),
        Just("?fieldManager=m&force=true"),
        Just("?limit=1&continue=x"),
        Just("?resourceVersion=x"),
        Just("?dryRun=All"),
        Just("?fieldValidation=Strict"),
        Just("?labelSelector=%00"),
        Just("?propagationPolicy=Foreground"),
    ];
    (collection, rest, query)
        .prop_map(|(collection, rest, query)| format!("{collection}{rest}{query}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_request_is_answered(requests in prop::collection::vec((0usize..8, path(), document()), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let api = Api::new().await;
            for (verb, path, document) in requests {
                let body = document.to_string();
                let json = [("content-type", "application/json")];
                let answer = match verb {
                    0 => api.get(&path).await,
                    1 | 2 => api.post(&path, document.clone()).await,
                    3 => api.put(&path, document.clone()).await,
                    4 => api.patch("merge", &path, document.clone()).await,
                    5 => api.patch("strategic", &path, document.clone()).await,
                    6 => api.patch("apply", &path, document.clone()).await,
                    _ => api.request("DELETE", &path, &json, body.clone()).await,
                };
                // Some refusals have this code and no reason, as those of a Kubernetes server; a failure has one.
                let refused = answer.code < 500 || answer.code == 500 && answer.body.get("reason").is_none();
                assert!(refused, "{verb} {path} {body}: {} {}", answer.code, answer.body);
            }
        });
    }
}
