"""Records the utilization of the nodes over time, and how many pods waited and how long. Pure.

Owns how much is kept. Samples are taken at equal intervals; when there are too many, every second one is dropped and
the interval doubles. So a day takes as much memory as a minute, and its length need not be known.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.requests import node_allocatable, requests_on_node
from podium.objects.resource_types import NODES, PODS, KubeObject, ResourceType
from podium.objects.topology_labels import ZONE
from podium.recording.entries import MONOTONIC, NOW, PUT, REMOVE, Entry, Times, item_of

SAMPLES_MAX: Final = 120
NODES_MAX: Final = 400
WAITS_MAX: Final = 1 << 20
"""The most waits that are kept; when there are more, every second one is dropped."""
ABSENT: Final = 255
"""Takes the place of a percentage while the node did not exist."""

_RESOURCES: Final[Mapping[str, ResourceType[Any]]] = {resource.path: resource for resource in (PODS, NODES)}
_FIRST_INTERVAL_S: Final = 0.01
_CPU, _MEMORY, _COUNT, _CPU_MAX, _MEMORY_MAX, _EXISTS = range(6)


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node over time: one byte per sample, the requested share in percent (up to 254) or `ABSENT`."""

    name: str
    zone: str
    cpu: bytes
    memory: bytes


@dataclass(frozen=True, slots=True)
class Timeline:
    """The utilization of a cluster over time.

    Attributes:
        started_s: the start, in seconds since the epoch; None if unknown.
        times_s: the times of the samples, in seconds since the start.
        pending: the number of waiting pods at each sample.
        waits_s: the median and the 99th percentile of the waits of the pods bound since the sample before; None if
            there were none.
        zones: the number of pods on nodes at each sample, by zone; "" for nodes without one.
        nodes: sorted by zone and name; at most `NODES_MAX`, evenly selected.
        nodes_count: the number of all nodes.
        bound_count: the number of bindings.
        waits_count: the number of bindings whose waits were kept.
    """

    started_s: float | None
    times_s: Sequence[float]
    pending: Sequence[int]
    waits_s: Sequence[tuple[float, float] | None]
    zones: Mapping[str, Sequence[int]]
    nodes: Sequence[NodeLine]
    nodes_count: int
    bound_count: int
    waits_count: int


@dataclass(frozen=True, slots=True)
class _PodRecord:
    """A pod: the row of its node, or None and the time since which it waits."""

    uid: str
    row: int | None
    amounts: tuple[int, int]
    since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Sample:
    at_s: float
    pending: int
    zones: Mapping[str, int]
    cpu: npt.NDArray[np.uint8]
    memory: npt.NDArray[np.uint8]


