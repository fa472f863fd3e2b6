"""The dashboard and the rules that the chart installs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from tests.helm.chart import CHART

RULES: Final = CHART / "files" / "rules.yaml"
DASHBOARD: Final = CHART / "files" / "dashboard.json"
_METRIC: Final = re.compile(r"(?<![\w:])(?:podium|scheduler|rest_client|leader_election|process)_\w+")

Json = dict[str, Any]


def rules() -> list[Json]:
    """Every rule, of alerts and of what is recorded."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts() -> set[str]:
    """The alerts' names."""
    return {rule["alert"] for rule in rules() if "alert" in rule}


def recorded_by_rules() -> list[str]:
    """The queries whose answers are recorded."""
    return [rule["expr"] for rule in rules() if "record" in rule]


def metrics_of_rules() -> set[str]:
    """The metrics that the rules ask for."""
    return {name for rule in rules() for name in metrics_of(rule["expr"])}


def metrics_of_danger_signs() -> set[str]:
    """Those of them that podium serves from the first count or reading on, so that a calm podium has none."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    (signs,) = (group["rules"] for group in groups if group["name"] == "podium-danger-signs")
    return {name for rule in signs for name in metrics_of(rule["expr"]) if "loop_stall" not in name}


def metrics_of(query: str) -> set[str]:
    """The metrics that a query asks for."""
    return set(_METRIC.findall(query))


def jobs_with(metrics: Iterable[str], jobs: Iterable[str]) -> list[str]:
    """The jobs that serve all of these metrics: podium alone has metrics of its own."""
    are_podiums = any(name.startswith("podium_") for name in metrics)
    return [job for job in jobs if job == "podium" or not are_podiums]


def panels() -> list[Json]:
    """The dashboard's panels that show something."""
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries_of_dashboard() -> list[str]:
    """Every panel's queries, for all jobs and five minutes."""
    return [
        target["expr"]
        .replace("$__rate_interval", "5m")
        .replace("$job", ".*")
        .replace("$cluster", ".*")
        .replace("$namespace", ".*")
        for panel in panels()
        for target in panel["targets"]
    ]
