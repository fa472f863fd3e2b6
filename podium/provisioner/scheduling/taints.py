"""The taints that Karpenter takes as tolerated, and those that it takes as passing.

Owns the comparison, which knows the operators `Gt` and `Lt`, and the taints that a node loses once it is ready.

Source: karpenter pkg/scheduling/taints.go, v1.15.0, and k8s.io/api/core/v1 toleration.go, v0.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from podium.objects.core import Taint, Toleration
from podium.objects.selectors import parse_int64
from podium.objects.tolerations import taint_text, tolerates

DISRUPTED: Final = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
"""The taint of a node that Karpenter is about to remove."""

REBOOTING_KEY: Final = "karpenter.sh/rebooting"
READINESS_PREFIX: Final = "readiness.k8s.io/"

_EPHEMERAL: Final = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
        (REBOOTING_KEY, "NoSchedule"),
    }
)


def is_ephemeral(taint: Taint) -> bool:
    """Return True if a node has this taint only until it is ready."""
    return (taint.key, taint.effect) in _EPHEMERAL or taint.key.startswith(READINESS_PREFIX)


def untolerated_taints(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> list[Taint]:
    """Return the taints that none of the tolerations covers, whatever their effect."""
    # PreferNoSchedule counts like the other effects until relaxation adds a toleration; kube-scheduler only scores it.
    return [taint for taint in taints if not any(_tolerates(toleration, taint) for toleration in tolerations)]


def taints_text(taints: Iterable[Taint]) -> str:
    """Return the reason why a pod that does not tolerate these taints cannot be placed."""
    return "; ".join(f"did not tolerate taint (taint={taint_text(taint)})" for taint in taints)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    # KEP-5471's numeric operators: Karpenter reads them whatever the cluster's feature gates say.
    if toleration.operator not in ("Gt", "Lt"):
        return tolerates(toleration, taint)
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    limit, value = parse_int64(toleration.value), parse_int64(taint.value)
    if limit is None or value is None:
        return False
    return value > limit if toleration.operator == "Gt" else value < limit
