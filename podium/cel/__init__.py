"""The Common Expression Language of Kubernetes device selectors, as kube-scheduler evaluates it.

Pure and thread-safe: no clock, and no I/O except for reading time zones by name. Every text gives a `Selector` or a
`CompileError`, whatever its length and nesting. Every evaluation terminates. Imports nothing else of podium: the caller
hands in the parser of quantities.
"""

from podium.cel.devices import BoundDevice
from podium.cel.errors import CompileError, EvaluationError
from podium.cel.libraries.quantities import Quantity
from podium.cel.libraries.versions import parse as parse_version
from podium.cel.rules import SelectorRules
from podium.cel.selector import COST_LIMIT, Selector, compile_selector

__all__ = [
    "COST_LIMIT",
    "BoundDevice",
    "CompileError",
    "EvaluationError",
    "Quantity",
    "Selector",
    "SelectorRules",
    "compile_selector",
    "parse_version",
]
