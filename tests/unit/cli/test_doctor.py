"""`podium doctor`: which checks its options ask for. What they find is tested in tests/unit/daemon/doctor."""

import json

import pytest

from tests.unit.cli.commands import run


def test_a_configuration_is_for_the_rules_that_read_it(tmp_path):
    result = run("doctor", "--provisioner", "sandbox", "--config", tmp_path / "config.yaml")
    assert result.exit_code == 2
    assert "--config and --plugin are for --rules podium" in result.stderr


def test_one_part_of_podium_is_asked_about_at_a_time():
    result = run("doctor", "--provisioner", "sandbox", "--shadow")
    assert result.exit_code == 2
    assert "--shadow and --provisioner" in result.stderr


@pytest.mark.parametrize(
    ("options", "checks"),
    [
        ((), ["configuration", "credentials"]),
        (("--provisioner", "sandbox"), ["credentials"]),
        (("--provisioner", "sandbox", "--rules", "podium"), ["configuration", "credentials"]),
        (("--shadow",), ["configuration", "credentials"]),
    ],
)
def test_the_configuration_is_checked_where_it_counts(tmp_path, options, checks):
    result = run("doctor", *options, "--kubeconfig", tmp_path / "nowhere", "--output", "json")
    assert result.exit_code == 1
    assert [each["check"] for each in json.loads(result.stdout)["findings"]] == checks
