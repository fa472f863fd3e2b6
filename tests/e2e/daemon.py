"""podium as an operator runs it: a process of its own, known only by its exit code, its port and its log."""

from __future__ import annotations

import http
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import yaml

from tests import lifeline, warm_podium
from tests.control_plane.processes import free_ports
from tests.e2e.waiting import eventually
from tests.patience import PATIENCE_S, pause_s
from tests.warm_podium import WarmProcess

Json = dict[str, Any]

MACHINE_IS_BUSY = frozenset(
    {
        "The event loop stood still",
        "Slow plugin",
        "The event loop is stuck",
        "The event loop responds again",
        "still looking for the answer",
    }
)
"""What podium complains of by the clock on the wall, though nothing need be wrong with it."""
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def configuration(*, qps: float = 2000, burst: int = 2000, **fields: Any) -> Json:
    """A KubeSchedulerConfiguration with the profile podium, too quick for its limits to be felt."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": qps, "burst": burst},
        "profiles": [{"schedulerName": "podium"}],
        **fields,
    }


class Daemon:
    """One run of `podium run`.

    Args:
        token: what its endpoints are asked with.
        stderr: a descriptor for what it writes; by default a file, for `output` and `log`.
        through: a command that runs it.
        warm: whether it is forked from a process that has imported podium.
    """

    def __init__(
        self,
        directory: Path,
        kubeconfig: Path,
        config: Mapping[str, Any] | None = None,
        *,
        port: int | None = None,
        token: str | None = None,
        flags: tuple[str, ...] = (),
        stderr: int | None = None,
        through: tuple[str, ...] = (),
        warm: bool = False,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_ports(1)[0] if port is None else port
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.log_file = directory / "log"
        file = directory / "config.yaml"
        file.write_text(yaml.safe_dump(configuration() if config is None else config))
        arguments: list[str | Path] = ["run", "--config", file, "--kubeconfig", kubeconfig]
        arguments += ["--bind-address", "127.0.0.1", "--secure-port", str(self.port), *flags]
        environ = {**os.environ, "PYTHONWARNINGS": "error::ResourceWarning"}
        self._process: subprocess.Popen[bytes] | WarmProcess
        with self.log_file.open("wb") as output, open(os.devnull) as nothing:
            streams = {"stdin": nothing.fileno(), "stdout": output.fileno(), "stderr": output.fileno()}
            if stderr is not None:
                streams["stderr"] = stderr
            if warm and not through:
                self._process = warm_podium.start(arguments, env=environ, start_new_session=True, **streams)
            else:
                command = [*through, sys.executable, "-m", "podium", *arguments]
                self._process = lifeline.start(command, env=environ, start_new_session=True, **streams)

    # ------------------------------------------------------------ life

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    async def wait_ready(self) -> None:
        """Until /readyz says so."""
        ends_s = time.monotonic() + PATIENCE_S
        while self.is_running and time.monotonic() < ends_s:
            asked_s = time.monotonic()
            if await self.readyz() == http.HTTPStatus.OK:
                return
            await anyio.sleep(pause_s(asked_s))
        raise AssertionError(f"podium is not ready, exit code {self._process.poll()}:\n{self.output()}")

    def terminate(self) -> None:
        """Send SIGTERM, as a kubelet does first."""
        self._process.send_signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """Any signal."""
        self._process.send_signal(number)

    async def wait_ended(self, within_s: float = PATIENCE_S) -> int:
        """The exit code."""

        async def has_ended() -> bool:
            return not self.is_running

        await eventually(has_ended, within_s)
        return int(self._process.returncode)

    async def wait_told_bound(self, names: Iterable[str], within_s: float = PATIENCE_S) -> list[str]:
        """Wait until it has logged that these pods of `default` are bound; return `bound_pods()`."""
        keys = {f"default/{name}" for name in names}

        async def read_bound() -> list[str]:
            pod_keys = self.bound_pods()
            missing = sorted(keys.difference(pod_keys))
            assert not missing, f"{len(missing)} not told to be bound: {missing[:5]}"
            return pod_keys

        return await eventually(read_bound, within_s) if keys else self.bound_pods()

    async def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.terminate()
        return await self.wait_ended()

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        self._process.kill()
        self._process.wait()

    # ------------------------------------------------------------ what it says

    def output(self) -> str:
        """Everything it has written."""
        return self.log_file.read_text()

    def log(self, message: str | None = None) -> list[Json]:
        """Its log entries, or those with that message; a line that it is just writing is none yet."""
        lines = self.log_file.read_bytes().splitlines(keepends=True)
        # Tests ask several times a second for a few of thousands of lines; decoding all took longer than podium itself.
        needle = b"" if message is None else json.dumps(message, ensure_ascii=False).encode()
        entries = [
            json.loads(line) for line in lines if needle in line and line.startswith(b"{") and line.endswith(b"\n")
        ]
        return entries if message is None else [entry for entry in entries if entry["msg"] == message]

    async def wait_log(self, message: str, times: int = 1) -> Json:
        """The last log entry with that message, once there are so many: what one tells of may be seen before it."""

        async def read_entries() -> list[Json]:
            entries = self.log(message)
            return entries if len(entries) >= times else []

        return (await eventually(read_entries))[-1]

    def complaints(self) -> list[Json]:
        """Its log entries that are not merely told, but for that the machine is busy, which is no fault of its own."""
        return [entry for entry in self.log() if entry["level"] != "info" and entry["msg"] not in MACHINE_IS_BUSY]

    def bound_pods(self) -> list[str]:
        """The pods, `<namespace>/<name>`, that its log says it has bound."""
        return [entry["pod"] for entry in self.log("Successfully bound pod to node")]

    async def get(self, path: str, *, token: str | None = "", method: str = "GET") -> tuple[int, str]:
        """Status and body of an answer of its endpoints; a token of "" means the one it was made with."""
        headers = self._headers if token == "" else {"Authorization": f"Bearer {token}"} if token else {}
        return await anyio.to_thread.run_sync(self._get, method, path, headers)

    async def readyz(self) -> int:
        """The status of /readyz; 0 while nobody listens."""
        try:
            return (await self.get("/readyz"))[0]
        except OSError:
            return 0

    async def metric(self, name: str, /, **labels: str) -> float:
        """The sum of all samples of that name which have these labels."""
        status, text = await self.get("/metrics")
        assert status == http.HTTPStatus.OK, (status, text)
        total = 0.0
        for sample in _SAMPLE.finditer(text):
            if sample[1] == name and labels.items() <= dict(_LABEL.findall(sample[2] or "")).items():
                total += float(sample[3])
        return total

    async def pending(self, queue: str) -> int:
        """Return the number of pods in that queue."""
        return int(await self.metric("scheduler_pending_pods", queue=queue))

    async def attempts(self, result: str) -> int:
        """Return the number of attempts that ended so."""
        return int(await self.metric("scheduler_schedule_attempts_total", result=result, profile="podium"))

    async def wait_metric(self, target: float, name: str, /, **labels: str) -> None:
        """Until the sum of all samples of that name which have these labels is as expected."""

        async def is_reached() -> bool:
            value = await self.metric(name, **labels)
            assert value == target, f"{name} is {value} and not {target}"
            return True

        await eventually(is_reached)

    async def wait_attempts(self, result: str, count: int) -> None:
        """Until exactly so many attempts have ended so: one that binds is counted after the API server's answer."""
        await self.wait_metric(count, "scheduler_schedule_attempts_total", result=result, profile="podium")

    def _get(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        # Its certificate is its own, made at the start.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE_S, context=context)
        try:
            connection.request(method, path, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()
