"""Creates loggers; `podium.telemetry` decides where their lines go.

structlog is imported with the first log line: it loads asyncio, ssl and rich, which the engine alone does not need.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


_hidings = 0
"""The number of open `hidden` contexts."""


@contextmanager
def hidden() -> Iterator[None]:
    """Drop log lines before they are formatted: formatting one takes longer than a step of a decision."""
    global _hidings  # noqa: PLW0603 - as the configuration of logging, which is the process's
    _hidings += 1
    try:
        yield
    finally:
        _hidings -= 1


def _hide(*_: object, **__: object) -> None:
    """Drop the line: stands in for every method of a logger."""


class _Logger:
    """A structlog logger that is created on first use."""

    __slots__ = ("_logger", "_values")

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self._logger: FilteringBoundLogger | None = None

    @property
    def info(self) -> Any:
        """Log at info level. A property: `__getattr__` costs 2 us, and each bound pod is a line of this level."""
        logger = self._logger
        return self.__getattr__("info") if logger is None or _hidings else logger.info

    def __getattr__(self, method: str) -> Any:
        if _hidings:
            return _hide
        logger = self._logger
        if logger is None:
            import structlog

            logger = structlog.get_logger(**self._values)
            # structlog's own cache would look its settings up for each line.
            if structlog.get_config()["cache_logger_on_first_use"]:
                logger = self._logger = logger.bind()
        return getattr(logger, method)


def get_logger(name: str, **values: Any) -> FilteringBoundLogger:
    """Return a logger whose lines carry the component's name and the values."""
    return cast("FilteringBoundLogger", _Logger({"component": name, **values}))
