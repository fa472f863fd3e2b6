"""The chart, and helm as people run it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "podium"
KUBERNETES = "1.37"
"""What `helm template` renders for: no server tells it."""


class Helm:
    """Commands of one helm binary, none of which needs a server."""

    def __init__(self, binary: Path) -> None:
        self.binary = binary

    def run(self, *arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        """Its end, with these values."""
        options = [] if values is None else ["--values", "-"]
        return subprocess.run(
            [self.binary, *arguments, *options],
            input=None if values is None else yaml.safe_dump(dict(values)),
            capture_output=True,
            text=True,
            check=False,
        )

    def template(
        self, values: Mapping[str, Any] | None = None, *, release: str = "podium", namespace: str = "kube-system"
    ) -> subprocess.CompletedProcess[str]:
        """The end of `helm template`."""
        return self.run(
            *("template", release, str(CHART), "--namespace", namespace, "--kube-version", KUBERNETES), values=values
        )

    def text(self, values: Mapping[str, Any] | None = None, **release: str) -> str:
        """Return the rendered chart; helm has to succeed, without a warning."""
        result = self.template(values, **release)
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    def objects(self, values: Mapping[str, Any] | None = None, **release: str) -> list[Json]:
        """The rendered objects."""
        return [item for item in yaml.safe_load_all(self.text(values, **release)) if item]

    def refusal(self, values: Mapping[str, Any]) -> str:
        """Why it renders nothing with these values."""
        result = self.template(values)
        assert result.returncode != 0, result.stdout
        return result.stderr


def one(objects: list[Json], kind: str, name: str | None = None) -> Json:
    """The only object of that kind, or the one of that name."""
    [document] = [item for item in objects if item["kind"] == kind and name in (None, item["metadata"]["name"])]
    return document
