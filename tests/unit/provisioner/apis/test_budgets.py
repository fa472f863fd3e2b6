"""Disruption budgets, sentence by sentence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.provisioner.apis.budgets import REASONS, UNLIMITED, DisruptionBudgets, DisruptionReason, PoolNode

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def budgets(*raw: object) -> DisruptionBudgets:
    parsed = DisruptionBudgets.parse(list(raw))
    assert not parsed.errors
    return parsed


def errors(*raw: object) -> list[str]:
    return [str(error) for error in DisruptionBudgets.parse(list(raw), "budgets").errors]


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("nodes", "node_count", "allowance"),
    [
        ("30%", 10, 3),
        ("10%", 3, 1),
        ("10%", 0, 0),
        ("0%", 10, 0),
        ("05%", 21, 2),
        ("100%", 7, 7),
        ("1%", 101, 2),
        ("5", 3, 5),
        ("0", 3, 0),
        ("007", 3, 7),
        (4, 3, 4),
        (str(UNLIMITED), 3, UNLIMITED),
    ],
)
def test_a_number_stands_for_itself_and_a_percentage_is_rounded_up(
    nodes: object, node_count: int, allowance: int
) -> None:
    assert budgets({"nodes": nodes}).nodes_allowed("Empty", node_count, NOON) == allowance


@given(st.integers(0, 100), st.integers(0, 20_000))
def test_a_percentage_is_exact(percent: int, node_count: int) -> None:
    assert budgets({"nodes": f"{percent}%"}).nodes_allowed("Empty", node_count, NOON) == ceil(
        Fraction(percent * node_count, 100)
    )


def test_the_least_of_all_budgets_is_allowed() -> None:
    assert budgets({"nodes": "5"}, {"nodes": "20%"}, {"nodes": "9"}).nodes_allowed("Empty", 10, NOON) == 2


def test_without_budgets_in_the_node_pool_the_default_is_ten_percent() -> None:
    assert DisruptionBudgets.parse(None).nodes_allowed("Drifted", 25, NOON) == 3
    assert budgets({}).nodes_allowed("Drifted", 25, NOON) == 3


def test_an_empty_list_of_budgets_allows_everything() -> None:
    assert budgets().nodes_allowed("Drifted", 25, NOON) == UNLIMITED


@pytest.mark.parametrize("reason", REASONS)
def test_a_budget_without_reasons_applies_to_every_reason(reason: DisruptionReason) -> None:
    assert budgets({"nodes": "2"}).nodes_allowed(reason, 10, NOON) == 2
    assert budgets({"nodes": "2", "reasons": None}).nodes_allowed(reason, 10, NOON) == 2


def test_a_budget_with_reasons_applies_to_these_only() -> None:
    parsed = budgets({"nodes": "0", "reasons": ["Drifted", "Unhealthy"]}, {"nodes": "4"})
    assert [parsed.nodes_allowed(reason, 10, NOON) for reason in REASONS] == [4, 4, 0, 0]


def test_a_budget_with_an_empty_list_of_reasons_applies_to_none() -> None:
    assert budgets({"nodes": "0", "reasons": []}).nodes_allowed("Empty", 10, NOON) == UNLIMITED


# ---------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("time", "active"),
    [
        (datetime(2026, 11, 23, 8, 59, 59, 999_999, UTC), False),
        (datetime(2026, 11, 23, 9, 0, tzinfo=UTC), True),
        (datetime(2026, 11, 23, 16, 59, 59, 999_999, UTC), True),
        (datetime(2026, 11, 23, 17, 0, tzinfo=UTC), False),
        (datetime(2026, 11, 22, 12, 0, tzinfo=UTC), False),
    ],
)
def test_a_budget_is_active_from_a_hit_until_its_duration_has_passed(time: datetime, active: bool) -> None:
    parsed = budgets({"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"})
    assert parsed.nodes_allowed("Empty", 10, time) == (0 if active else UNLIMITED)


def test_a_budget_that_is_not_active_leaves_the_others_in_force() -> None:
    parsed = budgets({"nodes": "0", "schedule": "@daily", "duration": "8h"}, {"nodes": "3"})
    assert parsed.nodes_allowed("Empty", 10, NOON) == 3


def test_a_later_hit_extends_the_time_in_which_a_budget_is_active() -> None:
    parsed = budgets({"nodes": "0", "schedule": "@hourly", "duration": "1h"})
    assert all(parsed.nodes_allowed("Empty", 1, NOON + timedelta(minutes=minutes)) == 0 for minutes in range(130))


def test_a_duration_of_zero_is_never_active() -> None:
    assert (
        budgets({"nodes": "0", "schedule": "* * * * *", "duration": "0m"}).nodes_allowed("Empty", 1, NOON) == UNLIMITED
    )


def test_a_schedule_that_never_hits_is_always_active() -> None:
    assert budgets({"nodes": "0", "schedule": "0 0 30 2 *", "duration": "1h"}).nodes_allowed("Empty", 1, NOON) == 0


def test_a_schedule_is_in_utc_whatever_the_time_zone_of_the_time() -> None:
    parsed = budgets({"nodes": "0", "schedule": "0 12 * * *", "duration": "1h"})
    tokyo = timezone(timedelta(hours=9))
    assert parsed.nodes_allowed("Empty", 1, NOON.astimezone(tokyo)) == 0
    assert parsed.nodes_allowed("Empty", 1, NOON.replace(tzinfo=tokyo)) == UNLIMITED


@pytest.mark.parametrize("duration", ["90m", "1h30m", "1h30m0s", "90m0s"])
def test_a_duration_is_hours_and_minutes(duration: str) -> None:
    [budget] = budgets({"nodes": "1", "schedule": "@daily", "duration": duration}).budgets
    assert budget.duration == timedelta(minutes=90)


@given(
    st.integers(0, 59),
    st.integers(0, 23),
    st.integers(0, 3000),
    st.datetimes(datetime(2025, 1, 1), datetime(2029, 1, 1)),
)
def test_activity_agrees_with_a_walk_back_to_the_last_hit(
    minute: int, hour: int, length: int, moment: datetime
) -> None:
    time = moment.replace(tzinfo=UTC)
    last = time.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if last > time:
        last -= timedelta(days=1)
    parsed = budgets({"nodes": "0", "schedule": f"{minute} {hour} * * *", "duration": f"{length}m"})
    assert (parsed.nodes_allowed("Empty", 1, time) == 0) == (time - last < timedelta(minutes=length))


# ---------------------------------------------------------------- what is left


def test_what_remains_is_what_is_allowed_without_the_nodes_that_are_being_disrupted() -> None:
    nodes = [PoolNode(marked_for_deletion=True), PoolNode(rebooting=True), PoolNode(ready=False), *[PoolNode()] * 7]
    parsed = budgets({"nodes": "50%"})
    assert parsed.remaining("Drifted", nodes, NOON) == 2
    assert parsed.remaining("Unhealthy", nodes, NOON) == 3


def test_what_remains_is_never_negative() -> None:
    assert budgets({"nodes": "1"}).remaining("Empty", [PoolNode(ready=False)] * 3, NOON) == 0


def test_a_node_is_subtracted_once() -> None:
    node = PoolNode(ready=False, rebooting=True, marked_for_deletion=True)
    assert budgets({"nodes": "3"}).remaining("Empty", [node], NOON) == 2


@pytest.mark.parametrize(
    ("node", "counts"),
    [
        (PoolNode(), True),
        (PoolNode(ready=False), True),
        (PoolNode(marked_for_deletion=True), True),
        (PoolNode(initialized=False, rebooting=True), True),
        (PoolNode(initialized=False), False),
        (PoolNode(managed=False), False),
        (PoolNode(managed=False, rebooting=True), False),
        (PoolNode(instance_terminating=True), False),
        (PoolNode(instance_terminating=True, rebooting=True), False),
    ],
)
def test_managed_nodes_are_counted_from_initialization_to_termination(node: PoolNode, counts: bool) -> None:
    assert node.is_counted == counts
    assert budgets({"nodes": "100%"}).remaining("Unhealthy", [node, PoolNode()], NOON) == (
        1 + counts - (counts and node.consumes("Unhealthy"))
    )


def test_a_node_that_is_not_counted_consumes_nothing() -> None:
    assert budgets({"nodes": "2"}).remaining("Empty", [PoolNode(initialized=False, ready=False)], NOON) == 2


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize(
    "raw",
    [
        {"nodes": "many", "reasons": ["Drifted"]},
        {"nodes": "5", "schedule": "whenever", "duration": "1h", "reasons": ["Drifted"]},
        {"nodes": "5", "schedule": "@daily"},
    ],
)
def test_one_invalid_budget_forbids_every_disruption(reason: DisruptionReason, raw: object) -> None:
    parsed = DisruptionBudgets.parse([{"nodes": "5"}, raw])
    assert parsed.nodes_allowed(reason, 10, NOON) == 0
    assert parsed.remaining(reason, [PoolNode()] * 10, NOON) == 0


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"nodes": "101%"}, 'budgets[0].nodes: must be a number of nodes or a percentage from 0% to 100%, not "101%"'),
        ({"nodes": "-1"}, 'budgets[0].nodes: must be a number of nodes or a percentage from 0% to 100%, not "-1"'),
        ({"nodes": True}, "budgets[0].nodes: must be a number of nodes or a percentage from 0% to 100%, not True"),
        ({"nodes": 1.5}, "budgets[0].nodes: must be a number of nodes or a percentage from 0% to 100%, not 1.5"),
        ({"nodes": "٣"}, 'budgets[0].nodes: must be a number of nodes or a percentage from 0% to 100%, not "٣"'),
        ({"nodes": "2147483648"}, "budgets[0].nodes: must not be more than 2147483647"),
        ({"nodes": "9" * 5000}, "budgets[0].nodes: must not be more than 2147483647"),
        ({"reasons": "Empty"}, "budgets[0].reasons: must be a list"),
        (
            {"reasons": ["Empty", "empty"]},
            'budgets[0].reasons[1]: "empty" is not one of Underutilized, Empty, Drifted, Unhealthy',
        ),
        ({"reasons": [["Empty"]]}, "budgets[0].reasons[0]: ['Empty'] is not one of"),
        ({"schedule": "* * * *", "duration": "1h"}, "budgets[0].schedule: expected 5 fields, found 4"),
        ({"schedule": 5, "duration": "1h"}, "budgets[0].schedule: must be a cron schedule, not 5"),
        (
            {"schedule": "@daily", "duration": "1h5s"},
            "budgets[0].duration: must be hours and minutes such as 1h30m, not",
        ),
        (
            {"schedule": "@daily", "duration": "-1h"},
            "budgets[0].duration: must be hours and minutes such as 1h30m, not",
        ),
        (
            {"schedule": "@daily", "duration": 60},
            "budgets[0].duration: must be hours and minutes such as 1h30m, not 60",
        ),
        ({"schedule": "@daily", "duration": "9999999h"}, 'budgets[0].duration: time: invalid duration "9999999h"'),
        ({"schedule": "@daily"}, "budgets[0]: schedule and duration must be set together"),
        ({"duration": "1h"}, "budgets[0]: schedule and duration must be set together"),
        ("10%", "budgets[0]: must be an object"),
    ],
)
def test_an_error_names_the_field(raw: object, error: str) -> None:
    [text] = errors(raw)
    assert text.startswith(error)


def test_every_error_is_reported() -> None:
    assert [text.partition(":")[0] for text in errors({"nodes": "x", "schedule": "y"}, {}, {"reasons": ["z"]})] == [
        "budgets[0].nodes",
        "budgets[0].schedule",
        "budgets[0]",
        "budgets[2].reasons[0]",
    ]


def test_budgets_that_are_no_list_are_an_error() -> None:
    parsed = DisruptionBudgets.parse({"nodes": "1"})
    assert [str(error) for error in parsed.errors] == ["spec.disruption.budgets: must be a list"]
    assert parsed.nodes_allowed("Empty", 10, NOON) == 0
