"""The rule for which taints a toleration covers.

Source: k8s.io/api/core/v1 toleration.go, v0.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.objects.core import Taint, Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return True if the toleration covers the taint.

    An empty effect or key stands for any. Gt and Lt are never satisfied: their feature gate
    (TaintTolerationComparisonOperators) is alpha and off upstream.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def taint_text(taint: Taint) -> str:
    """Return the taint as kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def is_tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return True if any of the tolerations covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)
