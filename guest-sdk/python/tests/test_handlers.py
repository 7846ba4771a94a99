import contextlib
import io
import unittest

from configurator_sdk import Accepts, HandlerError, Input, Output, View, call, handler
from configurator_sdk.handlers import describe


@handler("root", description="Does nothing.", parameters_schema={"type": "object"}, capabilities={"secretstore": []})
def root(input):
    return Output()


@handler("write-all", accepts=Accepts.BATCH, view=View.CHECK_LIST)
def write_all(input):
    return Output()


@handler("either", accepts=Accepts.EITHER)
def either(input):
    return Output()


@handler("broken")
def broken(input):
    return input.object["metadata"]


@handler("forgetful")
def forgetful(input):
    pass


class TestCalls(unittest.TestCase):
    def fails(self, name, input, message, fatal=True):
        with self.assertRaises(HandlerError) as raised:
            call(name, input)
        self.assertEqual((raised.exception.message, raised.exception.fatal), (message, fatal))

    def test_an_unknown_name_is_answered_with_the_known_ones(self):
        self.fails(
            "rooot",
            Input.of(),
            "this module has no handler `rooot`; it has: root, write-all, either, broken, forgetful",
        )

    def test_a_handler_gets_only_what_it_accepts(self):
        one, batch = Input.of(), Input.of({}, {}, batch=True)
        for name, input in [("root", one), ("write-all", batch), ("either", one), ("either", batch)]:
            self.assertIsInstance(call(name, input), Output)
        self.fails(
            "root",
            batch,
            "handler `root` takes one object, and got a batch: remove `chain.batch` from the Configurator",
        )
        self.fails(
            "write-all",
            one,
            "handler `write-all` takes a batch, and got one object: add `chain.batch` to the Configurator",
        )

    def test_a_mistake_is_a_failure_that_is_retried_and_logged(self):
        logged = io.StringIO()
        with contextlib.redirect_stderr(logged):
            self.fails("broken", Input.of(), "KeyError: 'metadata'", fatal=False)
            message = "TypeError: handler `forgetful` returned NoneType, not an Output"
            self.fails("forgetful", Input.of(), message, fatal=False)
        self.assertIn("Traceback", logged.getvalue())

    def test_the_description_lists_every_handler(self):
        told = [(one.name, one.accepts, one.view) for one in describe().handlers[:3]]
        self.assertEqual(
            told,
            [
                ("root", Accepts.ONE, View.NONE),
                ("write-all", Accepts.BATCH, View.CHECK_LIST),
                ("either", Accepts.EITHER, View.NONE),
            ],
        )
        self.assertEqual(describe().handlers[0].parameters_schema, '{"type":"object"}')
        self.assertEqual(describe().handlers[0].capabilities, '{"secretstore":[]}')
        self.assertIsNone(describe().handlers[1].capabilities)

    def test_names_are_used_once(self):
        for name in ["", "root"]:
            with self.assertRaises(ValueError):
                handler(name)(root)
