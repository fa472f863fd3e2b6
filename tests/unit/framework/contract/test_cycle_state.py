from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from podium.framework.contract.cycle_state import CycleState


@dataclass
class Counters:
    values: dict[str, int] = field(default_factory=dict)

    def clone(self) -> Counters:
        return Counters(dict(self.values))


class Fixed:
    pass


def test_value_is_found_under_its_class():
    state = CycleState()
    fixed_value = Fixed()
    state.write(fixed_value)
    assert state.read(Fixed) is fixed_value
    assert state.find(Fixed) is fixed_value


def test_later_value_of_a_class_replaces_the_earlier():
    state = CycleState()
    state.write(Fixed())
    later = Fixed()
    state.write(later)
    assert state.read(Fixed) is later


def test_value_that_was_not_written_is_not_there():
    state = CycleState()
    assert state.find(Fixed) is None
    with pytest.raises(KeyError):
        state.read(Fixed)


def test_clone_copies_what_can_be_cloned_and_shares_the_rest():
    state = CycleState()
    state.write(Counters({"a": 1}))
    state.write(Fixed())
    state.skipped_filters, state.skipped_scores = frozenset({"F"}), frozenset({"S"})
    twin = state.clone()
    twin.read(Counters).values["a"] = 2
    twin.write(Fixed())
    assert state.read(Counters).values == {"a": 1}
    assert twin.read(Fixed) is not state.read(Fixed)
    assert state.clone().read(Fixed) is state.read(Fixed)
    assert (twin.skipped_filters, twin.skipped_scores) == ({"F"}, {"S"})
