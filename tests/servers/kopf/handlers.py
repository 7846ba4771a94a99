"""An operator for tests, on kopf: each Widget gets a ConfigMap of its colour.

It prints one JSON document a line for what it has done. What kopf logs goes to standard error.
"""

import json
import sys
import threading

import kopf
import kubernetes

LABEL = "clients.configurator.dev/made-by"


# Handlers run in threads, and a line must stay whole.
speaking = threading.Lock()


def say(**what):
    with speaking:
        sys.stdout.write(json.dumps(what, sort_keys=True) + "\n")
        sys.stdout.flush()


@kopf.on.startup()
def settings(settings: kopf.OperatorSettings, **_):
    settings.persistence.finalizer = "clients.configurator.dev/kopf"
    settings.posting.enabled = True
    say(did="start")


@kopf.on.cleanup()
def cleanup(**_):
    say(did="stop")


@kopf.index("widgets")
def colors(name, spec, **_):
    return {spec["color"]: name}


@kopf.on.create("widgets")
def create(name, namespace, spec, body, retry, **_):
    """Fails at first, so that kopf keeps its progress in the object and tries once more."""
    if retry == 0:
        raise kopf.TemporaryError("not yet", delay=0.1)
    wanted = config_map(name, spec, body)
    made = kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, wanted)
    kopf.event(body, type="Normal", reason="Made", message=f"ConfigMap {made.metadata.name} is made")
    say(did="create", widget=name, color=spec["color"])
    return {"made": made.metadata.name}


@kopf.on.update("widgets", field="spec.color")
def update(name, namespace, spec, body, old, new, **_):
    core = kubernetes.client.CoreV1Api()
    live = core.read_namespaced_config_map(name, namespace)
    live.data = {"color": new, "before": old}
    core.replace_namespaced_config_map(name, namespace, live)
    say(did="update", widget=name, old=old, new=new)


@kopf.on.field("widgets", field="metadata.labels")
def labelled(name, diff, **_):
    say(did="label", widget=name, diff=[[op, list(field), old, new] for op, field, old, new in diff])


@kopf.on.delete("widgets")
def delete(name, namespace, colors: kopf.Index, spec, **_):
    say(did="delete", widget=name, alike=sorted(colors.get(spec["color"], [])))


@kopf.on.event("configmaps", labels={LABEL: "kopf"})
def seen(event, name, body, **_):
    say(did="see", type=event["type"], config_map=name, color=body.get("data", {}).get("color"))


@kopf.daemon("widgets", field="spec.size", value=7)
async def watchful(name, stopped, patch, **_):
    """Runs beside a Widget of this size for as long as there is one."""
    say(did="begin", widget=name)
    await stopped.wait()
    say(did="end", widget=name)


def config_map(name, spec, body):
    wanted = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"color": spec["color"]},
    }
    kopf.label(wanted, {LABEL: "kopf"})
    kopf.adopt(wanted, owner=body)
    return wanted
