"""The one way in which modules get a logger; `podium.telemetry` decides what becomes of the lines.

structlog is loaded with the first line: it brings asyncio, ssl and rich with it, and the engine alone needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class _Logger:
    """A structlog logger that is made when it is first used."""

    __slots__ = ("_logger", "_values")

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self._logger: FilteringBoundLogger | None = None

    def __getattr__(self, method: str) -> Any:
        if self._logger is None:
            import structlog

            self._logger = structlog.get_logger(**self._values)
        return getattr(self._logger, method)


def get_logger(name: str, **values: Any) -> FilteringBoundLogger:
    """A logger whose lines carry the name of the part that logs, and the values."""
    return cast("FilteringBoundLogger", _Logger({"component": name, **values}))
