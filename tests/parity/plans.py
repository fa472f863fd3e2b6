"""What Karpenter 1.15.0 planned, beside podium's plans.

Absent and empty mean the same; everything but instance types comes in any order; quantities in texts are compared by
value, the parts of a text in any order, and the number of a `hostname-placeholder` not at all. A scenario
may admit other answers (`also`) and other texts (`texts`).
"""

from __future__ import annotations

import functools
import gzip
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from podium.objects.quantity import parse
from podium.provisioner.reports.cases import Cases
from tests.parity.recorded import DATA, without_empty

PLANS = DATA / "karpenter-plans-1.15.0.jsonl.gz"
TEXTS = frozenset({"errors", "ignored", "skipped", "blocked", "unfit", "unschedulable"})

_PLACEHOLDER = re.compile(r"hostname-placeholder-\d+")
_RESOURCES = re.compile(r'\{"[^{}]*"\}')
_PREFIX = re.compile(r"(incompatible (?:volume )?requirements), ")


@functools.cache
def rows() -> tuple[dict[str, Any], ...]:
    """Every line of the file."""
    with gzip.open(PLANS, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


class _Head(msgspec.Struct):
    id: str = ""
    kind: str = ""


def names(kind: str) -> list[str]:
    """The ids of the questions of a kind, without reading the questions, which few workers ask."""
    decoder = msgspec.json.Decoder(_Head)
    with gzip.open(PLANS) as lines:
        return [head.id for head in map(decoder.decode, lines) if head.kind == kind]


def rows_with_answers(kind: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every question of a kind, with podium's answer."""
    cases = Cases()
    for row in rows():
        if row.get("kind", kind) == kind:
            answer = cases.answer(row)
            if answer is not None:
                yield row, answer


def differences_of(row: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Where an answer differs from the nearest one that the scenario admits, each by its path."""
    own = _comparable(without_empty({key: value for key, value in answer.items() if key != "id"}))
    texts = row.get("texts", {})
    difference_lists = [
        [
            f"{row['id']}: {path}: expected {expected_value}, got {answer_value}"
            for path, expected_value, answer_value in _differing(_comparable(without_empty(expected_value)), own, "")
            if answer_value not in [_text(text) for text in texts.get(path, ())]
        ]
        for expected_value in (row["expect"], *row.get("also", ()))
    ]
    return min(difference_lists, key=len)


def _comparable(value: Any, key: str = "") -> Any:
    """An answer in an order and with texts in which it can be compared."""
    if isinstance(value, dict):
        if key in TEXTS:
            return {name: _text(text) for name, text in value.items()}
        return {name: _comparable(member, name) for name, member in value.items()}
    if isinstance(value, list):
        items = [_comparable(member) for member in value]
        return items if key == "types" else sorted(items, key=_rank)
    return _text(value) if key in ("reason", "validation") else value


def _rank(item: Any) -> Any:
    """Return the sort key of items that have no order: texts, NodeClaims, requirements and candidates."""
    if isinstance(item, str):
        return item
    if "key" in item:
        return item["key"], item["operator"]
    return item.get("pods", [""]), item.get("pool", ""), item.get("node", "")


def _text(text: str) -> str:
    plain = _RESOURCES.sub(_resources, _PLACEHOLDER.sub("hostname-placeholder", text))
    return "; ".join(sorted(_PREFIX.sub(r"\1; ", plain).split("; ")))


def _resources(match: re.Match[str]) -> str:
    amounts = json.loads(match[0])
    return json.dumps({name: str(parse(amount).milli_value) for name, amount in sorted(amounts.items())})


def _differing(expected_value: Any, answer_value: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(expected_value, dict) and isinstance(answer_value, dict):
        for key in sorted(expected_value.keys() | answer_value.keys()):
            yield from _differing(expected_value.get(key), answer_value.get(key), f"{path}.{key}" if path else key)
    elif (
        isinstance(expected_value, list) and isinstance(answer_value, list) and len(expected_value) == len(answer_value)
    ):
        for index, (expected_item, answer_item) in enumerate(zip(expected_value, answer_value, strict=True)):
            yield from _differing(expected_item, answer_item, f"{path}[{index}]")
    elif isinstance(expected_value, float) and isinstance(answer_value, float | int):
        if not math.isclose(expected_value, answer_value, rel_tol=1e-9, abs_tol=1e-9):
            yield path, expected_value, answer_value
    elif expected_value != answer_value:
        yield path, expected_value, answer_value
