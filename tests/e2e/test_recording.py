"""A run that is recorded and replayed by other processes, as an operator would."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests import warm_podium
from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Json, configuration
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pods

pytestmark = pytest.mark.anyio

NAMES = [f"web-{index}" for index in range(5)]


def replay(*arguments: object) -> subprocess.CompletedProcess[str]:
    return warm_podium.run(["replay", *map(str, arguments)])


def summary(result: subprocess.CompletedProcess[str]) -> Json:
    last: Json = json.loads(result.stdout.splitlines()[-1])
    return last


async def test_recorded_run_replays_twice_to_the_same_digest(
    sandbox_cluster: SandboxCluster, tmp_path: Path, start: StartDaemon
) -> None:
    sandbox_cluster.put(*nodes(3))
    recording = tmp_path / "recording"
    daemon = await start(sandbox_cluster, flags=("--record", str(recording)))
    sandbox_cluster.put(*pods(5))
    await sandbox_cluster.wait_bound(NAMES)
    assert await daemon.stop() == 0
    first, second = replay(recording, "--expect", "-o", "json"), replay(recording, "--expect", "-o", "json")
    assert (first.returncode, first.stderr, first.stdout.count("\n")) == (0, "", 1)
    first_summary, second_summary = summary(first), summary(second)
    assert first_summary["attempts"] >= 5
    assert first_summary["same"] is second_summary["same"] is True
    assert first_summary["digest"] == first_summary["recorded_digest"] == second_summary["digest"]

    trace = tmp_path / "trace.json"
    assert replay(recording, "--trace", trace).returncode == 0
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["name"] for event in events if event.get("cat") == "binding"} == {f"default/{name}" for name in NAMES}

    changed_configuration = configuration()
    strategy = {"scoringStrategy": {"type": "MostAllocated"}}
    changed_configuration["profiles"][0]["pluginConfig"] = [{"name": "NodeResourcesFit", "args": strategy}]
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(changed_configuration))
    differing = replay(recording, "--config", tmp_path / "other.yaml", "--expect")
    assert differing.returncode == 3, differing.stderr
    assert "The first difference is at attempt" in differing.stdout
    assert "Scores, recorded:" in differing.stdout
    assert "Scores, replayed:" in differing.stdout


async def test_recording_of_a_killed_process_replays_as_far_as_it_was_written(
    sandbox_cluster: SandboxCluster, tmp_path: Path, start: StartDaemon
) -> None:
    sandbox_cluster.put(*nodes(3))
    recording = tmp_path / "recording"
    daemon = await start(sandbox_cluster, flags=("--record", str(recording)))
    sandbox_cluster.put(*pods(5))
    await sandbox_cluster.wait_bound(NAMES)

    async def attempts() -> int:
        """Return how many attempts can be replayed while it is still written; 0 before the first is."""
        result = replay(recording, "-o", "json")
        return int(summary(result)["attempts"]) if result.stdout else 0

    await eventually(attempts)
    daemon.kill()
    await daemon.wait_ended()
    result = replay(recording, "--expect", "-o", "json")
    assert result.returncode == 0
    assert summary(result)["same"] is True
    assert summary(result)["attempts"] >= 1
