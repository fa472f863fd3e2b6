"""How full the nodes were over time, how many pods waited and how long: what a page shows of a cluster's day. Pure.

Owns how much is kept. The cluster is looked at in equal intervals; whenever there are too many looks, every second one
is dropped and the interval doubles. So a day takes as much room as a minute, however long it will be.
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
from podium.recording import tape

LOOKS_MAX: Final = 120
NODES_MAX: Final = 400
WAITS_MAX: Final = 1 << 20
"""So many times until a binding are kept; of more, every second one is dropped."""
ABSENT: Final = 255
"""In place of a percentage, of a node that was not there."""

_SHOWN: Final[Mapping[str, ResourceType[Any]]] = {each.path: each for each in (PODS, NODES)}
_FIRST_INTERVAL_S: Final = 0.01
_CPU, _MEMORY, _COUNT, _CPU_MAX, _MEMORY_MAX, _IS_THERE = range(6)


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node over time: a byte for each look, the requested share in percent (up to 254), or `ABSENT`."""

    name: str
    zone: str
    cpu: bytes
    memory: bytes


@dataclass(frozen=True, slots=True)
class Timeline:
    """What was seen.

    Attributes:
        started_s: when it began, in seconds since the epoch; None if that is not known.
        times_s: the looks, in seconds since the start.
        pending: the pods that waited, at each look.
        waits_s: of the pods bound since the look before: how long half of them (99 % of them) had waited at most; None
            if there were none.
        zones: the pods on nodes by zone, "" for nodes without one, at each look.
        nodes: by zone and name, `NODES_MAX` at most, which are spread evenly over all.
        nodes_count: how many nodes there were.
        bound: how many pods were bound.
        waits_kept: of how many of them it is known how long they had waited.
    """

    started_s: float | None
    times_s: Sequence[float]
    pending: Sequence[int]
    waits_s: Sequence[tuple[float, float] | None]
    zones: Mapping[str, Sequence[int]]
    nodes: Sequence[NodeLine]
    nodes_count: int
    bound: int
    waits_kept: int


@dataclass(frozen=True, slots=True)
class _Known:
    """A pod: the row of its node, or None and the time since when it has waited."""

    uid: str
    row: int | None
    amounts: tuple[int, int]
    since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Look:
    at_s: float
    pending: int
    zones: Mapping[str, int]
    cpu: npt.NDArray[np.uint8]
    memory: npt.NDArray[np.uint8]


