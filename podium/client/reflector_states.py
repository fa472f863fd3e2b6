"""The states of a reflector, and its transition table."""

from __future__ import annotations

from enum import Enum

from podium.lib.state_table import StateTable


class ReflectorState(Enum):
    """The state of a reflector."""

    IDLE = "idle"
    STREAMING_LIST = "streaming list"
    PAGING = "paging"
    WATCHING = "watching"


class ReflectorEvent(Enum):
    """An event in a reflector's life."""

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
