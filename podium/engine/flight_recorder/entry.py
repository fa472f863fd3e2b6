"""One attempt as it is noted down: references, until a segment turns many of them into columns."""

from __future__ import annotations

from typing import Protocol

import msgspec

from podium.framework.cycle.scored import Scored

BINDING, SCHEDULED, UNSCHEDULABLE, ERROR = range(4)
"""Positions in `attempts.RESULTS`."""

FIXED_BYTES = 1024
"""What an entry is counted as, beside its arrays."""


class NodeNames:
    """The names of nodes by row, as they were for some attempts.

    A row keeps its name after its node was deleted. A row that is given to another node needs new NodeNames.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.nbytes = 0

    def learn(self, names: list[str]) -> bool:
        """Add the names of rows that had none; False if a row has another name now.

        Args:
            names: by row; "" for a row without a node.
        """
        known = self.names
        if any(old and new and old != new for old, new in zip(known, names, strict=False)):
            return False
        known[:] = [
            new or (known[row] if row < len(known) else "") for row, new in enumerate(names + known[len(names) :])
        ]
        self.nbytes = sum(57 + len(name) for name in known)
        return True


class Sealed(Protocol):
    """Where an attempt goes whose end is not known yet."""

    head_bytes: int

    def end(self, position: int, result: int, total_s: float, message: str) -> None:
        """Note how the attempt has ended."""


class Entry(msgspec.Struct, eq=False):
    """What is kept of one attempt. A struct, because making one calls no function.

    Attributes:
        diagnosis: the number of its diagnosis in its ring; -1 if nothing was rejected.
        segment, position: where it went when it was sealed before its end was known.
    """

    sequence: int
    namespace: str
    name: str
    uid: str
    profile: str
    attempt: int
    started_s: float
    decision_s: float
    node: str
    examined: int
    feasible: int
    node_count: int
    story: list[tuple[float, str, str, str, str]]
    names: NodeNames
    scored: Scored | None
    diagnosis: int
    result: int = BINDING
    total_s: float = -1.0
    message: str = ""
    segment: Sealed | None = None
    position: int = 0
