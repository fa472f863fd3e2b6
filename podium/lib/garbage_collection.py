"""Tunes the garbage collector for a process that holds a cluster: collect rarely, and never scan lasting objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_THRESHOLDS: Final = (25_000, 200, 100)
"""A young collection at the first threshold takes about 6 ms."""


class _Exempted:
    """Notes that objects are exempted for good: the interpreter would walk over millions of them to count them."""

    any = False


@contextmanager
def collection_disabled() -> Iterator[None]:
    """Disable collection while lasting objects are made, such as modules or a cluster: there is no garbage to find.

    Scanning them again and again takes a tenth of the time of imports and a third of that of loading a cluster.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()
            _age_present_objects()


def _age_present_objects() -> None:
    """Move all objects to the oldest generation, or the next few allocations would have them scanned as young ones."""
    # Unfreezing would also thaw objects that the process froze for good.
    if not _Exempted.any:
        gc.freeze()
        gc.unfreeze()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Make collections rare within the context; afterwards the earlier thresholds apply again.

    Earlier garbage is not collected first: looking for it would take as long as a hundred decisions.
    """
    thresholds = gc.get_threshold()
    _collect_rarely()
    try:
        yield
    finally:
        thaw()
        gc.set_threshold(*thresholds)


def settle() -> None:
    """Make collections rare: nearly all long-lived objects belong to the cluster, and these form no cycles."""
    gc.collect()
    _collect_rarely()


def _collect_rarely() -> None:
    exempt_present_objects()
    gc.set_threshold(*_THRESHOLDS)


def collect_exempt_objects() -> None:
    """Collect what has become garbage since it was exempted, and exempt the rest again.

    Cost: a pass over all objects, 50 ms for forty clusters.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def exempt_present_objects() -> None:
    """Exempt all present objects, such as those of a sync, from collection, which could take up to half a second."""
    gc.freeze()
    _Exempted.any = True


def thaw() -> None:
    """Have the exempted objects collected again."""
    gc.unfreeze()
    _Exempted.any = False
