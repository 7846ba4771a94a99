import re
import unittest
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from configurator_sdk import _contract

WIT = Path(__file__).parents[3] / "wit"
PLAIN = {
    "bool": "bool",
    "json": "str",
    "milliseconds": "int",
    "string": "str",
    "timestamp": "str",
    "u8": "int",
    "u16": "int",
    "u32": "int",
    "u64": "int",
}


def declared() -> list[tuple[str, str, str]]:
    """Every type of the contract: what it is, its name and what stands between its braces."""
    text = "\n".join(file.read_text() for file in sorted(WIT.glob("*.wit")))
    return re.findall(r"\b(enum|record|variant) ([a-z-]+) \{([^}]*)\}", re.sub(r"//.*", "", text))


def named(wit: str) -> str:
    return "".join(word.capitalize() for word in wit.split("-"))


def snake(wit: str) -> str:
    return wit.lstrip("%").replace("-", "_")


def typed(wit: str) -> str:
    """A type of the contract, as Python spells it."""
    if wit == "list<u8>":
        return "bytes"
    outer = re.fullmatch(r"(\w+)<(.*)>", wit)
    if outer is None:
        return PLAIN.get(wit, named(wit))
    # Only a tuple has several, and none of them has a comma in it.
    inner = ", ".join(typed(one.strip()) for one in (outer[2].split(",") if outer[1] == "tuple" else [outer[2]]))
    return f"{inner} | None" if outer[1] == "option" else f"{outer[1]}[{inner}]"


def said(cls: Any) -> list[tuple[str, Any]]:
    assert is_dataclass(cls)
    return [(field.name, field.type) for field in fields(cls)]


@unittest.skipUnless(WIT.is_dir(), "the contract lies in the repository only")
class TestContract(unittest.TestCase):
    def of(self, wit: str) -> Any:
        return eval(typed(wit), vars(_contract))

    def test_records_have_the_fields_of_the_contract(self):
        for kind, name, body in declared():
            if kind == "record":
                pairs = [line.rstrip(",").split(": ") for line in map(str.strip, body.splitlines()) if line]
                wanted = [(snake(field), self.of(wit)) for field, wit in pairs]
                self.assertEqual(said(getattr(_contract, named(name))), wanted, name)

    def test_enums_and_variants_have_the_cases_of_the_contract(self):
        for kind, name, body in declared():
            cases = [case for case in (one.strip() for one in body.replace("\n", " ").split(",")) if case]
            cls = getattr(_contract, named(name))
            if kind == "enum":
                self.assertTrue(issubclass(cls, Enum))
                wanted = [(snake(case).upper(), number) for number, case in enumerate(cases)]
                self.assertEqual([(one.name, one.value) for one in cls], wanted, name)
            elif kind == "variant":
                for case in cases:
                    word, _, wit = case.rstrip(")").partition("(")
                    one = getattr(_contract, f"{named(name)}_{named(word.lstrip('%'))}")
                    self.assertIn(one, cls.__args__, name)
                    self.assertEqual(said(one), [("value", self.of(wit))] if wit else [], case)
                self.assertEqual(len(cls.__args__), len(cases), name)

    def test_there_are_no_other_types(self):
        types = {named(name) for _, name, _ in declared()}
        classes = [value for value in vars(_contract).values() if getattr(value, "__module__", "") == _contract.__name__]
        for cls in classes:
            self.assertIn(cls.__name__.partition("_")[0], types)
