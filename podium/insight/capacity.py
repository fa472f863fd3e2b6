"""Answers how many more copies of a pod fit, where, and what stops the next one, and how large the pod may be instead.

Owns the reading of a finished dry run (`engine.replicas`): copies by node and zone, and each node's limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import msgspec

from podium.cluster import Snapshot
from podium.engine.cluster import Cluster
from podium.engine.device_refusals import device_refusals
from podium.engine.errors import ClusterError
from podium.engine.placing import Engine
from podium.engine.rejection_details import FreeAmounts
from podium.engine.replicas import PLACED_MAX, ClaimCreator, Replicas, fits_by_resource, is_daemon, make_copy, no_claims
from podium.framework.contract.status import ScheduleError, Status
from podium.framework.cycle.details import detail_of_node
from podium.framework.cycle.schedule import NO_NODES
from podium.framework.cycle.search import filter_all
from podium.framework.profile.runtime import Framework
from podium.insight.json_patch import apply_patch
from podium.insight.requests import resize
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.amounts import amount_text
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_names import CPU, MEMORY
from podium.objects.topology_labels import ZONE
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.taint_toleration import DETAIL_PREFIX

_FACTOR_MAX: Final = 1 << 20
_BYTES_STEP: Final = 1 << 20
_ONE_DAEMON: Final = "one pod of a DaemonSet for each node"


@dataclass(frozen=True, slots=True)
class PodCopy:
    """A pending copy of the pod in question that preempts no pods, and its profile."""

    pod: Pod
    framework: Framework

    @classmethod
    def of(cls, pod: Pod, framework_for: Callable[[Pod], Framework]) -> PodCopy:
        """Make the copy, and find the profile of the pod's scheduler."""
        # Without a deletion time: the copies of a pod that is ending are not ending.
        metadata = msgspec.structs.replace(pod.metadata, uid=f"{pod.uid}-copy", deletion_timestamp=None)
        # The question is what fits beside the pods that run, not what could be evicted.
        spec = msgspec.structs.replace(pod.spec, preemption_policy="Never")
        return cls(Pod(metadata=metadata, spec=spec), framework_for(pod))


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """The number of copies that fit on one node, and what blocks the next one.

    Attributes:
        limit: the reasons of the filter that rejects the next copy; "" if the dry run ended before one was rejected.
    """

    node: str
    zone: str
    fits: int
    limit: str


@dataclass(frozen=True, slots=True)
class GangCapacity:
    """The number of further gangs that fit as a whole.

    Attributes:
        gang: the key of the group that the pod names.
        size: how many pods of one gang must have a node.
        fits: the number of gangs.
        is_at_least: more may fit.
        domain_key: the label whose value all nodes of one gang must share; "" if the gang has no such constraint.
        problem: why it is not known how large a gang is, or how many fit; "" if it is.
    """

    gang: str
    size: int
    fits: int
    is_at_least: bool = False
    domain_key: str = ""
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        answer: dict[str, Any] = {"gang": self.gang, "size": self.size, "fits": self.fits}
        if self.problem:
            return {"gang": self.gang, "problem": self.problem}
        if self.domain_key:
            answer["domain_key"] = self.domain_key
        return answer | ({"at_least": True} if self.is_at_least else {})


