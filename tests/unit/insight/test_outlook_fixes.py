"""The fixes that an outlook names for what never gets a node."""

from __future__ import annotations

from unittest import mock

import podium
from podium.insight import forecast
from podium.insight.outlook import Outlook, Verdict
from podium.lib.clock import ManualClock
from podium.lib.time_limit import TimeLimit
from tests.gang_manifests import UPSTREAM, group, members
from tests.manifests import node

AT = "2026-03-01T12:00:00Z"
OBJECTS = [node("n1", "4"), group(UPSTREAM, 3), *members(UPSTREAM, 3, cpu="9", scheduler="default-scheduler")]


class BusyClock(ManualClock):
    """A clock on which each look at it takes a second."""

    def monotonic(self) -> float:
        self.advance(1.0)
        return super().monotonic()


def texts(answer: Outlook) -> list[list[str]]:
    return [[edit.text for edit in entry.fixes.fixes[0].edits] for entry in answer.pods if entry.fixes is not None]


def test_the_fixes_of_a_gang_are_searched_once_for_all_its_members() -> None:
    with mock.patch.object(forecast, "fixes_for", wraps=forecast.fixes_for) as search:
        answer = podium.Cluster.load(OBJECTS).outlook("default/train-0", at=AT)
    assert search.call_count == 1
    assert [entry.verdict for entry in answer.pods] == [Verdict.NEVER] * 3
    assert texts(answer) == [["lower the request for cpu from 9 to 1333m, on each of 3 pods"]] * 3
    assert [entry.fixes.pod for entry in answer.pods if entry.fixes is not None] == [entry.pod for entry in answer.pods]


def test_a_search_that_a_limit_ends_says_so_and_a_later_question_has_its_own_time() -> None:
    cluster = podium.Cluster.load(OBJECTS)
    assert cluster.outlook("default/train-0", at=AT, fix=False).pods[0].as_dict().get("searching") is None
    limited = cluster.outlook("default/train-0", at=AT, limit=TimeLimit(BusyClock(), 0.5))
    assert [(entry.verdict, entry.is_searching) for entry in limited.pods] == [(Verdict.NEVER, True)] * 3
    assert "the search for what would help has not ended" in " ".join(limited.lines())
    assert limited.pods[0].as_dict()["searching"]
    outlook = cluster.outlook("default/train-0", at=AT)
    assert not outlook.pods[0].is_searching
    assert len(texts(outlook)) == 3
