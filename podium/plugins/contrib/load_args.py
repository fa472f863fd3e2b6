"""Holds the args that the load-aware plugins share: where node metrics come from, and what happens without them.

Source: sigs.k8s.io/scheduler-plugins apis/config/types.go and v1/defaults.go, pkg/trimaran/collector.go (2026-08).
Differs: Prometheus is queried for CPU and memory only, and each query is a request of its own, so that a failed query
loses only its own values. `insecureSkipVerify` also applies without a token. The token and the CA certificates may be
read from files, such as a service account's. SignalFx is refused; a load watcher can read it. With `whenStale: skip`
all nodes get the same score while metrics are missing or stale.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec

from podium.objects.node_metrics import (
    AVERAGE,
    CPU_LOAD,
    DEVIATION,
    KUBERNETES_METRICS_SERVER,
    MEMORY_LOAD,
    PROMETHEUS,
    WATCHER,
    MetricsQuery,
    MetricsSource,
)
from podium.plugins.contrib.plugin_args import PluginArgs

_WINDOW: Final = "15m"
_PROMETHEUS_ADDRESS: Final = "http://prometheus-k8s:9090"
_RECORDING_RULES: Final = (
    (CPU_LOAD, "instance:node_cpu:ratio"),
    (MEMORY_LOAD, "instance:node_memory_utilisation:ratio"),
)
_FUNCTIONS: Final = ((AVERAGE, "avg_over_time"), (DEVIATION, "stddev_over_time"))
NODE_RATIOS: Final = tuple(
    MetricsQuery(f"{function}({ratio}[{_WINDOW}])", metric, operator, factor=100.0)
    for operator, function in _FUNCTIONS
    for metric, ratio in _RECORDING_RULES
)
"""The default queries to Prometheus: averages and deviations of the recording rules of node-exporter's mixin."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=2**31)]


class MetricProvider(msgspec.Struct, frozen=True, rename="camel"):
    """The server that node metrics are read from without a load watcher.

    Differs: upstream has neither `token_file` nor `ca_file`.
    """

    type: str = ""
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool | None = None
    token_file: str = ""
    ca_file: str = ""

    def source(self, queries: tuple[MetricsQuery, ...] = NODE_RATIOS) -> MetricsSource:
        """Return the source of this type and address. Raises: ValueError if podium cannot read the type."""
        if self.type == KUBERNETES_METRICS_SERVER:
            return MetricsSource(KUBERNETES_METRICS_SERVER)
        if self.type == PROMETHEUS:
            return MetricsSource(
                PROMETHEUS,
                self.address or _PROMETHEUS_ADDRESS,
                self.token,
                self.token_file,
                self.ca_file,
                insecure_skip_verify=self.insecure_skip_verify is not False and not self.ca_file,
                queries=queries,
            )
        hint = "; a load watcher reads it: set watcherAddress" if self.type == "SignalFx" else ""
        raise ValueError(f"invalid MetricProvider.Type, got {self.type}{hint}")


class LoadArgs(PluginArgs, frozen=True, kw_only=True):
    """The args of every load-aware plugin.

    Attributes:
        when_stale: `score` uses the last metrics, however old, as upstream does; `skip`, which upstream does not have,
            gives all nodes the same score while metrics are missing or stale.
        stale_after_seconds: the age at which metrics become stale.
    """

    metric_provider: MetricProvider = MetricProvider()
    watcher_address: str | None = None
    when_stale: Literal["score", "skip"] = "score"
    stale_after_seconds: Seconds = 300.0

    def problems(self) -> Iterable[str]:
        """Return the reason that the args do not give a source."""
        try:
            self.source()
        except ValueError as error:
            yield str(error)

    def source(self) -> MetricsSource:
        """Return the source of node metrics. Raises: as `default_source`."""
        return default_source(self.watcher_address, self.metric_provider)


def default_source(
    watcher_address: str | None, provider: MetricProvider, queries: tuple[MetricsQuery, ...] = NODE_RATIOS
) -> MetricsSource:
    """Return the load watcher, the provider's source, or metrics-server if neither is configured.

    Raises:
        ValueError: podium cannot read the provider's type.
    """
    if watcher_address:
        return MetricsSource(WATCHER, watcher_address)
    if watcher_address is None and not provider.type:
        return MetricsSource(KUBERNETES_METRICS_SERVER)
    return provider.source(queries)
