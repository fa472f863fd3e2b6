"""Fixes and capacities hold for kube-scheduler's own code, not only for podium's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from podium.insight.cases import CaseAnswers
from podium.insight.cluster import Cluster
from podium.sandbox.errors import ApiError
from podium.sandbox.patches import json_patch
from tests.control_plane.requirement import built_or_skipped
from tests.parity.cross import recorder
from tests.parity.recorded import SCENARIOS, category_of, scenarios

Json = dict[str, Any]

CAPACITIES = 60
COPIES_MAX = 150


@pytest.fixture(scope="module")
def recorder_binary(pytestconfig: pytest.Config) -> Path:
    """kube-scheduler's own packages; built on first use."""
    return built_or_skipped(pytestconfig, "recorder", recorder.obtain)


def infeasible() -> Iterator[tuple[Json, Json]]:
    """The recorded scenarios whose pod fits nowhere, each with podium's fixes."""
    answers = CaseAnswers()
    for scenario, line in scenarios(SCENARIOS):
        if not scenario["expect"].get("feasible"):
            yield scenario, answers.answer_line(line, scenario["id"])


def edited(scenario: Json, edits: Iterable[Json]) -> Json:
    """The scenario after the edits."""
    objects, pod = list(scenario["objects"]), scenario["pod"]
    for edit in edits:
        wanted = edit["object"]

        def is_meant(item: Json, wanted: Json = wanted) -> bool:
            meta = item["metadata"]
            known = item["kind"], meta.get("namespace", "") if wanted["namespace"] else "", meta["name"]
            return known == (wanted["kind"], wanted["namespace"], wanted["name"])

        if "manifest" in edit:
            objects.append(edit["manifest"])
        elif edit["kind"] == "evict":
            objects = [each for each in objects if not is_meant(each)]
        elif is_meant(pod):
            pod = json_patch(pod, edit["patch"])
        else:
            objects = [json_patch(each, edit["patch"]) if is_meant(each) else each for each in objects]
    return {**scenario, "objects": objects, "pod": pod}


def answered(questions: Iterable[Json], binary: Path, path: Path) -> Iterator[Json]:
    """What kube-scheduler's code answers."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in questions))
    return recorder.answers(binary, path)


@pytest.mark.control_plane
def test_edited_pods_fit_where_fixes_say_and_no_part_of_the_edits_is_enough(
    recorder_binary: Path, tmp_path: Path
) -> None:
    whole: list[tuple[Json, Json]] = []
    parts: list[Json] = []
    fixed = 0
    for scenario, answer in infeasible():
        assert not answer["fits"]
        fixed += bool(answer["fixes"])
        for number, fix in enumerate(answer["fixes"]):
            name = f"{category_of(scenario['id'])}-{scenario['id'].rpartition('-')[2]}x{number}"
            whole.append((fix, {**edited(scenario, fix["edits"]), "id": name}))
            for size in range(1, len(fix["edits"])):
                for index, part in enumerate(combinations(fix["edits"], size)):
                    try:
                        parts.append({**edited(scenario, part), "id": f"{name}y{size}z{index}"})
                    except ApiError:
                        continue  # a second toleration is appended to the first one
    assert fixed >= 235
    assert len(whole) > 500
    for (fix, question), answer in zip(
        whole, answered((each for _, each in whole), recorder_binary, tmp_path / "whole"), strict=True
    ):
        scores = answer["scores"]
        best = max(each["total"] for each in scores.values())
        assert scores[fix["node"]]["total"] == best, question["id"]
    for answer in answered(parts, recorder_binary, tmp_path / "parts"):
        assert not answer.get("feasible"), answer["id"]


@pytest.mark.control_plane
def test_as_many_copies_are_placed_as_the_capacity_says(recorder_binary: Path, tmp_path: Path) -> None:
    questions: list[Json] = []
    expected: list[int] = []
    for scenario, _ in scenarios(SCENARIOS)[:: 930 // (CAPACITIES * 2)]:
        if scenario["config"] or scenario["pod"]["spec"].get("nodeName"):
            continue
        pod = {**scenario["pod"], "spec": {**scenario["pod"]["spec"], "preemptionPolicy": "Never"}}
        pod["metadata"] = {key: each for key, each in pod["metadata"].items() if key != "uid"}
        fits = Cluster.load(scenario["objects"]).capacity(pod, most=COPIES_MAX).fits
        if fits == COPIES_MAX:
            continue
        meta = pod["metadata"]
        copies = [
            {**pod, "metadata": {**meta, "name": f"copy-{number}", "uid": f"copy-{number}"}, "status": {}}
            for number in range(fits + 1)
        ]
        questions.append({"id": f"sequence-{len(questions)}", "objects": scenario["objects"], "pods": copies})
        expected.append(fits)
    assert len(questions) >= CAPACITIES // 2
    assert sum(expected) > CAPACITIES
    answers = answered(questions, recorder_binary, tmp_path / "queues")
    found = [sum("node" in each for each in answer["placements"]) for answer in answers]
    assert found == expected
