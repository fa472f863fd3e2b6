"""The frame of an evaluation: the device, the cost so far and its limit, and a slot for each variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from podium.cel.errors import CostLimitError

Frame: TypeAlias = list[Any]
Run: TypeAlias = Callable[[Frame], Any]
"""A compiled expression. Raises EvaluationError or CostLimitError."""

DEVICE_SLOT, COST_SLOT, LIMIT_SLOT, FIRST_SLOT = 0, 1, 2, 3


def new_frame(device: Any, limit: int, slots: int) -> Frame:
    """Return the frame of one evaluation."""
    return [device, 0, limit, *(None,) * (slots - FIRST_SLOT)]


def charge(frame: Frame, cost: int) -> None:
    """Add to the cost. Raises: CostLimitError."""
    total = frame[COST_SLOT] = frame[COST_SLOT] + cost
    if total > frame[LIMIT_SLOT]:
        raise CostLimitError("operation cancelled: actual cost limit exceeded")