class UtilizationRecorder:
    """Samples utilization from watch events. Implements `podium.recording.shadow.app.ChangeListener`.

    Args:
        scheduler_names: the schedulers whose pods count as waiting.
        clock: read at each watch event; by default, only `advance_to` sets the time.
    """

    def __init__(self, scheduler_names: Collection[str], clock: Callable[[], float] | None = None) -> None:
        self._names = frozenset(scheduler_names)
        self._clock = clock
        self._first_s: float | None = None
        self._at_s = 0.0
        self._pods: dict[str, _PodRecord] = {}
        self._pending = 0
        self._rows: dict[str, int] = {}
        self._zones: list[str] = []
        self._table = np.zeros((6, 64), np.int64)
        self._samples: list[_Sample] = []
        self._interval_s = _FIRST_INTERVAL_S
        self._bound_count = 0
        self._bound_s, self._waited_s = array("d"), array("d")

    def advance_to(self, now_s: float) -> None:
        """Set the time."""
        if self._first_s is None:
            self._first_s = now_s
        self._at_s = now_s - self._first_s
        while (due_s := len(self._samples) * self._interval_s) <= self._at_s:
            self._samples.append(self._sample(due_s))
            if len(self._samples) > SAMPLES_MAX:
                # Half of the samples at twice the interval: a day takes as much memory as an hour.
                self._samples = self._samples[::2]
                self._interval_s *= 2

    def put(self, resource: ResourceType[Any], item: Any, *, is_complete: bool = True) -> None:
        """Take an added or changed object."""
        self._read_time()
        if isinstance(item, Pod):
            self._put_pod(item)
        elif isinstance(item, Node):
            self._put_node(item)

    def drop(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Take a deletion."""
        self.remove(resource.path, item.key)

    def remove(self, path: str, key: str) -> None:
        """Take the deletion of the object with that key."""
        self._read_time()
        if path == PODS.path:
            self._forget(key)
        elif path == NODES.path and (row := self._rows.get(key)) is not None:
            # The row stays: pods may still be on the node, and a node of that name may come back.
            self._table[_EXISTS, row] = 0

    def timeline(self, started_s: float | None = None) -> Timeline:
        """Return the timeline so far.

        Args:
            started_s: the start, in seconds since the epoch.
        """
        self._read_time()
        # The present is a sample too, so that a short recording has one at all.
        samples = [*(sample for sample in self._samples if sample.at_s < self._at_s), self._sample(self._at_s)]
        nodes = self._nodes(samples)
        count = len(nodes)
        selection = [nodes[index * count // NODES_MAX] for index in range(NODES_MAX)] if count > NODES_MAX else nodes
        zones = sorted({zone for sample in samples for zone in sample.zones})
        return Timeline(
            started_s=started_s,
            times_s=[sample.at_s for sample in samples],
            pending=[sample.pending for sample in samples],
            waits_s=self._waits([sample.at_s for sample in samples]),
            zones={zone: [sample.zones.get(zone, 0) for sample in samples] for zone in zones},
            nodes=[
                NodeLine(name, self._zones[row], *(_line(samples, part, row) for part in ("cpu", "memory")))
                for _, name, row in selection
            ],
            nodes_count=count,
            bound_count=self._bound_count,
            waits_count=len(self._bound_s),
        )

    def _read_time(self) -> None:
        if self._clock is not None:
            self.advance_to(self._clock())

    # ------------------------------------------------------------ objects

    def _put_pod(self, pod: Pod) -> None:
        old = self._forget(pod.key)
        # A pod created again under its name has not waited since the old one was seen.
        waited_since_s = old.since_s if old is not None and old.row is None and old.uid == pod.uid else None
        if pod.has_ended:
            return
        if pod.node_name:
            row = self._row(pod.node_name)
            record = _PodRecord(pod.uid, row, _requests(pod))
            self._table[:3, row] += (*record.amounts, 1)
            if waited_since_s is not None:
                self._note_wait(self._at_s - waited_since_s)
        elif pod.spec.scheduler_name in self._names:
            record = _PodRecord(pod.uid, None, (0, 0), self._at_s if waited_since_s is None else waited_since_s)
            self._pending += 1
        else:
            return
        self._pods[pod.key] = record

    def _note_wait(self, waited_s: float) -> None:
        self._bound_count += 1
        self._bound_s.append(self._at_s)
        self._waited_s.append(waited_s)
        if len(self._bound_s) > WAITS_MAX:
            # Every second one, so that quantiles stay those of the whole time.
            self._bound_s, self._waited_s = self._bound_s[::2], self._waited_s[::2]

    def _forget(self, key: str) -> _PodRecord | None:
        record = self._pods.pop(key, None)
        if record is None:
            return None
        if record.row is None:
            self._pending -= 1
        else:
            self._table[:3, record.row] -= (*record.amounts, 1)
        return record

    def _put_node(self, node: Node) -> None:
        row = self._row(node.metadata.name)
        self._zones[row] = node.metadata.labels.get(ZONE, "")
        try:
            allocatable, _ = node_allocatable(node)
        except FieldError:
            # Such a node counts as one without capacity.
            allocatable = {}
        self._table[_CPU_MAX:, row] = (allocatable.get("cpu", 0), allocatable.get("memory", 0), 1)

    def _row(self, name: str) -> int:
        row = self._rows.setdefault(name, len(self._rows))
        if row == len(self._zones):
            self._zones.append("")
            if row == self._table.shape[1]:
                self._table = np.concatenate((self._table, np.zeros_like(self._table)), axis=1)
        return row

    # ------------------------------------------------------------ samples

    def _sample(self, at_s: float) -> _Sample:
        table = self._table[:, : len(self._zones)]
        exists = table[_EXISTS] > 0
        zones: dict[str, int] = defaultdict(int)
        for row in exists.nonzero()[0].tolist():
            zones[self._zones[row]] += int(table[_COUNT, row])
        shares = (
            np.where(exists, _percent(table[amount], table[capacity]), ABSENT).astype(np.uint8)
            for amount, capacity in ((_CPU, _CPU_MAX), (_MEMORY, _MEMORY_MAX))
        )
        return _Sample(at_s, self._pending, zones, *shares)

    def _nodes(self, samples: Sequence[_Sample]) -> list[tuple[str, str, int]]:
        """Return zone, name and row of the nodes that existed at any sample, sorted by zone and name."""
        existed = np.zeros(len(self._zones), bool)
        for sample in samples:
            existed[: len(sample.cpu)] |= sample.cpu != ABSENT
        nodes = [(self._zones[row], name, row) for name, row in self._rows.items() if existed[row]]
        # By length before name: node-2 comes before node-10.
        return sorted(nodes, key=lambda node: (node[0], len(node[1]), node[1]))

    def _waits(self, times_s: Sequence[float]) -> list[tuple[float, float] | None]:
        bound_s, waited_s = np.array(self._bound_s), np.array(self._waited_s)
        ends = np.searchsorted(bound_s, times_s, side="right")
        waits: list[tuple[float, float] | None] = []
        for begin, end in zip((0, *ends[:-1]), ends, strict=True):
            p50, p99 = np.quantile(waited_s[begin:end], (0.5, 0.99)) if end > begin else (None, None)
            waits.append(None if p50 is None or p99 is None else (float(p50), float(p99)))
        return waits


def read_timeline(
    entries: Iterable[Entry], scheduler_names: Collection[str], *, seconds: float | None = None
) -> Timeline:
    """Read the timeline of a recording.

    Args:
        entries: a recording of podium, or one made beside another scheduler.
        seconds: the length to read; None for all.
    """
    recorder, clock, wall_clock = UtilizationRecorder(scheduler_names), Times(), Times()
    first_s = wall_s = None
    for entry in entries:
        if entry[0] == MONOTONIC:
            now_s = clock.take(entry[1])
            first_s = now_s if first_s is None else first_s
            if seconds is not None and now_s - first_s > seconds:
                break
            recorder.advance_to(now_s)
        elif entry[0] == NOW and wall_s is None:
            wall_s = wall_clock.take(entry[1]) - (0.0 if first_s is None else clock.last_s - first_s)
        elif entry[0] == PUT and (resource := _RESOURCES.get(entry[1])) is not None:
            recorder.put(resource, item_of(entry))
        elif entry[0] == REMOVE:
            recorder.remove(entry[1], entry[2])
    return recorder.timeline(wall_s)


def _requests(pod: Pod) -> tuple[int, int]:
    """Return CPU (milli) and memory (bytes); zeros if they cannot be read."""
    try:
        requests = requests_on_node(pod)
    except FieldError:
        return 0, 0
    return requests.get("cpu", 0), requests.get("memory", 0)


def _percent(amount: npt.NDArray[np.int64], capacity: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the requested percentage; any request on a node without capacity is 100 %."""
    shares = np.rint(100.0 * amount / np.maximum(capacity, 1)).astype(np.int64)
    return np.minimum(np.where(capacity > 0, shares, 100 * (amount > 0)), ABSENT - 1)


def _line(samples: Sequence[_Sample], part: str, row: int) -> bytes:
    """Return the percentages of one node."""
    columns = (getattr(sample, part) for sample in samples)
    return bytes(int(column[row]) if row < len(column) else ABSENT for column in columns)
