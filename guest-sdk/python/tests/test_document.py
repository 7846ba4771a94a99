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
