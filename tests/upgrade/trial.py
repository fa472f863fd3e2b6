"""Two versions of podium side by side while pods come: one leads, the other stands by, and they change places."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import yaml

from release.changelog import CHANGELOG, past_releases
from tests.e2e.cluster import Cluster
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.mounted import IN_USE, Mounted
from tests.e2e.waiting import eventually
from tests.manifests import node, pod

ROOT: Final = Path(__file__).parents[2]
BEFORE, NOW = "before", "now"

_NODE_CORES, _POD_MILLI = 8, 100
_PODS_PER_NODE: Final = _NODE_CORES * 1000 // _POD_MILLI
_ACQUIRED: Final = "Successfully acquired lease"
_TURNS: Final = 4
_TICK_S: Final = 0.05
_BATCHES: Final = 120


def last_release() -> str:
    """Return the commit of the last release, as the changelog names it."""
    return past_releases(CHANGELOG.read_text())[0].commit


def has_commit(commit: str) -> bool:
    """Return False in a clone without that part of the history."""
    check = ["git", "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(check, cwd=ROOT, capture_output=True, check=False).returncode == 0


def unpack(commit: str, folder: Path) -> Path:
    """Unpack podium as it was at a commit, and return the folder to import it from."""
    archive = subprocess.run(["git", "archive", commit, "podium"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as members:
        members.extractall(folder, filter="data")
    return folder


@dataclass
class Trial:
    """A run.

    Args:
        versions: where each version is imported from.
        pods: how many come in all; the nodes have room for hardly more.
    """

    cluster: Cluster
    directory: Path
    versions: Mapping[str, Path]
    pods: int
    lives: list[tuple[str, Daemon]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._created = 0
        # Each leader gets pods, however fast the one before was.
        self._allowed = self._share = self.pods // _TURNS
        self._names = [f"web-{number}" for number in range(self.pods)]
        self._mounted = Mounted(self.directory / "volume", self._configuration(100))

    async def run(self) -> None:
        """Bind all pods while the versions take turns.

        Raises:
            AssertionError: a pod was lost, bound twice or put on a full node, or a reload was refused.
        """
        count = -(-self.pods // _PODS_PER_NODE)
        await self.cluster.create(
            *(node(f"node-{number}", cpu=str(_NODE_CORES), pods="110") for number in range(count))
        )
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._create_pods)
                await self._take_turns()
            await self.cluster.wait_bound(self._names)
            for _, daemon in self.lives:
                if daemon.is_running:
                    assert await daemon.stop() == 0
            await self._check()
        except BaseException as error:
            for version, daemon in self.lives:
                error.add_note(f"{version}: {daemon.output()[-2000:]}")
            raise
        finally:
            for _, daemon in self.lives:
                daemon.kill()

    async def _take_turns(self) -> None:
        leader = self._start(BEFORE, is_recorded=True)
        await leader.wait_log(_ACQUIRED)
        # The upgrade: the new version stands by, and takes over when the old one is told to stop.
        leader = await self._replace(leader, NOW)
        await self._reload(leader, 50)
        # And back.
        leader = await self._replace(leader, BEFORE)
        await self._reload(leader, 100)
        # A node dies amid the second upgrade.
        await self._replace(leader, NOW, is_killed=True, is_recorded=True)

    def _start(self, version: str, *, is_recorded: bool = False) -> Daemon:
        directory = self.directory / f"podium-{len(self.lives)}"
        # A recording is of one configuration.
        flags = ("--record", str(directory / "recording")) if is_recorded else ("--reload",)
        flags = ("--config", str(self._mounted.path), *flags)
        through = ("env", f"PYTHONPATH={self.versions[version]}")
        daemon = Daemon(
            directory, self.cluster.kubeconfig, flags=flags, through=through, token=self.cluster.admin.token
        )
        self.lives.append((version, daemon))
        return daemon

    async def _replace(
        self, leader: Daemon, version: str, *, is_killed: bool = False, is_recorded: bool = False
    ) -> Daemon:
        standby = self._start(version, is_recorded=is_recorded)
        await standby.wait_ready()
        assert not standby.log(_ACQUIRED)
        # It is stopped while pods come, some of which it binds, and all others come while nobody leads.
        await self._wait_created(self._allowed)
        self._allowed += self._share // 2
        await self._wait_created(self._allowed - self._share // 4)
        if is_killed:
            leader.kill()
        else:
            leader.terminate()
        self._allowed += self._share - self._share // 2
        exit_code = await leader.wait_ended()
        assert is_killed or exit_code == 0
        await standby.wait_log(_ACQUIRED)
        return standby

    async def _reload(self, leader: Daemon, percentage: int) -> None:
        times = len(leader.log(IN_USE)) + 1
        self._mounted.put(self._configuration(percentage))
        await leader.wait_log(IN_USE, times)

    @staticmethod
    def _configuration(percentage: int) -> str:
        election = {"leaderElect": True, "resourceName": "podium"}
        return yaml.safe_dump(configuration(leaderElection=election, percentageOfNodesToScore=percentage))

    async def _create_pods(self) -> None:
        batch = max(1, self.pods // _BATCHES)
        while self._created < self.pods:
            names = self._names[self._created : min(self._created + batch, self._allowed)]
            await self.cluster.create(*(pod(name, cpu=f"{_POD_MILLI}m") for name in names))
            self._created += len(names)
            await anyio.sleep(0 if names else _TICK_S)

    async def _wait_created(self, count: int) -> None:
        async def is_reached() -> bool:
            return self._created >= count

        await eventually(is_reached)

    async def _check(self) -> None:
        reports = Counter(name for _, daemon in self.lives for name in daemon.bound_pods())
        assert not [name for name, count in reports.items() if count > 1], "bound by two processes"
        placements = await self.cluster.placements()
        assert placements.keys() == set(self._names), "lost"
        assert max(Counter(placements.values()).values()) <= _PODS_PER_NODE, "a node is overfull"
        assert all(daemon.bound_pods() for _, daemon in self.lives), "a version that led has bound nothing"
        assert not [daemon for _, daemon in self.lives if "Traceback" in daemon.output()]


def replay_all(trial: Trial) -> int:
    """Replay each recording with the version that made it; return how many there are.

    Raises:
        AssertionError: a decision differs.
    """
    recordings = list(trial.directory.glob("podium-*/recording"))
    for recording in recordings:
        version, _ = trial.lives[int(recording.parent.name.removeprefix("podium-"))]
        assert _replay(trial.versions[version], recording)["same"], f"what {version} has recorded replays otherwise"
    return len(recordings)


def _replay(version: Path, recording: Path) -> dict[str, Any]:
    command = ["env", f"PYTHONPATH={version}", sys.executable, "-m", "podium", "replay", str(recording), "-o", "json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    summary: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return summary
