"""Closed nodes: they take no new pods, because the node or a pod on it cannot be parsed in full.

This holds for every profile, whatever its plugins are: a pod with unknown requests may use all of the node.

Differs: upstream ignores what it cannot parse and keeps placing pods on the node.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Rows, Snapshot
from podium.framework.contract.status import Code, Status
from podium.framework.profile.rejection import Rejection

NODE_CLOSED: Final = "NodeClosed"
"""The plugin name under which closed nodes are rejected."""

_REASONS_MAX: Final = 10
_GENERAL: Final = "what is there cannot be read"


def closed_status(snapshot: Snapshot, row: int) -> Status | None:
    """Return the status that rejects the row's node if it is closed; None if it is open."""
    reason = snapshot.closed.get(row)
    return None if reason is None else _status(reason)


def among_closed(snapshot: Snapshot, rows: Rows) -> tuple[NDArray[np.bool_], Rejection] | None:
    """Return which rows have a closed node, and why; None if all are open. Shape: one entry per row of `rows`."""
    reason_of = snapshot.closed
    is_closed = np.isin(rows, list(reason_of))
    if not is_closed.any():
        return None
    closed_rows = rows[is_closed]
    reasons = [reason_of[row] for row in closed_rows.tolist()]
    distinct = list(dict.fromkeys(reasons))
    if len(distinct) > _REASONS_MAX:
        distinct, reasons = [_GENERAL], [_GENERAL] * len(reasons)
    number = {reason: number_of_reason for number_of_reason, reason in enumerate(distinct, 1)}
    verdicts = np.array([number[why] for why in reasons], np.int64)
    return is_closed, Rejection.of(closed_rows, verdicts, lambda verdict: _status(distinct[verdict - 1]))


def _status(why: str) -> Status:
    reason = f"node(s) closed to new pods: {why}"
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), NODE_CLOSED)
