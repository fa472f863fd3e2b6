from __future__ import annotations

import click
import pytest

from podium.cli.main import main
from podium.config import default_configuration
from podium.config.effective import to_dict
from tests.docs_site import reference


def test_every_command_and_option_has_its_row() -> None:
    page = reference.commands()
    for name in main.list_commands(click.Context(main)):
        assert f"\n## podium {name}\n" in page
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
    written = to_dict(default_configuration())
    for key in keys(written) - {"apiVersion", "kind"}:
        assert any(f"{key}{end}" in page for end in ("`", "[", ".")), key
    assert '| `leaderElection.leaseDuration` | a duration such as "1m30s" | `15s` |' in page
    assert "| `args.scoringStrategy.resources[].weight` | int64 |" in page


def test_every_alert_is_described() -> None:
    page = reference.alerts()
    assert reference.RULES.read_text().count("- alert: ") == page.count("\n## ")
    assert "## PodiumMissesLatencyObjective (critical)" in page


@pytest.mark.parametrize("module", [reference.podium.framework, reference.podium.testing])
def test_every_public_name_is_described(module: object) -> None:
    page = reference.api(module)  # type: ignore[arg-type]
    for name in module.__all__:  # type: ignore[attr-defined]
        assert f"\n## {name}\n" in page
