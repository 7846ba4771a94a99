import contextlib
import io
import unittest

from configurator_sdk import log


class TestLog(unittest.TestCase):
    def test_a_line_shows_its_fields_in_order(self):
        written = io.StringIO()
        with contextlib.redirect_stderr(written):
            log.warn("no owner", pod="web-1", level=3)
        self.assertEqual(written.getvalue(), "WARN no owner pod='web-1' level='3'\n")
