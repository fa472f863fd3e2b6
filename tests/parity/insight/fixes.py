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
from tests.parity.insight.applied import edit_scenario
from tests.parity.insight.smaller_sets import EverySet


@dataclass(slots=True)
class Outcome:
    """Of all pods.

    Attributes:
        fixed: for how many there is a fix.
        sets: how many sets of edits kube-scheduler's code was asked about.
        searched: for how many pods every smaller set of edits was tried.
    """

    question_count: int = 0
    fixed_count: int = 0
    sets: int = 0
    searched: int = 0
    wrong: list[str] = field(default_factory=list)


def infeasible(scenarios: Iterable[Json], count: int) -> Iterator[tuple[Json, Json]]:
    """The first scenarios whose pod fits nowhere, each with podium's fixes."""
    answers = CaseAnswers()
    pairs = ((scenario, answers.answer_line(orjson.dumps(scenario), "")) for scenario in scenarios)
    return islice((pair for pair in pairs if "fits" in pair[1] and not pair[1]["fits"]), count)


def check_fixes(pairs: Iterable[tuple[Json, Json]], binary: Path, directory: Path, sets_max: int) -> Outcome:
    """Check that the edited pods fit where the fixes say, no part of a fix is enough, and no smaller set is.

    Args:
        sets_max: how many sets of edits are tried for one pod at most; pods with more are not searched; 0 for none.
    """
    outcome = Outcome()
    questions: list[Json] = []
    nodes: list[str | None] = []
    configurations = Configurations(IN_TREE)
    for scenario, answer in pairs:
        outcome.question_count += 1
        outcome.fixed_count += bool(answer["fixes"])
        for number, fix in enumerate(answer["fixes"]):
            for size in range(1, len(fix["edits"]) + 1):
                for index, part in enumerate(combinations(fix["edits"], size)):
                    try:
                        question = edit_scenario(scenario, part)
                    except ApiError:
                        continue  # a second toleration is appended to the first one
                    questions.append({**question, "id": f"{scenario['id']}y{number}y{size}y{index}"})
                    nodes.append(fix["node"] if size == len(fix["edits"]) else None)
        size = len(answer["fixes"][0]["edits"]) - 1 if answer["fixes"] else EDITS_MAX
        if sets_max and (every := EverySet(scenario, configurations)).count(size) <= sets_max:
            outcome.searched += 1
            if (smaller_edits := every.enough(size)) is not None:
                outcome.wrong.append(f"{scenario['id']}: {len(smaller_edits)} edits are enough: {smaller_edits}")
    path = directory / "fixes.jsonl"
    path.write_bytes(b"".join(orjson.dumps(question) + b"\n" for question in questions))
    outcome.sets = len(questions)
    for question, node, answer in zip(questions, nodes, recorder.answers(binary, path), strict=True):
        scores = answer.get("scores") or {}
        best = max((score["total"] for score in scores.values()), default=None)
        if node is None and answer.get("feasible"):
            outcome.wrong.append(f"{question['id']}: a part of the edits is enough")
        elif node is not None and (node not in scores or scores[node]["total"] != best):
            outcome.wrong.append(f"{question['id']}: not placed on {node}: {answer.get('message') or scores}")
    return outcome
