from __future__ import annotations

from podium.cluster.pod_changes import PodChange, PodChanges, undone
from tests.builders import pod


def change(number: int) -> PodChange:
    return PodChange(number, pod(f"p{number}"), 1)


def test_changes_since_a_number_are_those_that_came_after_it() -> None:
    changes = PodChanges()
    changes.append(change(0))
    since = changes.end
    changes.append(change(1))
    changes.append(change(2))
    assert since == 1
    assert [each.row for each in changes.since(since) or ()] == [1, 2]
    assert list(changes.since(changes.end) or ()) == []


def test_only_the_latest_changes_are_kept_and_what_is_lost_is_said_so() -> None:
    changes = PodChanges(kept=2)
    for number in range(10):
        changes.append(change(number))
    assert changes.end == 10
    assert changes.since(0) is None
    assert [each.row for each in changes.since(8) or ()] == [8, 9]


def test_undone_takes_back_the_latest_first() -> None:
    assert [(each.row, each.sign) for each in undone([change(0), change(1)])] == [(1, -1), (0, -1)]
