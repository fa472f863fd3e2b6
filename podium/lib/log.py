"""The one way in which modules get a logger; `podium.telemetry` decides what becomes of the lines."""

from __future__ import annotations

from typing import Any, cast

import structlog
from structlog.typing import FilteringBoundLogger


def get_logger(name: str, **values: Any) -> FilteringBoundLogger:
    """A logger whose lines carry the name of the part that logs, and the values."""
    return cast(FilteringBoundLogger, structlog.get_logger(component=name, **values))
