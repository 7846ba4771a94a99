import unittest
from datetime import timedelta

from configurator_sdk import (
    BatchErrorStrategy,
    EventType,
    HandlerError,
    ObjectRef,
    Output,
    desired_entry,
    desired_set,
    request,
    wire,
)
from configurator_sdk.configstore import Basic
from configurator_sdk.kubernetes import POD


class TestOutput(unittest.TestCase):
    def test_the_defaults_are_left_to_the_host(self):
        output = Output().to_wire()
        self.assertEqual(output.requests, wire.Requests(None, [], None))
        self.assertEqual(output.outcome, wire.Outcome_Done())
        self.assertIsNone(output.desired)
        self.assertEqual((output.remove_from_plan, output.reads), ([], []))

    def test_requests_keep_their_order(self):
        output = Output(request("a", Basic("k").get())).request(request("b", Basic("k").get()))
        self.assertEqual([one.request_name for one in output.requests], ["a", "b"])
        self.assertIs(output.to_wire().requests.resource_requests, output.requests)

    def test_strategies(self):
        def strategy(output):
            return output.to_wire().requests.execute_strategy.name

        self.assertEqual(strategy(Output().serial()), "SERIAL")
        self.assertEqual(strategy(Output().parallel()), "PARALLEL")
        self.assertEqual(strategy(Output().graph()), "GRAPH")
        dropped = Output().batch_error_strategy(BatchErrorStrategy.DROP_ERROR).to_wire()
        self.assertEqual(dropped.requests.batch_error_strategy, BatchErrorStrategy.DROP_ERROR)

    def test_statuses_and_events_name_their_object(self):
        web = ObjectRef("shop", "web")
        output = (
            Output()
            .status({"ready": True})
            .status(1, of=web)
            .event("Seen", "it was seen")
            .event("Slow", "it took long", type=EventType.WARNING, of=web)
            .to_wire()
        )
        self.assertEqual(output.statuses, [wire.StatusUpdate(None, '{"ready":true}'), wire.StatusUpdate(web, "1")])
        self.assertEqual(
            output.events,
            [
                wire.Event(None, EventType.NORMAL, "Seen", "it was seen"),
                wire.Event(web, EventType.WARNING, "Slow", "it took long"),
            ],
        )

    def test_what_stays_is_written_as_json(self):
        output = Output().data({"n": 1}).output([]).details(None).progress(250, "half").to_wire()
        self.assertEqual((output.data, output.output, output.details), ('{"n":1}', "[]", "null"))
        self.assertEqual(output.progress, wire.Progress(100, "half"))

    def test_outcomes(self):
        def outcome(output):
            return output.to_wire().outcome

        self.assertEqual(outcome(Output().again()), wire.Outcome_Again(None))
        self.assertEqual(outcome(Output().again(timedelta(seconds=1.5))), wire.Outcome_Again(1500))
        self.assertEqual(outcome(Output().stop()), wire.Outcome_Stop())
        key = POD.key("shop", "web")
        waiting = Output().wait(after=timedelta(minutes=1), signals=["go"], objects=[key])
        self.assertEqual(outcome(waiting), wire.Outcome_Wait(wire.Wake(60_000, ["go"], [key])))
        self.assertEqual(Output().next_phase("Running").to_wire().next, "Running")

    def test_a_failed_output_keeps_everything_but_its_requests(self):
        output = Output(request("a", Basic("k").get())).status(1).failed(HandlerError("not yet"))
        self.assertEqual(output.to_wire().requests.resource_requests, [])
        self.assertEqual(len(output.to_wire().statuses), 1)
        failed = wire.Outcome_Failed(wire.HandlerError("not yet", False, None, None))
        self.assertEqual(output.to_wire().outcome, failed)

    def test_a_set_is_all_that_an_owner_is_to_have(self):
        members = desired_set(desired_entry("a", {"kind": "Pod"}))
        self.assertIs(Output().desired(members).to_wire().desired, members)

    def test_a_plan_loses_what_is_removed_by_name(self):
        output = Output().remove_from_plan("a").remove_from_plan("b", "c").to_wire()
        self.assertEqual(output.remove_from_plan, ["a", "b", "c"])

    def test_a_handler_that_reads_is_entered_again(self):
        first, second = request("a", Basic("k").get()), request("b", POD.list("shop"))
        output = Output().read(first).read(second).to_wire()
        self.assertEqual((output.reads, output.outcome), ([first, second], wire.Outcome_Again(None)))
        self.assertEqual(output.requests.resource_requests, [])
