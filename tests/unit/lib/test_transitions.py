from __future__ import annotations

from podium.lib.transitions import Transition, Transitions


def test_transitions_are_listed_oldest_first() -> None:
    transitions = Transitions()
    transitions.record(1.0, "Add", "gone", "gated", "Gates")
    transitions.record(2.5, "Update", "gated", "active")
    assert transitions.entries == (
        Transition(1.0, "Add", "gone", "gated", "Gates"),
        Transition(2.5, "Update", "gated", "active"),
    )
    assert str(transitions).splitlines() == ["1.000 Add: gone -> gated (Gates)", "2.500 Update: gated -> active"]


def test_only_the_last_transitions_are_kept() -> None:
    transitions = Transitions()
    for number in range(Transitions.LENGTH + 3):
        transitions.record(float(number), "Tick", "", "")
    assert [entry.at_s for entry in transitions.entries] == [
        float(number) for number in range(3, Transitions.LENGTH + 3)
    ]


def test_there_are_none_at_first() -> None:
    assert (Transitions().entries, str(Transitions())) == ((), "")
