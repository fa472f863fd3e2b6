"""A small trial in the ordinary suite; `python -m tests.estimator_chaos` is the large one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.estimator_chaos.fleet import Plan, try_fleet

pytestmark = pytest.mark.anyio


async def test_answers_are_right_or_missing_while_members_are_in_trouble(anyio_backend: object, tmp_path: Path) -> None:
    plan = Plan(questions=300, members=3, karmada_members=0, askers=10, timeout_s=1.0, seed=5)
    report = await try_fleet(plan, tmp_path)
    assert report.faults == []
    assert report.troubles.total() >= plan.members
    assert set(report.answer_counts) == {f"member-{number}" for number in range(plan.members)}
