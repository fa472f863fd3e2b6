"""What a reflector may be at, and what comes next: a table."""

from __future__ import annotations

from enum import Enum

from podium.lib.state_table import StateTable


class ReflectorState(Enum):
    """What a reflector is at."""

    IDLE = "idle"
    STREAMING_LIST = "streaming list"
    PAGING = "paging"
    WATCHING = "watching"


class ReflectorEvent(Enum):
    """What has happened to a reflector."""

    STARTED = "started"
    LISTED = "listed"
    REFUSED = "whole list refused"
    FAILED = "failed"
    ENDED = "watch ended"
    EXPIRED = "version expired"
    DISTRUSTED = "told to list again"


_S, _E = ReflectorState, ReflectorEvent

TRANSITIONS = StateTable(
    "reflector",
    {
        (_S.IDLE, _E.STARTED): _S.STREAMING_LIST,
        (_S.STREAMING_LIST, _E.LISTED): _S.WATCHING,
        (_S.STREAMING_LIST, _E.REFUSED): _S.PAGING,
        (_S.STREAMING_LIST, _E.FAILED): _S.STREAMING_LIST,
        (_S.STREAMING_LIST, _E.EXPIRED): _S.STREAMING_LIST,
        (_S.PAGING, _E.LISTED): _S.WATCHING,
        (_S.PAGING, _E.FAILED): _S.PAGING,
        (_S.PAGING, _E.EXPIRED): _S.PAGING,
        (_S.WATCHING, _E.ENDED): _S.WATCHING,
        (_S.WATCHING, _E.FAILED): _S.WATCHING,
        (_S.WATCHING, _E.EXPIRED): _S.STREAMING_LIST,
        (_S.STREAMING_LIST, _E.DISTRUSTED): _S.STREAMING_LIST,
        (_S.PAGING, _E.DISTRUSTED): _S.STREAMING_LIST,
        (_S.WATCHING, _E.DISTRUSTED): _S.STREAMING_LIST,
    },
)
