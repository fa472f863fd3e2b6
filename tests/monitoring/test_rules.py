"""The alert rules and the dashboard: what promtool holds them to, and how the chart installs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.go_tools.binaries import PROMTOOL
from tests.helm.chart import Helm, one
from tests.monitoring.files import DASHBOARD, RULES, alerts, panels

TESTS = [Path(__file__).with_name(name) for name in ("rules_test.yaml", "days_test.yaml")]


@pytest.mark.control_plane
@pytest.mark.parametrize(
    "command", [("check", "rules", "--lint=all", "--lint-fatal", RULES), ("test", "rules", *TESTS)]
)
def test_promtool_finds_nothing_wrong(tools: Mapping[str, Path], command: tuple[str | Path, ...]) -> None:
    result = subprocess.run([tools[PROMTOOL], *command], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_is_tested_and_explained() -> None:
    tests = [test for path in TESTS for test in yaml.safe_load(path.read_text())["tests"]]
    fired = {alert["alertname"] for test in tests for alert in test["alert_rule_test"] if alert["exp_alerts"]}
    assert fired == alerts()
    explained = (DASHBOARD.parents[4] / "docs" / "monitoring.md").read_text()
    assert [name for name in sorted(alerts()) if f"`{name}`" not in explained] == []


def test_panels_do_not_lie_on_each_other_and_ask_for_the_chosen_jobs() -> None:
    tiles = set()
    for panel in panels():
        area = panel["gridPos"]
        assert area["x"] + area["w"] <= 24
        for column in range(area["x"], area["x"] + area["w"]):
            assert (column, area["y"]) not in tiles, panel["title"]
            tiles.add((column, area["y"]))
        assert all('job=~"$job"' in target["expr"] for target in panel["targets"])


@pytest.mark.control_plane
def test_the_chart_installs_both_as_they_are(helm: Helm) -> None:
    objects = helm.objects({"monitoring": {"rules": {"enabled": True}, "dashboards": {"enabled": True}}})
    assert one(objects, "PrometheusRule")["spec"] == yaml.safe_load(RULES.read_text())
    dashboards = one(objects, "ConfigMap", "podium-dashboards")
    assert json.loads(dashboards["data"]["scheduler.json"]) == json.loads(DASHBOARD.read_text())
    assert dashboards["metadata"]["labels"]["grafana_dashboard"] == "1"
