"""Recorded answers of scheduler-plugins (2026-08, Kubernetes 1.35.4) about its own plugins: podium answers the same."""

from __future__ import annotations

import functools
import gzip
import json
from typing import Any

import pytest

from podium.objects.times import parse_time
from tests.parity.policies.comparison import comparable, evaluator
from tests.parity.recorded import DATA, differences

CATEGORIES = (
    "quota",
    "numa",
    "allocatable",
    "toleration",
    "metadata",
    "podstate",
    "qos",
    "network",
    "load-target",
    "load-variation",
    "load-risk",
    "load-peaks",
)
RECORDED_S = parse_time("2026-08-16T00:00:00Z")


@functools.cache
def questions() -> dict[str, list[tuple[dict[str, Any], bytes]]]:
    """Every recorded question with its line, by category."""
    by_category: dict[str, list[tuple[dict[str, Any], bytes]]] = {}
    with gzip.open(DATA / "policies.jsonl.gz") as lines:
        for line in lines:
            question = json.loads(line)
            by_category.setdefault(question["id"].rsplit("-", 2)[0], []).append((question, line))
    return by_category


@pytest.mark.parametrize("category", CATEGORIES)
def test_podium_answers_as_scheduler_plugins(category):
    answers = evaluator(RECORDED_S)
    for question, line in questions()[category]:
        answer = comparable(answers.answer_line(line, question["id"]))
        assert list(differences(comparable(question["expect"]), answer)) == [], question["id"]
