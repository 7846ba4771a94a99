import unittest
from dataclasses import replace
from datetime import timedelta

from configurator_sdk import (
    ErrorKind,
    HandlerError,
    Input,
    ObjectKey,
    OnDelete,
    Output,
    Result,
    State,
    WatchEvent,
    desired_entry,
    desired_set,
    document,
    kubernetes,
    request,
    wire,
)
from configurator_sdk.configstore import Basic
from configurator_sdk.kubernetes import POD


def check(self, read, message):
    with self.assertRaises(HandlerError) as raised:
        read()
    self.assertTrue(raised.exception.fatal)
    self.assertEqual(raised.exception.message, message)


class TestObjects(unittest.TestCase):
    def test_an_object_is_read_and_handed_on_untouched(self):
        input = Input.of({"metadata": {"name": "web-1"}})
        self.assertEqual(input.object["metadata"]["name"], "web-1")
        self.assertEqual(input.object_json, '{"metadata":{"name":"web-1"}}')
        self.assertEqual(input.event, WatchEvent.MODIFIED)
        self.assertFalse(input.is_batch)
        output = Output().pass_on("object", input.object_json)
        self.assertEqual(output.to_wire().pass_through_args, [("object", input.object_json)])

    def test_the_metadata_is_that_of_the_object(self):
        input = Input.of({"kind": "Pod", "metadata": {"name": "web-1"}, "spec": {}})
        self.assertEqual(input.metadata, {"name": "web-1"})
        self.assertEqual(input.metadata, input.object["metadata"])
        read = Input.of({"metadata": {"name": "web-1"}})
        self.assertIs(read.object["metadata"], read.metadata)
        self.assertIsNone(Input.of({}).metadata)

    def test_a_batch_is_a_list_of_objects(self):
        input = Input.of(1, 2, batch=True, event=WatchEvent.DELETED)
        self.assertTrue(input.is_batch)
        self.assertEqual([one.object for one in input.objects], [1, 2])
        self.assertEqual([one.event for one in input.objects], [WatchEvent.DELETED] * 2)
        self.assertEqual(input.object, 1)


class TestResults(unittest.TestCase):
    def setUp(self):
        self.input = Input.of(
            results=[Result.answered("node", {"kind": "Node"})],
            groups={"pods": [Result.answered("pod-1", {"n": 1})]},
            args={"layers": ["node", "namespace"]},
        )

    def test_results_and_groups_are_found_by_name(self):
        self.assertEqual(self.input.result("node").object["kind"], "Node")
        self.assertEqual([one.name for one in self.input.group("pods")], ["pod-1"])
        self.assertEqual(self.input.arg("layers"), ["node", "namespace"])
        self.assertIsNone(self.input.result_opt("pods"))
        self.assertEqual(self.input.group_opt("node"), [])
        self.assertEqual([key for key, _ in self.input.results.all()], ["node", "pods"])
        self.assertEqual(self.input.args, ["layers"])

    def test_what_is_missing_is_named_with_what_is_there(self):
        read = self.input
        check(self, lambda: read.result("nod"), "no result `nod`: the previous phase left node, pods")
        check(self, lambda: read.arg("layer"), "no argument `layer`: the previous phase left layers")
        self.assertIsNone(read.arg_json("layer"))
        nothing = Input.of()
        check(
            self,
            lambda: nothing.result("node"),
            "no result `node`: the previous phase left no results",
        )

    def test_a_group_is_not_a_result(self):
        check(
            self,
            lambda: self.input.result("pods"),
            "`pods` is a group of results, not the result of one request: read it as a group",
        )
        check(
            self,
            lambda: self.input.group("node"),
            "`node` is the result of one request, not a group: read it as a result",
        )

    def test_what_one_phase_passes_on_the_next_one_reads(self):
        first = Output().pass_on("count", 3)
        self.assertEqual(Input.of(args_of=first).arg("count"), 3)


class TestState(unittest.TestCase):
    def test_a_leaf_finds_what_it_asked_for_and_noted(self):
        first = Input.of()
        self.assertIsNone(first.last)
        self.assertIsNone(first.answer("pod"))
        self.assertEqual(first.answers("pods"), [])
        self.assertIsNone(first.notes)
        pod = Result.answered("pod", {"n": 1})
        error = HandlerError("no quota", code="QUOTA")
        state = State.of(pod, data={"tries": 2}, error=error, groups={"pods": [pod]})
        input = Input.of(last=state, outputs={"prepare": {"size": 3}})
        self.assertEqual(input.answer("pod").object, {"n": 1})
        self.assertEqual(len(input.answers("pods")), 1)
        self.assertEqual(input.notes, {"tries": 2})
        self.assertEqual(input.last.data_json, '{"tries":2}')
        self.assertTrue(input.last.failed)
        self.assertEqual((input.last.error.message, input.last.error.code), ("no quota", "QUOTA"))
        self.assertEqual(input.outputs, ["prepare"])
        self.assertEqual(input.output_of("prepare"), {"size": 3})
        check(
            self,
            lambda: input.output_of("prepar"),
            "no output `prepar`: earlier steps left prepare",
        )


