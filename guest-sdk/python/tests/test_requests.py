import unittest
from datetime import timedelta

from configurator_sdk import (
    HandlerError,
    ObjectRef,
    OnError,
    Readiness,
    configstore,
    http,
    request,
    wire,
)
from configurator_sdk.configstore import AppConf, Basic, Entry, TwoLayers
from configurator_sdk.kubernetes import (
    CONFIG_MAP,
    DEPLOYMENT,
    NODE,
    POD,
    ObjectKey,
    PatchType,
    PropagationPolicy,
)
from configurator_sdk.secretstore import Secret


def said(record):
    """The fields of a record that are not left to the host."""
    return {name: value for name, value in vars(record).items() if value is not None}


class TestOptions(unittest.TestCase):
    def test_what_is_not_said_is_left_to_the_host(self):
        plain = request("a", Basic("key").get())
        self.assertEqual(
            said(plain),
            {
                "request_name": "a",
                "is_declarative": False,
                "bootstrap_dep": False,
                "depends_on": [],
                "once": False,
                "operation": Basic("key").get(),
            },
        )

    def test_every_option_is_said(self):
        full = request(
            "a",
            Basic("key").get(),
            declarative=True,
            group_by="all",
            bootstrap_dep=True,
            of=ObjectRef("shop", "web"),
            on_error=OnError.CATCH_ERROR,
            depends_on=("b", "c"),
            ready_when=Readiness.expression("object.ready"),
            once=True,
            timeout=timedelta(seconds=1.5),
            partition="team-a",
        )
        self.assertTrue(full.is_declarative and full.bootstrap_dep and full.once)
        self.assertEqual((full.group_by, full.of), ("all", ObjectRef("shop", "web")))
        self.assertEqual((full.on_error, full.depends_on), (OnError.CATCH_ERROR, ["b", "c"]))
        self.assertEqual(full.ready_when, wire.Readiness_Expression("object.ready"))
        self.assertEqual(Readiness.HEALTHY, wire.Readiness_Healthy())
        self.assertEqual((full.timeout, full.partition), (1500, "team-a"))


class TestKubernetes(unittest.TestCase):
    def check(self, operation, verb, **options):
        at = {"namespace": "shop", "name": "web", "version": "v1", "verb": wire.KubernetesVerb[verb]}
        told = said(operation.value)
        for name in ["group", "plural", "kind"]:
            del told[name]
        self.assertEqual(told, at | options)

    def test_each_verb_has_its_options(self):
        at = ("shop", "web")
        self.check(POD.get(*at, cached=True, subresource="log"), "GET", cached=True, subresource="log")
        self.check(
            POD.list("", labels="a=b", fields="spec.nodeName=n", cached=True),
            "LIST",
            namespace="",
            name="",
            label_selector="a=b",
            field_selector="spec.nodeName=n",
            cached=True,
        )
        self.check(
            DEPLOYMENT.patch(*at, [], patch_type=PatchType.JSON_PATCH, subresource="scale", resource_version="7"),
            "PATCH",
            resource_body="[]",
            patch_type=PatchType.JSON_PATCH,
            subresource="scale",
            precondition=wire.Precondition(None, "7"),
        )
        self.check(
            POD.create(*at, {}, must_not_exist=True),
            "CREATE",
            resource_body="{}",
            precheck_exist=False,
        )
        self.check(
            POD.create(*at, {}, subresource="eviction"),
            "CREATE",
            resource_body="{}",
            subresource="eviction",
        )
        self.check(
            POD.replace(*at, {}, uid="u"),
            "REPLACE",
            resource_body="{}",
            precondition=wire.Precondition("u", None),
        )
        self.check(POD.apply(*at, {}, force=True), "APPLY", resource_body="{}", force=True)
        self.check(
            POD.delete(*at, propagation=PropagationPolicy.ORPHAN, uid="u"),
            "DELETE",
            propagation_policy=PropagationPolicy.ORPHAN,
            precondition=wire.Precondition("u", None),
        )

    def test_what_is_not_said_is_left_to_the_host(self):
        self.check(POD.get("shop", "web"), "GET")
        self.check(POD.create("shop", "web", {}), "CREATE", resource_body="{}")
        self.check(POD.apply("shop", "web", {}), "APPLY", resource_body="{}")

    def test_the_core_group_has_no_slash(self):
        self.assertEqual((POD.api_version, DEPLOYMENT.api_version), ("v1", "apps/v1"))

    def test_a_key_names_an_object(self):
        self.assertEqual(NODE.key("", "n"), ObjectKey("", "v1", "nodes", "", "n"))
        self.assertEqual(CONFIG_MAP.kind, "ConfigMap")


