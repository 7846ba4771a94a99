"""Requests to the config store and the secret store."""

from configurator_sdk import Input, Output, handler, request
from configurator_sdk.configstore import AppConf, Basic, Entry, TwoLayers, transaction
from configurator_sdk.secretstore import Secret


@handler("config-entries", description="Entries of every type.")
def entries(input: Input) -> Output:
    return Output(
        request("get-pod", Entry.pod("shop", "web").get()),
        request("create-node", Entry.node("node-1").create("a")),
        request("update-namespace", Entry.of_namespace("shop").update("b")),
        request("update-workload", Entry.workload("shop", "StatefulSet", "db", uid="4a0f").update("c")),
        request("delete-workload", Entry.workload("shop", "Deployment", "web", uid="77").delete()),
    )


@handler("config-app-conf", description="Application configuration.")
def app_conf(input: Input) -> Output:
    level = AppConf("web", "log.level", namespace="shop")
    return Output(
        request("create", AppConf("web", "log.level").create("info")),
        request("update", level.update("debug")),
        request("delete", level.delete()),
    )


@handler("config-basic", description="Plain keys.")
def basic(input: Input) -> Output:
    return Output(
        request("get", Basic("region").get()),
        request("put", Basic("region").put("north")),
        request("delete", Basic("a/b c").delete()),
    )


@handler("config-two-layers", description="Leaves under two levels.")
def two_layers(input: Input) -> Output:
    red = TwoLayers("teams", "red")
    return Output(
        request("get", red.get()),
        request("create", red.create("1")),
        request("update", red.update("2")),
        request("delete", red.delete()),
    )


@handler("config-transaction", description="All or nothing.")
def all_or_nothing(input: Input) -> Output:
    all = transaction(
        Entry.pod("shop", "web").update("entry"),
        AppConf("web", "mode", namespace="shop").create("fast"),
        Basic("count").put("7"),
        TwoLayers("teams", "red").delete(),
    )
    return Output(request("all", all))


@handler(
    "secrets",
    description="Secrets.",
    capabilities={"secretstore": [{"names": ["*"], "verbs": ["get", "create", "update", "delete"]}]},
)
def secrets(input: Input) -> Output:
    db = Secret("db")
    return Output(
        request("get", db.get()),
        request("create", db.create()),
        request("create-with", db.create_with({"user": "app", "password": 'p"w'})),
        request("update", db.update(3)),
        request("update-with", db.update_with(0, "p")),
        request("delete", db.delete()),
    )
