"""Runs the parts of a server as named tasks: one that fails is logged and counted by name, and ends the process.

Never restarts a part: a new process starts afresh.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from anyio.abc import TaskGroup

from podium.lib.error_text import UserFacingError, error_text
from podium.server.election import LeadershipLostError, LeaseTakenError

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Tasks: TypeAlias = Mapping[str, Callable[[], Awaitable[None]]]
"""What to run until the process stops, by name."""


class ComponentFailedError(UserFacingError):
    """A part of the process failed because of a bug; the log names the part."""


class Supervisor:
    """Starts parts in a task group, which is cancelled when one of them fails.

    Args:
        process: what the parts are of, as the log names it, such as "scheduler".
        log: the logger of the process.
        count_failure: called with the name of a part that has failed.

    Raises:
        ComponentFailedError: out of the task group, for a part that raised an unexpected exception.
        LeadershipLostError, LeaseTakenError: out of the task group; they end the process too, but are no bugs.
    """

    def __init__(
        self, group: TaskGroup, process: str, log: FilteringBoundLogger, count_failure: Callable[[str], None]
    ) -> None:
        self._group = group
        self._process = process
        self._log = log
        self._count_failure = count_failure

    def start(self, tasks: Tasks) -> None:
        """Start these parts."""
        for part, run in tasks.items():
            self._group.start_soon(self._supervise, part, run, name=part)

    async def _supervise(self, part: str, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        except (LeadershipLostError, LeaseTakenError):
            raise
        except Exception as error:
            self._count_failure(part)
            event = f"A part of the {self._process} has failed, exiting"
            self._log.critical(event, part=part, exc_info=error)
            raise ComponentFailedError(f"the {part} failed: {error_text(error)}") from error
