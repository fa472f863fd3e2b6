"""Processes that tests start end with the tests, even if the tests are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import lifeline, warm_podium
from tests.control_plane.processes import ServerProcess
from tests.patience import PATIENCE_S
from tests.process_tree import are_gone, wait_gone

ROOT = Path(__file__).parents[2]


def start_suite(body: str, tmp_path: Path) -> subprocess.Popen[str]:
    """Start a process that stands in for pytest: it runs the code, then waits. Returns once the code has run."""
    code = f"import sys, time\nfrom pathlib import Path\nfolder = Path({str(tmp_path)!r})\n{textwrap.dedent(body)}"
    code += "\nprint('started', flush=True)\ntime.sleep(1000)\n"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def pids_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


@pytest.mark.parametrize("stop_signal", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_and_its_children_end_with_the_tests(tmp_path: Path, stop_signal: signal.Signals) -> None:
    code = """
        from tests.control_plane.processes import ServerProcess
        script = f"trap '' HUP TERM INT; sleep 1000 & echo $$ $! >> {folder}/pids; touch {folder}/there; wait; wait"
        server = ServerProcess("server", ["sh", "-c", script], folder / "log")
        server.wait_ready((folder / "there").exists)
    """
    tests = start_suite(code, tmp_path)
    server_pids = pids_in(tmp_path / "pids")
    assert len(server_pids) == 2
    assert not are_gone(server_pids)
    tests.send_signal(stop_signal)
    tests.communicate()
    assert wait_gone(server_pids)


def test_a_process_that_shares_the_tests_group_ends_with_the_tests(tmp_path: Path) -> None:
    """The other processes of the group are not ended."""
    code = """
        from tests import lifeline, warm_podium
        process = lifeline.start(["sleep", "1000"])
        (folder / "pids").write_text(str(process.pid))
    """
    bystander = subprocess.Popen(["sleep", "1000"])
    tests = start_suite(code, tmp_path)
    tests.kill()
    tests.communicate()
    assert wait_gone(pids_in(tmp_path / "pids"))
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_guarded_command_keeps_its_pid_exit_code_and_output() -> None:
    process = lifeline.start(["sh", "-c", "echo $$; exit 7"], stdout=subprocess.PIPE, text=True)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert (output.strip(), process.returncode) == (str(process.pid), 7)


def test_the_guard_ends_with_the_command(tmp_path: Path) -> None:
    earlier_pids = running_guards()
    server = ServerProcess("server", ["sleep", "1000"], tmp_path / "log")
    # The new process runs the guard's code until it executes the command.
    server.wait_ready(lambda: bool(running_guards() - earlier_pids) and server.pid not in running_guards())
    guard_pids = running_guards() - earlier_pids
    assert guard_pids
    server.stop()
    assert wait_gone(guard_pids)


def running_guards() -> set[int]:
    """Return the pids of the guards of the processes that this one has started."""
    process_list = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True
    ).stdout
    guard_arguments = f"lifeline_guard.py {lifeline.PASSED[0]} sleep"
    return {int(line.split()[0]) for line in process_list.splitlines() if guard_arguments in line}


@pytest.mark.parametrize("stop_signal", [signal.SIGKILL, signal.SIGTERM])
def test_a_forked_podium_ends_with_the_tests(tmp_path: Path, stop_signal: signal.Signals) -> None:
    code = """
        import os
        from tests import warm_podium
        with open(folder / "log", "w") as log:
            streams = {"stdin": log.fileno(), "stdout": log.fileno(), "stderr": log.fileno()}
            podium = warm_podium.start(["sandbox"], env=os.environ, start_new_session=True, **streams)
        (folder / "pids").write_text(str(podium.pid))
    """
    tests = start_suite(code, tmp_path)
    pids = pids_in(tmp_path / "pids")
    assert not are_gone(pids)
    tests.send_signal(stop_signal)
    tests.communicate()
    assert wait_gone(pids)


def test_a_forked_podium_tells_what_has_ended_it() -> None:
    with open(os.devnull, "r+") as nothing:
        streams = {"stdin": nothing.fileno(), "stdout": nothing.fileno(), "stderr": nothing.fileno()}
        podium = warm_podium.start(["sandbox"], env=os.environ, **streams)
    assert podium.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        podium.wait(0.0)
    podium.kill()
    assert podium.wait(PATIENCE_S) == podium.poll() == -signal.SIGKILL
    assert wait_gone([podium.pid])


@pytest.mark.parametrize("arguments", [("--help",), ("dance",), ("config", "check", "none.yaml"), ("version",)])
def test_a_forked_podium_says_what_a_new_one_says(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, "-m", "podium", *arguments]
    shell_command = ["sh", "-c", f'{warm_podium.command()} "$@"', "sh", *arguments]
    new, in_shell = (
        subprocess.run(args, capture_output=True, text=True, check=False) for args in (command, shell_command)
    )
    for forked in (in_shell, warm_podium.run(arguments)):
        assert (forked.returncode, forked.stdout, forked.stderr) == (new.returncode, new.stdout, new.stderr)


def test_a_forked_podium_ends_with_the_command_that_stands_in_for_it() -> None:
    process = subprocess.Popen(["sh", "-c", f"exec {warm_podium.command()} sandbox"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert b"Serving on" in process.stdout.readline()
    process.kill()
    # Its output has an end.
    process.communicate(timeout=PATIENCE_S)
