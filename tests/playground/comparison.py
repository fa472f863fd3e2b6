"""Recorded scenarios as somebody would drop them on the page, and what the commands answer about the same files."""

from __future__ import annotations

import contextlib
import gzip
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from click.testing import CliRunner

from podium.cli.main import main
from tests.playground.visit import Visit

_RECORDED: Final = Path(__file__).parents[1] / "parity" / "data" / "kube-scheduler-1.36.2.jsonl.gz"
_CLUSTER, _POD, _CONFIG = "cluster.json", "pod.json", "configuration"


@dataclass(frozen=True, slots=True)
class Scenario:
    """The text of a cluster with the pod in it, of the pod alone, and of a configuration, which may be ""."""

    id: str
    cluster: str
    pod: str
    config: str
    namespace: str
    name: str

    @classmethod
    def of(cls, record: dict[str, Any]) -> Self:
        """A recorded scenario."""
        pod = record["pod"]
        namespace, name = pod["metadata"].get("namespace") or "default", pod["metadata"]["name"]
        other_objects = [document for document in record["objects"] if not _is(document, namespace, name)]
        cluster = {"apiVersion": "v1", "kind": "List", "items": [*other_objects, pod]}
        config = json.dumps(record["config"]) if record.get("config") else ""
        return cls(record["id"], json.dumps(cluster), json.dumps(pod), config, namespace, name)

    def commands(self) -> dict[str, Any]:
        """What `podium evaluate`, `podium why --fix` and `podium capacity --explain` answer."""
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for name, text in ((_CLUSTER, self.cluster), (_POD, self.pod), (_CONFIG, self.config)):
                Path(name).write_text(text)
            common = ["-f", _CLUSTER, *(["--config", _CONFIG] if self.config else []), "-o", "json"]
            return {
                "placement": _command("evaluate", *common, "--pod", _POD),
                "why": _command("why", self.name, "-n", self.namespace, "--fix", *common),
                "capacity": _command("capacity", *common, "--pod", _POD, "--explain"),
            }

    async def differences(self, visit: Visit) -> list[str]:
        """What the page answers otherwise than the commands."""
        answers = await visit.answers({_CLUSTER: self.cluster}, self.config, f"{self.namespace}/{self.name}")
        command_answers = self.commands()
        if "load" in answers:
            answers = dict.fromkeys(command_answers, answers["load"])
        return [
            f"{self.id}: {question}: the page: {json.dumps(answers[question])}; the command: {json.dumps(printed)}"
            for question, printed in command_answers.items()
            if answers[question] != printed
        ]


def scenarios(count: int) -> Iterator[Scenario]:
    """So many of the recorded ones, of every kind."""
    with gzip.open(_RECORDED) as file:
        lines = file.readlines()
    for at in range(count):
        yield Scenario.of(json.loads(lines[at * len(lines) // count]))


def _is(item: dict[str, Any], namespace: str, name: str) -> bool:
    metadata = item["metadata"]
    return item["kind"] == "Pod" and (metadata.get("namespace") or "default", metadata["name"]) == (namespace, name)


def _command(*arguments: str) -> Any:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    if result.exit_code != 0:
        return {"error": result.stderr.removeprefix("Error: ").strip()}
    return json.loads(result.stdout)
