"""A cluster that is recorded beside a scheduler that binds by hand, and what a replay says of its bindings."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest

from podium.config import NEWEST, default_configuration
from podium.objects.core import Pod
from podium.plugins import IN_TREE
from podium.recording.entries import PUT, item_of
from podium.recording.hashed_names import NameHasher
from podium.recording.replay import entries_of
from podium.recording.segments import RecordingError, open_segments
from podium.recording.watched import Options, RecordApp, WatchedReplay, compare_bindings
from podium.sandbox import Sandbox
from podium.sandbox.discovery import VERSION
from tests import lifeline
from tests.control_plane.client import Client
from tests.e2e.waiting import eventually
from tests.manifests import node, pod

pytestmark = pytest.mark.anyio

_RUN = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from podium.cli.main import main; main()"


def objects_in(directory: Path) -> list[Any]:
    """All states of objects in a recording that is still written."""
    try:
        return [item_of(item) for item in entries_of(open_segments(directory)) if item[0] == PUT]
    except RecordingError:
        return []


async def record_events(directory: Path, tmp_path: Path, hasher: NameHasher | None = None) -> None:
    """Record a cluster with two nodes, whose scheduler chooses the better one, and then the worse one."""
    async with Sandbox(kubelets=False) as sandbox, Client(sandbox.url) as admin:
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        for item in (
            node("big", "16"),
            node("small", "4"),
            *(pod(name, "1", scheduler="default-scheduler") for name in "ab"),
        ):
            sandbox.store.create(item)
        options = Options(
            directory=directory,
            config=default_configuration(),
            classes=IN_TREE,
            kubeconfig=str(kubeconfig),
            hasher=hasher,
        )
        app, start = RecordApp(options), anyio.Event()

        async def shows(count: int) -> bool:
            return sum(isinstance(item, Pod) and bool(item.node_name) for item in objects_in(directory)) >= count

        async with anyio.create_task_group() as group:
            group.start_soon(app.run, start.set)
            await start.wait()
            for count, (name, on) in enumerate((("a", "big"), ("b", "small")), 1):
                target = {"apiVersion": "v1", "kind": "Node", "name": on}
                binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
                await admin.create(f"/api/v1/namespaces/default/pods/{name}/binding", binding)
                await eventually(lambda count=count: shows(count))  # type: ignore[misc]
            app.stop()


def replay_bindings(directory: Path) -> WatchedReplay:
    return compare_bindings(directory, default_configuration(), IN_TREE)


async def test_bindings_in_a_recording_are_compared(tmp_path: Path) -> None:
    await record_events(tmp_path / "recording", tmp_path)
    first, second = replay_bindings(tmp_path / "recording"), replay_bindings(tmp_path / "recording")
    assert (first.report.compared_count, first.report.agreed_count) == (2, 1)
    assert first.report.disagreements[0].comparison.choice == "big"
    assert first.digest == second.digest
    assert (first.damage, first.is_cut) == ("", False)
    assert open_segments(tmp_path / "recording").description["decides_as"] == NEWEST.minor


async def test_hashed_names_change_no_comparison_and_cannot_be_read(tmp_path: Path) -> None:
    await record_events(tmp_path / "recording", tmp_path, NameHasher(b"secret"))
    replay = replay_bindings(tmp_path / "recording")
    assert (replay.report.compared_count, replay.report.agreed_count) == (2, 1)
    assert b"small" not in b"".join(open_segments(tmp_path / "recording").blocks())


async def test_command_ends_with_one_line_when_the_disk_is_full(tmp_path: Path) -> None:
    """A write beyond the file's limit fails, as on a full disk. So it must write no bytecode."""
    directory = tmp_path / "recording"
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); {_RUN}"
    async with Sandbox(kubelets=False) as sandbox:
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        for number in range(200):
            sandbox.store.create(node(f"n{number}", labels={"digest": sha256(bytes([number])).hexdigest()[:63]}))
        command = [sys.executable, "-B", "-c", limited, "record", str(directory), "--kubeconfig", str(kubeconfig)]
        process = await anyio.run_process(command, check=False)
    assert process.returncode == 1
    message = f"the recording in {directory} has ended early: OSError: [Errno {errno.EFBIG}] File too large"
    assert json.loads(process.stderr.splitlines()[-1])["error"] == message


async def test_command_ends_whole_at_sigint_and_its_recording_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording keeps the minor of the API server that it was made at."""
    monkeypatch.setitem(VERSION, "minor", "36")
    podium, directory = [sys.executable, "-m", "podium"], tmp_path / "recording"
    async with Sandbox() as sandbox:
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        sandbox.store.create(node("n1"))
        command = [*podium, "record", str(directory), "--kubeconfig", str(kubeconfig)]
        process = await anyio.open_process(
            lifeline.guard(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=lifeline.PASSED
        )

        async def holds_the_node() -> bool:
            return bool(objects_in(directory))

        await eventually(holds_the_node)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
        assert process.stdout is not None
        assert b"Recorded " in await process.stdout.receive()
        await process.aclose()
    assert open_segments(directory).description["decides_as"] == "1.36"
    page = tmp_path / "page.html"
    result = await anyio.run_process([*podium, "replay", str(directory), "--expect", "-o", "json", "--html", str(page)])
    assert json.loads(result.stdout.splitlines()[-1])["compared"] == 0
    assert "Bindings in recording" in page.read_text()
    refusal = await anyio.run_process([*podium, "diff", str(directory), str(directory)], check=False)
    assert refusal.returncode == 1
    assert b"holds no decisions" in refusal.stderr
