from __future__ import annotations

from podium.lib.change_log import ChangeLog


def test_changes_since_a_number_are_those_that_came_after_it() -> None:
    changes = ChangeLog[str]()
    changes.append("a")
    since = changes.end
    changes.append("b")
    changes.append("c")
    assert since == 1
    assert changes.since(since) == ["b", "c"]
    assert changes.since(changes.end) == []


def test_only_the_latest_changes_are_kept_and_lost_ones_are_reported() -> None:
    changes = ChangeLog[int](count_min=2)
    for number in range(10):
        changes.append(number)
    assert changes.end == 10
    assert changes.since(0) is None
    assert changes.since(8) == [8, 9]
