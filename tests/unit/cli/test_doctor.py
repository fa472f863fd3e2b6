"""`podium doctor`: which checks its options ask for. What they find is tested in tests/unit/daemon/doctor."""

import json

import pytest

from podium.cli.doctor import as_of_server
from podium.cli.options.configuration import usable
from podium.daemon.doctor import Report
from tests.unit.cli.commands import run


def test_a_configuration_is_for_the_rules_that_read_it(tmp_path):
    result = run("doctor", "--provisioner", "sandbox", "--config", tmp_path / "config.yaml")
    assert result.exit_code == 2
    assert "--config, --plugin and --decide-as are for --rules podium" in result.stderr


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
    assert result.exit_code == 3
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
    [finding, unexamined] = findings(tmp_path, "--config", path)
    assert (finding["check"], finding["verdict"]) == ("configuration", "error")
    assert (unexamined["check"], unexamined["verdict"]) == ("cluster", "warning")
    assert unexamined["message"] == "not examined: the checks need a valid configuration"
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


class OldServer:
    """Answers `/version` as an API server of 1.36."""

    async def request(self, method: str, path: str, **options: object) -> bytes:
        return b'{"major": "1", "minor": "36", "gitVersion": "v1.36.2"}'


@pytest.mark.anyio
async def test_the_configuration_is_read_by_the_rules_of_the_api_server():
    good = usable(None, (), ("GenericWorkload=true",))
    assert (await as_of_server(Report(), OldServer(), good)).config.release.minor == "1.36"


@pytest.mark.anyio
async def test_what_the_api_servers_release_refuses_is_an_error():
    report, good = Report(), usable(None, (), ("CompositePodGroup=false",))
    assert await as_of_server(report, OldServer(), good) is good
    [finding] = report.findings
    assert finding.message == "--feature-gates: unrecognized feature gate: CompositePodGroup"
    assert finding.advice == "the API server is of 1.36: correct the field for it"
