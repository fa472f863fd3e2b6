"""The sandbox admits pods as a real API server did, whose answers are recorded."""

from __future__ import annotations

import pytest

from tests.parity.test_workloads import CATEGORIES, questions
from tests.parity.workloads.naming import Json
from tests.parity.workloads.sandboxed import Sandboxed, admitted_of, without_hash

pytestmark = pytest.mark.anyio


def admitted_in(question: Json) -> dict[str, Json]:
    """Return what the real API server made of one new pod of each workload."""
    workloads = question["expect"]["workloads"].items()
    return {name: workload["admitted"] for name, workload in workloads if "admitted" in workload}


@pytest.mark.parametrize("category", [category for category in CATEGORIES if category != "scale-down"])
async def test_new_pods_are_admitted_as_by_a_real_api_server(category):
    count, wrong = 0, {}
    for question in questions():
        if question["category"] != category or not admitted_in(question):
            continue
        new_pods = Sandboxed(question).new_pods()
        for name, admitted_pod in admitted_in(question).items():
            pods = [without_hash(admitted_of(pod)) for pod in new_pods.get(name, ())]
            count += 1
            if without_hash(admitted_pod) not in pods:
                wrong[question["id"], name] = pods
    assert wrong == {}
    assert count


def test_all_recorded_pods_are_compared():
    assert sum(len(admitted_in(question)) for question in questions()) == 236


async def test_refusals_are_those_of_the_real_api_server():
    message_by_id = {
        question["id"]: refusal["message"].partition("is forbidden: ")[2]
        for question in questions()
        for refusal in question["expect"]["refused"]
    }
    assert message_by_id
    for question in questions():
        if question["id"] in message_by_id:
            sandboxed = Sandboxed(question)
            texts = [*sandboxed.refused.values(), *sandboxed.refusals_of_controllers()]
            assert any(text.endswith(message_by_id[question["id"]]) for text in texts), (question["id"], texts)
