"""The garbage collector in a process that holds a cluster: it is to look rarely, and never at what stays."""

from __future__ import annotations

import gc
from typing import Final

_THRESHOLDS: Final = (100_000, 50, 100)


def settle() -> None:
    """Have the collector look rarely: nearly all that lives long is objects of a cluster, which make no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def keep_what_is_there() -> None:
    """What a sync has brought stays: the collector need not walk over it again and again, half a second each time."""
    gc.freeze()
