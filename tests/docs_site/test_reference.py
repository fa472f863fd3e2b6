from __future__ import annotations

import re

import click
import pytest

from podium.cli.main import SECTIONS, main
from podium.config import default_configuration
from podium.config.effective import to_dict
from tests.docs_site import reference
from tests.docs_site.endpoints import daemon_rows, endpoints


def test_every_command_and_option_has_its_row() -> None:
    page = reference.commands()
    for name in main.list_commands(click.Context(main)):
        assert f"\n### podium {name}\n" in page
    titles = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert titles == list(SECTIONS)
    output = "| `-o, --output [text\\|json\\|yaml]` | The output format: text for people, json or yaml for programs."
    assert output in page
    assert "\b" not in page
    assert "\\b\n" not in page


def keys(value: object) -> set[str]:
    """The keys of all objects within a value, but those within lists."""
    if not isinstance(value, dict):
        return set()
    return {str(key) for key in value}.union(*map(keys, value.values()))


def test_every_field_of_the_default_configuration_has_its_row_with_its_default() -> None:
    page = reference.configuration()
    configuration = to_dict(default_configuration())
    for key in keys(configuration) - {"apiVersion", "kind"}:
        assert any(f"{key}{end}" in page for end in ("`", "[", ".")), key
    assert '| `leaderElection.leaseDuration` | a duration such as "1m30s" | `15s` |' in page
    assert "| `args.scoringStrategy.resources[].weight` | int64 |" in page


def test_every_alert_is_described() -> None:
    page = reference.alerts()
    assert reference.RULES.read_text().count("- alert: ") == page.count("\n## ")
    assert "## PodiumMissesLatencyObjective (critical)" in page


def test_every_endpoint_is_described_with_who_may_ask_and_its_parameters() -> None:
    rows = {request: (who, answer) for request, who, answer in daemon_rows()}
    assert all(answer for _, answer in rows.values())
    assert {"`GET /`", "`DELETE /metrics`", "`GET /debug/pods/{namespace}/{name}`", "`GET /readyz/{check}`"} <= set(
        rows
    )
    opened = {request for request, (who, _) in rows.items() if who == "open"}
    assert opened == {f"`GET /{path}`" for path in ("healthz", "livez", "readyz", "ui", "ui/page.css", "ui/page.js")}
    assert "`?seconds=` (30 by default, at most 60)" in rows["`GET /debug/pprof/profile`"][1]
    page = endpoints()
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == [
        *("podium run", "podium estimator serve", "podium provisioner run", "podium shadow")
    ]
    answer = "Return `ok`, or status 500 with the reason why not. At `--health-probe-bind-address`, :10351"
    assert f"| `GET /readyz` | open | {answer}" in page


@pytest.mark.parametrize("module", [reference.podium.framework, reference.podium.testing])
def test_every_public_name_is_described(module: object) -> None:
    page = reference.api(module)  # type: ignore[arg-type]
    for name in module.__all__:  # type: ignore[attr-defined]
        assert f"\n## {name}\n" in page
