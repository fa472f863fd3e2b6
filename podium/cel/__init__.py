"""The Common Expression Language of Kubernetes device selectors, as kube-scheduler evaluates it.

Pure and thread-safe: no clock, and no I/O except for reading time zones by name. Every text gives a `Selector` or a
`CompileError`, whatever its length and nesting. Every evaluation terminates.
"""

from podium.cel.devices import BoundDevice
from podium.cel.errors import CompileError, EvaluationError
from podium.cel.selector import COST_LIMIT, Selector, compile_selector

__all__ = [
    "COST_LIMIT",
    "BoundDevice",
    "CompileError",
    "EvaluationError",
    "Selector",
    "compile_selector",
]
