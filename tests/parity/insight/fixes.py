"""Pods that fit nowhere, and whether what `podium why --fix` says of them holds for kube-scheduler's own code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from pathlib import Path

import orjson

from podium.engine.configurations import Configurations
from podium.insight.cases import CaseAnswers
from podium.insight.search import EDITS_MAX
from podium.plugins import IN_TREE
from podium.sandbox.errors import ApiError
from tests.parity.cross import recorder
from tests.parity.cross.drawing import Json
from tests.parity.insight.applied import edited
from tests.parity.insight.smaller_sets import EverySet


@dataclass(slots=True)
class Outcome:
    """Of all pods.

    Attributes:
        fixed: for how many there is a fix.
        sets: how many sets of edits kube-scheduler's code was asked about.
        searched: for how many pods every smaller set of edits was tried.
    """

    asked: int = 0
    fixed: int = 0
    sets: int = 0
    searched: int = 0
    wrong: list[str] = field(default_factory=list)


def infeasible(scenarios: Iterable[Json], count: int) -> Iterator[tuple[Json, Json]]:
    """The first scenarios whose pod fits nowhere, each with podium's fixes."""
    answers = CaseAnswers()
    answered = ((each, answers.answer_line(orjson.dumps(each), "")) for each in scenarios)
    return islice((pair for pair in answered if "fits" in pair[1] and not pair[1]["fits"]), count)


def check_fixes(asked: Iterable[tuple[Json, Json]], binary: Path, directory: Path, sets_max: int) -> Outcome:
    """Whether the edited pods fit where the fixes say, no part of a fix is enough, and no smaller set is.

    Args:
        sets_max: how many sets of edits are tried for one pod at most; pods with more are not searched; 0 for none.
    """
    outcome = Outcome()
    questions: list[Json] = []
    nodes: list[str | None] = []
    configurations = Configurations(IN_TREE)
    for scenario, answer in asked:
        outcome.asked += 1
        outcome.fixed += bool(answer["fixes"])
        for number, fix in enumerate(answer["fixes"]):
            for size in range(1, len(fix["edits"]) + 1):
                for index, part in enumerate(combinations(fix["edits"], size)):
                    try:
                        question = edited(scenario, part)
                    except ApiError:
                        continue  # a second toleration is appended to the first one
                    questions.append({**question, "id": f"{scenario['id']}y{number}y{size}y{index}"})
                    nodes.append(fix["node"] if size == len(fix["edits"]) else None)
        size = len(answer["fixes"][0]["edits"]) - 1 if answer["fixes"] else EDITS_MAX
        if sets_max and (every := EverySet(scenario, configurations)).count(size) <= sets_max:
            outcome.searched += 1
            if (found := every.enough(size)) is not None:
                outcome.wrong.append(f"{scenario['id']}: {len(found)} edits are enough: {found}")
    path = directory / "fixes.jsonl"
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in questions))
    outcome.sets = len(questions)
    for question, node, answer in zip(questions, nodes, recorder.answers(binary, path), strict=True):
        scores = answer.get("scores") or {}
        best = max((each["total"] for each in scores.values()), default=None)
        if node is None and answer.get("feasible"):
            outcome.wrong.append(f"{question['id']}: a part of the edits is enough")
        elif node is not None and (node not in scores or scores[node]["total"] != best):
            outcome.wrong.append(f"{question['id']}: not placed on {node}: {answer.get('message') or scores}")
    return outcome
