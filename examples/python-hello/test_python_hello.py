"""The handler is called like any function."""

import unittest

from configurator_sdk import HandlerError, Input, request
from configurator_sdk.kubernetes import CONFIG_MAP

from python_hello import root


class TestRoot(unittest.TestCase):
    def test_a_namespace_gets_its_config_map(self):
        output = root(Input.of({"metadata": {"name": "shop"}}))
        hello = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "shop", "name": "hello"},
            "data": {"greeting": "hello, shop"},
        }
        self.assertEqual(output.requests, [request("hello", CONFIG_MAP.apply("shop", "hello", hello))])

    def test_an_object_without_a_name_is_refused(self):
        with self.assertRaises(HandlerError) as raised:
            root(Input.of({}))
        self.assertTrue(raised.exception.fatal)
