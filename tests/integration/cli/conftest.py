"""The command as people start it: a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests import lifeline, warm_podium
from tests.e2e.daemon import MACHINE_IS_BUSY
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
PODIUM = (sys.executable, "-m", "podium")

Podium = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No terminal's size, no colours, and temporary files where the test can look for them."""
    left_out = {"COLUMNS", "FORCE_COLOR", "KUBECONFIG", "PYTHONIOENCODING"}
    inherited = {key: value for key, value in os.environ.items() if key not in left_out}
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return {**inherited, "HOME": str(tmp_path), "TMPDIR": str(scratch), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def podium(environment: dict[str, str]) -> Podium:
    """Run a command to its end: `podium("config", "check", file)`. Fields are added to its environment.

    Only what Python itself reads at its start, such as PYTHONIOENCODING, needs an interpreter that starts.
    """

    def run(*arguments: str | Path, **fields: str) -> subprocess.CompletedProcess[str]:
        if not fields:
            return warm_podium.run(arguments, env=environment)
        return subprocess.run(
            [*PODIUM, *map(str, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            env={**environment, **fields},
            check=False,
        )

    return run


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Start]:
    """Start a command and go on; what is left at the end of the test is killed."""
    processes: list[subprocess.Popen[str]] = []
    # Where tests run in the background of a shell, they ignore Ctrl-C, and what they start would do so, too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def begin(*arguments: str | Path) -> subprocess.Popen[str]:
        process = lifeline.start(
            [*PODIUM, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=environment,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def complaints(text: str) -> list[str]:
    """The lines of standard error, but for those that only tell that the machine is busy."""
    return [line for line in text.splitlines() if not any(phrase in line for phrase in MACHINE_IS_BUSY)]


def read_until(process: subprocess.Popen[str], words: Sequence[str]) -> str:
    """The first line of standard output that contains one of the words."""
    assert process.stdout is not None
    for line in process.stdout:
        if any(word in line for word in words):
            return line
    raise AssertionError(f"the process ended without saying {' or '.join(words)}")
