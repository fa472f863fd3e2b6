"""The failures of a Job's pods: which ones count, and how long the Job waits before it replaces them.

A pod that is deleted has failed, unless the Job's pod replacement policy waits for its end.

Source: kubernetes v1.37.2, pkg/controller/job/{backoff_utils,pod_failure_policy}.go.
Differs: rules on exit codes match nothing, since no object says how a pod will end. No limits for one index.
"""

from __future__ import annotations

from typing import Final

from podium.engine.derivation.control_objects import count_at, items_at, mapping_at
from podium.engine.manifests import Manifest
from podium.objects.core import Pod

_BACKOFF_S: Final = 10.0
_BACKOFF_S_MAX: Final = 600.0
_DOUBLINGS_MAX: Final = 6
"""The number of doublings after which the backoff has its maximum."""
_BACKOFF_LIMIT: Final = 6


def backoff_s(failures: int) -> float:
    """Return how long a Job waits after that many failures without a success, in seconds."""
    # Upstream doubles in a loop and stops at the maximum, so no number of failures overflows.
    return min(_BACKOFF_S * 2.0 ** min(failures - 1, _DOUBLINGS_MAX), _BACKOFF_S_MAX)


def backoff_limit(job: Manifest) -> int:
    """Return the number of failures after which one more fails the Job."""
    return count_at(job, "spec", "backoffLimit", default=_BACKOFF_LIMIT)


def replaces_failed_only(job: Manifest) -> bool:
    """Return whether the Job replaces a pod only once it has ended, and not already once it is being deleted."""
    spec = mapping_at(job, "spec")
    # As the API server defaults it: a policy has to see how the pod ended.
    default = "Failed" if mapping_at(spec, "podFailurePolicy") else "TerminatingOrFailed"
    return bool((spec.get("podReplacementPolicy") or default) == "Failed")


def policy_action(job: Manifest, pod: Pod) -> str:
    """Return the action of the first rule of the Job's pod failure policy that the failed pod matches; "" if none."""
    # The first rule that matches decides, also if it is Count.
    conditions = {(condition.type, condition.status) for condition in pod.status.conditions}
    for rule in items_at(job, "spec", "podFailurePolicy", "rules"):
        patterns = items_at(rule, "onPodConditions")
        if any((pattern.get("type"), pattern.get("status") or "True") in conditions for pattern in patterns):
            return str(rule.get("action") or "")
    return ""
