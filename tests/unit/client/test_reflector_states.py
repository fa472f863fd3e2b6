from __future__ import annotations

import itertools

import pytest

from podium.client.reflector_states import TRANSITIONS, ReflectorEvent, ReflectorState
from podium.lib.state_table import InvalidTransition


def test_every_state_can_be_reached() -> None:
    assert {ReflectorState.IDLE, *TRANSITIONS.transitions.values()} == set(ReflectorState)


def test_every_way_to_watching_leads_over_a_list() -> None:
    into_watching = {
        pair for pair, target in TRANSITIONS.transitions.items() if target is ReflectorState.WATCHING is not pair[0]
    }
    assert {event for _, event in into_watching} == {ReflectorEvent.LISTED}


def test_a_failure_can_be_survived_wherever_requests_are_made() -> None:
    for state in set(ReflectorState) - {ReflectorState.IDLE}:
        assert TRANSITIONS.next(state, ReflectorEvent.FAILED) is state
        assert TRANSITIONS.next(state, ReflectorEvent.EXPIRED) is not ReflectorState.WATCHING


def test_whatever_is_not_in_the_table_is_a_mistake() -> None:
    for pair in itertools.product(ReflectorState, ReflectorEvent):
        if pair not in TRANSITIONS.transitions:
            with pytest.raises(InvalidTransition):
                TRANSITIONS.next(*pair)
