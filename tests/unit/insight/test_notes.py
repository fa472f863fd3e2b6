from typing import Any

import pytest

from podium.insight import Cluster
from tests.manifests import ZONE, node, pod

SCHEDULER = "default-scheduler"
ENDING_SINCE = "2026-01-01T00:00:00Z"
Json = dict[str, Any]


def web(name: str = "web", cpu: str = "1", **fields: Any) -> Json:
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def ending(name: str, cpu: str = "1", **fields: Any) -> Json:
    answer = web(name, cpu, **fields)
    answer["metadata"]["deletionTimestamp"] = ENDING_SINCE
    return answer


def notes(*objects: Json, pod: Json) -> tuple[str, ...]:
    return Cluster.load(list(objects)).why(pod).notes


def test_a_pod_fits_as_soon_as_those_that_are_ending_are_gone() -> None:
    (note,) = notes(node("n1", "1"), node("n2", "1"), ending("old", node="n2"), web("other", node="n1"), pod=web())
    assert note == f"It fits on n2 as soon as pods that are ending there are gone: default/old (since {ENDING_SINCE})"


def test_many_pods_that_are_ending_are_counted() -> None:
    (note,) = notes(node("n1", "7"), *(ending(f"old-{at}", node="n1") for at in range(7)), pod=web(cpu="7"))
    assert note.endswith(f"default/old-4 (since {ENDING_SINCE}) and 2 more")


def test_pods_that_are_ending_elsewhere_may_be_what_keeps_it_off() -> None:
    apart = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": ZONE}
    terms = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    nodes = node("n1", labels={ZONE: "z"}), node("n2", labels={ZONE: "z"}, unschedulable=True)
    (note,) = notes(*nodes, ending("old", node="n2", labels={"app": "a"}), pod=web(affinity=terms))
    assert note == f"It fits on n1 as soon as pods that are ending are gone: default/old (since {ENDING_SINCE})"


@pytest.mark.parametrize(
    "pod",
    [web(cpu="9"), web(nodeSelector={"disk": "ssd"}), web(cpu="3")],
    ids=["too large", "selects no node", "too large for what they leave"],
)
def test_no_note_is_made_if_the_pod_would_not_fit_without_the_terminating_pods(pod: Json) -> None:
    assert notes(node("n1", "2"), ending("old", node="n1"), pod=pod) == ()


def test_a_pod_that_fits_waits_for_no_victims() -> None:
    assert notes(node("n1", "4"), ending("old", node="n1"), pod=web()) == ()


def test_a_pod_that_is_being_deleted_is_placed_no_more() -> None:
    (note,) = notes(node("n1"), pod=ending("web"))
    assert note == f"It is being deleted since {ENDING_SINCE}: no scheduler places it any more"


def test_victims_that_are_ending_already_are_not_evicted_again() -> None:
    answer = Cluster.load([node("n1", "1"), ending("low", node="n1")]).why(web(priority=9))
    assert answer.preemption == (
        f"The victims of its preemption on n1 are ending already: default/low (since {ENDING_SINCE})"
    )


def test_a_nominated_pod_whose_victims_are_gone_waits_for_none() -> None:
    target = web(cpu="9", priority=9, status={"nominatedNodeName": "n1"})
    assert Cluster.load([node("n1", "1")]).why(target).preemption.startswith("Preemption does not help")
