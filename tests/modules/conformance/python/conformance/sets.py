"""Sets of an owner, and the plan of a pipeline."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from configurator_sdk import (
    HandlerError,
    Input,
    OnConflict,
    OnDelete,
    OnError,
    OnExisting,
    OnImmutable,
    Output,
    Readiness,
    TerminationPolicy,
    desired_entry,
    desired_set,
    document,
    handler,
    kubernetes,
    request,
    wire,
)
from configurator_sdk.configstore import AppConf, Basic, Entry, TwoLayers
from configurator_sdk.extension import Extension
from configurator_sdk.kubernetes import POD
from configurator_sdk.secretstore import Secret

from .parameter import parameter


@handler("desired", description="All that an owner is to have.")
def desired(input: Input) -> Output:
    return Output().desired(members(parameter(input, "set")))


def members(name: str) -> wire.DesiredSet:
    """The set of this name."""
    match name:
        case "dependencies":
            return desired_set(
                map("a"),
                map("b", depends_on=["a"]),
                map("c", depends_on=["a"]),
                map("d", depends_on=["b", "c"]),
            )
        case "readiness":
            return desired_set(
                map("a", ready_when=Readiness.EXISTS),
                map("b", ready_when=Readiness.OBSERVED),
                map("c", ready_when=Readiness.HEALTHY),
                map(
                    "d",
                    ready_when=Readiness.expression("object.data.ready == 'yes'"),
                    failed_when="object.data.ready == 'never'",
                    timeout=timedelta(seconds=90),
                ),
            )
        case "policies":
            return desired_set(
                map(
                    "a",
                    on_existing=OnExisting.REFUSE,
                    on_conflict=OnConflict.FAIL,
                    on_immutable=OnImmutable.FAIL,
                    on_delete=OnDelete.WITH_OWNER,
                ),
                map(
                    "b",
                    on_existing=OnExisting.ADOPT,
                    on_conflict=OnConflict.FORCE,
                    on_immutable=OnImmutable.RECREATE,
                    on_delete=OnDelete.RETAIN,
                ),
                map(
                    "c",
                    on_existing=OnExisting.CREATE_ONLY,
                    on_delete=OnDelete.ONLY_UNDER_WIPE_OUT,
                    ignored_paths=[".data.count", ".metadata.labels['a/b']"],
                ),
            )
        case "config":
            elsewhere = AppConf("web", "log.level", namespace="shop")
            return desired_set(
                desired_entry("pod", Entry.pod("shop", "web", uid="6e2d").content("a")),
                desired_entry("node", Entry.node("node-1").content("b")),
                desired_entry("namespace", Entry.of_namespace("shop").content("c")),
                desired_entry("workload", Entry.workload("shop", "Deployment", "web").content("d")),
                desired_entry("app-conf", AppConf("web", "log.level").content("info")),
                desired_entry("app-conf-elsewhere", elsewhere.content("é")),
                desired_entry("basic", Basic("region").content("north", partition="team-a")),
                desired_entry("two-layers", TwoLayers("teams", "red").content("")),
            )
        case "secrets":
            return desired_set(
                desired_entry("generated", Secret("db").content()),
                desired_entry("given", Secret("api").content_with({"user": "a"})),
                desired_entry("elsewhere", Secret("db").content(partition="team-a")),
            )
        case "empty":
            return desired_set(allow_empty=True)
        case "orders":
            return desired_set(
                map("a"),
                map("b"),
                map("c"),
                provision=[["a"], ["b", "c"]],
                update=[["c"], ["a"]],
                terminate=[["b"], ["a"]],
            )
        case "policy":
            return desired_set(map("a"), termination_policy=TerminationPolicy.WIPE_OUT)
        case "policy-path":
            return desired_set(map("a"), termination_policy_at=".spec.terminationPolicy")
        case "pre-terminate":
            key = Basic("region").delete()
            requests = [
                request("pod", POD.delete("shop", "web")),
                request("key", key, depends_on=["pod"], ready_when=Readiness.EXISTS),
            ]
            return desired_set(map("a"), pre_terminate=requests)
    raise HandlerError(f"there is no set {name}", fatal=True)


def map(name: str, **options: Any) -> wire.DesiredEntry:
    object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}}
    return desired_entry(name, object, **options)


@handler("plan", description="Changes the plan of a pipeline.")
def plan(input: Input) -> Output:
    """Passes on the names of the plan, gives each object a label, and removes what is called `old`."""
    planned = input.plan
    if planned is None:
        return Output().pass_on("is-planned", False)
    output = Output()
    seen: list[str] = []
    for one in planned.requests.resource_requests:
        seen.append(f"request {one.request_name}")
        if one.request_name == "old":
            output.remove_from_plan("old")
        else:
            output.request(one)
    if planned.desired is not None:
        entries: list[wire.DesiredEntry] = []
        for entry in planned.desired.entries:
            seen.append(f"entry {entry.name}")
            if entry.name == "old":
                output.remove_from_plan("old")
            else:
                entries.append(labelled(entry))
        output.desired(replace(planned.desired, entries=entries))
    return output.pass_on("seen", seen)


def labelled(entry: wire.DesiredEntry) -> wire.DesiredEntry:
    if not isinstance(entry.content, wire.Content_Kubernetes):
        return entry
    object = document.value(entry.content.value)
    object["metadata"].setdefault("labels", {})["planned"] = "yes"
    return replace(entry, content=kubernetes.content(object))


@handler("plan-reads", description="Reads before it plans.")
def plan_reads(input: Input) -> Output:
    answer = input.answer("class")
    if answer is not None:
        return Output().pass_on("found", answer.error is None)
    return Output().read(
        request("class", Basic("class").get(), on_error=OnError.CATCH_ERROR),
        request("pods", POD.list("shop")),
    )


@handler("extension", description="Requests to an extension.")
def extension(input: Input) -> Output:
    dns = Extension("dns")
    return Output(
        request("delete", dns.request("delete", "example.org/www")),
        request("upsert", dns.request_with("upsert", "example.org/é", {"a": ["192.0.2.1"]})),
    )
