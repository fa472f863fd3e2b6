"""The alert rules and the dashboard: what promtool holds them to, and how the chart installs them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.go_tools.binaries import PROMTOOL
from tests.helm.chart import Helm, one
from tests.monitoring.files import DASHBOARD, RULES, alerts, metrics_of_danger_signs, panels, rules

DOCS = DASHBOARD.parents[4] / "docs"
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
    explained = (DOCS / "monitoring.md").read_text()
    assert [name for name in sorted(alerts()) if f"`{name}`" not in explained] == []


def test_podium_has_the_metrics_of_its_danger_signs() -> None:
    page = (DOCS / "metrics.md").read_text()
    assert [name for name in sorted(metrics_of_danger_signs()) if f"| `{name}` |" not in page] == []


def test_every_alert_leads_to_its_runbook() -> None:
    sections = re.findall(r"^## (\w+)$", (DOCS / "runbooks.md").read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(alerts())
    for rule in rules():
        if "alert" in rule:
            assert rule["annotations"]["runbook_url"] == f"docs/runbooks.md#{rule['alert'].lower()}"


def test_panels_do_not_lie_on_each_other_and_ask_for_the_chosen_jobs() -> None:
    tiles = set()
    for panel in panels():
        area = panel["gridPos"]
        assert area["x"] + area["w"] <= 24
        for column in range(area["x"], area["x"] + area["w"]):
            assert (column, area["y"]) not in tiles, panel["title"]
            tiles.add((column, area["y"]))
        selection = 'cluster=~"$cluster", namespace=~"$namespace", job=~"$job"'
        assert all(target["expr"].count(selection) == target["expr"].count("job=~") for target in panel["targets"])
        assert all(selection in target["expr"] for target in panel["targets"])


def test_the_reader_chooses_the_cluster_the_namespace_and_the_job() -> None:
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    assert [variable["name"] for variable in variables] == ["datasource", "cluster", "namespace", "job"]
    # A label that the metrics lack is one that `.*` matches.
    assert {variable["allValue"] for variable in variables[1:]} == {".*"}


def test_the_first_rows_are_numbers() -> None:
    first_rows = [panel for panel in panels() if panel["gridPos"]["y"] < 10]
    assert [panel["type"] for panel in first_rows] == ["stat"] * 16


@pytest.mark.control_plane
def test_the_chart_installs_both_as_they_are(helm: Helm) -> None:
    objects = helm.objects({"monitoring": {"rules": {"enabled": True}, "dashboards": {"enabled": True}}})
    assert one(objects, "PrometheusRule")["spec"] == yaml.safe_load(RULES.read_text())
    dashboards = one(objects, "ConfigMap", "podium-dashboards")
    assert json.loads(dashboards["data"]["scheduler.json"]) == json.loads(DASHBOARD.read_text())
    assert dashboards["metadata"]["labels"]["grafana_dashboard"] == "1"


@pytest.mark.control_plane
def test_runbooks_can_be_where_the_reader_of_an_alert_is(helm: Helm) -> None:
    address = "https://docs.example.com/podium/runbooks.html"
    objects = helm.objects({"monitoring": {"rules": {"enabled": True, "runbooks": address}}})
    groups = one(objects, "PrometheusRule")["spec"]["groups"]
    urls = {rule["annotations"]["runbook_url"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert urls == {f"{address}#{name.lower()}" for name in alerts()}
