import unittest

from configurator_sdk import request, wire
from configurator_sdk.extension import Extension


class TestExtension(unittest.TestCase):
    def test_a_request_names_extension_verb_and_target(self):
        dns = Extension("dns")
        delete = dns.request("delete", "example.org/www")
        self.assertEqual(
            delete, wire.Operation_Extension(wire.ExtensionRequest("dns", "delete", "example.org/www", None))
        )
        upsert = dns.request_with("upsert", "example.org/www", {"a": "192.0.2.1"})
        self.assertEqual((upsert.value.verb, upsert.value.body), ("upsert", '{"a":"192.0.2.1"}'))
        self.assertEqual(request("address", upsert).operation, upsert)

    def test_null_is_a_body(self):
        self.assertEqual(Extension("dns").request_with("clear", "example.org", None).value.body, "null")
