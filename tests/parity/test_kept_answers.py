"""What is kept for a class of pods answers each recorded scenario as upstream did, and as an engine that keeps nothing.

The pod of each scenario is asked about three times, so that the third answer is from what was kept. Then it is placed,
and four more of its kind after it, each of which has to fare as it does without the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from podium.engine.cluster import Cluster
from podium.framework.contract.status import ScheduleError
from podium.framework.cycle.evaluation import FullEvaluation
from podium.framework.profile.signature_cache import SignatureCache
from podium.objects.core import Pod
from tests.parity.recorded import (
    SCENARIOS,
    as_json,
    categories,
    category_of,
    differences,
    evaluator_of,
    minors,
    scenarios,
    without_empty,
)

REPLICAS = 4


class Recorded(NamedTuple):
    """Stands in for an `Evaluation`, as it was before the pod was placed."""

    answer: dict[str, Any]
    found: FullEvaluation

    def as_dict(self) -> dict[str, Any]:
        return self.answer


class Asking:
    """Stands in for `Cluster.evaluate`.

    Args:
        times: how often the pod is asked about before it is placed; the last answer is given.
    """

    def __init__(self, times: int) -> None:
        self._times = times
        self._evaluate = Cluster.evaluate
        self.answers: list[Any] = []
        self.signatures = 0

    def __call__(self, cluster: Cluster, pod: Pod) -> Recorded:
        for _ in range(self._times):
            evaluation = self._evaluate(cluster, pod)
            recording = Recorded(evaluation.as_dict(), evaluation.found)
        for number in range(1 + REPLICAS):
            replica = pod if not number else _replica(pod, number)
            answer, winner = self._survey(cluster, replica)
            self.answers.append(answer)
            if winner is not None:
                cluster.engine.cache.assume_pod(replica, winner)
        self.signatures = cluster.framework_for(pod).signatures.statistics()["signatures"]
        return recording

    def _survey(self, cluster: Cluster, pod: Pod) -> tuple[Any, str | None]:
        try:
            evaluation = self._evaluate(cluster, pod)
        except ScheduleError as error:
            return {"error": str(error)}, None
        return evaluation.as_dict(), evaluation.node


def _replica(pod: Pod, number: int) -> Pod:
    meta = pod.metadata
    own = msgspec.structs.replace(meta, name=f"{meta.name}-{number}", uid=f"{meta.uid}-{number}")
    return Pod(metadata=own, spec=pod.spec, status=pod.status, node_name=pod.node_name)


def answer_scenarios(
    category: str, times: int, patch: pytest.MonkeyPatch
) -> Iterator[tuple[dict[str, Any], Any, Asking]]:
    """Each scenario of a kind, what is answered, and what was asked on the way."""
    evaluator = evaluator_of(minors(SCENARIOS)[-1])
    for scenario, line in scenarios(SCENARIOS):
        if category_of(scenario["id"]) == category:
            asking = Asking(times)
            with patch.context() as patched:
                patched.setattr(Cluster, "evaluate", lambda cluster, pod, asking=asking: asking(cluster, pod))
                answer = evaluator.answer_line(line, "")
            yield scenario, answer, asking


@pytest.mark.parametrize("category", categories(SCENARIOS))
def test_kept_answers_are_upstreams_and_those_of_an_engine_that_keeps_nothing(category, monkeypatch):
    warm = list(answer_scenarios(category, 3, monkeypatch))
    monkeypatch.setattr(SignatureCache, "of", lambda cache, pod, snapshot: None)
    cold = list(answer_scenarios(category, 1, monkeypatch))
    for (scenario, answer, asking), (_, _, asked_cold) in zip(warm, cold, strict=True):
        name = answer.pop("id")
        expected_answer = without_empty(scenario["expect"])
        assert list(differences(expected_answer, without_empty(as_json(answer)))) == [], name
        assert asking.answers == asked_cold.answers, name
        assert asked_cold.signatures == 0
    assert any(asking.signatures for _, _, asking in warm)
