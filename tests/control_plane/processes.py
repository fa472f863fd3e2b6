"""One server process: started with its output in a log file, stopped cleanly, its CPU time readable."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from tests import lifeline
from tests.patience import pause_s

STOP_S_MAX = 15.0
_LOG_TAIL_LINES = 15
_PORTS = range(20_000, 32_768)
"""Below those that the kernel gives to connections and to whoever asks for any: until it is used, a port stays free."""


class StartError(Exception):
    """A server ended, or was not ready in time; the message ends with the last lines of its log."""


class ServerProcess:
    """A child process in a process group of its own, so that Ctrl-C reaches the tests and not the server.

    It ends with this process, whatever ends that.

    Args:
        environ: added to the environment that it would have anyway.
        is_piped: whether its output goes through a pipe that another process reads, as in a container.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environ: Mapping[str, str] | None = None,
        *,
        is_piped: bool = False,
    ) -> None:
        self.name = name
        self.log = log
        with contextlib.ExitStack() as files:
            output: IO[bytes] = files.enter_context(log.open("ab"))
            self._reader: subprocess.Popen[bytes] | None = None
            if is_piped:
                self._reader = reader = lifeline.start(
                    ["cat"], stdin=subprocess.PIPE, stdout=output, start_new_session=True
                )
                assert reader.stdin is not None
                output = files.enter_context(reader.stdin)
            self._process = lifeline.start(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **(environ or {})},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self, is_ready: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Blocks until `is_ready` says so. Raises: StartError when the process ends first or time is up."""
        deadline_s = time.monotonic() + timeout_s
        asked_s = time.monotonic()
        while not is_ready():
            if not self.is_running:
                raise StartError(f"{self.name} ended with {self._process.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline_s:
                raise StartError(f"{self.name} was not ready after {timeout_s:.0f} s:\n{self.log_tail()}")
            time.sleep(pause_s(asked_s))
            asked_s = time.monotonic()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL when that takes too long; returns when the process is gone."""
        if self.is_running:
            self._process.terminate()
        try:
            self._wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL, as when the machine dies under it."""
        self._process.kill()
        self._wait(None)

    def _wait(self, timeout_s: float | None) -> None:
        """Blocks until the process is gone, and then until all of its output is in the log."""
        self._process.wait(timeout_s)
        if self._reader is not None:
            self._reader.wait()

    def cpu_s(self) -> float:
        """User and system CPU time spent so far by all threads (Linux only)."""
        stat = Path(f"/proc/{self.pid}/stat").read_text()
        # The command name may hold spaces: fields are counted from behind its closing parenthesis.
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log_tail(self) -> str:
        """The last lines the server wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])


def free_ports(count: int) -> list[int]:
    """Distinct TCP ports of 127.0.0.1 that nobody listens on just now; another process of the test run gets others."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    candidates = list(_PORTS[worker::workers])
    random.SystemRandom().shuffle(candidates)
    return list(itertools.islice(filter(_is_free, candidates), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
