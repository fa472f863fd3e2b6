"""What differs after the steps of a what-if question; `trial` carries them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.insight.cluster import Cluster
from podium.insight.trial import Blocked, Preemption, Refused, Trial
from podium.objects.core import Pod
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from podium.objects.resource_types import NODES, PODS
from podium.objects.topology_labels import ZONE


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is elsewhere than before.

    Attributes:
        before: the node of the pod, or of the one that it replaces; "" if there was none.
        replaces: the key of the pod in whose place it was created; "" if there is none.
    """

    pod: str
    before: str
    after: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """A pod without a node, and why; `before` and `replaces` as in `Move`."""

    pod: str
    before: str
    why: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What is requested of a resource, and how much there is. Units: thousandths for cpu."""

    requested: int
    allocatable: int

    @property
    def percent(self) -> float:
        """How much is requested, in percent."""
        return round(100 * self.requested / self.allocatable, 1) if self.allocatable else 0.0


Utilisation = Mapping[str, Mapping[str, Usage]]
"""By zone, "" for all nodes together, and by resource."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How the pods of a workload are spread: by zone, and over how many nodes."""

    zones: Mapping[str, int]
    nodes: int

    def as_dict(self) -> dict[str, Any]:
        """The spread as JSON values."""
        return {"zones": dict(self.zones), "nodes": self.nodes}

    def __str__(self) -> str:
        """In words."""
        zones = ", ".join(f"{zone} {count}" for zone, count in self.zones.items() if zone)
        pods = sum(self.zones.values())
        counted = f"{pods} pod{'s' * (pods != 1)} on {self.nodes} node{'s' * (self.nodes != 1)}"
        return counted + (f" ({zones})" if zones else "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What differs after the steps.

    Attributes:
        moved: pods that are on another node than before, or than the pod that they replace.
        placed: other pods that have a node and had none or did not exist.
        pending: pods that have no node and had one or did not exist.
        still_pending: pods that had no node before either.
        gone: the keys of pods that do not exist any more.
        blocked: pods that budgets kept from being evicted.
        refused: workloads whose pods the API server refuses.
        spread: by workload whose pods changed: before and after.
        is_partial: whether the time was up before all steps were carried out to their end.
    """

    moved: Sequence[Move]
    placed: Sequence[Move]
    pending: Sequence[Pending]
    still_pending: Sequence[Pending]
    preempted: Sequence[Preemption]
    gone: Sequence[str]
    blocked: Sequence[Blocked]
    refused: Sequence[Refused]
    before: Utilisation
    after: Utilisation
    spread: Mapping[str, tuple[Spread, Spread]]
    is_partial: bool = False

    @property
    def gone_for_good(self) -> Sequence[str]:
        """The keys of pods that do not exist any more and that nothing replaces."""
        replaced = {pod.replaces for pods in (self.moved, self.placed, self.pending) for pod in pods}
        return [key for key in self.gone if key not in replaced]

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return {
            **({"partial": True} if self.is_partial else {}),
            "moved": [{"pod": move.pod, "to": move.after, **_origin(move)} for move in self.moved],
            "placed": [{"pod": move.pod, "to": move.after, **_origin(move)} for move in self.placed],
            "pending": [{"pod": pod.pod, "why": pod.why, **_origin(pod)} for pod in self.pending],
            "still_pending": [{"pod": pod.pod, "why": pod.why} for pod in self.still_pending],
            "preempted": [{"pod": victim.pod, "from": victim.node, "by": victim.by} for victim in self.preempted],
            "gone": list(self.gone),
            "blocked": [{"pod": pod.pod, "budgets": list(pod.budgets)} for pod in self.blocked],
            "refused": [{"workload": refusal.workload, "reason": refusal.reason} for refusal in self.refused],
            "utilisation": {"before": _as_percent(self.before), "after": _as_percent(self.after)},
            "spread": {
                workload: {"before": before.as_dict(), "after": after.as_dict()}
                for workload, (before, after) in self.spread.items()
            },
        }


def _origin(pod: Move | Pending) -> dict[str, str]:
    """Where the pod, or the one that it replaces, was."""
    values = {"from": pod.before, "replaces": pod.replaces}
    return {name: value for name, value in values.items() if value}


def outcome_of(trial: Trial) -> Outcome:
    """What differs from the cluster as it was."""
    before = {pod.key: pod for pod in trial.before.pods}
    after = {pod.key: pod for pod in trial.world.pods}
    moved: list[Move] = []
    placed: list[Move] = []
    pending: list[Pending] = []
    still_pending: list[Pending] = []
    for key, pod in after.items():
        replaced = trial.replaced.get(key, "")
        was = before.get(key) or before.get(replaced)
        node_before = was.node_name if was is not None else ""
        if not pod.node_name:
            is_old = key in before and not node_before and not replaced
            entries = still_pending if is_old else pending
            entries.append(Pending(key, node_before, trial.why.get(key, ""), replaced))
        elif node_before and node_before != pod.node_name:
            moved.append(Move(key, node_before, pod.node_name, replaced))
        elif key not in before or not node_before:
            placed.append(Move(key, node_before, pod.node_name, replaced))
    return Outcome(
        moved=moved,
        placed=placed,
        pending=pending,
        still_pending=still_pending,
        preempted=tuple(trial.preempted),
        gone=[key for key in before if key not in after],
        blocked=tuple(trial.blocked),
        refused=tuple(trial.refused.values()),
        before=utilisation(trial.before),
        after=utilisation(trial.world),
        spread=_spreads(trial.before, trial.world),
        is_partial=trial.is_partial,
    )


def utilisation(cluster: Cluster) -> Utilisation:
    """The requests of all pods, by zone and resource, beside what the nodes have."""
    snapshot = cluster.engine.cache.snapshot()
    resources = dict.fromkeys((CPU, MEMORY, EPHEMERAL_STORAGE))
    for node in cluster.nodes:
        resources.update(dict.fromkeys(node.status.allocatable))
    resources.pop("pods", None)
    zones = {row: node.metadata.labels.get(ZONE, "") for row, node in enumerate(snapshot.nodes) if node}
    found: dict[str, dict[str, Usage]] = {}
    for zone in ("", *sorted({zone for zone in zones.values() if zone})):
        rows = [row for row, its_zone in zones.items() if zone in ("", its_zone)]
        found[zone] = {
            resource: usage
            for resource in resources
            if (
                usage := Usage(
                    int(snapshot.requested(resource)[rows].sum()), int(snapshot.allocatable(resource)[rows].sum())
                )
            ).allocatable
        }
        found[zone]["pods"] = Usage(int(snapshot.pod_count[rows].sum()), int(snapshot.allowed_pods[rows].sum()))
    return found


def _as_percent(found: Utilisation) -> dict[str, Any]:
    return {
        zone or "all": {
            resource: {"requested": usage.requested, "allocatable": usage.allocatable, "percent": usage.percent}
            for resource, usage in usages.items()
        }
        for zone, usages in found.items()
    }


def workload_of(pod: Pod) -> str:
    """`namespace/Kind/name` of the pod's controller; "" if it has none."""
    owner = pod.metadata.controller
    return f"{pod.metadata.namespace}/{owner.kind}/{owner.name}" if owner is not None else ""


def _spreads(before: Cluster, after: Cluster) -> Mapping[str, tuple[Spread, Spread]]:
    """The spread of each workload that has changed."""
    one, other = _spread(before), _spread(after)
    nothing = Spread({}, 0)
    found = {name: (one.get(name, nothing), other.get(name, nothing)) for name in sorted(one.keys() | other.keys())}
    return {name: (was, now) for name, (was, now) in found.items() if was != now}


def _spread(cluster: Cluster) -> Mapping[str, Spread]:
    nodes = cluster.store.objects(NODES)
    on_nodes: dict[str, Counter[str]] = {}
    for pod in cluster.store.objects(PODS).values():
        if (name := workload_of(pod)) and pod.node_name in nodes:
            on_nodes.setdefault(name, Counter())[pod.node_name] += 1
    found = {}
    for name, counts in on_nodes.items():
        zones: Counter[str] = Counter()
        for node, count in counts.items():
            zones[nodes[node].metadata.labels.get(ZONE, "")] += count
        found[name] = Spread(dict(sorted(zones.items())), len(counts))
    return found