@dataclass(frozen=True)
class Capacity:
    """The number of further copies of a pod that fit.

    Attributes:
        pod: the key of the pod.
        fits: the number of copies.
        is_at_least: more may fit: the dry run stopped at its maximum.
        gate: why no copy would be tried; "" if they would.
        nodes: every node, by name.
        gang: how many whole gangs fit; None for a pod that is in none.
        is_partial: whether the dry run ended before its time, with the copies that it had placed.
        free_amounts: what the next copy asks for and what is free of it, on the nodes that are short of something.
    """

    pod: str
    fits: int
    is_at_least: bool
    gate: str
    nodes: tuple[NodeCapacity, ...]
    gang: GangCapacity | None = None
    is_partial: bool = False
    free_amounts: FreeAmounts | None = field(default=None, compare=False, repr=False)

    @cached_property
    def zones(self) -> Mapping[str, int]:
        """The number of copies by zone; "" stands for nodes without a zone."""
        counts: Counter[str] = Counter()
        for entry in self.nodes:
            counts[entry.zone] += entry.fits
        return dict(sorted(counts.items()))

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """On how many nodes each limit holds, the most frequent first."""
        return dict(Counter(entry.limit for entry in self.nodes if entry.limit).most_common())

    def limit_text(self, limit: str, nodes: Sequence[str]) -> str:
        """Return the limit of these nodes as people read it: with amounts, and without what its reason says already.

        Args:
            nodes: the names of nodes that all have this limit.
        """
        limit = limit.replace(f"({DETAIL_PREFIX}", "(")
        positions = [self._positions[name] for name in nodes if name in self._positions]
        if self.free_amounts is None or not positions:
            return limit
        return ": ".join(filter(None, (limit, self.free_amounts.shortages(positions))))

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        """The position of each node in `free_amounts`."""
        names = () if self.free_amounts is None else self.free_amounts.names
        return {name: position for position, name in enumerate(names)}

    def as_dict(self, *, explain: bool) -> dict[str, Any]:
        """Return the answer as JSON values; with `explain` including every node."""
        members: dict[str, Any] = {"gate": self.gate} if self.gate else {}
        if self.is_at_least:
            members["at_least"] = True
        if self.gang is not None:
            members["gangs"] = self.gang.as_dict()
        if self.is_partial:
            members["partial"] = True
        members["by_node"] = {entry.node: entry.fits for entry in self.nodes if entry.fits}
        members["by_zone"] = dict(self.zones)
        members["limits"] = dict(self.limits)
        if explain:
            members["nodes"] = [
                {"node": entry.node, "zone": entry.zone, "fits": entry.fits, "limit": entry.limit}
                for entry in self.nodes
            ]
        return {"pod": self.pod, "fits": self.fits, **members}


@dataclass(frozen=True, slots=True)
class Headroom:
    """The largest requests with which a pod fits a given number of times.

    Attributes:
        fits: whether it fits that often as it is.
        amounts: by resource, the largest request with all other requests as they are; absent if none is small enough.
        percent: the largest size of all requests together, in percent of what they are; 0 if none is small enough.
        is_partial: whether the time was up before every size was found.
    """

    pod: str
    times: int
    fits: bool
    amounts: Mapping[str, str]
    percent: int
    is_partial: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return {
            "pod": self.pod,
            "times": self.times,
            "fits_as_it_is": self.fits,
            "largest": dict(self.amounts),
            "percent": self.percent,
            **({"partial": True} if self.is_partial else {}),
        }


def count_copies(
    engine: Engine,
    copies: Sequence[PodCopy],
    placed_max: int = PLACED_MAX,
    create_claims: ClaimCreator = no_claims,
    limit: TimeLimit = UNLIMITED,
) -> Sequence[Capacity]:
    """Return how many copies of each pod fit if they are placed in turn. Only claims are left in the cluster.

    Args:
        create_claims: creates the claims that a copy has for itself.
        limit: when to end with the copies placed by then.

    Raises:
        ScheduleError: an attempt failed, or the cluster has no nodes.
    """
    with _dry_run(engine, copies, create_claims) as (run, gates):
        # Where copies do not affect each other, arithmetic replaces thousands of attempts.
        if len(copies) == 1 and not gates[0] and (counts := run.count(copies[0].pod)) is not None:
            return [_capacity_from_counts(engine, copies[0], counts)]
        counts_of: list[Counter[str]] = [Counter() for _ in copies]
        is_full = _place_in_turn(run, copies, gates, counts_of, placed_max, limit)
        if not is_full and limit.is_over():
            limit.is_noticed = True
            return [_partial_capacity(engine, copy, counts) for copy, counts in zip(copies, counts_of, strict=True)]
        return [
            _capacity_from_placements(engine, copy, counts, gate, is_at_least=not is_full, create_claims=create_claims)
            for copy, counts, gate in zip(copies, counts_of, gates, strict=True)
        ]


@contextmanager
def _dry_run(
    engine: Engine, copies: Sequence[PodCopy], create_claims: ClaimCreator
) -> Iterator[tuple[Replicas, list[str]]]:
    """Begin a dry run that is undone at the end; yield it with the reason why each pod is not tried, "" if it is."""
    run = Replicas(engine, copies[0].framework, create_claims)
    if run.has_no_nodes():
        raise ScheduleError(NO_NODES)
    statuses = (run.gate_of(copy.pod, copy.framework) for copy in copies)
    try:
        yield run, ["" if status is None else status.message for status in statuses]
    finally:
        run.undo()


