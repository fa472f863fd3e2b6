from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from podium.cli import event_loop
from podium.cli.main import main
from podium.cli.options.configuration import BadConfiguration, Usable, readable_as_any, usable
from podium.cli.options.releases import as_the_newest, release_to_run
from podium.config import NEWEST, RELEASES, Release
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
    monkeypatch.setattr(event_loop, "run", lambda _: Unreachable("it is away"))
    assert release_to_run(None, None) == (NEWEST, ReleaseOrigin.ASSUMED)


@pytest.mark.parametrize(("server", "release"), [("v1.36.9", "1.36"), ("v1.40.0", "1.37"), ("v1.30.1", "1.36")])
def test_release_to_run_is_that_of_the_server(monkeypatch: pytest.MonkeyPatch, server: str, release: str) -> None:
    monkeypatch.setattr(event_loop, "run", lambda _: (RELEASES[release], server))
    assert release_to_run(None, None) == (RELEASES[release], ReleaseOrigin.SERVERS)


def test_configuration_that_only_an_older_release_accepts_is_read_by_its_rules() -> None:
    def read(release: Release) -> Usable:
        return usable(None, (), ["SidecarContainers=true"], release=release)

    good = readable_as_any(read)
    assert good.config.release.minor == "1.36"
    assert good.as_of(RELEASES["1.36"]) is good
    with pytest.raises(BadConfiguration, match="unrecognized feature gate: SidecarContainers"):
        good.as_of(NEWEST)


def test_configuration_that_no_release_accepts_is_refused_as_by_the_newest() -> None:
    with pytest.raises(BadConfiguration, match="unrecognized feature gate: GangScheduling"):
        readable_as_any(lambda release: usable(None, (), ["GangScheduling=true"], release=release))
