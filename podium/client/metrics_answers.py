"""Reads the answers of metrics sources: a load watcher, metrics-server, Prometheus.

Owns what is refused: values that are no numbers, nodes that do not exist, two values where one is meant. Never does
I/O; an answer of many megabytes is read piece by piece, so that a thread that reads it never holds up the event loop.

Source: github.com/paypal/load-watcher pkg/watcher, v0.2.4; Prometheus' HTTP API, v1; metrics.k8s.io/v1beta1.
Differs: a value that is not finite is left out, where a load watcher cannot write one and its library keeps it. A node
is also known by its addresses, by its host name before the first dot, and with a port behind it. Of two values of one
query for one node the higher one counts, where upstream keeps both and uses either.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from podium.client.json_pieces import list_items, map_items
from podium.lib.error_text import UserFacingError, cut
from podium.objects.core import Node
from podium.objects.meta import RawQuantity
from podium.objects.node_metrics import (
    CPU_LOAD,
    LATEST,
    MEMORY_LOAD,
    MetricsOfNode,
    MetricsQuery,
    MetricsWindow,
    NodeMetric,
)
from podium.objects.quantity import QuantityError, milli_value, value
from podium.objects.resource_names import CPU, MEMORY

T = TypeVar("T")

_TYPES: Final = frozenset({CPU_LOAD, MEMORY_LOAD})
_NAMES_SHOWN: Final = 3
_NAME_LENGTH_MAX: Final = 80


class MetricsError(UserFacingError):
    """A source cannot be read. The message says why, without its address."""


class NodeNames:
    """The nodes by all names under which a source may report them."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        nodes = list(nodes)
        self._known = {node.name: node.name for node in nodes}
        self._others: dict[str, str] = {}
        hosts = Counter(node.name.partition(".")[0] for node in nodes)
        for node in nodes:
            short_name = node.name.partition(".")[0]
            if hosts[short_name] == 1:
                self._others[short_name] = node.name
            for address in node.status.addresses:
                self._others[address.address] = node.name

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._known)

    def name_of(self, text: str) -> str | None:
        """Return the name of the node that a source calls so; None if there is no such node."""
        host, _, port = text.rpartition(":")
        host = host.strip("[]") if port.isdecimal() and host else text
        candidates = (text, host) if _is_address(host) else (text, host, host.partition(".")[0])
        for candidate in candidates:
            name = self._known.get(candidate) or self._others.get(candidate)
            if name is not None:
                return name
        return None


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


class Readings:
    """The values that a source's answers have, and what was wrong with them."""

    def __init__(self, names: NodeNames) -> None:
        self.window = MetricsWindow()
        self._names = names
        self.types: set[str] = set()
        self._metrics: dict[str, list[NodeMetric]] = {}
        self._problems: dict[str, dict[str, None]] = {}

    @property
    def nodes(self) -> dict[str, MetricsOfNode]:
        """The values by node name."""
        return {name: MetricsOfNode(metrics=tuple(metrics)) for name, metrics in self._metrics.items()}

    @property
    def problems(self) -> str:
        """What was left out, with the first few names; empty if nothing was."""
        return "; ".join(f"{problem}: {_some(names)}" for problem, names in self._problems.items())

    def node_of(self, text: str) -> str | None:
        """Return the node that the source calls so, and note it if there is none."""
        name = self._names.name_of(text)
        if name is None:
            self.note("no such node", text)
        return name

    def note(self, problem: str, name: str) -> None:
        """Note a problem with what the source says about this name."""
        self._problems.setdefault(problem, {})[name] = None

    def add(self, name: str, metric: NodeMetric) -> None:
        """Add a value, unless it is not finite."""
        if not math.isfinite(metric.value):
            self.note("not a finite number", name)
            return
        self.types.add(metric.type)
        self._metrics.setdefault(name, []).append(metric)


def _some(names: Mapping[str, None]) -> str:
    first_names = ", ".join(name[:_NAME_LENGTH_MAX] for name in list(names)[:_NAMES_SHOWN])
    return first_names if len(names) <= _NAMES_SHOWN else f"{first_names} and {len(names) - _NAMES_SHOWN} more"


# ---------------------------------------------------------------- a load watcher


class _WatchedNodes(msgspec.Struct):
    by_name: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="NodeMetricsMap")


class _WatcherAnswer(msgspec.Struct):
    window: MetricsWindow = MetricsWindow()
    data: _WatchedNodes = msgspec.field(default_factory=_WatchedNodes)


_read_node: Final = msgspec.json.Decoder(MetricsOfNode).decode