def _place_in_turn(
    run: Replicas,
    copies: Sequence[PodCopy],
    gates: Sequence[str],
    counts: Sequence[Counter[str]],
    placed_max: int,
    limit: TimeLimit,
) -> bool:
    """Place one of each pod in turn, and return whether none fits any more."""
    # In turn and not one pod after the other: otherwise the first would leave nothing for the others.
    failed_since_last_placed = 0
    number = 0
    while failed_since_last_placed < len(copies):
        if limit.is_over() or sum(count.total() for count in counts) >= placed_max:
            return False
        index = number % len(copies)
        copy = copies[index]
        node = None if gates[index] else run.place(make_copy(copy.pod, number), copy.framework)
        number += 1
        if node is None:
            failed_since_last_placed += 1
        else:
            counts[index][node] += 1
            failed_since_last_placed = 0
    return True


def _capacity_from_counts(engine: Engine, copy: PodCopy, counts: Mapping[str, int]) -> Capacity:
    """Return the answer for copies that do not affect each other."""
    statuses, snapshot, short_rows = _rejections(engine, copy)
    free = fits_by_resource(snapshot, copy.pod.spec)
    nodes = []
    for name, row in sorted(snapshot.row_of.items()):
        fits = counts.get(name, 0)
        # The number of copies is at most one there, so no amount is what limits them.
        if is_daemon(copy.pod):
            limit = statuses.get(row, _ONE_DAEMON)
        elif fits:
            reasons = ["Too many pods"] if snapshot.allowed_pods[row] - snapshot.pod_count[row] == fits else []
            limit = ", ".join(
                [*reasons, *(f"Insufficient {resource}" for resource in free if free[resource][row] == fits)]
            )
        else:
            limit = statuses.get(row, "")
        nodes.append(NodeCapacity(name, _zone(snapshot, row), fits, limit))
    if not is_daemon(copy.pod):
        short_rows = sorted({*short_rows, *(snapshot.row_of[name] for name, count in counts.items() if count)})
    copy_counts = [counts.get(snapshot.name(row), 0) for row in short_rows]
    free_amounts = FreeAmounts.of(copy.pod, snapshot, short_rows, copy_counts)
    return Capacity(copy.pod.key, sum(counts.values()), False, "", tuple(nodes), free_amounts=free_amounts)


def _capacity_from_placements(
    engine: Engine,
    copy: PodCopy,
    counts: Mapping[str, int],
    gate: str,
    *,
    is_at_least: bool,
    create_claims: ClaimCreator,
) -> Capacity:
    """Return the answer for copies that have been placed and still count on their nodes."""
    # The next copy needs claims of its own: without them VolumeBinding or DynamicResources would reject it for that.
    next_copy = create_claims(make_copy(copy.pod, sum(counts.values())))
    statuses, snapshot, short_rows = _rejections(engine, PodCopy(next_copy, copy.framework))
    if is_daemon(copy.pod):
        statuses = {
            row: _ONE_DAEMON if name in counts else statuses.get(row, _ONE_DAEMON)
            for name, row in snapshot.row_of.items()
        }
    nodes = tuple(
        NodeCapacity(name, _zone(snapshot, row), counts.get(name, 0), statuses.get(row, ""))
        for name, row in sorted(snapshot.row_of.items())
    )
    free_amounts = FreeAmounts.of(next_copy, snapshot, short_rows)
    return Capacity(copy.pod.key, sum(counts.values()), is_at_least, gate, nodes, free_amounts=free_amounts)


def _partial_capacity(engine: Engine, copy: PodCopy, counts: Mapping[str, int]) -> Capacity:
    """Return the answer for copies that were placed before the time was up, without the limits of the next one."""
    snapshot = engine.cache.snapshot()
    nodes = tuple(
        NodeCapacity(name, _zone(snapshot, row), counts.get(name, 0), "")
        for name, row in sorted(snapshot.row_of.items())
    )
    return Capacity(copy.pod.key, sum(counts.values()), True, "", nodes, is_partial=True)


