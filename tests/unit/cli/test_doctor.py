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
    assert [finding["check"] for finding in json.loads(result.stdout)["findings"]] == checks


def findings(tmp_path, *options):
    result = run("doctor", *options, "--kubeconfig", tmp_path / "nowhere", "--output", "json")
    return [finding for finding in json.loads(result.stdout)["findings"] if finding["check"] != "credentials"]


def test_without_a_file_podiums_own_name_is_checked(tmp_path):
    [finding] = findings(tmp_path)
    assert (finding["verdict"], finding["message"]) == ("ok", "podium")


def test_a_name_of_kube_schedulers_is_an_error_unless_the_flag_allows_it(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {resourceName: podium}\nprofiles: [{schedulerName: default-scheduler}]\n"
    )
    [finding] = findings(tmp_path, "--config", path)
    assert (finding["check"], finding["verdict"]) == ("configuration", "error")
    assert f"{path}:4: profiles[0].schedulerName: " in finding["message"]
    assert "--as-default-scheduler" in finding["message"]
    configuration, names = findings(tmp_path, "--config", path, "--as-default-scheduler")
    assert (configuration["verdict"], names["check"], names["verdict"]) == ("ok", "names", "warning")
    assert "every pod that names no scheduler" in names["message"]
    _, names = findings(tmp_path, "--as-default-scheduler")
    assert (names["verdict"], "given up the lease" in names["message"]) == ("ok", True)
    # The shadow compares the other scheduler's pods, and binds none.
    [finding] = findings(tmp_path, "--config", path, "--shadow")
    assert (finding["verdict"], finding["message"]) == ("ok", "default-scheduler")
