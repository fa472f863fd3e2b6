"""Sets the limit of file descriptors of this process, and the share of it that inbound connections may use."""

from __future__ import annotations

import contextlib
import resource
from typing import Final

_INBOUND_MAX: Final = 2048
_INBOUND_SHARE: Final = 4


def raise_limit() -> None:
    """Raise the soft limit to the hard limit, as every Go program does: it is low only for the sake of `select`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # On some systems the effective limit is below the reported hard limit.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def inbound_connections_max() -> int:
    """Return the number of connections that a server may accept; the process needs the other descriptors itself."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _INBOUND_MAX
    return max(1, min(_INBOUND_MAX, soft // _INBOUND_SHARE))
