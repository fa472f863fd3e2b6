"""How tests are divided. Of `make test` no worker has a long file to begin when the others have ended.

`make check` has a process for each part of the files: unlike workers, none collects what another runs. It leaves out
the unit tests that are marked `long`, which `make test` runs with those of the other folders.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling

_ROOT: Final = Path(__file__).parents[1]
_UNIT: Final = _ROOT / "tests" / "unit"
LONGEST: Final = (
    "tests/integration/release/test_release.py",
    "tests/simulation/test_simulation.py",
    "tests/e2e/test_bad_luck.py",
    "tests/provisioned/test_gang_plans.py",
    "tests/provisioned/test_provisioned.py",
    "tests/e2e/test_devices.py",
    "tests/parity/test_recorded.py",
    "tests/differential/test_estimates.py",
    "tests/e2e/test_failover.py",
    "tests/parity/test_workloads.py",
    "tests/e2e/test_shown_pages.py",
    "tests/e2e/test_leader_election.py",
    "tests/upgrade/test_upgrade.py",
    "tests/playground/test_playground.py",
    "tests/fuzz/test_fuzz.py",
    "tests/parity/test_kept_answers.py",
    "tests/integration/cli/test_outputs.py",
    "tests/integration/cli/test_demo.py",
    "tests/e2e/test_provisioner.py",
    "tests/e2e/test_restore.py",
    "tests/integration/estimator/server/test_live.py",
    "tests/e2e/test_reload.py",
    "tests/integration/fleets/test_served.py",
    "tests/e2e/test_live_page.py",
    "tests/integration/fleets/test_bad_members.py",
    "tests/integration/estimator/test_connections.py",
    "tests/e2e/test_scheduling.py",
    "tests/e2e/test_preemption.py",
    "tests/e2e/test_doctor.py",
    "tests/estimator_chaos/test_slice.py",
    "tests/simulation/test_shards.py",
    "tests/simulation/test_sweep.py",
    "tests/integration/cli/test_orphans.py",
    "tests/integration/cli/test_recorded_plugins.py",
    "tests/docs_site/test_site.py",
    "tests/integration/cli/test_config.py",
    "tests/helm/test_chart.py",
    "tests/make_room/test_make_room.py",
    "tests/integration/cli/test_hostile_text.py",
    "tests/integration/cli/test_mcp.py",
    "tests/helm/test_rights.py",
)
"""The files that take longest, which begin first. Many of them have few tests, so that their number does not tell."""
DIVIDED: Final = frozenset(
    {
        "tests/simulation/test_simulation.py",
        "tests/simulation/test_shards.py",
        "tests/e2e/test_bad_luck.py",
        "tests/e2e/test_devices.py",
        "tests/e2e/test_leader_election.py",
        "tests/e2e/test_restore.py",
        "tests/provisioned/test_gang_plans.py",
        "tests/provisioned/test_provisioned.py",
        "tests/fuzz/test_fuzz.py",
        "tests/integration/cli/test_outputs.py",
        "tests/integration/cli/test_demo.py",
        "tests/parity/test_kept_answers.py",
    }
)
"""Those whose tests share nothing that a worker would have to make again: each of their tests may run anywhere."""


def in_part(path: Path, part: str) -> bool:
    """Return True if a file of tests belongs to that part, such as "1/2".

    All properties are in the last, which has fewer others for that: for them Hypothesis reads the constants of every
    module, which takes 4 s at first.
    """
    number, count = map(int, part.split("/"))
    if "from hypothesis import" in path.read_text():
        return number == count
    share = zlib.crc32(path.relative_to(_ROOT).as_posix().encode()) / 2**32
    return number == int(share * (count - 0.1)) + 1


def may_be_left_by_check(path: Path) -> bool:
    """Return False if `make check` runs every test of a file."""
    return not path.is_relative_to(_UNIT) or "pytest.mark.long" in path.read_text()


def is_left_by_check(item: pytest.Item) -> bool:
    """Return False if `make check` runs that test."""
    return not item.path.is_relative_to(_UNIT) or item.get_closest_marker("long") is not None


_RANKS: Final = {path: rank for rank, path in enumerate(LONGEST)}


class LongestFirst(LoadFileScheduling):
    """Runs files as a whole, except those that are divided, and the longest first."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return nodeid if path in DIVIDED else path

    def _assign_work_unit(self, node: Any) -> None:
        longest = min(self.workqueue, key=lambda scope: _RANKS.get(scope.partition("::")[0], len(_RANKS)))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)
