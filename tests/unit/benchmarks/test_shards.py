"""Tests for the figures of bursts that members of a group divide."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import shards
from benchmarks.shards import DividedBurst

ONE = DividedBurst(
    members=1,
    nodes=5_000,
    waits_s=[number / 1_000 for number in range(1, 5_001)],
    cpu_s=[2.5],
    conflicts=0,
    passed_on=0,
    compared_count=200,
    elsewhere_count=2,
    server_cores=0.3,
    others_cores=0.0,
)
THREE = replace(
    ONE,
    members=3,
    waits_s=[wait_s / 2.6 for wait_s in ONE.waits_s],
    cpu_s=[0.8, 0.9, 0.96],
    passed_on=5,
    elsewhere_count=30,
)


def test_the_busiest_member_is_the_limit() -> None:
    assert (ONE.pods_per_s, ONE.pods_per_cpu_s) == (pytest.approx(1_000.0), pytest.approx(2_000.0))
    assert THREE.pods_per_cpu_s == pytest.approx(5_000 / 0.96)


def test_shares_are_of_the_pods_of_the_burst_and_of_those_compared() -> None:
    (figures,) = shards.medians([THREE, THREE, replace(THREE, conflicts=10)])
    assert (figures.passed_on_share, figures.elsewhere_share, figures.conflict_share) == (0.001, 0.15, 0.002)
    assert figures.cpu_ms_per_pod == pytest.approx(0.532)


def test_the_gain_of_three_members_and_conflicts_are_checked() -> None:
    checks = list(shards.checks(shards.medians([ONE, THREE])))
    assert [check.is_met for check in checks] == [True] * 4
    slower = replace(THREE, waits_s=ONE.waits_s, cpu_s=[1.0, 1.0, 1.5], conflicts=10)
    assert [check.is_met for check in shards.checks(shards.medians([ONE, slower]))] == [False, False, True, False]


def test_a_note_says_what_too_few_cores_limit() -> None:
    assert shards.notes(shards.medians([ONE, THREE]), cores=4) == []
    (note,) = shards.notes(shards.medians([ONE, THREE]), cores=2)
    assert note.startswith("3 members and the light server share 2 cores")
    assert "measure again" in shards.notes(shards.medians([replace(ONE, others_cores=0.5)]), cores=2)[0]


def test_the_table_has_a_row_for_each_number_of_members() -> None:
    assert shards.table(shards.medians([ONE, ONE, THREE])).row_count == 2
