"""Processes of podium that start without importing it: each is forked from a process that has.

Importing is most of what a short-lived podium costs. A forked one is a process like any other, with a number, streams,
an environment, a directory and a session of its own; it runs `podium.__main__`, and ends with the tests, whatever ends
these. What only an interpreter that starts can show, such as how podium is imported, needs a process of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from podium.lib import garbage_collection
from tests.patience import PATIENCE_S
from tests.warm_podium_client import ask, receive, tell

_ROOT: Final = Path(__file__).parents[1]
_IMPORTED: Final = (
    *(
        f"podium.cli.{name}"
        for name in ("run", "config", "doctor", "why", "estimate", "capacity", "evaluate", "replay")
    ),
    *(f"podium.cli.{name}" for name in ("plan", "what_if", "make_room", "outlook", "shadow", "record", "diff", "demo")),
    "podium.daemon.app",
    "uvloop",
)
_CLIENT: Final = Path(__file__).with_name("warm_podium_client.py")
_REQUEST_BYTES_MAX: Final = 1 << 20


class WarmProcess:
    """A forked podium, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.pid = receive(connection)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        return self._ended_within(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended. Raises: subprocess.TimeoutExpired."""
        code = self._ended_within(timeout)
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired("podium", timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM, if it still runs."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        self.send_signal(signal.SIGKILL)

    def _ended_within(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], timeout_s)[0]:
            self.returncode = receive(self._connection)
            self._connection.close()
        return self.returncode


def start(
    arguments: Sequence[str | Path],
    *,
    stdin: int,
    stdout: int,
    stderr: int,
    env: Mapping[str, str],
    start_new_session: bool = False,
) -> WarmProcess:
    """Start `python -m podium` with these arguments and descriptors."""
    descriptors = (stdin, stdout, stderr)
    return WarmProcess(ask(address(), list(map(str, arguments)), descriptors, env, is_leader=start_new_session))


def run(
    arguments: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = PATIENCE_S,
    stdout: int | None = None,
    stderr: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `python -m podium` to its end. What it writes to a stream for which no descriptor is given is captured."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, open(os.devnull) as nothing:
        process = start(
            arguments,
            stdin=nothing.fileno(),
            stdout=output.fileno() if stdout is None else stdout,
            stderr=errors.fileno() if stderr is None else stderr,
            env=os.environ if env is None else env,
        )
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
            process.wait()
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(["podium", *map(str, arguments)], code, *texts)


def command() -> str:
    """The command line that stands in for `podium` in a shell."""
    return shlex.join([sys.executable, "-I", "-S", str(_CLIENT), address()])


@functools.cache
def address() -> str:
    """The socket of the process that forks, which ends with this process."""
    path = os.path.join(tempfile.mkdtemp(prefix="podium-warm-"), "socket")
    lifeline, server_end = socket.socketpair()
    # Threads for matrices would not outlive a fork.
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    arguments = [sys.executable, "-m", "tests.warm_podium", path, str(server_end.fileno())]
    server = subprocess.Popen(
        arguments,
        cwd=_ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[server_end.fileno()],
        start_new_session=True,
    )
    server_end.close()
    # It says when its socket is there.
    receive(lifeline)

    def end() -> None:
        lifeline.close()
        server.wait()

    atexit.register(end)
    return path


# ---------------------------------------------------------------- the process that forks


class _Fork(Exception):  # noqa: N818 - it is no error
    """Unwinds a forked process out of the server's loop, so that it ends as an interpreter does."""


class _Server:
    """Forks on request, reports ends, and kills what is left when the tests have ended."""

    def __init__(self, listener: socket.socket, lifeline: socket.socket) -> None:
        self._listener, self._lifeline = listener, lifeline
        self._connection_by_pid: dict[int, socket.socket] = {}
        self._leaders: set[int] = set()

    def run(self) -> None:
        """Serve until the tests have ended. Raises: _Fork in each forked process."""
        woken, waking = os.pipe()
        for descriptor in (woken, waking):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(waking)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            connections = self._connection_by_pid.values()
            readable, _, _ = select.select([self._listener, self._lifeline, woken, *connections], [], [])
            if self._lifeline in readable:
                break
            if woken in readable:
                os.read(woken, 4096)
                self._report_ends()
            for pid, connection in self._connection_by_pid.items():
                # Whoever asked is gone: as if the process itself had been killed.
                if connection in readable:
                    os.kill(pid, signal.SIGKILL)
            if self._listener in readable:
                self._serve()
        for pid in self._connection_by_pid:
            # One that has just been forked leads no group yet.
            with contextlib.suppress(ProcessLookupError):
                if pid in self._leaders:
                    os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Close its sockets."""
        for connection in (self._listener, self._lifeline, *self._connection_by_pid.values()):
            connection.close()

    def _report_ends(self) -> None:
        while self._connection_by_pid:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            with self._connection_by_pid.pop(pid) as connection:
                tell(connection, os.waitstatus_to_exitcode(status))

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        request, descriptors, _, _ = socket.recv_fds(connection, _REQUEST_BYTES_MAX, 3)
        if not request:
            # Whoever asked has been killed.
            connection.close()
            return
        arguments, environ, directory, is_leader = json.loads(request)
        pid = os.fork()
        if not pid:
            connection.close()
            raise _Fork(arguments, environ, directory, is_leader, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._connection_by_pid[pid] = connection
        if is_leader:
            self._leaders.add(pid)
        tell(connection, pid)


def _become_podium(
    arguments: list[str], environ: dict[str, str], directory: str, is_leader: bool, descriptors: list[int]
) -> NoReturn:
    """Take on what a new process would have been given, and run podium."""
    if is_leader:
        os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
    os.closerange(3, 1024)
    # The streams of this process were opened on another kind of file.
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115 - for the life of the process, as the next ones
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    tempfile.tempdir = None
    for option in filter(None, environ.get("PYTHONWARNINGS", "").split(",")):
        warnings._setoption(option)  # type: ignore[attr-defined]
    sys.path[0] = directory
    sys.argv = ["podium", *arguments]
    runpy.run_module("podium", run_name="__main__", alter_sys=True)
    sys.exit()


def _main() -> None:
    for name in _IMPORTED:
        import_module(name)
    # At its end an interpreter looks for garbage: in a fork that would copy every object of this process.
    garbage_collection.exempt_present_objects()
    lifeline = socket.socket(fileno=int(sys.argv[2]))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(sys.argv[1])
    listener.listen()
    tell(lifeline, os.getpid())
    server = _Server(listener, lifeline)
    try:
        server.run()
    except _Fork as fork:
        # Here nothing of the server is on the stack any more.
        arguments = fork.args
    else:
        shutil.rmtree(Path(sys.argv[1]).parent)
        return
    finally:
        server.close()
    _become_podium(*arguments)


if __name__ == "__main__":
    _main()
