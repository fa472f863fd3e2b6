"""Compares the cluster before and after the steps of a what-if question; `trial` carries them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.insight.cluster import Cluster
from podium.insight.trial import Blocked, Preemption, Refused, Trial
from podium.lib.plurals import count_of
from podium.objects.core import Pod
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from podium.objects.resource_types import NODES, PODS
from podium.objects.topology_labels import ZONE


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is on another node than before.

    Attributes:
        before: the node of the pod, or of the one that it replaces; "" if it had no node.
        replaces: the key of the pod in whose place it was created; "" if it replaces none.
    """

    pod: str
    before: str
    after: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """A pod without a node, and the reason; `before` and `replaces` are those of `Move`."""

    pod: str
    before: str
    why: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """The requested and the allocatable amount of a resource. Units: thousandths for cpu."""

    requested: int
    allocatable: int

    @property
    def percent(self) -> float:
        """The requested share in percent."""
        return round(100 * self.requested / self.allocatable, 1) if self.allocatable else 0.0


Utilisation = Mapping[str, Mapping[str, Usage]]
"""The usage by zone, "" for all nodes together, and by resource."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of a workload's pods: their number by zone, and the number of their nodes."""

    zones: Mapping[str, int]
    nodes: int

    def as_dict(self) -> dict[str, Any]:
        """Return the spread as JSON values."""
        return {"zones": dict(self.zones), "nodes": self.nodes}

    def __str__(self) -> str:
        """Describe the spread in words."""
        zones = ", ".join(f"{zone} {count}" for zone, count in self.zones.items() if zone)
        pods = sum(self.zones.values())
        counts = f"{count_of(pods, 'pod')} on {count_of(self.nodes, 'node')}"
        return counts + (f" ({zones})" if zones else "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The differences after the steps.

    Attributes:
        moved: pods that are on another node than before, or than the pod that they replace.
        placed: other pods that now have a node.
        pending: pods without a node that had one or did not exist.
        still_pending: pods that had no node before either.
        gone: the keys of pods that do not exist any more.
        blocked: pods whose eviction budgets forbid.
        refused: workloads whose pods the API server refuses.
        spread: the spreads, before and after, of each workload whose spread changed.
        is_partial: whether the time limit ended the steps early.
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
        keys_replaced = {pod.replaces for pods in (self.moved, self.placed, self.pending) for pod in pods}
        return [key for key in self.gone if key not in keys_replaced]

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
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
                workload: {"before": spread_before.as_dict(), "after": spread_after.as_dict()}
                for workload, (spread_before, spread_after) in self.spread.items()
            },
        }


def _origin(pod: Move | Pending) -> dict[str, str]:
    """Return the node and the key of the pod that this one replaces, as far as it has them."""
    values = {"from": pod.before, "replaces": pod.replaces}
    return {name: value for name, value in values.items() if value}


def outcome_of(trial: Trial) -> Outcome:
    """Compare the cluster with the cluster before the steps."""
    pods_before = {pod.key: pod for pod in trial.original.pods}
    pods_after = {pod.key: pod for pod in trial.world.pods}
    moves: list[Move] = []
    placements: list[Move] = []
    pending: list[Pending] = []
    still_pending: list[Pending] = []
    for key, pod in pods_after.items():
        replaced_key = trial.predecessors.get(key, "")
        pod_before = pods_before.get(key) or pods_before.get(replaced_key)
        node_before = pod_before.node_name if pod_before is not None else ""
        if not pod.node_name:
            # A pod that waited before and still waits is not a consequence of the steps.
            is_old = key in pods_before and not node_before and not replaced_key
            entries = still_pending if is_old else pending
            entries.append(Pending(key, node_before, trial.why.get(key, ""), replaced_key))
        elif node_before and node_before != pod.node_name:
            moves.append(Move(key, node_before, pod.node_name, replaced_key))
        elif key not in pods_before or not node_before:
            placements.append(Move(key, node_before, pod.node_name, replaced_key))
    return Outcome(
        moved=moves,
        placed=placements,
        pending=pending,
        still_pending=still_pending,
        preempted=tuple(trial.preempted),
        gone=[key for key in pods_before if key not in pods_after],
        blocked=tuple(trial.blocks),
        refused=tuple(trial.refusals.values()),
        before=utilisation(trial.original),
        after=utilisation(trial.world),
        spread=_spreads(trial.original, trial.world),
        is_partial=trial.is_partial,
    )


def utilisation(cluster: Cluster) -> Utilisation:
    """Return the requests of all pods and the nodes' allocatable amounts, by zone and resource."""
    snapshot = cluster.engine.cache.snapshot()
    resources = dict.fromkeys((CPU, MEMORY, EPHEMERAL_STORAGE))
    for node in cluster.nodes:
        resources.update(dict.fromkeys(node.status.allocatable))
    resources.pop("pods", None)
    zones = {row: node.metadata.labels.get(ZONE, "") for row, node in enumerate(snapshot.nodes) if node}
    usages: dict[str, dict[str, Usage]] = {}
    for zone in ("", *sorted({zone for zone in zones.values() if zone})):
        rows = [row for row, node_zone in zones.items() if zone in ("", node_zone)]
        usages[zone] = {
            resource: usage
            for resource in resources
            if (
                usage := Usage(
                    int(snapshot.requested(resource)[rows].sum()), int(snapshot.allocatable(resource)[rows].sum())
                )
            ).allocatable
        }
        usages[zone]["pods"] = Usage(int(snapshot.pod_count[rows].sum()), int(snapshot.allowed_pods[rows].sum()))
    return usages


def _as_percent(utilisation: Utilisation) -> dict[str, Any]:
    return {
        zone or "all": {
            resource: {"requested": usage.requested, "allocatable": usage.allocatable, "percent": usage.percent}
            for resource, usage in usages.items()
        }
        for zone, usages in utilisation.items()
    }


def workload_of(pod: Pod) -> str:
    """Return `namespace/Kind/name` of the pod's controller; "" if it has none."""
    owner = pod.metadata.controller
    return f"{pod.metadata.namespace}/{owner.kind}/{owner.name}" if owner is not None else ""


def _spreads(cluster_before: Cluster, cluster_after: Cluster) -> Mapping[str, tuple[Spread, Spread]]:
    """Return the spreads, before and after, of each workload whose spread changed."""
    spreads_before, spreads_after = _spread(cluster_before), _spread(cluster_after)
    nothing = Spread({}, 0)
    spreads = {
        name: (spreads_before.get(name, nothing), spreads_after.get(name, nothing))
        for name in sorted(spreads_before.keys() | spreads_after.keys())
    }
    return {
        name: (spread_before, spread_after)
        for name, (spread_before, spread_after) in spreads.items()
        if spread_before != spread_after
    }


def _spread(cluster: Cluster) -> Mapping[str, Spread]:
    nodes = cluster.store.objects(NODES)
    on_nodes: dict[str, Counter[str]] = {}
    for pod in cluster.store.objects(PODS).values():
        if (name := workload_of(pod)) and pod.node_name in nodes:
            on_nodes.setdefault(name, Counter())[pod.node_name] += 1
    spreads = {}
    for name, counts in on_nodes.items():
        zones: Counter[str] = Counter()
        for node, count in counts.items():
            zones[nodes[node].metadata.labels.get(ZONE, "")] += count
        spreads[name] = Spread(dict(sorted(zones.items())), len(counts))
    return spreads
