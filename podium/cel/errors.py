"""The errors of an expression: at compilation, at evaluation, and when it exceeds its cost limit."""

from __future__ import annotations


class CompileError(Exception):
    """The expression is not valid. The message is one line and names the position."""


class EvaluationError(Exception):
    """The expression has no value for this device. `&&`, `||`, `all` and `exists` may absorb it."""


class CostLimitError(Exception):
    """The evaluation exceeded the cost limit. Nothing absorbs this error, and it never leaves this package."""


class PanicError(Exception):
    """Upstream panics here. Nothing absorbs this error, and it never leaves this package."""


def no_such_overload(function: str) -> EvaluationError:
    """Return the error of a function that is not defined for values of these types."""
    return EvaluationError(f"no such overload: {function}")
