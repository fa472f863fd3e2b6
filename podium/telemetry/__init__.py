"""Metrics and logging set-up.

Owns which metrics exist, how they are counted and rendered, how lines are logged and what is kept out of them. Never
decides anything, never serves anything: the daemon puts metrics on the network.
"""

from podium.telemetry.logging import configure as configure_logging
from podium.telemetry.logging import flush as flush_log
from podium.telemetry.logging import lines_lost, lines_waiting, set_verbosity, verbosity
from podium.telemetry.metrics import CONTENT_TYPE, Metrics

__all__ = [
    "CONTENT_TYPE",
    "Metrics",
    "configure_logging",
    "flush_log",
    "lines_lost",
    "lines_waiting",
    "set_verbosity",
    "verbosity",
]
