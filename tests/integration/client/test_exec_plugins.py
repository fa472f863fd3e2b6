"""Commands that kubeconfigs name for credentials, as podium runs them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from podium.client.token_sources import _LIMITED
from tests.process_tree import are_gone, wait_gone


def limited_command(seconds: float, *command: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _LIMITED, str(seconds), *command]


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_that_of_the_command(code: int) -> None:
    assert subprocess.run(limited_command(60.0, "sh", "-c", f"exit {code}"), check=False).returncode == code


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    result = subprocess.run(
        limited_command(0.1, "sh", "-c", f"echo $$ > {file}; exec sleep 1000"),
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "TimeoutExpired" in result.stderr
    assert are_gone([int(file.read_text())])


def test_a_command_ends_with_the_podium_that_needs_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    command = limited_command(1000.0, "sh", "-c", f"echo $$ > {file}; exec sleep 1000")
    podium = subprocess.Popen([sys.executable, "-c", f"import subprocess; subprocess.run({command!r})"])
    while not (file.exists() and file.read_text().strip()):
        assert podium.poll() is None
        time.sleep(0.02)
    podium.kill()
    podium.wait()
    assert wait_gone([int(file.read_text())])
