from dataclasses import replace

import pytest

from podium.cli.what_if_table import print_outcome
from podium.insight.trial import Blocked, Preemption, Refused
from podium.insight.what_if import Move, Outcome, Pending, Spread, Usage

UNCHANGED = Outcome(
    moved=(),
    placed=(),
    pending=(),
    still_pending=(),
    preempted=(),
    gone=(),
    blocked=(),
    refused=(),
    before={},
    after={},
    spread={},
)


@pytest.fixture
def table_lines(capsys):
    def lines(**fields):
        print_outcome(["drain n1", "scale"], replace(UNCHANGED, **fields))
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip()]

    return lines


def test_an_outcome_without_changes_shows_only_the_steps(table_lines):
    assert table_lines()[0] == "after: drain n1, then scale"
    assert not any("pod" in line and line.endswith(":") for line in table_lines())


def test_a_replacement_is_shown_with_the_pod_that_it_replaces(table_lines):
    move = Move("default/web-b", "n1", "n2", "default/web-a")
    assert table_lines(moved=[move])[1:3] == ["1 pod moved:", "default/web-b (replaces web-a): n1 → n2"]
    same_name = replace(move, replaces="default/web-b")
    assert "default/web-b: n1 → n2" in table_lines(moved=[same_name])


def test_pods_that_are_pending_for_the_same_reason_share_a_line(table_lines):
    pending = [Pending(f"default/web-{number}", "n1" if number == 0 else "", "no room") for number in range(12)]
    lines = table_lines(pending=[*pending, Pending("default/db-0", "", "no volume")])
    assert lines[1] == "13 pods left pending:"
    names = ", ".join(f"default/web-{number}" for number in range(1, 10))
    pending_text = " ".join(lines[2:])
    assert f"default/web-0 (was on n1), {names} and 2 more: no room" in pending_text
    assert "default/db-0: no volume" in pending_text


def test_pods_that_were_pending_before_share_one_line(table_lines):
    lines = table_lines(still_pending=[Pending(f"default/old-{number}", "", "whatever") for number in range(2)])
    assert lines[1] == "2 pods pending, as before: default/old-0, default/old-1"
    assert not any("whatever" in line for line in lines)


def test_deleted_blocked_refused_and_preempted_objects_are_named(table_lines):
    lines = table_lines(
        gone=["default/bare", "default/web-a"],
        moved=[Move("default/web-b", "n1", "n2", "default/web-a")],
        preempted=[Preemption("default/low", "n1", "default/high")],
        blocked=[Blocked("default/db-0", ("default/one", "default/two"))],
        refused=[Refused("Deployment", "default/web", "exceeded quota")],
    )
    start = lines.index("1 pod gone:")
    assert lines[start + 1] == "default/bare"
    assert "default/low on n1 for default/high" in lines
    assert "default/db-0: default/one, default/two" in lines
    assert "the API server refuses pods:" in lines
    assert "default/Deployment/web: exceeded quota" in lines


def test_long_lists_are_truncated(table_lines):
    lines = table_lines(placed=[Move(f"default/web-{number}", "", "n1") for number in range(60)])
    assert "60 pods placed:" in lines
    assert sum("→" in line for line in lines) == 50
    assert "and 10 more" in lines


def test_usage_is_shown_by_zone_with_a_dash_for_a_zone_that_was_missing(table_lines):
    lines = table_lines(before={"": {"cpu": Usage(1, 4)}}, after={"": {"cpu": Usage(2, 4)}, "b": {"cpu": Usage(1, 1)}})
    assert "all cpu 25.0 50.0" in lines
    assert "b cpu – 100.0" in lines


def test_the_spread_of_changed_workloads_is_shown(table_lines):
    lines = table_lines(spread={"default/ReplicaSet/web": (Spread({"a": 1}, 1), Spread({"a": 1, "b": 1}, 2))})
    assert lines[-2:] == [
        "spread of workloads that changed:",
        "default/ReplicaSet/web: 1 pod on 1 node (a 1) → 2 pods on 2 nodes (a 1, b 1)",
    ]