class TestPlan(unittest.TestCase):
    def test_there_is_a_plan_only_in_a_pipeline(self):
        self.assertIsNone(Input.of().plan)

    def test_what_is_planned_can_be_put_back_whole_or_changed(self):
        map = {"kind": "ConfigMap", "metadata": {"name": "a"}}
        wanted = desired_set(
            desired_entry("map", map, on_delete=OnDelete.RETAIN, timeout=timedelta(seconds=30)),
            desired_entry("key", Basic("region").content("north", partition="team-a")),
            termination_policy_at=".spec.policy",
        )
        first = Output(request("pods", POD.list("shop"), group_by="pods")).graph().desired(wanted)
        plan = Input.of(plan_of=first).plan
        self.assertEqual(plan, wire.Plan(first.to_wire().requests, wanted))

        [member, key] = plan.desired.entries
        object = document.value(member.content.value)
        object["metadata"]["labels"] = {"planned": "yes"}
        changed = replace(member, content=kubernetes.content(object))
        second = Output(*plan.requests.resource_requests).desired(replace(plan.desired, entries=[changed, key])).to_wire()

        self.assertEqual(second.requests.resource_requests, first.requests)
        labelled = '{"kind":"ConfigMap","metadata":{"name":"a","labels":{"planned":"yes"}}}'
        self.assertEqual(changed.content, wire.Content_Kubernetes(labelled))
        self.assertEqual((changed.on_delete, changed.timeout), (OnDelete.RETAIN, 30_000))
        self.assertEqual(second.desired.entries, [changed, key])
        self.assertEqual(second.desired.termination_policy, wire.Termination_Path(".spec.policy"))
        # The input stays as it was.
        self.assertEqual(plan.desired.entries, wanted.entries)


class TestContext(unittest.TestCase):
    def test_facts_of_the_call_are_read(self):
        input = Input.of(parameters={"a": [1]}, attempt=2, phase="install", seed=2**64 - 1)
        context = input.context
        self.assertEqual((context.attempt, context.entry), (2, 1))
        self.assertEqual((context.phase, context.node), ("install", "install"))
        self.assertEqual(context.seed, 2**64 - 1)
        self.assertEqual(context.cause.kind, "entered")
        self.assertEqual(input.parameters, {"a": [1]})
        self.assertEqual(input.parameters_json, '{"a":[1]}')

    def test_a_cause_tells_what_belongs_to_it(self):
        self.assertEqual(Input.of(cause="retry").context.cause.kind, "retry")
        told = wire.Cause_Signal(wire.Signal("go", '{"by":"me"}'))
        signal = Input.of(cause=told).context.cause
        self.assertEqual((signal.kind, signal.signal.name), ("signal", "go"))
        self.assertEqual(signal.signal.data, {"by": "me"})
        self.assertIsNone(signal.changed)
        key = ObjectKey("", "v1", "pods", "shop", "web")
        changed = Input.of(cause=wire.Cause_Changed(key)).context.cause
        self.assertEqual((changed.kind, changed.changed, changed.signal), ("changed", key, None))


class TestResult(unittest.TestCase):
    def test_absence_is_not_a_failure_for_found(self):
        self.assertIsNone(Result.failed("node", ErrorKind.RESOURCE_NOT_FOUND).found)
        self.assertIsNone(Result.answered("node").found)
        self.assertEqual(Result.answered("node", 1).found, 1)

    def test_a_failure_is_fatal_unless_a_retry_may_help(self):
        def failed(kind):
            return Result.failed("node", kind, "it said no")

        message = "the request `node` failed: it said no"
        check(self, lambda: failed(ErrorKind.RESOURCE_PERMISSION).found, message)
        for kind in [ErrorKind.API_SERVER_UNAVAILABLE, ErrorKind.EXTENSION_UNAVAILABLE, ErrorKind.RESOURCE_NOT_FOUND]:
            with self.assertRaises(HandlerError) as raised:
                failed(kind).succeeded()
            self.assertFalse(raised.exception.fatal)

    def test_a_list_may_be_empty_but_an_object_may_not(self):
        nothing = Result.answered("pods")
        self.assertEqual(nothing.objects, [])
        check(self, lambda: nothing.object, "the result `pods` has no object")

    def test_an_http_answer_has_status_headers_and_body(self):
        answer = Result.responded("hook", 418, {"tea": True}, [("x-a", "b")]).response
        self.assertEqual((answer.status, answer.header("x-a"), answer.header("x")), (418, "b", None))
        self.assertEqual(answer.json(), {"tea": True})
        broken = Result.responded("hook", 200, b"\xff").response
        with self.assertRaises(HandlerError):
            broken.json()
        check(
            self,
            lambda: Result.answered("node").response,
            "the result `node` is none of an HTTP request",
        )
