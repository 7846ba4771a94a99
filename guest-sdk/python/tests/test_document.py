import math
import unittest

from configurator_sdk import Json, document


class TestDocuments(unittest.TestCase):
    def test_what_is_read_is_written_again(self):
        texts = ['{"b":1,"a":[true,false,null,"é","\\"",0.5]}', "[]", "{}", '""', "12345678901234567890"]
        for text in texts:
            self.assertEqual(document.text(document.value(text)), text)

    def test_text_that_is_json_already_is_handed_on_untouched(self):
        self.assertEqual(document.text(Json('{ "a" : 1E400 }')), '{ "a" : 1E400 }')
        self.assertEqual(document.text("{}"), '"{}"')

    def test_text_that_is_json_already_stays_as_it_is_within_a_document(self):
        part = Json('{ "n" : 1E400, "é": 0.10 }')
        self.assertEqual(document.text({"a": part}), '{"a":{ "n" : 1E400, "é": 0.10 }}')
        self.assertEqual(document.text([{"a": (part, "é\ud834")}, 1]), '[{"a":[%s,"\\u00e9\\ud834"]},1]' % part)
        self.assertEqual(document.text({1: part, None: "x", False: 0.5}), '{"1":%s,"null":"x","false":0.5}' % part)
        self.assertEqual(document.text({Json("key"): part, "b": "{}"}), '{"key":%s,"b":"{}"}' % part)

    def test_what_is_before_a_member_is_skipped_and_what_is_behind_it_not_read(self):
        text = '{"kind":"Pod","nothing":null,"metadata":{"name":"é"},"spec":{"metadata":1}}'
        self.assertEqual(document.member(text, "metadata"), {"name": "é"})
        self.assertEqual(document.member(text, "spec"), {"metadata": 1})
        self.assertIsNone(document.member(text, "nothing"))
        self.assertEqual(document.member('{"a":1,"b":half', "a"), 1)

    def test_a_member_is_found_whatever_stands_around_it(self):
        for text in ['{"a":1,"b":2}', ' { "a" : 1 , "b" : 2 } ', '{"a":1,"b": 2}', '{"a":1 ,"b":2}', '{"a":1, "b":2}', '{"\\u0062":2}']:
            self.assertEqual(document.member(text, "b"), 2, text)
            self.assertIsNone(document.member(text, "c"), text)
        self.assertIsNone(document.member("{}", "a"))
        for text in ["", "{", '{"a"', '{"a":', '{"a":1', '{"b":1,', "{'a':1}"]:
            with self.assertRaises(ValueError, msg=text):
                document.member(text, "c")

    def test_what_is_no_json_is_not_read(self):
        for text in ["NaN", "[-Infinity]", "\ufeff{}", "{'a': 1}", "", "1 2", "{}x"]:
            with self.assertRaises(ValueError):
                document.value(text)

    def test_an_integer_is_read_up_to_4300_digits(self):
        self.assertEqual(document.text(document.value("9" * 4300)), "9" * 4300)
        with self.assertRaises(ValueError):
            document.value("9" * 4301)

    def test_what_has_no_form_in_json_is_refused(self):
        for nothing in [math.nan, math.inf]:
            with self.assertRaises(ValueError):
                document.text(nothing)
        with self.assertRaises(TypeError):
            document.text({"body": b"bytes"})

    def test_half_of_a_surrogate_pair_stays_an_escape(self):
        self.assertEqual(document.text(document.value('["é\\ud834"]')), '["\\u00e9\\ud834"]')

    def test_documents_may_be_a_hundred_levels_deep(self):
        deep = "[" * 100 + "]" * 100
        self.assertEqual(document.text(document.value(deep)), deep)
