"""The args that plugins of measured loads share: where the loads come from, and what to do without them.

Source: sigs.k8s.io/scheduler-plugins apis/config/types.go and v1/defaults.go, pkg/trimaran/collector.go (2026-08).
Differs: Prometheus is asked for CPU and memory only, each query by itself, so that one that fails costs its own values
only. `insecureSkipVerify` also applies without a token. A token may come from a file, such as a service account's, and
authorities too. SignalFx is refused: a load watcher can read it. `whenStale: skip` has the plugin take no part while
its metrics are missing or old.
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
_RATIOS: Final = ((CPU_LOAD, "instance:node_cpu:ratio"), (MEMORY_LOAD, "instance:node_memory_utilisation:ratio"))
_OVER_TIME: Final = ((AVERAGE, "avg_over_time"), (DEVIATION, "stddev_over_time"))
NODE_RATIOS: Final = tuple(
    MetricsQuery(f"{function}({ratio}[{_WINDOW}])", type_, operator, factor=100.0)
    for operator, function in _OVER_TIME
    for type_, ratio in _RATIOS
)
"""What Prometheus is asked for by default: the recording rules of node-exporter's mixin."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=2**31)]


class MetricProvider(msgspec.Struct, frozen=True, rename="camel"):
    """Where loads are read without a load watcher. `token_file` and `ca_file` are podium's own."""

    type: str = ""
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool | None = None
    token_file: str = ""
    ca_file: str = ""

    def source(self, queries: tuple[MetricsQuery, ...] = NODE_RATIOS) -> MetricsSource:
        """Return the source that it names. Raises: ValueError if podium reads no such source."""
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
    """The args of every plugin of measured loads.

    Attributes:
        when_stale: podium's own: `skip` gives all nodes the same score while there are no metrics or only old ones;
            `score` scores by the last ones, however old, as upstream does.
        stale_after_seconds: the age from which metrics are old.
    """

    metric_provider: MetricProvider = MetricProvider()
    watcher_address: str | None = None
    when_stale: Literal["score", "skip"] = "score"
    stale_after_seconds: Seconds = 300.0

    def problems(self) -> Iterable[str]:
        """Return why the args name no source."""
        try:
            self.source()
        except ValueError as error:
            yield str(error)

    def source(self) -> MetricsSource:
        """Return where the loads are read. Raises: as `default_source`."""
        return default_source(self.watcher_address, self.metric_provider)


def default_source(
    watcher_address: str | None, provider: MetricProvider, queries: tuple[MetricsQuery, ...] = NODE_RATIOS
) -> MetricsSource:
    """Return the load watcher, the provider's source, or metrics-server if neither is there.

    Raises:
        ValueError: podium reads no such source.
    """
    if watcher_address:
        return MetricsSource(WATCHER, watcher_address)
    if watcher_address is None and not provider.type:
        return MetricsSource(KUBERNETES_METRICS_SERVER)
    return provider.source(queries)
