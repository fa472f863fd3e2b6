"""Two kills of members of a group on the real API server; `python -m tests.shard_kills` tries a hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane.locate import Binaries
from tests.e2e.conftest import new_cluster
from tests.shard_kills.rounds import Round, Trouble
from tests.shard_kills.server import server_flags
from tests.shard_kills.trial import Timings, Trial

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

_ROUNDS = (
    Round(0, Trouble.LOST, bystander=1, stop_share=1.2, trouble_after_s=0.2, restarts_at_once=True),
    Round(2, Trouble.ETCD, is_early=True),
)


async def test_killed_members_are_taken_over_and_no_two_act_on_a_node(
    control_plane_binaries: Binaries, tmp_path: Path
) -> None:
    async with new_cluster(control_plane_binaries, *server_flags(tmp_path)) as cluster:
        outcome = await Trial(cluster, tmp_path, Timings(4, 3, 0.5)).run(_ROUNDS)
    assert len(outcome.take_overs) == len(_ROUNDS)
    assert outcome.bound_count
    assert outcome.ends.total() >= len(_ROUNDS) + 1
