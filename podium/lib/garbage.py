"""The garbage collector in a process that holds a cluster: it is to look rarely, and never at what stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_THRESHOLDS: Final = (100_000, 50, 100)


@contextmanager
def off_while_loading() -> Iterator[None]:
    """Do not look while modules are loaded: what they make stays, and looking takes a tenth of their time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def settle() -> None:
    """Have the collector look rarely: nearly all that lives long is objects of a cluster, which make no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def keep_what_is_there() -> None:
    """What was loaded, or a sync has brought, stays: the collector need not walk over it, for up to half a second."""
    gc.freeze()
