//! The handler is called like any function.
#![allow(clippy::unwrap_used, reason = "tests")]

use configurator_sdk::Input;
use serde_json::json;

#[test]
fn a_namespace_gets_its_config_map() {
    let namespace = json!({"metadata": {"name": "shop"}});
    let output = rust_hello::HANDLERS
        .call("root", &Input::builder().object(namespace).build())
        .unwrap();
    assert_eq!(
        output.to_string(),
        "hello: kubernetes apply configmaps shop/hello \
         {\"apiVersion\":\"v1\",\"data\":{\"greeting\":\"hello, shop\"},\"kind\":\"ConfigMap\",\
         \"metadata\":{\"name\":\"hello\",\"namespace\":\"shop\"}}\n"
    );
}

#[test]
fn an_object_without_a_name_is_refused() {
    let error = rust_hello::HANDLERS
        .call("root", &Input::builder().build())
        .unwrap_err();
    assert!(error.fatal);
}
