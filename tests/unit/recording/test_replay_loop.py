"""The event loop of a replay."""

from __future__ import annotations

import asyncio

import anyio

from podium.recording import tape
from podium.recording.player import Player
from podium.recording.replay_loop import ReplayLoop
from podium.recording.tape import Entry


def _played(*entries: Entry) -> Player:
    """Replay these entries with one task that waits up to five seconds for what never happens."""
    player = Player(iter(entries), is_other=True)

    async def wait_in_vain() -> None:
        with anyio.move_on_after(5.0):
            await anyio.sleep_forever()

    async def play() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ReplayLoop)
        ended = loop.play(player)
        player.start(loop, {"waits": wait_in_vain})
        await ended

    with asyncio.Runner(loop_factory=ReplayLoop) as runner:
        runner.run(play())
    return player


def test_a_deadline_that_has_not_come_is_no_step_of_its_task() -> None:
    """A deadline whose timer fires too early sets it again, so there is always another timer to fire."""
    player = _played((tape.TIME, 1.0), (tape.RESUME, 1), (tape.TIME, 2.0), (tape.RESUME, 1))
    differing = player.outcome.differing
    assert differing is not None
    assert differing.detail == "task 1 went on when it was recorded, and has nothing to go on with"


def test_a_deadline_that_has_come_lets_its_task_go_on() -> None:
    player = _played((tape.TIME, 1.0), (tape.RESUME, 1), (tape.TIME, 6.0), (tape.RESUME, 1))
    assert player.outcome.differing is None
