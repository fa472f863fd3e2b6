"""Which processes there are, as `ps` shows them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable

from tests.patience import PATIENCE_S

_LOOK_S = 0.05


def children_of(pid: int) -> list[int]:
    """The processes that this one has started."""
    return [child for child, (parent, _) in _processes().items() if parent == pid]


def descendants_of(pid: int) -> list[int]:
    """The processes that this one has started, and those that they have."""
    children = children_of(pid)
    return children + [descendant for child in children for descendant in descendants_of(child)]


def wait_children(pid: int, count: int) -> list[int]:
    """Until the process has this many children; returns them."""
    deadline_s = time.monotonic() + PATIENCE_S
    while len(children := children_of(pid)) < count:
        assert time.monotonic() < deadline_s, f"only {children}"
        time.sleep(_LOOK_S)
    return children


def are_gone(pids: Iterable[int]) -> bool:
    """Whether all have ended, though nobody may have asked for their exit codes yet."""
    processes = _processes()
    return all(processes.get(pid, (0, "Z"))[1].startswith("Z") for pid in pids)


def wait_gone(pids: Iterable[int], within_s: float = PATIENCE_S) -> bool:
    """Whether all end within that time."""
    waited_for, deadline_s = list(pids), time.monotonic() + within_s
    while not are_gone(waited_for) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)
    return are_gone(waited_for)


def _processes() -> dict[int, tuple[int, str]]:
    """The parent and the state of each process."""
    output = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in output.splitlines())
    return {int(pid): (int(parent), state) for pid, parent, state in rows}