class TestStores(unittest.TestCase):
    def test_each_type_of_entry_has_its_place(self):
        entries = [
            Entry.pod("shop", "web", uid="u").get(),
            Entry.node("n").create("1"),
            Entry.of_namespace("shop").update("1"),
            Entry.workload("shop", "Deployment", "web").delete(),
        ]
        told = [said(entry.value) for entry in entries]
        self.assertEqual([one.pop("config_type").name for one in told], ["POD", "NODE", "NAMESPACE", "WORKLOAD"])
        self.assertEqual([one.pop("config_verb").name for one in told], ["GET", "CREATE", "UPDATE", "DELETE"])
        self.assertEqual(
            told,
            [
                {"resource_name": "web", "namespace": "shop", "resource_uid": "u"},
                {"resource_name": "n", "value": "1"},
                {"resource_name": "shop", "value": "1"},
                {"resource_name": "web", "namespace": "shop", "workload_kind": "Deployment"},
            ],
        )

    def test_keys_and_leaves_are_written(self):
        app_conf = AppConf("web", "tier", namespace="shop").update("gold").value
        self.assertEqual((app_conf.pod_name, app_conf.namespace, app_conf.value), ("web", "shop", "gold"))
        self.assertEqual(AppConf("web", "tier").create("1").value.verb.name, "CREATE")
        self.assertEqual(AppConf("web", "tier").delete().value.verb.name, "DELETE")
        self.assertEqual(Basic("k").put("v").value.value, "v")
        self.assertEqual(Basic("k").delete().value.verb.name, "DELETE")
        leaf = TwoLayers("a", "b")
        told = [one.value.verb.name for one in [leaf.get(), leaf.create("1"), leaf.update("2"), leaf.delete()]]
        self.assertEqual(told, ["GET", "CREATE", "UPDATE", "DELETE"])

    def test_a_transaction_keeps_the_order_and_takes_only_the_config_store(self):
        operations = [
            Basic("b").put("1"),
            Entry.node("n").delete(),
            TwoLayers("a", "b").delete(),
            AppConf("web", "a").delete(),
        ]
        parts = configstore.transaction(*operations).value.operations
        self.assertEqual([part.value for part in parts], [one.value for one in operations])
        with self.assertRaises(TypeError):
            configstore.transaction(Secret("db").get())

    def test_a_secret_has_the_value_that_the_host_or_the_handler_makes(self):
        self.assertIsNone(Secret("db").create().value.value)
        self.assertEqual(Secret("db").create_with({"a": 1}).value.value, '{"a":1}')
        self.assertEqual(Secret("db").get().value.verb.name, "GET")
        self.assertEqual(Secret("db").delete().value.verb.name, "DELETE")

    def test_an_update_of_a_secret_names_the_version_that_is_stored(self):
        generated, given = Secret("db").update(3).value, Secret("db").update_with(0, "p").value
        self.assertEqual((generated.verb.name, generated.version, generated.value), ("UPDATE", 3, None))
        self.assertEqual((given.verb.name, given.version, given.value), ("UPDATE", 0, '"p"'))
        self.assertIsNone(Secret("db").get().value.version)

    def test_an_http_request_has_method_headers_and_body(self):
        post = http.post("https://a/", headers={"x": "y"}, body="é").value
        self.assertEqual((post.method, post.headers, post.body), ("POST", [("x", "y")], "é".encode()))
        cookies = [("cookie", "a=1"), ("cookie", "b=2")]
        self.assertEqual(http.get("https://a/", headers=cookies).value.headers, cookies)
        self.assertEqual(said(http.get("https://a/").value), {"method": "GET", "url": "https://a/", "headers": []})
        self.assertEqual(http.send("PUT", "https://a/", body=b"\0").value.body, b"\0")


class TestErrors(unittest.TestCase):
    def test_an_error_says_when_and_what(self):
        error = HandlerError("no quota", retry_after=timedelta(seconds=30), code="QUOTA")
        self.assertEqual(error.to_wire(), wire.HandlerError("no quota", False, 30_000, "QUOTA"))
        again = HandlerError.of_wire(error.to_wire())
        self.assertEqual(again.to_wire(), error.to_wire())
