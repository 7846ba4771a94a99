"""The phases of a batch, called as the host calls them."""

import unittest

from configurator_sdk import ErrorKind, HandlerError, Input, ObjectRef, Result, call, request
from configurator_sdk.configstore import Entry
from configurator_sdk.kubernetes import NAMESPACE

import workload_config  # noqa: F401 - its import declares the handlers


def deployment(namespace, name):
    container = {
        "name": "server",
        "image": "registry.example.com/web:1",
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "PORT", "value": "8080"}, {"name": "TOKEN", "value": "hush"}],
    }
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"u-{name}",
            "annotations": {"config.configurator.dev/tier": "gold", "other": "x"},
        },
        "spec": {
            "replicas": 2,
            "template": {"spec": {"serviceAccountName": name, "containers": [container]}},
        },
    }


def entry(namespace, name):
    return Entry.workload(namespace, "Deployment", name, uid=f"u-{name}")


def stored(name, value):
    return Result.answered(f"entry/shop/{name}", {"key": "k", "uid": f"u-{name}", "value": value})


def write(*names, **groups):
    objects = [deployment("shop", name) for name in names]
    return call("write", Input.of(*objects, batch=True, groups=groups)).requests


class TestRoot(unittest.TestCase):
    def test_each_namespace_is_asked_for_once(self):
        batch = [deployment("shop", "web"), deployment("shop", "cart"), deployment("ads", "web")]
        output = call("root", Input.of(*batch, batch=True))

        def namespace(name):
            get = NAMESPACE.get("", name, cached=True)
            return request(f"namespace/{name}", get, group_by="namespaces")

        def get(namespace, name):
            return request(
                f"entry/{namespace}/{name}",
                entry(namespace, name).get(),
                group_by="entries",
                of=ObjectRef(namespace, name),
            )

        expected = [namespace("ads"), namespace("shop"), get("shop", "web"), get("shop", "cart"), get("ads", "web")]
        self.assertEqual(output.requests, expected)

    def test_an_object_that_is_none_of_the_api_is_refused(self):
        with self.assertRaises(HandlerError) as raised:
            call("root", Input.of({"metadata": {"name": "web"}}, batch=True))
        self.assertTrue(raised.exception.fatal)


class TestWrite(unittest.TestCase):
    def test_each_deployment_is_summarised_over_its_namespace(self):
        annotations = {"config.configurator.dev/tier": "tin", "config.configurator.dev/zone": "a"}
        namespace = Result.answered("namespace/shop", {"metadata": {"annotations": annotations}})
        absent = Result.failed("entry/shop/web", ErrorKind.RESOURCE_NOT_FOUND, "not found")
        value = (
            '{"replicas":2,"serviceAccount":"web","containers":[{"name":"server","image":"registry.example.com/web:1",'
            '"ports":[8080],"env":["PORT","TOKEN"]}],"config":{"tier":"gold","zone":"a"}}'
        )
        update = entry("shop", "web").update(value)
        self.assertEqual(
            write("web", namespaces=[namespace], entries=[absent]),
            [request("config/shop/web", update, of=ObjectRef("shop", "web"))],
        )

    def test_only_entries_that_changed_are_written(self):
        first = write("web", "cart", "ads")
        self.assertEqual(len(first), 3)
        values = [one.operation.value.value for one in first]
        entries = [stored("web", values[0]), stored("cart", "{}"), stored("ads", values[2])]
        second = write("web", "cart", "ads", entries=entries)
        self.assertEqual([one.of for one in second], [ObjectRef("shop", "cart")])

    def test_a_namespace_that_cannot_be_read_is_not_taken_for_absent(self):
        def failed(kind):
            return [Result.failed("namespace/shop", kind, "no answer")]

        with self.assertRaises(HandlerError) as raised:
            write("web", namespaces=failed(ErrorKind.API_SERVER_UNAVAILABLE))
        self.assertFalse(raised.exception.fatal)
        self.assertEqual(len(write("web", namespaces=failed(ErrorKind.RESOURCE_NOT_FOUND))), 1)

    def test_an_entry_that_cannot_be_read_is_written(self):
        failed = Result.failed("entry/shop/web", ErrorKind.CONFIGSTORE_UNAVAILABLE, "no answer")
        self.assertEqual(len(write("web", entries=[failed])), 1)


class TestCleanup(unittest.TestCase):
    def test_it_needs_nothing_but_the_identity(self):
        gone = {"metadata": {"namespace": "shop", "name": "web", "uid": "u-web"}}
        delete = entry("shop", "web").delete()
        self.assertEqual(
            call("cleanup", Input.of(gone, batch=True)).requests,
            [request("config/shop/web", delete, of=ObjectRef("shop", "web"))],
        )
