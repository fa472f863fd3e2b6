from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from podium.server.election import LeadershipLostError
from podium.server.supervision import ComponentFailedError, Supervisor

pytestmark = pytest.mark.anyio


async def fail() -> None:
    raise KeyError("mistake")


async def lose_the_lease() -> None:
    raise LeadershipLostError("another replica leads")


async def test_a_part_that_fails_is_logged_and_counted_by_name_and_cancels_the_others() -> None:
    counted: list[str] = []
    with capture_logs() as logs, pytest.RaisesGroup(pytest.RaisesExc(ComponentFailedError, match="the reader failed")):
        async with anyio.create_task_group() as group:
            Supervisor(group, "estimator", counted.append).start({"sleeper": anyio.sleep_forever, "reader": fail})
    assert counted == ["reader"]
    assert [(each["event"], each["part"]) for each in logs] == [
        ("A part of the estimator has failed, exiting", "reader")
    ]


async def test_a_lost_lease_ends_the_process_but_is_no_failure() -> None:
    counted: list[str] = []
    with pytest.RaisesGroup(LeadershipLostError):
        async with anyio.create_task_group() as group:
            Supervisor(group, "scheduler", counted.append).start({"leader election": lose_the_lease})
    assert counted == []
