"""Optional values. `or` and `orValue` are here for the type checker; the planner makes their argument lazy."""

from __future__ import annotations

from typing import Any

from podium.cel.access import read_value
from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload
from podium.cel.values import NONE, Optional, is_zero


def value_of(optional: Optional) -> Any:
    """Return the value of an optional. Raises: EvaluationError: the value is absent."""
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return read_value(optional)


def _of_non_zero(value: Any) -> Optional:
    return NONE if is_zero(value) else Optional(value)


def _unwrap(values: list[Any]) -> list[Any]:
    if any(type(optional) is not Optional for optional in values):
        raise EvaluationError("the list holds a value that is not optional")
    return [optional.value for optional in values if optional.present]


OVERLOADS = (
    Overload("optional_of", "optional::of(V) -> optional(V)", Optional),
    Overload("optional_ofNonZeroValue", "optional::ofNonZeroValue(V) -> optional(V)", _of_non_zero),
    Overload("optional_none", "optional::none() -> optional(V)", lambda: NONE),
    Overload("optional_unwrap", "optional::unwrap(list(optional(V))) -> list(V)", _unwrap),
    Overload("optional_unwrapOpt", "list(optional(V)).unwrapOpt() -> list(V)", _unwrap),
    Overload("optional_value", "optional(V).value() -> V", value_of),
    Overload("optional_hasValue", "optional(V).hasValue() -> bool", lambda optional: optional.present),
    Overload(
        "optional_or_optional",
        "optional(V).or(optional(V)) -> optional(V)",
        lambda optional, alternative: optional or alternative,
    ),
    Overload(
        "optional_orValue_value", "optional(V).orValue(V) -> V", lambda optional, alternative: optional or alternative
    ),
)
