"""Recorded questions to Karmada's scheduler, and where podium's answers differ."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from podium.estimator.division.cases import answer_case, read_case

CASES: Final = Path(__file__).parent / "data" / "karmada-divide-1.18.2.jsonl.gz"
# It says that upstream leaves the message to the order of a map.
_NOT_ANSWERS: Final = frozenset({"random_reason"})


def rows() -> list[dict[str, Any]]:
    """Return the recorded questions with their answers."""
    with gzip.open(CASES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def category(row: dict[str, Any]) -> str:
    """Return the kind of the question."""
    return str(row["id"]).rsplit("-", 2)[0]


def differences(row: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield each field of the recorded answer that podium answers otherwise, with both values."""
    answer = answer_case(read_case(json.dumps(row).encode()))
    for name, value in row["expect"].items():
        if name not in _NOT_ANSWERS and answer.get(name) != value:
            yield name, value, answer.get(name)
