"""Metrics and logging.

Owns which metrics exist, how they are counted and rendered, how lines are logged and how secrets are kept out of them.
Never decides or serves anything: the daemon serves the metrics.
"""

from podium.telemetry.logging import configure as configure_logging
from podium.telemetry.logging import flush as flush_log
from podium.telemetry.logging import lines_lost, lines_waiting, set_verbosity, verbosity
from podium.telemetry.metrics import CONTENT_TYPE, OPEN_CONTENT_TYPE, Metrics

__all__ = [
    "CONTENT_TYPE",
    "OPEN_CONTENT_TYPE",
    "Metrics",
    "configure_logging",
    "flush_log",
    "lines_lost",
    "lines_waiting",
    "set_verbosity",
    "verbosity",
]
