"""How many files and connections this process may have open, and how many of them others may take up."""

from __future__ import annotations

import contextlib
import resource
from typing import Final

_INBOUND_MAX: Final = 2048
_INBOUND_SHARE: Final = 4


def raise_limit() -> None:
    """Raise the soft limit to the hard one, as every Go program does: the soft one is low for the sake of `select`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems have a limit below the one that they name.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def inbound_connections_max() -> int:
    """How many connections a server may accept: what it asks others must never lack a descriptor."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _INBOUND_MAX
    return max(1, min(_INBOUND_MAX, soft // _INBOUND_SHARE))
