"""Who schedules a pod, and by which profile an answer about it was judged."""

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
from podium.objects.core import Pod
from podium.objects.resource_types import PODS

_KNOWN: Final = (OWN_NAME, DEFAULT_SCHEDULER_NAME)
_DEFAULTS: Final = "kube-scheduler's default profile"
_UNTOLD: Final = "nothing says which one is used (--config, or a running podium)"


@dataclass(frozen=True, slots=True)
class SchedulerReport:
    """Who schedules a pod.

    Attributes:
        name: the pod's spec.schedulerName.
        profile: the profile that the answer was judged by.
        source: where that profile is from, for people.
        is_its_own: whether it is known to be the profile that schedules the pod.
        warning: what has to be said first; "" if nothing.
        meant: the name that may have been meant; "" if none.
    """

    name: str
    profile: str
    source: str
    is_its_own: bool
    warning: str = ""
    meant: str = ""

    @property
    def judged_by(self) -> str:
        """By what the answer was judged, in one line."""
        return f"If the pod were for {self.source}:" if self.warning else f"Answered by {self.source}"

    @property
    def difference(self) -> str:
        """Why the pod's condition may say something else; "" if its scheduler uses this profile."""
        if self.is_its_own:
            return ""
        return f"it is by the scheduler {self.name}, whose profile is not known here"

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        found: dict[str, Any] = {"name": self.name, "profile": self.profile, "source": self.source}
        found["own"] = self.is_its_own
        return found | {key: value for key, value in (("warning", self.warning), ("meant", self.meant)) if value}


def scheduler_report(cluster: Cluster, pod: Pod, source: str, unasked: str = "") -> SchedulerReport:
    """Who schedules the pod.

    Args:
        source: what the cluster's profiles are from; "" if they are kube-scheduler's defaults in place of unknown ones.
        unasked: why those of the running podium are not known; "" if it was not to be asked.
    """
    name, served = pod.spec.scheduler_name, tuple(cluster.profiles)
    if not source:
        warning, meant = ("", "") if name in _KNOWN or pod.node_name else _of_unknown(name, _placed(cluster))
        by = f"{_DEFAULTS}, as {unasked or _UNTOLD}"
        return SchedulerReport(name, DEFAULT_SCHEDULER_NAME, by, False, warning, meant)
    if name in served:
        return SchedulerReport(name, name, f"the profile {name} of {source}", True)
    placed = _placed(cluster)
    meant = similar_name(name, (*served, DEFAULT_SCHEDULER_NAME, *placed)) or ""
    profile = meant if meant in served else served[0]
    warning = _of_other(name, meant, placed, served, source)
    by = f"the profile {profile} of {source}"
    return SchedulerReport(name, profile, by, False, warning, "" if name in placed else meant)


def judged_pod(pod: Pod, report: SchedulerReport, served: Collection[str]) -> Pod:
    """The pod as if it named the profile that it is judged by."""
    if pod.spec.scheduler_name in served:
        return pod
    spec = msgspec.structs.replace(pod.spec, scheduler_name=report.profile)
    return Pod(metadata=pod.metadata, spec=spec, status=pod.status, node_name=pod.node_name)


def _placed(cluster: Cluster) -> Counter[str]:
    """How many pods on nodes name each scheduler."""
    return Counter(each.spec.scheduler_name for each in cluster.store.objects(PODS).values() if each.node_name)


def _of_unknown(name: str, placed: Counter[str]) -> tuple[str, str]:
    """The warning about a name of which only the pods are known, and the name that may have been meant."""
    if name in placed:
        return "", ""
    if meant := similar_name(name, (*_KNOWN, *placed)):
        return _misspelt(name, meant), meant
    return f"No pod of spec.schedulerName {name} is on a node: nothing here shows that such a scheduler runs", ""


def _of_other(name: str, meant: str, placed: Counter[str], served: Collection[str], source: str) -> str:
    ours = f"{source} serves {', '.join(sorted(served))}"
    if name == DEFAULT_SCHEDULER_NAME:
        return f"kube-scheduler schedules it, as spec.schedulerName is {name}: {ours}"
    if placed[name]:
        return f"Another scheduler schedules it, {name}, which has placed {placed[name]} pod(s) here: {ours}"
    if meant:
        return _misspelt(name, meant)
    return f"No profile serves spec.schedulerName {name}: nothing schedules it, unless another scheduler does; {ours}"


def _misspelt(name: str, meant: str) -> str:
    return f"No profile serves spec.schedulerName {name}: nothing schedules it; did you mean {meant}?"
