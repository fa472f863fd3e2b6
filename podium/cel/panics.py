"""Arguments for which upstream's cost tracker panics. The panic ends the evaluation: nothing absorbs its error.

The tracker also counts the cost of a call that was never made since an argument failed.
Source: cel-go 0.26.0 and 0.29.2, ext/lists.go, interpreter/runtimecost.go and cel/program.go.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from podium.cel.access import DomainMap
from podium.cel.errors import EvaluationError, PanicError
from podium.cel.frame import Frame, Run
from podium.cel.libraries.addresses import Address, Network
from podium.cel.libraries.formats import NamedFormat
from podium.cel.libraries.quantities import Quantity
from podium.cel.libraries.urls import Url
from podium.cel.libraries.versions import Version
from podium.cel.syntax import Call, Expr
from podium.cel.values import Duration, Optional, Timestamp, TypeValue, UInt

_TRACKED: dict[str, tuple[int, type]] = {
    "sort": (0, list), "distinct": (0, list), "@sortByAssociatedKeys": (1, list), "flatten": (1, int),
}  # fmt: skip
"""The index of the argument that the tracker of a function converts, the target being the first, and its type."""

_ADDABLE: dict[type, str] = {
    int: "types.Int", UInt: "types.Uint", float: "types.Double", str: "types.String", bytes: "types.Bytes",
    Timestamp: "types.Timestamp", Duration: "types.Duration",
}  # fmt: skip
_GO_NAMES: dict[type, str] = {
    **_ADDABLE, bool: "types.Bool", type(None): "types.Null", list: "*types.baseList", Optional: "*types.Optional",
    TypeValue: "*types.Type", DomainMap: "cel.mapper", Address: "cel.IP", Network: "cel.CIDR", Url: "cel.URL",
    Quantity: "cel.Quantity", Version: "cel.Semver", NamedFormat: "cel.Format", EvaluationError: "*types.Err",
}  # fmt: skip
_MAP_NAME = "*types.baseMap"


def tracked_argument(node: Expr) -> int | None:
    """Return the index of the argument that must not fail or have another type; None for any other expression."""
    # Trackers belong to overloads: upstream does not track a call for which several are possible.
    if not isinstance(node, Call) or node.function not in _TRACKED or len(node.overloads) > 1:
        return None
    index, _ = _TRACKED[node.function]
    return index if index < len(node.arguments) + (node.target is not None) else None


def guard(function: str, argument: Run) -> Run:
    """Compile the tracked argument of a function. Evaluating it raises PanicError if it fails or has another type."""
    _, kind = _TRACKED[function]

    def run(frame: Frame) -> Any:
        try:
            value = argument(frame)
        except EvaluationError:
            raise PanicError(_text(EvaluationError, kind)) from None
        if type(value) is not kind:
            raise PanicError(_text(type(value), kind))
        return value

    return run


def evaluate_both(first: Run, second: Run) -> Run:
    """Compile the first of two arguments, both of which upstream evaluates before it looks for an error."""

    def run(frame: Frame) -> Any:
        try:
            return first(frame)
        except EvaluationError:
            with suppress(EvaluationError):
                second(frame)
            raise

    return run


def _text(kind: type, target_type: type) -> str:
    name = _GO_NAMES.get(kind, _MAP_NAME)
    if target_type is int:
        return f"interface conversion: ref.Val is {name}, not types.Int"
    # Go names the first method that is missing, in the order of the alphabet.
    method = "Contains" if kind in _ADDABLE else "Add"
    return f"interface conversion: {name} is not traits.Lister: missing method {method}"
