"""NodeMetadata: numbers and times in labels and annotations, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.lib.clock import ManualClock
from podium.objects.core import Node
from podium.objects.times import parse_time
from podium.plugins.contrib.node_metadata import NodeMetadata
from podium.testing import check_contract
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import RecordingHandle, normalized, scored, scored_one_by_one

KEY = "example.com/rank"
NUMBERS = {
    "metadataKey": KEY,
    "metadataSource": "Label",
    "metadataType": "Number",
    "scoringStrategy": "Highest",
}
TIMES = {**NUMBERS, "metadataSource": "Annotation", "metadataType": "Timestamp", "scoringStrategy": "Newest"}
MISSING = -(2**63)
NOW = "2026-01-02T00:00:00Z"


def nodes_with(values: dict[str, str | None]) -> list[Node]:
    kept = {name: {} if value is None else {KEY: value} for name, value in values.items()}
    return [node(name, labels=value, metadata={"annotations": value}) for name, value in kept.items()]


def raw(values: dict[str, str | None], args: dict[str, str]) -> dict[str, int]:
    snapshot, plugin = made(values, args)
    table = scored(plugin, pod(), snapshot)
    assert scored_one_by_one(plugin, pod(), snapshot) == table
    return table


def final(values: dict[str, str | None], args: dict[str, str]) -> dict[str, int]:
    snapshot, plugin = made(values, args)
    return normalized(plugin, pod(), snapshot)


def made(values: dict[str, str | None], args: dict[str, str]) -> tuple[Any, NodeMetadata]:
    snapshot = snapshot_of(*nodes_with(values))
    handle: Any = RecordingHandle(snapshot, clock=ManualClock(parse_time(NOW)))
    return snapshot, NodeMetadata(typed_args(NodeMetadata, args), handle)


@pytest.mark.parametrize("args", [NUMBERS, TIMES, {**NUMBERS, "scoringStrategy": "Lowest", "metadataKey": "disk"}])
def test_it_keeps_the_contract(args: dict[str, str]) -> None:
    check_contract(NodeMetadata, args)


@pytest.mark.parametrize("source", ["Label", "Annotation"])
def test_the_highest_number_wins_and_a_missing_one_gets_nothing(source: str) -> None:
    args = {**NUMBERS, "metadataSource": source}
    assert final({"a": "1", "b": "2", "c": "5", "d": None, "e": "many"}, args) == {
        "a": 1,
        "b": 25,
        "c": 100,
        "d": 0,
        "e": 0,
    }


def test_lowest_turns_the_order_around() -> None:
    assert final({"a": "1", "b": "5"}, {**NUMBERS, "scoringStrategy": "Lowest"}) == {"a": 100, "b": 1}


def test_fractions_are_lost_before_the_comparison() -> None:
    assert final({"a": "0.12", "b": "0.98", "c": "-0.5"}, NUMBERS) == {"a": 1, "b": 1, "c": 1}


def test_no_value_at_all_gives_every_node_nothing() -> None:
    assert final({"a": None, "b": "x"}, NUMBERS) == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e3", 1000),
        ("-7.9", -7),
        ("+.5e1", 5),
        ("1_000", 1000),
        ("0x1.8p3", 12),
        ("0X_Fp0", 15),
        ("9223372036854774784", 9223372036854774784),
        ("9223372036854775808", MISSING),
        ("1e400", MISSING),
        ("NaN", MISSING),
        ("Inf", MISSING),
        ("-infinity", MISSING),
        (" 1", MISSING),
        ("1__0", MISSING),
        ("0x10", MISSING),
        ("٣", MISSING),
        ("", MISSING),
    ],
)
def test_numbers_are_those_of_go(text: str, number: int) -> None:
    assert raw({"a": text}, {**NUMBERS, "metadataSource": "Annotation"}) == {"a": number}


def test_a_number_that_is_too_large_counts_as_missing_for_lowest_too() -> None:
    assert raw({"a": "1e30"}, {**NUMBERS, "scoringStrategy": "Lowest"}) == {"a": MISSING}


def test_a_range_that_upstream_overflows_at_is_scaled_exactly() -> None:
    assert final({"a": "-9e18", "b": "0", "c": "9e18"}, NUMBERS) == {"a": 1, "b": 50, "c": 100}


def test_newest_and_oldest_go_by_age_also_in_the_future() -> None:
    values: dict[str, str | None] = {
        "old": "2026-01-01T00:00:00Z",
        "new": "2026-01-01T23:00:00.5Z",
        "future": "2026-01-02T01:00:00Z",
        "odd": "yesterday",
    }
    assert raw(values, TIMES) == {"old": -86_400, "new": -3_599, "future": 3_600, "odd": MISSING}
    oldest = {**TIMES, "scoringStrategy": "Oldest"}
    assert raw(values, oldest) == {"old": 86_400, "new": 3_599, "future": -3_600, "odd": MISSING}


def test_ages_end_at_292_years() -> None:
    ages = raw({"a": "0001-01-01T00:00:00Z", "b": "9999-01-01T00:00:00Z"}, {**TIMES, "scoringStrategy": "Oldest"})
    assert ages == {"a": 9_223_372_036, "b": -9_223_372_036}


def test_the_layout_is_one_of_go() -> None:
    assert raw({"a": "01 Jan 26"}, {**TIMES, "timestampFormat": "02 Jan 06"}) == {"a": -86_400}


def test_only_times_depend_on_more_than_the_node() -> None:
    assert made({}, NUMBERS)[1].score_scope(pod().spec) is Scope.NODE
    assert made({}, TIMES)[1].score_scope(pod().spec) is Scope.CLUSTER
    assert made({}, TIMES)[1].events_to_register() == ()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"metadataKey": ""}, 'invalid NodeMetadataArgs: metadataKey: Invalid value: "": metadataKey cannot be empty'),
        (
            {"metadataSource": "Taint"},
            'metadataSource: Invalid value: "Taint": metadataSource must be either "Label" or',
        ),
        ({"metadataType": "Text"}, 'metadataType: Invalid value: "Text": metadataType must be either "Number" or'),
        ({"scoringStrategy": ""}, 'scoringStrategy: Invalid value: "": scoringStrategy must be one of "Highest", '),
        (
            {"scoringStrategy": "Oldest"},
            'value: "Oldest": scoringStrategy "Newest" and "Oldest" are only valid for metadataType "Timestamp"',
        ),
        (
            {"metadataType": "Timestamp"},
            'scoringStrategy "Highest" and "Lowest" are only valid for metadataType "Number"',
        ),
        (
            {"metadataKey": "", "metadataSource": "x"},
            '[metadataKey: Invalid value: "": metadataKey cannot be empty, metadataSource: Invalid value: "x": ',
        ),
        ({"kind": "NodeArgs"}, "want args to be of type NodeMetadataArgs, got NodeArgs"),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "is no longer served; write kubescheduler.config"),
        ({"weight": 1}, "args.weight: unknown field"),
    ],
)
def test_args_that_upstream_refuses_are_refused_in_its_words(change: dict[str, Any], error: str) -> None:
    with pytest.raises(PluginError) as raised:
        typed_args(NodeMetadata, {**NUMBERS, **change})
    assert error.lower() in str(raised.value).lower()
