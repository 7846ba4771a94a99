//! Requests to Kubernetes.

use configurator_sdk::kubernetes::{
    CONFIG_MAP, CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, NAMESPACE, NODE, POD, PatchType,
    PropagationPolicy, REPLICA_SET, Resource, SECRET, SERVICE, STATEFUL_SET,
};
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde_json::{Value, json};

const WIDGET: Resource = Resource::new("example.com", "v1beta1", "widgets", "Widget");

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": name},
        "data": {"key": "value"},
    })
}

pub fn reads(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new("get", POD.get(("shop", "web"))))
        .request(Request::new("get-cached", NODE.get("node-1").cached()))
        .request(Request::new(
            "get-scale",
            DEPLOYMENT.get(("shop", "web")).subresource("scale"),
        ))
        .request(Request::new("list", POD.list("shop")))
        .request(Request::new(
            "list-selected",
            POD.list("")
                .labels("app=web,tier!=cache")
                .fields("status.phase=Running")
                .cached(),
        )))
}

pub fn writes(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new(
            "create",
            CONFIG_MAP.create(("shop", "a"), config_map("a")),
        ))
        .request(Request::new(
            "create-new",
            CONFIG_MAP
                .create(("shop", "b"), config_map("b"))
                .must_not_exist(),
        ))
        .request(Request::new(
            "replace",
            CONFIG_MAP
                .replace(("shop", "c"), config_map("c"))
                .uid("4a0f")
                .resource_version("17"),
        ))
        .request(Request::new(
            "apply",
            CONFIG_MAP.apply(("shop", "d"), config_map("d")),
        ))
        .request(Request::new(
            "apply-status",
            WIDGET
                .apply(
                    ("shop", "w"),
                    json!({
                        "apiVersion": WIDGET.api_version(),
                        "kind": "Widget",
                        "metadata": {"namespace": "shop", "name": "w"},
                        "status": {"ready": true},
                    }),
                )
                .force()
                .subresource("status")
                .uid("77"),
        )))
}

pub fn patches(_: &Input) -> Result<Output, HandlerError> {
    let merge = json!({"data": {"key": null}});
    let json = json!([{"op": "add", "path": "/data/new", "value": "1"}]);
    let strategic = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}});
    Ok(Output::new()
        .request(Request::new(
            "merge",
            CONFIG_MAP.patch(("shop", "a"), merge),
        ))
        .request(Request::new(
            "json-patch",
            CONFIG_MAP
                .patch(("shop", "a"), json)
                .patch_type(PatchType::JsonPatch)
                .resource_version("9"),
        ))
        .request(Request::new(
            "strategic",
            DEPLOYMENT
                .patch(("shop", "web"), strategic)
                .patch_type(PatchType::Strategic)
                .uid("4a0f"),
        ))
        .request(Request::new(
            "status",
            DEPLOYMENT
                .patch(("shop", "web"), json!({"status": {"replicas": 0}}))
                .patch_type(PatchType::Merge)
                .subresource("status"),
        )))
}

pub fn deletes(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new("delete", POD.delete(("shop", "web"))))
        .request(Request::new(
            "foreground",
            DEPLOYMENT
                .delete(("shop", "web"))
                .propagation(PropagationPolicy::Foreground),
        ))
        .request(Request::new(
            "orphan",
            DEPLOYMENT
                .delete(("shop", "old"))
                .propagation(PropagationPolicy::Orphan)
                .uid("4a0f"),
        ))
        .request(Request::new(
            "background",
            NAMESPACE
                .delete("shop")
                .propagation(PropagationPolicy::Background)
                .resource_version("3"),
        )))
}

pub fn types(_: &Input) -> Result<Output, HandlerError> {
    let types = [
        POD,
        NODE,
        NAMESPACE,
        CONFIG_MAP,
        SECRET,
        SERVICE,
        DEPLOYMENT,
        REPLICA_SET,
        STATEFUL_SET,
        DAEMON_SET,
        JOB,
        CRON_JOB,
        WIDGET,
    ];
    let requests = types
        .iter()
        .map(|kind| Request::new(kind.kind, kind.get(("shop", "one"))));
    Ok(Output::new().with_requests(requests))
}