def _rejections(engine: Engine, copy: PodCopy) -> tuple[Mapping[int, str], Snapshot, list[int]]:
    """Return why the pod does not fit on the nodes now, by row; and the rows of nodes that have too little free."""
    cycle = engine.cycle(copy.framework, copy.pod)
    snapshot = cycle.snapshot
    nodes = filter_all(cycle)
    feasible = set(nodes.rows.tolist())
    statuses = cycle.diagnosis.statuses()
    refusals = device_refusals(copy.framework, copy.pod, snapshot, statuses.items())

    def text(row: int) -> str:
        status: Status = statuses.get(row, cycle.diagnosis.absent)
        if (refusal := refusals.get(snapshot.name(row))) is not None:
            return f"{status.message} ({refusal.text})"
        detail = detail_of_node(copy.framework, copy.pod, snapshot, row, status)
        return f"{status.message} ({detail})" if detail else status.message

    rejected_rows = [row for row in snapshot.row_of.values() if row not in feasible]
    absent = cycle.diagnosis.absent
    short_rows = [row for row in rejected_rows if statuses.get(row, absent).plugin == NodeResourcesFit.name]
    return {row: text(row) for row in rejected_rows}, snapshot, short_rows


def _zone(snapshot: Snapshot, row: int) -> str:
    node = snapshot.nodes[row]
    assert node is not None
    return node.metadata.labels.get(ZONE, "")


# ---------------------------------------------------------------- headroom


def headroom(cluster: Cluster, copy: PodCopy, times: int, limit: TimeLimit = UNLIMITED) -> Headroom:
    """Return the largest requests with which the pod fits that many times.

    Cost: a dry run for each of about twenty sizes of each resource.

    Raises:
        ClusterError: the number is not positive.
    """
    if times < 1:
        raise ClusterError(f"headroom: expected how many times the pod must fit, got {times}")
    requests = filter_requests(copy.pod.spec)
    engine = cluster.engine

    def fits(pod: Pod | None) -> bool:
        limit.check()
        return pod is not None and _fits(cluster, PodCopy(pod, copy.framework), times)

    def takes(resource: str, step: int, size: int) -> bool:
        return fits(_with_requests(copy.pod, {resource: size * step}))

    fits_as_it_is, percent, amounts = fits(copy.pod), 0, dict[str, str]()
    try:
        # cpu and memory first, which is how people think of a pod's size.
        for resource in sorted({CPU, MEMORY} & requests.keys()) + sorted(requests.keys() - {CPU, MEMORY}):
            # Whole MiB: more exact answers take more attempts and are of no use.
            step = _BYTES_STEP if resource == MEMORY else 1
            size_max = int(engine.cache.snapshot().allocatable(resource).max(initial=0)) // step
            if best := _largest(size_max, partial(takes, resource, step)):
                amounts[resource] = amount_text(resource, best * step)
        if any(requests.values()):
            percent = _largest(
                _FACTOR_MAX,
                lambda size: fits(
                    _with_requests(copy.pod, {name: amount * size // 100 for name, amount in requests.items()})
                ),
            )
    except TimeIsUpError:
        limit.is_noticed = True
        return Headroom(copy.pod.key, times, fits_as_it_is, amounts, percent, is_partial=True)
    return Headroom(copy.pod.key, times, fits_as_it_is, amounts, percent)


def _fits(cluster: Cluster, copy: PodCopy, times: int) -> bool:
    with _dry_run(cluster.engine, [copy], cluster.create_claims) as (run, gates):
        if gates[0]:
            return False
        if (counts := run.count(copy.pod)) is not None:
            return sum(counts.values()) >= times
        return all(run.place(make_copy(copy.pod, number)) is not None for number in range(times))


def _with_requests(pod: Pod, totals: Mapping[str, int]) -> Pod | None:
    """Return the pod with these requests in total; None if its containers cannot have them."""
    for resource, total in totals.items():
        operations = resize(pod, resource, total)
        if operations is None:
            return None
        pod = msgspec.convert(apply_patch(msgspec.to_builtins(pod), operations), Pod)
    # Containers cannot always be resized to the exact total, since their shares are whole units.
    requests = filter_requests(pod.spec)
    return pod if all(requests.get(resource, 0) == total for resource, total in totals.items()) else None


def _largest(limit: int, holds: Callable[[int], bool]) -> int:
    """Return the largest size up to the limit for which `holds` is true, or 0.

    Above the first size for which it is false, it must be false for all sizes.
    """
    # Holds because less never fits worse: filters compare requests with what is free.
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
