"""Answers whether an expression of a device selector selects a device."""

from __future__ import annotations

from typing import Any

from podium.cel import CompileError, EvaluationError, SelectorRules
from podium.devices.selectors import bind_device, compile_selector
from podium.objects.devices import Device


def answer_selector(expression: str, driver: str, device: Device, rules: SelectorRules) -> dict[str, Any]:
    """Evaluate the expression for the driver's device; return the result or the error."""
    try:
        return {"matches": compile_selector(expression, rules).matches(bind_device(driver, device, rules))}
    except CompileError as error:
        return {"error": f"CEL compile error: {error}"}
    except EvaluationError as error:
        return {"error": f"CEL runtime error: {error}"}
