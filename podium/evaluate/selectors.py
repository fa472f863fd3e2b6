"""Recorded device selectors: whether an expression selects a device."""

from __future__ import annotations

from typing import Any

from podium.cel import BoundDevice, CompileError, EvaluationError, compile_selector
from podium.objects.devices import Device


def answer_selector(expression: str, driver: str, device: Device) -> dict[str, Any]:
    """Whether the expression selects the driver's device, or the error of its evaluation."""
    try:
        return {"matches": compile_selector(expression).matches(BoundDevice(driver, device))}
    except CompileError as error:
        return {"error": f"CEL compile error: {error}"}
    except EvaluationError as error:
        return {"error": f"CEL runtime error: {error}"}
