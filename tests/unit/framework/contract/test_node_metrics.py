"""The reports of one source: which one counts, its age, and what is said about it."""

from __future__ import annotations

import msgspec

from podium.framework.contract.node_metrics import NodeMetrics
from podium.lib.clock import ManualClock
from podium.objects.meta import ObjectMeta
from podium.objects.node_metrics import ANY_SOURCE, WATCHER, MetricsSource
from podium.testing import node_metrics

SOURCE = MetricsSource(WATCHER, "http://w")
NAME = SOURCE.name


def report(name=NAME, fetched_s=None):
    return msgspec.structs.replace(node_metrics({}), metadata=ObjectMeta(name=name), fetched_s=fetched_s)


def reading(*reports):
    clock = ManualClock()
    return NodeMetrics(SOURCE, {item.metadata.name: item for item in reports}.get, clock), clock.now()


def test_its_own_report_counts_before_that_of_any_source():
    own, general = report(), report(ANY_SOURCE)
    assert reading(own, general, report("other"))[0].report is own
    assert reading(general)[0].report is general
    assert reading(report("other"))[0].report is None


def test_age_counts_from_the_time_of_the_reading_and_is_never_negative():
    assert reading()[0].age_s is None
    assert reading(report())[0].age_s is None
    now_s = ManualClock().now()
    assert reading(report(fetched_s=now_s - 12))[0].age_s == 12
    assert reading(report(fetched_s=now_s + 5))[0].age_s == 0


def test_stale_is_what_is_missing_or_old():
    now_s = ManualClock().now()
    assert reading()[0].is_stale(60)
    assert not reading(report())[0].is_stale(60)
    assert not reading(report(fetched_s=now_s - 60))[0].is_stale(60)
    assert reading(report(fetched_s=now_s - 61))[0].is_stale(60)


def test_note_says_whether_the_metrics_decide_and_how_old_they_are():
    now_s = ManualClock().now()
    assert reading()[0].note(None) == f"no metrics from {NAME} are known here, so it takes no part"
    assert reading(report())[0].note(60) == f"it decides by the metrics from {NAME}"
    old, _ = reading(report(fetched_s=now_s - 90))
    assert old.note(None) == f"it decides by the metrics from {NAME}, which were read 90 s ago"
    assert old.note(60) == (f"it takes no part: the metrics from {NAME} are older than 60 s, which were read 90 s ago")
