"""Measured loads of nodes: where they come from, and what one reading of that source says.

Owns the form of a report, which is that of a load watcher's answer whatever the source is, and how values of one type
are read from it. Never fetches anything.

Source: github.com/paypal/load-watcher pkg/watcher/api.go, v0.2.4.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from podium.objects.meta import ClusterObject, Int64, Value
from podium.objects.resource_types import EventResource, ResourceType

CPU_LOAD: Final = "CPU"
MEMORY_LOAD: Final = "Memory"
AVERAGE: Final = "AVG"
DEVIATION: Final = "STD"
LATEST: Final = "Latest"

WATCHER: Final = "LoadWatcher"
KUBERNETES_METRICS_SERVER: Final = "KubernetesMetricsServer"
PROMETHEUS: Final = "Prometheus"
ANY_SOURCE: Final = "any-source"
"""The name of a report that stands for those of all sources. Only questions from files have one."""


# ---------------------------------------------------------------- sources


@dataclass(frozen=True, slots=True)
class MetricsQuery:
    """A PromQL expression that has one series for each node.

    Attributes:
        type, operator: of the values in the report.
        node_label: the label with the node's name.
        factor: multiplies the values: 100 for a query whose ratios are reported in percent.
    """

    expr: str
    type: str
    operator: str = LATEST
    node_label: str = "instance"
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class MetricsSource:
    """Where the loads of nodes are read. Plugins whose sources are equal share one.

    Attributes:
        type: `LoadWatcher`, `KubernetesMetricsServer` or `Prometheus`.
        address: the URL of a load watcher or of Prometheus.
        token, token_file: the bearer token for Prometheus, or the file that holds it.
        ca_file: the file with the authorities of the server's certificate; by default those of the machine.
        queries: what Prometheus is asked, in turn: each answer has all nodes.
    """

    type: str
    address: str = ""
    token: str = ""
    token_file: str = ""
    ca_file: str = ""
    insecure_skip_verify: bool = False
    queries: tuple[MetricsQuery, ...] = ()

    @property
    def name(self) -> str:
        """The name of its reports: different for different settings, but without user, password and token."""
        scheme, separator, location = self.address.partition("://")
        host, slash, path = location.partition("/")
        address = f" {scheme}{separator}{host.rpartition('@')[2]}{slash}{path}" if self.address else ""
        settings = (self.token_file, self.ca_file, self.insecure_skip_verify, self.queries)
        mark = f" {hashlib.sha256(repr(settings).encode()).hexdigest()[:8]}" if any(settings) else ""
        return f"{self.type}{address}{mark}"


# ---------------------------------------------------------------- reports


class NodeMetric(Value, frozen=True):
    """One value of a node, in percent unless its source says otherwise.

    `operator` is AVG, STD, Latest, Unknown or empty.
    """

    type: str = ""
    operator: str = ""
    value: float = 0.0


class MetricsOfNode(Value, frozen=True):
    """The values of one node, in the source's order; None counts as if the report did not have the node."""

    metrics: tuple[NodeMetric, ...] | None = None


class MetricsWindow(Value, frozen=True):
    """The time that the values cover, in Unix seconds."""

    start: Int64 = 0
    end: Int64 = 0


class ReportedNodes(Value, frozen=True):
    """The values by node name."""

    by_name: dict[str, MetricsOfNode] = msgspec.field(default_factory=dict, name="NodeMetricsMap")


class Loads(NamedTuple):
    """The values of one type, for each node of a report in its order; NaN where a node has none.

    Attributes:
        first, last: the first and the last value that is an average or the latest one.
        mean: the last average; without one, the latest value; 0 for a node with values of other operators only.
        deviation: the last standard deviation; 0 for a node with other values only.
    """

    first: Sequence[float]
    last: Sequence[float]
    mean: Sequence[float]
    deviation: Sequence[float]


class NodeMetricsReport(ClusterObject, frozen=True, gc=True, dict=True):
    """What a source said at one time; its name is that of the source.

    Attributes:
        fetched_s: the time at which it was read; None if that is not known, as in a question from a file.
    """

    window: MetricsWindow = MetricsWindow()
    data: ReportedNodes = ReportedNodes()
    fetched_s: float | None = None

    def loads(self, type_: str) -> Loads:
        """Return the values of one type. They are computed once.

        Cost: about 1 µs for each value of the report, the first time.
        """
        memory: dict[str, Loads] = self.__dict__.setdefault("_loads_by_type", {})
        loads = memory.get(type_)
        if loads is None:
            rows = [_loads_of(node.metrics or (), type_) for node in self.data.by_name.values()]
            loads = memory[type_] = Loads(*zip(*rows, strict=True)) if rows else Loads((), (), (), ())
        return loads

    def by_node(self, type_: str) -> dict[str, float]:
        """Return the average, or else the latest value, of one type by node name, without nodes that have none."""
        pairs = zip(self.data.by_name, self.loads(type_).mean, strict=True)
        return {name: value for name, value in pairs if not math.isnan(value)}

    def age_s(self, now_s: float) -> float | None:
        """Return how old the report is; None if that is not known."""
        return None if self.fetched_s is None else max(0.0, now_s - self.fetched_s)


def _loads_of(metrics: Iterable[NodeMetric], type_: str) -> tuple[float, float, float, float]:
    first = last = mean = deviation = math.nan
    has_average = False
    for metric in metrics:
        if metric.type != type_:
            continue
        if math.isnan(mean):
            mean = deviation = 0.0
        value, operator = metric.value, metric.operator
        if operator in (AVERAGE, LATEST):
            first, last = (value if math.isnan(first) else first), value
        if operator == AVERAGE:
            mean, has_average = value, True
        elif operator in ("", LATEST) and not has_average:
            mean = value
        elif operator == DEVIATION:
            deviation = value
    return first, last, mean, deviation


NODE_METRICS: Final = ResourceType(
    "NodeMetricsReport",
    "/apis/podium/v1/nodemetricsreports",
    NodeMetricsReport,
    event=EventResource.NODE_METRICS,
    is_local=True,
)
"""Reports as a resource that no API server has: podium stores what it has read, by the name of the source."""
