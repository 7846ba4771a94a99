"""Requests to Kubernetes."""

from configurator_sdk import Input, Output, handler, request
from configurator_sdk.kubernetes import (
    CONFIG_MAP,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    PatchType,
    PropagationPolicy,
    Resource,
)

WIDGET = Resource("example.com", "v1beta1", "widgets", "Widget")


def config_map(name: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": name},
        "data": {"key": "value"},
    }


@handler("kubernetes-reads", description="Gets and lists.")
def reads(input: Input) -> Output:
    selected = POD.list("", labels="app=web,tier!=cache", fields="status.phase=Running", cached=True)
    return Output(
        request("get", POD.get("shop", "web")),
        request("get-cached", NODE.get("", "node-1", cached=True)),
        request("get-scale", DEPLOYMENT.get("shop", "web", subresource="scale")),
        request("list", POD.list("shop")),
        request("list-selected", selected),
    )


@handler("kubernetes-writes", description="Creates, replaces and applies.")
def writes(input: Input) -> Output:
    widget = {
        "apiVersion": WIDGET.api_version,
        "kind": "Widget",
        "metadata": {"namespace": "shop", "name": "w"},
        "status": {"ready": True},
    }
    return Output(
        request("create", CONFIG_MAP.create("shop", "a", config_map("a"))),
        request("create-new", CONFIG_MAP.create("shop", "b", config_map("b"), must_not_exist=True)),
        request(
            "replace",
            CONFIG_MAP.replace("shop", "c", config_map("c"), uid="4a0f", resource_version="17"),
        ),
        request("apply", CONFIG_MAP.apply("shop", "d", config_map("d"))),
        request(
            "apply-status",
            WIDGET.apply("shop", "w", widget, force=True, subresource="status", uid="77"),
        ),
    )


@handler("kubernetes-patches", description="Patches of every type.")
def patches(input: Input) -> Output:
    merge = {"data": {"key": None}}
    json = [{"op": "add", "path": "/data/new", "value": "1"}]
    strategic = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
    status = {"status": {"replicas": 0}}
    return Output(
        request("merge", CONFIG_MAP.patch("shop", "a", merge)),
        request(
            "json-patch",
            CONFIG_MAP.patch("shop", "a", json, patch_type=PatchType.JSON_PATCH, resource_version="9"),
        ),
        request(
            "strategic",
            DEPLOYMENT.patch("shop", "web", strategic, patch_type=PatchType.STRATEGIC, uid="4a0f"),
        ),
        request(
            "status",
            DEPLOYMENT.patch("shop", "web", status, patch_type=PatchType.MERGE, subresource="status"),
        ),
    )


@handler("kubernetes-deletes", description="Deletes of every policy.")
def deletes(input: Input) -> Output:
    foreground = DEPLOYMENT.delete("shop", "web", propagation=PropagationPolicy.FOREGROUND)
    orphan = DEPLOYMENT.delete("shop", "old", propagation=PropagationPolicy.ORPHAN, uid="4a0f")
    background = NAMESPACE.delete("", "shop", propagation=PropagationPolicy.BACKGROUND, resource_version="3")
    return Output(
        request("delete", POD.delete("shop", "web")),
        request("foreground", foreground),
        request("orphan", orphan),
        request("background", background),
    )


@handler("kubernetes-types", description="Every type that the SDK names.")
def types(input: Input) -> Output:
    every = [
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
    ]
    return Output(*(request(one.kind, one.get("shop", "one")) for one in every))
