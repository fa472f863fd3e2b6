"""`podium provisioner run`: the options, and the files that they name."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest

from podium.cli.planning import PROVIDERS
from podium.provisioner.controller.app import ProviderName
from tests.manifests import pod
from tests.unit.cli import commands

_run = partial(commands.run, "provisioner", "run", "--logging-format", "text")


@pytest.fixture(autouse=True)
def _logging_as_before(json_log: io.BytesIO) -> None:
    """The command sets up the process's logging."""


def pool(*requirements: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"requirements": requirements}}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--config", "scheduler.yaml"), "--config, --plugin and --decide-as are for --rules podium"),
        (("--provider", "cloud"), "'cloud' is not one of 'plan-only', 'sandbox', 'karpenter'"),
        (("--batch-idle", "soon"), "soon"),
        (("--period", "-1s"), "-1s is negative"),
        (("--metrics-bind-address", "8080"), "does not end in a colon and a port"),
        (("--node-pools", "-", "--catalogue", "-"), "standard input"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: tuple[str, ...], message: str) -> None:
    result = _run(*options)
    assert result.exit_code == 2
    assert message in result.output


def test_a_file_without_node_pools_is_named(tmp_path: Path) -> None:
    file = commands.write_objects(tmp_path / "pools.yaml", pod("web"))
    result = _run("--node-pools", file)
    assert result.exit_code == 1
    assert f"{file}: has no NodePools" in result.output


def test_a_node_pool_that_cannot_be_read_is_named_with_its_field(tmp_path: Path) -> None:
    file = commands.write_objects(tmp_path / "pools.yaml", pool({"key": "zone", "operator": "Near"}))
    result = _run("--node-pools", file)
    assert result.exit_code == 1
    assert str(file) in result.output
    assert "NodePool a: spec.template.spec.requirements[0]" in result.output


def test_a_catalogue_of_the_wrong_shape_is_named(tmp_path: Path) -> None:
    file = tmp_path / "types.json"
    file.write_text('[{"name": "a"}]')
    result = _run("--catalogue", file)
    assert result.exit_code == 1
    assert f"{file}: [0]" in result.output


def test_the_providers_are_those_that_there_are() -> None:
    assert tuple(PROVIDERS.choices) == get_args(ProviderName)
