//! The handler is called like any function.
#![allow(clippy::unwrap_used, reason = "tests")]

use configurator_sdk::Input;
use disruption_budget::HANDLERS;
use expect_test::expect;
use serde_json::json;

#[test]
fn a_deployment_gets_its_budget() {
    let deployment = json!({
        "metadata": {"namespace": "team-a", "name": "web", "uid": "1"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    let input = Input::builder().object(deployment).build();
    let output = HANDLERS.call("root", &input).unwrap();
    expect![[r#"
        budget: kubernetes apply poddisruptionbudgets.policy team-a/web {"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"web","namespace":"team-a","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"1"}]},"spec":{"maxUnavailable":1,"selector":{"matchLabels":{"app":"web"}}}}
    "#]].assert_eq(&output.to_string());
}

#[test]
fn an_object_without_a_selector_is_refused() {
    let object = json!({"metadata": {"namespace": "team-a", "name": "web", "uid": "1"}});
    let input = Input::builder().object(object).build();
    assert!(HANDLERS.call("root", &input).unwrap_err().fatal);
}
