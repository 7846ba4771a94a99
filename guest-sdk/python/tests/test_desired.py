import unittest
from datetime import timedelta

from configurator_sdk import (
    Json,
    OnConflict,
    OnDelete,
    OnExisting,
    OnImmutable,
    Readiness,
    TerminationPolicy,
    desired_entry,
    desired_set,
    kubernetes,
    request,
    wire,
)
from configurator_sdk.configstore import AppConf, Basic, Entry, TwoLayers
from configurator_sdk.kubernetes import POD
from configurator_sdk.secretstore import Secret


def said(record):
    """The fields of a record that are not left to the host."""
    return {name: value for name, value in vars(record).items() if value is not None}


class TestEntries(unittest.TestCase):
    def test_what_is_not_said_is_left_to_the_host(self):
        content = wire.Content_Kubernetes('{"kind":"Pod"}')
        self.assertEqual(
            said(desired_entry("a", {"kind": "Pod"})),
            {"name": "a", "content": content, "depends_on": [], "ignored_paths": []},
        )

    def test_every_option_is_said(self):
        full = desired_entry(
            "a",
            Secret("db").content(),
            depends_on=("b", "c"),
            ready_when=Readiness.HEALTHY,
            failed_when="object.failed",
            timeout=timedelta(seconds=1.5),
            on_existing=OnExisting.CREATE_ONLY,
            on_conflict=OnConflict.FORCE,
            on_immutable=OnImmutable.RECREATE,
            ignored_paths=(".spec.replicas",),
            on_delete=OnDelete.ONLY_UNDER_WIPE_OUT,
        )
        wanted = wire.DesiredEntry(
            "a",
            wire.Content_Secret(wire.SecretContent("db", None, None)),
            ["b", "c"],
            wire.Readiness_Healthy(),
            "object.failed",
            1500,
            OnExisting.CREATE_ONLY,
            OnConflict.FORCE,
            OnImmutable.RECREATE,
            [".spec.replicas"],
            OnDelete.ONLY_UNDER_WIPE_OUT,
        )
        self.assertEqual(full, wanted)


class TestContents(unittest.TestCase):
    def test_an_object_is_written_once(self):
        self.assertEqual(kubernetes.content({"kind": "Pod"}), wire.Content_Kubernetes('{"kind":"Pod"}'))
        self.assertEqual(desired_entry("a", Json("{ }")).content, wire.Content_Kubernetes("{ }"))
        content = kubernetes.content({"kind": "Pod"})
        self.assertIs(desired_entry("a", content).content, content)

    def test_each_key_of_the_config_store_has_its_place(self):
        contents = [
            Entry.workload("shop", "Deployment", "web", uid="u").content("a"),
            Entry.node("n").content("b"),
            AppConf("web", "tier", namespace="shop").content("c"),
            Basic("region").content("d", partition="team-a"),
            TwoLayers("teams", "red").content("e"),
        ]
        self.assertEqual(
            [one.value.key for one in contents],
            [
                wire.ConfigKey_Resource(wire.ConfigResourceKey(wire.ConfigType.WORKLOAD, "web", "u", "shop", "Deployment")),
                wire.ConfigKey_Resource(wire.ConfigResourceKey(wire.ConfigType.NODE, "n", None, None, None)),
                wire.ConfigKey_AppConf(wire.ConfigAppConfKey("web", "shop", "tier")),
                wire.ConfigKey_Basic("region"),
                wire.ConfigKey_TwoLayers(wire.ConfigTwoLayersKey("teams", "red")),
            ],
        )
        self.assertEqual([one.value.value for one in contents], ["a", "b", "c", "d", "e"])
        self.assertEqual([one.value.partition for one in contents], [None, None, None, "team-a", None])

    def test_a_secret_has_the_value_that_the_host_or_the_handler_makes(self):
        generated = Secret("db").content(partition="team-a")
        self.assertEqual(generated, wire.Content_Secret(wire.SecretContent("db", None, "team-a")))
        given = Secret("db").content_with({"user": "a"})
        self.assertEqual(given, wire.Content_Secret(wire.SecretContent("db", '{"user":"a"}', None)))


class TestSets(unittest.TestCase):
    def test_what_is_not_said_is_left_to_the_host(self):
        self.assertEqual(desired_set(), wire.DesiredSet([], False, None, None, []))
        self.assertTrue(desired_set(allow_empty=True).allow_empty)

    def test_entries_keep_their_order(self):
        first, second = desired_entry("a", {}), desired_entry("b", {}, depends_on=["a"])
        self.assertEqual(desired_set(first, second).entries, [first, second])

    def test_a_termination_policy_is_named_or_read_from_the_owner(self):
        named = desired_set(termination_policy=TerminationPolicy.WIPE_OUT)
        self.assertEqual(named.termination_policy, wire.Termination_Policy(TerminationPolicy.WIPE_OUT))
        read = desired_set(termination_policy_at=".spec.policy")
        self.assertEqual(read.termination_policy, wire.Termination_Path(".spec.policy"))
        with self.assertRaises(ValueError):
            desired_set(termination_policy=TerminationPolicy.DELETE, termination_policy_at=".spec.policy")

    def test_an_order_that_is_not_given_is_empty(self):
        terminated = desired_set(terminate=[["b"], ["a"]])
        self.assertEqual(terminated.orders, wire.Orders([], [], [["b"], ["a"]]))
        every = desired_set(provision=[["a"], ["b", "c"]], update=[["c"]])
        self.assertEqual(every.orders, wire.Orders([["a"], ["b", "c"]], [["c"]], []))

    def test_requests_go_before_a_deletion(self):
        delete = request("pod", POD.delete("shop", "web"))
        self.assertEqual(desired_set(pre_terminate=[delete]).pre_terminate, [delete])
