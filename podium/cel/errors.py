"""What goes wrong with an expression: before it runs, while it runs, and because it runs too long."""

from __future__ import annotations


class CompileError(Exception):
    """The expression cannot be run on any device. The message is one line and says where."""


class EvaluationError(Exception):
    """The expression has no value for this device. `&&`, `||`, `all` and `exists` may absorb it."""


class CostLimitError(Exception):
    """The evaluation was cancelled because it costs too much. Nothing absorbs it; it never leaves this package."""


def no_such_overload(function: str) -> EvaluationError:
    """The error of a function that is not defined for values of these types."""
    return EvaluationError(f"no such overload: {function}")