def read_watcher(readings: Readings, body: bytes) -> None:
    """Read a load watcher's answer. Raises: MetricsError."""
    answer = _decode(msgspec.json.Decoder(_WatcherAnswer).decode, body)
    readings.window = answer.window
    for text, raw in _legible(map_items(answer.data.by_name)):
        name = readings.node_of(text)
        if name is None:
            continue
        try:
            metrics = _read_node(raw).metrics
        except (msgspec.DecodeError, UnicodeDecodeError):
            readings.note("not in a load watcher's form", text)
            continue
        for metric in metrics or ():
            if metric.type in _TYPES:
                readings.add(name, metric)


# ---------------------------------------------------------------- metrics-server


class _Usage(msgspec.Struct):
    cpu: RawQuantity = 0
    memory: RawQuantity = 0


class _Name(msgspec.Struct):
    name: str = ""


class _NodeUsage(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    usage: _Usage = msgspec.field(default_factory=_Usage)


class _UsageList(msgspec.Struct):
    items: msgspec.Raw = msgspec.Raw(b"[]")


_read_usage: Final = msgspec.json.Decoder(_NodeUsage).decode


def read_metrics_server(readings: Readings, body: bytes, nodes: Mapping[str, Node]) -> None:
    """Read metrics-server's list, in percent of the nodes' capacity. Raises: MetricsError."""
    for raw in _legible(list_items(_decode(msgspec.json.Decoder(_UsageList).decode, body).items)):
        try:
            item = _read_usage(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            readings.note("not in metrics-server's form", "an item")
            continue
        name = readings.node_of(item.metadata.name)
        node = None if name is None else nodes.get(name)
        if node is None:
            continue
        for type_, resource, raw_usage, amount_of in (
            (CPU_LOAD, CPU, item.usage.cpu, milli_value),
            (MEMORY_LOAD, MEMORY, item.usage.memory, value),
        ):
            try:
                capacity = amount_of(node.status.capacity.get(resource, 0))
                usage = amount_of(raw_usage)
            except QuantityError:
                readings.note(f"{resource} cannot be read", node.name)
                continue
            if capacity > 0:
                percent = float(100 * usage) / float(capacity)
                readings.add(node.name, NodeMetric(type=type_, operator=LATEST, value=percent))


# ---------------------------------------------------------------- Prometheus


class _Series(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] = (0.0, "NaN")


class _Vector(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _PrometheusAnswer(msgspec.Struct, rename="camel"):
    status: str = ""
    error: str = ""
    data: _Vector = msgspec.field(default_factory=_Vector)


_read_series: Final = msgspec.json.Decoder(_Series).decode


def read_prometheus(readings: Readings, body: bytes, query: MetricsQuery) -> None:
    """Read Prometheus' answer to a query, which must be a vector. Raises: MetricsError."""
    answer = _decode(msgspec.json.Decoder(_PrometheusAnswer).decode, body)
    if answer.status != "success":
        raise MetricsError(f"query {_cut_query(query)}: {cut(answer.error or 'no success')}")
    if answer.data.result_type != "vector":
        kind = cut(answer.data.result_type or "nothing")
        raise MetricsError(f"query {_cut_query(query)}: a vector is wanted, the answer is {kind}")
    highest: dict[str, float] = {}
    for raw in _legible(list_items(answer.data.result)):
        try:
            series = _read_series(raw)
            measured = float(series.value[1]) * query.factor
        except (msgspec.DecodeError, ValueError):
            readings.note(f"query {_cut_query(query)}: cannot be read", "a series")
            continue
        text = series.metric.get(query.node_label)
        if text is None:
            readings.note(f"query {_cut_query(query)}: a series lacks the label", query.node_label)
            continue
        name = readings.node_of(text)
        if name is None:
            continue
        if not math.isfinite(measured):
            readings.note("not a finite number", name)
            continue
        if name in highest:
            readings.note(f"query {_cut_query(query)}: several series, the highest counts", name)
        highest[name] = max(measured, highest.get(name, measured))
    for name, measured in highest.items():
        readings.add(name, NodeMetric(type=query.type, operator=query.operator, value=measured))


def _cut_query(query: MetricsQuery) -> str:
    return query.expr[:_NAME_LENGTH_MAX]


def _decode(decode: Callable[[Any], T], body: bytes) -> T:
    [answer] = _legible(map(decode, (body,)))
    return answer


def _legible(parts: Iterator[T]) -> Iterator[T]:
    """Yield the parts of an answer while they are decoded. Raises: MetricsError if one cannot be."""
    try:
        yield from parts
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MetricsError(f"the answer cannot be read: {cut(str(error))}") from None
    except RecursionError:
        raise MetricsError("the answer cannot be read: it is nested too deep") from None
