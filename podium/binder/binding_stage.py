"""The stages of a binding cycle, as a transition table."""

from __future__ import annotations

import enum

from podium.lib.state_table import StateTable


class BindingStage(enum.IntEnum):
    """The stage that a pod's binding cycle has reached."""

    STARTED = 0
    WAITING_ON_PERMIT = 1
    PRE_BINDING = 2
    BINDING = 3
    BOUND = 4
    FAILED = 5


class BindingEvent(enum.IntEnum):
    """The events that move a binding cycle to its next stage."""

    PERMIT_AWAITED = 0
    PRE_BIND_STARTED = 1
    BIND_STARTED = 2
    BIND_SUCCEEDED = 3
    STEP_FAILED = 4


_S, _E = BindingStage, BindingEvent

BINDING_CYCLE: StateTable[BindingStage, BindingEvent] = StateTable(
    "binding cycle",
    {
        (_S.STARTED, _E.PERMIT_AWAITED): _S.WAITING_ON_PERMIT,
        (_S.STARTED, _E.PRE_BIND_STARTED): _S.PRE_BINDING,
        (_S.STARTED, _E.BIND_STARTED): _S.BINDING,
        (_S.STARTED, _E.STEP_FAILED): _S.FAILED,
        (_S.WAITING_ON_PERMIT, _E.PRE_BIND_STARTED): _S.PRE_BINDING,
        (_S.WAITING_ON_PERMIT, _E.BIND_STARTED): _S.BINDING,
        (_S.WAITING_ON_PERMIT, _E.STEP_FAILED): _S.FAILED,
        (_S.PRE_BINDING, _E.BIND_STARTED): _S.BINDING,
        (_S.PRE_BINDING, _E.STEP_FAILED): _S.FAILED,
        (_S.BINDING, _E.BIND_SUCCEEDED): _S.BOUND,
        (_S.BINDING, _E.STEP_FAILED): _S.FAILED,
    },
)
