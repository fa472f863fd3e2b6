"""The one way to get a logger; `podium.telemetry` decides where the lines go.

structlog is imported with the first log line: it loads asyncio, ssl and rich, which the engine alone does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class _Logger:
    """A structlog logger that is created on first use."""

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
    """A logger whose lines carry the name of the component that logs, and the values."""
    return cast("FilteringBoundLogger", _Logger({"component": name, **values}))
