"""What tests start ends with them, also if they are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import lifeline
from tests.control_plane.processes import ServerProcess
from tests.patience import PATIENCE_S
from tests.process_tree import are_gone, wait_gone

ROOT = Path(__file__).parents[2]


def suite_that(run: str, tmp_path: Path) -> subprocess.Popen[str]:
    """A process in the place of pytest, which runs this and then says so."""
    code = f"import sys, time\nfrom pathlib import Path\nfolder = Path({str(tmp_path)!r})\n{textwrap.dedent(run)}"
    code += "\nprint('started', flush=True)\ntime.sleep(1000)\n"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def numbers_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_and_all_it_has_started_end_with_the_tests(tmp_path: Path, number: signal.Signals) -> None:
    server = """
        from tests.control_plane.processes import ServerProcess
        script = f"trap '' HUP TERM INT; sleep 1000 & echo $$ $! >> {folder}/pids; touch {folder}/there; wait; wait"
        server = ServerProcess("server", ["sh", "-c", script], folder / "log")
        server.wait_ready((folder / "there").exists)
    """
    tests = suite_that(server, tmp_path)
    started = numbers_in(tmp_path / "pids")
    assert len(started) == 2
    assert not are_gone(started)
    tests.send_signal(number)
    tests.communicate()
    assert wait_gone(started)


def test_a_process_without_a_group_of_its_own_ends_with_the_tests(tmp_path: Path) -> None:
    """And nothing else of the group does."""
    process = """
        from tests import lifeline
        process = lifeline.start(["sleep", "1000"])
        (folder / "pids").write_text(str(process.pid))
    """
    bystander = subprocess.Popen(["sleep", "1000"])
    tests = suite_that(process, tmp_path)
    tests.kill()
    tests.communicate()
    assert wait_gone(numbers_in(tmp_path / "pids"))
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_guarded_command_has_its_number_exit_code_and_output() -> None:
    process = lifeline.start(["sh", "-c", "echo $$; exit 7"], stdout=subprocess.PIPE, text=True)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert (said.strip(), process.returncode) == (str(process.pid), 7)


def test_the_guard_ends_with_the_command(tmp_path: Path) -> None:
    before = guards()
    server = ServerProcess("server", ["sleep", "1000"], tmp_path / "log")
    # The server itself is a guard until it becomes the command.
    server.wait_ready(lambda: bool(guards() - before) and server.pid not in guards())
    started = guards() - before
    assert started
    server.stop()
    assert wait_gone(started)


def guards() -> set[int]:
    """The processes that watch what this process has started."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    mark = f"lifeline_guard.py {lifeline.PASSED[0]} sleep"
    return {int(line.split()[0]) for line in listed.splitlines() if mark in line}
