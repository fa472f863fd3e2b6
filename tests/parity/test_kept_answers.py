"""What is kept for a class of pods answers each recorded scenario as upstream did, and as an engine that keeps nothing.

The pod of each scenario is asked about three times, so that the third answer is from what was kept. Then it is placed,
and four more of its kind after it, each of which has to fare as it does without the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from podium.framework.class_cache import ClassCache
from podium.framework.status import ScheduleError
from podium.objects.core import Pod
from podium.whatif import Evaluator, evaluate
from podium.whatif.answers import as_answer, survey_one_pod
from podium.whatif.cluster import StillCluster
from tests.parity.recorded import SCENARIOS, as_json, categories, category_of, differences, scenarios, without_empty

REPLICAS = 4


class Asking:
    """Stands in for `answer_one_pod`.

    Args:
        times: how often the pod is asked about before it is placed; the last answer is given.
    """

    def __init__(self, times: int) -> None:
        self._times = times
        self.answers: list[Any] = []
        self.classes = 0

    def __call__(self, cluster: StillCluster, pod: Pod) -> dict[str, Any]:
        recorded: dict[str, Any] = [self._survey(cluster, pod)[0] for _ in range(self._times)][-1]
        for number in range(1 + REPLICAS):
            replica = pod if not number else _replica(pod, number)
            answer, winner = self._survey(cluster, replica)
            self.answers.append(answer)
            if winner is not None:
                cluster.cache.assume_pod(replica, winner)
        self.classes = cluster.framework_for(pod).classes.statistics()["classes"]
        return recorded

    def _survey(self, cluster: StillCluster, pod: Pod) -> tuple[Any, str | None]:
        snapshot = cluster.cache.snapshot()
        try:
            found = survey_one_pod(cluster, pod)
        except ScheduleError as error:
            return {"error": str(error)}, None
        return as_answer(found, snapshot), None if found.winner is None else snapshot.name(found.winner)


def _replica(pod: Pod, number: int) -> Pod:
    meta = pod.metadata
    own = msgspec.structs.replace(meta, name=f"{meta.name}-{number}", uid=f"{meta.uid}-{number}")
    return Pod(metadata=own, spec=pod.spec, status=pod.status, node_name=pod.node_name)


def answered(category: str, times: int, patch: pytest.MonkeyPatch) -> Iterator[tuple[dict[str, Any], Any, Asking]]:
    """Each scenario of a kind, what is answered, and what was asked on the way."""
    evaluator = Evaluator()
    for scenario, line in scenarios(SCENARIOS):
        if category_of(scenario["id"]) == category:
            asking = Asking(times)
            patch.setattr(evaluate, "answer_one_pod", asking)
            yield scenario, evaluator.answer_line(line, ""), asking


@pytest.mark.parametrize("category", categories(SCENARIOS))
def test_kept_answers_are_upstreams_and_those_of_an_engine_that_keeps_nothing(category, monkeypatch):
    warm = list(answered(category, 3, monkeypatch))
    monkeypatch.setattr("podium.framework.runtime.ClassCache", lambda framework: ClassCache(framework, rows_max=0))
    cold = list(answered(category, 1, monkeypatch))
    for (scenario, answer, asked), (_, _, asked_cold) in zip(warm, cold, strict=True):
        name = answer.pop("id")
        expected = without_empty(scenario["expect"])
        assert list(differences(expected, without_empty(as_json(answer)))) == [], name
        assert asked.answers == asked_cold.answers, name
        assert asked_cold.classes == 0
    assert any(asked.classes for _, _, asked in warm)
