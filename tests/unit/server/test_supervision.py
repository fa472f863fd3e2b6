from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest
from structlog.testing import capture_logs

from podium.lib.log import get_logger
from podium.server.election import LeadershipLostError, LeaseTakenError
from podium.server.supervision import ComponentFailedError, Supervisor

pytestmark = pytest.mark.anyio


async def fail() -> None:
    raise KeyError("mistake")


async def lose_the_lease() -> None:
    raise LeadershipLostError("another replica leads")


async def find_the_lease_taken() -> None:
    raise LeaseTakenError("kube-scheduler holds it")


async def test_a_part_that_fails_is_logged_and_counted_by_name_and_cancels_the_others() -> None:
    part_names: list[str] = []
    with capture_logs() as logs, pytest.RaisesGroup(pytest.RaisesExc(ComponentFailedError, match="the reader failed")):
        async with anyio.create_task_group() as group:
            supervisor = Supervisor(group, "estimator", get_logger("estimator"), part_names.append)
            supervisor.start({"sleeper": anyio.sleep_forever, "reader": fail})
    assert part_names == ["reader"]
    assert [(line["component"], line["event"], line["part"]) for line in logs] == [
        ("estimator", "A part of the estimator has failed, exiting", "reader")
    ]


@pytest.mark.parametrize(
    ("task", "error"), [(lose_the_lease, LeadershipLostError), (find_the_lease_taken, LeaseTakenError)]
)
async def test_a_lease_that_another_holds_ends_the_process_but_is_no_failure(
    task: Callable[[], Awaitable[None]], error: type[Exception]
) -> None:
    part_names: list[str] = []
    with pytest.RaisesGroup(error):
        async with anyio.create_task_group() as group:
            Supervisor(group, "scheduler", get_logger("daemon"), part_names.append).start({"leader election": task})
    assert part_names == []
