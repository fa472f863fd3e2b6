from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from podium.daemon.observers import PluginMetrics, QueueMetrics
from podium.framework.runtime import SLOW_PLUGIN_S
from podium.telemetry import Metrics
from tests.builders import pod


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_a_plugin_that_fails_is_counted_and_logged_with_its_name_and_what_it_raised(metrics: Metrics) -> None:
    error = ValueError("broken")
    with capture_logs() as entries:
        PluginMetrics(metrics).plugin_failed("Culprit", "Score", pod("web-1"), error)
        QueueMetrics(metrics).plugin_failed("Culprit", "PreEnqueue", pod("web-1"), error)
    assert b'podium_unexpected_errors_total{where="plugin",name="Culprit"} 2' in metrics.render()
    assert [entry["extension_point"] for entry in entries] == ["Score", "PreEnqueue"]
    for entry in entries:
        assert (entry["event"], entry["log_level"]) == ("Plugin failed", "error")
        assert (entry["plugin"], entry["pod"], entry["exc_info"]) == ("Culprit", "default/web-1", error)


def test_a_slow_plugin_is_counted_and_logged_with_its_seconds(metrics: Metrics) -> None:
    with capture_logs() as entries:
        PluginMetrics(metrics).plugin_was_slow("Sleepy", "Filter", pod("web-1"), 1.23456)
    assert metrics.value("podium_slow_plugin_calls_total", plugin="Sleepy", extension_point="Filter") == 1
    (entry,) = entries
    assert (entry["event"], entry["log_level"], entry["plugin"]) == ("Slow plugin", "warning", "Sleepy")
    assert (entry["extension_point"], entry["pod"], entry["seconds"]) == ("Filter", "default/web-1", 1.235)


def test_a_hint_that_is_slow_counts_as_a_slow_plugin(metrics: Metrics) -> None:
    queue = QueueMetrics(metrics)
    with capture_logs() as entries:
        queue.hint_executed("Sleepy", "NodeAdd", "Queue", SLOW_PLUGIN_S / 2)
        queue.hint_executed("Sleepy", "NodeAdd", "Queue", SLOW_PLUGIN_S * 2)
    assert [entry["event"] for entry in entries] == ["Slow plugin"]
    assert metrics.value("podium_slow_plugin_calls_total", plugin="Sleepy", extension_point="QueueingHint") == 1


def test_what_is_told_for_every_pod_reaches_the_metrics(metrics: Metrics) -> None:
    told = PluginMetrics(metrics)
    told.count_evaluations("NodeName", "Filter", "podium", 7)
    told.observe_extension_point("Filter", "Success", "podium", 0.001)
    assert (
        metrics.value(
            "scheduler_plugin_evaluation_total", plugin="NodeName", extension_point="Filter", profile="podium"
        )
        == 7
    )