class Onlooker:
    """Is told of every change, and of the time.

    Args:
        scheduler_names: whose pods are counted as waiting.
        now: the time, which is read at each change that `put` and `drop` tell of; by default, `reach` alone tells it.
    """

    def __init__(self, scheduler_names: Collection[str], now: Callable[[], float] | None = None) -> None:
        self._names = frozenset(scheduler_names)
        self._now = now
        self._first_s: float | None = None
        self._at_s = 0.0
        self._pods: dict[str, _Known] = {}
        self._pending = 0
        self._rows: dict[str, int] = {}
        self._zones: list[str] = []
        self._table = np.zeros((6, 64), np.int64)
        self._looks: list[_Look] = []
        self._interval_s = _FIRST_INTERVAL_S
        self._bound = 0
        self._bound_s, self._waited_s = array("d"), array("d")

    def reach(self, now_s: float) -> None:
        """It is that late."""
        if self._first_s is None:
            self._first_s = now_s
        self._at_s = now_s - self._first_s
        while (due_s := len(self._looks) * self._interval_s) <= self._at_s:
            self._looks.append(self._look(due_s))
            if len(self._looks) > LOOKS_MAX:
                self._looks = self._looks[::2]
                self._interval_s *= 2

    def put(self, resource: ResourceType[Any], item: Any, *, is_complete: bool = True) -> None:
        """An object was added or has changed."""
        del resource, is_complete
        self._read_time()
        if isinstance(item, Pod):
            self._put_pod(item)
        elif isinstance(item, Node):
            self._put_node(item)

    def drop(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """An object was deleted."""
        self.remove(resource.path, item.key)

    def remove(self, path: str, key: str) -> None:
        """The object with that key was deleted."""
        self._read_time()
        if path == PODS.path:
            self._forget(key)
        elif path == NODES.path and (row := self._rows.get(key)) is not None:
            self._table[_IS_THERE, row] = 0

    def timeline(self, started_s: float | None = None) -> Timeline:
        """Everything so far.

        Args:
            started_s: when it began, in seconds since the epoch.
        """
        self._read_time()
        looks = [*(look for look in self._looks if look.at_s < self._at_s), self._look(self._at_s)]
        seen = self._seen(looks)
        kept = [seen[at * len(seen) // NODES_MAX] for at in range(NODES_MAX)] if len(seen) > NODES_MAX else seen
        zones = sorted({zone for look in looks for zone in look.zones})
        return Timeline(
            started_s=started_s,
            times_s=[look.at_s for look in looks],
            pending=[look.pending for look in looks],
            waits_s=self._waits([look.at_s for look in looks]),
            zones={zone: [look.zones.get(zone, 0) for look in looks] for zone in zones},
            nodes=[
                NodeLine(name, self._zones[row], *(_line(looks, part, row) for part in ("cpu", "memory")))
                for _, name, row in kept
            ],
            nodes_count=len(seen),
            bound=self._bound,
            waits_kept=len(self._bound_s),
        )

    def _read_time(self) -> None:
        if self._now is not None:
            self.reach(self._now())

    # ------------------------------------------------------------ objects

    def _put_pod(self, pod: Pod) -> None:
        old = self._forget(pod.key)
        waited_since_s = old.since_s if old is not None and old.row is None and old.uid == pod.uid else None
        if pod.has_ended:
            return
        if pod.node_name:
            row = self._row(pod.node_name)
            known = _Known(pod.uid, row, _requests(pod))
            self._table[:3, row] += (*known.amounts, 1)
            if waited_since_s is not None:
                self._note_wait(self._at_s - waited_since_s)
        elif pod.spec.scheduler_name in self._names:
            known = _Known(pod.uid, None, (0, 0), self._at_s if waited_since_s is None else waited_since_s)
            self._pending += 1
        else:
            return
        self._pods[pod.key] = known

    def _note_wait(self, waited_s: float) -> None:
        self._bound += 1
        self._bound_s.append(self._at_s)
        self._waited_s.append(waited_s)
        if len(self._bound_s) > WAITS_MAX:
            self._bound_s, self._waited_s = self._bound_s[::2], self._waited_s[::2]

    def _forget(self, key: str) -> _Known | None:
        known = self._pods.pop(key, None)
        if known is None:
            return None
        if known.row is None:
            self._pending -= 1
        else:
            self._table[:3, known.row] -= (*known.amounts, 1)
        return known

    def _put_node(self, node: Node) -> None:
        row = self._row(node.metadata.name)
        self._zones[row] = node.metadata.labels.get(ZONE, "")
        try:
            allocatable, _ = node_allocatable(node)
        except FieldError:
            allocatable = {}
        self._table[_CPU_MAX:, row] = (allocatable.get("cpu", 0), allocatable.get("memory", 0), 1)

    def _row(self, name: str) -> int:
        row = self._rows.setdefault(name, len(self._rows))
        if row == len(self._zones):
            self._zones.append("")
            if row == self._table.shape[1]:
                self._table = np.concatenate((self._table, np.zeros_like(self._table)), axis=1)
        return row

    # ------------------------------------------------------------ looks

    def _look(self, at_s: float) -> _Look:
        table = self._table[:, : len(self._zones)]
        is_there = table[_IS_THERE] > 0
        zones: dict[str, int] = defaultdict(int)
        for row in is_there.nonzero()[0].tolist():
            zones[self._zones[row]] += int(table[_COUNT, row])
        shares = (
            np.where(is_there, _percent(table[part], table[most]), ABSENT).astype(np.uint8)
            for part, most in ((_CPU, _CPU_MAX), (_MEMORY, _MEMORY_MAX))
        )
        return _Look(at_s, self._pending, zones, *shares)

    def _seen(self, looks: Sequence[_Look]) -> list[tuple[str, str, int]]:
        """Zone, name and row of the nodes that were there at any look, in this order."""
        seen = np.zeros(len(self._zones), bool)
        for look in looks:
            seen[: len(look.cpu)] |= look.cpu != ABSENT
        found = [(self._zones[row], name, row) for name, row in self._rows.items() if seen[row]]
        # node-2 comes before node-10.
        return sorted(found, key=lambda each: (each[0], len(each[1]), each[1]))

    def _waits(self, times_s: Sequence[float]) -> list[tuple[float, float] | None]:
        bound_s, waited_s = np.array(self._bound_s), np.array(self._waited_s)
        ends = np.searchsorted(bound_s, times_s, side="right")
        found: list[tuple[float, float] | None] = []
        for begin, end in zip((0, *ends[:-1]), ends, strict=True):
            half, most = np.quantile(waited_s[begin:end], (0.5, 0.99)) if end > begin else (None, None)
            found.append(None if half is None or most is None else (float(half), float(most)))
        return found


def read_timeline(
    entries: Iterable[tape.Entry], scheduler_names: Collection[str], *, seconds: float | None = None
) -> Timeline:
    """What a recording shows.

    Args:
        entries: of a recording of podium, or of one made beside another scheduler.
        seconds: so much of it; None for all.
    """
    onlooker, clock, wall_clock = Onlooker(scheduler_names), tape.Times(), tape.Times()
    first_s = wall_s = None
    for entry in entries:
        if entry[0] == tape.MONOTONIC:
            now_s = clock.take(entry[1])
            first_s = now_s if first_s is None else first_s
            if seconds is not None and now_s - first_s > seconds:
                break
            onlooker.reach(now_s)
        elif entry[0] == tape.NOW and wall_s is None:
            wall_s = wall_clock.take(entry[1]) - (0.0 if first_s is None else clock.last_s - first_s)
        elif entry[0] == tape.PUT and (resource := _SHOWN.get(entry[1])) is not None:
            onlooker.put(resource, tape.item_of(entry))
        elif entry[0] == tape.REMOVE:
            onlooker.remove(entry[1], entry[2])
    return onlooker.timeline(wall_s)


def _requests(pod: Pod) -> tuple[int, int]:
    """CPU (milli) and memory (bytes); nothing if they cannot be read."""
    try:
        requests = requests_on_node(pod)
    except FieldError:
        return 0, 0
    return requests.get("cpu", 0), requests.get("memory", 0)


def _percent(part: npt.NDArray[np.int64], most: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How much of it is requested; 100 of nothing."""
    shares = np.rint(100.0 * part / np.maximum(most, 1)).astype(np.int64)
    return np.minimum(np.where(most > 0, shares, 100 * (part > 0)), ABSENT - 1)


def _line(looks: Sequence[_Look], part: str, row: int) -> bytes:
    """A node at each look."""
    shares = (getattr(look, part) for look in looks)
    return bytes(int(each[row]) if row < len(each) else ABSENT for each in shares)
