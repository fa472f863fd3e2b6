"""State machines as transition tables: a transition that is not in the table raises an error."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)


class InvalidTransition(Exception):  # noqa: N818 - the state machine's own word
    """An event arrived in a state that has no transition for it, which is a bug."""

    def __init__(self, machine: str, state: Enum, event: Enum, history: str = "") -> None:
        super().__init__(f"{machine}: {event.name} in state {state.name}" + (f"\n{history}" if history else ""))
        self.machine = machine
        self.state = state
        self.event = event


class StateTable(Generic[State, Event]):
    """A transition table: (state, event) → next state."""

    def __init__(self, name: str, transitions: Mapping[tuple[State, Event], State]) -> None:
        self.name = name
        self.transitions = dict(transitions)
        # Keyed by identity: tables are looked up several times per pod, and hashing an Enum runs Python code.
        self._after: dict[int, dict[int, State]] = {}
        for (state, event), next_state in transitions.items():
            self._after.setdefault(id(state), {})[id(event)] = next_state

    def next(self, state: State, event: Event) -> State:
        """Return the state after the event.

        Raises:
            InvalidTransition: the pair is not in the table.
        """
        try:
            return self._after[id(state)][id(event)]
        except KeyError:
            raise InvalidTransition(self.name, state, event) from None

    def mermaid(self) -> str:
        """Draw the table as a Mermaid state diagram, in the order of the table."""
        lines = ["stateDiagram-v2"]
        for (state, event), next_state in self.transitions.items():
            lines.append(f"    {state.name} --> {next_state.name}: {event.name}")
        return "\n".join(lines)
