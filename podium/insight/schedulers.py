"""Reports a pod's scheduler, and the profile under which an answer about the pod was computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from podium.config import DEFAULT_SCHEDULER_NAME
from podium.config.own_names import OWN_NAME
from podium.config.scheduler_names import similar_name
from podium.engine.cluster import Cluster
from podium.lib.plurals import count_of
from podium.objects.core import Pod
from podium.objects.resource_types import PODS

_PREDEFINED_NAMES: Final = (OWN_NAME, DEFAULT_SCHEDULER_NAME)
_DEFAULTS: Final = "kube-scheduler's default profile"
_NO_SOURCE: Final = "nothing says which one is used (--config, or a running podium)"


@dataclass(frozen=True, slots=True)
class SchedulerReport:
    """A pod's scheduler, and the profile of the answer.

    Attributes:
        name: the pod's spec.schedulerName.
        profile: the profile under which the pod was evaluated.
        source: where that profile comes from, as a phrase to print.
        is_its_own: True if that profile is known to schedule the pod.
        warning: a warning to print before the answer, or "".
        likely_name: the scheduler name of which `name` may be a misspelling, or "".
    """

    name: str
    profile: str
    source: str
    is_its_own: bool
    warning: str = ""
    likely_name: str = ""

    @property
    def introduction(self) -> str:
        """The line that introduces the answer and names its profile."""
        return f"If the pod were for {self.source}:" if self.warning else f"Answered by {self.source}"

    @property
    def difference(self) -> str:
        """Why the PodScheduled condition may differ from the answer; "" if the pod's scheduler uses this profile."""
        if self.is_its_own:
            return ""
        return f"it is by the scheduler {self.name}, whose profile is not known here"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        answer: dict[str, Any] = {"name": self.name, "profile": self.profile, "source": self.source}
        answer["own"] = self.is_its_own
        return answer | {key: value for key, value in (("warning", self.warning), ("meant", self.likely_name)) if value}


def scheduler_report(cluster: Cluster, pod: Pod, source: str, unknown_reason: str = "") -> SchedulerReport:
    """Return the pod's scheduler, and the profile under which to evaluate the pod.

    Args:
        source: where the cluster's profiles come from; "" if kube-scheduler's defaults stand in for unknown ones.
        unknown_reason: why the running podium's profiles are not known; "" if the running podium was not asked.
    """
    name, profiles = pod.spec.scheduler_name, tuple(cluster.profiles)
    if not source:
        warning, likely_name = (
            ("", "")
            # A pod on a node has been scheduled, so its scheduler exists whatever its name.
            if name in _PREDEFINED_NAMES or pod.node_name
            else _unknown_name_warning(name, _count_by_scheduler(cluster))
        )
        profile_source = f"{_DEFAULTS}, as {unknown_reason or _NO_SOURCE}"
        return SchedulerReport(name, DEFAULT_SCHEDULER_NAME, profile_source, False, warning, likely_name)
    if name in profiles:
        return SchedulerReport(name, name, f"the profile {name} of {source}", True)
    pod_counts = _count_by_scheduler(cluster)
    likely_name = similar_name(name, (*profiles, DEFAULT_SCHEDULER_NAME, *pod_counts)) or ""
    profile = likely_name if likely_name in profiles else profiles[0]
    warning = _other_scheduler_warning(name, likely_name, pod_counts, profiles, source)
    profile_source = f"the profile {profile} of {source}"
    return SchedulerReport(name, profile, profile_source, False, warning, "" if name in pod_counts else likely_name)


def pod_for_profile(pod: Pod, report: SchedulerReport, profiles: Collection[str]) -> Pod:
    """Return the pod as if it named the profile of the report."""
    if pod.spec.scheduler_name in profiles:
        return pod
    spec = msgspec.structs.replace(pod.spec, scheduler_name=report.profile)
    return Pod(metadata=pod.metadata, spec=spec, status=pod.status, node_name=pod.node_name)


def _count_by_scheduler(cluster: Cluster) -> Counter[str]:
    """Count the bound pods of each scheduler name."""
    return Counter(pod.spec.scheduler_name for pod in cluster.store.objects(PODS).values() if pod.node_name)


def _unknown_name_warning(name: str, pod_counts: Counter[str]) -> tuple[str, str]:
    """Return a warning if no bound pod has this scheduler name, and the name of which it may be a misspelling."""
    if name in pod_counts:
        return "", ""
    if likely_name := similar_name(name, (*_PREDEFINED_NAMES, *pod_counts)):
        return _misspelling_warning(name, likely_name), likely_name
    return f"No pod of spec.schedulerName {name} is on a node: nothing here shows that such a scheduler runs", ""


def _other_scheduler_warning(
    name: str, likely_name: str, pod_counts: Counter[str], profiles: Collection[str], source: str
) -> str:
    """Return the warning about a scheduler name that no profile has."""
    service = f"{source} serves {', '.join(sorted(profiles))}"
    if name == DEFAULT_SCHEDULER_NAME:
        return f"kube-scheduler schedules it, as spec.schedulerName is {name}: {service}"
    if pod_counts[name]:
        return (
            f"Another scheduler schedules it, {name}, which has placed {count_of(pod_counts[name], 'pod')} here: "
            f"{service}"
        )
    if likely_name:
        return _misspelling_warning(name, likely_name)
    return (
        f"No profile serves spec.schedulerName {name}: nothing schedules it, unless another scheduler does; {service}"
    )


def _misspelling_warning(name: str, likely_name: str) -> str:
    return f"No profile serves spec.schedulerName {name}: nothing schedules it; did you mean {likely_name}?"
