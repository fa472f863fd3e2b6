"""The one way to get a logger; `podium.telemetry` decides where the lines go.

structlog is imported with the first log line: it loads asyncio, ssl and rich, which the engine alone does not need.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


_hidings = 0
"""How many times the log is hidden now."""


@contextmanager
def hidden() -> Iterator[None]:
    """Write no line meanwhile; to write one that is dropped afterwards would take longer than a step of a decision."""
    global _hidings  # noqa: PLW0603 - as the configuration of logging, which is the process's
    _hidings += 1
    try:
        yield
    finally:
        _hidings -= 1


def _hide(*_: object, **__: object) -> None:
    """What a line of the log says."""


class _Logger:
    """A structlog logger that is created on first use."""

    __slots__ = ("_logger", "_values")

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self._logger: FilteringBoundLogger | None = None

    def __getattr__(self, method: str) -> Any:
        if _hidings:
            return _hide
        if self._logger is None:
            import structlog

            self._logger = structlog.get_logger(**self._values)
        return getattr(self._logger, method)


def get_logger(name: str, **values: Any) -> FilteringBoundLogger:
    """A logger whose lines carry the name of the component that logs, and the values."""
    return cast("FilteringBoundLogger", _Logger({"component": name, **values}))
