from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from podium.cli import event_loop
from podium.cli.main import main
from podium.cli.options.configuration import BadConfiguration, usable
from podium.cli.options.releases import as_the_newest, release_to_run
from podium.config import NEWEST, RELEASES
from podium.daemon.options import ReleaseOrigin
from podium.objects.api_errors import Unreachable


@click.command()
@click.option("--gate", multiple=True)
@as_the_newest
def decide(gate: tuple[str, ...]) -> None:
    good = usable(None, (), gate)
    other = None if good.read_as is None else good.read_as(RELEASES["1.36"])
    click.echo(f"{good.config.release.minor} {other and other.config.release.minor}")


@pytest.mark.parametrize(
    ("arguments", "minors"), [([], f"{NEWEST.minor} 1.36"), (["--decide-as", "1.36"], "1.36 1.36")]
)
def test_configuration_is_read_by_the_rules_asked_for_and_can_be_read_by_others(
    arguments: list[str], minors: str
) -> None:
    assert CliRunner().invoke(decide, arguments).output.strip() == minors


def test_gates_are_those_of_the_release() -> None:
    arguments = ["--gate", "SidecarContainers=true"]
    refusal = CliRunner().invoke(decide, arguments).exception
    assert isinstance(refusal, SystemExit | BadConfiguration)
    assert CliRunner().invoke(decide, [*arguments, "--decide-as", "1.36"]).exit_code == 0


def test_unknown_minor_is_refused_with_those_that_are_known() -> None:
    result = CliRunner().invoke(main, ["config", "defaults", "--decide-as", "1.30"])
    assert result.exit_code == 2
    assert "'--decide-as': '1.30' is not one of '1.36', '1.37'" in result.output


def test_defaults_are_those_of_the_release() -> None:
    def shape(*arguments: str) -> object:
        output = CliRunner().invoke(main, ["config", "defaults", "--output", "json", *arguments]).output
        entries = json.loads(output)["profiles"][0]["pluginConfig"]
        return next(entry["args"] for entry in entries if entry["name"] == "VolumeBinding").get("shape")

    assert shape() == [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
    assert shape("--decide-as", "1.36") is None


def test_server_that_does_not_answer_leaves_the_newest_to_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: object) -> None:
        raise Unreachable("it is away")

    monkeypatch.setattr(event_loop, "run_process", away)
    assert release_to_run(None, None) == (NEWEST, ReleaseOrigin.ASSUMED)


@pytest.mark.parametrize(("server", "release"), [("v1.36.9", "1.36"), ("v1.40.0", "1.37"), ("v1.30.1", "1.36")])
def test_release_to_run_is_that_of_the_server(monkeypatch: pytest.MonkeyPatch, server: str, release: str) -> None:
    monkeypatch.setattr(event_loop, "run_process", lambda _: (RELEASES[release], server))
    assert release_to_run(None, None) == (RELEASES[release], ReleaseOrigin.SERVERS)


def test_kubeconfig_of_the_configuration_is_used(tmp_path: Path) -> None:
    from podium.config import kubeconfig_in

    file = tmp_path / "config.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file.write_text(f"{head}clientConnection: {{kubeconfig: /here}}\nparallelism: wrong\n")
    assert kubeconfig_in(file) == "/here"
    file.write_text("}")
    assert kubeconfig_in(file) == kubeconfig_in(tmp_path / "none") == kubeconfig_in(None) == ""
