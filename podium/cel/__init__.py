"""The Common Expression Language of Kubernetes device selectors, as kube-scheduler evaluates it.

Pure and safe for threads: no I/O (but time zones by name), no clock. Any text gives a `Selector` or a `CompileError`,
whatever its length and nesting; any evaluation ends.
"""

from podium.cel.devices import BoundDevice
from podium.cel.errors import CompileError, EvaluationError
from podium.cel.selector import COST_LIMIT, Selector, compile_selector

__all__ = ["COST_LIMIT", "BoundDevice", "CompileError", "EvaluationError", "Selector", "compile_selector"]
