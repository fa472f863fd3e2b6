"""The stages of a binding cycle, as a table."""

from __future__ import annotations

import enum

from podium.lib.state_table import StateTable


class BindingStage(enum.IntEnum):
    """How far the binding of a pod has come."""

    STARTED = 0
    WAITING_ON_PERMIT = 1
    PRE_BINDING = 2
    BINDING = 3
    BOUND = 4
    FAILED = 5


class BindingEvent(enum.IntEnum):
    """What moves a binding on."""

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
