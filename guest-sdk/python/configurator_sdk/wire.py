"""The types of the contract, as the host sends and takes them.

In a module these are the classes that componentize-py makes of the contract. Elsewhere, where tests call handlers, they are the classes
of `_contract`, which have the same names and fields.
"""

# ruff: noqa: F401
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._contract import *
else:
    try:
        from wit_world.exports.handler import *
        from wit_world.imports.desired import *
        from wit_world.imports.log import Level
        from wit_world.imports.requests import *
        from wit_world.imports.types import *
    except ImportError:
        from ._contract import *
