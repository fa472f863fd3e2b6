"""Names of metrics sources, and the values of a report."""

from __future__ import annotations

import math

from podium.objects.node_metrics import (
    KUBERNETES_METRICS_SERVER,
    PROMETHEUS,
    WATCHER,
    MetricsQuery,
    MetricsSource,
)
from podium.testing import node_metrics


def test_a_name_holds_no_secret():
    source = MetricsSource(PROMETHEUS, "https://user:secret@prometheus:9090/path", token="hidden", token_file="/token")
    assert source.name.startswith("Prometheus https://prometheus:9090/path ")
    assert not {"user", "secret", "hidden"} & set(source.name.replace(":", " ").replace("/", " ").split())


def test_plain_sources_have_plain_names():
    assert MetricsSource(KUBERNETES_METRICS_SERVER).name == "KubernetesMetricsServer"
    assert MetricsSource(WATCHER, "http://watcher:2020").name == "LoadWatcher http://watcher:2020"


def test_other_settings_have_other_names():
    sources = [
        MetricsSource(PROMETHEUS, "https://p"),
        MetricsSource(PROMETHEUS, "https://p", queries=(MetricsQuery("up", "CPU"),)),
        MetricsSource(PROMETHEUS, "https://p", queries=(MetricsQuery("up", "Memory"),)),
        MetricsSource(PROMETHEUS, "https://p", token_file="a"),
        MetricsSource(PROMETHEUS, "https://q"),
        MetricsSource(PROMETHEUS, "https://p", insecure_skip_verify=True),
    ]
    assert len({source.name for source in sources}) == len(sources)


def test_a_type_may_have_the_name_of_anything_in_a_report():
    report = node_metrics({"n1": {"loads": 1.0, "data": 2.0}})
    assert report.loads("loads").mean == (1.0,)
    assert report.loads("data").mean == (2.0,)
    assert math.isnan(report.loads("CPU").mean[0])
    assert report.loads("loads") is report.loads("loads")
