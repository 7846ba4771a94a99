//! Gives each Deployment a PodDisruptionBudget, so that the maintenance of Nodes evicts its Pods one at a time.

use configurator_sdk::kubernetes::Resource;
use configurator_sdk::{Handler, HandlerError, Input, Output, Request};
use serde_json::{Value, json};

const BUDGET: Resource = Resource::new(
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
);

fn root(input: &Input) -> Result<Output, HandlerError> {
    let deployment: Value = input.object()?;
    let text = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_str);
    let parts = (
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/metadata/uid"),
        deployment.pointer("/spec/selector"),
    );
    let (Some(namespace), Some(name), Some(uid), Some(selector)) = parts else {
        return Err(HandlerError::fatal(
            "the object has no namespace, name, uid or spec.selector: watch Deployments with the field .spec.selector",
        ));
    };
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid}],
        },
        "spec": {"maxUnavailable": 1, "selector": selector},
    });
    let apply = BUDGET.apply((namespace, name), budget);
    Ok(Output::new().request(Request::new("budget", apply)))
}

configurator_sdk::module! {
    handlers: [Handler::new("root", root).description("Gives a Deployment its PodDisruptionBudget.")],
}
