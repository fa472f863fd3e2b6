"""The event loop of a replay."""

from __future__ import annotations

import asyncio

import anyio

from podium.recording.entries import RESUME, TIME, Entry
from podium.recording.replay_inputs import ReplayInputs
from podium.recording.replay_loop import ReplayLoop


def _replay(*entries: Entry) -> ReplayInputs:
    """Replay these entries with one task that waits up to five seconds for what never happens."""
    inputs = ReplayInputs(iter(entries), has_other_config=True)

    async def wait_in_vain() -> None:
        with anyio.move_on_after(5.0):
            await anyio.sleep_forever()

    async def replay() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ReplayLoop)
        end = loop.replay(inputs)
        inputs.start(loop, {"waits": wait_in_vain})
        await end

    with asyncio.Runner(loop_factory=ReplayLoop) as runner:
        runner.run(replay())
    return inputs


def test_early_deadline_is_no_step_of_its_task() -> None:
    """A deadline whose timer fires too early sets it again, so there is always another timer to fire."""
    inputs = _replay((TIME, 1.0), (RESUME, 1), (TIME, 2.0), (RESUME, 1))
    divergence = inputs.outcome.divergence
    assert divergence is not None
    assert divergence.detail == "task 1 went on when it was recorded, and has nothing to go on with"


def test_due_deadline_is_a_step_of_its_task() -> None:
    inputs = _replay((TIME, 1.0), (RESUME, 1), (TIME, 6.0), (RESUME, 1))
    assert inputs.outcome.divergence is None
